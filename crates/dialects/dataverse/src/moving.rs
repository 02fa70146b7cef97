//! Export of collections with all their contents to a folder, and import: `pinakes export dataverse`, `pinakes import
//! dataverse`.
//!
//! | file of the folder | a line is |
//! |---|---|
//! | `site.jsonl` | a table of metadata blocks, a licence, a type of datasets, a role of the installation |
//! | `users.jsonl` | a user, without password, tokens and the rights of superusers |
//! | `collections.jsonl` | a collection with its roles, groups, guestbooks, templates, assignments and links, parents first |
//! | `datasets.jsonl` | a dataset, then its versions, then its files, each with all its parts |
//! | `files/ab/abcd…` | bytes, by their SHA-256 |
//! | `export.json` | the number of each, written last |
//!
//! Objects that another tenant numbers differently are referred to by name: users, collections, roles, licences, groups
//! (`shape.rs`). All other numbers are shifted by the same distance, so that an import that is run again finds the
//! objects of its first run by number (`numbers.rs`).

mod bytes;
mod collections;
mod datasets;
mod export;
mod import;
mod numbers;
mod shape;
mod site;

use std::io;
use std::path::{Path, PathBuf};

use pinakes_blobs::BlobError;
use pinakes_http::Context;
use pinakes_store::StoreError;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::settings::Settings;

pub use export::{Exporting, export};
pub use import::{Importing, Moved, import, n_bytes};

/// Format version of exports that this program writes and reads.
const FORM: u32 = 1;
const MANIFEST: &str = "export.json";
const SITE: &str = "site.jsonl";
const USERS: &str = "users.jsonl";
const COLLECTIONS: &str = "collections.jsonl";
const DATASETS: &str = "datasets.jsonl";
const FILES: &str = "files";

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// The store, or an invalid record.
    #[error("{0}")]
    Records(#[from] ApiError),
    /// A file of the folder.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The blob store.
    #[error("the store of files: {0}")]
    Blobs(#[from] BlobError),
    /// The request is impossible; says why and what to do.
    #[error("{0}")]
    Refused(String),
}

impl From<StoreError> for MovingError {
    fn from(error: StoreError) -> Self {
        Self::Records(error.into())
    }
}

impl MovingError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::File { path, error }
    }
}

/// What an export or import needs from the server.
#[derive(Clone)]
pub struct MoveParts {
    /// The server's shared parts.
    pub context: Context,
    /// The site's settings.
    pub settings: Settings,
}

/// An object that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file of the folder, or the location of the bytes.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// The object: an alias, an identifier, a name.
    pub name: String,
    /// Reason, and what to do.
    pub reason: String,
}

/// The contents of `export.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    /// [`FORM`].
    form: u32,
    /// Version of the program that wrote it.
    version: String,
    /// Id of this export, by which a repeated import recognises it.
    id: String,
    /// Short name of the root collection at the source.
    root: String,
    /// The exported collection, with all below it; `None` for all collections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    /// Whether it contains the bytes of files.
    files: bool,
    /// The smallest and the largest number of its objects.
    numbers: Option<(i64, i64)>,
    /// Numbers of objects.
    counts: Counts,
}

/// Numbers of objects, by sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Lines of `site.jsonl`.
    pub site: u64,
    /// Users.
    pub users: u64,
    /// Collections.
    pub collections: u64,
    /// Datasets.
    pub datasets: u64,
    /// Versions of datasets.
    pub versions: u64,
    /// Files of datasets.
    pub files: u64,
}
