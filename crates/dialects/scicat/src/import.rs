//! Imports records from files: as SciCat's API sends them, as MongoDB dumps them, as `pinakes export` writes
//! them, or as a client would post them.
//!
//! An [`Importer`] turns the bytes of one record into a [`Prepared`] one, on any thread and without the store:
//! it determines the type, converts MongoDB's extended JSON to plain JSON, checks the record against the tables
//! of `dto/`, and completes what is missing as a create does. Ids, dates and user names in the record are kept.
//! A [`Loading`] writes the records in batches and maintains what depends on several records: a dataset's sums
//! over its blocks, who may see a block, the policy of each owner group, the number of datasets of a proposal.
//!
//! Records of a dump were once accepted by a server, by the rules of its time. So fields that no table knows are
//! kept, and the formats of mail addresses and URLs are not checked again in a record that has `createdAt`.

mod blocks;
pub(crate) mod complete;
mod extended_json;
pub(crate) mod imported;
mod loading;
pub(crate) mod sorts;

use pinakes_http::Context;
use pinakes_store::{Document, Fields, StoreError};
use serde_json::{Map, Value};

use crate::app::Scicat;
use crate::blocks::chunks::FileChunk;
use crate::datasets::incoming::{self, Incoming};
use crate::faults::{self, Fault};
use crate::kinds::{DATASET, FILES, PROPOSAL};
use crate::settings::Settings;
use crate::validate::{Dto, Form};

pub use imported::{Importer, RecordType};
pub use loading::{Loading, Written};
pub use sorts::UnknownSort;

/// Maximum number of texts reported for one record: an invalid list of files could have thousands.
const MOST_TEXTS: usize = 10;
/// Constraints that are checked when a record is created, but not when it is migrated.
const FORMS: [&str; 3] = ["isEmail", "customEmailList", "isUrl"];

/// How records that already exist are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Existing records stay unchanged.
    Keep,
    /// Existing records are replaced by those of the file.
    Replace,
}

/// A record ready to be written.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its type.
    pub sort: RecordType,
    document: Document,
    /// The files of a block.
    files: Vec<FileChunk>,
    /// The owner group of a dataset, for which a policy is created at the end.
    owner_group: Option<String>,
    /// The mail address of the owner, for that policy.
    owner_email: Option<String>,
    /// Proposals whose number of datasets may change.
    proposals: Vec<String>,
}

impl Prepared {
    /// Returns the record's id.
    pub fn id(&self) -> &str {
        self.document.id()
    }

    /// Returns the approximate number of bytes that it occupies in memory.
    pub fn n_bytes(&self) -> usize {
        self.document.body().len() + self.files.iter().map(|it| it.bytes.len()).sum::<usize>()
    }
}

/// Parses a record without its files.
fn parse(record: &[u8]) -> Result<Incoming<'_>, String> {
    if !extended_json::is_likely(record)
        && let Ok(incoming) = serde_json::from_slice(record)
    {
        return Ok(incoming);
    }
    let mut value: Value = serde_json::from_slice(record).map_err(|error| not_json(&error))?;
    extended_json::make_plain(&mut value);
    match value {
        Value::Object(rest) => Ok(Incoming { rest, metadata: None }),
        other => Err(format!("expected a JSON object, found {}", name_of(&other))),
    }
}

fn document(
    sort: RecordType,
    id: &str,
    body: Map<String, Value>,
    metadata: Option<Fields<'_>>,
) -> Result<Document, StoreError> {
    if sort.is_of(&DATASET) {
        let metadata = metadata.map(incoming::part).transpose()?;
        return incoming::document(id, &Value::Object(body), metadata.as_ref());
    }
    let whole = Incoming { rest: body, metadata }.into_map();
    Document::new(sort.kind(), id, &Value::Object(whole))
}

/// Describes why a record is not JSON; positions count within the record, as the caller knows its line.
fn not_json(error: &serde_json::Error) -> String {
    format!("not JSON: {error} of the record")
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn forgive_forms(faults: &mut Vec<Fault>) {
    for fault in faults.iter_mut() {
        // An address that is not a text stays a fault, by its other rule or by this one.
        fault.constraints.retain(|(name, _)| !FORMS.contains(name));
        forgive_forms(&mut fault.children);
    }
    faults.retain(|it| !it.is_empty());
}

/// Formats the faults of a record: `dataset "a/b": owner must be a string; …`
fn told(sort: RecordType, id: &str, faults: &[Fault]) -> String {
    let mut texts = faults::texts(faults);
    let n_more = texts.len().saturating_sub(MOST_TEXTS);
    texts.truncate(MOST_TEXTS);
    if 0 < n_more {
        texts.push(format!("{n_more} more"));
    }
    format!("{sort} {id:?}: {}", texts.join("; "))
}

fn texts(body: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = body.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reason why an import cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored record is inconsistent.
    #[error("{0}")]
    Damaged(String),
}

impl Importer {
    /// Creates an importer with the site's settings. `username` is entered in records that name no user; `sort`
    /// is the type of all records, or `None` to determine it from the fields of each.
    pub fn new(
        context: Context,
        settings: Settings,
        username: impl Into<String>,
        sort: Option<RecordType>,
    ) -> Self {
        let app = Scicat::new(context, settings);
        Self { app, username: username.into(), sort }
    }

    /// Parses, checks and completes a record.
    ///
    /// Errors: a text that tells the owner of the file why the record is invalid.
    pub fn prepare(&self, record: &[u8]) -> Result<Prepared, String> {
        let mut files = blocks::Files::new(&self.app);
        let rest = match memchr::memmem::find(record, br#""dataFileList""#) {
            Some(_) => blocks::split(record, &mut files)?,
            None => None,
        };
        let Incoming { rest: mut body, metadata } = parse(rest.as_deref().unwrap_or(record))?;
        let sort = match self.sort {
            Some(sort) => sort,
            None => RecordType::of(&body).ok_or("its fields tell no sort of record; name one with --kind")?,
        };
        if files.n_files() != 0 && !sort.has_files() {
            return Err(format!("a {sort} has no {FILES}; is it a record of another sort? See --kind"));
        }
        let id = sort.complete(self, &mut body)?;
        let mut faults = self.faults(sort.table(), &body);
        faults.retain(|it| !(it.property == FILES && 0 < files.n_seen()));
        faults.extend(files.fault());
        if !faults.is_empty() {
            return Err(told(sort, &id, &faults));
        }
        if sort.has_files() {
            body.shift_remove(FILES);
        }
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_dataset = sort.is_of(&DATASET);
        let proposals = if is_dataset {
            texts(&body, "proposalIds")
        } else if sort.is_of(&PROPOSAL) {
            vec![id.clone()]
        } else {
            Vec::new()
        };
        let (owner_group, owner_email) = (text("ownerGroup"), text("ownerEmail"));
        let document = document(sort, &id, body, metadata).map_err(|error| error.to_string())?;
        Ok(Prepared {
            sort,
            document,
            files: files.into_chunks(),
            owner_group: owner_group.filter(|_| is_dataset),
            owner_email: owner_email.filter(|_| is_dataset),
            proposals,
        })
    }

    fn faults(&self, table: &Dto, body: &Map<String, Value>) -> Vec<Fault> {
        let mut faults = table.check_known(body, Form::Create);
        if body.contains_key("createdAt") {
            forgive_forms(&mut faults);
        }
        faults
    }
}
