//! Receives a block whose list of files may be larger than memory.
//!
//! Files are read, checked and packed into chunks as they arrive. A short list waits in memory for the block; a long
//! one goes to the store a few megabytes at a time, as a list that belongs to nothing until the block takes it over in
//! the last transaction. A request that fails before that leaves nothing behind.

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use pinakes_http::Db;
use pinakes_http::body::Pieces;
use pinakes_store::{Document, ListId, StoreError, Txn};
use serde_json::{Map, Value};

use super::chunks::{Chunks, FileChunk};
use super::metadata::MetadataSchema;
use crate::app::{Scicat, json_fault};
use crate::blocks::sorts::BlockType;
use crate::dates;
use crate::dto::origdatablock::DATA_FILE;
use crate::error::ScicatError;
use crate::faults::Fault;
use crate::kinds::FILES;
use crate::list_splitter::{ListSplitter, SplitError};
use crate::validate::{Dto, Form};

/// Bytes of files that are held in memory before they go to the store.
const STAGE_BYTES: usize = 4 << 20;
/// Maximum number of faulty files that are reported.
const MOST_FAULTS: usize = 100;

/// A list that has gone to the store and belongs to nothing yet. Dropping this deletes it, also when the request times
/// out; a list that a block has taken over stays.
pub(super) struct Staged {
    db: Db,
    sort: &'static BlockType,
    list: Option<ListId>,
}

impl Drop for Staged {
    fn drop(&mut self) {
        let (Some(list), Ok(runtime)) = (self.list, tokio::runtime::Handle::try_current()) else { return };
        let (db, kind) = (self.db.clone(), self.sort.kind);
        runtime.spawn(async move {
            let discarded = db.write(move |txn| txn.discard_list(kind, list)).await;
            if let Err(error) = discarded {
                tracing::warn!(%error, "files of a refused block could not be discarded; the next start will discard them");
            }
        });
    }
}

/// The files of a block that is being received.
#[derive(Clone, Default)]
pub(super) struct Files {
    /// Whether the body contained a list at all.
    pub(super) is_given: bool,
    /// Number of valid files.
    pub(super) n: u64,
    chunks: Vec<FileChunk>,
    staged: Option<ListId>,
}

/// A received block without its files, which have been checked already.
pub(super) struct Received {
    pub(super) head: Map<String, Value>,
    pub(super) files: Files,
    /// All faults, including those of files; empty if the block is valid.
    pub(super) faults: Vec<Fault>,
    /// Kept until the block has taken over its files.
    _staged: Staged,
}

/// Receives a block and checks it against `table`.
///
/// Errors: those of receiving and of JSON. Faults in the content are part of the result.
pub(super) async fn receive(
    app: &Scicat,
    db: &Db,
    sort: &'static BlockType,
    headers: &HeaderMap,
    body: Body,
    table: &Dto,
    form: Form,
) -> Result<Received, ScicatError> {
    let mut packer = Packer::new(app, db, sort);
    let rest = receive_pieces(app, headers, body, &mut packer).await?;
    let head = app.parse_object(&rest)?;
    packer.files.is_given = head.contains_key(FILES);
    let mut faults = table.check(&head, form);
    if 0 < packer.n_seen {
        faults.retain(|it| it.property != FILES);
    }
    if !packer.faults.is_empty() {
        let mut of_files = Fault::new(FILES);
        of_files.children = std::mem::take(&mut packer.faults);
        faults.push(of_files);
    }
    Ok(Received { head, files: packer.files, faults, _staged: packer.staged })
}

async fn receive_pieces(
    app: &Scicat,
    headers: &HeaderMap,
    body: Body,
    packer: &mut Packer<'_>,
) -> Result<Bytes, ScicatError> {
    let limits = app.context.limits();
    let mut pieces = Pieces::new(headers, body, limits.stream_body_bytes, limits)?;
    let mut splitter = ListSplitter::new(FILES, usize::try_from(limits.body_bytes).unwrap_or(usize::MAX));
    while let Some(piece) = pieces.next().await? {
        splitter.push(&piece, |element| packer.take(element))?;
        if STAGE_BYTES < packer.n_waiting_bytes {
            packer.stage().await?;
        }
    }
    let rest = packer.chunks.rest();
    packer.keep(rest);
    Ok(splitter.into_rest().into())
}

struct Packer<'a> {
    app: &'a Scicat,
    metadata: MetadataSchema,
    files: Files,
    staged: Staged,
    chunks: Chunks,
    n_seen: u64,
    n_waiting_bytes: usize,
    faults: Vec<Fault>,
}

impl<'a> Packer<'a> {
    fn new(app: &'a Scicat, db: &Db, sort: &'static BlockType) -> Self {
        Self {
            app,
            metadata: MetadataSchema::of(&app.settings),
            files: Files::default(),
            staged: Staged { db: db.clone(), sort, list: None },
            chunks: Chunks::default(),
            n_seen: 0,
            n_waiting_bytes: 0,
            faults: Vec::new(),
        }
    }

    /// Checks and packs one file.
    fn take(&mut self, element: &[u8]) -> Result<(), ScicatError> {
        let index = self.n_seen;
        self.n_seen += 1;
        let value = serde_json::from_slice(element).map_err(|fault| {
            ScicatError::bad_request(format!("{FILES}.{index}: {}", json_fault(element, &fault)))
        })?;
        let Value::Object(mut file) = value else {
            let mut fault = Fault::new(index.to_string());
            fault.constraints.push((
                "nestedValidation",
                format!("each value in nested property {FILES} must be either object or array"),
            ));
            self.note(fault);
            return Ok(());
        };
        let mut faults = DATA_FILE.check(&file, Form::Create);
        if faults.is_empty() {
            faults.extend(self.metadata.check(&file));
        }
        if !faults.is_empty() {
            let mut fault = Fault::new(index.to_string());
            fault.children = faults;
            self.note(fault);
            return Ok(());
        }
        complete(self.app, &mut file);
        self.pack(&file)
    }

    fn note(&mut self, fault: Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
    }

    fn pack(&mut self, file: &Map<String, Value>) -> Result<(), ScicatError> {
        let full = self.chunks.add(file);
        let full = full.map_err(|error| ScicatError::from(StoreError::Damaged(error.to_string())))?;
        self.keep(full);
        Ok(())
    }

    fn keep(&mut self, chunk: Option<FileChunk>) {
        self.n_waiting_bytes += chunk.as_ref().map_or(0, |it| it.bytes.len());
        self.files.chunks.extend(chunk);
        self.files.n = self.chunks.n_files();
    }

    /// Moves the waiting chunks to the store, unless the body is going to be refused anyway.
    async fn stage(&mut self) -> Result<(), ScicatError> {
        self.n_waiting_bytes = 0;
        let chunks = std::mem::take(&mut self.files.chunks);
        if !self.faults.is_empty() {
            return Ok(());
        }
        let (db, sort) = (&self.staged.db, self.staged.sort);
        let list = match self.files.staged {
            Some(list) => list,
            // In a transaction of its own, so that the list's id is known (and the list can be deleted) before anything
            // is in it.
            None => db.write(|txn| txn.new_list(sort.kind)).await?,
        };
        self.staged.list = Some(list);
        self.files.staged = Some(list);
        let db = &self.staged.db;
        Ok(db.write(move |txn| append(txn, sort, list, &chunks)).await?)
    }
}

fn append(txn: &mut Txn<'_>, sort: &BlockType, list: ListId, chunks: &[FileChunk]) -> Result<(), StoreError> {
    for chunk in chunks {
        txn.append_members(sort.kind, list, chunk.first, chunk.n, chunk.bytes.clone())?;
    }
    Ok(())
}

/// Sets what the server adds to a file: its date in one format, and an id.
fn complete(app: &Scicat, file: &mut Map<String, Value>) {
    if let Some(Value::String(time)) = file.get_mut("time")
        && let Some(normal) = dates::normalise(time)
    {
        *time = normal;
    }
    let id = app.new_object_id();
    file.insert("_id".to_owned(), id.clone().into());
    file.insert("id".to_owned(), id.into());
}

impl Files {
    /// Writes the document with this list of files in the same transaction.
    pub(super) fn join(
        &self,
        txn: &mut Txn<'_>,
        sort: &BlockType,
        document: Document,
    ) -> Result<Document, StoreError> {
        let list = match self.staged {
            Some(list) => list,
            None => txn.new_list(sort.kind)?,
        };
        append(txn, sort, list, &self.chunks)?;
        Ok(document.with_list(list, self.n))
    }
}

impl From<SplitError> for ScicatError {
    fn from(error: SplitError) -> Self {
        match error {
            SplitError::TooLarge { .. } => Self::with(http::StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            SplitError::Unbalanced { .. } => Self::bad_request(error.to_string()),
        }
    }
}
