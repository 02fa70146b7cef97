//! Bit streams, least significant bit first, and the codes of the graph file.
//!
//! The reader works on plain bytes of any alignment, so that it can read a memory-mapped file, and never
//! fails: beyond the end it reads zeros, and [`BitReader::is_past_end`] reports it.

use std::io::{self, Write};

/// Maximum number of bits that [`BitReader::read`] returns at once: a 64-bit load shifted by up to 7 bits.
pub(crate) const READ_BITS_MAX: u32 = 57;

/// Appends bits to a byte sink.
pub(crate) struct BitWriter<W: Write> {
    sink: W,
    pending: u64,
    n_pending: u32,
    n_bits: u64,
}

impl<W: Write> BitWriter<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self { sink, pending: 0, n_pending: 0, n_bits: 0 }
    }

    /// Returns the number of bits written so far.
    pub(crate) fn n_bits(&self) -> u64 {
        self.n_bits
    }

    /// Writes the `width` low bits of `value`, which has no others; at most 57.
    pub(crate) fn write(&mut self, value: u64, width: u32) -> io::Result<()> {
        debug_assert!(width <= READ_BITS_MAX && value >> width == 0, "{value} in {width} bits");
        self.pending |= value << self.n_pending;
        self.n_bits += u64::from(width);
        let n_free = 64 - self.n_pending;
        if width < n_free {
            self.n_pending += width;
            return Ok(());
        }
        self.sink.write_all(&self.pending.to_le_bytes())?;
        self.pending = if n_free == 64 { 0 } else { value >> n_free };
        self.n_pending = width - n_free;
        Ok(())
    }

    /// Writes `value` zeros and a one.
    pub(crate) fn write_unary(&mut self, value: u64) -> io::Result<()> {
        let mut n_zeros = value;
        while 32 < n_zeros {
            self.write(0, 32)?;
            n_zeros -= 32;
        }
        let n_zeros = u32::try_from(n_zeros).unwrap_or(0);
        self.write(1 << n_zeros, n_zeros + 1)
    }

    /// Writes `value`, below `u32::MAX`, in the given code.
    pub(crate) fn write_code(&mut self, value: u64, code: Code) -> io::Result<()> {
        let (low_width, high) = (code.low_width(), value >> code.low_width());
        match code {
            Code::Rice(_) => self.write_unary(high)?,
            Code::ExpGolomb(_) => {
                let width = (high + 1).ilog2();
                self.write_unary(u64::from(width))?;
                self.write((high + 1) ^ (1 << width), width)?;
            }
        }
        self.write(value & ((1 << low_width) - 1), low_width)
    }

    /// Pads to whole words and returns the sink.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if 0 < self.n_pending {
            self.sink.write_all(&self.pending.to_le_bytes())?;
        }
        Ok(self.sink)
    }
}

/// How a number is written: a prefix of variable length, and low bits as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The high part in unary: shortest for numbers around 2^width, such as gaps without locality.
    Rice(u32),
    /// The high part in the Elias gamma code: for gaps of all sizes, such as those of clustered neighbours.
    ExpGolomb(u32),
}

impl Code {
    /// Bits that name a code.
    pub(crate) const TAG_BITS: u32 = 6;

    pub(crate) fn low_width(self) -> u32 {
        match self {
            Self::Rice(width) | Self::ExpGolomb(width) => width,
        }
    }

    pub(crate) fn tag(self) -> u64 {
        match self {
            Self::Rice(width) => u64::from(width),
            Self::ExpGolomb(width) => u64::from(width) | 32,
        }
    }

    pub(crate) fn from_tag(tag: u64) -> Self {
        let width = (tag & 31) as u32;
        if tag & 32 == 0 { Self::Rice(width) } else { Self::ExpGolomb(width) }
    }

    /// Returns the number of bits that `value` takes.
    pub(crate) fn len(self, value: u64) -> u64 {
        let high = value >> self.low_width();
        let prefix = match self {
            Self::Rice(_) => high + 1,
            Self::ExpGolomb(_) => 2 * u64::from((high + 1).ilog2()) + 1,
        };
        prefix + u64::from(self.low_width())
    }
}

/// Reads bits of a byte slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl<'a> BitReader<'a> {
    /// Returns a reader that starts at bit `at`.
    pub(crate) fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn skip(&mut self, n_bits: u64) {
        self.at = self.at.saturating_add(n_bits);
    }

    /// Returns whether bits beyond the end were read.
    pub(crate) fn is_past_end(&self) -> bool {
        (self.bytes.len() as u64) * 8 < self.at
    }

    /// Returns at least 57 bits from here, zeros beyond the end.
    fn peek(&self) -> u64 {
        let start = usize::try_from(self.at >> 3).unwrap_or(usize::MAX);
        let word = match self.bytes.get(start..).and_then(<[u8]>::first_chunk::<8>) {
            Some(word) => u64::from_le_bytes(*word),
            None => self.last_word(start),
        };
        word >> (self.at & 7)
    }

    #[cold]
    fn last_word(&self, start: usize) -> u64 {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut word = [0; 8];
        word[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
        u64::from_le_bytes(word)
    }

    /// Reads `width` bits, at most 57.
    pub(crate) fn read(&mut self, width: u32) -> u64 {
        debug_assert!(width <= READ_BITS_MAX);
        let value = self.peek() & ((1 << width) - 1);
        self.at += u64::from(width);
        value
    }

    /// Counts zeros up to a one. Stops at the end of the bytes.
    pub(crate) fn read_unary(&mut self) -> u64 {
        let mut n_zeros = 0;
        loop {
            let word = self.peek() & ((1 << READ_BITS_MAX) - 1);
            if word != 0 {
                let here = u64::from(word.trailing_zeros());
                self.at += here + 1;
                return n_zeros + here;
            }
            n_zeros += u64::from(READ_BITS_MAX);
            self.at += u64::from(READ_BITS_MAX);
            if self.is_past_end() {
                return n_zeros;
            }
        }
    }

    /// Reads a number in the given code; meaningless, but harmless, on damaged bytes.
    pub(crate) fn read_code(&mut self, code: Code) -> u64 {
        let high = match code {
            Code::Rice(_) => self.read_unary(),
            Code::ExpGolomb(_) => {
                let width = u32::try_from(self.read_unary()).unwrap_or(u32::MAX).min(READ_BITS_MAX - 1);
                (self.read(width) | 1 << width) - 1
            }
        };
        let low = self.read(code.low_width());
        high.checked_shl(code.low_width()).unwrap_or(u64::MAX) | low
    }
}

/// Numbers of one width, stored consecutively.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedInts<'a> {
    bytes: &'a [u8],
    width: u32,
}

impl<'a> PackedInts<'a> {
    pub(crate) fn new(bytes: &'a [u8], width: u32) -> Self {
        Self { bytes, width: width.min(READ_BITS_MAX) }
    }

    /// Returns the number at `place`; 0 beyond the end.
    pub(crate) fn get(&self, place: u64) -> u64 {
        BitReader::new(self.bytes, place.saturating_mul(u64::from(self.width))).read(self.width)
    }
}

/// Returns the number of bits needed for numbers up to `max`.
pub(crate) fn width_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}
