//! The graph that is served, and its change: a new file under the same name is opened while the old one goes on to
//! answer what was begun with it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use pinakes_citations::Graph;

use crate::error::MountError;

/// A graph file, open.
pub(crate) struct GraphFile {
    path: PathBuf,
    check_ms: i64,
    checked_at_ms: AtomicI64,
    current: RwLock<Current>,
}

struct Current {
    graph: Arc<Graph>,
    /// Of the last file looked at, also if that could not be opened: it is not tried twice.
    seen: Stamp,
}

/// What tells one file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len_bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let it = fs::metadata(path)?;
        Ok(Self {
            device: it.dev(),
            inode: it.ino(),
            len_bytes: it.len(),
            changed_s: it.mtime(),
            changed_ns: it.mtime_nsec(),
        })
    }
}

impl GraphFile {
    /// Opens a file that is looked at again every `check_ms` milliseconds.
    ///
    /// # Errors
    /// The file is not there or no graph.
    pub(crate) fn open(path: &Path, check_ms: u64) -> Result<Self, MountError> {
        let seen = Stamp::of(path).map_err(|error| MountError::GraphFile { path: path.to_owned(), error })?;
        let graph = Arc::new(Graph::open(path)?);
        Ok(Self {
            path: path.to_owned(),
            check_ms: i64::try_from(check_ms).unwrap_or(i64::MAX),
            checked_at_ms: AtomicI64::new(i64::MIN),
            current: RwLock::new(Current { graph, seen }),
        })
    }

    /// The graph to answer from. Looks at the file when it is time; a file that cannot be opened is told of in the log,
    /// and the graph that was open stays.
    pub(crate) fn current(&self, now_ms: i64) -> Arc<Graph> {
        let checked_at_ms = self.checked_at_ms.load(Ordering::Relaxed);
        let is_due = self.check_ms <= now_ms.saturating_sub(checked_at_ms);
        let exchange =
            |at| self.checked_at_ms.compare_exchange(at, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && exchange(checked_at_ms).is_ok() {
            self.check();
        }
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).graph)
    }

    /// Looks at the file now, and opens it if it is another one.
    pub(crate) fn check(&self) {
        // A file that is not there is about to be replaced, or was removed: what is open stays.
        let Ok(stamp) = Stamp::of(&self.path) else { return };
        if self.current.read().unwrap_or_else(PoisonError::into_inner).seen == stamp {
            return;
        }
        let opened = Graph::open(&self.path);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.seen = stamp;
        match opened {
            Ok(graph) => {
                let (n_dois, n_citations) = (graph.n_dois(), graph.n_citations());
                current.graph = Arc::new(graph);
                tracing::info!(path = %self.path.display(), n_dois, n_citations, "a new citation graph is served");
            }
            Err(error) => {
                tracing::error!(%error, "the new citation graph cannot be opened; the former one stays");
            }
        }
    }
}
