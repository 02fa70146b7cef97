//! `/data-import`: uploaded files and their processing (section 2 of the contract).

mod extensions;
pub(crate) mod routes;
mod split;
pub(crate) mod tickets;

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_http::body::Pieces;
use pinakes_store::{Column, End, Expr, Index, Kind, Query, Txn, Type, Value as Condition, View, Weight};
use serde_json::{Map, Value, json};

use crate::data_import::change_manager::{associate, cancel_job, run_by};
use crate::data_import::{self, FILE_PART, Job, NewJob};
use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::limits::EXPIRED_UPLOADS;
use crate::platform::values::{json_answer, parse_uuid};
use crate::platform::{cql, dates};

pub(crate) use split::{keep_file, kept_file};

/// Upload definitions, by id.
static UPLOAD: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("status", Type::Text),
        Column::at("uploader", "metadata.createdByUserId", Type::Text),
        Column::at("created", "metadata.createdDate", Type::Instant),
    ],
    indexes: &[Index::on(&["created"])],
    ..Kind::named("folio_upload_definition")
};

/// The kinds of this module.
pub(crate) static KINDS: [&Kind; 3] =
    [&UPLOAD, &extensions::FILE_EXTENSION, &crate::data_import::uploads::tickets::UPLOAD_TICKET];

/// Clients sort by `createdDate`, although no definition has it.
static NAMES: cql::Names =
    cql::Names { aliases: &[("createdDate", "metadata.createdDate")], ..cql::Names::PLAIN };

/// What is expired now; instants in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Expiry {
    now_ms: i64,
    /// Unfinished uploads that began before this instant.
    uploads_until_ms: i64,
    /// Files of jobs that finished before this instant.
    files_until_ms: i64,
}

impl Expiry {
    fn of(call: &Call) -> Self {
        let now_ms = call.app.now_ms();
        let before = |keep_s: i64| now_ms.saturating_sub(keep_s.max(0).saturating_mul(1_000));
        let settings = &call.app.settings;
        Self {
            now_ms,
            uploads_until_ms: before(settings.upload_keep_s),
            files_until_ms: before(settings.import_file_keep_s),
        }
    }
}

fn not_found(id: &str) -> FolioError {
    FolioError::not_found(format!("UploadDefinition with id '{id}' was not found"))
}

fn read(view: &mut View<'_>, id: &str) -> Result<Map<String, Value>, FolioError> {
    match view.get(&UPLOAD, id)?.map(|it| it.json()).transpose()? {
        Some(Value::Object(map)) => Ok(map),
        _ => Err(not_found(id)),
    }
}

fn save(txn: &mut Txn<'_>, id: &str, body: &Map<String, Value>) -> Result<(), FolioError> {
    txn.update(&UPLOAD, id, &Value::Object(body.clone()))?;
    Ok(())
}

/// Returns a definition in the form of an answer.
fn shown(mut body: Map<String, Value>) -> Value {
    if let Some(Value::Array(files)) = body.get_mut("fileDefinitions") {
        files.iter_mut().filter_map(Value::as_object_mut).for_each(|it| {
            it.shift_remove("_parts");
            it.shift_remove("_split");
        });
    }
    Value::Object(body)
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let parsed = collection::parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
    let filter = cql::meaning(&parsed.condition, &UPLOAD, &NAMES, &mut |_| Ok::<_, FolioError>(None))?;
    // Users see only their own uploads.
    let own = match call.asker.user_id() {
        Some(user) => Expr::Is("metadata.createdByUserId".into(), user.into()),
        None => Expr::Nothing,
    };
    let filter = own.and(filter);
    let order = cql::order(&parsed, &NAMES);
    let query = Query { order, ..Query::filter(filter.clone()) }.window(offset, limit);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = if limit == 0 { Vec::new() } else { view.find(&UPLOAD, &query)? };
        let mut list = Vec::new();
        for record in found {
            if let Value::Object(body) = record.json()? {
                list.push(shown(body));
            }
        }
        Ok(json!({"uploadDefinitions": list, "totalRecords": view.count(&UPLOAD, &filter)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Completes a file definition sent by a client.
fn new_file(
    txn: &mut Txn<'_>,
    definition: &str,
    given: &Map<String, Value>,
    job: &str,
    writer: &Writer,
) -> Result<Map<String, Value>, FolioError> {
    let name = given.get("name").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let name = name.ok_or_else(|| FolioError::unprocessable(Fault::missing("name")))?;
    extensions::refuse_blocked(txn, name)?;
    let mut file = Map::new();
    let id =
        given.get("id").and_then(Value::as_str).and_then(parse_uuid).unwrap_or_else(|| writer.new_uuid());
    file.insert("id".into(), id.into());
    file.insert("name".into(), name.into());
    file.insert("status".into(), "NEW".into());
    file.insert("jobExecutionId".into(), job.into());
    file.insert("uploadDefinitionId".into(), definition.into());
    file.insert("createDate".into(), dates::rmb(writer.now_ms).into());
    for name in ["size", "uiKey"] {
        file.extend(given.get(name).map(|it| (name.to_owned(), it.clone())));
    }
    Ok(file)
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let files: Vec<Map<String, Value>> = body
        .get("fileDefinitions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_object().cloned())
        .collect();
    if files.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("fileDefinitions")));
    }
    let user = call.asker.user_id().unwrap_or_default();
    let expiry = Expiry::of(&call);
    let given = body.get("id").and_then(Value::as_str).and_then(parse_uuid);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Map<String, Value>, FolioError> {
        let writer = writer();
        expire(txn, expiry)?;
        let run_by = run_by(txn, Some(&user), &user)?;
        let id = given.clone().unwrap_or_else(|| writer.new_uuid());
        let new = |id: String, parent: String, subordination, file_name: String| NewJob {
            id,
            parent,
            subordination,
            file_name,
            user_id: user.clone(),
            run_by: run_by.clone(),
            profile: None,
            now_ms: writer.now_ms,
        };
        let top = writer.new_uuid();
        if 1 < files.len() {
            let mut parent = Job::create(
                txn,
                new(top.clone(), top.clone(), "PARENT_MULTIPLE", "No file name".to_owned()),
            )?;
            parent.set_work("hidden", true);
            parent.save(txn)?;
        }
        let mut list = Vec::new();
        for given in &files {
            let name = given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let job_id = if files.len() == 1 { top.clone() } else { writer.new_uuid() };
            let file = new_file(txn, &id, given, &job_id, &writer)?;
            let subordination = if files.len() == 1 { "PARENT_SINGLE" } else { "CHILD" };
            Job::create(txn, new(job_id, top.clone(), subordination, name))?;
            list.push(Value::Object(file));
        }
        let now = dates::rmb(writer.now_ms);
        let body = json!({
            "id": id,
            "metaJobExecutionId": top,
            "status": "NEW",
            "createDate": now,
            "fileDefinitions": list,
            "metadata": {"createdDate": now, "createdByUserId": user, "updatedDate": now, "updatedByUserId": user},
        });
        txn.insert(&UPLOAD, &id, &body)?;
        Ok(body.as_object().cloned().unwrap_or_default())
    };
    let made = shown(call.db().write(write).await?);
    let id = made.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let answer = json_answer(StatusCode::CREATED, &made);
    Ok(answer::with_header(answer, LOCATION, &format!("/data-import/uploadDefinitions/{id}")))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let found = call.db().read(Weight::Point, move |view| read(view, &id)).await?;
    Ok(json_answer(StatusCode::OK, &shown(found)))
}

/// Changes the status only: the rest describes what was uploaded.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let status = body.get("status").and_then(Value::as_str).map(str::to_owned);
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<Map<String, Value>, FolioError> {
        let mut stored = read(txn, &id)?;
        if let Some(status) = &status {
            stored.insert("status".into(), status.as_str().into());
        }
        if let Some(metadata) = stored.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("updatedDate".into(), dates::rmb(now_ms).into());
        }
        save(txn, &id, &stored)?;
        Ok(stored)
    };
    Ok(json_answer(StatusCode::OK, &shown(call.db().write(write).await?)))
}

fn files_of(body: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let list = body.get("fileDefinitions").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|it| it.as_object().cloned()).collect()
}

/// Discards the job of a file and deletes the file's parts, unless the job has already started.
fn discard_file(txn: &mut Txn<'_>, file: &Map<String, Value>, now_ms: i64) -> Result<(), FolioError> {
    let job = file.get("jobExecutionId").and_then(Value::as_str).unwrap_or_default();
    if let Some(mut job) =
        Job::get(txn, job)?.filter(|it| !it.is_final() && it.text("status") != "PARSING_IN_PROGRESS")
    {
        job.set_status("DISCARDED");
        job.set("completedDate", dates::rmb(now_ms));
        job.set_work("pending", false);
        job.save(txn)?;
        for part in file.get("_parts").and_then(Value::as_array).into_iter().flatten() {
            if let Some(id) = part.get(0).and_then(Value::as_str) {
                txn.delete(&FILE_PART, id)?;
            }
        }
    }
    Ok(())
}

/// Deletes what was begun before `until_ms` and never finished: definitions without a job together with their uploaded
/// bytes, parts that were never assembled; also files of jobs finished long ago. A bounded number at a time; the next
/// upload continues.
fn expire(txn: &mut Txn<'_>, expiry: Expiry) -> Result<(), FolioError> {
    let Expiry { now_ms, uploads_until_ms: until_ms, files_until_ms } = expiry;
    data_import::forget_files(txn, files_until_ms)?;
    let open = ["NEW", "IN_PROGRESS", "LOADED", "ERROR"].map(Condition::from).to_vec();
    let old =
        Expr::Range("metadata.createdDate".into(), End::Open, End::Included(Condition::Instant(until_ms)));
    let query = Query::filter(old.and(Expr::In("status".into(), open))).window(0, EXPIRED_UPLOADS);
    for record in txn.find(&UPLOAD, &query)? {
        if let Value::Object(body) = record.json()? {
            files_of(&body).iter().try_for_each(|file| discard_file(txn, file, now_ms))?;
        }
        txn.delete(&UPLOAD, &record.id)?;
    }
    crate::data_import::uploads::tickets::expire(txn, until_ms)
}

async fn remove(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let body = read(txn, &id)?;
        files_of(&body).iter().try_for_each(|file| discard_file(txn, file, now_ms))?;
        txn.delete(&UPLOAD, &id)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn add_file(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let given = call.object().await?;
    let user = call.asker.user_id().unwrap_or_default();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Map<String, Value>, FolioError> {
        let writer = writer();
        let mut body = read(txn, &id)?;
        let job = writer.new_uuid();
        let file = new_file(txn, &id, &given, &job, &writer)?;
        let run_by = run_by(txn, Some(&user), &user)?;
        Job::create(
            txn,
            NewJob {
                id: job.clone(),
                parent: job,
                subordination: "PARENT_SINGLE",
                file_name: file.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                user_id: user.clone(),
                run_by,
                profile: None,
                now_ms: writer.now_ms,
            },
        )?;
        if let Some(Value::Array(list)) = body.get_mut("fileDefinitions") {
            list.push(Value::Object(file));
        }
        save(txn, &id, &body)?;
        Ok(body)
    };
    Ok(json_answer(StatusCode::CREATED, &shown(call.db().write(write).await?)))
}

fn file_not_found(definition: &str, file: &str) -> FolioError {
    FolioError::not_found(format!(
        "FileDefinition with id '{file}' was not found in the upload definition '{definition}'"
    ))
}

async fn remove_file(call: Call) -> Answer {
    let (id, file_id, now_ms) = (call.uuid_param("id")?, call.uuid_param("fileId")?, call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut body = read(txn, &id)?;
        let is_it = |it: &Map<String, Value>| it.get("id").and_then(Value::as_str) == Some(file_id.as_str());
        let file = files_of(&body).into_iter().find(is_it).ok_or_else(|| file_not_found(&id, &file_id))?;
        discard_file(txn, &file, now_ms)?;
        if let Some(Value::Array(list)) = body.get_mut("fileDefinitions") {
            list.retain(|it| it.get("id").and_then(Value::as_str) != Some(file_id.as_str()));
        }
        save(txn, &id, &body)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Changes one file of a definition, and the definition's status accordingly.
fn change_file(
    txn: &mut Txn<'_>,
    id: &str,
    file_id: &str,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<Map<String, Value>, FolioError> {
    let mut body = read(txn, id)?;
    let Some(Value::Array(list)) = body.get_mut("fileDefinitions") else { return Err(not_found(id)) };
    let file = list
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .find(|it| it.get("id").and_then(Value::as_str) == Some(file_id))
        .ok_or_else(|| file_not_found(id, file_id))?;
    change(file);
    let is_loaded = list.iter().all(|it| it.get("status").and_then(Value::as_str) == Some("UPLOADED"));
    body.insert("status".into(), if is_loaded { "LOADED" } else { "IN_PROGRESS" }.into());
    save(txn, id, &body)?;
    Ok(body)
}

/// Records that all parts of the file have arrived.
fn note_uploaded(
    txn: &mut Txn<'_>,
    id: &str,
    file_id: &str,
    source_path: &str,
    parts: &Value,
    now_ms: i64,
) -> Result<Map<String, Value>, FolioError> {
    let mut job_id = String::new();
    let body = change_file(txn, id, file_id, |file| {
        job_id = file.get("jobExecutionId").and_then(Value::as_str).unwrap_or_default().to_owned();
        file.insert("status".into(), "UPLOADED".into());
        file.insert("sourcePath".into(), source_path.into());
        file.insert("uploadedDate".into(), dates::rmb(now_ms).into());
        file.insert("_parts".into(), parts.clone());
    })?;
    if let Some(mut job) = Job::get(txn, &job_id)?.filter(|it| it.text("status") == "NEW") {
        job.set_status("FILE_UPLOADED");
        job.save(txn)?;
    }
    Ok(body)
}

async fn receive_file(mut call: Call) -> Answer {
    let (id, file_id) = (call.uuid_param("id")?, call.uuid_param("fileId")?);
    let (at, of) = (id.clone(), file_id.clone());
    let change = move |txn: &mut Txn<'_>| -> Result<Map<String, Value>, FolioError> {
        change_file(txn, &at, &of, |file| {
            file.insert("status".into(), "UPLOADING".into());
        })
    };
    call.db().write(change).await?;
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let pieces = Pieces::new(&call.headers, body, limits.stream_body_bytes, &limits)?;
    let received = data_import::receive(call.db(), call.app.new_uuid(), file_id.clone(), pieces).await;
    let now_ms = call.app.now_ms();
    let part = match received {
        Ok(part) => part,
        Err(error) => {
            let change = move |txn: &mut Txn<'_>| -> Result<Map<String, Value>, FolioError> {
                change_file(txn, &id, &file_id, |file| {
                    file.insert("status".into(), "ERROR".into());
                })
            };
            call.db().write(change).await?;
            return Err(error);
        }
    };
    let parts = json!([[part.id, part.n_bytes]]);
    let write = move |txn: &mut Txn<'_>| {
        note_uploaded(txn, &id, &file_id, &format!("{id}/{file_id}"), &parts, now_ms)
    };
    Ok(json_answer(StatusCode::OK, &shown(call.db().write(write).await?)))
}

/// Starts the jobs and answers at once; they run in the background.
async fn process(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let info = body.get("jobProfileInfo").cloned().unwrap_or_default();
    let text = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (profile, data_type) = (text("id"), text("dataType"));
    if profile.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("jobProfileInfo")));
    }
    let writer = Writer::of(&call);
    let user = call.asker.user_id().unwrap_or_default();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        let mut definition = read(txn, &id)?;
        for file in files_of(&definition) {
            begin(txn, &writer, &file, &user, &profile, &data_type)?;
        }
        definition.insert("status".into(), "COMPLETED".into());
        save(txn, &id, &definition)
    };
    call.db().write(write).await?;
    call.app.imports.wake(call.db().tenant());
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Prepares the job of an uploaded file: the upload's own one, or a composite one for a file that arrived in parts.
fn begin(
    txn: &mut Txn<'_>,
    writer: &Writer,
    file: &Map<String, Value>,
    user: &str,
    profile: &str,
    data_type: &str,
) -> Result<(), FolioError> {
    let text = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(own) = Job::get(txn, text("jobExecutionId"))?.filter(|it| !it.is_final()) else { return Ok(()) };
    if own.work("pending").as_bool() == Some(true) {
        return Ok(());
    }
    let is_split = file.get("_split").and_then(Value::as_bool).unwrap_or(false);
    let mut job = match is_split {
        false => own,
        true => {
            let id = writer.new_uuid();
            let mut own = own;
            own.set_status("DISCARDED");
            own.set_work("hidden", true);
            own.save(txn)?;
            let mut parent = Job::create(
                txn,
                NewJob {
                    id: id.clone(),
                    parent: id,
                    subordination: "COMPOSITE_PARENT",
                    file_name: text("sourcePath").to_owned(),
                    user_id: user.to_owned(),
                    run_by: own.0.get("runBy").cloned().unwrap_or_default(),
                    profile: None,
                    now_ms: writer.now_ms,
                },
            )?;
            parent.set_status("FILE_UPLOADED");
            parent
        }
    };
    if let Err(message) = associate(txn, writer, &mut job, profile, data_type)? {
        job.fail("PROFILE_SNAPSHOT_CREATING_ERROR", &message, writer.now_ms);
        job.save(txn)?;
        return Ok(());
    }
    match file.get("_parts").filter(|it| it.as_array().is_some_and(|it| !it.is_empty())) {
        Some(parts) => {
            job.take_file(parts, if is_split { "split" } else { "file" });
        }
        None => job.fail("FILE_PROCESSING_ERROR", "the file was never uploaded", writer.now_ms),
    }
    job.save(txn)?;
    Ok(())
}

/// Cancels a job by its id, for `/data-import/jobExecutions/{id}/cancel`.
async fn cancel(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        Job::get(txn, &id)?.ok_or_else(|| crate::data_import::job::not_found(&id))?;
        cancel_job(txn, &id, now_ms)
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &json!({"ok": true})))
}
