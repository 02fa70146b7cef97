//! The values at a path in a whole segment, for sorts by paths without a column.

use tantivy::columnar::{ColumnIndex, DynamicColumn};

use super::{Segment, bytes, each_posting, failed};
use crate::index::layout::{NUMBERS, path_column_name};
use crate::index::set::Set;
use crate::index::terms::{self, EXACT, Tag};
use crate::index::texts::Texts;
use crate::{Path, Result};

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

    /// Returns whether no document has a text.
    pub(in crate::index) fn is_empty(&self) -> bool {
        self.by_doc.is_empty()
    }

    /// Returns the text with an ordinal.
    pub(in crate::index) fn text(&self, ord: u64) -> &[u8] {
        self.texts.get(ord as usize)
    }
}

impl Segment<'_> {
    /// Returns whether every document has at most one value at a path, without a list on the way, and the index holds
    /// it whole.
    pub(in crate::index) fn has_one_exact_value(&self, path: &Path) -> Result<bool> {
        if self.beyond.is_some() || !terms::is_indexed(self.kind, path) || self.has_list(path)? {
            return Ok(false);
        }
        if self.has_any(path, Tag::LongText)? {
            return Ok(false);
        }
        let is_exact = |column: &DynamicColumn| match column {
            DynamicColumn::I64(_) => true,
            DynamicColumn::F64(column) => -EXACT < column.min_value() && column.max_value() < EXACT,
            _ => false,
        };
        Ok(self.number_columns(path)?.iter().all(is_exact))
    }

    /// Returns whether any text is at a path.
    pub(in crate::index) fn has_texts(&self, path: &Path) -> Result<bool> {
        self.has_any(path, Tag::Text)
    }

    fn has_any(&self, path: &Path, tag: Tag) -> Result<bool> {
        let prefix = terms::term(&bytes(path), tag, &[]);
        let mut stream = self.terms.terms().range().ge(&prefix).into_stream().map_err(failed)?;
        Ok(stream.advance() && stream.key().starts_with(&prefix))
    }

    /// Returns the texts at a path, reading all its terms.
    pub(in crate::index) fn path_texts(&self, path: &Path) -> Result<PathTexts> {
        let (mut texts, mut by_doc) = (Texts::default(), Vec::new());
        let (mut set, mut block) = (Vec::new(), None);
        self.each_term(&terms::term(&bytes(path), Tag::Text, &[]), &[], None, |text, info| {
            texts.push(text);
            if by_doc.is_empty() {
                by_doc.resize(self.max_doc as usize, 0);
            }
            set.clear();
            each_posting(&self.terms, info, &mut block, |doc| set.push(doc))?;
            let place = texts.len() as u32;
            set.iter().for_each(|doc| by_doc[*doc as usize] = place);
            Ok(())
        })?;
        Ok(PathTexts { texts, by_doc })
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

    /// Returns the documents with an object at a path.
    pub(in crate::index) fn objects(&self, path: &Path) -> Result<Set> {
        self.with(&bytes(path), Tag::Object, &[])
    }

    /// Returns whether a list is at a path or on the way to it.
    pub(super) fn has_list(&self, path: &Path) -> Result<bool> {
        for n in 1..=path.as_steps().len() {
            if self.n_with(&terms::path_bytes(&path.as_steps()[..n]), Tag::List, &[])? != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the columns of the numbers at a path.
    pub(in crate::index) fn number_columns(&self, path: &Path) -> Result<Vec<DynamicColumn>> {
        let name = path_column_name(NUMBERS, path);
        let handles = self.reader.fast_fields().dynamic_column_handles(&name)?;
        handles.iter().map(|it| it.open().map_err(failed)).collect()
    }
}
