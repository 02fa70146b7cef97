//! Binary input: numbers in either byte order, texts of fixed length, with the current offset for errors.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use crate::{Result, TabularError};

/// The order of bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Highest first.
    Big,
    /// Lowest first.
    Little,
}

/// A file being read.
pub(crate) struct Input<R> {
    source: BufReader<R>,
    offset: u64,
    pub(crate) order: Order,
}

macro_rules! numbers {
    ($($name:ident: $ty:ty),*) => {$(
        pub(crate) fn $name(&mut self, what: &'static str) -> Result<$ty> {
            let bytes = self.array(what)?;
            Ok(match self.order {
                Order::Big => <$ty>::from_be_bytes(bytes),
                Order::Little => <$ty>::from_le_bytes(bytes),
            })
        }
    )*};
}

impl<R: Read> Input<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(256 << 10, source), offset: 0, order: Order::Little }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    numbers!(u8: u8, u16: u16, u32: u32, u64: u64, i32: i32, f64: f64);

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<()> {
        match self.source.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.cut_off(what)),
            Err(error) => Err(error.into()),
        }
    }

    /// Fills the buffer; returns false if nothing was left, an error if only a part was.
    pub(crate) fn fill_or_end(&mut self, bytes: &mut [u8], what: &'static str) -> Result<bool> {
        let mut n = 0;
        while n < bytes.len() {
            match self.source.read(&mut bytes[n..]) {
                Ok(0) if n == 0 => return Ok(false),
                Ok(0) => return Err(self.cut_off(what)),
                Ok(more) => n += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += n as u64;
        Ok(true)
    }

    /// Reads `n` bytes into a buffer that grows as they arrive, so that a wrong length costs nothing.
    pub(crate) fn bytes(&mut self, n: u64, what: &'static str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let got = (&mut self.source).take(n).read_to_end(&mut bytes)? as u64;
        self.offset += got;
        if got < n { Err(self.cut_off(what)) } else { Ok(bytes) }
    }

    pub(crate) fn skip(&mut self, n: u64, what: &'static str) -> Result<()> {
        let got = io::copy(&mut (&mut self.source).take(n), &mut io::sink())?;
        self.offset += got;
        if got < n { Err(self.cut_off(what)) } else { Ok(()) }
    }

    /// Returns the next `n` bytes as a source of their own.
    pub(crate) fn rest(self, n: u64) -> io::Take<BufReader<R>> {
        self.source.take(n)
    }

    pub(crate) fn expect(&mut self, tag: &'static str) -> Result<()> {
        let mut bytes = vec![0; tag.len()];
        self.fill(&mut bytes, tag)?;
        if bytes == tag.as_bytes() {
            return Ok(());
        }
        Err(self.damaged(format!("expected {tag:?}, found {:?}", String::from_utf8_lossy(&bytes))))
    }

    pub(crate) fn cut_off(&self, what: &'static str) -> TabularError {
        TabularError::CutOff { offset: self.offset, what }
    }

    pub(crate) fn damaged(&self, what: String) -> TabularError {
        TabularError::Damaged { offset: self.offset, what }
    }
}

impl<R: Read + Seek> Input<R> {
    pub(crate) fn seek(&mut self, offset: u64) -> Result<()> {
        self.offset = self.source.seek(SeekFrom::Start(offset))?;
        Ok(())
    }
}

/// Returns the part of a text of fixed length before its first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|it| *it == 0).next().unwrap_or_default()
}
