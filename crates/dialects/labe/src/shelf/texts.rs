//! Texts one behind the other in a nameless file, mapped when all are written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use memmap2::Mmap;

/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// A file in the making. It has no name: when the last one who has it open is gone, so is the file.
pub(super) struct Writer {
    out: BufWriter<File>,
    len_bytes: u64,
}

impl Writer {
    /// In a folder.
    pub(super) fn create_in(folder: &Path) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(folder)?);
        // An empty file cannot be mapped.
        out.write_all(b"\n")?;
        Ok(Self { out, len_bytes: 1 })
    }

    /// Adds a text; where it begins.
    pub(super) fn push(&mut self, text: &[u8]) -> io::Result<u64> {
        self.out.write_all(text)?;
        let start = self.len_bytes;
        self.len_bytes += text.len() as u64;
        Ok(start)
    }

    /// The texts, to be read.
    pub(super) fn finish(self) -> io::Result<Texts> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Texts(map(&file)?))
    }
}

/// Texts, mapped.
pub(super) struct Texts(Mmap);

impl Texts {
    /// The text that begins at `start`; nothing if it is not there.
    pub(super) fn at(&self, start: u64, len: u32) -> &[u8] {
        let range =
            usize::try_from(start).ok().and_then(|start| Some(start..start.checked_add(len as usize)?));
        range.and_then(|range| self.0.get(range)).unwrap_or_default()
    }
}

#[allow(
    unsafe_code,
    reason = "the file has no name and its writer is gone: nobody can change it while it is mapped"
)]
fn map(file: &File) -> io::Result<Mmap> {
    unsafe { Mmap::map(file) }
}
