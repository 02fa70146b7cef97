//! Summaries, log entries and journal records, derived from the entries stored by batches.

use std::collections::HashSet;

use http::StatusCode;
use pinakes_store::{Direction, End, Expr, Query, Record, Value as Condition, View, Weight};
use serde_json::{Map, Value, json};

use crate::data_import::{JOURNAL, Job, children};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::source_records::source_storage;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = |name: &'static str| Access::Permission(name.into());
    routes
        .get("/metadata-provider/jobSummary/{id}", to("metadata-provider.jobsummary.get"), summary)
        .get("/metadata-provider/jobLogEntries/{id}", to("metadata-provider.jobLogEntries.get"), entries)
        .get(
            "/metadata-provider/jobLogEntries/{id}/records/{recordId}",
            to("metadata-provider.jobLogEntries.records.get"),
            entry,
        )
        .get("/metadata-provider/journalRecords/{id}", to("metadata-provider.journalrecords.get"), journal)
        .get(
            "/metadata-provider/incomingRecords/{recordId}",
            to("metadata-provider.incomingrecords.get"),
            incoming,
        )
}

/// One stored entry, with its job and date.
struct Stored {
    job: String,
    date_ms: i64,
    body: Value,
}

impl Stored {
    fn text(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn order(&self) -> u64 {
        self.body.get("o").and_then(Value::as_u64).unwrap_or(0)
    }

    /// Returns (entity, id, hrid, action, error) of each row.
    fn rows(&self) -> impl Iterator<Item = [&str; 5]> {
        let list = self.body.get("j").and_then(Value::as_array).into_iter().flatten();
        list.map(|row| {
            [0, 1, 2, 3, 4].map(|at: usize| row.get(at).and_then(Value::as_str).unwrap_or_default())
        })
    }

    fn has_error(&self) -> bool {
        !self.text("e").is_empty()
    }

    /// Returns whether it is the entry of a record, by the id that came or that was stored.
    fn is_of(&self, record: &str) -> bool {
        self.text("i") == record || self.text("s") == record
    }
}

/// Reads the entries of a job and of its children.
fn stored(view: &mut View<'_>, job: &str, errors_only: bool) -> Result<Vec<Stored>, FolioError> {
    let mut jobs: Vec<Job> = Job::get(view, job)?.into_iter().collect();
    jobs.extend(children(view, job)?);
    let mut list = Vec::new();
    for job in jobs {
        list.extend(whole(&job));
        let job = job.id().to_owned();
        let mut filter = Expr::Is("jobId".into(), job.as_str().into());
        if errors_only {
            filter = filter.and(Expr::Is("hasErrors".into(), true.into()));
        }
        let query = Query { limit: Some(u64::MAX >> 1), ..Query::filter(filter) }
            .sorted("order", Direction::Ascending);
        for record in view.find(&JOURNAL, &query)? {
            add_entries(&mut list, &job, &record.json()?);
        }
    }
    if errors_only {
        list.retain(Stored::has_error);
    }
    Ok(list)
}

/// Checks whether the job's entries are exactly those of its file's records, one for each.
fn is_of_file_alone(job: &Job) -> bool {
    job.work("source").as_str() == Some("file") && job.work("error").is_null()
}

/// Reads the entries of the records `from` up to but excluding `to` of such a job; only the journal records that
/// contain them are read.
fn some_of_file(view: &mut View<'_>, job: &Job, from: u64, to: u64) -> Result<Vec<Stored>, FolioError> {
    let position = |order: u64| Condition::Integer(i64::try_from(order).unwrap_or(i64::MAX));
    let own = |begin: End, end: End| {
        Expr::Is("jobId".into(), job.id().into()).and(Expr::Range("order".into(), begin, end))
    };
    let first = Query::filter(own(End::Open, End::Included(position(from))))
        .sorted("order", Direction::Descending)
        .window(0, 1);
    let first = view.find(&JOURNAL, &first)?.first().map(Record::json).transpose()?;
    let first = first.and_then(|it| it.get("order").and_then(Value::as_u64)).unwrap_or(0);
    let batches = own(End::Included(position(first)), End::Excluded(position(to)));
    let batches = Query { limit: None, ..Query::filter(batches) }.sorted("order", Direction::Ascending);
    let mut list = Vec::new();
    for record in view.find(&JOURNAL, &batches)? {
        add_entries(&mut list, job.id(), &record.json()?);
    }
    list.retain(|it| (from..to).contains(&it.order()));
    Ok(list)
}

/// Returns the entry of a record that this job, or a child of it, has stored: its position is stored with it.
fn of_stored(view: &mut View<'_>, job: &Job, record: &str) -> Result<Option<Stored>, FolioError> {
    let Some(source) = source_storage::get(view, record)? else { return Ok(None) };
    let Some(order) = source.get("order").and_then(Value::as_u64) else { return Ok(None) };
    let of = text_at(&source, "snapshotId").map(|it| Job::get(view, it)).transpose()?.flatten();
    let Some(of) = of.filter(|it| it.id() == job.id() || it.text("parentJobId") == job.id()) else {
        return Ok(None);
    };
    let list = some_of_file(view, &of, order, order.saturating_add(1))?;
    Ok(list.into_iter().find(|it| it.is_of(record)))
}

/// Adds the entries of a batch.
fn add_entries(list: &mut Vec<Stored>, job: &str, batch: &Value) {
    let date_ms = batch.get("date").and_then(Value::as_i64).unwrap_or(0);
    for body in batch.get("entries").and_then(Value::as_array).into_iter().flatten() {
        list.push(Stored { job: job.to_owned(), date_ms, body: body.clone() });
    }
}

/// Returns the reason why a job failed as a whole, as an entry that precedes those of its records.
fn whole(job: &Job) -> Option<Stored> {
    let reason = job.work("error").as_str()?;
    let date_ms = dates::parse_ms(job.text("completedDate")).unwrap_or(0);
    let body = json!({"i": job.id(), "o": 0, "t": "No content", "e": reason});
    Some(Stored { job: job.id().to_owned(), date_ms, body })
}

fn require_job(view: &mut View<'_>, id: &str) -> Result<Job, FolioError> {
    Job::get(view, id)?.ok_or_else(|| crate::data_import::job::not_found(id))
}

async fn summary(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = require_job(view, &id)?;
        let mut whole = job.summary().0;
        for child in children(view, &id)? {
            add(&mut whole, &child.summary().0);
        }
        if whole.is_empty() && !job.work("error").is_null() {
            whole.insert("totalErrors".into(), 1.into());
        }
        if whole.is_empty() {
            return Err(FolioError::not_found(format!(
                "JobSummary for jobExecutionId: '{id}' was not found"
            )));
        }
        let mut body = Map::new();
        body.insert("jobExecutionId".into(), id.as_str().into());
        body.insert("totalErrors".into(), whole.get("totalErrors").cloned().unwrap_or_else(|| 0.into()));
        for name in
            ["sourceRecordSummary", "instanceSummary", "holdingSummary", "itemSummary", "authoritySummary"]
        {
            body.extend(whole.get(name).map(|it| (name.to_owned(), it.clone())));
        }
        Ok(Value::Object(body))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Adds the numbers of one object to those of another, recursively.
fn add(sum: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (sum.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => add(inner, value),
            (Some(before), Value::Number(_)) => {
                let total = before.as_u64().unwrap_or(0) + value.as_u64().unwrap_or(0);
                *before = total.into();
            }
            (Some(_), _) => {}
            (None, _) => {
                sum.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Returns the status of an entry with regard to some entities.
fn status_of(entry: &Stored, entities: &[&str]) -> Option<&'static str> {
    let rows: Vec<[&str; 5]> = entry.rows().filter(|row| entities.contains(&row[0])).collect();
    let done: Vec<&str> = rows
        .iter()
        .filter(|row| row[4].is_empty())
        .map(|row| row[3])
        .filter(|it| matches!(*it, "CREATE" | "UPDATE" | "MODIFY" | "DELETE"))
        .collect();
    let mut kinds = done.clone();
    kinds.dedup();
    let has_failed = rows.iter().any(|row| !row[4].is_empty());
    match (kinds.as_slice(), has_failed) {
        (_, true) => Some("DISCARDED"),
        // Nothing was found to change, and nothing was made instead.
        ([], _) => rows.iter().any(|row| row[3] == "NON_MATCH").then_some("DISCARDED"),
        (["CREATE"], _) => {
            Some(if 1 < done.len() && entities.contains(&"ITEM") { "MULTIPLE" } else { "CREATED" })
        }
        (["DELETE"], _) => Some("DELETED"),
        (["UPDATE" | "MODIFY"], _) => Some("UPDATED"),
        (list, _) if list.contains(&"CREATE") && list.contains(&"UPDATE") => Some("MULTIPLE"),
        (list, _) if list.contains(&"CREATE") => Some("CREATED"),
        _ => Some("UPDATED"),
    }
}

fn related(entry: &Stored, entity: &str) -> Value {
    let rows: Vec<[&str; 5]> = entry.rows().filter(|row| row[0] == entity && !row[1].is_empty()).collect();
    let mut map = Map::new();
    map.extend(status_of(entry, &[entity]).map(|it| ("actionStatus".to_owned(), it.into())));
    // Two branches of a profile may have changed the same record.
    let distinct = |column: usize| -> Value {
        let mut list: Vec<&str> = rows.iter().map(|row| row[column]).filter(|it| !it.is_empty()).collect();
        let mut seen = HashSet::new();
        list.retain(|it| seen.insert(*it));
        list.into()
    };
    map.insert("idList".into(), distinct(1));
    map.insert("hridList".into(), distinct(2));
    let failed = entry.rows().find(|row| row[0] == entity && !row[4].is_empty());
    map.insert("error".into(), failed.map_or("", |row| row[4]).into());
    Value::Object(map)
}

/// Lists each holdings record or item separately; if a match has found none and none was made, says so in one element.
fn related_each(entry: &Stored, entity: &str) -> Vec<Value> {
    let list: Vec<Value> = entry
        .rows()
        .filter(|row| row[0] == entity && (!row[1].is_empty() || !row[4].is_empty()))
        .map(|row| {
            let status = match row[3] {
                _ if !row[4].is_empty() => "DISCARDED",
                "CREATE" => "CREATED",
                "DELETE" => "DELETED",
                _ => "UPDATED",
            };
            json!({"actionStatus": status, "id": row[1], "hrid": row[2], "error": row[4]})
        })
        .collect();
    match status_of(entry, &[entity]) {
        Some(status @ "DISCARDED") if list.is_empty() => vec![json!({"actionStatus": status, "error": ""})],
        _ => list,
    }
}

const MARC: [&str; 3] = ["MARC_BIBLIOGRAPHIC", "MARC_HOLDINGS", "MARC_AUTHORITY"];

/// Returns an entry in the form of `/jobLogEntries`.
fn shown(entry: &Stored) -> Value {
    let mut map = Map::new();
    map.insert("jobExecutionId".into(), entry.job.as_str().into());
    map.insert("incomingRecordId".into(), entry.text("i").into());
    map.insert("sourceRecordId".into(), entry.text("s").into());
    map.insert("sourceRecordOrder".into(), entry.order().to_string().into());
    map.insert("error".into(), entry.text("e").into());
    if !entry.text("w").is_empty() {
        map.insert("warning".into(), entry.text("w").into());
    }
    map.insert("sourceRecordTitle".into(), entry.text("t").into());
    if !entry.text("y").is_empty() {
        map.insert("sourceRecordType".into(), entry.text("y").into());
    }
    let status = status_of(entry, &MARC).unwrap_or("DISCARDED");
    map.insert("sourceRecordActionStatus".into(), status.into());
    map.insert("relatedInstanceInfo".into(), related(entry, "INSTANCE"));
    map.insert("relatedHoldingsInfo".into(), related_each(entry, "HOLDINGS").into());
    map.insert("relatedItemInfo".into(), related_each(entry, "ITEM").into());
    map.insert("relatedAuthorityInfo".into(), related(entry, "AUTHORITY"));
    for name in ["relatedPoLineInfo", "relatedInvoiceInfo"] {
        map.insert(name.into(), json!({"idList": [], "hridList": [], "error": ""}));
    }
    map.insert("relatedInvoiceLineInfo".into(), json!({}));
    Value::Object(map)
}

async fn entries(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 100)?);
    let sort = call.query.get("sortBy").unwrap_or("source_record_order").to_owned();
    let is_descending = call.query.get("order").is_some_and(|it| it.eq_ignore_ascii_case("desc"));
    let errors_only = call.query.is_true("errorsOnly");
    let entity = call.query.get("entityType").unwrap_or("ALL").to_owned();
    let entities: &[&str] = match entity.as_str() {
        "ALL" => &[],
        "MARC" => &MARC,
        "INSTANCE" => &["INSTANCE"],
        "HOLDINGS" => &["HOLDINGS"],
        "ITEM" => &["ITEM"],
        "AUTHORITY" => &["AUTHORITY"],
        "ORDER" => &["ORDER"],
        "INVOICE" => &["INVOICE"],
        other => return Err(FolioError::bad_request(format!("entityType {other:?} is not known"))),
    };
    let key: fn(&Stored) -> String = match sort.as_str() {
        "source_record_order" => |it| format!("{:020}", it.order()),
        "source_record_title" => |it| it.text("t").to_lowercase(),
        "source_record_action_status" => |it| status_of(it, &MARC).unwrap_or_default().to_owned(),
        "instance_action_status" => |it| status_of(it, &["INSTANCE"]).unwrap_or_default().to_owned(),
        "holdings_action_status" => |it| status_of(it, &["HOLDINGS"]).unwrap_or_default().to_owned(),
        "item_action_status" => |it| status_of(it, &["ITEM"]).unwrap_or_default().to_owned(),
        "authority_action_status" => |it| status_of(it, &["AUTHORITY"]).unwrap_or_default().to_owned(),
        "source_record_type" => |it| it.text("y").to_owned(),
        "error" => |it| it.text("e").to_owned(),
        other if other.ends_with("_action_status") => |_| String::new(),
        other => {
            return Err(FolioError::bad_request(format!(
                "sortBy {other:?} is no field that entries are sorted by"
            )));
        }
    };
    let is_plain = sort == "source_record_order" && !errors_only && entities.is_empty();
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = require_job(view, &id)?;
        if is_plain && is_of_file_alone(&job) {
            let total = job.work_number("order");
            let (begin, end) = (offset.min(total), offset.saturating_add(limit).min(total));
            let (from, to) = if is_descending { (total - end, total - begin) } else { (begin, end) };
            let mut list = if from < to { some_of_file(view, &job, from, to)? } else { Vec::new() };
            if is_descending {
                list.reverse();
            }
            return Ok(json!({"entries": list.iter().map(shown).collect::<Vec<_>>(), "totalRecords": total}));
        }
        let (offset, limit) = (at(offset), at(limit));
        let mut list = stored(view, &id, errors_only)?;
        if !entities.is_empty() {
            list.retain(|it| it.rows().any(|row| entities.contains(&row[0]) && row[3] != "NON_MATCH"));
        }
        list.sort_by_cached_key(key);
        if is_descending {
            list.reverse();
        }
        let page: Vec<Value> = list.iter().skip(offset).take(limit).map(shown).collect();
        Ok(json!({"entries": page, "totalRecords": list.len()}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn entry(call: Call) -> Answer {
    let (id, record) = (call.uuid_param("id")?, call.uuid_param("recordId")?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = require_job(view, &id)?;
        let found = match of_stored(view, &job, &record)? {
            Some(found) => Some(found),
            None => stored(view, &id, false)?.into_iter().find(|it| it.is_of(&record)),
        };
        found.as_ref().map(shown).ok_or_else(|| {
            FolioError::not_found(format!(
                "Record with id '{record}' was not found in the log of the job '{id}'"
            ))
        })
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn journal(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let sort = call.query.get("sortBy").unwrap_or("source_record_order").to_owned();
    let is_descending = call.query.get("order").is_some_and(|it| it.eq_ignore_ascii_case("desc"));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        require_job(view, &id)?;
        let mut list = Vec::new();
        for entry in stored(view, &id, false)? {
            for (at, [entity, entity_id, hrid, action, error]) in entry.rows().enumerate() {
                let is_bad = !error.is_empty();
                let mut map = Map::new();
                map.insert("id".into(), row_id(entry.text("i"), at).into());
                map.insert("jobExecutionId".into(), entry.job.as_str().into());
                map.insert("sourceId".into(), entry.text("i").into());
                map.insert("sourceRecordOrder".into(), entry.order().into());
                map.insert("entityType".into(), entity.into());
                for (name, text) in [("entityId", entity_id), ("entityHrId", hrid), ("error", error)] {
                    if !text.is_empty() {
                        map.insert(name.into(), text.into());
                    }
                }
                map.insert("actionType".into(), action.into());
                map.insert("actionStatus".into(), if is_bad { "ERROR" } else { "COMPLETED" }.into());
                map.insert("title".into(), entry.text("t").into());
                map.insert("actionDate".into(), dates::rmb(entry.date_ms).into());
                list.push(Value::Object(map));
            }
        }
        let name = match sort.as_str() {
            "action_type" => "actionType",
            "action_status" => "actionStatus",
            "entity_type" => "entityType",
            "title" => "title",
            _ => "",
        };
        if !name.is_empty() {
            list.sort_by_key(|it| it.get(name).and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        if is_descending {
            list.reverse();
        }
        Ok(json!({"totalRecords": list.len(), "journalRecords": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns a stable id for a row: that of its record, with the row's number at the end.
fn row_id(record: &str, at: usize) -> String {
    let Ok(id) = uuid::Uuid::parse_str(record) else { return record.to_owned() };
    uuid::Uuid::from_u128(id.as_u128() ^ (at as u128 + 1)).to_string()
}

async fn incoming(call: Call) -> Answer {
    let id = call.uuid_param("recordId")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = source_storage::get(view, &id)?
            .ok_or_else(|| FolioError::not_found(format!("Incoming record with id '{id}' was not found")))?;
        let text = |pointer: &str| found.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let parsed = found.pointer("/parsedRecord/content").map(Value::to_string).unwrap_or_default();
        Ok(json!({
            "id": id,
            "jobExecutionId": text("/snapshotId"),
            "recordType": text("/recordType"),
            "order": found.get("order"),
            "rawRecordContent": text("/rawRecord/content"),
            "parsedRecordContent": parsed,
        }))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
