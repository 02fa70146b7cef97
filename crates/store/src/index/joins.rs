//! Joins from the index: for each path by which records are joined, a column with the hashes of its texts, of which the
//! documents are kept in the order of the hashes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::postings::TermInfo;

use super::condition::{Bounds, Segment};
use super::found::{Found, parse};
use super::join_column::JoinColumn;
use super::layout::{KEY, join_name};
use super::set::Set;
use super::terms::{self, Tag};
use super::values::each_value;
use crate::field_values::check_number;
use crate::owners::{ByValue, OwnersOf, join_hashes};
use crate::{JoinKeys, Owners, Path, Result, View};

/// Bodies read in one step.
const STEP_BODIES: usize = 500;
/// Number of a document that has no owner.
const NOBODY: u32 = u32::MAX;

impl Segment<'_> {
    /// Returns the documents whose text at a path is one of some; undecided if the kind is not joined by the path.
    pub(super) fn joined(&self, path: &Path, keys: &JoinKeys) -> Result<Bounds> {
        let n_documents = self.n_documents();
        let Some(column) = self.join_column(path)? else {
            return Ok(Bounds { low: Set::empty(n_documents), high: Some(Set::full(n_documents)) });
        };
        let mut set = Set::empty(n_documents);
        column.each_with(&keys.hashes, |_, doc| set.insert(doc));
        Ok(Bounds::exact(set))
    }

    /// Returns the column of a path; `None` if the kind is not joined by it.
    fn join_column(&self, path: &Path) -> Result<Option<Arc<JoinColumn>>> {
        let Some(place) = self.kind().joins.iter().position(|it| path.is_dotted(it)) else { return Ok(None) };
        let name = join_name(place);
        let read = || {
            let column = self.reader().fast_fields().column_opt::<i64>(&name)?;
            let mut pairs = Vec::with_capacity(self.n_documents() as usize);
            if let Some(column) = column {
                each_value(&column, &Set::full(self.n_documents()), |doc, hash| pairs.push((hash, doc)));
            }
            Ok(JoinColumn::of(pairs))
        };
        self.decoded_join(&name, read).map(Some)
    }

    /// Returns the number of the owner that each document of a set names at a path.
    fn owner_of_each(&self, owners: &Owners, link: &JoinColumn, set: &Set) -> Vec<u32> {
        let mut owner_of = vec![NOBODY; self.n_documents() as usize];
        link.each_with(&owners.hashes, |at, doc| {
            if set.has(doc) {
                owner_of[doc as usize] = owners.numbers[at];
            }
        });
        owner_of
    }
}

/// A segment with the owner of each of its documents.
struct Owned<'f, 's> {
    segment: &'f Segment<'s>,
    owner_of: Vec<u32>,
}

impl Found<'_> {
    /// Returns the hashes of the texts at a path, in a run for each segment; `None` if the kind is not joined by it.
    pub(crate) fn join_keys(&self, path: &Path) -> Result<Option<Vec<i64>>> {
        let mut hashes: Vec<i64> = Vec::new();
        for (segment, set) in &self.segments {
            let Some(column) = segment.join_column(path)? else { return Ok(None) };
            hashes.extend(column.iter().filter(|it| set.has(it.1)).map(|it| it.0));
        }
        self.tail.iter().for_each(|it| hashes.extend(join_hashes(&it.body, path)));
        Ok(Some(hashes))
    }

    /// Returns the hashes of the texts at a path with the number of the owner that the record names at `link`; `None`
    /// if the kind is not joined by both.
    pub(crate) fn owned(&self, owners: &Owners, link: &Path, path: &Path) -> Result<Option<Vec<(i64, u32)>>> {
        let mut pairs: Vec<(i64, u32)> = Vec::new();
        for (segment, set) in &self.segments {
            let Some(link) = segment.join_column(link)? else { return Ok(None) };
            let Some(own) = segment.join_column(path)? else { return Ok(None) };
            let owner_of = segment.owner_of_each(owners, &link, set);
            let named = own.iter().map(|(hash, doc)| (hash, owner_of[doc as usize]));
            pairs.extend(named.filter(|it| it.1 != NOBODY));
        }
        for changed in self.tail.iter() {
            owners.add_pairs(&changed.body, link, path, &mut pairs);
        }
        Ok(Some(pairs))
    }

    /// Counts owners by the values at paths; `None` if the kind is not joined by `link`, or a path has no terms.
    ///
    /// Errors: a path has more than `most` values.
    pub(crate) fn count_owners(
        &self,
        view: &mut View<'_>,
        owners: &Owners,
        link: &Path,
        paths: &[Path],
        most: u64,
    ) -> Result<Option<Vec<ByValue>>> {
        if !paths.iter().all(|it| terms::is_indexed(self.kind, it)) {
            return Ok(None);
        }
        let (mut owned, mut unlisted) = (Vec::new(), Vec::new());
        for (segment, set) in &self.segments {
            let Some(column) = segment.join_column(link)? else { return Ok(None) };
            // The values of some documents are not among the terms.
            let mut others = segment.with_term(&terms::beyond_term())?;
            for path in paths {
                others.add(&segment.with_long_text(path, "")?);
            }
            let others = others.and(set);
            let mut owner_of = segment.owner_of_each(owners, &column, set);
            let keys = segment.reader().fast_fields().i64(KEY)?;
            for doc in others.iter() {
                let owner = std::mem::replace(&mut owner_of[doc as usize], NOBODY);
                unlisted.extend(keys.first(doc).filter(|_| owner != NOBODY));
            }
            owned.push(Owned { segment, owner_of });
        }
        let mut rest = vec![OwnersOf::new(); paths.len()];
        self.tail.iter().for_each(|it| owners.add_named(&it.body, link, paths, &mut rest));
        for step in unlisted.chunks(STEP_BODIES) {
            for record in view.by_keys(self.kind, step)? {
                let body = parse(self.kind, &record.id, &record.body)?;
                owners.add_named(&body, link, paths, &mut rest);
            }
            view.check_pace()?;
        }
        let mut all = Vec::with_capacity(paths.len());
        for (path, rest) in paths.iter().zip(rest) {
            all.push(counted(&owned, owners, path, rest, most)?);
            view.check_pace()?;
        }
        Ok(Some(all))
    }
}

/// Counts the owners that have each value at a path, by terms; `rest` has those of the records without.
fn counted(
    owned: &[Owned<'_, '_>],
    owners: &Owners,
    path: &Path,
    rest: OwnersOf,
    most: u64,
) -> Result<ByValue> {
    let last = vec![0; owners.n_owners as usize];
    let mut tally = Tally { counts: ByValue::new(), last, number: 0, rest };
    const BOOLEANS: [&str; 2] = ["false", "true"];
    // A text may be a term of several segments, and may be written as a boolean is.
    let mut texts: BTreeMap<String, Vec<(usize, TermInfo)>> = BTreeMap::new();
    texts.extend(BOOLEANS.map(|it| (it.to_owned(), Vec::new())));
    let prefix = terms::term(&terms::path_bytes(path.as_steps()), Tag::Text, &[]);
    for (at, it) in owned.iter().enumerate() {
        it.segment.each_term(&prefix, &[], None, |text, info| {
            let text = String::from_utf8_lossy(text).into_owned();
            texts.entry(text).or_default().push((at, info.clone()));
            Ok(())
        })?;
    }
    for (text, infos) in &texts {
        tally.add(text, |count| {
            for (at, info) in infos {
                let Owned { segment, owner_of } = &owned[*at];
                segment.each_of(info, |doc| count(owner_of[doc as usize]))?;
            }
            let Some(number) = BOOLEANS.iter().position(|it| it == text) else { return Ok(()) };
            for Owned { segment, owner_of } in owned {
                segment.booleans(path)?[number].iter().for_each(|doc| count(owner_of[doc as usize]));
            }
            Ok(())
        })?;
        check_number(tally.counts.len(), path, most)?;
    }
    for (value, owners) in std::mem::take(&mut tally.rest) {
        tally.counts.insert(value, owners.len() as u64);
    }
    check_number(tally.counts.len(), path, most)?;
    Ok(tally.counts)
}

/// The owners counted so far.
struct Tally {
    counts: ByValue,
    /// The number of the value that each owner was last counted for.
    last: Vec<u32>,
    number: u32,
    /// Owners that are counted beside terms, by value.
    rest: OwnersOf,
}

impl Tally {
    /// Adds a value, with the owners that `each` passes on.
    fn add(&mut self, value: &str, each: impl FnOnce(&mut dyn FnMut(u32)) -> Result<()>) -> Result<()> {
        self.number += 1;
        let mut n_owners = 0;
        let mut count = |owner: u32| {
            let is_new = owner != NOBODY
                && std::mem::replace(&mut self.last[owner as usize], self.number) != self.number;
            n_owners += u64::from(is_new);
        };
        each(&mut count)?;
        self.rest.remove(value).into_iter().flatten().for_each(&mut count);
        if n_owners != 0 {
            self.counts.insert(value.to_owned(), n_owners);
        }
        Ok(())
    }
}
