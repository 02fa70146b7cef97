//! The files of an imported block: checked one by one and packed into chunks, so that they are never all in
//! memory as values.

use serde_json::{Map, Value};

use super::extended_json;
use crate::app::Scicat;
use crate::blocks::chunks::{Chunks, FileChunk};
use crate::dates;
use crate::dto::origdatablock::DATA_FILE;
use crate::faults::Fault;
use crate::kinds::FILES;
use crate::list_splitter::{ListSplitter, SplitError};
use crate::validate::Form;

/// Maximum number of faulty files that are reported.
const MOST_FAULTS: usize = 10;

/// The files of one record while it is being read.
pub(super) struct Files<'a> {
    app: &'a Scicat,
    full: Vec<FileChunk>,
    chunks: Chunks,
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
    files.full.extend(files.chunks.rest());
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
        Self { app, full: Vec::new(), chunks: Chunks::default(), n_seen: 0, faults: Vec::new() }
    }

    /// Returns the number of valid files.
    pub(super) fn n_files(&self) -> u64 {
        self.chunks.n_files()
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
        self.full
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
        let full = self.chunks.add(&file).map_err(|error| format!("{FILES}.{index}: {error}"))?;
        self.full.extend(full);
        Ok(())
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
}
