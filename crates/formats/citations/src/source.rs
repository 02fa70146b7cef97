//! Opens a dump, whatever its compression, as a sequence of plain byte streams.
//!
//! Compression is detected by the first bytes, never by the file's name: gzip (also of several members), zstd
//! (also of several frames), zip with any number of files, and zips or gzips within a zip, as in the
//! OpenCitations dumps. A zip within a zip is extracted to a temporary file, as reading a zip needs seeking;
//! memory stays bounded.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Read buffer of a file, in bytes.
const BUFFER_BYTES: usize = 1 << 18;
/// Maximum nesting of archives: the dumps need two.
const DEPTH_MAX: usize = 4;
/// Largest zstd window accepted, as a power of two: 128 MB, as `zstd --long` produces.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZIP_MAGIC: [u8; 4] = *b"PK\x03\x04";
const EMPTY_ZIP_MAGIC: [u8; 4] = *b"PK\x05\x06";

/// Why a dump could not be read. Unlike a bad row this stops the reading: an incomplete dump must not be mistaken
/// for a complete one.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file could not be opened or read.
    #[error("{file}: {error}; is the path right, the disk sound, the download complete?")]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The zip's directory or a member cannot be read.
    #[error("{file}: not a readable zip ({error}); is the download complete?")]
    Zip {
        /// The file.
        file: String,
        /// The reader's error.
        error: zip::result::ZipError,
    },
    /// Archives within archives within archives.
    #[error("{file}: archives nested more than {DEPTH_MAX} deep; unpack it first")]
    TooDeep {
        /// The file.
        file: String,
    },
}

/// One plain stream of a dump.
pub struct Member<'a> {
    /// The file's path, and after `!` the names within archives.
    pub name: String,
    /// The decompressed bytes.
    pub bytes: &'a mut dyn Read,
}

/// Calls `visit` with every plain stream of the file at `path`, in the order of the archive's directory.
///
/// Directories, empty members and macOS's additions to zips (`__MACOSX/`) are left out. Zips within a zip are
/// extracted to `scratch` one at a time. `n_read` counts the bytes read of the file itself, compressed.
///
/// # Errors
/// [`SourceError`] as `E`, and whatever `visit` returns.
pub fn visit_members<E: From<SourceError>>(
    path: &Path,
    scratch: &Path,
    n_read: &AtomicU64,
    visit: &mut dyn FnMut(Member<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| SourceError::Read { file: name.clone(), error })?;
    Walk { scratch, visit }.file(CountedFile { file, n_read }, name, 0)
}

/// A file that counts the bytes read from it.
struct CountedFile<'a> {
    file: File,
    n_read: &'a AtomicU64,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.file.read(buffer)?;
        self.n_read.fetch_add(n_read as u64, Ordering::Relaxed);
        Ok(n_read)
    }
}

impl Seek for CountedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

struct Walk<'a, E> {
    scratch: &'a Path,
    visit: &'a mut dyn FnMut(Member<'_>) -> Result<(), E>,
}

impl<E: From<SourceError>> Walk<'_, E> {
    /// Reads a seekable file: a zip, or something else to stream.
    fn file<R: Read + Seek>(&mut self, mut file: R, name: String, depth: usize) -> Result<(), E> {
        let failed = |error| SourceError::Read { file: name.clone(), error };
        let mut magic = [0; 4];
        let n_read = read_up_to(&mut file, &mut magic).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        if n_read == 4 && (magic == ZIP_MAGIC || magic == EMPTY_ZIP_MAGIC) {
            return self.zip(BufReader::with_capacity(BUFFER_BYTES, file), &name, depth + 1);
        }
        self.stream(&mut BufReader::with_capacity(BUFFER_BYTES, file), name, depth)
    }

    fn zip<R: Read + Seek>(&mut self, file: BufReader<R>, name: &str, depth: usize) -> Result<(), E> {
        if DEPTH_MAX < depth {
            return Err(SourceError::TooDeep { file: name.to_owned() }.into());
        }
        let failed = |error| SourceError::Zip { file: name.to_owned(), error };
        let mut archive = zip::ZipArchive::new(file).map_err(failed)?;
        for index in 0..archive.len() {
            let member = archive.by_index(index).map_err(failed)?;
            let own_name = member.name().map_err(failed)?.into_owned();
            if member.is_dir() || own_name.starts_with("__MACOSX/") {
                continue;
            }
            let member_name = format!("{name}!{own_name}");
            self.stream(&mut BufReader::with_capacity(BUFFER_BYTES, member), member_name, depth)?;
        }
        Ok(())
    }

    /// Reads a stream that is not seekable: checks its first bytes, decompresses, passes it on.
    fn stream(&mut self, bytes: &mut dyn BufRead, name: String, depth: usize) -> Result<(), E> {
        let failed = |error| SourceError::Read { file: name.clone(), error };
        let start = bytes.fill_buf().map_err(failed)?;
        if start.starts_with(&GZIP_MAGIC) {
            let mut unpacked = BufReader::new(flate2::bufread::MultiGzDecoder::new(bytes));
            return self.nested(&mut unpacked, name, depth + 1);
        }
        if start.starts_with(&ZSTD_MAGIC) {
            let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(failed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(failed)?;
            return self.nested(&mut BufReader::new(decoder), name, depth + 1);
        }
        if start.starts_with(&ZIP_MAGIC) {
            return self.nested(bytes, name, depth);
        }
        (self.visit)(Member { name, bytes })
    }

    /// Reads the inside of a member: a zip goes through a file, everything else is streamed.
    fn nested(&mut self, bytes: &mut dyn BufRead, name: String, depth: usize) -> Result<(), E> {
        if DEPTH_MAX < depth {
            return Err(SourceError::TooDeep { file: name }.into());
        }
        let failed = |error| SourceError::Read { file: name.clone(), error };
        if !bytes.fill_buf().map_err(failed)?.starts_with(&ZIP_MAGIC) {
            return self.stream(bytes, name, depth);
        }
        let unpacked = Scratch::fill(self.scratch, depth, bytes).map_err(failed)?;
        let file = File::open(&unpacked.path).map_err(failed)?;
        self.file(file, name, depth)
    }
}

/// A temporary file that is removed after use.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn fill(folder: &Path, depth: usize, bytes: &mut dyn BufRead) -> io::Result<Self> {
        let scratch = Self { path: folder.join(format!("unpacked-{depth}-{}.zip", std::process::id())) };
        io::copy(bytes, &mut File::create(&scratch.path)?)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A missing file is fine; anything else is cleaned up with its folder.
        if let Err(error) = std::fs::remove_file(&self.path) {
            debug_assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}

fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n_read = 0;
    while n_read < buffer.len() {
        match file.read(&mut buffer[n_read..])? {
            0 => break,
            n => n_read += n,
        }
    }
    Ok(n_read)
}
