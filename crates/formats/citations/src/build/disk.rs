//! The sync operations of a build. All of them go through this file, so that a test can simulate power failures.

use std::fs::File;
use std::io;
use std::path::Path;

/// Syncs the bytes of a file to disk.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    #[cfg(test)]
    power::before();
    file.sync_all()?;
    #[cfg(test)]
    power::after(file);
    Ok(())
}

/// Syncs the names in a folder to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    sync(&File::open(folder)?)
}

/// Power failures. A disk is certain to hold only what was synced: bytes of files, and names in folders, each
/// separately. Of everything else that was written it may hold anything. At moments around each sync the disk is put
/// into a state in which it may be found, and the build resumes from there: it must give the same file.
#[cfg(test)]
pub(super) mod power {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::PathBuf;

    use super::*;

    /// The known state of the disk under one folder.
    #[derive(Default)]
    struct Disk {
        folder: PathBuf,
        /// Synced bytes, by the number of the file.
        bytes: BTreeMap<u64, Vec<u8>>,
        /// Synced names: path below the folder, and the number of the file.
        names: BTreeMap<PathBuf, u64>,
        /// Number of the sync at which the power fails; 0 for none.
        cut_at: u64,
        n_requests: u64,
        dice: u64,
        /// The state of the disk after the failure.
        found: Option<BTreeMap<PathBuf, Vec<u8>>>,
    }

    thread_local! {
        static DISK: RefCell<Option<Disk>> = const { RefCell::new(None) };
    }

    fn files(folder: &Path, below: &Path, out: &mut BTreeMap<PathBuf, u64>) {
        for entry in fs::read_dir(folder.join(below)).unwrap().flatten() {
            let name = below.join(entry.file_name());
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                files(folder, &name, out);
            } else {
                out.insert(name, about.ino());
            }
        }
    }

    impl Disk {
        fn live(&self) -> BTreeMap<PathBuf, u64> {
            let mut all = BTreeMap::new();
            files(&self.folder, Path::new(""), &mut all);
            all
        }

        fn roll(&mut self, n: u64) -> u64 {
            self.dice ^= self.dice << 13;
            self.dice ^= self.dice >> 7;
            self.dice ^= self.dice << 17;
            (self.dice >> 11) % n
        }

        /// Returns the bytes of a file as they may be found: the synced ones, the written ones, or some of the latter.
        fn bytes_found(&mut self, number: u64, live: &BTreeMap<PathBuf, u64>) -> Vec<u8> {
            let kept = self.bytes.get(&number).cloned().unwrap_or_default();
            let path = live.iter().find(|it| *it.1 == number).map(|it| self.folder.join(it.0));
            let written = path.and_then(|it| fs::read(it).ok()).unwrap_or_else(|| kept.clone());
            match self.roll(4) {
                0 | 1 => kept,
                2 => written,
                _ => {
                    let mut torn = written;
                    let from = self.roll(torn.len() as u64 + 1) as usize;
                    for (at, byte) in torn.iter_mut().enumerate().skip(from) {
                        *byte = kept.get(at).copied().unwrap_or(0);
                    }
                    torn
                }
            }
        }

        fn fail(&mut self) {
            let live = self.live();
            let all: BTreeSet<PathBuf> = live.keys().chain(self.names.keys()).cloned().collect();
            let mut found = BTreeMap::new();
            for name in all {
                let (now, kept) = (live.get(&name).copied(), self.names.get(&name).copied());
                let number = if self.roll(2) == 0 { now } else { kept };
                if let Some(number) = number {
                    let bytes = self.bytes_found(number, &live);
                    found.insert(name, bytes);
                }
            }
            self.found = Some(found);
        }
    }

    pub(super) fn before() {
        DISK.with_borrow_mut(|disk| {
            let Some(disk) = disk else { return };
            disk.n_requests += 1;
            if disk.n_requests == disk.cut_at {
                disk.fail();
            }
        });
    }

    pub(super) fn after(file: &File) {
        DISK.with_borrow_mut(|disk| {
            let Some(disk) = disk else { return };
            let about = file.metadata().unwrap();
            let live = disk.live();
            if about.is_dir() {
                let folder = if about.ino() == fs::metadata(&disk.folder).unwrap().ino() {
                    PathBuf::new()
                } else {
                    let is_it = |it: &PathBuf| {
                        fs::metadata(disk.folder.join(it)).is_ok_and(|it| it.ino() == about.ino())
                    };
                    let parents = live.keys().filter_map(|it| it.parent().map(Path::to_owned));
                    parents.filter(|it| !it.as_os_str().is_empty()).find(is_it).unwrap_or_default()
                };
                disk.names.retain(|name, _| name.parent() != Some(&folder));
                let own = live.into_iter().filter(|it| it.0.parent() == Some(&folder));
                disk.names.extend(own);
            } else if let Some(name) = live.iter().find(|it| *it.1 == about.ino()).map(|it| it.0.clone()) {
                let bytes = fs::read(disk.folder.join(name)).unwrap();
                disk.bytes.insert(about.ino(), bytes);
            }
        });
    }

    /// Runs `work` in a folder, and returns the number of syncs it makes.
    pub(in crate::build) fn n_requests(folder: &Path, work: impl FnOnce()) -> u64 {
        DISK.set(Some(Disk { folder: folder.to_owned(), cut_at: u64::MAX, ..Disk::default() }));
        work();
        DISK.take().map_or(0, |it| it.n_requests)
    }

    /// Runs `work` in a folder, with the power failing at the sync of that number. Returns the state of the disk
    /// then; `None` if there were fewer syncs.
    pub(in crate::build) fn failing(
        folder: &Path,
        cut_at: u64,
        seed: u64,
        work: impl FnOnce(),
    ) -> Option<BTreeMap<PathBuf, Vec<u8>>> {
        let mut disk = Disk {
            folder: folder.to_owned(),
            cut_at,
            dice: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            ..Disk::default()
        };
        // Existing files are on the disk.
        for (name, number) in disk.live() {
            disk.bytes.insert(number, fs::read(folder.join(&name)).unwrap());
            disk.names.insert(name, number);
        }
        DISK.set(Some(disk));
        work();
        DISK.take()?.found
    }
}
