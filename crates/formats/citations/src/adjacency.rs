//! The neighbours of a DOI as a bit string: sorted numbers, gaps in the code that is shortest for the list.
//!
//! A list of d > 0 neighbours among n DOIs, with w = bits of n - 1:
//!
//! | part | bits |
//! |---|---|
//! | d - 1 | exponential Golomb code, 4 low bits |
//! | width s of a symbol (references only) | unary |
//! | d symbols (references only) | s each |
//! | first neighbour | w |
//! | which code, if d > 2 | 6 |
//! | d - 1 gaps, each less one | the code; for d = 2 exponential Golomb, w - 2 low bits |
//!
//! Rice codes come near the entropy if neighbours are evenly distributed, which citations are if the numbering is
//! independent of the subject; exponential Golomb codes win if they cluster, as DOIs of one journal do. A list
//! uses whichever is shorter. Nothing is stored for empty lists: the starts of lists are an Elias-Fano sequence,
//! and an empty list ends where it starts.
//!
//! A **symbol** is the position, in the graph's palette, of what a citation says beyond its ends (self-citation
//! flags, OCI prefixes), most frequent first; most lists need none (s = 0).

use std::io::{self, Write};

use crate::bits::{BitReader, BitWriter, Code, width_of};
use crate::elias_fano::EliasFano;

const DEGREE_CODE: Code = Code::ExpGolomb(4);
/// Widest symbol: the palette has at most 2^12 entries.
pub(crate) const SYMBOL_WIDTH_MAX: u32 = 12;
/// Number of Rice codes tried on each side of the expected best one.
const RICE_NEIGHBOURS: u32 = 1;
/// Longest list of which every gap is examined to choose the code; of longer ones every n-th is.
const SAMPLED_GAPS: usize = 1024;

/// Whether lists carry symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// What a DOI cites; with symbols.
    References,
    /// What cites it; without.
    Citations,
}

/// Writes a list. `neighbours` rise and are below `n_nodes`; `symbols` has as many entries, or none.
pub(crate) fn write_list<W: Write>(
    bits: &mut BitWriter<W>,
    direction: Direction,
    n_nodes: u64,
    neighbours: &[u32],
    symbols: &[u32],
) -> io::Result<()> {
    let Some((&first, rest)) = neighbours.split_first() else { return Ok(()) };
    let node_width = width_of(n_nodes - 1);
    bits.write_code(rest.len() as u64, DEGREE_CODE)?;
    if direction == Direction::References {
        write_symbols(bits, symbols)?;
    }
    bits.write(u64::from(first), node_width)?;
    if rest.is_empty() {
        return Ok(());
    }
    if let [_] = rest {
        return bits.write_code(gap(neighbours), code_of_one_gap(node_width));
    }
    let code = best_code(neighbours);
    bits.write(code.tag(), Code::TAG_BITS)?;
    neighbours.windows(2).try_for_each(|pair| bits.write_code(gap(pair), code))
}

fn write_symbols<W: Write>(bits: &mut BitWriter<W>, symbols: &[u32]) -> io::Result<()> {
    let width = width_of(u64::from(symbols.iter().copied().max().unwrap_or(0)));
    bits.write_unary(u64::from(width))?;
    if width == 0 {
        return Ok(());
    }
    symbols.iter().try_for_each(|&symbol| bits.write(u64::from(symbol), width))
}

/// Returns the code of a single gap, which is not worth storing the name of a code.
fn code_of_one_gap(node_width: u32) -> Code {
    Code::ExpGolomb(node_width.saturating_sub(2))
}

fn gap(pair: &[u32]) -> u64 {
    u64::from(pair[1] - pair[0] - 1)
}

/// Returns the code that takes the fewest bits for the gaps (a sample of them, if there are many).
fn best_code(neighbours: &[u32]) -> Code {
    let n_gaps = neighbours.len() - 1;
    let step = n_gaps.div_ceil(SAMPLED_GAPS);
    let gaps = || neighbours.windows(2).step_by(step).map(gap);
    let spread = u64::from(neighbours[n_gaps] - neighbours[0]);
    let rice = (spread / n_gaps as u64 * 7 / 10).checked_ilog2().unwrap_or(0);
    let rices = (rice.saturating_sub(RICE_NEIGHBOURS)..=rice + RICE_NEIGHBOURS).map(Code::Rice);
    let golombs = (0..=rice).step_by(2).map(Code::ExpGolomb);
    let total = |code: &Code| gaps().map(|gap| code.len(gap)).sum::<u64>();
    rices.chain(golombs).min_by_key(total).unwrap_or(Code::Rice(rice))
}

/// All lists of one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lists<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) starts: EliasFano<'a>,
    pub(crate) direction: Direction,
    pub(crate) n_nodes: u64,
}

impl<'a> Lists<'a> {
    /// Returns the neighbours of `node`; none if there is no such node.
    pub(crate) fn list(&self, node: u32) -> Neighbours<'a> {
        self.list_with_symbols(node).map_or_else(Neighbours::empty, |list| list.neighbours)
    }

    /// Returns the neighbours of `node` and their symbols; `None` if there are none.
    pub(crate) fn list_with_symbols(&self, node: u32) -> Option<SymbolList<'a>> {
        let (start, end) = self.starts.pair(u64::from(node))?;
        if end <= start {
            return None;
        }
        let mut bits = BitReader::new(self.bytes, start);
        let n_neighbours = bits.read_code(DEGREE_CODE).saturating_add(1).min(self.n_nodes);
        let symbol_width = match self.direction {
            Direction::References => u32::try_from(bits.read_unary()).unwrap_or(0).min(SYMBOL_WIDTH_MAX),
            Direction::Citations => 0,
        };
        let symbols = bits;
        bits.skip(n_neighbours * u64::from(symbol_width));
        let node_width = width_of(self.n_nodes - 1);
        let first = bits.read(node_width);
        let code = match n_neighbours {
            1 | 2 => code_of_one_gap(node_width),
            _ => Code::from_tag(bits.read(Code::TAG_BITS)),
        };
        let n_left = u32::try_from(n_neighbours).unwrap_or(u32::MAX);
        let neighbours = Neighbours { bits, code, next: first, n_left, n_nodes: self.n_nodes };
        Some(SymbolList { neighbours, symbols, symbol_width })
    }
}

/// The neighbours of a DOI, rising. Decodes lazily; their number is known at once.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    bits: BitReader<'a>,
    code: Code,
    next: u64,
    n_left: u32,
    n_nodes: u64,
}

impl Neighbours<'_> {
    pub(crate) fn empty() -> Self {
        Self { bits: BitReader::new(&[], 0), code: Code::Rice(0), next: 0, n_left: 0, n_nodes: 0 }
    }
}

impl Iterator for Neighbours<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        // Numbers beyond the last node come only from damaged bytes, and end the list.
        if self.n_left == 0 || self.n_nodes <= self.next {
            self.n_left = 0;
            return None;
        }
        let current = self.next;
        self.n_left -= 1;
        if 0 < self.n_left {
            self.next = current.saturating_add(self.bits.read_code(self.code)).saturating_add(1);
        }
        u32::try_from(current).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n_left as usize, Some(self.n_left as usize))
    }
}

impl ExactSizeIterator for Neighbours<'_> {}

/// What a DOI cites, each with the symbol of the citation.
#[derive(Debug, Clone)]
pub(crate) struct SymbolList<'a> {
    neighbours: Neighbours<'a>,
    symbols: BitReader<'a>,
    symbol_width: u32,
}

impl Iterator for SymbolList<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let neighbour = self.neighbours.next()?;
        let symbol = self.symbols.read(self.symbol_width);
        Some((neighbour, u32::try_from(symbol).unwrap_or(0)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.neighbours.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::elias_fano::EliasFanoWriter;

    fn starts(values: &[u64]) -> Vec<u8> {
        let mut writer =
            EliasFanoWriter::new(Vec::new(), values.len() as u64, *values.last().unwrap()).unwrap();
        values.iter().for_each(|&value| writer.push(value).unwrap());
        writer.finish().unwrap()
    }

    fn neighbours() -> impl Strategy<Value = BTreeSet<u32>> {
        prop_oneof![
            proptest::collection::btree_set(0_u32..1_000_000, 0..60),
            proptest::collection::btree_set(500_000_u32..500_300, 0..200),
        ]
    }

    proptest! {
        #[test]
        fn lists_round_trip(lists in proptest::collection::vec(neighbours(), 1..20), symbol_max in 0_u32..9) {
            for direction in [Direction::References, Direction::Citations] {
                let mut bits = BitWriter::new(Vec::new());
                let mut ends = vec![0];
                for list in &lists {
                    let list: Vec<u32> = list.iter().copied().collect();
                    let symbols: Vec<u32> = list.iter().map(|it| it % (symbol_max + 1)).collect();
                    write_list(&mut bits, direction, 1_000_000, &list, &symbols).unwrap();
                    ends.push(bits.n_bits());
                }
                let (bytes, starts) = (bits.finish().unwrap(), starts(&ends));
                let starts = EliasFano::open(&starts).unwrap();
                let all = Lists { bytes: &bytes, starts, direction, n_nodes: 1_000_000 };
                for (node, list) in (0..).zip(&lists) {
                    prop_assert_eq!(all.list(node).len(), list.len());
                    prop_assert!(all.list(node).eq(list.iter().copied()));
                    let symbols = all.list_with_symbols(node).into_iter().flatten();
                    let factor = if direction == Direction::References { 1 } else { 0 };
                    prop_assert!(symbols.eq(list.iter().map(|&it| (it, it % (symbol_max + 1) * factor))));
                }
            }
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200), n_nodes in 1_u64..3000) {
            let starts = starts(&[0, 64, 5000, 90_000]);
            let starts = EliasFano::open(&starts).unwrap();
            for direction in [Direction::References, Direction::Citations] {
                let all = Lists { bytes: &bytes, starts, direction, n_nodes };
                for node in 0..5 {
                    let numbers: Vec<u32> = all.list(node).collect();
                    prop_assert!(numbers.iter().all(|&it| u64::from(it) < n_nodes));
                }
            }
        }
    }
}
