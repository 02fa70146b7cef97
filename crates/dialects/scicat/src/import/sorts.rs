//! The sorts of records that files hold, and how they are told apart. Each resource says its own ([`Imported`]).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use pinakes_store::Kind;
use serde_json::{Map, Value};

use super::Importer;
use crate::resource::RESOURCES;
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
pub struct RecordType(&'static Imported);

/// A name that is no sort's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no sort of record; expected one of {expected}")]
pub struct UnknownSort {
    found: String,
    expected: String,
}

impl Marks {
    /// None but a rank, to be completed.
    pub(crate) const fn rank(rank: u8) -> Self {
        Self { rank, with: &[], one_of: &[], without: &[] }
    }

    fn fit(&self, body: &Map<String, Value>) -> bool {
        let has = |name: &&str| body.contains_key(*name);
        self.with.iter().all(has)
            && (self.one_of.is_empty() || self.one_of.iter().any(has))
            && !self.without.iter().any(has)
    }
}

impl RecordType {
    /// All of them, in the order in which an export writes them: what others refer to first.
    pub fn all() -> impl Iterator<Item = Self> {
        RESOURCES.iter().flat_map(|it| it.imported).map(Self)
    }

    /// The name, as `--kind` takes it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The sort of a record by its fields.
    pub fn of(body: &Map<String, Value>) -> Option<Self> {
        let fitting = Self::all().filter_map(|sort| {
            let ranks = sort.0.marks.iter().filter(|it| it.fit(body)).map(|it| it.rank);
            Some((ranks.min()?, sort))
        });
        fitting.min_by_key(|it| it.0).map(|it| it.1)
    }

    /// Its records in the store.
    pub fn kind(self) -> &'static Kind {
        self.0.kind
    }

    /// Whether its records are those of a kind.
    pub(super) fn is_of(self, kind: &Kind) -> bool {
        self.0.kind.name == kind.name
    }

    /// Whether its records hold lists of files.
    pub(super) fn has_files(self) -> bool {
        self.kind().members.is_some()
    }

    /// What a record must look like, once completed.
    pub(super) fn table(self) -> &'static Dto {
        (self.0.table)()
    }

    /// Gives a record what it lacks and brings it into the form in which it is stored. Gives its id.
    pub(super) fn complete(
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

impl PartialOrd for RecordType {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// In the order of an export.
impl Ord for RecordType {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let place = |wanted: &Self| Self::all().position(|it| it == *wanted);
        place(self).cmp(&place(other))
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RecordType {
    type Err = UnknownSort;

    /// Takes the singular or the plural, in any case.
    fn from_str(text: &str) -> Result<Self, UnknownSort> {
        let wanted = text.to_ascii_lowercase();
        let known = Self::all().find(|it| wanted == it.name() || wanted == it.0.plural);
        known.ok_or_else(|| UnknownSort {
            found: text.to_owned(),
            expected: Self::all().map(Self::name).collect::<Vec<_>>().join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sorts_are_told_by_their_fields() {
        for (body, expected) in [
            (
                json!({"pid": "a", "sourceFolder": "/d", "proposalId": "p", "sampleId": "s", "type": "raw"}),
                Some("dataset"),
            ),
            (json!({"datasetId": "a", "size": 1, "dataFileList": []}), Some("origdatablock")),
            (json!({"datasetId": "a", "archiveId": "x", "dataFileList": []}), Some("datablock")),
            (json!({"caption": "c", "datasetId": "a", "thumbnail": "data:"}), Some("attachment")),
            (json!({"sampleId": "s", "sampleName": "Si", "ownerGroup": "g"}), Some("sample")),
            (json!({"proposalId": "p", "title": "t", "email": "a@b.ch"}), Some("proposal")),
            (json!({"_id": "p", "title": "t", "MeasurementPeriodList": []}), Some("proposal")),
            (json!({"pid": "i", "uniqueName": "u", "name": "n"}), Some("instrument")),
            (json!({"ownerGroup": "g", "tapeRedundancy": "low"}), Some("policy")),
            (json!({"type": "archive", "jobParams": {}, "ownerGroup": "g"}), Some("job")),
            (json!({"doi": "10.1/x", "title": "t", "pidArray": []}), Some("publisheddata")),
            (json!({"title": "t", "abstract": "a", "datasetPids": []}), Some("publisheddata")),
            (json!({"name": "x"}), None),
            (json!({}), None),
        ] {
            let Value::Object(map) = &body else { continue };
            assert_eq!(RecordType::of(map).map(RecordType::name), expected, "{body}");
        }
    }

    /// What others refer to comes first.
    #[test]
    fn sorts_are_in_the_order_of_an_export() {
        let names: Vec<&str> = RecordType::all().map(RecordType::name).collect();
        assert_eq!(
            names,
            [
                "dataset",
                "origdatablock",
                "datablock",
                "attachment",
                "sample",
                "proposal",
                "instrument",
                "policy",
                "job",
                "publisheddata"
            ]
        );
        let mut ranks: Vec<u8> =
            RESOURCES.iter().flat_map(|it| it.imported).flat_map(|it| it.marks).map(|it| it.rank).collect();
        ranks.sort_unstable();
        assert!(ranks.is_sorted_by(|a, b| a < b), "two marks of one rank: {ranks:?}");
    }

    #[test]
    fn names_may_be_plural() {
        for (written, expected) in
            [("Datasets", "dataset"), ("policies", "policy"), ("publisheddata", "publisheddata")]
        {
            assert_eq!(written.parse::<RecordType>().map(RecordType::name), Ok(expected));
        }
        assert!("x".parse::<RecordType>().is_err_and(|it| it.to_string().contains("origdatablock")));
    }
}
