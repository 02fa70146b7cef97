//! Elias-Fano: a rising sequence in about two bits per number plus the logarithm of the mean gap, with access
//! by position in constant time.
//!
//! Layout, little-endian: count and greatest number (8 bytes each), the low bits packed, the high bits as a bit
//! map with one bit set per number, and for every [`SAMPLE`]th number where its bit is (8 bytes each).
//! Source: Elias (1974), Fano (1971); the same structure holds offsets in the `webgraph` and `sux` crates.

use std::io::{self, Write};

use crate::bits::{BitReader, BitWriter};

/// Numbers between two samples: finding one reads about 64 bytes of bit map.
const SAMPLE: u64 = 256;
const HEADER_BYTES: u64 = 16;

/// The positions of the parts of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    n: u64,
    low_width: u32,
    high_at: u64,
    high_words: u64,
    samples_at: u64,
    len_bytes: u64,
}

impl Shape {
    /// Computes the shape; `None` if the counts are beyond what a file can hold.
    fn new(n: u64, max: u64) -> Option<Self> {
        let low_width = (max / n.max(1)).checked_ilog2().unwrap_or(0).min(56);
        let low_words = n.checked_mul(u64::from(low_width))?.div_ceil(64);
        let high_words = n.checked_add(max >> low_width)?.checked_add(1)?.div_ceil(64);
        let high_at = HEADER_BYTES.checked_add(low_words.checked_mul(8)?)?;
        let samples_at = high_at.checked_add(high_words.checked_mul(8)?)?;
        let len_bytes = samples_at.checked_add(n.div_ceil(SAMPLE) * 8)?;
        Some(Self { n, low_width, high_at, high_words, samples_at, len_bytes })
    }
}

/// Writes a sequence. The high bits, two to three per number, are kept in memory until the end.
pub(crate) struct EliasFanoWriter<W: Write> {
    low: BitWriter<W>,
    shape: Shape,
    high: Vec<u64>,
    samples: Vec<u64>,
    n_pushed: u64,
}

impl<W: Write> EliasFanoWriter<W> {
    /// Creates a writer for `n` numbers up to `max`.
    pub(crate) fn new(mut sink: W, n: u64, max: u64) -> io::Result<Self> {
        let shape = Shape::new(n, max).ok_or_else(|| io::Error::other("a sequence too long for a file"))?;
        sink.write_all(&n.to_le_bytes())?;
        sink.write_all(&max.to_le_bytes())?;
        let high_words = usize::try_from(shape.high_words).map_err(io::Error::other)?;
        Ok(Self {
            low: BitWriter::new(sink),
            shape,
            high: vec![0; high_words],
            samples: Vec::new(),
            n_pushed: 0,
        })
    }

    /// Adds the next number, not below the last and at most `max`.
    pub(crate) fn push(&mut self, value: u64) -> io::Result<()> {
        let width = self.shape.low_width;
        self.low.write(value & ((1 << width) - 1), width)?;
        let bit = (value >> width) + self.n_pushed;
        self.high[(bit / 64) as usize] |= 1 << (bit % 64);
        if self.n_pushed.is_multiple_of(SAMPLE) {
            self.samples.push(bit);
        }
        self.n_pushed += 1;
        Ok(())
    }

    /// Writes the buffered part and returns the sink.
    pub(crate) fn finish(self) -> io::Result<W> {
        debug_assert_eq!(self.n_pushed, self.shape.n);
        let mut sink = self.low.finish()?;
        for word in self.high.into_iter().chain(self.samples) {
            sink.write_all(&word.to_le_bytes())?;
        }
        Ok(sink)
    }
}

/// A sequence in a byte slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EliasFano<'a> {
    low: &'a [u8],
    high: &'a [u8],
    samples: &'a [u8],
    shape: Shape,
}

impl<'a> EliasFano<'a> {
    /// Finds the parts; `None` if the bytes do not have the length given by their header.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let shape = Shape::new(word_at(bytes, 0)?, word_at(bytes, 8)?)?;
        if shape.len_bytes != bytes.len() as u64 {
            return None;
        }
        let part = |from: u64, to: u64| bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?);
        Some(Self {
            low: part(HEADER_BYTES, shape.high_at)?,
            high: part(shape.high_at, shape.samples_at)?,
            samples: part(shape.samples_at, shape.len_bytes)?,
            shape,
        })
    }

    /// Returns the number of numbers.
    pub(crate) fn len(&self) -> u64 {
        self.shape.n
    }

    /// Returns the number at `place`; `None` beyond the end.
    pub(crate) fn get(&self, place: u64) -> Option<u64> {
        if self.shape.n <= place {
            return None;
        }
        Some(self.value(place, self.select(place)?))
    }

    /// Returns the numbers at `place` and after it.
    pub(crate) fn pair(&self, place: u64) -> Option<(u64, u64)> {
        if self.shape.n <= place + 1 {
            return None;
        }
        let bit = self.select(place)?;
        let next_bit = self.next_one(bit + 1)?;
        Some((self.value(place, bit), self.value(place + 1, next_bit)))
    }

    fn value(&self, place: u64, bit: u64) -> u64 {
        let width = self.shape.low_width;
        let low = BitReader::new(self.low, place * u64::from(width)).read(width);
        bit.wrapping_sub(place) << width | low
    }

    /// Returns the position of the bit of the number at `place`.
    fn select(&self, place: u64) -> Option<u64> {
        let bit = word_at(self.samples, place / SAMPLE * 8)?;
        let mut n_missing = u32::try_from(place % SAMPLE).ok()?;
        let mut word_index = bit / 64;
        let mut word = word_at(self.high, word_index * 8)? & (u64::MAX << (bit % 64));
        while word.count_ones() <= n_missing {
            n_missing -= word.count_ones();
            word_index += 1;
            word = word_at(self.high, word_index * 8)?;
        }
        Some(word_index * 64 + u64::from(place_of_one(word, n_missing)))
    }

    fn next_one(&self, bit: u64) -> Option<u64> {
        let mut word_index = bit / 64;
        let mut word = word_at(self.high, word_index * 8)? & (u64::MAX << (bit % 64));
        while word == 0 {
            word_index += 1;
            word = word_at(self.high, word_index * 8)?;
        }
        Some(word_index * 64 + u64::from(word.trailing_zeros()))
    }
}

/// Returns the position of the `rank`th set bit, from 0; there are more than `rank`.
fn place_of_one(word: u64, rank: u32) -> u32 {
    let (mut rest, mut n_missing, mut base) = (word, rank, 0);
    for width in [32, 16, 8] {
        let below = (rest & ((1 << width) - 1)).count_ones();
        if below <= n_missing {
            n_missing -= below;
            rest >>= width;
            base += width;
        }
    }
    for _ in 0..n_missing {
        rest &= rest - 1;
    }
    base + rest.trailing_zeros()
}

fn word_at(bytes: &[u8], at: u64) -> Option<u64> {
    let word = bytes.get(usize::try_from(at).ok()?..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_the_sequence(gaps in proptest::collection::vec(prop_oneof![0_u64..3, 0_u64..5000], 1..1500)) {
            let values: Vec<u64> = gaps.iter().scan(0, |sum, gap| { *sum += gap; Some(*sum) }).collect();
            let max = *values.last().unwrap();
            let mut writer = EliasFanoWriter::new(Vec::new(), values.len() as u64, max).unwrap();
            values.iter().for_each(|&value| writer.push(value).unwrap());
            let bytes = writer.finish().unwrap();
            let sequence = EliasFano::open(&bytes).unwrap();
            for (place, &value) in (0..).zip(&values) {
                prop_assert_eq!(sequence.get(place), Some(value));
                prop_assert_eq!(sequence.pair(place), values.get(place as usize + 1).map(|&next| (value, next)));
            }
            prop_assert_eq!(sequence.get(values.len() as u64), None);
            prop_assert!(EliasFano::open(&bytes[..bytes.len() - 1]).is_none());
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), n in 0_u64..40, max in 0_u64..2000) {
            let whole = [n.to_le_bytes().as_slice(), &max.to_le_bytes(), &bytes].concat();
            for len in 0..whole.len() {
                if let Some(sequence) = EliasFano::open(&whole[..len]) {
                    (0..n).for_each(|place| { sequence.pair(place); });
                }
            }
        }
    }
}
