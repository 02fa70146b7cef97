//! The work of an export: ids to MARC records to a file. It runs on a thread of its own while requests are served,
//! reads a batch of records at a time and writes the file as it goes; its progress is stored in the job.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use bytes::{Buf as _, BytesMut};
use pinakes_marc::{ControlField, DataField, Leader, OutputEncoding, Record, Tag, Writer};
use pinakes_store::{Expr, Query, StoreError, Tenant, Txn, View};
use serde_json::{Value, json};

use super::profiles::MAPPING_PROFILES;
use super::transform::{self, Transformation};
use crate::authorities::authority::AUTHORITIES;
use crate::data_export::jobs::{JOBS, LOGS};
use crate::data_import;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::platform::app::{Call, Folio};
use crate::platform::collection::{self, Collection, parsed};
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::source_records::{marc, source_storage};

/// Number of records read at once.
const STEP: usize = 200;
/// Maximum number of failed records that the log lists individually.
const LOGGED: u64 = 1_000;

/// What to export.
pub(super) enum Wanted {
    /// Records by id.
    Ids(Vec<String>),
    /// The records that a query finds.
    Query(String),
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// ISO 2709 in UTF-8.
    Marc,
    /// The records themselves, one per line.
    Json,
}

/// The form of the exported records, from the profiles.
#[derive(Debug, Clone)]
pub(super) struct How {
    output: Output,
    added: Vec<Transformation>,
}

impl How {
    /// Reads it from the mapping profile of a job profile.
    pub(super) fn of(view: &mut View<'_>, job_profile: &Value) -> Result<Self, FolioError> {
        let id = text_at(job_profile, "mappingProfileId").unwrap_or_default();
        let mapping =
            view.get(&MAPPING_PROFILES.kind, id)?.map(|it| it.json()).transpose()?.unwrap_or_default();
        let output = match text_at(&mapping, "outputFormat") {
            Some("JSON") => Output::Json,
            _ => Output::Marc,
        };
        Ok(Self { output, added: Transformation::all_of(&mapping) })
    }
}

/// The work of a job.
pub(super) struct Plan {
    /// `INSTANCE`, `HOLDINGS`, `AUTHORITY`.
    pub(super) kind: &'static str,
    pub(super) wanted: Wanted,
    pub(super) how: How,
}

/// Only one job reads at a time; the others wait.
static READING: Mutex<()> = Mutex::new(());

/// Starts the job on a thread of its own.
pub(super) fn start(call: &Call, id: String, plan: Plan) {
    let (app, tenant) = (call.app.clone(), call.db().tenant().clone());
    let work = move || {
        let reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
        let end = match export(&app, &tenant, &id, plan) {
            Ok(counts) => end_of(&counts),
            Err(error) => {
                tracing::warn!(%error, job = id, "an export failed");
                let code = "error.unexpected";
                if let Err(error) = log(&app, &tenant, &id, code, &[error.to_string()]) {
                    tracing::warn!(%error, job = id, "nor could its log be written");
                }
                json!({"status": "FAIL"})
            }
        };
        drop(reading);
        let mut end = end;
        let now = dates::rmb(app.now_ms());
        end["completedDate"] = now.as_str().into();
        if let Err(error) = change(&app, &tenant, &id, &end) {
            tracing::error!(%error, job = id, "the end of an export could not be recorded");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("folio-export".to_owned()).spawn(work) {
        tracing::error!(%error, "no thread could be started for an export");
    }
}

fn end_of(counts: &Counts) -> Value {
    let status = match (counts.exported, counts.failed) {
        (0, _) => "FAIL",
        (_, 0) => "COMPLETED",
        _ => "COMPLETED_WITH_ERRORS",
    };
    json!({"status": status, "progress": counts.shown()})
}

/// Changes properties of a job.
fn change(app: &Folio, tenant: &Tenant, id: &str, changes: &Value) -> Result<(), StoreError> {
    let (id, changes, now) = (id.to_owned(), changes.clone(), dates::rmb(app.now_ms()));
    tenant.write_blocking(move |txn: &mut Txn<'_>| {
        let Some(record) = txn.get(&JOBS.kind, &id)? else { return Ok(()) };
        let mut job = record.json()?;
        if let (Some(job), Some(changes)) = (job.as_object_mut(), changes.as_object()) {
            job.extend(changes.clone());
            job.insert("lastUpdatedDate".into(), now.as_str().into());
        }
        txn.put(&JOBS.kind, &id, &job).map(drop)
    })
}

fn log(app: &Folio, tenant: &Tenant, job: &str, code: &str, values: &[String]) -> Result<(), StoreError> {
    let id = app.new_uuid();
    let entry = json!({
        "id": id, "jobExecutionId": job, "logLevel": "ERROR", "errorMessageCode": code, "errorMessageValues": values,
        "createdDate": dates::rmb(app.now_ms()),
    });
    tenant.write_blocking(move |txn: &mut Txn<'_>| txn.insert(&LOGS.kind, &id, &entry).map(drop))
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    total: u64,
    exported: u64,
    failed: u64,
}

impl Counts {
    fn shown(self) -> Value {
        json!({
            "exported": self.exported, "failed": self.failed, "duplicatedSrs": 0, "total": self.total,
            "readIds": self.exported + self.failed,
        })
    }
}

fn collection_of(kind: &str) -> &'static Collection {
    match kind {
        "HOLDINGS" => &HOLDINGS,
        "AUTHORITY" => &AUTHORITIES,
        _ => &INSTANCES,
    }
}

fn export(app: &Folio, tenant: &Tenant, id: &str, plan: Plan) -> Result<Counts, FolioError> {
    let Plan { kind, wanted, how } = plan;
    let ids = match wanted {
        Wanted::Ids(ids) => ids,
        Wanted::Query(text) => {
            let (cql, collections) = (parsed(&app.settings, &text)?, app.collections);
            tenant.read_blocking(move |view: &mut View<'_>| -> Result<Vec<String>, FolioError> {
                let collection = collection_of(kind);
                let (filter, order) = collection::expr_of(view, collections, collection, &cql)?;
                let mut ids = Vec::new();
                view.for_each(&collection.kind, &Query { order, ..Query::filter(filter) }, |record| {
                    ids.push(record.id);
                    std::ops::ControlFlow::Continue(())
                })?;
                Ok(ids)
            })?
        }
    };
    let counts = Counts { total: ids.len() as u64, ..Counts::default() };
    let begun = json!({
        "status": "IN_PROGRESS", "startedDate": dates::rmb(app.now_ms()), "progress": counts.shown(),
    });
    change(app, tenant, id, &begun)?;
    let mut file =
        File { app, tenant, job: id, kind, how, ids: ids.into_iter(), buffer: BytesMut::new(), counts };
    let file_id = app.new_uuid();
    data_import::store_file(tenant, file_id.clone(), id, &mut file)
        .map_err(|error| FolioError::bad_request(error.to_string()))?;
    let (counts, output) = (file.counts, file.how.output);
    name_file(tenant, id, &file_id, output)?;
    Ok(counts)
}

/// Names the file of a job: `{name of the uploaded list}-{number}.mrc`, or `.json`.
fn name_file(tenant: &Tenant, id: &str, file_id: &str, output: Output) -> Result<(), StoreError> {
    let (id, file_id) = (id.to_owned(), file_id.to_owned());
    tenant.write_blocking(move |txn: &mut Txn<'_>| {
        let Some(record) = txn.get(&JOBS.kind, &id)? else { return Ok(()) };
        let mut job = record.json()?;
        let asked = job.pointer("/exportedFiles/0/fileName").and_then(Value::as_str).unwrap_or("export");
        let stem = asked.rsplit_once('.').map_or(asked, |(stem, _)| stem);
        let ending = match output {
            Output::Marc => "mrc",
            Output::Json => "json",
        };
        let name = format!("{stem}-{}.{ending}", job["hrId"]);
        job["exportedFiles"] = json!([{"fileId": file_id, "fileName": name}]);
        txn.put(&JOBS.kind, &id, &job).map(drop)
    })
}

/// The output file as a stream, produced while it is read.
struct File<'a> {
    app: &'a Folio,
    tenant: &'a Tenant,
    job: &'a str,
    kind: &'static str,
    how: How,
    ids: std::vec::IntoIter<String>,
    buffer: BytesMut,
    counts: Counts,
}

impl File<'_> {
    /// Reads the next batch of records. Returns `false` when none are left.
    fn fill(&mut self) -> Result<bool, FolioError> {
        let some: Vec<String> = self.ids.by_ref().take(STEP).collect();
        if some.is_empty() {
            return Ok(false);
        }
        let (kind, how) = (self.kind, self.how.clone());
        let found = self.tenant.read_blocking(move |view: &mut View<'_>| {
            let one = |id: &String| Ok((id.clone(), written(view, kind, id, &how)?));
            some.iter().map(one).collect::<Result<Vec<_>, FolioError>>()
        })?;
        for (id, written) in found {
            let written = match written {
                Written::Missing => Err((format!("error.{}.notFound", kind.to_lowercase()), id)),
                Written::Unfit(reason) => Err(("error.marc".to_owned(), format!("{id}: {reason}"))),
                Written::Bytes(bytes) => Ok(bytes),
            };
            match written {
                Ok(bytes) => {
                    self.buffer.extend_from_slice(&bytes);
                    self.counts.exported += 1;
                }
                Err((code, value)) => {
                    self.counts.failed += 1;
                    if self.counts.failed <= LOGGED {
                        log(self.app, self.tenant, self.job, &code, &[value])?;
                    }
                }
            }
        }
        change(self.app, self.tenant, self.job, &json!({"progress": self.counts.shown()}))?;
        Ok(true)
    }
}

impl Read for File<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.buffer.is_empty() {
            if !self.fill().map_err(|error| io::Error::other(error.to_string()))? {
                return Ok(0);
            }
        }
        let n = out.len().min(self.buffer.len());
        out[..n].copy_from_slice(&self.buffer[..n]);
        self.buffer.advance(n);
        Ok(n)
    }
}

/// The result of writing a record.
enum Written {
    Bytes(Vec<u8>),
    Missing,
    /// The record does not fit into MARC.
    Unfit(String),
}

fn written(view: &mut View<'_>, kind: &str, id: &str, how: &How) -> Result<Written, FolioError> {
    if how.output == Output::Json {
        let Some(record) = view.get(&collection_of(kind).kind, id)? else { return Ok(Written::Missing) };
        let mut bytes = record.body.to_vec();
        bytes.push(b'\n');
        return Ok(Written::Bytes(bytes));
    }
    let Some(mut record) = record_of(view, kind, id)? else { return Ok(Written::Missing) };
    if kind == "INSTANCE" {
        transform::add(view, &mut record, id, &how.added)?;
        marc::set_lengths(&mut record);
    }
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, pinakes_marc::Format::Iso2709, OutputEncoding::Utf8);
    Ok(match writer.write(&record) {
        Ok(_) => Written::Bytes(bytes),
        Err(error) => Written::Unfit(error.to_string()),
    })
}

/// Returns the MARC record of an instance, holdings record or authority: its source record, or one generated from an
/// instance.
fn record_of(view: &mut View<'_>, kind: &str, id: &str) -> Result<Option<Record>, FolioError> {
    let (name, collection) = match kind {
        "HOLDINGS" => ("holdingsId", &HOLDINGS),
        "AUTHORITY" => ("authorityId", &AUTHORITIES),
        _ => ("instanceId", &INSTANCES),
    };
    if let Some(source) = source_storage::current_of(view, name, id)? {
        return Ok(source.pointer("/parsedRecord/content").and_then(marc::from_value));
    }
    if kind != "INSTANCE" {
        return Ok(None);
    }
    let found = view.first(&collection.kind, Expr::Ids(vec![id.to_owned()]))?;
    let instance = found.map(|it| it.json()).transpose()?;
    // The source record of an instance that was deleted or marked as deleted.
    if instance.as_ref().is_none_or(|it| text_at(it, "source") == Some("MARC"))
        && let Some(deleted) = source_storage::resolve(view, id, "INSTANCE", Some("DELETED"))?
    {
        return Ok(deleted.pointer("/parsedRecord/content").and_then(marc::from_value));
    }
    Ok(instance.map(|it| made(&it)))
}

/// Generates a MARC record for an instance that has none.
pub(crate) fn made(instance: &Value) -> Record {
    let text = |name: &str| text_at(instance, name).unwrap_or_default().to_owned();
    let mut record = Record { leader: Leader::from_text("00000nam a2200000   4500"), fields: Vec::new() };
    record.push(ControlField::new(Tag::new(b"001"), text("hrid")));
    let list = |name: &str| instance.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for it in list("contributors") {
        let is_primary = it.get("primary") == Some(&Value::Bool(true));
        let tag = if is_primary && record.data_fields("100").next().is_none() { b"100" } else { b"700" };
        let name = text_at(&it, "name").unwrap_or_default();
        record.insert_in_order(DataField::new(Tag::new(tag), ['1', ' ']).with('a', name));
    }
    record.insert_in_order(DataField::new(Tag::new(b"245"), ['0', '0']).with('a', text("title")));
    for it in list("publication") {
        let mut field = DataField::new(Tag::new(b"264"), [' ', '1']);
        for (code, name) in [('a', "place"), ('b', "publisher"), ('c', "dateOfPublication")] {
            if let Some(value) = text_at(&it, name).filter(|it| !it.is_empty()) {
                field = field.with(code, value);
            }
        }
        if !field.subfields.is_empty() {
            record.insert_in_order(field);
        }
    }
    for it in list("subjects") {
        let value = text_at(&it, "value").unwrap_or_default();
        record.insert_in_order(DataField::new(Tag::new(b"653"), [' ', ' ']).with('a', value));
    }
    record.push(DataField::new(Tag::new(b"999"), ['f', 'f']).with('i', text("id")));
    marc::set_lengths(&mut record);
    record
}
