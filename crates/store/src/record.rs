//! What the store hands out.

use bytes::Bytes;

/// Records of a kind whose class fields have equal values share a class. See [`crate::Kind::class_fields`].
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
    /// 1 when made, one more with each change.
    pub version: u64,
    /// Sequence number, in the tenant, of the last change.
    pub sequence: u64,
    /// Who may see it, see [`crate::View::class`].
    pub class: Class,
    /// The members, when the kind has them and the record has some.
    pub list: Option<ListId>,
    /// How many members the list has.
    pub n_members: u64,
    /// The JSON document, as it was written.
    pub body: Bytes,
    /// Position in insertion order; the engine's row.
    pub(crate) key: i64,
}

impl Record {
    /// The body, parsed. Errors when what is stored is not JSON, which `pinakes check` would report.
    pub fn json(&self) -> crate::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .map_err(|error| crate::StoreError::Damaged(format!("body of {:?}: {error}", self.id)))
    }

    /// Where the next page begins: for [`crate::Query::after`].
    pub fn cursor(&self) -> i64 {
        self.key
    }
}

/// A change in a tenant, for indexers, harvesters and replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its number; changes are followed by asking for those after the last one seen.
    pub sequence: u64,
    /// Name of the record's kind.
    pub kind: String,
    /// The record's id.
    pub id: String,
    /// Whether the record was deleted; otherwise it was made or changed.
    pub deleted: bool,
}
