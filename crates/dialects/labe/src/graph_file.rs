//! The graph that is served, and its change: a new file under the same name is opened while the old one goes on to
//! answer what was begun with it.
//!
//! A file is served at once, mapped, and copied meanwhile into a nameless one that takes its place: so who writes over the file
//! instead of renaming a new one into its place changes nothing that is being read. A file that was written over is served when
//! its copy is whole and every checksum right.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use pinakes_citations::Graph;

use crate::error::MountError;

/// A graph file, open.
pub(crate) struct GraphFile(Arc<Inner>);

struct Inner {
    path: PathBuf,
    copies: Copies,
    is_copying: AtomicBool,
    check_ms: i64,
    checked_at_ms: AtomicI64,
    current: RwLock<Current>,
}

struct Current {
    graph: Arc<Graph>,
    /// Of the last file looked at, also if that could not be opened: it is not tried twice.
    seen: Stamp,
}

/// Whether copies are made, and where.
#[derive(Debug, Clone)]
pub(crate) enum Copies {
    /// None: whoever replaces the file must rename.
    None,
    /// In this folder, while the file itself is served.
    Beside(PathBuf),
    /// In this folder, before anything is served.
    First(PathBuf),
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
    /// Whether the file of this stamp was written over, rather than replaced.
    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

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
    pub(crate) fn open(path: &Path, check_ms: u64, copies: Copies) -> Result<Self, MountError> {
        let seen = Stamp::of(path).map_err(|error| MountError::GraphFile { path: path.to_owned(), error })?;
        let graph = match &copies {
            Copies::First(folder) => Graph::open_copy(path, folder)?,
            Copies::None | Copies::Beside(_) => Graph::open(path)?,
        };
        let inner = Arc::new(Inner {
            path: path.to_owned(),
            copies,
            is_copying: AtomicBool::new(false),
            check_ms: i64::try_from(check_ms).unwrap_or(i64::MAX),
            checked_at_ms: AtomicI64::new(i64::MIN),
            current: RwLock::new(Current { graph: Arc::new(graph), seen }),
        });
        inner.begin_copy();
        Ok(Self(inner))
    }

    /// The graph to answer from. Looks at the file when it is time; a file that cannot be opened is told of in the log,
    /// and the graph that was open stays.
    pub(crate) fn current(&self, now_ms: i64) -> Arc<Graph> {
        let inner = &self.0;
        let checked_at_ms = inner.checked_at_ms.load(Ordering::Relaxed);
        let is_due = inner.check_ms <= now_ms.saturating_sub(checked_at_ms);
        let exchange =
            |at| inner.checked_at_ms.compare_exchange(at, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && exchange(checked_at_ms).is_ok() {
            inner.check();
        }
        Arc::clone(&inner.current.read().unwrap_or_else(PoisonError::into_inner).graph)
    }

    /// Looks at the file now, and opens it if it is another one.
    pub(crate) fn check(&self) {
        self.0.check();
    }
}

impl Inner {
    fn check(self: &Arc<Self>) {
        // A file that is not there is about to be replaced, or was removed: what is open stays.
        let Ok(stamp) = Stamp::of(&self.path) else { return };
        let seen = self.current.read().unwrap_or_else(PoisonError::into_inner).seen;
        if seen == stamp {
            return;
        }
        if let Copies::Beside(_) = &self.copies
            && stamp.is_same_file(&seen)
        {
            self.current.write().unwrap_or_else(PoisonError::into_inner).seen = stamp;
            self.begin_copy();
            return;
        }
        let opened = match &self.copies {
            Copies::First(folder) => Graph::open_copy(&self.path, folder),
            Copies::None | Copies::Beside(_) => Graph::open(&self.path),
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        current.seen = stamp;
        match opened {
            Ok(graph) => {
                tell_new(&self.path, &graph);
                current.graph = Arc::new(graph);
                drop(current);
                self.begin_copy();
            }
            Err(error) => {
                tracing::error!(%error, "the new citation graph cannot be opened; the former one stays");
            }
        }
    }

    /// Copies the file on a thread of its own, unless one is at it.
    fn begin_copy(self: &Arc<Self>) {
        let Copies::Beside(folder) = self.copies.clone() else { return };
        if self.is_copying.swap(true, Ordering::AcqRel) {
            return;
        }
        let mine = Arc::clone(self);
        let spawned = thread::Builder::new().name("graph copy".to_owned()).spawn(move || {
            loop {
                let copied = mine.copy(&folder);
                mine.is_copying.store(false, Ordering::Release);
                // A change that came meanwhile found this thread at work.
                let seen = mine.current.read().unwrap_or_else(PoisonError::into_inner).seen;
                if copied == Some(seen) || copied.is_none() || mine.is_copying.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
        if let Err(error) = spawned {
            self.is_copying.store(false, Ordering::Release);
            tracing::warn!(%error, "the citation graph cannot be copied; do not write over its file");
        }
    }

    /// Copies the file and serves the copy; the stamp of what was copied or could not be, `None` if there is no file.
    fn copy(&self, folder: &Path) -> Option<Stamp> {
        let before = Stamp::of(&self.path).ok()?;
        let opened = Graph::open_copy(&self.path, folder);
        let is_whole = Stamp::of(&self.path).is_ok_and(|after| after == before);
        match opened {
            Ok(graph) if is_whole => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                if current.graph.identity() != graph.identity() {
                    tell_new(&self.path, &graph);
                }
                *current = Current { graph: Arc::new(graph), seen: before };
            }
            // It changes while it is read: who looks next begins again.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the citation graph cannot be copied; what is served stays");
            }
        }
        Some(before)
    }
}

fn tell_new(path: &Path, graph: &Graph) {
    let (n_dois, n_citations) = (graph.n_dois(), graph.n_citations());
    tracing::info!(path = %path.display(), n_dois, n_citations, "a new citation graph is served");
}
