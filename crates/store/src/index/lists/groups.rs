//! The number of entries of a list by the texts at a path of the records that have them, in one pass over the entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::walk::{Lists, Part, Way};
use crate::index::condition::Segment;
use crate::index::entries::{hash_column, hash_of};
use crate::index::set::Set;
use crate::index::terms::{self, Tag};
use crate::index::values::each_value;
use crate::lists::{Grouping, Wanted};
use crate::{Path, Result, View};

/// Different texts, numbered in the order in which they are first seen.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, u32>,
    all: Vec<String>,
}

/// The numbers of the texts of a segment's documents.
struct ByDocument {
    /// For each document, where its numbers begin; they end where those of the next one begin.
    begins: Vec<u32>,
    numbers: Vec<u32>,
}

impl Lists<'_> {
    /// Counts the wanted entries by text; `None` where terms do not hold the texts.
    pub(super) fn count_by(
        &self,
        view: &View<'_>,
        by: Grouping<'_>,
        wanted: &mut Wanted<'_>,
    ) -> Result<Option<BTreeMap<String, u64>>> {
        let mut texts = Texts::default();
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let has_long =
                || part.segment.with_long_text(by.path, "").map(|it| !it.and(&part.within).is_empty());
            let untold = part.segment.untold_values(by.path)?.and(&part.within);
            if !untold.is_empty() || has_long()? {
                return Ok(None);
            }
            parts.push(part.segment.texts_by_document(by.path, &part.within, &mut texts)?);
        }
        for other in &self.others {
            for text in &*other.texts {
                texts.number(text);
            }
        }
        by.check(texts.all.len())?;
        let mut counts = vec![0; texts.all.len()];
        let selected: Vec<bool> = self.traits.iter().map(|it| wanted.has_traits(it)).collect();
        if matches!(wanted, Wanted::Entries { .. }) {
            self.add_by_walk(view, &selected, wanted, &parts, &mut texts, &mut counts)?;
        } else {
            for traits in (0..self.traits.len()).filter(|it| selected[*it]) {
                view.check_pace()?;
                self.add_by_hashes(traits, &parts, &mut texts, &mut counts)?;
            }
        }
        Ok(Some(texts.all.into_iter().zip(counts).filter(|it| it.1 != 0).collect()))
    }

    /// Adds the entries that have traits, by their hashes.
    fn add_by_hashes(
        &self,
        traits: usize,
        parts: &[ByDocument],
        texts: &mut Texts,
        counts: &mut [u64],
    ) -> Result<()> {
        let column = hash_column(self.number, &self.traits[traits]);
        let mut found: Vec<(u32, i64)> = Vec::new();
        for (part, by_document) in self.parts.iter().zip(parts) {
            if part.traits.contains(&traits) {
                part.each_hash(&column, |doc, hash| {
                    found.extend(by_document.of(doc).iter().map(|text| (*text, hash)));
                })?;
            }
        }
        for other in self.others.iter().filter(|it| it.traits == self.traits[traits]) {
            let hash = hash_of(&other.group);
            found.extend(other.texts.iter().map(|it| (texts.number(it), hash)));
        }
        found.sort_unstable();
        found.dedup();
        found.iter().for_each(|(text, _)| counts[*text as usize] += 1);
        Ok(())
    }

    /// Adds the wanted entries, each looked at.
    fn add_by_walk(
        &self,
        view: &View<'_>,
        selected: &[bool],
        wanted: &mut Wanted<'_>,
        parts: &[ByDocument],
        texts: &mut Texts,
        counts: &mut [u64],
    ) -> Result<()> {
        let mut of_entry = BTreeSet::new();
        self.walk(&[], Way::Forward, selected, |passing| {
            view.check_pace()?;
            if !wanted.has(|| super::apart_of(&passing.group), &self.traits[passing.traits]) {
                return Ok(true);
            }
            of_entry.clear();
            for (number, info, _) in &passing.terms {
                let Part { segment, within, .. } = &self.parts[*number];
                segment.each_of(info, |doc| {
                    if within.has(doc) {
                        of_entry.extend(parts[*number].of(doc));
                    }
                })?;
            }
            for other in &passing.others {
                of_entry.extend(self.others[*other].texts.iter().map(|it| texts.number(it)));
            }
            of_entry.iter().for_each(|text| counts[*text as usize] += 1);
            Ok(true)
        })
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}

impl ByDocument {
    /// Arranges pairs of a document and a number.
    fn of_pairs(n_documents: u32, pairs: &mut Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut begins = Vec::with_capacity(n_documents as usize + 1);
        for (at, (doc, _)) in pairs.iter().enumerate() {
            begins.resize((*doc as usize + 1).max(begins.len()), at as u32);
        }
        begins.resize(n_documents as usize + 1, pairs.len() as u32);
        Self { begins, numbers: pairs.iter().map(|it| it.1).collect() }
    }

    fn of(&self, doc: u32) -> &[u32] {
        let at = doc as usize;
        &self.numbers[self.begins[at] as usize..self.begins[at + 1] as usize]
    }
}

impl Segment<'_> {
    /// Returns the texts at a path of the documents of a set.
    fn texts_by_document(&self, path: &Path, set: &Set, texts: &mut Texts) -> Result<ByDocument> {
        let mut pairs = Vec::new();
        let prefix = terms::term(&terms::path_bytes(path.as_steps()), Tag::Text, &[]);
        self.each_term(&prefix, &[], None, |text, info| {
            let mut docs = Vec::new();
            self.each_of(info, |doc| docs.extend(Some(doc).filter(|it| set.has(*it))))?;
            if !docs.is_empty() {
                let number = texts.number(&String::from_utf8_lossy(text));
                pairs.extend(docs.into_iter().map(|doc| (doc, number)));
            }
            Ok(())
        })?;
        Ok(ByDocument::of_pairs(self.reader().max_doc(), &mut pairs))
    }
}

impl Part<'_> {
    /// Passes the hashes of the entries of each relevant document.
    fn each_hash(&self, column: &str, visit: impl FnMut(u32, i64)) -> Result<()> {
        if let Some(column) = self.segment.reader().fast_fields().column_opt::<i64>(column)? {
            each_value(&column, &self.within, visit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_document() {
        let by_document = ByDocument::of_pairs(5, &mut vec![(3, 7), (1, 2), (1, 0), (1, 2)]);
        let found: Vec<&[u32]> = (0..5).map(|doc| by_document.of(doc)).collect();
        assert_eq!(found, [&[] as &[u32], &[0, 2], &[], &[7], &[]]);
    }
}
