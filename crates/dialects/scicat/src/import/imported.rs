//! A sort of record that files hold, as its resource describes it, and what completes one.

use std::fmt;
use std::hash::{Hash, Hasher};

use pinakes_store::Kind;
use serde_json::{Map, Value};

use crate::app::Scicat;
use crate::validate::Dto;

/// A sort of record, as its resource describes it.
pub(crate) struct Imported {
    /// The name, as `--kind` takes it.
    pub(crate) name: &'static str,
    /// Of many of them.
    pub(crate) plural: &'static str,
    /// Its records in the store.
    pub(crate) kind: &'static Kind,
    /// What a record must look like, once completed.
    pub(crate) table: fn() -> &'static Dto,
    /// Gives a record what it lacks and brings it into the form in which it is stored. Gives its id.
    pub(crate) complete: fn(&Importer, &mut Map<String, Value>) -> Result<String, String>,
    /// By what it is told.
    pub(crate) marks: &'static [Marks],
}

/// Fields by which a sort is told: all of `with`, one of `one_of` (if there are any), none of `without`.
pub(crate) struct Marks {
    /// Lower ranks are looked at first; each is of one alone.
    pub(crate) rank: u8,
    pub(crate) with: &'static [&'static str],
    pub(crate) one_of: &'static [&'static str],
    pub(crate) without: &'static [&'static str],
}

/// A sort of record.
#[derive(Clone, Copy)]
pub struct RecordType(pub(super) &'static Imported);

impl Marks {
    /// None but a rank, to be completed.
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
    /// The name, as `--kind` takes it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Its records in the store.
    pub fn kind(self) -> &'static Kind {
        self.0.kind
    }

    /// Whether its records are those of a kind.
    pub(crate) fn is_of(self, kind: &Kind) -> bool {
        self.0.kind.name == kind.name
    }

    /// Whether its records hold lists of files.
    pub(crate) fn has_files(self) -> bool {
        self.kind().members.is_some()
    }

    /// What a record must look like, once completed.
    pub(crate) fn table(self) -> &'static Dto {
        (self.0.table)()
    }

    /// Gives a record what it lacks and brings it into the form in which it is stored. Gives its id.
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

/// Turns bytes into records ready to be written. Cheap to clone.
#[derive(Clone)]
pub struct Importer {
    pub(super) app: Scicat,
    /// Goes into `createdBy` and `updatedBy` of records that bring none.
    pub(super) username: String,
    /// What all records are; otherwise told by the fields of each.
    pub(super) sort: Option<RecordType>,
}
