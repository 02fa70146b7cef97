//! Folders whose names are on disk.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the name of a new file or folder durable, or that it is gone.
pub(crate) fn flush_name(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Makes a folder, with those above it, for its owner alone, unless it is there; their names are on disk when this returns.
///
/// Errors: one cannot be made, or read.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let is_new = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
    let n_new = folder.ancestors().take_while(is_new).count();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The folder itself may be there since a moment ago: its name is flushed in any case.
    folder.ancestors().take(n_new.max(1)).try_for_each(flush_name)
}
