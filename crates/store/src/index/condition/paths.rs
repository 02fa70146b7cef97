//! The values at a path in a whole segment, for sorts by paths without a column.

use tantivy::columnar::{ColumnIndex, DynamicColumn};

use super::{Segment, bytes, each_posting, failed};
use crate::field_values::EXACT;
use crate::index::layout::{NUMBERS, column_name_of, path_column_name};
use crate::index::member_values::Summed;
use crate::index::set::Set;
use crate::index::terms::{self, BEGIN_BYTES, First, Tag};
use crate::index::texts::Texts;
use crate::{Direction, Path, Result, Search};

/// The texts at a path, in order, and the text of each document.
pub(in crate::index) struct PathTexts {
    texts: Texts,
    /// By document: one more than the ordinal of its text, 0 if it has none. Empty if no document has one.
    by_doc: Vec<u32>,
}

impl PathTexts {
    /// Returns the ordinal of a document's text.
    pub(in crate::index) fn ord(&self, doc: u32) -> Option<u64> {
        self.by_doc.get(doc as usize)?.checked_sub(1).map(u64::from)
    }

    /// Returns the number of texts.
    pub(in crate::index) fn len(&self) -> u64 {
        self.texts.len() as u64
    }

    /// Returns the text with an ordinal.
    pub(in crate::index) fn text(&self, ord: u64) -> &[u8] {
        self.texts.get(ord as usize)
    }

    /// Adds the texts of other documents.
    pub(in crate::index) fn with(mut self, other: Self) -> Self {
        if other.len() == 0 {
            return self;
        }
        self.add(other);
        self.beginnings(usize::MAX)
    }

    /// Adds the texts of other documents, out of order.
    fn add(&mut self, other: Self) {
        let n = self.texts.len() as u32;
        self.texts.append(other.texts);
        self.by_doc.resize(self.by_doc.len().max(other.by_doc.len()), 0);
        for (place, of_other) in self.by_doc.iter_mut().zip(other.by_doc) {
            if of_other != 0 {
                *place = n + of_other;
            }
        }
    }

    /// Returns the first `n_bytes` of each text, in order.
    pub(in crate::index) fn beginnings(mut self, n_bytes: usize) -> Self {
        let (texts, ranks) = self.texts.beginnings(n_bytes);
        self.by_doc.iter_mut().filter(|it| **it != 0).for_each(|it| *it = ranks[*it as usize - 1] as u32 + 1);
        Self { texts, by_doc: self.by_doc }
    }
}

impl Segment<'_> {
    /// Returns the documents of whose value at a path the index does not tell the rank: a list in a list is on the way, what
    /// they are sorted by is something that the index does not hold whole, or the document has no terms.
    pub(in crate::index) fn unranked(&self, path: &Path) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        for tag in [Tag::First, Tag::Leading, Tag::LeadingFirst] {
            set.add(&self.sorted_by(path, tag, First::Other)?);
        }
        let steps = path.as_steps();
        for n in 1..steps.len() {
            set.add(&self.with(&terms::path_bytes(&steps[..n]), Tag::Nested, &[])?);
        }
        if let Some(beyond) = &self.beyond {
            set.add(beyond);
        }
        Ok(set)
    }

    /// Returns the documents with a list of several elements on the way to a path.
    pub(in crate::index) fn below_several(&self, path: &Path) -> Result<Set> {
        let mut set = Set::empty(self.max_doc);
        let steps = path.as_steps();
        for n in 1..steps.len() {
            let way = terms::path_bytes(&steps[..n]);
            let longer = 2_u64.to_be_bytes();
            if self.n_with(&way, Tag::List, &[])? != 0 {
                set.add(&self.between(&way, Tag::Length, &longer, None)?);
            }
        }
        Ok(set)
    }

    /// Returns whether the index holds whole all texts and numbers at a path.
    pub(in crate::index) fn has_whole_values(&self, path: &Path) -> Result<bool> {
        Ok(!self.has_any(&bytes(path), Tag::LongText)? && self.has_exact_numbers(path)?)
    }

    /// Returns whether the index holds whole all numbers at a path.
    pub(in crate::index) fn has_exact_numbers(&self, path: &Path) -> Result<bool> {
        let is_exact = |column: &DynamicColumn| match column {
            DynamicColumn::I64(_) => true,
            DynamicColumn::F64(column) => -EXACT < column.min_value() && column.max_value() < EXACT,
            _ => false,
        };
        Ok(self.number_columns(path)?.iter().all(is_exact))
    }

    /// Returns whether any text is at a path, or in a list there.
    pub(in crate::index) fn has_texts(&self, path: &Path) -> Result<bool> {
        self.has_any(&bytes(path), Tag::Text)
    }

    fn has_any(&self, path: &[u8], tag: Tag) -> Result<bool> {
        let prefix = terms::term(path, tag, &[]);
        let mut stream = self.terms.terms().range().ge(&prefix).into_stream().map_err(failed)?;
        Ok(stream.advance() && stream.key().starts_with(&prefix))
    }

    /// Returns the texts at a path, reading all its terms, of documents for which `is_wanted`.
    pub(in crate::index) fn texts_at(
        &self,
        path: &Path,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<PathTexts> {
        self.texts_with(&terms::term(&bytes(path), Tag::Text, &[]), is_wanted)
    }

    /// Returns the beginnings of the texts at a path, of which the index does not hold all texts whole.
    pub(in crate::index) fn beginnings_at(
        &self,
        path: &Path,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<PathTexts> {
        let path = bytes(path);
        let mut found = self.texts_with(&terms::term(&path, Tag::Text, &[]), &is_wanted)?;
        found.add(self.texts_with(&terms::term(&path, Tag::LongText, &[]), &is_wanted)?);
        Ok(found.beginnings(BEGIN_BYTES))
    }

    /// Returns the texts that documents are sorted by, as a tag tells.
    pub(in crate::index) fn texts_sorted_by(&self, path: &Path, tag: Tag) -> Result<PathTexts> {
        self.texts_with(&terms::term(&bytes(path), tag, &[First::Text as u8]), |_| true)
    }

    /// Returns the texts at which an order of the members of each document begins: see
    /// [`Kind::member_values`](crate::Kind::member_values).
    pub(in crate::index) fn member_texts(&self, path: &Path, direction: Direction) -> Result<PathTexts> {
        let tag = match direction {
            Direction::Ascending => Tag::Lowest,
            Direction::Descending => Tag::Highest,
        };
        self.texts_with(&terms::term(&bytes(path), tag, &[]), |_| true)
    }

    /// Returns the numbers at which an order of the members of each document begins.
    pub(in crate::index) fn member_numbers(
        &self,
        path: &Path,
        direction: Direction,
    ) -> Result<Vec<DynamicColumn>> {
        let what = match direction {
            Direction::Ascending => Summed::LowestNumber,
            Direction::Descending => Summed::HighestNumber,
        };
        self.columns_named(&what.column(path))
    }

    /// Returns the documents with a member whose value at a path sorts before what else is told of it: in ascending order
    /// one without a value, otherwise one whose value is neither number nor text.
    pub(in crate::index) fn members_beyond(&self, path: &Path, direction: Direction) -> Result<Set> {
        let odd = self.with(&bytes(path), Tag::Odd, &[])?;
        Ok(match direction {
            Direction::Ascending => odd.or(&self.with(&bytes(path), Tag::Lacking, &[])?),
            Direction::Descending => odd,
        })
    }

    fn texts_with(&self, prefix: &[u8], is_wanted: impl Fn(u32) -> bool) -> Result<PathTexts> {
        let (mut texts, mut by_doc) = (Texts::default(), Vec::new());
        let (mut set, mut block) = (Vec::new(), None);
        self.each_term(prefix, &[], None, |text, info| {
            texts.push(text);
            if by_doc.is_empty() {
                by_doc.resize(self.max_doc as usize, 0);
            }
            set.clear();
            each_posting(&self.terms, info, &mut block, |doc| set.push(doc))?;
            set.retain(|doc| is_wanted(*doc));
            let place = texts.len() as u32;
            set.iter().for_each(|doc| by_doc[*doc as usize] = place);
            Ok(())
        })?;
        Ok(PathTexts { texts, by_doc })
    }

    /// Returns the documents with an object at a path.
    pub(in crate::index) fn objects(&self, path: &Path) -> Result<Set> {
        self.with(&bytes(path), Tag::Object, &[])
    }

    /// Returns the documents with a list at a path.
    pub(in crate::index) fn lists(&self, path: &Path) -> Result<Set> {
        self.with(&bytes(path), Tag::List, &[])
    }

    /// Returns the documents that are sorted by a value of a type, as a tag tells.
    pub(in crate::index) fn sorted_by(&self, path: &Path, tag: Tag, ty: First) -> Result<Set> {
        self.with(&bytes(path), tag, &[ty as u8])
    }

    /// Returns the documents with `false` and with `true` at a path.
    pub(in crate::index) fn booleans(&self, path: &Path) -> Result<[Set; 2]> {
        let path = bytes(path);
        Ok([self.with(&path, Tag::Boolean, &[0])?, self.with(&path, Tag::Boolean, &[1])?])
    }

    /// Returns the documents with any value at a path.
    pub(super) fn present(&self, path: &Path) -> Result<Set> {
        let at = bytes(path);
        let mut found = self.with(&at, Tag::Present, &[])?;
        let others: [(Tag, &[u8]); 5] = [
            (Tag::Object, &[]),
            (Tag::List, &[]),
            (Tag::Null, &[]),
            (Tag::Boolean, &[0]),
            (Tag::Boolean, &[1]),
        ];
        let mut block = None;
        for (tag, value) in others {
            if let Some(info) = self.info(&terms::term(&at, tag, value))? {
                self.add_postings(&info, &mut block, &mut found)?;
            }
        }
        for column in self.number_columns(path)? {
            match column.column_index() {
                ColumnIndex::Empty { .. } => {}
                ColumnIndex::Full => return Ok(Set::full(self.max_doc)),
                ColumnIndex::Optional(index) => index.iter_non_null_docs().for_each(|doc| found.insert(doc)),
                index @ ColumnIndex::Multivalued(_) => {
                    (0..self.max_doc).filter(|doc| index.has_value(*doc)).for_each(|doc| found.insert(doc));
                }
            }
        }
        Ok(found)
    }

    /// Returns whether a list is at a path or on the way to it.
    pub(super) fn has_list(&self, path: &Path) -> Result<bool> {
        let mut ways = (1..=path.as_steps().len()).map(|n| terms::path_bytes(&path.as_steps()[..n]));
        if self.kind.search == Search::Values {
            return ways.try_fold(false, |has, way| Ok(has || self.has_any(&way, Tag::Length)?));
        }
        ways.try_fold(false, |has, way| Ok(has || self.n_with(&way, Tag::List, &[])? != 0))
    }

    /// Returns the columns of the numbers at a path.
    pub(in crate::index) fn number_columns(&self, path: &Path) -> Result<Vec<DynamicColumn>> {
        self.columns_named(&path_column_name(NUMBERS, path))
    }

    /// Returns the columns of the numbers that documents are sorted by, as a tag tells.
    pub(in crate::index) fn numbers_sorted_by(&self, path: &Path, tag: Tag) -> Result<Vec<DynamicColumn>> {
        self.columns_named(&column_name_of(tag, path))
    }

    fn columns_named(&self, name: &str) -> Result<Vec<DynamicColumn>> {
        let handles = self.reader.fast_fields().dynamic_column_handles(name)?;
        handles.iter().map(|it| it.open().map_err(failed)).collect()
    }
}
