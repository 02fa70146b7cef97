//! The bytes of a file, read by ranges.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{ArrayError, Limits, Result};

/// Reads the requested number of bytes at an offset; the text of an error says why it cannot.
type Read = dyn Fn(u64, usize) -> Result<Vec<u8>, String> + Send + Sync;

/// A file whose bytes are read in ranges.
#[derive(Clone)]
pub struct Source {
    length: u64,
    read: Arc<Read>,
}

impl Source {
    /// Creates a file of `length` bytes. `read(offset, n)` returns exactly `n` bytes, or says why it cannot; it is
    /// never called for a range beyond the end.
    pub fn new(
        length: u64,
        read: impl Fn(u64, usize) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { length, read: Arc::new(read) }
    }

    /// Creates a source from bytes in memory.
    pub fn of(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self::new(length, move |offset, n| {
            let from = usize::try_from(offset).map_err(|error| error.to_string())?;
            bytes.get(from..from.saturating_add(n)).map(<[u8]>::to_vec).ok_or("beyond the end".to_owned())
        })
    }

    /// Returns the size of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the same file, of which no more is read than `limits` allow.
    pub(crate) fn metered(&self, limits: &Limits) -> Metered {
        Metered {
            source: self.clone(),
            bytes_left: Arc::new(AtomicU64::new(limits.read_bytes)),
            reads_left: Arc::new(AtomicU64::new(limits.reads)),
            limits: limits.clone(),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Source of {} bytes", self.length)
    }
}

/// A source that is read within limits.
#[derive(Clone)]
pub(crate) struct Metered {
    source: Source,
    bytes_left: Arc<AtomicU64>,
    reads_left: Arc<AtomicU64>,
    limits: Limits,
}

impl Metered {
    pub(crate) fn length(&self) -> u64 {
        self.source.length
    }

    /// Errors: the limits are exhausted.
    pub(crate) fn count_read(&self) -> Result<()> {
        match spend(&self.reads_left, 1) {
            true => Ok(()),
            false => Err(ArrayError::TooLarge { what: "parts of the file", most: self.limits.reads }),
        }
    }

    /// Errors: the range is beyond the end; the limits are exhausted; the bytes cannot be read.
    pub(crate) fn read(&self, offset: u64, n: usize) -> Result<Vec<u8>> {
        let end = offset.checked_add(n as u64).filter(|end| *end <= self.source.length);
        if end.is_none() {
            let what = format!("the file ends at {}; {n} bytes were announced here", self.source.length);
            return Err(ArrayError::Damaged { offset, what });
        }
        self.count_read()?;
        if !spend(&self.bytes_left, n as u64) {
            return Err(ArrayError::TooLarge { what: "bytes of headers", most: self.limits.read_bytes });
        }
        let bytes = (self.source.read)(offset, n).map_err(ArrayError::Io)?;
        match bytes.len() == n {
            true => Ok(bytes),
            false => Err(ArrayError::Io(format!("{} bytes came where {n} were asked for", bytes.len()))),
        }
    }
}

fn spend(left: &AtomicU64, by: u64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(by)).is_ok()
}
