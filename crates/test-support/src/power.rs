//! Power failures: what a disk may hold after one, by what the program has asked it to keep.
//!
//! A test binary that says `record_flushes!` takes the place of the system's `fsync` and `fdatasync`, for all code in
//! it: ours, libraries and the engine's C. Under a folder that is recorded ([`Recording::begin`]) each flush notes what
//! it makes sure: the bytes that a file had when the flush began, or the names that a folder had, each by itself. Names
//! of files are sure only once their folder was flushed. Of all else that was written, any sectors and any names may be
//! found after a failure.
//!
//! A [`Moment`] is the disk as it was when the power failed; [`Moment::disk`] makes one of those that may be found then.
//! A recording may overlook flushes of one sort: a test that passes nevertheless would not notice if the program forgot them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smallest part of a disk that is written whole, in bytes.
const SECTOR_BYTES: usize = 512;

/// Takes the place of the system's flushes in a test binary. To be said once, in its root.
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

/// A small generator of numbers that look random (xorshift).
pub struct Dice(u64);

impl Dice {
    /// The series of a seed.
    pub fn new(seed: u64) -> Self {
        // Seeds that are near each other begin far from each other.
        Self((seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`, 0 when there is none.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.roll() >> 11).unwrap_or(0) % n.max(1)
    }
}

/// A number that a variable of the environment says.
///
/// # Panics
/// It is set and is no number.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |it| it.parse().expect(variable))
}

/// Bytes of a file as they may be found: those that are kept, and of the others the sectors that the dice choose.
pub fn found(kept: &[u8], written: &[u8], dice: &mut Dice) -> Vec<u8> {
    let (short, long) = (kept.len().min(written.len()), kept.len().max(written.len()));
    let mut bytes = kept.to_vec();
    // A file that was cut off or grew ends anywhere between.
    bytes.resize(short + dice.below(long - short + 1), 0);
    // Of ten sectors so many are those that were written: mostly none, mostly all, or some.
    let n_of_ten = dice.below(11);
    for at in (0..bytes.len().min(written.len())).step_by(SECTOR_BYTES) {
        if dice.below(10) < n_of_ten {
            let end = (at + SECTOR_BYTES).min(bytes.len()).min(written.len());
            bytes[at..end].copy_from_slice(&written[at..end]);
        }
    }
    bytes
}

/// A flush that the program asks for.
#[derive(Debug, Clone)]
pub struct Flush {
    /// Its number, from 1.
    pub number: u64,
    /// What is flushed.
    pub path: PathBuf,
    /// Whether that is a folder, of which the names are flushed.
    pub is_folder: bool,
    /// Whether it is over; else it begins.
    pub is_done: bool,
}

/// Files and folders, by their numbers.
#[derive(Debug, Clone, Default)]
struct Tree {
    bytes: HashMap<u64, Arc<Vec<u8>>>,
    names: HashMap<u64, BTreeMap<PathBuf, u64>>,
}

impl Tree {
    /// All that is under a folder now.
    fn read(folder: &Path, tree: &mut Self, seen: &mut dyn FnMut(u64, File)) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Files come and go meanwhile.
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

/// A folder that went away while it was read is none.
fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The disk when the power failed: what is on it for sure, and what was written.
#[derive(Debug, Clone)]
pub struct Moment {
    root: u64,
    kept: Tree,
    written: Tree,
}

impl Moment {
    /// Makes a disk that may be found then, in a new folder.
    pub fn disk(&self, to: &Path, dice: &mut Dice) -> io::Result<()> {
        // All that has one number is one file, under whatever names.
        self.folder(self.root, to, dice, &mut HashMap::new())
    }

    /// Makes the disk as a process leaves it that is killed then, in a new folder: with all that was written.
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
        // Names are lost one by one as well, and mostly together.
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

/// What is known of the disk under one folder.
struct Disk {
    folder: PathBuf,
    root: u64,
    kept: Tree,
    /// Files that were seen are held open, so that no other gets their number.
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

    /// The power fails now; the program does not notice.
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

/// A folder whose disk is recorded, until this goes out of scope.
pub struct Recording(Arc<Mutex<Disk>>);

impl Recording {
    /// Records a folder. What lies in it is on the disk.
    ///
    /// `overlooks` says which flushes count for nothing. `fails_at` is asked before and after each flush whether the power
    /// fails then; the program goes on, and may fail again. No flush ends while it is asked: what it sees acknowledged
    /// rests on flushes that are recorded.
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

    /// Lets the power fail now, and tells what `looks` sees then: what is acknowledged by then must be found.
    pub fn fail<T>(&self, looks: impl FnOnce() -> T) -> io::Result<(T, Moment)> {
        let mut disk = self.disk();
        let seen = looks();
        disk.fail()?;
        let moment = disk.moments.pop().ok_or_else(|| io::Error::other("no moment"))?;
        Ok((seen, moment))
    }

    /// How many flushes there were.
    pub fn n_flushes(&self) -> u64 {
        self.disk().n_flushes
    }

    /// The moments at which the power failed since this was last asked.
    pub fn moments(&self) -> Vec<Moment> {
        std::mem::take(&mut self.disk().moments)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        disks().retain(|it| !Arc::ptr_eq(it, &self.0));
    }
}

/// Notes a flush, by the number of the open file; what a flush that was done gives to its caller. Outside of folders that
/// are recorded nothing is flushed: no test needs to outlive a real failure.
///
/// # Panics
/// What is flushed cannot be read.
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
