//! Joins from the index: for each path by which records are joined, a column with the hashes of its texts, of which the
//! documents are kept in the order of the hashes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::postings::TermInfo;

use super::condition::{Bounds, Segment};
use super::found::{Found, parse};
use super::join_column::JoinColumn;
use super::layout::{KEY, join_name};
use super::parallel::{Threads, on_each};
use super::set::Set;
use super::terms::{self, Tag};
use super::values::each_value;
use crate::field_values::check_number;
use crate::owners::{ByValue, OwnersOf, join_hashes};
use crate::{JoinKeys, Owners, Path, Result, View};

/// Bodies read in one step.
const STEP_BODIES: usize = 500;
/// Number of documents from which segments are joined, and paths counted, on several threads.
const HEAVY_JOIN: u64 = 200_000;
/// Hashes are looked up by document when at most one document in so many is in question; otherwise all are read in order.
const FEW: u64 = 16;
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

    /// Returns the name of the column of a path; `None` if the kind is not joined by it.
    fn join_name(&self, path: &Path) -> Option<String> {
        self.kind().joins.iter().position(|it| path.is_dotted(it)).map(join_name)
    }

    /// Returns the column of a path; `None` if the kind is not joined by it.
    fn join_column(&self, path: &Path) -> Result<Option<Arc<JoinColumn>>> {
        let Some(name) = self.join_name(path) else { return Ok(None) };
        let read = || {
            let mut pairs = Vec::with_capacity(self.n_documents() as usize);
            self.each_hash_of(&name, &Set::full(self.n_documents()), |doc, hash| pairs.push((hash, doc)))?;
            Ok(JoinColumn::of(pairs))
        };
        self.decoded_join(&name, read).map(Some)
    }

    /// Calls `visit` with each document of a set and each of its hashes in a column, in the order of documents.
    fn each_hash_of(&self, name: &str, set: &Set, visit: impl FnMut(u32, i64)) -> Result<()> {
        if let Some(column) = self.reader().fast_fields().column_opt::<i64>(name)? {
            each_value(&column, set, visit);
        }
        Ok(())
    }

    /// Calls `visit` with each hash at a path of the documents of a set, and its document: in the order of hashes unless
    /// they are few. False if the kind is not joined by the path.
    fn each_hash(&self, path: &Path, set: &Set, mut visit: impl FnMut(i64, u32)) -> Result<bool> {
        let Some(name) = self.join_name(path) else { return Ok(false) };
        if set.len() * FEW < u64::from(self.n_documents()) {
            self.each_hash_of(&name, set, |doc, hash| visit(hash, doc))?;
        } else if let Some(column) = self.join_column(path)? {
            column.each_of(set, visit);
        }
        Ok(true)
    }

    /// Returns the number of the owner that each document of a set names at a path, and the documents that name one;
    /// `None` if the kind is not joined by the path.
    fn owner_of_each(&self, owners: &Owners, link: &Path, set: &Set) -> Result<Option<(Vec<u32>, Set)>> {
        let Some(column) = self.join_column(link)? else { return Ok(None) };
        let mut owner_of = vec![NOBODY; self.n_documents() as usize];
        let mut docs = Set::empty(self.n_documents());
        column.each_with(&owners.hashes, |at, doc| {
            if set.has(doc) {
                owner_of[doc as usize] = owners.numbers[at];
                docs.insert(doc);
            }
        });
        Ok(Some((owner_of, docs)))
    }
}

/// A segment with the owner of each of its documents.
struct Owned<'f, 's> {
    segment: &'f Segment<'s>,
    owner_of: Vec<u32>,
}

impl<'s> Found<'s> {
    /// Runs `work` on each segment, on several threads if there are many documents. `None` if it returns that for one.
    fn in_segments<T: Send>(
        &self,
        work: impl Fn(&(Segment<'s>, Set)) -> Result<Option<T>> + Sync,
    ) -> Result<Option<Vec<T>>> {
        let n_documents: u64 = self.segments.iter().map(|it| u64::from(it.0.n_documents())).sum();
        let threads = Threads::for_documents(n_documents, HEAVY_JOIN);
        let parts = on_each(&self.segments, |it| it.0.n_documents(), threads, |it| work(it))?;
        Ok(parts.into_iter().collect())
    }

    /// Returns the hashes of the texts at a path, in sorted runs for the most part; `None` if the kind is not joined by it.
    pub(crate) fn join_keys(&self, path: &Path) -> Result<Option<Vec<i64>>> {
        let runs = self.in_segments(|(segment, set)| {
            let mut hashes = Vec::with_capacity(set.len() as usize);
            let is_joined = segment.each_hash(path, set, |hash, _| hashes.push(hash))?;
            Ok(is_joined.then_some(hashes))
        })?;
        let Some(runs) = runs else { return Ok(None) };
        let mut hashes = runs.concat();
        self.tail.iter().for_each(|it| hashes.extend(join_hashes(&it.body, path)));
        Ok(Some(hashes))
    }

    /// Returns the hashes of the texts at a path with the number of the owner that the record names at `link`; `None`
    /// if the kind is not joined by both.
    pub(crate) fn owned(&self, owners: &Owners, link: &Path, path: &Path) -> Result<Option<Vec<(i64, u32)>>> {
        let runs = self.in_segments(|(segment, set)| {
            let Some((owner_of, docs)) = segment.owner_of_each(owners, link, set)? else { return Ok(None) };
            let mut pairs = Vec::with_capacity(docs.len() as usize);
            let is_joined =
                segment.each_hash(path, &docs, |hash, doc| pairs.push((hash, owner_of[doc as usize])))?;
            Ok(is_joined.then_some(pairs))
        })?;
        let Some(runs) = runs else { return Ok(None) };
        let mut pairs = runs.concat();
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
        let parts = self.in_segments(|(segment, set)| {
            let Some((mut owner_of, docs)) = segment.owner_of_each(owners, link, set)? else {
                return Ok(None);
            };
            // The values of some documents are not among the terms.
            let mut others = segment.with_term(&terms::beyond_term())?;
            for path in paths {
                others.add(&segment.with_long_text(path, "")?);
            }
            let keys = segment.reader().fast_fields().i64(KEY)?;
            let mut unlisted = Vec::new();
            for doc in others.and(&docs).iter() {
                owner_of[doc as usize] = NOBODY;
                unlisted.extend(keys.first(doc));
            }
            Ok(Some((owner_of, unlisted)))
        })?;
        let Some(parts) = parts else { return Ok(None) };
        let (mut owned, mut unlisted) = (Vec::new(), Vec::new());
        for ((segment, _), (owner_of, of_segment)) in self.segments.iter().zip(parts) {
            owned.push(Owned { segment, owner_of });
            unlisted.extend(of_segment);
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
        let asked: Vec<(&Path, OwnersOf)> = paths.iter().zip(rest).collect();
        let n_documents = owned.iter().map(|it| it.owner_of.len() as u64).sum();
        let count = |(path, rest): &(&Path, OwnersOf)| counted(&owned, owners, path, rest, most);
        let counts = on_each(&asked, |_| 1, Threads::for_documents(n_documents, HEAVY_JOIN), count)?;
        view.check_pace()?;
        Ok(Some(counts))
    }
}

/// Counts the owners that have each value at a path, by terms; `rest` has those of the records without.
fn counted(
    owned: &[Owned<'_, '_>],
    owners: &Owners,
    path: &Path,
    rest: &OwnersOf,
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
    for (value, owners) in rest.iter().filter(|it| !texts.contains_key(it.0)) {
        tally.counts.insert(value.clone(), owners.len() as u64);
    }
    check_number(tally.counts.len(), path, most)?;
    Ok(tally.counts)
}

/// The owners counted so far.
struct Tally<'r> {
    counts: ByValue,
    /// The number of the value that each owner was last counted for.
    last: Vec<u32>,
    number: u32,
    /// Owners that are counted beside terms, by value.
    rest: &'r OwnersOf,
}

impl Tally<'_> {
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
        self.rest.get(value).into_iter().flatten().copied().for_each(&mut count);
        if n_owners != 0 {
            self.counts.insert(value.to_owned(), n_owners);
        }
        Ok(())
    }
}
