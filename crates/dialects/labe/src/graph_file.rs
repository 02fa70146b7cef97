//! The graph that is served, and its replacement: a new file under the same name is opened while requests that have
//! started finish with the old one.
//!
//! A new file is mapped and served at once; meanwhile it is copied into an unnamed file, which then replaces it. So
//! overwriting the file, instead of renaming a new one into its place, does not affect what is being read. After the
//! file has been overwritten, its content is served once the copy is complete and every checksum is right.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;

use pinakes_citations::Graph;

use crate::error::MountError;

/// An open graph file.
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
    /// The last file that was checked, even if it could not be opened: it is not tried twice.
    seen: Stamp,
}

/// Whether and where copies are made.
#[derive(Debug, Clone)]
pub(crate) enum Copies {
    /// No copies: the file may only be replaced by renaming.
    None,
    /// In this folder, while the file itself is being served.
    Beside(PathBuf),
    /// In this folder, before anything is served.
    First(PathBuf),
}

/// Distinguishes one file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len_bytes: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Stamp {
    /// Says whether the file was overwritten in place rather than replaced.
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
    /// Opens a file that is checked for changes every `check_ms` milliseconds.
    ///
    /// # Errors
    /// The file does not exist or is not a graph.
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

    /// Returns the graph to answer from. Checks the file when it is due; if the file cannot be opened, this is logged
    /// and the graph that is open stays.
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

    /// Checks the file now, and opens it if it has changed.
    pub(crate) fn check(&self) {
        self.0.check();
    }
}

impl Inner {
    fn check(self: &Arc<Self>) {
        // A missing file is about to be replaced, or was removed: the open graph stays.
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

    /// Copies the file on a separate thread, unless a copy is already running.
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
                // The file may have changed during the copy.
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

    /// Copies the file and serves the copy. Returns the stamp of the file that was copied or could not be, or `None` if
    /// there is no file.
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
            // The file changed while it was read: the next check starts again.
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
