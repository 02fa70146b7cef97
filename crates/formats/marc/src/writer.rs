//! Writes many records to a stream in one of the four formats.

use std::io::{self, Write};

use crate::format::Format;
use crate::iso2709::{self, OutputEncoding, WriteError};
use crate::record::Record;
use crate::{json, mnemonic, xml};

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The format cannot hold it; nothing of it was written, and the next record can be written.
    #[error(transparent)]
    Record(#[from] WriteError),
    /// The output failed.
    #[error("the output cannot be written")]
    Io(#[from] io::Error),
}

/// Writes records one after another. JSON is one object a line; MARCXML is one `collection`. Call
/// [`Writer::finish`] at the end, or the collection is not closed.
///
/// ```
/// use pinakes_marc::{Format, OutputEncoding, Record, Writer};
/// let mut writer = Writer::new(Vec::new(), Format::Json, OutputEncoding::Utf8);
/// writer.write(&Record::default())?;
/// assert!(writer.finish()?.ends_with(b"}\n"));
/// # Ok::<(), pinakes_marc::OutputError>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    format: Format,
    encoding: OutputEncoding,
    /// The current record; kept between records to save allocations.
    bytes: Vec<u8>,
    text: String,
    has_started: bool,
    n_replaced: u64,
}

impl<W: Write> Writer<W> {
    /// Creates a writer. The encoding matters only for ISO 2709. Pass a buffered output.
    pub const fn new(output: W, format: Format, encoding: OutputEncoding) -> Self {
        Self {
            output,
            format,
            encoding,
            bytes: Vec::new(),
            text: String::new(),
            has_started: false,
            n_replaced: 0,
        }
    }

    /// Writes a record.
    ///
    /// # Errors
    ///
    /// The record does not fit the format, or the output fails.
    pub fn write(&mut self, record: &Record) -> Result<(), OutputError> {
        self.bytes.clear();
        self.text.clear();
        match self.format {
            Format::Iso2709 => iso2709::write(record, self.encoding, &mut self.bytes)?,
            Format::Xml => self.n_replaced += xml::write(record, &mut self.text) as u64,
            Format::Json => {
                json::write(record, &mut self.bytes);
                self.bytes.push(b'\n');
            }
            Format::Mnemonic => mnemonic::write(record, &mut self.text),
        }
        self.start()?;
        self.output.write_all(&self.bytes)?;
        self.output.write_all(self.text.as_bytes())?;
        Ok(())
    }

    /// Returns the number of characters that MARCXML could not hold and that were replaced by U+FFFD.
    pub const fn n_replaced(&self) -> u64 {
        self.n_replaced
    }

    fn start(&mut self) -> io::Result<()> {
        if self.format == Format::Xml && !self.has_started {
            self.output.write_all(xml::COLLECTION_START.as_bytes())?;
        }
        self.has_started = true;
        Ok(())
    }

    /// Writes the end of the file after the last record, flushes, and returns the output.
    ///
    /// # Errors
    ///
    /// The output fails.
    pub fn finish(mut self) -> Result<W, OutputError> {
        self.start()?;
        if self.format == Format::Xml {
            self.output.write_all(xml::COLLECTION_END.as_bytes())?;
        }
        self.output.flush()?;
        Ok(self.output)
    }
}
