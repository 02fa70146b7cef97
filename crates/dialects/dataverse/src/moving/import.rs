//! Import: reads an export file by file, each line on its own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use pinakes_blobs::Blobs;
use pinakes_http::Db;
use pinakes_store::{Tenant, Txn};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::bytes::Taking;
use super::numbers::Inward;
use super::{Counts, FORM, LeftOut, MANIFEST, Manifest, MoveParts, MovingError};
use crate::app::Dataverse;
use crate::bootstrap;
use crate::error::ApiError;
use crate::ids::SEQUENCE;

/// Maximum length of a line, in bytes: a wide table is one line.
const LINE_BYTES: u64 = 1 << 30;
/// Maximum size of `export.json`, in bytes.
const MANIFEST_BYTES: u64 = 1 << 20;

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct Importing {
    /// The parent of the exported collection; `None` for the collection with the name of its former parent.
    pub into: Option<String>,
}

/// Result of an import.
#[derive(Debug, Clone, Default)]
pub struct Moved {
    /// Numbers of stored objects.
    pub stored: Counts,
    /// Collections and datasets that existed already.
    pub n_there: u64,
    /// Notes for the operator about objects that were stored, or existed already.
    pub notes: Vec<LeftOut>,
    /// Objects that were left out.
    pub left_out: Vec<LeftOut>,
}

/// An import in progress.
pub(super) struct In<'i> {
    pub(super) app: Dataverse,
    pub(super) tenant: &'i Tenant,
    pub(super) folder: &'i Path,
    pub(super) manifest: Manifest,
    pub(super) inward: Inward,
    pub(super) into: Option<String>,
    pub(super) moved: Moved,
    pub(super) note: &'i mut dyn FnMut(u64),
}

/// Imports an export. Objects that exist already stay as they are: collections by short name, datasets by persistent
/// identifier, users by name. A dataset is imported entirely or not at all. An interrupted import can be run again.
/// Calls `note` with the numbers of bytes read.
///
/// Errors: the store; a folder that is not a complete export.
pub fn import(
    parts: &MoveParts,
    tenant: &Tenant,
    folder: &Path,
    asked: &Importing,
    note: &mut dyn FnMut(u64),
) -> Result<Moved, MovingError> {
    let manifest = manifest_of(folder)?;
    let app = Dataverse::new(parts.context.clone(), parts.settings.clone());
    let db = Db::new(tenant.clone());
    parts.context.blobs().block_on(bootstrap::prepare(&app, &db))?;
    if let Some(into) = &asked.into {
        if manifest.collection.as_ref().is_none_or(|it| *it == manifest.root) {
            return Err(MovingError::Refused(
                "the export holds a root collection, which cannot be put into another one; leave --into away, or export a collection by itself"
                    .to_owned(),
            ));
        }
        let found = tenant.read_blocking(|view| crate::collections::find(view, into));
        found.map_err(|error| MovingError::Refused(error.message))?;
    }
    let inward = Inward::of(tenant, &manifest)?;
    let into = asked.into.clone();
    let mut import = In { app, tenant, folder, manifest, inward, into, moved: Moved::default(), note };
    import.site()?;
    import.users()?;
    import.collections()?;
    import.datasets()?;
    // This write makes everything before it durable.
    let key = format!("import/{}", import.manifest.id);
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        if let Some(record) = txn.get(&SEQUENCE, &key)? {
            let mut begun = record.json()?;
            begun["ended"] = true.into();
            txn.put(&SEQUENCE, &key, &begun)?;
        }
        Ok(())
    })?;
    Ok(import.moved)
}

fn manifest_of(folder: &Path) -> Result<Manifest, MovingError> {
    let path = folder.join(MANIFEST);
    let refused = |what: String| MovingError::Refused(format!("{}: {what}", path.display()));
    let mut text = Vec::new();
    File::open(&path).and_then(|it| it.take(MANIFEST_BYTES).read_to_end(&mut text)).map_err(|error| {
        refused(format!(
            "{error}; it is written last: name a folder in which `pinakes export dataverse` ended"
        ))
    })?;
    let form: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| refused(format!("is no JSON: {error}; export again")))?;
    if form["form"].as_u64().is_none_or(|it| u64::from(FORM) < it) {
        let (form, version) = (&form["form"], &form["version"]);
        return Err(refused(format!(
            "is of form {form}, written by pinakes {version}; this one reads form {FORM}: use a newer pinakes"
        )));
    }
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| refused(format!("{error}; export again")))?;
    if Uuid::parse_str(&manifest.id).is_err() {
        return Err(refused(format!("the id {:.60} is none; expected a UUID", manifest.id)));
    }
    Ok(manifest)
}

/// A line of a file.
pub(super) struct Line {
    /// Line number, from 1.
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
}

impl Line {
    /// Parses the line. Errors: why it is invalid.
    pub(super) fn parsed<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.text).map_err(|error| format!("cannot be read: {error}; export again"))
    }
}

/// Reader of the lines of a file.
pub(super) struct LineReader {
    input: BufReader<File>,
    number: u64,
    path: std::path::PathBuf,
}

impl LineReader {
    pub(super) fn open(folder: &Path, name: &str) -> Result<Self, MovingError> {
        let path = folder.join(name);
        let file = File::open(&path).map_err(MovingError::file(&path))?;
        Ok(Self { input: BufReader::with_capacity(1 << 20, file), number: 0, path })
    }

    /// Returns the next line; `None` at the end.
    ///
    /// Errors: the file; a line that is too long.
    pub(super) fn next(&mut self, note: &mut dyn FnMut(u64)) -> Result<Option<Line>, MovingError> {
        let mut text = Vec::new();
        let read = (&mut self.input).take(LINE_BYTES).read_until(b'\n', &mut text);
        let n = read.map_err(MovingError::file(&self.path))? as u64;
        if n == 0 {
            return Ok(None);
        }
        self.number += 1;
        note(n);
        if n == LINE_BYTES && text.last() != Some(&b'\n') {
            let (path, line) = (self.path.display(), self.number);
            return Err(MovingError::Refused(format!(
                "{path}, line {line}: is longer than {LINE_BYTES} bytes"
            )));
        }
        Ok(Some(Line { number: self.number, text }))
    }
}

impl<'i> In<'i> {
    /// Begins to import the files of a collection or a dataset.
    pub(super) fn taking<'t>(&self, blobs: &'t Blobs) -> Taking<'t>
    where
        'i: 't,
    {
        let (tenant, folder) = (self.tenant.name(), self.folder);
        Taking { blobs, tenant, folder, has_files: self.manifest.files, taken: Vec::new() }
    }

    pub(super) fn leave_out(&mut self, file: &str, line: u64, name: &str, reason: impl Into<String>) {
        let (file, name) = (file.to_owned(), name.to_owned());
        self.moved.left_out.push(LeftOut { file, line, name, reason: reason.into() });
    }

    pub(super) fn tell(&mut self, file: &str, line: u64, name: &str, what: impl Into<String>) {
        let (file, name) = (file.to_owned(), name.to_owned());
        self.moved.notes.push(LeftOut { file, line, name, reason: what.into() });
    }

    /// Leaves out a line because of an error. Errors: a failure of the store, which ends the import.
    pub(super) fn blame(
        &mut self,
        file: &str,
        line: u64,
        name: &str,
        error: ApiError,
    ) -> Result<(), MovingError> {
        if error.status.is_server_error() {
            return Err(error.into());
        }
        self.leave_out(file, line, name, error.message);
        Ok(())
    }

    /// Reports a file that holds fewer or more objects than were written.
    pub(super) fn compare(&mut self, file: &str, what: &str, found: u64, expected: u64) {
        let why = match found.cmp(&expected) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => "the file was cut",
            std::cmp::Ordering::Greater => "the file is not that of this export",
        };
        let reason = format!("{found} were read, {MANIFEST} says {expected}: {why}; export again");
        self.leave_out(file, 0, what, reason);
    }

    /// Passes on each line of a file.
    pub(super) fn each_line(
        &mut self,
        name: &str,
        mut visit: impl FnMut(&mut Self, Line) -> Result<(), MovingError>,
    ) -> Result<u64, MovingError> {
        let mut lines = LineReader::open(self.folder, name)?;
        while let Some(line) = lines.next(self.note)? {
            visit(self, line)?;
        }
        Ok(lines.number)
    }
}

/// Returns the size of an export in bytes, for a progress bar.
pub fn n_bytes(folder: &Path) -> u64 {
    let len = |path: &Path| fs::metadata(path).map_or(0, |it| it.len());
    let listed = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let of_lines: u64 = listed(folder).filter(|it| it.path().is_file()).map(|it| len(&it.path())).sum();
    let below = listed(&folder.join(super::FILES)).flat_map(|it| listed(&it.path()).collect::<Vec<_>>());
    of_lines + below.map(|it| len(&it.path())).sum::<u64>()
}
