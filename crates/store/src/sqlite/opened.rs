//! A tenant of a file without a catalogue, for tests of what happens inside.

use std::path::Path;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use super::Sqlite;
use crate::budget::Budget;
use crate::classes::Classes;
use crate::remake::Remakes;
use crate::session::Flavour;
use crate::statements::Statements;
use crate::tenant::{Engine, Inner};
use crate::view::Shared;
use crate::{Kind, Limits, Result, Tenant};

/// Longer than any test.
const TIMEOUT_MS: u64 = 600_000;

/// Opens a file as a tenant of these kinds.
pub(super) fn open(path: &Path, kinds: &'static [&'static Kind]) -> Result<Tenant> {
    Ok(tenant_of(Sqlite::open(path, shared(kinds, Limits::default()))?))
}

/// Returns what all connections to a file share.
pub(super) fn shared(kinds: &'static [&'static Kind], limits: Limits) -> Arc<Shared> {
    Arc::new(Shared {
        kinds,
        statements: Statements::of(Flavour::Sqlite, kinds),
        classes: Classes::new(),
        side: None,
        indexes: OnceLock::new(),
        remakes: Remakes::default(),
        declared: AtomicI64::new(0),
        limits,
        budget: Budget::new(1 << 30),
    })
}

/// Returns the tenant of an open file.
pub(super) fn tenant_of(engine: Sqlite) -> Tenant {
    let places = || Arc::new(Semaphore::new(4));
    Tenant(Arc::new(Inner {
        name: "t".into(),
        engine: Engine::Sqlite(engine),
        scans: places(),
        points: places(),
        parking: places(),
        read_timeout_ms: TIMEOUT_MS,
        remaker: OnceLock::new(),
    }))
}
