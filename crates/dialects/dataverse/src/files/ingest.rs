//! Ingest of deposited tables: one job per file, stored until it is done.
//!
//! An upload waits for its tables. If they take longer than `ingest_wait_s`, it is answered, and the dataset has a lock
//! `Ingest` until they are read, so that clients that poll the locks wait as they do elsewhere.
//!
//! The rows are converted to tab-separated text that replaces the file; the original file is kept. A table that cannot
//! be read stays as deposited, with the reason recorded.

use std::time::Duration;

use pinakes_blobs::Blobs;
use pinakes_http::Db;
use pinakes_store::{Expr, Query, Txn, View, Weight};
use pinakes_tabular::{Limits, Table, TabularError, Type, Variable, with_point};
use serde_json::{Map, Value, json};

use super::kinds::{DataFile, Original, PENDING, ROW, Row, TABLE};
use super::{Found, Wanted, rows, types};
use crate::app::{Call, Dataverse};
use crate::datasets::Lock;
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::{changes, envelope, permissions, site_settings, stored, users};

/// Type of the lock of a dataset whose tables are being read.
const LOCK: &str = "Ingest";
/// What the message of such a lock begins with.
const LOCK_MESSAGE: &str = "Attempting to ingest";
/// Number of tables that the server reads concurrently.
static PLACES: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(2);

const ONLY_TABLES: &str = "This operation is only available for tabular files.";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/files/{id}/uningest", uningest).post("/files/{id}/reingest", reingest)
}

/// Starts to ingest tables, and waits for the end as long as the settings allow.
pub(crate) async fn run_soon(app: &Dataverse, db: &Db, files: &[i64]) {
    if files.is_empty() {
        return;
    }
    let work = in_background(app, db, files.to_vec());
    let (app, files) = (app.clone(), files.to_vec());
    let patience = Duration::from_secs(app.settings.ingest_wait_s.into());
    if tokio::time::timeout(patience, work).await.is_err()
        && let Err(error) = db.write(move |txn: &mut Txn<'_>| lock(txn, &app, &files)).await
    {
        tracing::error!(error = error.message, "a dataset is not locked while its tables are read");
    }
}

/// Locks the dataset of those files that are not read yet.
fn lock(txn: &mut Txn<'_>, app: &Dataverse, files: &[i64]) -> Result<(), ApiError> {
    let mut left = Vec::new();
    for file in files {
        if stored::get::<Value>(txn, &PENDING, &file.to_string())?.is_some() {
            left.extend(rows::data_file(txn, *file)?);
        }
    }
    let Some(file) = left.first() else { return Ok(()) };
    let Some(mut dataset) = crate::datasets::by_id(txn, file.dataset)? else { return Ok(()) };
    if dataset.locks.iter().any(|it| it.lock_type == LOCK) {
        return Ok(());
    }
    // Whoever deposited the file may have been removed since.
    let user = users::by_id(txn, file.creator)?.map_or_else(String::new, |it| it.name);
    let message = format!("{LOCK_MESSAGE} {} tabular file(s)", left.len());
    dataset.locks.push(Lock { message, ..Lock::new(LOCK, &user, app.now_ms()) });
    crate::datasets::put(txn, &dataset)?;
    changes::dataset(txn, app, dataset.id)
}

/// Removes the lock of an ingest from a dataset of which no table is left to read.
fn unlock(txn: &mut Txn<'_>, app: &Dataverse, dataset: i64) -> Result<(), ApiError> {
    let Some(mut dataset) = crate::datasets::by_id(txn, dataset)? else { return Ok(()) };
    let is_own = |it: &Lock| it.lock_type == LOCK && it.message.starts_with(LOCK_MESSAGE);
    if !dataset.locks.iter().any(is_own) {
        return Ok(());
    }
    for id in rows::ids_of(txn, &PENDING, Expr::All)?.iter().filter_map(|it| it.parse().ok()) {
        if rows::data_file(txn, id)?.is_some_and(|it| it.dataset == dataset.id) {
            return Ok(());
        }
    }
    dataset.locks.retain(|it| !is_own(it));
    crate::datasets::put(txn, &dataset)?;
    changes::dataset(txn, app, dataset.id)
}

/// Resumes jobs that were not finished when the server stopped.
pub(crate) async fn resume(app: &Dataverse, db: &Db) -> Result<(), ApiError> {
    let read = |view: &mut View<'_>| rows::ids_of(view, &PENDING, Expr::All);
    let files: Vec<i64> =
        db.read(Weight::Scan, read).await?.iter().filter_map(|it| it.parse().ok()).collect();
    if files.is_empty() {
        return Ok(());
    }
    let (for_lock, left) = (app.clone(), files.clone());
    db.write(move |txn: &mut Txn<'_>| left.iter().try_for_each(|it| lock(txn, &for_lock, &[*it]))).await?;
    in_background(app, db, files);
    Ok(())
}

/// Runs jobs one after the other.
fn in_background(app: &Dataverse, db: &Db, files: Vec<i64>) -> tokio::task::JoinHandle<()> {
    let (app, db) = (app.clone(), db.clone());
    tokio::spawn(async move {
        for file in files {
            run(&app, &db, file).await;
        }
    })
}

/// A job.
struct Job {
    file: DataFile,
    label: String,
    /// Files whose ingest is reported to the depositor once this one is done.
    told: Vec<i64>,
    with_header: bool,
    most_bytes: Option<i64>,
}

async fn run(app: &Dataverse, db: &Db, file: i64) {
    if let Err(error) = run_one(app, db, file).await {
        tracing::error!(file, error = error.message, "a table is not read until the server restarts");
    }
}

async fn run_one(app: &Dataverse, db: &Db, id: i64) -> Result<(), ApiError> {
    let Ok(_place) = PLACES.acquire().await else { return Ok(()) };
    let Some(job) = db.read(Weight::Point, move |view| job(view, id)).await? else { return Ok(()) };
    let limit = job.most_bytes;
    let is_over = limit.is_some_and(|most| 0 <= most && most.unsigned_abs() < job.file.size);
    let outcome = match is_over {
        true => Err("The file is larger than tables may be that are read.".to_owned()),
        false => {
            let (blobs, tenant) = (app.context.blobs().clone(), db.tenant().name().to_owned());
            let (file, with_header) = (job.file.clone(), job.with_header);
            let work = move || converted(&blobs, &tenant, &file, with_header);
            tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|_| Err("The reader of tables failed.".to_owned()))
        }
    };
    let n_variables = outcome.as_ref().map_or(0, |it| it.table.variables.len());
    let ids = app.ids(db, i64::try_from(n_variables + 1).unwrap_or(1)).await?;
    let app = app.clone();
    db.write(move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        if txn.delete(&PENDING, &id.to_string())?.is_none() {
            return unlock(txn, &app, job.file.dataset);
        }
        finish(txn, &app, id, &job, &outcome, &mut ids)?;
        unlock(txn, &app, job.file.dataset)?;
        tell(txn, &app, &job, &mut ids)
    })
    .await
}

fn job(view: &mut View<'_>, id: i64) -> Result<Option<Job>, ApiError> {
    let Some(pending) = stored::get::<Value>(view, &PENDING, &id.to_string())? else { return Ok(None) };
    let told = pending["told"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let Some(file) = rows::data_file(view, id)? else { return Ok(None) };
    let label = rows::of_file(view, id)?.last().map(|it| it.label.clone()).unwrap_or_default();
    let with_header = site_settings::is_true(view, ":StoreIngestedTabularFilesWithVarHeaders", false)?;
    let setting = site_settings::get(view, ":TabularIngestSizeLimit")?;
    let most_bytes = setting.and_then(|text| size_limit(&text, types::tabular_setting(&file.content_type)));
    Ok(Some(Job { file, label, told, with_header, most_bytes }))
}

/// Returns the size limit for a format in a setting: a number for all formats, or an object with `default`.
#[expect(clippy::cast_possible_truncation, reason = "bounds beyond 2^53 bytes are none")]
fn size_limit(text: &str, format: &str) -> Option<i64> {
    let number = |it: &Value| match it {
        Value::String(text) => text.parse::<f64>().ok(),
        other => other.as_f64(),
    };
    let json: Value = serde_json::from_str(text).ok()?;
    let found = match &json {
        Value::Object(map) => {
            let own = map.iter().find(|it| it.0.eq_ignore_ascii_case(format)).and_then(|it| number(it.1));
            own.or_else(|| map.get("default").and_then(number))
        }
        other => number(other),
    }?;
    // -1 stands for no limit; other negative numbers disable the ingest.
    let whole = found as i64;
    (whole != -1).then(|| whole.max(0))
}

/// A table that was read, and the blob with its rows.
struct Converted {
    table: Table,
    blob: String,
    size: u64,
    header: String,
    has_header: bool,
}

fn converted(blobs: &Blobs, tenant: &str, file: &DataFile, with_header: bool) -> Result<Converted, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let format = types::tabular(&file.content_type).ok_or("The file is no table.")?;
    let blob = file.blob.as_deref().ok_or("The file's bytes are elsewhere.")?;
    let blob = blob.parse().map_err(|error| text(&error))?;
    let mut local = tempfile::tempfile().map_err(|error| text(&error))?;
    let mut reader = blobs.reader(tenant, &blob, None).map_err(|error| text(&error))?;
    std::io::copy(&mut reader, &mut local).map_err(|error| text(&error))?;
    std::io::Seek::rewind(&mut local).map_err(|error| text(&error))?;
    let mut rows = tempfile::tempfile().map_err(|error| text(&error))?;
    let table = pinakes_tabular::read(format, local, &mut rows, &Limits::default())
        .map_err(|error: TabularError| text(&error))?;
    if table.n_rows == 0 {
        return Err("The table has no rows.".to_owned());
    }
    let header = header_of(&table.variables);
    std::io::Seek::rewind(&mut rows).map_err(|error| text(&error))?;
    let head = if with_header { header.as_str() } else { "" };
    let source = std::io::Read::chain(head.as_bytes(), rows);
    let blob = blobs.put_blocking(tenant, source).map_err(|error| text(&error))?;
    Ok(Converted { table, size: blob.length, blob: blob.to_string(), header, has_header: with_header })
}

/// Returns the header line.
fn header_of(variables: &[Variable]) -> String {
    let names: Vec<String> = variables.iter().map(|it| it.name.replace(['\t', '\n', '\r'], " ")).collect();
    format!("{}\n", names.join("\t"))
}

/// Notifies the depositor of the end of an ingest, and whether a table could not be read.
fn tell(txn: &mut Txn<'_>, app: &Dataverse, job: &Job, ids: &mut crate::ids::Ids) -> Result<(), ApiError> {
    if job.told.is_empty() {
        return Ok(());
    }
    let mut is_fault = false;
    for id in &job.told {
        is_fault |= rows::data_file(txn, *id)?.is_some_and(|it| it.ingest_fault.is_some());
    }
    let Some(dataset) = crate::datasets::by_id(txn, job.file.dataset)? else { return Ok(()) };
    let kind = if is_fault { "INGESTCOMPLETEDWITHERRORS" } else { "INGESTCOMPLETED" };
    let notice = Notice::of(kind).with("datasetPersistentIdentifier", dataset.pid.as_str());
    notifications::send(txn, ids.next()?, &app.now(), job.file.creator, notice)
}

fn finish(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    id: i64,
    job: &Job,
    outcome: &Result<Converted, String>,
    ids: &mut crate::ids::Ids,
) -> Result<(), ApiError> {
    let Some(mut file) = rows::data_file(txn, id)? else { return Ok(()) };
    let converted = match outcome {
        Ok(converted) => converted,
        Err(fault) => {
            file.ingest_fault = Some(fault.clone());
            return rows::put_file(txn, &file);
        }
    };
    let original = Original {
        blob: file.blob.take().unwrap_or_default(),
        content_type: std::mem::replace(&mut file.content_type, types::TAB.to_owned()),
        size: std::mem::replace(&mut file.size, converted.size),
        name: job.label.clone(),
    };
    file.blob = Some(converted.blob.clone());
    file.original = Some(original);
    file.unf = Some(converted.table.unf.0.clone());
    file.header = (!converted.has_header).then(|| converted.header.clone());
    file.shape = Some((converted.table.variables.len() as u64, converted.table.n_rows));
    file.ingest_fault = None;
    rows::put_file(txn, &file)?;
    let tables = tables_json(&converted.table, id, ids)?;
    stored::put(txn, &TABLE, &id.to_string(), &json!({"tables": tables}))?;
    let stem = job.label.rsplit_once('.').map_or(job.label.as_str(), |it| it.0);
    rename(txn, &file, &format!("{stem}.tab"))?;
    let Some(dataset) = crate::datasets::by_id(txn, file.dataset)? else { return Ok(()) };
    crate::search::index_file(txn, app, &dataset, &file)
}

/// Renames the rows of a file; appends a number if the name is taken.
fn rename(txn: &mut Txn<'_>, file: &DataFile, label: &str) -> Result<(), ApiError> {
    let all: Vec<Row> = stored::find(txn, &ROW, &Query::filter(Expr::Is("file".into(), file.id.into())))?;
    for mut row in all {
        if row.label == label {
            continue;
        }
        row.label = rows::free_label(txn, row.dataset, &row.directory, label)?;
        rows::put_row(txn, row, &file.checksum)?;
    }
    Ok(())
}

/// Returns the variables as JSON for `dataTables`.
fn tables_json(table: &Table, id: i64, ids: &mut crate::ids::Ids) -> Result<Value, ApiError> {
    let mut variables = Vec::with_capacity(table.variables.len());
    for (index, variable) in table.variables.iter().enumerate() {
        variables.push(variable_json(variable, ids.next()?, index));
    }
    Ok(json!([{
        "id": id,
        "varQuantity": table.variables.len(),
        "caseQuantity": table.n_rows,
        "UNF": table.unf.0,
        "dataVariables": variables,
    }]))
}

fn variable_json(variable: &Variable, id: i64, index: usize) -> Value {
    let is_numeric = variable.ty.is_numeric();
    let interval = match variable.ty {
        Type::Real => "contin",
        _ => "discrete",
    };
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("id", id.into());
    put("name", variable.name.as_str().into());
    put("label", variable.label.as_str().into());
    put("weighted", false.into());
    put("variableIntervalType", interval.into());
    put("variableFormatType", if is_numeric { "NUMERIC" } else { "CHARACTER" }.into());
    if !variable.format.is_empty() {
        put("format", variable.format.as_str().into());
    }
    match variable.ty {
        Type::Date => put("formatCategory", "date".into()),
        Type::Time => put("formatCategory", "time".into()),
        _ => {}
    }
    put("isOrderedCategorical", false.into());
    put("fileOrder", index.into());
    put("UNF", variable.unf.0.as_str().into());
    put("variableMetadata", json!([]));
    if !variable.missing_values.is_empty() {
        let ranges: Vec<Value> = variable.missing_values.iter().map(|it| json!({"value": it})).collect();
        put("invalidRanges", ranges.into());
    }
    if let Some(summary) = &variable.summary {
        let mut statistics = Map::new();
        let mut statistic = |name: &str, value: Option<f64>| {
            statistics.insert(name.to_owned(), value.map_or_else(|| ".".to_owned(), with_point).into());
        };
        statistic("mean", summary.mean);
        statistic("medn", summary.median);
        // Dataverse computes no mode.
        statistic("mode", None);
        statistic("min", summary.min);
        statistic("max", summary.max);
        statistic("stdev", summary.standard_deviation);
        statistics.insert("vald".into(), format!("{}.0", summary.n_valid).into());
        statistics.insert("invd".into(), format!("{}.0", summary.n_invalid).into());
        put("summaryStatistics", statistics.into());
    }
    if !variable.categories.is_empty() {
        let categories = variable.categories.iter().map(|it| {
            json!({"value": it.value, "label": it.label, "isMissing": it.is_missing, "frequency": it.n_cells})
        });
        put("variableCategories", categories.collect());
    }
    map.into()
}

async fn uningest(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let (app, asker) = (call.app.clone(), call.asker.clone());
    let write = move |txn: &mut Txn<'_>| {
        let mut file = wanted.find(txn)?;
        let found = Found::of(txn, file.clone())?;
        let may = match file.original.is_some() {
            true => asker.is_superuser(),
            false => permissions::may(txn, &asker, found.dataset.place(), Permission::EditDataset)?,
        };
        if !may {
            return Err(ApiError::forbidden(
                "Uningest can only be called by superusers or by those who can publish the dataset.",
            ));
        }
        let Some(original) = file.original.take() else {
            if file.ingest_fault.take().is_some() {
                rows::put_file(txn, &file)?;
                return Ok(file.id);
            }
            return Err(ApiError::bad_request("Cannot uningest a file that is not tabular."));
        };
        file.blob = Some(original.blob).filter(|it| !it.is_empty());
        file.content_type = original.content_type;
        file.size = original.size;
        file.unf = None;
        file.header = None;
        file.shape = None;
        file.tags.clear();
        rows::put_file(txn, &file)?;
        txn.delete(&TABLE, &file.id.to_string())?;
        rename(txn, &file, &original.name)?;
        crate::search::index_file(txn, &app, &found.dataset, &file)?;
        Ok(file.id)
    };
    let id = call.db().write(write).await?;
    envelope::message(format!("Datafile {id} uningested."))
}

async fn reingest(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    call.asker.superuser("This API call can be used by superusers only")?;
    let write = move |txn: &mut Txn<'_>| {
        let file = wanted.find(txn)?;
        if file.original.is_some() {
            return Err(ApiError::bad_request("Datafile already ingested as Tabular."));
        }
        if types::tabular(&file.content_type).is_none() {
            return Err(ApiError::bad_request(format!(
                "Tabular ingest is not supported for this file type (id: {}, type: {})",
                file.id, file.content_type
            )));
        }
        stored::put(txn, &PENDING, &file.id.to_string(), &json!({"file": file.id}))?;
        Ok(file.id)
    };
    let id = call.db().write(write).await?;
    run_soon(&call.app, call.db(), &[id]).await;
    envelope::message(format!("Datafile {id} queued for ingest"))
}

/// Checks that a file is a table. Errors: 400.
pub(crate) fn only_tables(file: &DataFile) -> Result<(), ApiError> {
    if file.original.is_some() { Ok(()) } else { Err(ApiError::bad_request(ONLY_TABLES)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_setting() {
        for (text, bound) in [
            ("-1", None),
            ("123456", Some(123_456)),
            ("{\"csv\": 50}", Some(50)),
            ("{\"default\": 50.0}", Some(50)),
            ("{\"default\": -2}", Some(0)),
            ("{\"default\": 0, \"csv\": \"123457\"}", Some(123_457)),
            ("{\"dta\": 1}", None),
        ] {
            assert_eq!(size_limit(text, "csv"), bound, "{text}");
        }
    }
}
