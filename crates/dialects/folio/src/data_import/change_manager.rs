//! `/change-manager`: job executions, and the records that clients send to them (section 3 of the contract).

pub(crate) mod parsed_records;
pub(crate) mod routes;

use std::collections::BTreeSet;

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{StoreError, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::data_import::job::not_found;
use crate::data_import::profiles::{PROFILE_SNAPSHOT, ProfileType, snapshot_of, store_snapshot};
use crate::data_import::{CHUNK, Job, NewJob, STATUSES, children};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::values::{json_answer, parse_uuid};
use crate::source_records::source_storage;
use crate::users::user::USERS;

fn to(name: &'static str) -> Access {
    Access::Permission(name.into())
}

/// Returns the name of the user that a job runs for. Errors: 422 if there is no such user.
pub(crate) fn run_by(view: &mut View<'_>, call_user: Option<&str>, id: &str) -> Result<Value, FolioError> {
    let Some(user) = view.get(&USERS.kind, id)?.map(|it| it.json()).transpose()? else {
        if call_user == Some(id) {
            return Ok(json!({"firstName": "", "lastName": ""}));
        }
        let fault = Fault::new(format!("User with id '{id}' was not found")).with("userId", id);
        return Err(FolioError::unprocessable(fault));
    };
    let name =
        |name: &str| user.pointer(&format!("/personal/{name}")).and_then(Value::as_str).unwrap_or_default();
    Ok(json!({"firstName": name("firstName"), "lastName": name("lastName")}))
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let source_type =
        text("sourceType").ok_or_else(|| FolioError::unprocessable(Fault::missing("sourceType")))?;
    let files: Vec<String> = body
        .get("files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("name")?.as_str().map(str::to_owned))
        .collect();
    let is_online = match source_type {
        "ONLINE" => true,
        "FILES" if files.is_empty() => {
            return Err(FolioError::bad_request("Received files must not be empty"));
        }
        "FILES" => false,
        "COMPOSITE" => files.is_empty(),
        other => {
            return Err(FolioError::bad_request(format!(
                "sourceType {other:?} is none of ONLINE, FILES, COMPOSITE"
            )));
        }
    };
    let user_id = text("userId").map(str::to_owned).or_else(|| call.asker.user_id());
    let user_id = user_id.ok_or_else(|| FolioError::unprocessable(Fault::missing("userId")))?;
    let parent = text("parentJobId").and_then(parse_uuid);
    let is_child = source_type == "COMPOSITE" && parent.is_some();
    let profile = body.get("jobProfileInfo").filter(|it| it.is_object()).cloned();
    let numbers: Vec<(String, Value)> = ["jobPartNumber", "totalJobParts", "totalRecordsInFile"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())))
        .collect();
    let (writer, own) = (Writer::of(&call), call.asker.user_id());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let writer = writer();
        let run_by = run_by(txn, own.as_deref(), &user_id)?;
        let new = |id: String, parent: String, subordination, file_name: &str| NewJob {
            id,
            parent,
            subordination,
            file_name: file_name.to_owned(),
            user_id: user_id.clone(),
            run_by: run_by.clone(),
            profile: profile.clone(),
            now_ms: writer.now_ms,
        };
        let mut jobs = Vec::new();
        let id = writer.new_uuid();
        let top = if 1 < files.len() && !is_child {
            let mut parent =
                Job::create(txn, new(id.clone(), id.clone(), "PARENT_MULTIPLE", "No file name"))?;
            parent.set_work("hidden", true);
            parent.save(txn)?;
            jobs.push(parent.shown());
            for file in &files {
                jobs.push(Job::create(txn, new(writer.new_uuid(), id.clone(), "CHILD", file))?.shown());
            }
            id
        } else {
            let file = files
                .first()
                .map_or("No file name", |it| if is_online { "No file name" } else { it.as_str() });
            let (above, subordination) = match (&parent, source_type_of(is_child, &parent)) {
                (Some(parent), "COMPOSITE_CHILD") => (parent.clone(), "COMPOSITE_CHILD"),
                (_, other) => (id.clone(), other),
            };
            let mut job = Job::create(txn, new(id, above.clone(), subordination, file))?;
            for (name, value) in &numbers {
                job.set(name, value.clone());
            }
            if let Some(profile) = profile.as_ref().and_then(|it| it.get("id")).and_then(Value::as_str)
                && let Err(message) = associate(txn, &writer, &mut job, profile, "MARC")?
            {
                job.fail("PROFILE_SNAPSHOT_CREATING_ERROR", &message, writer.now_ms);
            }
            job.save(txn)?;
            source_storage::put_snapshot(txn, job.id(), "NEW", writer.now_ms)?;
            jobs.push(job.shown());
            above
        };
        Ok(json!({"parentJobExecutionId": top, "jobExecutions": jobs}))
    };
    let made = call.db().write(write).await?;
    let id = made.get("parentJobExecutionId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let answer = json_answer(StatusCode::CREATED, &made);
    Ok(answer::with_header(answer, LOCATION, &format!("/change-manager/jobExecutions/{id}")))
}

fn source_type_of(is_child: bool, parent: &Option<String>) -> &'static str {
    if is_child && parent.is_some() { "COMPOSITE_CHILD" } else { "PARENT_SINGLE" }
}

/// Returns a job in the form of an answer: with its profile's tree.
fn whole(view: &mut View<'_>, job: Job) -> Result<Value, StoreError> {
    let snapshot = job.work("snapshot").as_str().unwrap_or_default().to_owned();
    let mut body = crate::data_import::metadata_provider::with_composite(view, job)?;
    if let (Some(record), Value::Object(map)) = (view.get(&PROFILE_SNAPSHOT, &snapshot)?, &mut body) {
        map.insert("jobProfileSnapshotWrapper".into(), record.json()?);
    }
    Ok(body)
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = Job::get(view, &id)?.ok_or_else(|| not_found(&id))?;
        Ok(whole(view, job)?)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// The properties of a job that a client may change.
const CHANGEABLE: [&str; 7] = [
    "fileName",
    "sourcePath",
    "jobProfileInfo",
    "runBy",
    "totalRecordsInFile",
    "jobPartNumber",
    "totalJobParts",
];

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut job = Job::get(txn, &id)?.ok_or_else(|| not_found(&id))?;
        for name in CHANGEABLE {
            if let Some(value) = body.get(name).filter(|it| !it.is_null()) {
                job.set(name, value.clone());
            }
        }
        job.save(txn)?;
        Ok(whole(txn, job)?)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

async fn list_children(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        Job::get(view, &id)?.ok_or_else(|| not_found(&id))?;
        let list: Vec<Value> = children(view, &id)?.into_iter().map(Job::shown).collect();
        Ok(json!({"totalRecords": list.len(), "jobExecutions": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn set_status(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let status = text("status").ok_or_else(|| FolioError::unprocessable(Fault::missing("status")))?;
    if !STATUSES.contains(&status.as_str()) {
        return Err(FolioError::bad_request(format!("status {status:?} is none of {}", STATUSES.join(", "))));
    }
    if status == "PARENT" {
        return Err(FolioError::bad_request(format!(
            "Cannot update JobExecution with id {id} to status PARENT"
        )));
    }
    let error_status = text("errorStatus");
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut job = Job::get(txn, &id)?.ok_or_else(|| not_found(&id))?;
        if job.text("status") == "PARENT" {
            return Err(FolioError::bad_request(format!(
                "JobExecution {id} is a parent: its status does not change"
            )));
        }
        job.set_status(&status);
        if let Some(error_status) = &error_status {
            job.set("errorStatus", error_status.as_str());
        }
        if job.is_final() {
            job.set("completedDate", dates::rmb(now_ms));
            job.set_work("pending", false);
        }
        job.save(txn)?;
        source_storage::put_snapshot(txn, &id, &status, now_ms)?;
        Ok(job.shown())
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

/// Assigns a profile to a job, with the current state of the profile's tree.
///
/// Errors: the job already has a profile; the profile does not exist (this ends the job, which the caller must store).
pub(crate) fn associate(
    txn: &mut Txn<'_>,
    writer: &Writer,
    job: &mut Job,
    profile_id: &str,
    data_type: &str,
) -> Result<Result<(), String>, FolioError> {
    if !job.work("snapshot").is_null() {
        return Err(FolioError::bad_request(format!(
            "JobExecution already associated to JobProfile with id '{}'",
            job.0
                .get("jobProfileInfo")
                .and_then(|it| it.get("id"))
                .and_then(Value::as_str)
                .unwrap_or_default()
        )));
    }
    let made = snapshot_of(txn, ProfileType::Job, profile_id, None, &|| writer.new_uuid());
    let snapshot = match made {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return Ok(Err(format!("Job profile with id '{profile_id}' was not found"))),
        Err(error) => return Ok(Err(FolioError::from(error).message())),
    };
    let of_profile = |name: &str| snapshot.pointer(&format!("/content/{name}")).cloned();
    let mut info = Map::new();
    info.insert("id".into(), profile_id.into());
    info.insert("name".into(), of_profile("name").unwrap_or_default());
    info.insert("dataType".into(), of_profile("dataType").unwrap_or_else(|| data_type.into()));
    info.insert("hidden".into(), of_profile("hidden").unwrap_or_else(|| false.into()));
    let is_hidden = info.get("hidden").and_then(Value::as_bool).unwrap_or(false);
    job.set("jobProfileInfo", Value::Object(info));
    let id = store_snapshot(txn, &snapshot)?;
    job.set_work("snapshot", id);
    job.set_work("profileHidden", is_hidden);
    if is_hidden {
        job.set_work("hidden", true);
    }
    Ok(Ok(()))
}

async fn set_profile(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (profile, data_type) = (text("id"), text("dataType"));
    if profile.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("id")));
    }
    let (writer, now_ms) = (Writer::of(&call), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<Result<Value, String>, FolioError> {
        let mut job = Job::get(txn, &id)?.ok_or_else(|| not_found(&id))?;
        let result = associate(txn, &writer(), &mut job, &profile, &data_type)?;
        if let Err(message) = &result {
            job.fail("PROFILE_SNAPSHOT_CREATING_ERROR", message, now_ms);
        }
        job.save(txn)?;
        Ok(match result {
            Ok(()) => Ok(whole(txn, job)?),
            Err(message) => Err(message),
        })
    };
    match call.db().write(write).await? {
        Ok(body) => Ok(json_answer(StatusCode::OK, &body)),
        Err(message) => Err(FolioError::not_found(message)),
    }
}

/// Receives one chunk of records; it is durable once it is acknowledged, and processed in the background.
async fn receive_records(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let bytes = pinakes_http::body::receive(&call.headers, body, limits.stream_body_bytes, &limits).await?;
    let parsed: Value = pinakes_http::stages::timed(pinakes_http::Stage::Parse, || {
        pinakes_http::body::parse_json(&bytes, &limits)
    })
    .map_err(|fault| FolioError::bad_request(format!("Json content error: {fault}")))?;
    let chunk = Chunk::read(&parsed, || call.app.new_uuid())?;
    let accepts = call.query.is_true("acceptInstanceId");
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| store_chunk(txn, &id, &chunk, accepts, now_ms);
    call.db().write(write).await?;
    call.app.imports.wake(call.db().tenant());
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `RawRecordsDto`.
pub(crate) struct Chunk {
    id: String,
    content_type: String,
    records: Vec<Value>,
    total: u64,
    counter: u64,
    is_last: bool,
}

impl Chunk {
    /// Builds the only chunk of a job with one record.
    pub(crate) fn of_one(id: String, content_type: &str, record: &str) -> Self {
        let records = vec![json!({"record": record, "order": 0})];
        Self { id, content_type: content_type.to_owned(), records, total: 1, counter: 1, is_last: true }
    }

    fn read(body: &Value, new_id: impl FnOnce() -> String) -> Result<Self, FolioError> {
        let missing = |name: &str| FolioError::unprocessable(Fault::missing(name));
        let metadata = body.get("recordsMetadata").ok_or_else(|| missing("recordsMetadata"))?;
        let number = |name: &str| metadata.get(name).and_then(Value::as_u64);
        let is_last =
            metadata.get("last").and_then(Value::as_bool).ok_or_else(|| missing("recordsMetadata.last"))?;
        let content_type = metadata.get("contentType").and_then(Value::as_str).unwrap_or("MARC_RAW");
        let list = body.get("initialRecords").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let counter = number("counter").unwrap_or(0);
        let first = counter.saturating_sub(list.len() as u64);
        let records = list
            .iter()
            .enumerate()
            .map(|(at, record)| {
                let order = record.get("order").and_then(Value::as_u64).unwrap_or(first + at as u64);
                let text = match record.get("record") {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(other) => other.to_string(),
                };
                json!({"record": text, "order": order})
            })
            .collect();
        let id = body.get("id").and_then(Value::as_str).map_or_else(new_id, str::to_owned);
        let content_type = content_type.to_owned();
        Ok(Self { id, content_type, records, total: number("total").unwrap_or(0), counter, is_last })
    }
}

pub(crate) fn store_chunk(
    txn: &mut Txn<'_>,
    job_id: &str,
    chunk: &Chunk,
    accepts_instance_id: bool,
    now_ms: i64,
) -> Result<(), FolioError> {
    let mut job = Job::get(txn, job_id)?.ok_or_else(|| not_found(job_id))?;
    if job.work("snapshot").is_null() {
        let message =
            format!("JobExecution {job_id} has no job profile; choose one with PUT …/jobProfile first");
        return Err(FolioError::unprocessable(Fault::new(message)));
    }
    if txn.has(&CHUNK, &chunk.id)? {
        return Err(FolioError::bad_request(format!(
            "Source chunk with {} id for {job_id} jobExecution is already exists",
            chunk.id
        )));
    }
    if matches!(job.text("status"), "CANCELLED" | "DISCARDED") || (job.is_final() && chunk.records.is_empty())
    {
        return Ok(());
    }
    let number = job.work_number("chunks");
    let has_records = !chunk.records.is_empty();
    txn.insert(
        &CHUNK,
        &chunk.id,
        &json!({"jobId": job_id, "number": number, "isOpen": has_records, "contentType": chunk.content_type,
                "records": chunk.records}),
    )?;
    let received = job.work_number("received") + chunk.records.len() as u64;
    job.set_work("source", "chunks");
    job.set_work("chunks", number + 1);
    job.set_work("received", received);
    if chunk.is_last {
        job.set_work("last", true);
        job.set_work("heardAt", Value::Null);
    } else {
        job.set_work("heardAt", now_ms);
    }
    if accepts_instance_id {
        job.set_work("acceptInstanceId", true);
    }
    let total = job.total().max(chunk.total).max(received).max(chunk.counter);
    job.set_progress(job.current(), total);
    if job.text("status") != "PARSING_IN_PROGRESS" {
        job.set_status("PARSING_IN_PROGRESS");
        job.0.shift_remove("completedDate");
        source_storage::put_snapshot(txn, job_id, "PARSING_IN_PROGRESS", now_ms)?;
    }
    job.set_work("pending", true);
    job.save(txn)?;
    Ok(())
}

/// Cancels a job; what has already been stored is kept.
pub(crate) fn cancel_job(txn: &mut Txn<'_>, id: &str, now_ms: i64) -> Result<(), FolioError> {
    let Some(job) = Job::get(txn, id)? else { return Ok(()) };
    let mut open: BTreeSet<String> = BTreeSet::new();
    open.insert(job.id().to_owned());
    open.extend(children(txn, id)?.iter().map(|it| it.id().to_owned()));
    for id in open {
        let Some(mut job) = Job::get(txn, &id)?.filter(|it| !it.is_final()) else { continue };
        job.set_status("CANCELLED");
        job.set("completedDate", dates::rmb(now_ms));
        job.set_work("pending", false);
        job.save(txn)?;
        source_storage::put_snapshot(txn, &id, "CANCELLED", now_ms)?;
    }
    Ok(())
}

async fn cancel(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    call.db().write(move |txn| cancel_job(txn, &id, now_ms)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn hide(mut call: Call) -> Answer {
    let body = call.object().await?;
    let ids: Vec<String> = body
        .get("ids")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter_map(parse_uuid)
        .collect();
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut details = Vec::new();
        for id in &ids {
            let found = Job::get(txn, id)?;
            let is_deleted = found.is_some();
            if let Some(mut job) = found {
                job.set_work("hidden", true);
                job.save(txn)?;
            }
            details.push(json!({"jobExecutionId": id, "isDeleted": is_deleted}));
        }
        Ok(json!({"jobExecutionDetails": details}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}
