//! Builds a [`TopicMap`]: topics merge the moment two of them prove to be one, duplicates are folded at the
//! end.
//!
//! Merged topics are kept as a forest (union-find): a reference to a merged topic stays valid until
//! [`Builder::finish`] replaces it by the topic that remained, so a merge costs what the smaller of two topics
//! holds.

use std::collections::HashMap;

use crate::iri::model;
use crate::model::{Association, Name, Occurrence, Topic, TopicId, TopicMap};

/// A topic map being built.
#[derive(Debug, Default)]
pub struct Builder {
    /// Topics that were merged away are empty until the end.
    pub(crate) map: TopicMap,
    /// The topic that each was merged into; itself while it exists.
    parents: Vec<u32>,
    /// Subject and item identifiers in one table: a topic whose subject identifier is another's item identifier is
    /// that topic.
    identifiers: HashMap<String, TopicId>,
    locators: HashMap<String, TopicId>,
}

impl From<TopicMap> for Builder {
    /// Continues with a finished map: its topics keep their numbers, and more of them may prove to be one.
    fn from(map: TopicMap) -> Builder {
        let mut out = Builder { map, ..Builder::default() };
        for (topic, id) in out.map.topics.iter().zip(out.map.ids()) {
            out.parents.push(id.0);
            for iri in topic.subject_identifiers.iter().chain(&topic.item_identifiers) {
                out.identifiers.insert(iri.clone(), id);
            }
            out.locators.extend(topic.subject_locators.iter().map(|it| (it.clone(), id)));
        }
        out
    }
}

/// The three ways to point at a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityKind {
    /// What describes the subject.
    SubjectIdentifier,
    /// The subject itself.
    SubjectLocator,
    /// The topic.
    ItemIdentifier,
}

impl Builder {
    /// Creates an empty map.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds a topic without any identity; give it one before the map is finished.
    pub fn add_topic(&mut self) -> TopicId {
        let id = TopicId(u32::try_from(self.map.topics.len()).unwrap_or(u32::MAX));
        self.map.topics.push(Topic::default());
        self.parents.push(id.0);
        id
    }

    /// Returns the topic with this identity, creating it if necessary.
    pub fn topic(&mut self, kind: IdentityKind, iri: &str) -> TopicId {
        let table = if kind == IdentityKind::SubjectLocator { &self.locators } else { &self.identifiers };
        match table.get(iri) {
            Some(&id) => self.find(id),
            None => {
                let id = self.add_topic();
                self.identify(id, kind, iri);
                id
            }
        }
    }

    /// Returns the topic with this subject identifier, creating it if necessary.
    pub fn subject(&mut self, iri: &str) -> TopicId {
        self.topic(IdentityKind::SubjectIdentifier, iri)
    }

    /// Gives a topic an identity; it is merged with a topic that has it already.
    pub fn identify(&mut self, topic: TopicId, kind: IdentityKind, iri: &str) {
        let topic = self.find(topic);
        let table =
            if kind == IdentityKind::SubjectLocator { &mut self.locators } else { &mut self.identifiers };
        let other = table.get(iri).copied();
        if other.is_none() {
            table.insert(iri.to_owned(), topic);
        }
        let it = &mut self.map.topics[topic.index()];
        let list = match kind {
            IdentityKind::SubjectIdentifier => &mut it.subject_identifiers,
            IdentityKind::SubjectLocator => &mut it.subject_locators,
            IdentityKind::ItemIdentifier => &mut it.item_identifiers,
        };
        if !list.iter().any(|it| it == iri) {
            list.push(iri.to_owned());
        }
        if let Some(other) = other {
            self.merge(topic, other);
        }
    }

    /// Returns the topic that a reference means now.
    pub fn find(&self, topic: TopicId) -> TopicId {
        let mut at = topic.0;
        while self.parents[at as usize] != at {
            at = self.parents[at as usize];
        }
        TopicId(at)
    }

    /// Merges two topics.
    pub fn merge(&mut self, one: TopicId, other: TopicId) {
        let (mut kept, mut gone) = (self.find(one), self.find(other));
        if kept == gone {
            return;
        }
        if size(&self.map.topics[kept.index()]) < size(&self.map.topics[gone.index()]) {
            std::mem::swap(&mut kept, &mut gone);
        }
        let from = std::mem::take(&mut self.map.topics[gone.index()]);
        self.parents[gone.index()] = kept.0;
        let into = &mut self.map.topics[kept.index()];
        into.subject_identifiers.extend(from.subject_identifiers);
        into.subject_locators.extend(from.subject_locators);
        into.item_identifiers.extend(from.item_identifiers);
        into.names.extend(from.names);
        into.occurrences.extend(from.occurrences);
    }

    /// Adds a name.
    pub fn add_name(&mut self, topic: TopicId, name: Name) {
        let topic = self.find(topic);
        self.map.topics[topic.index()].names.push(name);
    }

    /// Adds an occurrence.
    pub fn add_occurrence(&mut self, topic: TopicId, occurrence: Occurrence) {
        let topic = self.find(topic);
        self.map.topics[topic.index()].occurrences.push(occurrence);
    }

    /// Adds an association.
    pub fn add_association(&mut self, association: Association) {
        self.map.associations.push(association);
    }

    /// Says that one topic is an instance of another.
    pub fn add_instance(&mut self, instance: TopicId, kind: TopicId) {
        self.add_pair(model::TYPE_INSTANCE, (model::INSTANCE, instance), (model::TYPE, kind));
    }

    /// Says that one topic is a special case of another.
    pub fn add_subtype(&mut self, subtype: TopicId, supertype: TopicId) {
        self.add_pair(model::SUPERTYPE_SUBTYPE, (model::SUBTYPE, subtype), (model::SUPERTYPE, supertype));
    }

    fn add_pair(&mut self, kind: &str, one: (&str, TopicId), other: (&str, TopicId)) {
        let kind = self.subject(kind);
        let (first, second) = (self.subject(one.0), self.subject(other.0));
        self.add_association(Association::new(kind, [(first, one.1), (second, other.1)]));
    }

    /// Sets the topic that reifies the map itself.
    pub fn reify_map(&mut self, topic: TopicId) {
        match self.map.item.reifier {
            Some(other) => self.merge(topic, other),
            None => self.map.item.reifier = Some(topic),
        }
    }

    /// Gives the map itself an identifier.
    pub fn identify_map(&mut self, iri: String) {
        self.map.item.item_identifiers.push(iri);
    }

    /// Returns the topic that has this as subject identifier, not merely as item identifier.
    pub(crate) fn with_subject_identifier(&self, iri: &str) -> Option<TopicId> {
        let id = self.find(*self.identifiers.get(iri)?);
        self.map.topic(id).subject_identifiers.iter().any(|it| it == iri).then_some(id)
    }

    /// Removes a subject identifier from the topic that has it.
    pub(crate) fn forget_subject_identifier(&mut self, topic: TopicId, iri: &str) {
        let topic = self.find(topic);
        let it = &mut self.map.topics[topic.index()];
        it.subject_identifiers.retain(|it| it != iri);
        if !it.item_identifiers.iter().any(|it| it == iri) {
            self.identifiers.remove(iri);
        }
    }

    /// Returns the number of topics, names, occurrences and associations so far; it bounds the expansion of
    /// templates.
    pub(crate) fn n_topics(&self) -> usize {
        self.map.topics.len()
    }

    pub(crate) fn parents(&self) -> &[u32] {
        &self.parents
    }
}

fn size(topic: &Topic) -> usize {
    topic.names.len()
        + topic.occurrences.len()
        + topic.subject_identifiers.len()
        + topic.subject_locators.len()
        + topic.item_identifiers.len()
}
