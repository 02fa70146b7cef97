//! The types of records in import files, and how they are recognised. Each resource describes its own
//! ([`Imported`](super::imported::Imported)).

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::import::imported::RecordType;
use crate::resources::RESOURCES;

/// Error for a name that is not a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no sort of record; expected one of {expected}")]
pub struct UnknownSort {
    found: String,
    expected: String,
}

impl RecordType {
    /// Returns all types, in the order in which an export writes them: records that others refer to come
    /// first.
    pub fn all() -> impl Iterator<Item = Self> {
        RESOURCES.iter().flat_map(|it| it.imported).map(Self)
    }

    /// Returns the type of a record, recognised by its fields.
    pub fn of(body: &Map<String, Value>) -> Option<Self> {
        let fitting = Self::all().filter_map(|sort| {
            let ranks = sort.0.marks.iter().filter(|it| it.fit(body)).map(|it| it.rank);
            Some((ranks.min()?, sort))
        });
        fitting.min_by_key(|it| it.0).map(|it| it.1)
    }
}

impl PartialOrd for RecordType {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of an export.
impl Ord for RecordType {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let place = |wanted: &Self| Self::all().position(|it| it == *wanted);
        place(self).cmp(&place(other))
    }
}

impl FromStr for RecordType {
    type Err = UnknownSort;

    /// Accepts the singular or the plural, in any case.
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

    /// Records that others refer to come first.
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
