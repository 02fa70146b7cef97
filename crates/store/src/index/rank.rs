//! What a sort compares: the columns and paths that values come from, and the ranks of values.

use tantivy::columnar::{Column, DynamicColumn, StrColumn};

use super::codes::{Codes, WholeNumbers, whole_rank};
use super::condition::{PathTexts, Segment, failed};
use super::set::Set;
use super::terms::{BEGIN_BYTES, First, Tag};
use super::texts::Texts;
use crate::{Direction, Path, Result};

/// A value to sort by: its type, and its rank among values of that type; `None` for an absent value, which sorts first.
pub(super) type Rank = Option<(u8, u64)>;

/// Sort order of the types: numbers, texts, objects, lists, booleans.
pub(super) const NUMBER: u8 = 1;
pub(super) const TEXT: u8 = 2;
pub(super) const OBJECT: u8 = 3;
/// A list that is empty or begins with `null`. Others have this and the type of their first element.
pub(super) const LIST: u8 = 16;
pub(super) const BOOLEAN: u8 = 32;
/// Lists have the types from [`LIST`] on, and those of lists that begin with booleans come last.
pub(super) const LIST_BOOLEAN: u8 = LIST + 5;

/// Returns whether values of a type are ranked by their texts.
pub(super) fn is_text(ty: u8) -> bool {
    ty == TEXT || ty == LIST + TEXT
}

/// The source of the values that a sort compares.
pub(super) enum SortColumn {
    Whole(WholeNumbers),
    Real(Column<f64>),
    Text(Option<StrColumn>),
    Path(Box<PathColumn>),
    Members(Box<MembersColumn>),
}

/// Where an order of all members begins for each document: at the first value that one of its members has in the order.
pub(super) struct MembersColumn {
    direction: Direction,
    /// Columns of any type.
    numbers: Vec<DynamicColumn>,
    texts: PathTexts,
    /// Documents that come first, whatever their numbers and texts are.
    beyond: Set,
}

/// Sorts behind all values.
pub(super) const BEHIND: u8 = u8::MAX;

impl MembersColumn {
    /// Returns the column for a path of [`Kind::member_values`](crate::Kind::member_values).
    pub(super) fn of(segment: &Segment<'_>, path: &Path, direction: Direction) -> Result<Self> {
        Ok(Self {
            direction,
            numbers: segment.member_numbers(path, direction)?,
            texts: segment.member_texts(path, direction)?,
            beyond: segment.members_beyond(path, direction)?,
        })
    }

    fn rank(&self, doc: u32) -> Rank {
        let is_beyond = self.beyond.has(doc);
        let number = || number_of(&self.numbers, doc).map(|it| (NUMBER, it));
        let text = || self.texts.ord(doc).map(|it| (TEXT, it));
        match self.direction {
            Direction::Ascending if is_beyond => None,
            Direction::Ascending => number().or_else(text),
            Direction::Descending if is_beyond => Some((BEHIND, 0)),
            Direction::Descending => text().or_else(number),
        }
    }
}

/// The values at a path without a column.
pub(super) struct PathColumn {
    /// Columns of any type.
    numbers: Vec<DynamicColumn>,
    /// Documents below lists of several elements: the numbers by which they are sorted are in other columns.
    below_several: Set,
    leading_numbers: Vec<DynamicColumn>,
    texts: PathTexts,
    objects: Set,
    no: Set,
    yes: Set,
    /// `None` if no document has a list there.
    lists: Option<ListColumn>,
}

/// What the lists at a path begin with.
struct ListColumn {
    /// The documents with a list.
    lists: Set,
    numbers: Vec<DynamicColumn>,
    /// Documents with the text of an ordinal that [`PathColumn`] counts on from those of its own texts.
    texts: PathTexts,
    objects: Set,
    no: Set,
    yes: Set,
}

impl ListColumn {
    /// Reads what lists begin with. `lists`: the documents with a list, by which they are sorted.
    fn of(segment: &Segment<'_>, path: &Path, lists: Set) -> Result<Option<Self>> {
        if lists.is_empty() {
            return Ok(None);
        }
        let with = |ty: First| -> Result<Set> {
            Ok(segment.sorted_by(path, Tag::First, ty)?.or(&segment.sorted_by(
                path,
                Tag::LeadingFirst,
                ty,
            )?))
        };
        let mut numbers = segment.numbers_sorted_by(path, Tag::First)?;
        numbers.extend(segment.numbers_sorted_by(path, Tag::LeadingFirst)?);
        let texts = segment.texts_sorted_by(path, Tag::First)?;
        Ok(Some(Self {
            numbers,
            texts: texts.with(segment.texts_sorted_by(path, Tag::LeadingFirst)?),
            objects: with(First::Object)?,
            no: with(First::No)?,
            yes: with(First::Yes)?,
            lists,
        }))
    }

    fn rank(&self, doc: u32, n_texts: u64) -> (u8, u64) {
        if let Some(number) = number_of(&self.numbers, doc) {
            return (LIST + NUMBER, number);
        }
        if let Some(ord) = self.texts.ord(doc) {
            return (LIST + TEXT, n_texts + ord);
        }
        if self.objects.has(doc) {
            return (LIST + OBJECT, 0);
        }
        if self.yes.has(doc) {
            return (LIST_BOOLEAN, 1);
        }
        if self.no.has(doc) { (LIST_BOOLEAN, 0) } else { (LIST, 0) }
    }
}

/// Returns the rank of a document's number, which only one of the columns has.
fn number_of(columns: &[DynamicColumn], doc: u32) -> Option<u64> {
    columns.iter().find_map(|column| match column {
        DynamicColumn::I64(column) => column.first(doc).map(|it| real_rank(it as f64)),
        DynamicColumn::U64(column) => column.first(doc).map(|it| real_rank(it as f64)),
        DynamicColumn::F64(column) => column.first(doc).map(real_rank),
        _ => None,
    })
}

impl PathColumn {
    /// Returns the values of a segment. `None` if the index does not hold all of them whole.
    pub(super) fn of(segment: &Segment<'_>, path: &Path) -> Result<Option<Self>> {
        if !segment.has_whole_values(path)? || !segment.unranked(path)?.is_empty() {
            return Ok(None);
        }
        Self::read(segment, path, true).map(Some)
    }

    /// Returns the values of a segment, unless `is_whole` only the beginnings of texts. The ranks of documents that
    /// [`Segment::unranked`] names mean nothing.
    pub(super) fn read(segment: &Segment<'_>, path: &Path, is_whole: bool) -> Result<Self> {
        let several = segment.below_several(path)?;
        let leading = |ty: First| segment.sorted_by(path, Tag::Leading, ty);
        // Of documents below several elements, terms and columns tell those behind the first, too.
        let with = |found: Set, ty: First| -> Result<Set> { Ok(found.without(&several).or(&leading(ty)?)) };
        let lists = with(segment.lists(path)?, First::List)?;
        let [no, yes] = segment.booleans(path)?;
        let is_alone = |doc: u32| !lists.has(doc) && !several.has(doc);
        let texts =
            if is_whole { segment.texts_at(path, is_alone) } else { segment.beginnings_at(path, is_alone) }?;
        let texts = texts.with(segment.texts_sorted_by(path, Tag::Leading)?);
        Ok(Self {
            numbers: segment.number_columns(path)?,
            leading_numbers: segment.numbers_sorted_by(path, Tag::Leading)?,
            texts: if is_whole { texts } else { texts.beginnings(BEGIN_BYTES) },
            objects: with(segment.objects(path)?, First::Object)?,
            no: with(no, First::No)?,
            yes: with(yes, First::Yes)?,
            lists: ListColumn::of(segment, path, lists)?,
            below_several: several,
        })
    }

    fn rank(&self, doc: u32) -> Rank {
        if let Some(lists) = self.lists.as_ref().filter(|it| it.lists.has(doc)) {
            return Some(lists.rank(doc, self.texts.len()));
        }
        let numbers = if self.below_several.has(doc) { &self.leading_numbers } else { &self.numbers };
        if let Some(number) = number_of(numbers, doc) {
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

    /// Returns the text of an ordinal.
    fn text(&self, ord: u64) -> &[u8] {
        match (ord.checked_sub(self.texts.len()), &self.lists) {
            (Some(of_lists), Some(lists)) => lists.texts.text(of_lists),
            _ => self.texts.text(ord),
        }
    }

    fn has_texts(&self) -> bool {
        self.texts.len() != 0 || self.lists.as_ref().is_some_and(|it| it.texts.len() != 0)
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
            Self::Members(column) => into.extend(docs.iter().map(|doc| column.rank(*doc))),
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
            Self::Path(column) => !column.has_texts(),
            Self::Members(column) => column.texts.len() == 0,
        }
    }

    /// Appends the texts of sorted ordinals.
    pub(super) fn push_texts(&self, ords: &[u64], texts: &mut Texts) -> Result<()> {
        match self {
            Self::Text(Some(column)) => {
                let dictionary = column.dictionary();
                dictionary.sorted_ords_to_term_cb(ords, |bytes| texts.push(bytes)).map_err(failed)?;
            }
            Self::Path(column) => ords.iter().for_each(|ord| texts.push(column.text(*ord))),
            Self::Members(column) => ords.iter().for_each(|ord| texts.push(column.texts.text(*ord))),
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
    /// A type, and the text that it is ranked by.
    Text(u8, String),
    /// A value that has no rank.
    Other,
}
