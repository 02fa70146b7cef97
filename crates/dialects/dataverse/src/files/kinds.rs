//! Kinds of records for files.
//!
//! A *data file* is what was deposited: bytes, checksum, type. A *row* holds name and description of a file in the
//! versions from the ordinal `since` up to, but not including, `until`; a row without `until` is open. Versions
//! therefore share rows until one is changed, and neither a new draft nor a publication rewrites any.

use pinakes_store::{Column, Identifier, Index, Kind, Search, Type};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Data files by number: body is a [`DataFile`].
pub(crate) static DATA_FILE: Kind = Kind {
    columns: &[
        Column::one("dataset", Type::Integer),
        Column::one("pid", Type::Folded),
        Column::one("creator", Type::Integer),
        Column::one("size", Type::Integer),
        Column::at("original_size", "original.size", Type::Integer),
        Column::one("contentType", Type::Text),
        Column::one("createdMs", Type::Integer),
        Column::one("downloads", Type::Integer),
        Column::at("embargo_date", "embargo.date", Type::Text),
        Column::at("retention_date", "retention.date", Type::Text),
        Column::many("tags", Type::Text),
    ],
    indexes: &[Index::on(&["dataset"]), Index::unique(&["pid"]), Index::on(&["creator"])],
    search: Search::Declared,
    joins: &["id", "dataset"],
    identifiers: &[
        Identifier { scheme: pinakes_blobs::SCHEME, path: "blob" },
        Identifier { scheme: pinakes_blobs::SCHEME, path: "original.blob" },
    ],
    ..Kind::named("dataverse_datafile")
};

/// Rows by number: body is a [`Row`].
pub(crate) static ROW: Kind = Kind {
    columns: &[
        Column::one("dataset", Type::Integer),
        Column::one("file", Type::Integer),
        Column::one("since", Type::Integer),
        Column::one("until", Type::Integer),
        Column::one("label", Type::Text),
        Column::one("directory", Type::Text),
        Column::one("description", Type::Text),
        Column::one("restricted", Type::Boolean),
        Column::one("openPath", Type::Text),
        Column::one("openSum", Type::Text),
        Column::many("categories", Type::Text),
    ],
    indexes: &[
        Index::unique(&["openPath"]),
        Index::on(&["openSum"]),
        Index::on(&["dataset", "label"]),
        Index::on(&["dataset", "since"]),
        Index::on(&["dataset", "until"]),
        Index::on(&["file"]),
    ],
    search: Search::Declared,
    joins: &["file"],
    ..Kind::named("dataverse_filerow")
};

/// The variables of tables, by the file's number: body `{"tables": […]}`, in the form of `dataTables`.
pub(crate) static TABLE: Kind = Kind::named("dataverse_datatable");

/// Pending ingests by file number: body `{"file": 44}`; for the last file of an upload also `"told"`, all files of that
/// upload, whose ingest is reported to their depositor. Deleted when done.
pub(crate) static PENDING: Kind = Kind::named("dataverse_ingest");

/// Provenance, by the file's number: body `{"json": …, "entity": …}`.
pub(crate) static PROVENANCE: Kind = Kind::named("dataverse_provenance");

/// Requests for access to files, by number: body is an [`AccessRequest`].
pub(crate) static REQUEST: Kind = Kind {
    columns: &[Column::one("file", Type::Integer), Column::one("user", Type::Integer)],
    indexes: &[Index::on(&["file"]), Index::on(&["user"])],
    ..Kind::named("dataverse_access_request")
};

/// Auxiliary files, derived from files, by `{file}/{tag}/{version}`: body is an [`Auxiliary`].
pub(crate) static AUXILIARY: Kind = Kind {
    columns: &[Column::one("file", Type::Integer)],
    indexes: &[Index::on(&["file"])],
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "blob" }],
    ..Kind::named("dataverse_auxiliary")
};

/// Direct uploads that were started, by their storage identifier: body is a [`super::direct::Begun`].
pub(crate) static BEGUN: Kind = Kind {
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "parts.blob" }],
    ..Kind::named("dataverse_upload")
};

/// Logos of datasets, by the dataset's number: body `{"blob": …, "contentType": …}`.
pub(crate) static LOGO: Kind = Kind {
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "blob" }],
    ..Kind::named("dataverse_dataset_logo")
};

/// A deposited file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DataFile {
    /// Number.
    pub id: i64,
    /// The dataset.
    pub dataset: i64,
    /// Persistent identifier of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<String>,
    /// `file1://18b3972213f-268a1f7a9e5d`.
    pub storage_identifier: String,
    /// Its blob, see [`pinakes_blobs::Blob`]; `None` for files whose bytes are elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Media type.
    pub content_type: String,
    /// Size in bytes.
    pub size: u64,
    /// `MD5`, `SHA-1`, `SHA-256` or `SHA-512`.
    pub checksum_type: String,
    /// Checksum of the deposited bytes, in hexadecimal digits.
    pub checksum: String,
    /// When it was deposited, in milliseconds since 1970.
    pub created_ms: i64,
    /// Who deposited it.
    pub creator: i64,
    /// Ordinal of the version in which it was added.
    pub first: i64,
    /// The file that it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<i64>,
    /// The first file in its chain of replacements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<i64>,
    /// The file as it was deposited, if it was ingested as a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// UNF fingerprint of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unf: Option<String>,
    /// The header line of the table, if the stored rows lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Numbers of variables and of rows of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<(u64, u64)>,
    /// Tags of the table: `Survey`, `Panel`, …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The date from which it may be downloaded, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embargo: Option<Until>,
    /// The last date on which it may be downloaded, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Until>,
    /// Why the ingest failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingest_fault: Option<String>,
    /// Number of downloads.
    #[serde(skip_serializing_if = "is_zero")]
    pub downloads: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(it: &u64) -> bool {
    *it == 0
}

/// A file as it was deposited.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Original {
    /// Its blob; empty if an export left it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blob: String,
    /// Media type.
    pub content_type: String,
    /// Size in bytes.
    pub size: u64,
    /// Name.
    pub name: String,
}

/// A date and a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Until {
    /// `2027-01-31`.
    pub date: String,
    /// Reason; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// Name and description of a file in some versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Row {
    /// Number.
    pub id: i64,
    /// The file.
    pub file: i64,
    /// The dataset.
    pub dataset: i64,
    /// Ordinal of the first version that contains it.
    pub since: i64,
    /// Ordinal of the first version that no longer contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Name.
    pub label: String,
    /// Folder; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Description.
    pub description: String,
    /// `Documentation`, `Data`, `Code`, and custom ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Whether downloads need a grant.
    pub restricted: bool,
    /// Provenance as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// User-supplied descriptions of its table's variables, see `variables.rs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// In open rows: the dataset and path, which are unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_path: Option<String>,
    /// In open rows: a key for finding equal contents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_sum: Option<String>,
}

impl Row {
    /// Returns the path: `folder/name`.
    pub(crate) fn path(&self) -> String {
        match self.directory.as_str() {
            "" => self.label.clone(),
            directory => format!("{directory}/{}", self.label),
        }
    }

    /// Returns whether the version with that ordinal contains it.
    pub(crate) fn is_in(&self, ordinal: i64) -> bool {
        self.since <= ordinal && self.until.is_none_or(|until| ordinal < until)
    }
}

/// A request for access.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AccessRequest {
    /// Number.
    pub id: i64,
    /// The file.
    pub file: i64,
    /// The user who asks.
    pub user: i64,
    /// `created`, `granted` or `rejected`.
    pub state: String,
    /// When it was made.
    pub created: String,
}

/// An auxiliary file, derived from a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Auxiliary {
    /// The file.
    pub file: i64,
    /// Number.
    pub id: i64,
    /// The type of derivative.
    pub format_tag: String,
    /// Version of that type.
    pub format_version: String,
    /// The program that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Whether it is public once the file is published.
    pub is_public: bool,
    /// E.g. `DP`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Media type.
    pub content_type: String,
    /// Size in bytes.
    pub file_size: u64,
    /// Checksum, in the form of the data file's.
    pub checksum: Value,
    /// Its blob.
    pub blob: String,
}

/// Origin of auxiliary files that the server creates: they may be downloaded by whoever may download the file.
pub(crate) const MADE_HERE: &str = "pinakes";

/// Returns the record of an auxiliary file.
pub(crate) fn auxiliary_id(file: i64, tag: &str, version: &str) -> String {
    format!("{file}/{tag}/{version}")
}
