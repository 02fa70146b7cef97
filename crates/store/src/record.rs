//! What the store returns: records and changes.

use bytes::Bytes;

use crate::parts::Parts;

/// Identifies a class: records of a kind with equal values in their class fields share one. See
/// [`crate::Kind::class_fields`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class(pub(crate) i64);

/// A list of members kept as child rows. See [`crate::Kind::members`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListId(pub(crate) i64);

/// A stored record.
#[derive(Debug, Clone)]
pub struct Record {
    /// Unique in its kind and tenant.
    pub id: String,
    /// 1 when created, one more with each change.
    pub version: u64,
    /// Sequence number, in the tenant, of the last change.
    pub sequence: u64,
    /// Determines who may see it, see [`crate::View::class`].
    pub class: Class,
    /// The list of members, when the kind has members and the record has some.
    pub list: Option<ListId>,
    /// Number of members in the list.
    pub n_members: u64,
    /// The JSON document, as it was written.
    pub body: Bytes,
    /// Position in insertion order; the row key of the engine.
    pub(crate) key: i64,
}

impl Record {
    /// Parses the body. Errors: what is stored is not JSON, which `pinakes check` would report.
    pub fn json(&self) -> crate::Result<serde_json::Value> {
        self.json_of(&Parts::whole())
    }

    /// Parses parts of the body. Errors: as [`Record::json`].
    pub(crate) fn json_of(&self, parts: &Parts) -> crate::Result<serde_json::Value> {
        parts
            .parse(&self.body)
            .map_err(|error| crate::StoreError::Damaged(format!("body of {:?}: {error}", self.id)))
    }

    /// Returns where the next page begins: for [`crate::Query::after`].
    pub fn cursor(&self) -> i64 {
        self.key
    }
}

/// A change in a tenant, for indexers, harvesters and replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its number; a follower asks for the changes after the last one it has seen.
    pub sequence: u64,
    /// Name of the record's kind.
    pub kind: String,
    /// The record's id.
    pub id: String,
    /// Whether the record was deleted; otherwise it was created or changed.
    pub deleted: bool,
}
