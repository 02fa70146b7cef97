//! The file beside a tenant's file that shows who has the tenant open, and reserves space for the next opening.
//!
//! Its lock is held while the tenant is open. Its content is a reserve: to open a file the engine needs some space for
//! the index of its log, which a full disk does not have. If an opening finds no space, it gives the reserve back to
//! the disk and tries once more. The reserve is filled again when there is space.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::users::Users;
use crate::{Result, StoreError};

/// Permissions of a tenant's files: owner only, whatever folder they are in. The engine gives the log and other files
/// it creates the permissions of the file.
pub(super) const PRIVATE: u32 = 0o600;

/// Suffix of the file's name.
pub(super) const PRESENCE: &str = "-open";

/// Space for the engine's index of a log of 256 MB, and for what an opening itself writes.
const RESERVE_BYTES: u64 = 256 << 10;
/// The reserve is filled only where this much is free: the rest is for writers.
const ROOM_BYTES: usize = 1 << 20;

/// The lock on a tenant's file, held while this exists.
pub(super) struct Presence {
    path: PathBuf,
    file: File,
}

impl Presence {
    /// Opens the file beside `path` and returns whether somebody else has the tenant open; if not, locks it
    /// exclusively.
    pub(super) fn announce(path: &Path) -> Result<(Self, Users)> {
        let path = beside(path);
        let failed = |source| StoreError::Io { path: path.display().to_string(), source };
        let mut options = File::options();
        let file =
            options.create(true).truncate(false).write(true).mode(PRIVATE).open(&path).map_err(failed)?;
        let users = match file.try_lock() {
            Ok(()) => Users::None,
            Err(TryLockError::WouldBlock) => Users::Others,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        };
        Ok((Self { path, file }, users))
    }

    /// Downgrades to a shared lock once the tables are up to date.
    pub(super) fn share(&self) -> Result<()> {
        let path = self.path.display().to_string();
        self.file.lock_shared().map_err(|source| StoreError::Io { path, source })
    }

    /// Fills the reserve unless the disk is nearly full; returns whether it is filled. While it is not, the log is not
    /// checkpointed: the file would grow into the space that the next opening needs.
    pub(super) fn keep_reserve(&self) -> bool {
        if self.file.metadata().is_ok_and(|it| it.len() >= RESERVE_BYTES) {
            return true;
        }
        // Writing bytes allocates space; setting the length does not.
        let room = vec![0; ROOM_BYTES];
        let filled = self.file.write_all_at(&room, 0).and_then(|()| self.file.set_len(RESERVE_BYTES));
        if let Err(error) = &filled {
            tracing::debug!(%error, file = %self.path.display(), "no reserve is kept for opening on a full disk");
            // Half a reserve would only take space from writers.
            let _still_there = self.file.set_len(0);
        }
        filled.is_ok()
    }
}

/// Gives the reserve beside `path` back to the disk; returns whether there was one.
pub(super) fn give_back(path: &Path) -> bool {
    let Ok(file) = File::options().write(true).open(beside(path)) else { return false };
    file.metadata().is_ok_and(|it| it.len() > 0) && file.set_len(0).is_ok()
}

fn beside(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}{PRESENCE}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_kept_given_back_once_and_kept_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.sqlite");
        let length = || std::fs::metadata(beside(&path)).unwrap().len();
        assert!(!give_back(&path), "there is none yet");
        let (presence, users) = Presence::announce(&path).unwrap();
        assert!(matches!(users, Users::None));
        assert!(presence.keep_reserve());
        assert_eq!(length(), RESERVE_BYTES);
        assert!(give_back(&path));
        assert_eq!(length(), 0);
        assert!(!give_back(&path));
        let (second, users) = Presence::announce(&path).unwrap();
        assert!(matches!(users, Users::Others));
        assert!(second.keep_reserve());
        assert_eq!(length(), RESERVE_BYTES);
    }
}
