//! What is kept of files.
//!
//! A *data file* is what was deposited: bytes, checksum, type. A *row* says what a file is called and how it is described in
//! the versions from the ordinal `since` up to, and not including, `until`; a row without `until` is open. So versions share
//! rows until one is changed, and neither a new draft nor a publication touches any.

use pinakes_store::{Column, Identifier, Index, Kind, Type};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Data files by number: body is a [`DataFile`].
pub(crate) static DATA_FILE: Kind = Kind {
    columns: &[Column::one("dataset", Type::Integer), Column::one("pid", Type::Folded)],
    indexes: &[Index::on(&["dataset"]), Index::unique(&["pid"])],
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
        Column::one("openPath", Type::Text),
        Column::one("openSum", Type::Text),
    ],
    indexes: &[
        Index::unique(&["openPath"]),
        Index::on(&["openSum"]),
        Index::on(&["dataset", "label"]),
        Index::on(&["dataset", "since"]),
        Index::on(&["dataset", "until"]),
        Index::on(&["file"]),
    ],
    ..Kind::named("dataverse_filerow")
};

/// The variables of tabular files, by the file's number: body `{"tables": […]}`, as `dataTables` sends them.
pub(crate) static TABLE: Kind = Kind::named("dataverse_datatable");

/// Files that are to be read as tables, by number: body `{"file": 44}`, at the last file of an upload with `"told"`, all files
/// of that upload, whose reading their depositor is told of. Gone when it is done.
pub(crate) static PENDING: Kind = Kind::named("dataverse_ingest");

/// Provenance, by the file's number: body `{"json": …, "entity": …}`.
pub(crate) static PROVENANCE: Kind = Kind::named("dataverse_provenance");

/// Requests for access to files, by number: body is a [`AccessRequest`].
pub(crate) static REQUEST: Kind = Kind {
    columns: &[Column::one("file", Type::Integer), Column::one("user", Type::Integer)],
    indexes: &[Index::on(&["file"]), Index::on(&["user"])],
    ..Kind::named("dataverse_access_request")
};

/// Files derived from files, by `{file}/{tag}/{version}`: body is an [`Auxiliary`].
pub(crate) static AUXILIARY: Kind = Kind {
    columns: &[Column::one("file", Type::Integer)],
    indexes: &[Index::on(&["file"])],
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "blob" }],
    ..Kind::named("dataverse_auxiliary")
};

/// Uploads that were begun by a URL, by their storage identifier: body is a [`super::direct::Begun`].
pub(crate) static BEGUN: Kind = Kind {
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "parts.blob" }],
    ..Kind::named("dataverse_upload")
};

/// Pictures of datasets, by the dataset's number: body `{"blob": …, "contentType": …}`.
pub(crate) static LOGO: Kind = Kind {
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "blob" }],
    ..Kind::named("dataverse_dataset_logo")
};

/// What was deposited.
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
    /// Where the bytes lie, see [`pinakes_blobs::Blob`]; none for files elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    /// `MD5`, `SHA-1`, `SHA-256` or `SHA-512`.
    pub checksum_type: String,
    /// Hexadecimal digits, of the bytes as they were deposited.
    pub checksum: String,
    /// When it was deposited, milliseconds since 1970.
    pub created_ms: i64,
    /// Who deposited it.
    pub creator: i64,
    /// Ordinal of the version in which it was added.
    pub first: i64,
    /// The file that it took the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<i64>,
    /// The first of those that followed each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<i64>,
    /// The file as it was deposited, when it was read as a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Original>,
    /// Fingerprint of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unf: Option<String>,
    /// Names of the table's variables, when the rows begin without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// Variables and rows of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<(u64, u64)>,
    /// What the table is about: `Survey`, `Panel`, …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The day on which it may be downloaded, and why not before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embargo: Option<Until>,
    /// The day from which on it may not be downloaded any more, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Until>,
    /// Why it could not be read as a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingest_fault: Option<String>,
    /// How often it was downloaded.
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
    /// Where its bytes lie; empty for those that were left behind by an export.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blob: String,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub size: u64,
    /// Name.
    pub name: String,
}

/// A day and a reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Until {
    /// `2027-01-31`.
    pub date: String,
    /// Why; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// What a file is called and how it is described in some versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Row {
    /// Number.
    pub id: i64,
    /// The file.
    pub file: i64,
    /// The dataset.
    pub dataset: i64,
    /// Ordinal of the first version that has it.
    pub since: i64,
    /// Ordinal of the first version that has it no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Name.
    pub label: String,
    /// Folder; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Description.
    pub description: String,
    /// `Documentation`, `Data`, `Code`, and what people make up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Whether only those who were granted may download it.
    pub restricted: bool,
    /// Where it comes from, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
    /// What people say of the variables of its table, see `variables.rs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Value>,
    /// Of an open row: what makes its path unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_path: Option<String>,
    /// Of an open row: by what equal contents are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_sum: Option<String>,
}

impl Row {
    /// `folder/name`.
    pub(crate) fn path(&self) -> String {
        match self.directory.as_str() {
            "" => self.label.clone(),
            directory => format!("{directory}/{}", self.label),
        }
    }

    /// Returns whether the version of that ordinal has it.
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
    /// Who asks.
    pub user: i64,
    /// `created`, `granted` or `rejected`.
    pub state: String,
    /// When it was made.
    pub created: String,
}

/// A file derived from a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Auxiliary {
    /// The file.
    pub file: i64,
    /// Number.
    pub id: i64,
    /// What kind of derivation.
    pub format_tag: String,
    /// Version of that kind.
    pub format_version: String,
    /// The program that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Whether everybody may have it once the file is published.
    pub is_public: bool,
    /// E.g. `DP`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Media type.
    pub content_type: String,
    /// Bytes.
    pub file_size: u64,
    /// Checksum, as the data file's.
    pub checksum: Value,
    /// Where the bytes lie.
    pub blob: String,
}

/// Origin of auxiliary files that the server makes of a file: those have them who may download the file.
pub(crate) const MADE_HERE: &str = "pinakes";

/// Returns the record of an auxiliary file.
pub(crate) fn auxiliary_id(file: i64, tag: &str, version: &str) -> String {
    format!("{file}/{tag}/{version}")
}
