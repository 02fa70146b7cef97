//! The operations on topics and their members (sections 3 and 4 of the contract), in one transaction.
//!
//! An [`Edit`] reads each topic it touches once and writes each changed one once, at its end.

use std::collections::BTreeMap;

use pinakes_store::{Txn, View};
use serde_json::json;

use crate::error::{ConclaveError, Result};
use crate::facts::{Ref, Same};
use crate::kinds::{ARC, POINTS, REVISION, TOPIC, UNIT};
use crate::model::{Arc, Metadata, Occurrence, Topic, key, set, target};
use crate::names::{DEFAULT_SCOPE, LABEL};

/// Maximum number of arcs that are relabelled with the topic they point at, in the same transaction; more are
/// relabelled by [`update_labels`].
const FOLLOWING_LABELS_MAX: u32 = 200;
/// Maximum number of revisions kept per topic.
const REVISIONS_MAX: u64 = 50;
/// Maximum number of members of a topic for which revisions are kept: for larger topics, storing the former state would
/// cost more than the change.
const REVISED_MEMBERS_MAX: usize = 5_000;

/// A topic as it was read, with version and sequence of its record.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The topic.
    pub(crate) topic: Topic,
    /// Version of the record.
    pub(crate) version: u64,
    /// Number of its last change.
    pub(crate) sequence: u64,
}

/// Reads a topic.
pub(crate) fn find(view: &mut View<'_>, map: &str, id: &str) -> Result<Option<Found>> {
    let Some(record) = view.get(&TOPIC, &key(map, id))? else { return Ok(None) };
    let topic = Topic::stored(&record.body)?;
    Ok(Some(Found { topic, version: record.version, sequence: record.sequence }))
}

/// Returns the topic that owns an arc.
pub(crate) fn owner_of_arc(view: &mut View<'_>, map: &str, arc: &str) -> Result<Option<String>> {
    let named = view.by_identifier(ARC, &format!("{map}/{arc}"))?;
    if let Some((_, id)) = named.into_iter().find(|it| it.0 == TOPIC.name) {
        return Ok(id.split_once('/').map(|it| it.1.to_owned()));
    }
    let Some((own, _)) = arc.rsplit_once('~') else { return Ok(None) };
    let is_there = find(view, map, own)?.is_some_and(|it| it.topic.arcs.iter().any(|it| it.id == arc));
    Ok(is_there.then(|| own.to_owned()))
}

/// Returns the ids, in order, of topics with arcs that point at a topic.
pub(crate) fn pointing_topics(view: &mut View<'_>, map: &str, reference: &str) -> Result<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    let all = target(map, reference, &[""]);
    let (low, high) = range(&all);
    let mut cursor = (low.clone(), String::new());
    loop {
        let links = view.links_within(&TOPIC, POINTS, (&low, &high), (&cursor.0, &cursor.1), 1_000)?;
        let Some(last) = links.last() else { break };
        cursor = last.clone();
        out.extend(links.into_iter().filter_map(|(_, id)| Some(id.split_once('/')?.1.to_owned())));
        // Links are ordered by type and role, so ids can be sorted only when all are known.
        if out.len() > 2_000_000 {
            return Err(ConclaveError::rule("more than 2,000,000 associations point there"));
        }
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// Returns the range of keys that begin with `prefix`, which ends with a separator.
pub(crate) fn range(prefix: &str) -> (String, String) {
    let stem = prefix.strip_suffix(UNIT).unwrap_or(prefix);
    (prefix.to_owned(), format!("{stem} "))
}

/// The author of a change, and its time.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    /// Name of the user.
    pub(crate) name: String,
    /// Milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// Scopes that the author may not see: their contents stay as they are.
    pub(crate) hidden: Vec<String>,
}

impl Author {
    fn sees(&self, scope: &str) -> bool {
        !self.hidden.iter().any(|it| it == scope)
    }
}

/// What is kept of the previous state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    /// A revision of each changed topic.
    Kept,
    /// Nothing: for imports and bulk loads.
    None,
}

/// A topic that the edit holds.
struct Sheet {
    /// State after the edit; `None` if there is no such topic, or if it is removed.
    now: Option<Topic>,
    before: Option<Found>,
    is_changed: bool,
}

/// Changes to a map, in one transaction.
pub(crate) struct Edit<'t, 'v> {
    txn: &'t mut Txn<'v>,
    map: &'t str,
    author: &'t Author,
    history: History,
    sheets: BTreeMap<String, Sheet>,
    /// Topics that were merged into others: former id to current one.
    merged: BTreeMap<String, String>,
}

/// What an edit did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Topics written.
    pub(crate) n_written: usize,
    /// Topics removed.
    pub(crate) n_removed: usize,
    /// Arcs that were relabelled.
    pub(crate) n_labels: usize,
    /// Whether labels are stale, because too many arcs point at a topic whose label changed.
    pub(crate) has_stale_labels: bool,
}

impl<'t, 'v> Edit<'t, 'v> {
    /// Begins an edit.
    pub(crate) fn new(txn: &'t mut Txn<'v>, map: &'t str, author: &'t Author, history: History) -> Self {
        Self { txn, map, author, history, sheets: BTreeMap::new(), merged: BTreeMap::new() }
    }

    /// Returns the name of the map.
    pub(crate) fn map(&self) -> &'t str {
        self.map
    }

    fn sheet(&mut self, id: &str) -> Result<&mut Sheet> {
        if !self.sheets.contains_key(id) {
            let before = find(self.txn, self.map, id)?;
            let now = before.as_ref().map(|it| it.topic.clone());
            self.sheets.insert(id.to_owned(), Sheet { now, before, is_changed: false });
        }
        self.sheets.get_mut(id).ok_or_else(|| ConclaveError::not_found(id))
    }

    /// Returns the topic in its current state within the edit.
    pub(crate) fn get(&mut self, id: &str) -> Result<Option<&Topic>> {
        Ok(self.sheet(id)?.now.as_ref())
    }

    /// Returns the version of a topic before this edit; 0 if there was none.
    pub(crate) fn version(&mut self, id: &str) -> Result<u64> {
        Ok(self.sheet(id)?.before.as_ref().map_or(0, |it| it.version))
    }

    /// Returns the version of the topic with this id, or of the topic that owns the arc with this id.
    pub(crate) fn version_of_parent(&mut self, parent: &str) -> Result<u64> {
        match self.version(parent)? {
            0 => match self.owner(parent)? {
                Some(owner) => self.version(&owner),
                None => Ok(0),
            },
            version => Ok(version),
        }
    }

    /// Returns the topic for changing.
    ///
    /// Errors: 422 if there is no such topic, because members belong to topics that exist.
    pub(crate) fn topic(&mut self, id: &str) -> Result<&mut Topic> {
        let sheet = self.sheet(id)?;
        sheet.is_changed = true;
        sheet.now.as_mut().ok_or_else(|| ConclaveError::rule(format!("there is no topic {id:?}")))
    }

    /// Creates a topic. Errors: 409 if it exists.
    pub(crate) fn create(&mut self, topic: Topic) -> Result<()> {
        if self.get(&topic.id)?.is_some() {
            return Err(ConclaveError::exists(format!("the topic {:?} exists", topic.id)));
        }
        self.put(topic)
    }

    /// Creates a topic, or replaces it with all its members. A topic without facts keeps those of the members that
    /// stay.
    pub(crate) fn put(&mut self, mut topic: Topic) -> Result<()> {
        self.claim(&topic.id, &topic.arcs)?;
        let sheet = self.sheet(&topic.id)?;
        if topic.facts.is_none() {
            topic.facts = sheet.now.as_mut().and_then(|it| it.facts.take());
        }
        sheet.is_changed = true;
        sheet.now = Some(topic);
        Ok(())
    }

    /// Removes a topic with all its members; arcs of other topics that point at it stay. Returns whether it existed.
    pub(crate) fn remove(&mut self, id: &str) -> Result<bool> {
        let sheet = self.sheet(id)?;
        sheet.is_changed = true;
        Ok(sheet.now.take().is_some())
    }

    /// Removes arcs with these ids from other topics, since an arc has one owner.
    fn claim(&mut self, owner: &str, arcs: &[Arc]) -> Result<()> {
        let own = format!("{owner}~");
        for arc in arcs.iter().filter(|it| !it.id.starts_with(&own)) {
            if let Some(other) = self.owner(&arc.id)?.filter(|it| it != owner) {
                let is_it = |it: &&Arc| it.id == arc.id;
                let taken = self.get(&other)?.and_then(|it| it.arcs.iter().find(is_it)).cloned();
                if taken.is_some_and(|it| !self.author.sees(&it.scope)) {
                    return Err(out_of_sight(&arc.scope));
                }
                self.topic(&other)?.arcs.retain(|it| it.id != arc.id);
            }
        }
        Ok(())
    }

    /// Returns the topic that owns an arc in the current state.
    pub(crate) fn owner(&mut self, arc: &str) -> Result<Option<String>> {
        let has = |it: &Topic| it.arcs.iter().any(|it| it.id == arc);
        let changed = self.sheets.iter().find(|(_, it)| it.now.as_ref().is_some_and(has));
        if let Some((id, _)) = changed {
            return Ok(Some(id.clone()));
        }
        let stored = owner_of_arc(self.txn, self.map, arc)?;
        // It may have been removed in this edit.
        Ok(stored.filter(|it| !self.sheets.contains_key(it)))
    }

    /// Returns the metadata of a topic or an arc.
    fn metadata_of(&mut self, parent: &str) -> Result<&mut Vec<Metadata>> {
        if self.get(parent)?.is_some() {
            return Ok(&mut self.topic(parent)?.metadata);
        }
        let none = || ConclaveError::rule(format!("there is neither a topic nor an association {parent:?}"));
        let owner = self.owner(parent)?.ok_or_else(none)?;
        let arc = self.topic(&owner)?.arcs.iter_mut().find(|it| it.id == parent);
        arc.map(|it| &mut it.metadata).ok_or_else(none)
    }

    /// Sets a metadata entry by scope and name.
    pub(crate) fn put_metadata(&mut self, parent: &str, it: Metadata) -> Result<()> {
        set(self.metadata_of(parent)?, &it.scope, &it.name, it.value);
        Ok(())
    }

    /// Removes one metadata entry, those of a scope, or all. Returns how many.
    pub(crate) fn remove_metadata(
        &mut self,
        parent: &str,
        (scope, name): (Option<&str>, Option<&str>),
    ) -> Result<usize> {
        let list = self.metadata_of(parent)?;
        let n_before = list.len();
        list.retain(|it| {
            scope.is_some_and(|scope| scope != it.scope) || name.is_some_and(|name| name != it.name)
        });
        Ok(n_before - list.len())
    }

    /// Sets an occurrence by its key; without data, an existing one keeps its own.
    pub(crate) fn put_occurrence(&mut self, topic: &str, mut it: Occurrence, has_data: bool) -> Result<()> {
        let list = &mut self.topic(topic)?.occurrences;
        if let Some(at) = list.iter().position(|other| other.has_key_of(&it)) {
            let old = list.remove(at);
            if !has_data {
                (it.data, it.base64) = (old.data, old.base64);
            }
        }
        list.push(it);
        Ok(())
    }

    /// Removes the occurrences that `is_meant` selects. Returns how many.
    pub(crate) fn remove_occurrences(
        &mut self,
        topic: &str,
        is_meant: impl Fn(&Occurrence) -> bool,
    ) -> Result<usize> {
        let list = &mut self.topic(topic)?.occurrences;
        let n_before = list.len();
        list.retain(|it| !is_meant(it));
        Ok(n_before - list.len())
    }

    /// Changes the key of an occurrence. Errors: 404, or 409 if the new key is taken.
    pub(crate) fn rename_occurrence(&mut self, topic: &str, from: &Occurrence, to: Occurrence) -> Result<()> {
        let list = &mut self.topic(topic)?.occurrences;
        let at = list.iter().position(|it| it.has_key_of(from));
        let at = at.ok_or_else(|| ConclaveError::not_found("the topic has no such occurrence"))?;
        if !to.has_key_of(from) && list.iter().any(|it| it.has_key_of(&to)) {
            return Err(ConclaveError::exists("the topic has an occurrence of the new key"));
        }
        let old = list.remove(at);
        list.push(Occurrence { data: old.data, base64: old.base64, ..to });
        Ok(())
    }

    /// Creates or replaces an arc, whichever topic owned it. An arc without label gets that of the topic it points at.
    pub(crate) fn put_arc(&mut self, topic: &str, mut arc: Arc) -> Result<()> {
        self.topic(topic)?;
        self.claim(topic, std::slice::from_ref(&arc))?;
        if !arc.metadata.iter().any(|it| it.name == LABEL) {
            let label = self.get(&arc.reference)?.map(|it| it.label_in(DEFAULT_SCOPE).to_owned());
            if let Some(label) = label.filter(|it| *it != arc.reference) {
                set(&mut arc.metadata, DEFAULT_SCOPE, LABEL, label);
            }
        }
        let list = &mut self.topic(topic)?.arcs;
        list.retain(|it| it.id != arc.id);
        list.push(arc);
        Ok(())
    }

    /// Removes an arc. Returns whether it existed.
    pub(crate) fn remove_arc(&mut self, id: &str) -> Result<bool> {
        let Some(owner) = self.owner(id)? else { return Ok(false) };
        self.topic(&owner)?.arcs.retain(|it| it.id != id);
        Ok(true)
    }

    /// Removes every arc that points at a topic. Returns how many.
    pub(crate) fn remove_pointing(&mut self, reference: &str) -> Result<usize> {
        let mut n_removed = 0;
        for owner in pointing_topics(self.txn, self.map, reference)? {
            let Some(topic) = self.get(&owner)?.is_some().then(|| self.topic(&owner)).transpose()? else {
                continue;
            };
            let n_before = topic.arcs.len();
            topic.arcs.retain(|it| it.reference != reference);
            n_removed += n_before - topic.arcs.len();
        }
        Ok(n_removed)
    }

    /// Merges two topics: the members of `from` go to `into`, and arcs that point at `from` point at `into`.
    /// Returns the pairs of topics that turn out to be one by this.
    pub(crate) fn merge(&mut self, from: &str, into: &str) -> Result<Same> {
        if from == into {
            return Err(ConclaveError::bad_request("a topic cannot be merged with itself"));
        }
        let gone = self.get(from)?.cloned();
        let gone = gone.ok_or_else(|| ConclaveError::not_found(format!("there is no topic {from:?}")))?;
        for owner in pointing_topics(self.txn, self.map, from)? {
            if owner != from && self.get(&owner)?.is_some() {
                for arc in self.topic(&owner)?.arcs.iter_mut().filter(|it| it.reference == from) {
                    into.clone_into(&mut arc.reference);
                }
            }
        }
        self.remove(from)?;
        self.merged.insert(from.to_owned(), into.to_owned());
        // A second label is kept under the id of the merged topic.
        Ok(self.topic(into)?.absorb(gone, from))
    }

    /// Merges topics that turned out to be one, and those that turn out to be one in consequence.
    pub(crate) fn merge_all(&mut self, mut same: Same) -> Result<()> {
        while let Some(pair) = same.pop() {
            let (Ref::Topic(one), Ref::Topic(other)) = pair else { continue };
            let (one, other) = (self.standing(one), self.standing(other));
            if one != other && self.get(&one)?.is_some() && self.get(&other)?.is_some() {
                same.extend(self.merge(&other, &one)?);
            }
        }
        Ok(())
    }

    /// Returns the topic that an id stands for after the merges so far.
    fn standing(&self, mut id: String) -> String {
        // A merge removes the topic whose id it records, so this loop ends.
        while let Some(into) = self.merged.get(&id) {
            id.clone_from(into);
        }
        id
    }

    /// Adds the content of a topic, or of a part of one, to the topic; creates it if it does not exist.
    pub(crate) fn add(&mut self, topic: Topic) -> Result<Same> {
        if self.get(&topic.id)?.is_none() {
            self.put(topic)?;
            return Ok(Same::new());
        }
        self.claim(&topic.id, &topic.arcs)?;
        Ok(self.topic(&topic.id)?.absorb(topic, "2"))
    }

    /// Returns how many topics would be written and removed.
    pub(crate) fn tally(&self) -> Done {
        let is_written =
            |it: &&Sheet| it.is_changed && it.now != it.before.as_ref().map(|it| it.topic.clone());
        let changed = self.sheets.values().filter(is_written);
        let n_removed = changed.clone().filter(|it| it.now.is_none()).count();
        Done { n_written: changed.count() - n_removed, n_removed, ..Done::default() }
    }

    /// Writes the changes. Labels of arcs follow a changed label.
    pub(crate) fn finish(mut self) -> Result<Done> {
        let (n_labels, has_stale_labels) = self.follow_labels()?;
        let mut done = Done { n_labels, has_stale_labels, ..Done::default() };
        // Removed topics and former owners of moved arcs are written first, which frees their ids.
        let ids: Vec<String> = self.sheets.keys().cloned().collect();
        for id in &ids {
            let Some(sheet) = self.sheets.get_mut(id).filter(|it| it.is_changed) else { continue };
            match (&mut sheet.now, &sheet.before) {
                (None, None) => {}
                (None, Some(before)) => {
                    let mut left = before.topic.clone();
                    left.retain(|it| self.author.sees(it));
                    if left != before.topic {
                        return Err(ConclaveError::forbidden(format!(
                            "the topic {id:?} holds what only others may read: it cannot be removed"
                        )));
                    }
                    self.txn.delete(&TOPIC, &key(self.map, id))?;
                    keep_revision(self.txn, before, self.author, self.history)?;
                    done.n_removed += 1;
                }
                (Some(topic), before) => {
                    keep_hidden(before.as_ref().map(|it| &it.topic), topic, self.author)?;
                    topic.put_in_order();
                    if before.as_ref().is_some_and(|it| it.topic == *topic) {
                        continue;
                    }
                    topic.modified_ms = self.author.now_ms;
                    let document = topic.document()?;
                    match before {
                        Some(before) => {
                            self.txn.update_document(&document)?;
                            keep_revision(self.txn, before, self.author, self.history)?;
                        }
                        None => {
                            self.txn.insert_document(&document)?;
                        }
                    }
                    done.n_written += 1;
                }
            }
        }
        Ok(done)
    }

    /// Relabels the arcs that carried the former label of their target. Returns how many, and whether there were too
    /// many, so that some labels are stale.
    fn follow_labels(&mut self) -> Result<(usize, bool)> {
        let mut renamed = Vec::new();
        for (id, sheet) in &self.sheets {
            if let (true, Some(now), Some(before)) = (sheet.is_changed, &sheet.now, &sheet.before) {
                let (new, old) = (now.label_in(DEFAULT_SCOPE), before.topic.label_in(DEFAULT_SCOPE));
                if new != old {
                    renamed.push((id.clone(), old.to_owned(), new.to_owned()));
                }
            }
        }
        let (mut n_labels, mut has_stale_labels) = (0, false);
        for (id, old, new) in renamed {
            let (low, high) = range(&target(self.map, &id, &[""]));
            let most = FOLLOWING_LABELS_MAX + 1;
            let links = self.txn.links_within(&TOPIC, POINTS, (&low, &high), (&low, ""), most)?;
            if links.len() > FOLLOWING_LABELS_MAX as usize {
                has_stale_labels = true;
                continue;
            }
            for (_, key) in links {
                let Some((_, owner)) = key.split_once('/') else { continue };
                if self.get(owner)?.is_none() {
                    continue;
                }
                let author = self.author;
                for arc in self.topic(owner)?.arcs.iter_mut().filter(|it| it.reference == id) {
                    if arc.label(DEFAULT_SCOPE) == old && author.sees(&arc.scope) {
                        set(&mut arc.metadata, DEFAULT_SCOPE, LABEL, new.clone());
                        n_labels += 1;
                    }
                }
            }
        }
        Ok((n_labels, has_stale_labels))
    }
}

fn out_of_sight(scope: &str) -> ConclaveError {
    ConclaveError::forbidden(format!("what lies in the scope {scope:?} is written by those who may read it"))
}

/// Keeps what the author may not see as it was. Errors: 403 if they add anything to it.
fn keep_hidden(before: Option<&Topic>, now: &mut Topic, author: &Author) -> Result<()> {
    if author.hidden.is_empty() {
        return Ok(());
    }
    let nothing = Topic::default();
    let before = before.unwrap_or(&nothing);
    let is_hidden = |scope: &str| !author.sees(scope);
    let new_metadata = |list: &[Metadata], old: &[Metadata]| {
        list.iter().find(|it| is_hidden(&it.scope) && !old.contains(it)).map(|it| it.scope.clone())
    };
    let old_arc = |id: &str| before.arcs.iter().find(|it| it.id == id);
    let added = new_metadata(&now.metadata, &before.metadata)
        .or_else(|| {
            let mut all = now.occurrences.iter();
            all.find(|it| is_hidden(&it.scope) && !before.occurrences.contains(it)).map(|it| it.scope.clone())
        })
        .or_else(|| {
            now.arcs.iter().find_map(|it| match old_arc(&it.id) {
                Some(old) if is_hidden(&old.scope) && old != it => Some(old.scope.clone()),
                Some(old) => new_metadata(&it.metadata, &old.metadata),
                None if is_hidden(&it.scope) => Some(it.scope.clone()),
                None => new_metadata(&it.metadata, &[]),
            })
        });
    if let Some(scope) = added {
        return Err(out_of_sight(&scope));
    }
    now.retain(|scope| !is_hidden(scope));
    now.metadata.extend(before.metadata.iter().filter(|it| is_hidden(&it.scope)).cloned());
    now.occurrences.extend(before.occurrences.iter().filter(|it| is_hidden(&it.scope)).cloned());
    for arc in &mut now.arcs {
        let hidden = old_arc(&arc.id).map_or(&[][..], |it| it.metadata.as_slice());
        arc.metadata.extend(hidden.iter().filter(|it| is_hidden(&it.scope)).cloned());
    }
    now.arcs.extend(before.arcs.iter().filter(|it| is_hidden(&it.scope)).cloned());
    Ok(())
}

/// Stores the former state of a topic as a revision; deletes the oldest of too many.
fn keep_revision(txn: &mut Txn<'_>, before: &Found, author: &Author, history: History) -> Result<()> {
    let topic = &before.topic;
    let n_members = topic.metadata.len() + topic.arcs.len() + topic.occurrences.len();
    if history == History::None || n_members > REVISED_MEMBERS_MAX {
        return Ok(());
    }
    let revision = revision_key(&topic.key, before.version, before.sequence);
    let body = json!({
        "key": revision, "topic": topic.key, "version": before.version, "by": author.name, "at": author.now_ms,
        "was": topic,
    });
    txn.put(&REVISION, &revision, &body)?;
    let filter = pinakes_store::Expr::Is("topic".into(), topic.key.as_str().into());
    let n_kept = txn.count(&REVISION, &filter)?;
    if n_kept > REVISIONS_MAX {
        let oldest = pinakes_store::Query::filter(filter)
            .sorted("key", pinakes_store::Direction::Ascending)
            .window(0, n_kept - REVISIONS_MAX);
        for old in txn.find(&REVISION, &oldest)? {
            txn.delete(&REVISION, &old.id)?;
        }
    }
    Ok(())
}

/// Returns the id of a revision: the revisions of a topic sort in the order in which they were made.
pub(crate) fn revision_key(topic: &str, version: u64, sequence: u64) -> String {
    format!("{topic}{UNIT}{sequence:016}-{version}")
}

/// Sets a metadata entry on arcs that point at a topic, of the given owners. Returns how many arcs.
pub(crate) fn update_labels(
    edit: &mut Edit<'_, '_>,
    owners: &[String],
    (reference, ty, role): (&str, &str, &str),
    it: &Metadata,
) -> Result<usize> {
    let mut n_updated = 0;
    let author = edit.author;
    for owner in owners {
        if edit.get(owner)?.is_none() {
            continue;
        }
        for arc in &mut edit.topic(owner)?.arcs {
            let is_meant =
                (arc.reference.as_str(), arc.ty.as_str(), arc.role.as_str()) == (reference, ty, role);
            if is_meant && author.sees(&arc.scope) {
                set(&mut arc.metadata, &it.scope, &it.name, it.value.clone());
                n_updated += 1;
            }
        }
    }
    Ok(n_updated)
}
