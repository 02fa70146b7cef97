//! Datasets: `/api/datasets` (sections 3 to 5 of the contract).
//!
//! A dataset is a small record that lists its versions; each version is a record of its own, so that adding a file or
//! setting a lock never rewrites metadata. Versions are numbered by *ordinals*, from 1 in the order in which they were
//! begun; the rows of files state the first and last ordinal that they belong to.

pub(crate) mod archival;
pub(crate) mod compare;
pub(crate) mod create;
pub(crate) mod curation;
pub(crate) mod ddi;
pub(crate) mod draft;
pub(crate) mod edit;
pub(crate) mod jsonld;
pub(crate) mod locks;
pub(crate) mod migrate;
pub(crate) mod moving;
pub(crate) mod people;
pub(crate) mod publish;
pub(crate) mod remove;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod storage;
pub(crate) mod terms;
pub(crate) mod values;
pub(crate) mod version;
pub(crate) mod wanted;

use pinakes_store::{Column, Expr, Facet, Identifier, Index, Kind, Search, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::grants::Place;
use crate::{clock, stored};

pub(crate) use version::{State, VERSION, Version};

/// Datasets by number: body is a [`Dataset`].
pub(crate) static DATASET: Kind = Kind {
    columns: &[
        Column::one("pid", Type::Folded),
        Column::one("owner", Type::Integer),
        Column::one("creator", Type::Integer),
        Column::one("publisher", Type::Integer),
        Column::one("guestbook", Type::Integer),
        Column::one("publicationDate", Type::Text),
        Column::at("released", "released.ordinal", Type::Integer),
        Column::at("draft", "draft.version", Type::Integer),
        Column::one("isLocked", Type::Boolean),
        Column::one("harvestedBy", Type::Text),
        Column::one("harvestId", Type::Text),
        Column::one("datasetType", Type::Text),
    ],
    indexes: &[
        Index::unique(&["pid"]),
        Index::on(&["owner"]),
        Index::on(&["creator"]),
        Index::on(&["publisher"]),
        Index::on(&["guestbook"]),
        Index::on(&["isLocked"]),
        Index::on(&["harvestedBy", "harvestId"]),
    ],
    facets: &[Facet::values("publicationDate")],
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    search: Search::Declared,
    joins: &["id", "owner"],
    ..Kind::named("dataverse_dataset")
};

/// A dataset.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Dataset {
    /// Number.
    pub id: i64,
    /// The collection that contains it.
    pub owner: i64,
    /// `doi:10.5072/FK2/AB12CD`.
    pub pid: String,
    /// The bare DOI, for look-ups across all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
    /// `doi`, `hdl` or `perma`.
    pub protocol: String,
    /// `10.5072`.
    pub authority: String,
    /// `FK2/AB12CD`.
    pub identifier: String,
    /// `file1://10.5072/FK2/AB12CD`.
    pub storage_identifier: String,
    /// Who created it.
    pub creator: i64,
    /// When it was created.
    pub create_time: String,
    /// When its first version was published, `2026-01-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication_date: Option<String>,
    /// Who published that version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<i64>,
    /// `dataset`, `software`, …
    pub dataset_type: String,
    /// The guestbook for its downloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guestbook: Option<i64>,
    /// Maximum number of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_count_limit: Option<i64>,
    /// Language of metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_language: Option<String>,
    /// The date field that citations show instead of the publication date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citation_date_field: Option<String>,
    /// Locks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// `true` if there are locks, so that locked datasets can be found; set by [`put`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_locked: Option<bool>,
    /// The draft, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The newest version that was released and not deaccessioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Numbered>,
    /// The newest version that is not a draft, deaccessioned or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Numbered>,
    /// Ordinal of the newest version.
    pub last_ordinal: i64,
    /// Storage quota for its files, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<i64>,
    /// `None` without a private URL; otherwise whether the private URL is anonymised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_anonymized: Option<bool>,
    /// The harvesting client that imported it; `None` for local datasets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvested_by: Option<String>,
    /// Its source, as the facet names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_source: Option<String>,
    /// The provider's identifier of its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_id: Option<String>,
    /// Minor settings by name: thumbnail file, curation status, storage driver.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub more: Map<String, Value>,
}

/// The draft of a dataset, with the fields that every change to it updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Draft {
    /// Number of the version's record.
    pub version: i64,
    /// Position among the versions.
    pub ordinal: i64,
    /// Number of changes, from 1.
    pub internal: i64,
    /// When it was changed last.
    pub last_update_time: String,
}

/// A version that is not a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbered {
    /// Number of the version's record.
    pub version: i64,
    /// Position among the versions.
    pub ordinal: i64,
    /// The `1` of 1.0.
    pub number: i64,
    /// The `0` of 1.0.
    pub minor: i64,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lock {
    /// `Ingest`, `Workflow`, `InReview`, `finalizePublication`, …
    pub lock_type: String,
    /// When it was set, `Sat Jan 31 10:20:30 UTC 2026`.
    pub date: String,
    /// Name of the user.
    pub user: String,
    /// Reason.
    #[serde(default)]
    pub message: String,
}

impl Lock {
    /// Returns a lock that a user sets now, without a message.
    pub(crate) fn new(lock_type: &str, user: &str, now_ms: i64) -> Self {
        let (lock_type, user) = (lock_type.to_owned(), user.to_owned());
        Self { lock_type, date: clock::long(now_ms), user, message: String::new() }
    }
}

impl Dataset {
    /// Returns the place at which roles on it apply.
    pub(crate) fn place(&self) -> Place {
        Place::dataset(self.id, self.owner)
    }

    /// Returns whether a version of it was ever released.
    pub(crate) fn was_released(&self) -> bool {
        self.publication_date.is_some()
    }

    /// Returns its URL: `https://doi.org/10.5072/FK2/AB12CD`.
    pub(crate) fn persistent_url(&self) -> String {
        let rest = format!("{}/{}", self.authority, self.identifier);
        match self.protocol.as_str() {
            "hdl" => format!("https://hdl.handle.net/{rest}"),
            "perma" => format!("perma:{rest}"),
            _ => format!("https://doi.org/{rest}"),
        }
    }
}

/// Returns the stored form of a persistent identifier: `https://doi.org/10.5072/x` is `doi:10.5072/x`.
pub(crate) fn canonical_pid(text: &str) -> String {
    let resolvers = [
        ("https://doi.org/", "doi:"),
        ("http://doi.org/", "doi:"),
        ("https://dx.doi.org/", "doi:"),
        ("http://dx.doi.org/", "doi:"),
        ("https://hdl.handle.net/", "hdl:"),
        ("http://hdl.handle.net/", "hdl:"),
    ];
    let text = text.trim();
    let found = resolvers.iter().find_map(|(url, scheme)| Some((scheme, text.strip_prefix(url)?)));
    found.map_or_else(|| text.to_owned(), |(scheme, rest)| format!("{scheme}{rest}"))
}

/// Returns the dataset with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Dataset>, ApiError> {
    stored::get(view, &DATASET, &id.to_string())
}

/// Returns the dataset with that persistent identifier, regardless of case.
pub(crate) fn by_pid(view: &mut View<'_>, pid: &str) -> Result<Option<Dataset>, ApiError> {
    let value = pinakes_store::Value::Folded(canonical_pid(pid));
    let found = view.first(&DATASET, Expr::Is("pid".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Stores a dataset.
pub(crate) fn put(txn: &mut Txn<'_>, dataset: &Dataset) -> Result<(), ApiError> {
    let is_locked = (!dataset.locks.is_empty()).then_some(true);
    stored::put(txn, &DATASET, &dataset.id.to_string(), &Dataset { is_locked, ..dataset.clone() })
}
