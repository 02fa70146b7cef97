//! Folders whose directory entries are durable.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the directory entry of a new file or folder durable, or its removal.
pub(crate) fn flush_name(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Creates a folder and its missing parents, accessible to the owner alone; their directory entries are durable on
/// return.
///
/// Errors: a folder cannot be created or read.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let is_new = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let n_new = folder.ancestors().take_while(is_new).count();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The folder itself may just have been created by another process: its entry is flushed in any case.
    folder.ancestors().take(n_new.max(1)).try_for_each(flush_name)
}
