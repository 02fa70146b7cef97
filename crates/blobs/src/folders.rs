//! Folders of files whose names are flushed to disk.
//!
//! The store of files flushes a folder, but only when it creates it. A folder that another upload has just created,
//! or a process that was killed before its flush, may be lost with everything that was put into it since.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum number of folders that are remembered (256 for each tenant with files); if there are more, they are
/// flushed again.
const MOST_FOLDERS: usize = 100_000;

/// Flushes the names in a folder to disk.
fn flush(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates a folder with its parents, accessible only to its owner; their names are on disk when this returns.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    let is_new = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let n_new = folder.ancestors().take_while(is_new).count();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The folder itself may have been created a moment ago, so its name is flushed in any case.
    for made in folder.ancestors().take(n_new.max(1)) {
        let above = made.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        flush(above)?;
    }
    Ok(())
}

/// The folders whose names are known to be on disk.
#[derive(Default)]
pub(crate) struct Folders(Mutex<HashSet<PathBuf>>);

impl Folders {
    /// Ensures that the names of a file's folder and of its parents, up to `root`, are on disk.
    pub(crate) fn keep(&self, root: &Path, file: &Path) -> io::Result<()> {
        let Some(folder) = file.parent() else { return Ok(()) };
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(folder) {
            return Ok(());
        }
        for above in folder.ancestors().skip(1).take_while(|it| it.starts_with(root)) {
            flush(above)?;
        }
        let mut known = known();
        if MOST_FOLDERS <= known.len() {
            known.clear();
        }
        known.insert(folder.to_owned());
        Ok(())
    }
}
