//! What connections to a file have: how they wait for locks, whether they leave the log, where they sort.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::fs::Access;

use crate::Result;

/// How long a connection waits for a lock held by another.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it polls for the lock at the short interval: locks of this process are held only briefly.
pub(super) const LOCK_SOON: Duration = Duration::from_millis(50);
/// Polling interval during that time, and afterwards.
const LOCK_LOOKS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));

/// Makes the engine keep the log when this connection is the last to close. After a failed flush, nothing in it may be
/// treated as durable and checkpointed; on a full disk a checkpoint would take the space that the next opening needs.
pub(super) fn keep_log(connection: &Connection) {
    let kept = connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    if let Err(error) = kept {
        tracing::error!(%error, "the write-ahead log may be checkpointed although it should be kept as it is");
    }
}

/// Returns whether the engine finds a folder for temporary files, into which the entries of a new index are sorted: it
/// looks at the same ones. Otherwise they are sorted in memory.
pub(super) fn has_temporary_folder() -> bool {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp", "."].map(PathBuf::from);
    let needed = Access::WRITE_OK | Access::EXEC_OK;
    named.chain(usual).any(|it| it.is_dir() && rustix::fs::access(&it, needed).is_ok())
}

/// Sets how long a connection waits for locks. The engine's own busy handler sleeps longer each time: a writer that met
/// the keeper for half a millisecond slept for twenty.
pub(super) fn wait_for_locks(connection: &mut Connection, patience: Duration) -> Result<()> {
    let mut began = Instant::now();
    let wait = move |n_looks: i32| {
        if n_looks == 0 {
            began = Instant::now();
        }
        let waited = began.elapsed();
        std::thread::sleep(if waited < LOCK_SOON { LOCK_LOOKS.0 } else { LOCK_LOOKS.1 });
        waited < patience
    };
    Ok(connection.busy_handler(Some(wait))?)
}
