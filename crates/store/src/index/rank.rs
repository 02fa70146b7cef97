//! What a sort compares: the columns and paths that values come from, and the ranks of values.

use tantivy::columnar::{Column, DynamicColumn, StrColumn};

use super::codes::{Codes, WholeNumbers, whole_rank};
use super::condition::{PathTexts, failed};
use super::set::Set;
use super::texts::Texts;
use crate::Result;

/// A value to sort by: its type, and its rank among values of that type; `None` for an absent value, which sorts first.
pub(super) type Rank = Option<(u8, u64)>;

/// Sort order of the types: numbers, texts, objects, booleans.
pub(super) const NUMBER: u8 = 1;
pub(super) const TEXT: u8 = 2;
pub(super) const OBJECT: u8 = 3;
pub(super) const BOOLEAN: u8 = 5;

/// The source of the values that a sort compares.
pub(super) enum SortColumn {
    Whole(WholeNumbers),
    Real(Column<f64>),
    Text(Option<StrColumn>),
    Path(PathColumn),
}

/// The values at a path without a column.
pub(super) struct PathColumn {
    /// Columns of any type.
    pub(super) numbers: Vec<DynamicColumn>,
    pub(super) texts: PathTexts,
    pub(super) objects: Set,
    pub(super) no: Set,
    pub(super) yes: Set,
}

impl PathColumn {
    fn rank(&self, doc: u32) -> Rank {
        let number = self.numbers.iter().find_map(|column| match column {
            DynamicColumn::I64(column) => column.first(doc).map(|it| real_rank(it as f64)),
            DynamicColumn::U64(column) => column.first(doc).map(|it| real_rank(it as f64)),
            DynamicColumn::F64(column) => column.first(doc).map(real_rank),
            _ => None,
        });
        if let Some(number) = number {
            return Some((NUMBER, number));
        }
        if let Some(ord) = self.texts.ord(doc) {
            return Some((TEXT, ord));
        }
        if self.objects.has(doc) {
            return Some((OBJECT, 0));
        }
        if self.yes.has(doc) { Some((BOOLEAN, 1)) } else { self.no.has(doc).then_some((BOOLEAN, 0)) }
    }
}

impl SortColumn {
    /// Computes the ranks of documents; those of texts are valid within the segment.
    pub(super) fn ranks(&self, docs: &[u32], into: &mut Vec<Rank>) {
        into.clear();
        match self {
            Self::Whole(WholeNumbers::Column(column)) => {
                let mut values = vec![None; docs.len()];
                column.first_vals(docs, &mut values);
                into.extend(values.into_iter().map(|it| it.map(|it| (NUMBER, whole_rank(it)))));
            }
            Self::Whole(WholeNumbers::Decoded(codes)) => {
                into.extend(docs.iter().map(|doc| codes.rank(*doc).map(|it| (NUMBER, it))));
            }
            Self::Real(column) => {
                let mut values = vec![None; docs.len()];
                column.first_vals(docs, &mut values);
                into.extend(values.into_iter().map(|it| it.map(|it| (NUMBER, real_rank(it)))));
            }
            Self::Text(None) => into.resize(docs.len(), None),
            Self::Text(Some(column)) => {
                let mut values = vec![None; docs.len()];
                column.ords().first_vals(docs, &mut values);
                into.extend(values.into_iter().map(|it| it.map(|it| (TEXT, it))));
            }
            Self::Path(column) => into.extend(docs.iter().map(|doc| column.rank(*doc))),
        }
    }

    /// Returns the column's values if they are decoded.
    pub(super) fn decoded(&self) -> Option<&Codes> {
        match self {
            Self::Whole(WholeNumbers::Decoded(codes)) => Some(codes),
            _ => None,
        }
    }

    /// Keeps the documents whose ranks are needed.
    pub(super) fn retain(
        &self,
        docs: &mut Vec<u32>,
        ranks: &mut Vec<Rank>,
        is_needed: impl Fn(Rank) -> bool,
    ) {
        if let Self::Whole(WholeNumbers::Decoded(codes)) = self {
            docs.retain(|doc| is_needed(codes.rank(*doc).map(|it| (NUMBER, it))));
            return;
        }
        self.ranks(docs, ranks);
        let mut by_doc = ranks.iter();
        docs.retain(|_| by_doc.next().is_some_and(|rank| is_needed(*rank)));
    }

    /// Returns whether ranks of different segments are comparable: those of texts are not.
    pub(super) fn is_comparable(&self) -> bool {
        match self {
            Self::Whole(_) | Self::Real(_) | Self::Text(None) => true,
            Self::Text(Some(_)) => false,
            Self::Path(column) => column.texts.is_empty(),
        }
    }

    /// Appends the texts of sorted ordinals.
    pub(super) fn push_texts(&self, ords: &[u64], texts: &mut Texts) -> Result<()> {
        match self {
            Self::Text(Some(column)) => {
                let dictionary = column.dictionary();
                dictionary.sorted_ords_to_term_cb(ords, |bytes| texts.push(bytes)).map_err(failed)?;
            }
            Self::Path(column) => ords.iter().for_each(|ord| texts.push(column.texts.text(*ord))),
            Self::Text(None) | Self::Whole(_) | Self::Real(_) => {}
        }
        Ok(())
    }
}

pub(super) fn real_rank(number: f64) -> u64 {
    tantivy::f64_to_u64(if number == 0.0 { 0.0 } else { number })
}

/// A value of a changed record.
pub(super) enum TailValue {
    Ranked(Rank),
    Text(String),
    /// A value that has no rank.
    Other,
}
