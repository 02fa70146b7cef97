//! A column of whole numbers with at most one for each document, decoded: times above all. A value takes four bytes where
//! the column's range allows, otherwise eight.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tantivy::columnar::{Cardinality, Column};

use super::recent::Measured;
use super::set::Set;
use super::values::STEP_DOCS;
use crate::Direction;

/// Documents whose codes are compared together.
const BLOCK: usize = 64;
/// Codes are looked up one by one when at most one in so many documents is in question.
const FEW: u64 = 10;

/// The values of a column, by document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Codes {
    /// Filled up with 0 to whole blocks.
    codes: Numbers,
    /// Rank of the value with the code 1; 0 stands for no value.
    least: u64,
    /// Difference between the ranks of two codes in a row.
    unit: u64,
    /// The greatest code.
    greatest: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Numbers {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Codes {
    /// Returns the largest memory that a column may take.
    pub(super) fn n_bytes_at_most(column: &Column<i64>) -> usize {
        size_of::<u64>() * (column.num_docs() as usize).next_multiple_of(BLOCK)
    }

    /// Decodes a column. `None` if a document has several values, or the least and the greatest value are too far apart.
    pub(super) fn of(column: &Column<i64>) -> Option<Self> {
        if column.get_cardinality() == Cardinality::Multivalued {
            return None;
        }
        let least = whole_rank(column.min_value());
        whole_rank(column.max_value()).saturating_sub(least).checked_add(1)?;
        let n_docs = column.num_docs();
        let mut wide = Vec::with_capacity((n_docs as usize).next_multiple_of(BLOCK));
        let (mut docs, mut values) = (Vec::with_capacity(STEP_DOCS), Vec::new());
        let (mut unit, mut greatest) = (0, 0);
        for first in (0..n_docs).step_by(STEP_DOCS) {
            docs.clear();
            docs.extend((first..n_docs).take(STEP_DOCS));
            values.clear();
            values.resize(docs.len(), None);
            column.first_vals(&docs, &mut values);
            wide.extend(values.iter().map(|it| {
                it.map_or(0, |it| {
                    let above = whole_rank(it) - least;
                    unit = greatest_divisor(unit, above);
                    greatest = greatest.max(above);
                    above + 1
                })
            }));
        }
        wide.resize(wide.len().next_multiple_of(BLOCK), 0);
        let unit = unit.max(1);
        let narrow = |code: u64| code.checked_sub(1).map_or(0, |above| (above / unit + 1) as u32);
        let codes = match u32::try_from(greatest / unit + 1) {
            Ok(_) => Numbers::Narrow(wide.into_iter().map(narrow).collect()),
            Err(_) => {
                return Some(Self { codes: Numbers::Wide(wide), least, unit: 1, greatest: greatest + 1 });
            }
        };
        Some(Self { codes, least, unit, greatest: greatest / unit + 1 })
    }

    /// Returns a document's value.
    fn value(&self, doc: u32) -> Option<i64> {
        self.rank(doc).map(tantivy::u64_to_i64)
    }

    /// Returns the rank of a document's value.
    pub(super) fn rank(&self, doc: u32) -> Option<u64> {
        self.rank_of(self.code(doc))
    }

    fn rank_of(&self, code: u64) -> Option<u64> {
        Some(self.least + code.checked_sub(1)? * self.unit)
    }

    /// Returns the code of a document's value: codes are in the order of values, and 0 stands for no value.
    pub(super) fn code(&self, doc: u32) -> u64 {
        match &self.codes {
            Numbers::Narrow(codes) => codes.get(doc as usize).map_or(0, |it| u64::from(*it)),
            Numbers::Wide(codes) => codes.get(doc as usize).copied().unwrap_or(0),
        }
    }

    /// Returns the first and the last code of the values from `from` to `to`, both included; `None` if there are none.
    pub(super) fn between(&self, from: i64, to: i64) -> Option<(u64, u64)> {
        let (from, to) = (whole_rank(from), whole_rank(to));
        let above = to.checked_sub(self.least).filter(|_| from <= to)?;
        let low = from.saturating_sub(self.least).div_ceil(self.unit).saturating_add(1);
        let high = (above / self.unit).saturating_add(1);
        // Records that were written in order of time: most segments have nothing of a month.
        (low <= self.greatest).then_some((low, high))
    }

    /// Returns the codes of the values that sort no later than one with a rank; no value (`None`) sorts first.
    pub(super) fn up_to(&self, last: Option<u64>, direction: Direction) -> RangeInclusive<u64> {
        let above = last.and_then(|last| last.checked_sub(self.least));
        match (last, direction) {
            (None, Direction::Ascending) => 0..=0,
            (None, Direction::Descending) => 0..=u64::MAX,
            (Some(_), Direction::Ascending) => 0..=above.map_or(0, |it| (it / self.unit).saturating_add(1)),
            (Some(_), Direction::Descending) => {
                above.map_or(1, |it| it.div_ceil(self.unit).saturating_add(1))..=u64::MAX
            }
        }
    }

    /// Returns whether a document has one of these codes.
    pub(super) fn is_among(&self, doc: u32, wanted: &RangeInclusive<u64>) -> bool {
        match &self.codes {
            Numbers::Narrow(codes) => {
                codes.get(doc as usize).is_some_and(|it| wanted.contains(&u64::from(*it)))
            }
            Numbers::Wide(codes) => codes.get(doc as usize).is_some_and(|it| wanted.contains(it)),
        }
    }

    /// Adds the documents among `within` with a value from `from` to `to`, both included.
    pub(super) fn add_span(&self, from: i64, to: i64, within: &Set, set: &mut Set) {
        let Some((low, high)) = self.between(from, to) else { return };
        match &self.codes {
            Numbers::Narrow(codes) => {
                if let Ok(low) = u32::try_from(low) {
                    add(codes, low, u32::try_from(high).unwrap_or(u32::MAX), within, set);
                }
            }
            Numbers::Wide(codes) => add(codes, low, high, within, set),
        }
    }
}

/// A column of whole numbers, decoded or not.
pub(super) enum WholeNumbers {
    Column(Column<i64>),
    Decoded(Arc<Codes>),
}

impl WholeNumbers {
    /// Returns the rank of the greatest value, 0 if there is none.
    pub(super) fn greatest_rank(&self) -> u64 {
        match self {
            Self::Column(column) => whole_rank(column.max_value()),
            Self::Decoded(codes) => codes.rank_of(codes.greatest).unwrap_or(0),
        }
    }

    /// Reads the first values of documents.
    pub(super) fn first_values(&self, docs: &[u32], into: &mut Vec<Option<i64>>) {
        into.clear();
        match self {
            Self::Column(column) => {
                into.resize(docs.len(), None);
                column.first_vals(docs, into);
            }
            Self::Decoded(codes) => into.extend(docs.iter().map(|doc| codes.value(*doc))),
        }
    }
}

impl Measured for Codes {
    fn n_bytes(&self) -> usize {
        match &self.codes {
            Numbers::Narrow(codes) => size_of::<u32>() * codes.len(),
            Numbers::Wide(codes) => size_of::<u64>() * codes.len(),
        }
    }
}

/// Adds the documents among `within` with a code from `low` to `high`, both included.
fn add<C: Copy + PartialOrd>(codes: &[C], low: C, high: C, within: &Set, set: &mut Set) {
    if within.len() * FEW < codes.len() as u64 {
        let is_in = |doc: u32| codes.get(doc as usize).is_some_and(|code| low <= *code && *code <= high);
        within.iter().filter(|doc| is_in(*doc)).for_each(|doc| set.insert(doc));
        return;
    }
    let (blocks, _) = codes.as_chunks::<BLOCK>();
    set.add_words(within, |index| {
        // Written for the compiler, which compares several codes at once.
        let mut flags = [0_u8; BLOCK];
        for (flag, code) in flags.iter_mut().zip(&blocks[index]) {
            *flag = u8::from(low <= *code) & u8::from(*code <= high);
        }
        let (eights, _) = flags.as_chunks::<8>();
        eights.iter().rev().fold(0, |word, eight| word << 8 | bits(*eight))
    });
}

/// Returns eight bytes of 0 or 1 as bits, the first as the lowest one.
fn bits(bytes: [u8; 8]) -> u64 {
    // Byte i counts 256^i; the factor has a bit that moves it to bit i of the highest byte, and no two sums meet there.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Returns the rank of a whole number among all of them.
pub(super) fn whole_rank(number: i64) -> u64 {
    tantivy::i64_to_u64(number)
}

fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    // Most values are multiples of what was found so far.
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use tantivy::schema::{FAST, Schema};
    use tantivy::{Index, TantivyDocument};

    /// Decodes a column of a segment with these values.
    pub(in crate::index) fn decoded(values: &[Option<i64>]) -> Option<Codes> {
        let mut schema = Schema::builder();
        let field = schema.add_i64_field("n", FAST);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 20_000_000).expect("a writer");
        for value in values {
            let mut document = TantivyDocument::new();
            if let Some(value) = value {
                document.add_i64(field, *value);
            }
            writer.add_document(document).expect("taken");
        }
        writer.commit().expect("a commit");
        let searcher = index.reader().expect("a reader").searcher();
        Codes::of(&searcher.segment_reader(0).fast_fields().i64("n").expect("a column"))
    }

    /// Compares a decoded column with the values that it was made of.
    fn check(values: &[Option<i64>], from: i64, to: i64, is_narrow: Option<bool>) {
        let Some(codes) = decoded(values) else {
            assert_eq!(is_narrow, None, "not decoded");
            return;
        };
        if let Some(is_narrow) = is_narrow {
            assert_eq!(matches!(codes.codes, Numbers::Narrow(_)), is_narrow);
        }
        let n_docs = u32::try_from(values.len()).expect("fits");
        let ranks: Vec<Option<u64>> = (0..n_docs).map(|doc| codes.rank(doc)).collect();
        assert_eq!(ranks, values.iter().map(|it| it.map(whole_rank)).collect::<Vec<_>>());
        for last in [None, Some(from), Some(to), Some(i64::MIN), Some(i64::MAX)].map(|it| it.map(whole_rank))
        {
            let (first_codes, last_codes) =
                (codes.up_to(last, Direction::Ascending), codes.up_to(last, Direction::Descending));
            for (doc, rank) in (0..n_docs).zip(&ranks) {
                assert_eq!(codes.is_among(doc, &first_codes), *rank <= last, "{rank:?} up to {last:?}");
                assert_eq!(codes.is_among(doc, &last_codes), last <= *rank, "{rank:?} down to {last:?}");
            }
        }
        let (mut most, mut few) = (Set::full(n_docs), Set::empty(n_docs));
        most.remove(1);
        few.insert(0);
        for within in [most, few] {
            let mut found = Set::empty(n_docs);
            codes.add_span(from, to, &within, &mut found);
            let fits = |doc: &u32| {
                within.has(*doc) && values[*doc as usize].is_some_and(|it| from <= it && it <= to)
            };
            assert_eq!(found.iter().collect::<Vec<_>>(), (0..n_docs).filter(fits).collect::<Vec<_>>());
        }
    }

    #[test]
    fn values_of_any_size_are_decoded() {
        let day_ms = 86_400_000;
        let days: Vec<Option<i64>> =
            (0..200).map(|it| Some(1_388_534_400_000 + it * 37 % 200 * day_ms)).collect();
        check(&days, 1_388_534_400_000 + 3 * day_ms, 1_388_534_400_000 + 40 * day_ms - 1, Some(true));
        let odd: Vec<Option<i64>> =
            days.iter().map(|it| it.map(|it| it + (it / day_ms).pow(2) % 997)).collect();
        check(&odd, 1_388_534_400_000, 1_390_000_000_000, Some(false));
        check(&[Some(7), Some(7), None], 7, 7, Some(true));
        check(&[None, None, None], 0, 9, Some(true));
        check(&[Some(i64::MIN), Some(0), Some(i64::MAX)], -1, i64::MAX, None);
        check(&[Some(i64::MIN), Some(5), Some(0)], i64::MIN, -1, Some(false));
        check(&[Some(10), Some(20), Some(30)], 30, 10, Some(true));
        check(&[Some(10), Some(20), Some(30)], 30, 31, Some(true));
        check(&[Some(10), Some(20), Some(30)], 31, 99, Some(true));
        check(&odd, 1_500_000_000_000, i64::MAX, Some(false));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn spans_hold_what_lies_between(
            values in proptest::collection::vec(proptest::option::of(-50_i64..50), 2..150),
            unit in prop_oneof![Just(1_i64), Just(1_000), Just(1 << 40)],
            from in -60_i64..60,
            to in -60_i64..60,
            beside in -1_i64..2,
        ) {
            let values: Vec<Option<i64>> = values.iter().map(|it| it.map(|it| it * unit)).collect();
            check(&values, from * unit + beside, to * unit + beside, Some(true));
        }
    }
}
