//! Concatenated texts in an unnamed file, which is memory-mapped when all are written.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use memmap2::Mmap;

/// Size of the write buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that is being written. It has no name: it is deleted when the last process that has it open is
/// gone.
pub(super) struct Writer {
    out: BufWriter<File>,
    len_bytes: u64,
}

impl Writer {
    /// Creates a file in a folder.
    pub(super) fn create_in(folder: &Path) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(folder)?);
        // An empty file cannot be mapped.
        out.write_all(b"\n")?;
        Ok(Self { out, len_bytes: 1 })
    }

    /// Appends a text and returns its position.
    pub(super) fn push(&mut self, text: &[u8]) -> io::Result<u64> {
        self.out.write_all(text)?;
        let start = self.len_bytes;
        self.len_bytes += text.len() as u64;
        Ok(start)
    }

    /// Returns the texts for reading.
    pub(super) fn finish(self) -> io::Result<Texts> {
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Texts(map(&file)?))
    }
}

/// Memory-mapped texts.
pub(super) struct Texts(Mmap);

impl Texts {
    /// Returns the text at `start`; empty if it is not there.
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
