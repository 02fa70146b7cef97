//! Bytes of files: out of the store of files and into it, compared with what is said of them.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use pinakes_blobs::{Blob, BlobError, Blobs};
use serde_json::Value;

use super::shape::{self, Leaf, Shape};
use super::{FILES, MovingError};
use crate::files::checksum::{Algorithm, Checksum};

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 18;
/// Digits of a SHA-256.
const DIGITS: usize = 64;

/// Below the folder of files: `ab/abcd…`.
pub(super) fn name(blob: &Blob) -> String {
    format!("{}/{}", &blob.sha256[..2], blob.sha256)
}

/// Writes a file that is there whole or not at all, also after a power failure.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    path.parent().map_or(Ok(()), |it| File::open(it)?.sync_all())
}

/// Copies a file into the folder, unless it is there; the reason when its bytes are not in the store, or damaged.
///
/// Errors: the folder.
pub(super) fn copy_out(
    blobs: &Blobs,
    tenant: &str,
    blob: &Blob,
    folder: &Path,
    note: &mut dyn FnMut(u64),
) -> Result<Result<(), String>, MovingError> {
    let path = folder.join(FILES).join(name(blob));
    if fs::metadata(&path).is_ok_and(|it| it.len() == blob.length) {
        return Ok(Ok(()));
    }
    let place = path.parent().unwrap_or(folder);
    fs::create_dir_all(place).map_err(MovingError::file(place))?;
    let mut source = match blobs.reader(tenant, blob, None) {
        Ok(source) => source,
        Err(error) => return Ok(Err(format!("the bytes cannot be read: {error}"))),
    };
    let part = path.with_extension("part");
    let mut file = File::create(&part).map_err(MovingError::file(&part))?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let n = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) => {
                drop(file);
                fs::remove_file(&part).map_err(MovingError::file(&part))?;
                return Ok(Err(format!("the bytes cannot be read: {error}")));
            }
        };
        file.write_all(&buffer[..n]).map_err(MovingError::file(&part))?;
        note(n as u64);
    }
    file.sync_all().map_err(MovingError::file(&part))?;
    fs::rename(&part, &path).map_err(MovingError::file(&path))?;
    Ok(Ok(()))
}

/// Files on their way in, of which nothing stays unless a record names them.
pub(super) struct Taking<'t> {
    pub(super) blobs: &'t Blobs,
    pub(super) tenant: &'t str,
    pub(super) folder: &'t Path,
    /// Whether the export has bytes at all.
    pub(super) has_files: bool,
    /// What came so far.
    pub(super) taken: Vec<Blob>,
}

impl Taking<'_> {
    /// Takes the bytes in that a record names, and names them as this store does. Of an export without files, the names go.
    ///
    /// Errors: the reason why bytes are not taken.
    pub(super) fn take(
        &mut self,
        value: &mut Value,
        shape: Shape,
        expected: Option<(Algorithm, &str)>,
        note: &mut dyn FnMut(u64),
    ) -> Result<(), String> {
        shape::each(value, shape, &mut |leaf, it| {
            if leaf != Leaf::Blob {
                return Ok(());
            }
            *it = match self.has_files {
                true => self.one(it, expected, note)?.to_string().into(),
                false => Value::Null,
            };
            Ok(())
        })
    }

    fn one(
        &mut self,
        named: &Value,
        expected: Option<(Algorithm, &str)>,
        note: &mut dyn FnMut(u64),
    ) -> Result<Blob, String> {
        let text = named.as_str().unwrap_or_default();
        let parts = text.split_once('-').and_then(|(length, sha256)| Some((length.parse().ok()?, sha256)));
        let is_sum = |it: &str| it.len() == DIGITS && it.bytes().all(|it| it.is_ascii_hexdigit());
        let Some((length, sha256)) = parts.filter(|it| is_sum(it.1)) else {
            return Err(format!("{named:.80} names no bytes; expected LENGTH-SHA256"));
        };
        let shown = format!("{FILES}/{}/{sha256}", &sha256[..2]);
        let path = self.folder.join(&shown);
        let file = File::open(&path).map_err(|error| format!("{shown}: {error}; export again"))?;
        let reader = Compared {
            file,
            left: length,
            sha256: Some((Checksum::new(Algorithm::Sha256), sha256)),
            deposited: expected.map(|(algorithm, sum)| (Checksum::new(algorithm), sum)),
            note,
        };
        match self.blobs.put_blocking(self.tenant, reader) {
            Ok(blob) => {
                self.taken.push(blob.clone());
                Ok(blob)
            }
            Err(BlobError::Source(reason)) => Err(format!("{shown}: {reason}; export again")),
            Err(error) => Err(format!("{shown}: {error}")),
        }
    }

    /// Gives up what came: no record names it.
    pub(super) fn give_up(&mut self) {
        for blob in self.taken.drain(..) {
            if let Err(error) = self.blobs.block_on(self.blobs.delete(self.tenant, &blob.key)) {
                tracing::warn!(%error, "a file that no record names stays until it is swept");
            }
        }
    }
}

/// A file that ends in an error unless it is what it should be.
struct Compared<'f> {
    file: File,
    /// Bytes still to come.
    left: u64,
    /// Taken when they were compared.
    sha256: Option<(Checksum, &'f str)>,
    /// The checksum that its record states.
    deposited: Option<(Checksum, &'f str)>,
    note: &'f mut dyn FnMut(u64),
}

impl Read for Compared<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        let other = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
        if n == 0 {
            if self.left != 0 {
                return Err(other(format!("{} bytes less than its record says", self.left)));
            }
            for (sum, expected) in self.sha256.take().into_iter().chain(self.deposited.take()) {
                let found = sum.finish();
                if !found.eq_ignore_ascii_case(expected) {
                    return Err(other(format!("its checksum is {found}; its record says {expected}")));
                }
            }
            return Ok(0);
        }
        let left = self.left.checked_sub(n as u64);
        self.left = left.ok_or_else(|| other("more bytes than its record says".to_owned()))?;
        for sum in self.sha256.iter_mut().chain(&mut self.deposited) {
            sum.0.update(&buffer[..n]);
        }
        (self.note)(n as u64);
        Ok(n)
    }
}
