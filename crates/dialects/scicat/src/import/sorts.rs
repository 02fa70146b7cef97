//! The sorts of records that files hold, and how they are told apart.

use std::fmt;
use std::str::FromStr;

use pinakes_store::Kind;
use serde_json::{Map, Value};

use super::{Importer, complete};
use crate::blocks::{DATABLOCK, FILES, ORIG_DATABLOCK};
use crate::datasets::DATASET;
use crate::dto;
use crate::validate::Dto;

/// A sort of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordType {
    /// A dataset.
    Dataset,
    /// A list of original files of a dataset.
    OrigDatablock,
    /// An archived package of a dataset.
    Datablock,
    /// A picture or text attached to a dataset, sample or proposal.
    Attachment,
    /// A sample.
    Sample,
    /// A proposal.
    Proposal,
    /// An instrument.
    Instrument,
    /// What happens to the data of an owner group.
    Policy,
    /// A job.
    Job,
    /// Datasets published together.
    PublishedData,
}

/// A name that is no sort's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no sort of record; expected one of {expected}")]
pub struct UnknownSort {
    found: String,
    expected: String,
}

/// Fields by which a sort is told: all of `with`, one of `one_of` (if there are any), none of `without`.
struct Marks {
    sort: RecordType,
    with: &'static [&'static str],
    one_of: &'static [&'static str],
    without: &'static [&'static str],
}

/// Looked at in this order.
const MARKS: [Marks; 13] = [
    Marks { sort: RecordType::Datablock, with: &["archiveId"], one_of: &[], without: &["jobParams"] },
    Marks {
        sort: RecordType::OrigDatablock,
        with: &[FILES],
        one_of: &["datasetId", "rawDatasetId"],
        without: &["sourceFolder"],
    },
    Marks { sort: RecordType::Dataset, with: &["sourceFolder"], one_of: &[], without: &[] },
    Marks {
        sort: RecordType::Policy,
        with: &["ownerGroup"],
        one_of: &["tapeRedundancy", "autoArchive", "embargoPeriod"],
        without: &[],
    },
    Marks {
        sort: RecordType::Job,
        with: &[],
        one_of: &["jobParams", "jobStatusMessage", "emailJobInitiator"],
        without: &[],
    },
    Marks {
        sort: RecordType::PublishedData,
        with: &["title"],
        one_of: &["pidArray", "datasetPids"],
        without: &[],
    },
    Marks { sort: RecordType::Attachment, with: &["caption"], one_of: &[], without: &[] },
    Marks {
        sort: RecordType::Attachment,
        with: &["thumbnail"],
        one_of: &["relationships", "datasetId", "aid"],
        without: &[],
    },
    Marks {
        sort: RecordType::Sample,
        with: &[],
        one_of: &["sampleCharacteristics", "sampleName"],
        without: &[],
    },
    Marks {
        sort: RecordType::Proposal,
        with: &["title"],
        one_of: &["MeasurementPeriodList", "email", "pi_email", "proposalId"],
        without: &[],
    },
    Marks {
        sort: RecordType::Instrument,
        with: &["name"],
        one_of: &["uniqueName", "customMetadata"],
        without: &[],
    },
    Marks { sort: RecordType::Dataset, with: &["type", "contactEmail"], one_of: &[], without: &[] },
    Marks { sort: RecordType::Sample, with: &["sampleId", "ownerGroup"], one_of: &[], without: &[] },
];

impl RecordType {
    /// All of them, in the order in which an export writes them: what others refer to first.
    pub const ALL: [Self; 10] = [
        Self::Dataset,
        Self::OrigDatablock,
        Self::Datablock,
        Self::Attachment,
        Self::Sample,
        Self::Proposal,
        Self::Instrument,
        Self::Policy,
        Self::Job,
        Self::PublishedData,
    ];

    /// The name, as `--kind` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dataset => "dataset",
            Self::OrigDatablock => "origdatablock",
            Self::Datablock => "datablock",
            Self::Attachment => "attachment",
            Self::Sample => "sample",
            Self::Proposal => "proposal",
            Self::Instrument => "instrument",
            Self::Policy => "policy",
            Self::Job => "job",
            Self::PublishedData => "publisheddata",
        }
    }

    /// The sort of a record by its fields.
    pub fn of(body: &Map<String, Value>) -> Option<Self> {
        let has = |name: &&str| body.contains_key(*name);
        let found = MARKS.iter().find(|marks| {
            marks.with.iter().all(has)
                && (marks.one_of.is_empty() || marks.one_of.iter().any(has))
                && !marks.without.iter().any(has)
        });
        found.map(|it| it.sort)
    }

    /// Its records in the store.
    pub fn kind(self) -> &'static Kind {
        match self {
            Self::Dataset => &DATASET,
            Self::OrigDatablock => &ORIG_DATABLOCK,
            Self::Datablock => &DATABLOCK,
            Self::Attachment => &crate::attachments::ATTACHMENT,
            Self::Sample => &crate::samples::SAMPLE,
            Self::Proposal => &crate::proposals::PROPOSAL,
            Self::Instrument => &crate::instruments::INSTRUMENT,
            Self::Policy => &crate::policies::POLICY,
            Self::Job => &crate::jobs::JOB,
            Self::PublishedData => &crate::published_data::PUBLISHED_DATA,
        }
    }

    /// Whether its records hold lists of files.
    pub(super) fn has_files(self) -> bool {
        self.kind().members.is_some()
    }

    /// What a record must look like, once completed.
    pub(super) fn table(self) -> &'static Dto {
        match self {
            Self::Dataset => dto::dataset::v4(),
            Self::OrigDatablock => &dto::origdatablock::ORIG_DATABLOCK,
            Self::Datablock => &dto::datablock::DATABLOCK,
            Self::Attachment => &dto::attachment::V4,
            Self::Sample => &dto::sample::SAMPLE,
            Self::Proposal => &dto::proposal::PROPOSAL,
            Self::Instrument => &dto::instrument::INSTRUMENT,
            Self::Policy => &dto::policy::POLICY,
            Self::Job => &dto::job::V4_CREATE,
            Self::PublishedData => &dto::published_data::V4,
        }
    }

    /// Gives a record what it lacks and brings it into the form in which it is stored. Gives its id.
    pub(super) fn complete(
        self,
        importer: &Importer,
        body: &mut Map<String, Value>,
    ) -> Result<String, String> {
        let complete = match self {
            Self::Dataset => complete::dataset,
            Self::OrigDatablock | Self::Datablock => complete::block,
            Self::Attachment => complete::attachment,
            Self::Sample => complete::sample,
            Self::Proposal => complete::proposal,
            Self::Instrument => complete::instrument,
            Self::Policy => complete::policy,
            Self::Job => complete::job,
            Self::PublishedData => complete::publication,
        };
        complete(importer, body)
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
        let is_named = |it: &&Self| {
            let plural = match it {
                Self::Policy => "policies".to_owned(),
                other => format!("{}s", other.name()),
            };
            wanted == it.name() || wanted == plural
        };
        Self::ALL.iter().find(is_named).copied().ok_or_else(|| UnknownSort {
            found: text.to_owned(),
            expected: Self::ALL.map(Self::name).join(", "),
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
                Some(RecordType::Dataset),
            ),
            (json!({"datasetId": "a", "size": 1, "dataFileList": []}), Some(RecordType::OrigDatablock)),
            (json!({"datasetId": "a", "archiveId": "x", "dataFileList": []}), Some(RecordType::Datablock)),
            (json!({"caption": "c", "datasetId": "a", "thumbnail": "data:"}), Some(RecordType::Attachment)),
            (json!({"sampleId": "s", "sampleName": "Si", "ownerGroup": "g"}), Some(RecordType::Sample)),
            (json!({"proposalId": "p", "title": "t", "email": "a@b.ch"}), Some(RecordType::Proposal)),
            (json!({"_id": "p", "title": "t", "MeasurementPeriodList": []}), Some(RecordType::Proposal)),
            (json!({"pid": "i", "uniqueName": "u", "name": "n"}), Some(RecordType::Instrument)),
            (json!({"ownerGroup": "g", "tapeRedundancy": "low"}), Some(RecordType::Policy)),
            (json!({"type": "archive", "jobParams": {}, "ownerGroup": "g"}), Some(RecordType::Job)),
            (json!({"doi": "10.1/x", "title": "t", "pidArray": []}), Some(RecordType::PublishedData)),
            (json!({"title": "t", "abstract": "a", "datasetPids": []}), Some(RecordType::PublishedData)),
            (json!({"name": "x"}), None),
            (json!({}), None),
        ] {
            let Value::Object(map) = &body else { continue };
            assert_eq!(RecordType::of(map), expected, "{body}");
        }
    }

    #[test]
    fn names_may_be_plural() {
        assert_eq!("Datasets".parse(), Ok(RecordType::Dataset));
        assert_eq!("policies".parse(), Ok(RecordType::Policy));
        assert_eq!("publisheddata".parse(), Ok(RecordType::PublishedData));
        assert!("x".parse::<RecordType>().is_err_and(|it| it.to_string().contains("origdatablock")));
    }
}
