//! Collections with all that lies in them to a folder and back: `pinakes export dataverse`, `pinakes import dataverse`.
//!
//! | file of the folder | a line is |
//! |---|---|
//! | `site.jsonl` | a table of metadata blocks, a licence, a type of datasets, a role of the installation |
//! | `users.jsonl` | a user, without password, tokens and the rights of superusers |
//! | `collections.jsonl` | a collection with its roles, groups, guestbooks, templates, assignments and links, parents first |
//! | `datasets.jsonl` | a dataset, then its versions, then its files, each with all that belongs to it |
//! | `files/ab/abcd…` | bytes, by their SHA-256 |
//! | `export.json` | how many there are of each, written last |
//!
//! What another tenant numbers in its own way is named: users, collections, roles, licences, groups (`shape.rs`). All other numbers
//! move by one distance, so that an import that is run again finds what it made before by number (`numbers.rs`).

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

/// The form of exports that this program writes and reads.
const FORM: u32 = 1;
const MANIFEST: &str = "export.json";
const SITE: &str = "site.jsonl";
const USERS: &str = "users.jsonl";
const COLLECTIONS: &str = "collections.jsonl";
const DATASETS: &str = "datasets.jsonl";
const FILES: &str = "files";

/// Why collections could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// The store, or a record that is not what it should be.
    #[error("{0}")]
    Records(#[from] ApiError),
    /// A file of the folder.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// The store of files.
    #[error("the store of files: {0}")]
    Blobs(#[from] BlobError),
    /// What was asked for cannot be done; says why and what to do.
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

/// What an export or import needs of the server.
#[derive(Clone)]
pub struct MoveParts {
    /// The server's shared parts.
    pub context: Context,
    /// The site's settings.
    pub settings: Settings,
}

/// What was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file of the folder, or where the bytes lie.
    pub file: String,
    /// The line, from 1; 0: the file as a whole.
    pub line: u64,
    /// What it is about: an alias, an identifier, a name.
    pub name: String,
    /// Why, and what to do.
    pub reason: String,
}

/// What an export holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    /// [`FORM`].
    form: u32,
    /// Version of the program that wrote it.
    version: String,
    /// Name of this export: an import that is run again is known by it.
    id: String,
    /// Short name of the root collection where it was made.
    root: String,
    /// The collection that was exported with all below it; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    /// Whether bytes are in it.
    files: bool,
    /// The smallest and the largest number of an object.
    numbers: Option<(i64, i64)>,
    /// How many there are of each.
    counts: Counts,
}

/// How many there are of each.
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
