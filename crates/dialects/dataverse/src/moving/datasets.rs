//! Import of datasets: each with its versions and files in one transaction.

use pinakes_store::{Txn, View};
use serde::Deserialize;
use serde_json::Value;

use super::bytes::Taking;
use super::collections::{Shown, grant, link};
use super::import::{In, Line, LineReader};
use super::numbers::Inward;
use super::site::{fresh, read};
use super::{Counts, DATASETS, MovingError, shape};
use crate::app::Dataverse;
use crate::datasets::create::parts_of_pid;
use crate::datasets::{self, DATASET, Dataset, VERSION, Version};
use crate::error::ApiError;
use crate::files::checksum::Algorithm;
use crate::files::kinds::{
    AUXILIARY, AccessRequest, Auxiliary, DATA_FILE, DataFile, LOGO, PROVENANCE, REQUEST, ROW, Row, TABLE,
    auxiliary_id,
};
use crate::guestbooks::GUESTBOOK;
use crate::search::index::index_whole_dataset;
use crate::{collections, stored};

/// The first line of a dataset.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Head {
    dataset: Value,
    /// Number of lines with versions that follow.
    versions: u64,
    /// Number of lines with files after these.
    files: u64,
    assignments: Vec<Value>,
    links: Vec<Value>,
    logo: Option<Value>,
}

/// A line with a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FileLine {
    file: Value,
    rows: Vec<Value>,
    table: Option<Value>,
    provenance: Option<Value>,
    auxiliaries: Vec<Value>,
    requests: Vec<Value>,
    assignments: Vec<Value>,
}

/// A dataset with all its lines.
#[derive(Debug, Clone, Default)]
struct Whole {
    /// Number of its first line.
    line: u64,
    head: Head,
    versions: Vec<Value>,
    files: Vec<FileLine>,
    /// What is wrong in one of its lines.
    fault: Option<String>,
}

impl Whole {
    fn name(&self) -> &str {
        self.head.dataset["pid"].as_str().unwrap_or_default()
    }

    fn take(&mut self, line: &Line) {
        let read = || -> Result<Value, String> { line.parsed() };
        let part = match read() {
            Ok(value) if value.get("version").is_some() => {
                self.versions.push(value["version"].clone());
                return;
            }
            Ok(value) if value.get("file").is_some() => {
                serde_json::from_value(value).map_err(|it| it.to_string())
            }
            Ok(_) => Err("is neither a dataset, nor a version, nor a file".to_owned()),
            Err(reason) => Err(reason),
        };
        match part {
            Ok(file) => self.files.push(file),
            Err(reason) => {
                self.fault.get_or_insert(format!("line {}, one of its lines, {reason}", line.number));
            }
        }
    }

    /// Returns why its lines cannot be imported.
    fn fault(&self) -> Option<String> {
        let lacking = |what: &str, found: usize, expected: u64| {
            (found as u64 != expected)
                .then(|| format!("{found} of its {expected} {what} follow: the file was cut; export again"))
        };
        let versions = || lacking("versions", self.versions.len(), self.head.versions);
        let files = || lacking("files", self.files.len(), self.head.files);
        self.fault.clone().or_else(versions).or_else(files)
    }
}

/// Whether a dataset exists here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum There {
    No,
    /// It was imported by an earlier run.
    Before,
    /// Another dataset has its identifier.
    Other,
}

impl In<'_> {
    pub(super) fn datasets(&mut self) -> Result<(), MovingError> {
        let mut lines = LineReader::open(self.folder, DATASETS)?;
        let (mut whole, mut n): (Option<Whole>, u64) = (None, 0);
        while let Some(line) = lines.next(self.note)? {
            if !is_head(&line) {
                match &mut whole {
                    Some(whole) => whole.take(&line),
                    None => {
                        self.leave_out(DATASETS, line.number, "", "stands before any dataset; export again")
                    }
                }
                continue;
            }
            if let Some(whole) = whole.take() {
                self.dataset(whole)?;
            }
            n += 1;
            let head = line.parsed();
            let fault = head.as_ref().err().cloned();
            whole =
                Some(Whole { line: line.number, head: head.unwrap_or_default(), fault, ..Whole::default() });
        }
        if let Some(whole) = whole {
            self.dataset(whole)?;
        }
        self.compare(DATASETS, "datasets", n, self.manifest.counts.datasets);
        Ok(())
    }

    fn dataset(&mut self, mut whole: Whole) -> Result<(), MovingError> {
        let (line, name) = (whole.line, whole.name().to_owned());
        if let Some(fault) = whole.fault() {
            self.leave_out(DATASETS, line, &name, fault);
            return Ok(());
        }
        let (inward, head) = (self.inward.clone(), whole.head.dataset.clone());
        match self.tenant.read_blocking(|view| there(view, &inward, &head)) {
            Ok(There::No) => {}
            Ok(There::Before) => {
                self.moved.n_there += 1;
                return Ok(());
            }
            Ok(There::Other) => {
                self.moved.n_there += 1;
                self.tell(DATASETS, line, &name, "is there already and stays as it is");
                return Ok(());
            }
            Err(error) => return self.blame(DATASETS, line, &name, error),
        }
        let blobs = self.app.context.blobs().clone();
        let mut taking = self.taking(&blobs);
        if let Err(reason) = take_bytes(&mut whole, &mut taking, self.note) {
            taking.give_up();
            self.leave_out(DATASETS, line, &name, reason);
            return Ok(());
        }
        let counts = Counts {
            datasets: 1,
            versions: whole.versions.len() as u64,
            files: whole.files.len() as u64,
            ..Counts::default()
        };
        let app = self.app.clone();
        let write = move |txn: &mut Txn<'_>| store(txn, &app, &inward, &whole);
        match self.tenant.load_blocking(write) {
            Ok(notes) => {
                self.moved.stored.datasets += counts.datasets;
                self.moved.stored.versions += counts.versions;
                self.moved.stored.files += counts.files;
                notes.into_iter().for_each(|what| self.tell(DATASETS, line, &name, what));
            }
            Err(error) => {
                taking.give_up();
                self.blame(DATASETS, line, &name, error)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a line is the first one of a dataset; recognises even a truncated one by its beginning.
fn is_head(line: &Line) -> bool {
    let begins = |with: &str| line.text.starts_with(with.as_bytes());
    if begins("{\"version\"") || begins("{\"file\"") {
        return false;
    }
    begins("{\"dataset\"") || line.parsed::<Value>().is_ok_and(|it| it.get("dataset").is_some())
}

fn there(view: &mut View<'_>, inward: &Inward, said: &Value) -> Result<There, ApiError> {
    let id = said["id"].as_i64().ok_or_else(|| ApiError::bad_request("the dataset has no id"))?;
    let pid = said["pid"].as_str().ok_or_else(|| ApiError::bad_request("the dataset has no identifier"))?;
    if datasets::by_id(view, inward.own(id)?)?.is_some() {
        return Ok(There::Before);
    }
    Ok(if datasets::by_pid(view, pid)?.is_some() { There::Other } else { There::No })
}

/// Stores the bytes of a dataset's files. Errors: the reason why bytes cannot be imported, with their file.
fn take_bytes(whole: &mut Whole, taking: &mut Taking<'_>, note: &mut dyn FnMut(u64)) -> Result<(), String> {
    if let Some(logo) = &mut whole.head.logo {
        taking.take(logo, shape::LOGO, None, note).map_err(|reason| format!("its picture: {reason}"))?;
    }
    for line in &mut whole.files {
        let id = line.file["id"].clone();
        let of_file = |reason: String| format!("file {id}: {reason}");
        let algorithm = line.file["checksumType"].as_str().map(Algorithm::named);
        let sum = line.file["checksum"].as_str().unwrap_or_default().to_owned();
        let expected = algorithm.filter(|_| !sum.is_empty()).map(|it| (it, sum.as_str()));
        // The checksum is that of the deposited file.
        let is_table = line.file["original"].is_object();
        let (table, original): (shape::Shape, shape::Shape) =
            (&[("blob", shape::Leaf::Blob)], &[("original.blob", shape::Leaf::Blob)]);
        taking.take(&mut line.file, table, expected.filter(|_| !is_table), note).map_err(of_file)?;
        taking.take(&mut line.file, original, expected, note).map_err(of_file)?;
        if !taking.has_files {
            if let Some(Value::Object(original)) = line.file.get_mut("original") {
                original.remove("blob");
            }
            // Without their bytes, auxiliary files are lost.
            line.auxiliaries.clear();
        }
        for auxiliary in &mut line.auxiliaries {
            taking.take(auxiliary, shape::AUXILIARY, None, note).map_err(of_file)?;
        }
    }
    Ok(())
}

fn refused(what: impl Into<String>) -> ApiError {
    ApiError::bad_request(what)
}

/// Stores a dataset. Returns notes for the operator.
fn store(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    inward: &Inward,
    whole: &Whole,
) -> Result<Vec<String>, ApiError> {
    let mut notes = Vec::new();
    let value = inward.numbered(txn, whole.head.dataset.clone(), shape::DATASET)?;
    let mut dataset: Dataset = read(value)?;
    let id = dataset.id;
    if there(txn, inward, &whole.head.dataset)? != There::No {
        return Err(refused("was made by somebody else meanwhile; import again"));
    }
    let parts = parts_of_pid(&dataset.pid)?;
    if parts != (dataset.protocol.clone(), dataset.authority.clone(), dataset.identifier.clone()) {
        return Err(refused("the identifier is not that of its parts: protocol, authority and identifier"));
    }
    dataset.doi = (parts.0 == "doi").then(|| format!("{}/{}", parts.1, parts.2));
    collections::named_by_record(txn, dataset.owner)?;
    if let Some(guestbook) = dataset.guestbook
        && !txn.has(&GUESTBOOK, &guestbook.to_string())?
    {
        dataset.guestbook = None;
        notes.push("its guestbook is not here: downloads are entered in none".to_owned());
    }
    let mut known = Vec::new();
    for version in &whole.versions {
        let version: Version = read(inward.numbered(txn, version.clone(), shape::VERSION)?)?;
        if version.ordinal < 1 || dataset.last_ordinal < version.ordinal {
            return Err(refused(format!("a version has the ordinal {}", version.ordinal)));
        }
        let version = Version { dataset: id, ..version };
        fresh(txn, &VERSION, &version.id.to_string(), &version)?;
        known.push(version.id);
    }
    let named = dataset.draft.iter().map(|it| it.version);
    let named = named.chain(dataset.released.iter().chain(&dataset.last).map(|it| it.version));
    if let Some(lacking) = named.into_iter().find(|it| !known.contains(it)) {
        return Err(refused(format!("the version {lacking} is none of its versions")));
    }
    if known.is_empty() {
        return Err(refused("it has no version"));
    }
    fresh(txn, &DATASET, &id.to_string(), &dataset)?;
    for line in &whole.files {
        file(txn, inward, id, line, &mut notes).map_err(|mut error| {
            error.message = format!("file {}: {}", line.file["id"], error.message);
            error
        })?;
    }
    if let Some(logo) = whole.head.logo.as_ref().filter(|it| !it["blob"].is_null()) {
        stored::put(txn, &LOGO, &id.to_string(), logo)?;
    }
    grant(txn, inward, id, &whole.head.assignments, &mut notes)?;
    link(txn, inward, Shown { linked: id, is_dataset: true }, &whole.head.links, &mut notes)?;
    index_whole_dataset(txn, app, id)?;
    Ok(notes)
}

fn file(
    txn: &mut Txn<'_>,
    inward: &Inward,
    dataset: i64,
    line: &FileLine,
    notes: &mut Vec<String>,
) -> Result<(), ApiError> {
    let file: DataFile = read(inward.numbered(txn, line.file.clone(), shape::DATA_FILE)?)?;
    inward.own(line.file["id"].as_i64().unwrap_or_default())?;
    let (id, key) = (file.id, file.id.to_string());
    fresh(txn, &DATA_FILE, &key, &DataFile { dataset, ..file.clone() })?;
    for row in &line.rows {
        let mut row = inward.numbered(txn, row.clone(), shape::ROW)?;
        shape::each_variable(&mut row, &mut |it| inward.number(it))?;
        let row: Row = read(row)?;
        let is_open = row.until.is_none();
        let row = Row {
            file: id,
            dataset,
            open_path: is_open.then(|| format!("{dataset}/{}", row.path())),
            open_sum: is_open.then(|| format!("{dataset}/{}", file.checksum)),
            ..row
        };
        fresh(txn, &ROW, &row.id.to_string(), &row)?;
    }
    if let Some(table) = &line.table {
        let table = inward.numbered(txn, table.clone(), shape::TABLE)?;
        fresh(txn, &TABLE, &key, &table)?;
    }
    if let Some(provenance) = &line.provenance {
        fresh(txn, &PROVENANCE, &key, provenance)?;
    }
    for auxiliary in &line.auxiliaries {
        let found: Auxiliary = read(inward.numbered(txn, auxiliary.clone(), shape::AUXILIARY)?)?;
        let name = auxiliary_id(id, &found.format_tag, &found.format_version);
        fresh(txn, &AUXILIARY, &name, &Auxiliary { file: id, ..found })?;
    }
    for request in &line.requests {
        let found: AccessRequest = read(inward.numbered(txn, request.clone(), shape::REQUEST)?)?;
        fresh(txn, &REQUEST, &found.id.to_string(), &AccessRequest { file: id, ..found })?;
    }
    grant(txn, inward, id, &line.assignments, notes)
}
