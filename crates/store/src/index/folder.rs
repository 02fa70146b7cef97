//! The folder of an index: which changes it covers, free disk space, its removal.

use std::path::Path;

use crate::{Result, StoreError};

/// Disk space reserved for the store: with less, an index does not grow.
const RESERVED_BYTES: u64 = 256 << 20;

/// Checks that an index may grow.
///
/// Errors: the disk has no more free space than is reserved for the store.
pub(super) fn check_room(folder: &Path) -> Result<()> {
    let io = |source| StoreError::Io { path: folder.display().to_string(), source };
    if fs4::available_space(folder).map_err(io)? < RESERVED_BYTES {
        return Err(StoreError::Full(format!("the search index in {}", folder.display())));
    }
    Ok(())
}

/// Returns the number in a commit's payload up to which it covers the changes; `None` when another declaration or store
/// made it.
pub(super) fn covered_of(payload: &str, fingerprint: &str) -> Option<u64> {
    payload.strip_prefix(fingerprint)?.trim().parse().ok()
}

/// Returns up to which number the index in a folder covers the changes of this store; `None` when it belongs to another
/// or cannot be read. One without a commit covers nothing.
pub(super) fn covered_on_disk(folder: &Path, fingerprint: &str) -> Option<u64> {
    let file = folder.join("meta.json");
    if !file.exists() {
        return Some(0);
    }
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    match meta.get("payload").and_then(|it| it.as_str()) {
        None => Some(0),
        Some(payload) => covered_of(payload, fingerprint),
    }
}

/// Removes an index.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: folder.display().to_string(), source })
        }
        _ => Ok(()),
    }
}
