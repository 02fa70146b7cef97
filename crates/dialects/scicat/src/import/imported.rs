//! The types of records in import files: how a resource describes one, and how its records are completed.

use std::fmt;
use std::hash::{Hash, Hasher};

use pinakes_store::Kind;
use serde_json::{Map, Value};

use crate::app::Scicat;
use crate::validate::Dto;

/// A type of record, as its resource describes it.
pub(crate) struct Imported {
    /// The name that `--kind` accepts.
    pub(crate) name: &'static str,
    /// The plural of the name.
    pub(crate) plural: &'static str,
    /// The store's kind for its records.
    pub(crate) kind: &'static Kind,
    /// The rules that a completed record must satisfy.
    pub(crate) table: fn() -> &'static Dto,
    /// Fills in missing fields, converts the record to the form in which it is stored, and returns its id.
    pub(crate) complete: fn(&Importer, &mut Map<String, Value>) -> Result<String, String>,
    /// How to recognise such a record.
    pub(crate) marks: &'static [Marks],
}

/// Fields by which a type is recognised: all of `with`, one of `one_of` (if there are any), none of
/// `without`.
pub(crate) struct Marks {
    /// Lower ranks are tried first; no two types share a rank.
    pub(crate) rank: u8,
    pub(crate) with: &'static [&'static str],
    pub(crate) one_of: &'static [&'static str],
    pub(crate) without: &'static [&'static str],
}

/// A type of record.
#[derive(Clone, Copy)]
pub struct RecordType(pub(super) &'static Imported);

impl Marks {
    /// Starts a definition that has only a rank.
    pub(crate) const fn rank(rank: u8) -> Self {
        Self { rank, with: &[], one_of: &[], without: &[] }
    }

    pub(super) fn fit(&self, body: &Map<String, Value>) -> bool {
        let has = |name: &&str| body.contains_key(*name);
        self.with.iter().all(has)
            && (self.one_of.is_empty() || self.one_of.iter().any(has))
            && !self.without.iter().any(has)
    }
}

impl RecordType {
    /// Returns the name that `--kind` accepts.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the store's kind for its records.
    pub fn kind(self) -> &'static Kind {
        self.0.kind
    }

    /// Says whether its records are of a kind.
    pub(crate) fn is_of(self, kind: &Kind) -> bool {
        self.0.kind.name == kind.name
    }

    /// Says whether its records have lists of files.
    pub(crate) fn has_files(self) -> bool {
        self.kind().members.is_some()
    }

    /// Returns the rules that a completed record must satisfy.
    pub(crate) fn table(self) -> &'static Dto {
        (self.0.table)()
    }

    /// Fills in missing fields, converts the record to the form in which it is stored, and returns its id.
    pub(crate) fn complete(
        self,
        importer: &Importer,
        body: &mut Map<String, Value>,
    ) -> Result<String, String> {
        (self.0.complete)(importer, body)
    }
}

impl fmt::Debug for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for RecordType {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for RecordType {}

impl Hash for RecordType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Turns bytes into records that are ready to be written. Cheap to clone.
#[derive(Clone)]
pub struct Importer {
    pub(super) app: Scicat,
    /// Entered in `createdBy` and `updatedBy` of records that lack them.
    pub(super) username: String,
    /// The type of all records; `None` to recognise each by its fields.
    pub(super) sort: Option<RecordType>,
}
