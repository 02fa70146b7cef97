//! Reads records from a stream in bounded memory.
//!
//! The buffer holds the current record and the bytes read ahead of it; it grows to the longest record and
//! never beyond the limit. A record longer than the limit is reported, its first bytes are returned, and
//! reading continues after the next record boundary.

use std::io::{self, Read};

use crate::cut::{Cut, Position, RawRecord, Rest};
use crate::format::{Format, SniffError, sniff};
use crate::problem::{Fault, Problem};

/// Bytes asked of the input at once.
const CHUNK_LEN_BYTES: usize = 256 * 1024;

/// Number of bytes that suffice to detect the format of an input.
const SNIFF_LEN_BYTES: usize = 1024;

/// Bytes kept when looking for a boundary, because it may span two chunks.
const BORDER_LEN_BYTES: usize = 8;

/// Longest record that is read, unless the caller sets another limit. The standard ends at 99,999 bytes, but
/// systems in production write more; 16 MiB is ten times the longest one known to us.
pub const RECORD_LEN_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Why an input could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its format could not be detected.
    #[error(transparent)]
    Sniff(#[from] SniffError),
    /// It could not be read.
    #[error("the input cannot be read")]
    Io(#[from] io::Error),
}

/// Cuts a stream into records.
///
/// ```
/// use pinakes_marc::{Format, Reader};
/// let input = b"=LDR  00000nam a2200000   4500\n=001  1\n";
/// let mut reader = Reader::new(&input[..], Format::Mnemonic);
/// while let Some(raw) = reader.next_record()? {
///     assert_eq!((raw.number, raw.offset, raw.bytes.len()), (1, 0, 39));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    format: Format,
    /// Buffer for bytes read; only `start..end` is valid.
    buffer: Vec<u8>,
    /// Start of the bytes that were not returned yet.
    start: usize,
    /// End of the bytes that were read.
    end: usize,
    rest: Rest,
    position: Position,
    record_len_max_bytes: usize,
    /// The last record was longer than the limit: look for the next boundary first.
    lost: bool,
}

impl<R: Read> Reader<R> {
    /// Reads records of a known format.
    pub fn new(input: R, format: Format) -> Self {
        Self {
            input,
            format,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            rest: Rest::Unknown,
            position: Position::default(),
            record_len_max_bytes: RECORD_LEN_MAX_BYTES,
            lost: false,
        }
    }

    /// Reads records of a format that is detected by the first bytes.
    ///
    /// # Errors
    ///
    /// The input cannot be read or is in none of the four formats.
    pub fn open(input: R) -> Result<Self, OpenError> {
        let mut reader = Self::new(input, Format::Iso2709);
        while reader.n_pending() < SNIFF_LEN_BYTES && reader.rest == Rest::Unknown {
            reader.fill()?;
        }
        reader.format = sniff(&reader.buffer[..reader.end])?;
        Ok(reader)
    }

    /// Sets the limit for the length of a record, in bytes.
    #[must_use]
    pub const fn with_record_len_max(mut self, len_bytes: usize) -> Self {
        self.record_len_max_bytes = len_bytes;
        self
    }

    /// Returns the format that is read.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns how far reading has come, in bytes from the start of the input; for progress bars.
    pub const fn offset(&self) -> u64 {
        self.position.offset
    }

    /// Returns the report of stray bytes after the last record. Call it when `next_record` has returned
    /// `None`.
    pub fn stray_end(&mut self) -> Option<Problem> {
        self.position.take_strays()
    }

    /// Returns the next record, good or bad; `None` at the end of the input.
    ///
    /// # Errors
    ///
    /// Only if the input itself cannot be read. Faults of a record are in its problems.
    pub fn next_record(&mut self) -> io::Result<Option<RawRecord<'_>>> {
        loop {
            if self.lost && !self.find_border()? {
                return Ok(None);
            }
            match self.format.cut(&self.buffer[self.start..self.end], self.rest) {
                Cut::Piece { skip, len, fault } => return Ok(Some(self.take(skip, len, fault))),
                Cut::More { skip } => {
                    self.pass_over(skip);
                    if self.rest == Rest::None {
                        self.pass_over(self.n_pending());
                        return Ok(None);
                    }
                    if self.record_len_max_bytes <= self.n_pending() {
                        return Ok(Some(self.give_up()));
                    }
                    self.fill()?;
                }
            }
        }
    }

    /// Returns a record and skips what precedes it.
    fn take(&mut self, skip: usize, len: usize, fault: Option<Fault>) -> RawRecord<'_> {
        self.pass_over(skip);
        let bytes = &self.buffer[self.start..self.start + len];
        self.start += len;
        self.position.record(bytes, fault)
    }

    /// Returns the beginning of a record that is too long.
    fn give_up(&mut self) -> RawRecord<'_> {
        self.lost = true;
        let limit = self.record_len_max_bytes;
        self.take(0, limit, Some(Fault::TooLong { limit }))
    }

    fn pass_over(&mut self, len: usize) {
        self.position.skip(self.format, &self.buffer[self.start..self.start + len]);
        self.start += len;
    }

    /// Discards bytes to the next place where a record may begin; `false` if the input ended before.
    fn find_border(&mut self) -> io::Result<bool> {
        loop {
            let pending = &self.buffer[self.start..self.end];
            if let Some(len) = border(self.format, pending) {
                self.position.discard(len);
                self.start += len;
                self.lost = false;
                return Ok(true);
            }
            let len = pending.len().saturating_sub(BORDER_LEN_BYTES);
            self.position.discard(len);
            self.start += len;
            if self.rest == Rest::None {
                self.position.discard(self.n_pending());
                self.start = self.end;
                return Ok(false);
            }
            self.fill()?;
        }
    }

    /// Returns the number of bytes that were read and not returned.
    const fn n_pending(&self) -> usize {
        self.end - self.start
    }

    /// Reads more, or notes the end of the input: at least as much again as is pending, which keeps the repeated
    /// cutting of a long record linear.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let wanted = self.end.max(1);
        let len = (self.end + wanted.max(CHUNK_LEN_BYTES)).max(self.buffer.len());
        self.buffer.resize(len, 0);
        let enough = self.end + wanted;
        while self.end < enough {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.rest = Rest::None;
                    break;
                }
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Length of the bytes up to a place where a record of this format may begin.
fn border(format: Format, data: &[u8]) -> Option<usize> {
    match format {
        Format::Iso2709 => memchr::memchr(0x1D, data).map(|at| at + 1),
        // The cutting function looks for the next start tag by itself.
        Format::Xml => Some(0),
        Format::Json => memchr::memchr(b'\n', data).map(|at| at + 1),
        Format::Mnemonic => memchr::memmem::find(data, b"\n=LDR").map(|at| at + 1),
    }
}
