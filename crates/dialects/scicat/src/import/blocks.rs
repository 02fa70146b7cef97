//! The files of an imported block: checked one by one and packed into chunks, so that they are never all in
//! memory as values.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::extended_json;
use crate::app::Scicat;
use crate::dates;
use crate::dto::origdatablock::DATA_FILE;
use crate::faults::Fault;
use crate::kinds::FILES;
use crate::list_splitter::{ListSplitter, SplitError};
use crate::validate::Form;

/// Files packed into one row, as for blocks that are posted.
const CHUNK_FILES: u32 = 256;
/// Size at which a chunk is full, in bytes.
const CHUNK_BYTES: usize = 48 << 10;
/// Maximum number of faulty files that are reported.
const MOST_FAULTS: usize = 10;

/// A chunk of a block's files: their JSON joined by commas.
#[derive(Debug, Clone)]
pub(super) struct FileChunk {
    /// Position of the first, from 0.
    pub(super) first: u64,
    /// Number of files.
    pub(super) n: u32,
    /// Their JSON.
    pub(super) bytes: Bytes,
}

/// The files of one record while it is being read.
pub(super) struct Files<'a> {
    app: &'a Scicat,
    chunks: Vec<FileChunk>,
    chunk: BytesMut,
    n_in_chunk: u32,
    n_files: u64,
    n_seen: u64,
    faults: Vec<Fault>,
}

/// Takes the files out of a record and returns the rest; `None` if the list is nested deeper and belongs to the
/// record itself.
pub(super) fn split(record: &[u8], files: &mut Files<'_>) -> Result<Option<Vec<u8>>, String> {
    let mut splitter = ListSplitter::new(FILES, usize::MAX);
    let taken = splitter.push(record, |element| files.take(element).map_err(Stopped::Element));
    taken.map_err(|stopped| match stopped {
        Stopped::Element(reason) => reason,
        Stopped::Split(error) => format!("not JSON: {error}"),
    })?;
    files.finish_chunk();
    Ok((0 < files.n_seen).then(|| splitter.into_rest()))
}

enum Stopped {
    Element(String),
    Split(SplitError),
}

impl From<SplitError> for Stopped {
    fn from(error: SplitError) -> Self {
        Self::Split(error)
    }
}

impl<'a> Files<'a> {
    pub(super) fn new(app: &'a Scicat) -> Self {
        Self {
            app,
            chunks: Vec::new(),
            chunk: BytesMut::new(),
            n_in_chunk: 0,
            n_files: 0,
            n_seen: 0,
            faults: Vec::new(),
        }
    }

    /// Returns the number of valid files.
    pub(super) fn n_files(&self) -> u64 {
        self.n_files
    }

    /// Returns the number of elements of the list.
    pub(super) fn n_seen(&self) -> u64 {
        self.n_seen
    }

    /// Returns the faults of the files.
    pub(super) fn fault(&self) -> Option<Fault> {
        let children = self.faults.clone();
        (!children.is_empty()).then(|| Fault { children, ..Fault::new(FILES) })
    }

    pub(super) fn into_chunks(self) -> Vec<FileChunk> {
        self.chunks
    }

    fn take(&mut self, element: &[u8]) -> Result<(), String> {
        let index = self.n_seen;
        self.n_seen += 1;
        let mut value: Value =
            serde_json::from_slice(element).map_err(|error| format!("{FILES}.{index}: not JSON: {error}"))?;
        if extended_json::is_likely(element) {
            extended_json::make_plain(&mut value);
        }
        let Value::Object(mut file) = value else {
            return Err(format!("{FILES}.{index}: expected an object"));
        };
        let faults = DATA_FILE.check_known(&file, Form::Create);
        if !faults.is_empty() {
            if self.faults.len() < MOST_FAULTS {
                self.faults.push(Fault { children: faults, ..Fault::new(index.to_string()) });
            }
            return Ok(());
        }
        self.complete(&mut file);
        self.pack(&file).map_err(|error| format!("{FILES}.{index}: {error}"))
    }

    /// Normalises the date, and adds an id to a file that has none.
    fn complete(&self, file: &mut Map<String, Value>) {
        if let Some(Value::String(time)) = file.get_mut("time")
            && let Some(normal) = dates::normalise(time)
        {
            *time = normal;
        }
        let id = file.get("_id").or_else(|| file.get("id")).filter(|it| it.is_string()).cloned();
        let id = id.unwrap_or_else(|| self.app.new_object_id().into());
        file.entry("_id").or_insert_with(|| id.clone());
        file.entry("id").or_insert(id);
    }

    fn pack(&mut self, file: &Map<String, Value>) -> serde_json::Result<()> {
        if 0 < self.n_in_chunk {
            self.chunk.put_u8(b',');
        }
        serde_json::to_writer((&mut self.chunk).writer(), file)?;
        self.n_in_chunk += 1;
        self.n_files += 1;
        if CHUNK_FILES <= self.n_in_chunk || CHUNK_BYTES <= self.chunk.len() {
            self.finish_chunk();
        }
        Ok(())
    }

    fn finish_chunk(&mut self) {
        if self.n_in_chunk == 0 {
            return;
        }
        let bytes = self.chunk.split().freeze();
        let first = self.n_files - u64::from(self.n_in_chunk);
        self.chunks.push(FileChunk { first, n: self.n_in_chunk, bytes });
        self.n_in_chunk = 0;
    }
}
