//! Copies the bytes of files out of the blob store and into it, and compares them with their checksums.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use pinakes_blobs::{Blob, BlobError, Blobs};
use serde_json::Value;

use super::shape::{self, Leaf, Shape};
use super::{FILES, MovingError};
use crate::files::checksum::{Algorithm, Checksum};

/// Size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 18;
/// Length of a SHA-256 in hexadecimal digits.
const DIGITS: usize = 64;

/// Returns the path below the folder of files: `ab/abcd…`.
pub(super) fn name(blob: &Blob) -> String {
    format!("{}/{}", &blob.sha256[..2], blob.sha256)
}

/// Writes a file that exists entirely or not at all, even after a power failure.
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    path.parent().map_or(Ok(()), |it| File::open(it)?.sync_all())
}

/// Copies a blob into the folder unless it is there. Returns a reason if its bytes are missing from the store, or
/// damaged.
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

/// Files being imported, which are swept unless a record refers to them.
pub(super) struct Taking<'t> {
    pub(super) blobs: &'t Blobs,
    pub(super) tenant: &'t str,
    pub(super) folder: &'t Path,
    /// Whether the export contains bytes.
    pub(super) has_files: bool,
    /// Blobs stored so far.
    pub(super) taken: Vec<Blob>,
}

impl Taking<'_> {
    /// Stores the bytes of a record's blobs, and replaces their names by those in this store. For an export without
    /// files, removes the names.
    ///
    /// Errors: the reason why the bytes cannot be imported.
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

    /// Discards the stored blobs, to which no record refers.
    pub(super) fn give_up(&mut self) {
        for blob in self.taken.drain(..) {
            if let Err(error) = self.blobs.block_on(self.blobs.delete(self.tenant, &blob.key)) {
                tracing::warn!(%error, "a file that no record names stays until it is swept");
            }
        }
    }
}

/// A reader that ends in an error unless length and checksums of the file are as expected.
struct Compared<'f> {
    file: File,
    /// Bytes still expected.
    left: u64,
    /// `None` once it was compared.
    sha256: Option<(Checksum, &'f str)>,
    /// The checksum in its record.
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
