//! A topic map as the data model has it (ISO 13250-2): merged, without duplicates.

/// A topic, by its place in [`TopicMap::topics`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicId(pub u32);

impl TopicId {
    /// Place in [`TopicMap::topics`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A topic map. Made by [`crate::Builder`], which merges topics and folds duplicates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopicMap {
    /// The map's reifier, and its item identifiers.
    pub item: Item,
    /// Every topic; a [`TopicId`] is a place in here.
    pub topics: Vec<Topic>,
    /// Every association.
    pub associations: Vec<Association>,
}

impl TopicMap {
    /// Returns the topic with an id of this map.
    pub fn topic(&self, id: TopicId) -> &Topic {
        &self.topics[id.index()]
    }

    /// Returns the topic with this subject identifier. Scans all topics: to look up many, build a table.
    pub fn by_subject_identifier(&self, iri: &str) -> Option<TopicId> {
        self.ids().find(|&id| self.topic(id).subject_identifiers.iter().any(|it| it == iri))
    }

    /// Returns the ids of all topics.
    pub fn ids(&self) -> impl Iterator<Item = TopicId> + use<> {
        (0..u32::try_from(self.topics.len()).unwrap_or(u32::MAX)).map(TopicId)
    }

    /// Returns the number of parts of each kind.
    pub fn counts(&self) -> Counts {
        let names = self.topics.iter().flat_map(|it| &it.names);
        Counts {
            topics: self.topics.len(),
            names: names.clone().count(),
            variants: names.map(|it| it.variants.len()).sum(),
            occurrences: self.topics.iter().map(|it| it.occurrences.len()).sum(),
            associations: self.associations.len(),
            roles: self.associations.iter().map(|it| it.roles.len()).sum(),
        }
    }
}

/// Numbers of a map's parts, as [`TopicMap::counts`] finds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Topics.
    pub topics: usize,
    /// Names of topics.
    pub names: usize,
    /// Variants of names.
    pub variants: usize,
    /// Occurrences of topics.
    pub occurrences: usize,
    /// Associations, including those of types and instances.
    pub associations: usize,
    /// Roles in associations.
    pub roles: usize,
}

/// The properties of every part except topics: a topic that reifies it, and identifiers of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Item {
    /// The topic that reifies this part.
    pub reifier: Option<TopicId>,
    /// Absolute IRIs, in order, each once.
    pub item_identifiers: Vec<String>,
}

/// A subject that things are said about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topic {
    /// IRIs of what describes the subject, in order.
    pub subject_identifiers: Vec<String>,
    /// IRIs of the subject itself, if it is a network resource; in order.
    pub subject_locators: Vec<String>,
    /// IRIs of the topic, in order.
    pub item_identifiers: Vec<String>,
    /// Its names.
    pub names: Vec<Name>,
    /// Statements about it, or references to more.
    pub occurrences: Vec<Occurrence>,
}

/// A name of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The name.
    pub value: String,
    /// Kind of name.
    pub kind: TopicId,
    /// Where it is valid; empty: everywhere. In order, each once.
    pub scope: Vec<TopicId>,
    /// Other forms of the name.
    pub variants: Vec<Variant>,
    /// Reifier and item identifiers.
    pub item: Item,
}

/// Another form of a name, for example for sorting.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The form.
    pub value: String,
    /// IRI of its datatype.
    pub datatype: String,
    /// The whole scope, including that of the name.
    pub scope: Vec<TopicId>,
    /// Reifier and item identifiers.
    pub item: Item,
}

/// A property of a topic, or a resource about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// The value; an absolute IRI for `xsd:anyURI`.
    pub value: String,
    /// IRI of its datatype.
    pub datatype: String,
    /// Kind of occurrence.
    pub kind: TopicId,
    /// Where it is valid; empty: everywhere. In order, each once.
    pub scope: Vec<TopicId>,
    /// Reifier and item identifiers.
    pub item: Item,
}

/// A relation between topics.
#[derive(Debug, Clone, PartialEq)]
pub struct Association {
    /// Kind of relation.
    pub kind: TopicId,
    /// Where it is valid; empty: everywhere. In order, each once.
    pub scope: Vec<TopicId>,
    /// The participants, at least one.
    pub roles: Vec<Role>,
    /// Reifier and item identifiers.
    pub item: Item,
}

/// The part of a topic in an association.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Kind of part.
    pub kind: TopicId,
    /// The topic that plays it.
    pub player: TopicId,
    /// Reifier and item identifiers.
    pub item: Item,
}

impl Name {
    /// Creates a name without scope, variants, reifier or identifiers.
    pub fn new(value: impl Into<String>, kind: TopicId) -> Name {
        Name { value: value.into(), kind, scope: Vec::new(), variants: Vec::new(), item: Item::default() }
    }
}

impl Occurrence {
    /// Creates an occurrence without scope, reifier or identifiers.
    pub fn new(kind: TopicId, value: impl Into<String>, datatype: impl Into<String>) -> Occurrence {
        Occurrence {
            value: value.into(),
            datatype: datatype.into(),
            kind,
            scope: Vec::new(),
            item: Item::default(),
        }
    }
}

impl Association {
    /// Creates an association of (role type, player) pairs, without scope, reifier or identifiers.
    pub fn new(kind: TopicId, roles: impl IntoIterator<Item = (TopicId, TopicId)>) -> Association {
        let roles =
            roles.into_iter().map(|(kind, player)| Role { kind, player, item: Item::default() }).collect();
        Association { kind, scope: Vec::new(), roles, item: Item::default() }
    }
}
