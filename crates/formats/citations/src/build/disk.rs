//! What a build asks of the disk: that something is on it. All of it goes this way, so that a test can let the power fail.

use std::fs::File;
use std::io;
use std::path::Path;

/// Has the bytes of a file on disk.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    #[cfg(test)]
    power::before();
    file.sync_all()?;
    #[cfg(test)]
    power::after(file);
    Ok(())
}

/// Has the names in a folder on disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    sync(&File::open(folder)?)
}

/// Power failures. A disk holds for sure what was asked to be on it: bytes of files, and names in folders, each by itself.
/// Of all else that was written it may hold anything. At moments around each such request the disk as it may be found is
/// made, and the build goes on from there: it must give the same file.
#[cfg(test)]
pub(super) mod power {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::PathBuf;

    use super::*;

    /// What is known of the disk under one folder.
    #[derive(Default)]
    struct Disk {
        folder: PathBuf,
        /// Bytes that are on disk, by the number of the file.
        bytes: BTreeMap<u64, Vec<u8>>,
        /// Names that are on disk: path below the folder, and the number of the file.
        names: BTreeMap<PathBuf, u64>,
        /// Which request is the moment at which the power fails; 0 for none.
        cut_at: u64,
        n_requests: u64,
        dice: u64,
        /// The disk as it is found after the failure.
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

        /// The bytes of a file as they may be found: those that are kept, those that were written, or some of the latter.
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

    /// Runs `work` in a folder, and tells how many requests it makes of the disk.
    pub(in crate::build) fn n_requests(folder: &Path, work: impl FnOnce()) -> u64 {
        DISK.set(Some(Disk { folder: folder.to_owned(), cut_at: u64::MAX, ..Disk::default() }));
        work();
        DISK.take().map_or(0, |it| it.n_requests)
    }

    /// Runs `work` in a folder, with the power failing at the request of that number. Gives the disk as it is found
    /// then; `None` when there were fewer requests.
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
        // What was there before is on the disk.
        for (name, number) in disk.live() {
            disk.bytes.insert(number, fs::read(folder.join(&name)).unwrap());
            disk.names.insert(name, number);
        }
        DISK.set(Some(disk));
        work();
        DISK.take()?.found
    }
}
