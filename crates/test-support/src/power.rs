//! Simulates power failures: what a disk may contain after one, depending on what the program has flushed.
//!
//! A test binary that invokes `record_flushes!` replaces the system's `fsync` and `fdatasync` for all code in it: ours,
//! libraries and the engine's C. In a folder that is being recorded ([`Recording::begin`]), each flush notes what it
//! guarantees: the bytes of a file at the start of the flush, or the names in a folder, separately. The name of a file
//! is only guaranteed once its folder has been flushed. Of everything else that was written, any sectors and any names
//! may be found after a failure.
//!
//! A [`Moment`] is the state of the disk when the power failed; [`Moment::disk`] creates one of the disks that may be
//! found then. A recording can ignore flushes of one type: a test that still passes would not detect if the program
//! omitted them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smallest unit of a disk that is written atomically, in bytes.
const SECTOR_BYTES: usize = 512;

/// Replaces the system's flushes in a test binary. To be invoked once, in the crate root.
#[macro_export]
macro_rules! record_flushes {
    () => {
        #[expect(
            unsafe_code,
            reason = "the name of a function of the system, which nothing else here defines"
        )]
        mod recorded_flushes {
            #[unsafe(no_mangle)]
            extern "C" fn fsync(file: i32) -> i32 {
                $crate::power::flushed(file)
            }

            #[unsafe(no_mangle)]
            extern "C" fn fdatasync(file: i32) -> i32 {
                $crate::power::flushed(file)
            }
        }
    };
}

/// A small pseudo-random number generator (xorshift).
pub struct Dice(u64);

impl Dice {
    /// Creates the series of a seed.
    pub fn new(seed: u64) -> Self {
        // Series of similar seeds start far apart.
        Self((seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() >> 11).unwrap_or(0) % n.max(1)
    }
}

/// Returns the number in an environment variable, or `default`.
///
/// # Panics
/// It is set and not a number.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |it| it.parse().expect(variable))
}

/// Returns bytes of a file that may be found after a failure: those that were flushed, and of the others randomly
/// chosen sectors.
pub fn found(kept: &[u8], written: &[u8], dice: &mut Dice) -> Vec<u8> {
    let (short, long) = (kept.len().min(written.len()), kept.len().max(written.len()));
    let mut bytes = kept.to_vec();
    // A file that was truncated or has grown may end anywhere in between.
    bytes.resize(short + dice.below(long - short + 1), 0);
    // How many of ten sectors were written: often none, often all, or some.
    let n_of_ten = dice.below(11);
    for at in (0..bytes.len().min(written.len())).step_by(SECTOR_BYTES) {
        if dice.below(10) < n_of_ten {
            let end = (at + SECTOR_BYTES).min(bytes.len()).min(written.len());
            bytes[at..end].copy_from_slice(&written[at..end]);
        }
    }
    bytes
}

/// A flush that the program requests.
#[derive(Debug, Clone)]
pub struct Flush {
    /// Its number, from 1.
    pub number: u64,
    /// The path that is flushed.
    pub path: PathBuf,
    /// Whether it is a folder, whose names are flushed.
    pub is_folder: bool,
    /// Whether the flush has finished; otherwise it is about to begin.
    pub is_done: bool,
}

/// Files and folders, by inode number.
#[derive(Debug, Clone, Default)]
struct Tree {
    bytes: HashMap<u64, Arc<Vec<u8>>>,
    names: HashMap<u64, BTreeMap<PathBuf, u64>>,
}

impl Tree {
    /// Reads everything in a folder.
    fn read(folder: &Path, tree: &mut Self, seen: &mut dyn FnMut(u64, File)) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Files may appear and disappear meanwhile.
            let Ok(mut file) = File::open(entry.path()) else { continue };
            let about = file.metadata()?;
            names.insert(PathBuf::from(entry.file_name()), about.ino());
            if about.is_dir() {
                Self::read(&entry.path(), tree, seen).or_else(gone)?;
            } else {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                tree.bytes.insert(about.ino(), Arc::new(bytes));
            }
            seen(about.ino(), file);
        }
        tree.names.insert(fs::metadata(folder)?.ino(), names);
        Ok(())
    }
}

/// Treats a folder that disappeared while it was read as empty.
fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The disk when the power failed: what is guaranteed to be on it, and what was written.
#[derive(Debug, Clone)]
pub struct Moment {
    root: u64,
    kept: Tree,
    written: Tree,
}

impl Moment {
    /// Creates a disk that may be found then, in a new folder.
    pub fn disk(&self, to: &Path, dice: &mut Dice) -> io::Result<()> {
        // Names with the same inode number are the same file.
        self.folder(self.root, to, dice, &mut HashMap::new())
    }

    /// Creates the disk as a process leaves it that is killed then, in a new folder: with everything that was written.
    pub fn left(&self, to: &Path) -> io::Result<()> {
        let written = Self { kept: self.written.clone(), ..self.clone() };
        written.disk(to, &mut Dice::new(0))
    }

    fn folder(
        &self,
        number: u64,
        to: &Path,
        dice: &mut Dice,
        files: &mut HashMap<u64, Vec<u8>>,
    ) -> io::Result<()> {
        fs::create_dir_all(to)?;
        let none = BTreeMap::new();
        let kept = self.kept.names.get(&number).unwrap_or(&none);
        let written = self.written.names.get(&number).unwrap_or(&none);
        let all: BTreeSet<&PathBuf> = kept.keys().chain(written.keys()).collect();
        // Names may be lost individually, but are usually lost together.
        let n_of_ten = dice.below(11);
        for name in all {
            let chosen = if dice.below(10) < n_of_ten { written.get(name) } else { kept.get(name) };
            let Some(&number) = chosen else { continue };
            let to = to.join(name);
            let is_folder = self.kept.names.contains_key(&number) || self.written.names.contains_key(&number);
            if is_folder {
                self.folder(number, &to, dice, files)?;
                continue;
            }
            let bytes = files.entry(number).or_insert_with(|| {
                let empty = Arc::default();
                let kept = self.kept.bytes.get(&number).unwrap_or(&empty);
                let written = self.written.bytes.get(&number).unwrap_or(kept);
                found(kept, written, dice)
            });
            fs::write(to, bytes)?;
        }
        Ok(())
    }
}

type OnFlush = Box<dyn FnMut(&Flush) -> bool + Send>;

/// The recorded state of the disk under one folder.
struct Disk {
    folder: PathBuf,
    root: u64,
    kept: Tree,
    /// Known files are held open, so that their inode numbers are not reused.
    held: HashMap<u64, File>,
    n_flushes: u64,
    overlooks: OnFlush,
    fails_at: OnFlush,
    moments: Vec<Moment>,
}

impl Disk {
    fn hold(&mut self, file: File) -> io::Result<u64> {
        let number = file.metadata()?.ino();
        self.held.entry(number).or_insert(file);
        Ok(number)
    }

    /// Records a power failure now; the program does not notice it.
    fn fail(&mut self) -> io::Result<()> {
        let mut written = Tree::default();
        Tree::read(&self.folder, &mut written, &mut |_, _| {})?;
        self.moments.push(Moment { root: self.root, kept: self.kept.clone(), written });
        Ok(())
    }

    fn flush(&mut self, file: &Path, path: PathBuf) -> io::Result<()> {
        let opened = File::open(file)?;
        let is_folder = opened.metadata()?.is_dir();
        self.n_flushes += 1;
        let mut flush = Flush { number: self.n_flushes, path, is_folder, is_done: false };
        if (self.fails_at)(&flush) {
            self.fail()?;
        }
        if (self.overlooks)(&flush) {
            return Ok(());
        }
        let number = self.hold(opened)?;
        if is_folder {
            let mut names = BTreeMap::new();
            for entry in fs::read_dir(file)? {
                let entry = entry?;
                if let Ok(opened) = File::open(entry.path()) {
                    names.insert(PathBuf::from(entry.file_name()), self.hold(opened)?);
                }
            }
            self.kept.names.insert(number, names);
        } else {
            self.kept.bytes.insert(number, Arc::new(fs::read(file)?));
        }
        flush.is_done = true;
        if (self.fails_at)(&flush) {
            self.fail()?;
        }
        Ok(())
    }
}

static DISKS: Mutex<Vec<Arc<Mutex<Disk>>>> = Mutex::new(Vec::new());

fn disks() -> MutexGuard<'static, Vec<Arc<Mutex<Disk>>>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder whose disk is recorded until this is dropped.
pub struct Recording(Arc<Mutex<Disk>>);

impl Recording {
    /// Starts to record a folder. Its current content counts as flushed.
    ///
    /// `overlooks` says which flushes are ignored. `fails_at` is called before and after each flush and says whether
    /// the power fails then; the program continues, and the power may fail again. No flush finishes while it is called:
    /// whatever it sees acknowledged is based on flushes that have been recorded.
    pub fn begin(
        folder: &Path,
        overlooks: impl FnMut(&Flush) -> bool + Send + 'static,
        fails_at: impl FnMut(&Flush) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let (mut kept, mut held) = (Tree::default(), HashMap::new());
        Tree::read(&folder, &mut kept, &mut |number, file| drop(held.insert(number, file)))?;
        let disk = Disk {
            root: fs::metadata(&folder)?.ino(),
            folder,
            kept,
            held,
            n_flushes: 0,
            overlooks: Box::new(overlooks),
            fails_at: Box::new(fails_at),
            moments: Vec::new(),
        };
        let disk = Arc::new(Mutex::new(disk));
        disks().push(disk.clone());
        Ok(Self(disk))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the power fail now, and returns what `looks` sees: whatever is acknowledged by then must be found.
    pub fn fail<T>(&self, looks: impl FnOnce() -> T) -> io::Result<(T, Moment)> {
        let mut disk = self.disk();
        let seen = looks();
        disk.fail()?;
        let moment = disk.moments.pop().ok_or_else(|| io::Error::other("no moment"))?;
        Ok((seen, moment))
    }

    /// Returns the number of flushes so far.
    pub fn n_flushes(&self) -> u64 {
        self.disk().n_flushes
    }

    /// Returns the moments of power failures since the last call.
    pub fn moments(&self) -> Vec<Moment> {
        std::mem::take(&mut self.disk().moments)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        disks().retain(|it| !Arc::ptr_eq(it, &self.0));
    }
}

/// Records a flush, by file descriptor, and returns what a successful flush returns. Outside of recorded folders
/// nothing is flushed, as no test has to survive a real failure.
///
/// # Panics
/// The file or folder cannot be read.
pub fn flushed(file: i32) -> i32 {
    let file = PathBuf::from(format!("/proc/self/fd/{file}"));
    let path = fs::read_link(&file).unwrap_or_default();
    let all = disks().clone();
    for disk in all {
        let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
        if path.starts_with(&disk.folder) {
            let noted = disk.flush(&file, path.clone());
            assert!(noted.is_ok(), "a flush of {} cannot be recorded: {noted:?}", path.display());
        }
    }
    0
}
