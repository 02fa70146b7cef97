//! Writes sections as separate files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::spool::Records;
use super::workspace::Workspace;
use crate::bits::BitWriter;
use crate::container::Section;
use crate::elias_fano::EliasFanoWriter;

const BUFFER_BYTES: usize = 1 << 18;

/// Returns the path of a section.
pub(crate) fn section_path(work: &Workspace, section: Section) -> PathBuf {
    work.path(&format!("section-{}", section.name()))
}

/// Creates a file for a section.
pub(crate) fn create(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?))
}

/// Flushes and closes.
pub(crate) fn close(file: BufWriter<File>) -> io::Result<()> {
    file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(())
}

/// A rising sequence whose length is not known yet: kept as words in a file until it is.
pub(crate) struct Sequence {
    path: PathBuf,
    file: BufWriter<File>,
    n: u64,
    last: u64,
}

impl Sequence {
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        Ok(Self { file: create(&path)?, path, n: 0, last: 0 })
    }

    pub(crate) fn push(&mut self, value: u64) -> io::Result<()> {
        self.n += 1;
        self.last = value;
        self.file.write_all(&value.to_le_bytes())
    }

    /// Writes the sequence as Elias-Fano section.
    pub(crate) fn finish(self, section: &Path) -> io::Result<()> {
        close(self.file)?;
        elias_fano_of(&self.path, self.n, self.last, section)
    }
}

/// Turns a file of `n` rising words up to `max` into an Elias-Fano section, and removes it.
pub(crate) fn elias_fano_of(words: &Path, n: u64, max: u64, section: &Path) -> io::Result<()> {
    let mut writer = EliasFanoWriter::new(create(section)?, n, max)?;
    let mut records = Records::<8>::open(words)?;
    while let Some(word) = records.next()? {
        writer.push(u64::from_le_bytes(word))?;
    }
    close(writer.finish()?)?;
    std::fs::remove_file(words)
}

/// Numbers of one width, to be read by [`crate::bits::PackedInts`].
pub(crate) struct PackedWriter {
    bits: BitWriter<BufWriter<File>>,
    width: u32,
}

impl PackedWriter {
    pub(crate) fn create(path: &Path, width: u32) -> io::Result<Self> {
        Ok(Self { bits: BitWriter::new(create(path)?), width })
    }

    pub(crate) fn push(&mut self, value: u64) -> io::Result<()> {
        self.bits.write(value, self.width)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        close(self.bits.finish()?)
    }
}

/// Sections in the order of the file, with where they are.
pub(crate) type Sections = Vec<(Section, PathBuf)>;
