//! Tests of texts that are no whole terms: the index stores them.

use tantivy::TantivyDocument;
use tantivy::schema::Value as _;

use super::{Bounds, Segment, bytes, failed};
use crate::index::layout::stored_prefix;
use crate::index::parallel::{Threads, on_each};
use crate::index::set::Set;
use crate::index::terms::{self, BEGIN_BYTES, Tag, after};
use crate::{Path, Result};

/// Documents whose texts one thread reads in a row.
const SHARE_DOCS: usize = 4_096;

impl Segment<'_> {
    /// Returns the documents with a long text at a path that may begin so.
    pub(in crate::index) fn with_long_text(&self, path: &Path, begin: &str) -> Result<Set> {
        let begin = &begin.as_bytes()[..begin.len().min(BEGIN_BYTES)];
        self.between(&bytes(path), Tag::LongText, begin, after(begin).as_deref())
    }

    /// Returns bounds with the documents of `found` and those with a long text at a path that passes a test, out of
    /// `may`; undecided unless such texts are read.
    pub(super) fn beside_long_texts(
        &self,
        path: &Path,
        test: impl Fn(&str) -> bool + Sync,
        mut found: Set,
        mut may: Set,
    ) -> Result<Bounds> {
        if self.reads_long_texts {
            let passed;
            (passed, may) = self.tested_long_texts(path, &test, &may)?;
            found.add(&passed);
        }
        Ok(self.said_between(found, (!may.is_empty()).then_some(may)))
    }

    /// Tests the long texts at a path. Returns the documents with one that passes, and, of the others, those with one
    /// that is not stored.
    pub(in crate::index) fn tested_long_texts(
        &self,
        path: &Path,
        test: &(impl Fn(&str) -> bool + Sync),
        docs: &Set,
    ) -> Result<(Set, Set)> {
        let prefix = stored_prefix(&terms::column_key(path.as_steps()));
        let docs: Vec<u32> = docs.iter().collect();
        let shares: Vec<&[u32]> = docs.chunks(SHARE_DOCS).collect();
        let tested = on_each(
            &shares,
            |it| it.len() as u32,
            Threads::Several,
            |share| {
                let store = self.reader.get_store_reader(1).map_err(failed)?;
                let (mut passed, mut unknown) = (Vec::new(), Vec::new());
                for doc in *share {
                    let stored: TantivyDocument = store.get(*doc)?;
                    let values = stored.get_all(self.layout.long_texts).filter_map(|it| it.as_str());
                    let texts: Vec<&str> = values.filter_map(|it| it.strip_prefix(prefix.as_str())).collect();
                    if texts.iter().any(|it| !it.is_empty() && test(it)) {
                        passed.push(*doc);
                    } else if texts.iter().any(|it| it.is_empty()) {
                        unknown.push(*doc);
                    }
                }
                Ok((passed, unknown))
            },
        )?;
        let (mut passed, mut unknown) = (Set::empty(self.max_doc), Set::empty(self.max_doc));
        for (of_share, unknown_of_share) in tested {
            of_share.into_iter().for_each(|doc| passed.insert(doc));
            unknown_of_share.into_iter().for_each(|doc| unknown.insert(doc));
        }
        Ok((passed, unknown))
    }
}
