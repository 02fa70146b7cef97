//! The folder of an index: up to where it covers the changes, its room on the disk, its removal.

use std::path::Path;

use crate::{Result, StoreError};

/// Space of the disk that is left to the store: with less an index does not grow.
const RESERVED_BYTES: u64 = 256 << 20;

/// Checks that an index may grow.
///
/// Errors: the disk has no more space than the store should have for itself.
pub(super) fn check_room(folder: &Path) -> Result<()> {
    let io = |source| StoreError::Io { path: folder.display().to_string(), source };
    if fs4::available_space(folder).map_err(io)? < RESERVED_BYTES {
        return Err(StoreError::Full(format!("the search index in {}", folder.display())));
    }
    Ok(())
}

/// The number in the payload of a commit, up to which it covers the changes; `None` when another declaration or store made it.
pub(super) fn covered_of(payload: &str, fingerprint: &str) -> Option<u64> {
    payload.strip_prefix(fingerprint)?.trim().parse().ok()
}

/// Up to where the index in a folder covers the changes of this store; `None` when it is another's, or cannot be read.
/// One without a commit covers nothing.
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

/// Throws an index away.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: folder.display().to_string(), source })
        }
        _ => Ok(()),
    }
}
