//! Summaries, log entries and journal records, derived from the entries stored by batches.

use std::collections::HashSet;
use std::sync::Arc;

use http::StatusCode;
use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::data_import::journal::stored::{
    Batch, Shown, Stored, each_batch, is_of_file_alone, some_of_file, with_children,
};
use crate::data_import::{JOURNAL, Job, children};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::LOG_ENTRIES;
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

/// Returns the entry of a record that this job, or a child of it, has stored: its position is stored with it.
fn of_stored(view: &mut View<'_>, job: &Job, record: &str) -> Result<Option<Value>, FolioError> {
    let Some(source) = source_storage::get(view, record)? else { return Ok(None) };
    let Some(order) = source.get("order").and_then(Value::as_u64) else { return Ok(None) };
    let of = text_at(&source, "snapshotId").map(|it| Job::get(view, it)).transpose()?.flatten();
    let Some(of) = of.filter(|it| it.id() == job.id() || it.text("parentJobId") == job.id()) else {
        return Ok(None);
    };
    let mut found = None;
    some_of_file(view, &of, order, order.saturating_add(1), |entry| {
        if entry.is_of(record) {
            found.get_or_insert_with(|| shown(&of, entry));
        }
    })?;
    Ok(found)
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
fn status_of(entry: &Stored<'_>, entities: &[&str]) -> Option<&'static str> {
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

fn related(entry: &Stored<'_>, entity: &str) -> Value {
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
fn related_each(entry: &Stored<'_>, entity: &str) -> Vec<Value> {
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

/// Returns an entry of a job in the form of `/jobLogEntries`.
fn shown(job: &Job, entry: &Stored<'_>) -> Value {
    let mut map = Map::new();
    map.insert("jobExecutionId".into(), job.id().into());
    map.insert("incomingRecordId".into(), (*entry.incoming_id.0).into());
    map.insert("sourceRecordId".into(), (*entry.source_id.0).into());
    map.insert("sourceRecordOrder".into(), entry.order.to_string().into());
    map.insert("error".into(), (*entry.error.0).into());
    if !entry.warning.0.is_empty() {
        map.insert("warning".into(), (*entry.warning.0).into());
    }
    map.insert("sourceRecordTitle".into(), (*entry.title.0).into());
    if !entry.record_type.0.is_empty() {
        map.insert("sourceRecordType".into(), (*entry.record_type.0).into());
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

/// What entries are sorted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Order(u64),
    Status(&'static str),
    Text(String),
}

/// Returns the function that takes the key from an entry. Errors: 400 for a name that entries are not sorted by.
fn key_of(sort: &str) -> Result<fn(&Stored<'_>) -> Key, FolioError> {
    fn status(entry: &Stored<'_>, entities: &[&str]) -> Key {
        Key::Status(status_of(entry, entities).unwrap_or_default())
    }
    Ok(match sort {
        "source_record_order" => |it| Key::Order(it.order),
        "source_record_title" => |it| Key::Text(it.title.0.to_lowercase()),
        "source_record_action_status" => |it| status(it, &MARC),
        "instance_action_status" => |it| status(it, &["INSTANCE"]),
        "holdings_action_status" => |it| status(it, &["HOLDINGS"]),
        "item_action_status" => |it| status(it, &["ITEM"]),
        "authority_action_status" => |it| status(it, &["AUTHORITY"]),
        "source_record_type" => |it| Key::Text(it.record_type.0.to_string()),
        "error" => |it| Key::Text(it.error.0.to_string()),
        other if other.ends_with("_action_status") => |_| Key::Order(0),
        other => {
            return Err(FolioError::bad_request(format!(
                "sortBy {other:?} is no field that entries are sorted by"
            )));
        }
    })
}

/// The entries that a request selects, and their order.
struct Selection {
    errors_only: bool,
    /// Entities of which an entry tells one; empty for any.
    entities: &'static [&'static str],
    key: fn(&Stored<'_>) -> Key,
    is_descending: bool,
}

/// Where an entry is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    job: usize,
    /// The id of the batch's record; `None` for the reason why a job failed.
    batch: Option<Arc<str>>,
    /// The position in the batch.
    at: usize,
}

/// Entries are sorted, and those behind the page are dropped, when there are so many, or twice as many as the page needs.
const SORTED_ENTRIES: usize = 4_096;

impl Selection {
    fn takes(&self, entry: &Stored<'_>) -> bool {
        let is_asked = |row: [&str; 5]| self.entities.contains(&row[0]) && row[3] != "NON_MATCH";
        (!self.errors_only || !entry.error.0.is_empty())
            && (self.entities.is_empty() || entry.rows().any(is_asked))
    }

    /// Returns a page of entries in the form of answers, and the number of all. All are looked at, but no more of them
    /// is kept than the page needs.
    ///
    /// Errors: 400 if the page ends behind more than [`LOG_ENTRIES`] entries.
    fn page(
        &self,
        view: &mut View<'_>,
        jobs: &[Job],
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<Value>, usize), FolioError> {
        let n_needed = offset.saturating_add(limit).min(LOG_ENTRIES);
        let mut found: Vec<(Key, usize, Place)> = Vec::new();
        let keep_first = |found: &mut Vec<(Key, usize, Place)>| {
            found.sort_unstable_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            if self.is_descending {
                found.reverse();
            }
            found.truncate(n_needed);
        };
        let mut n_all = 0;
        each_batch(view, jobs, self.errors_only, |job, record, batch| {
            let batch_id: Option<Arc<str>> = record.map(|it| it.id.as_str().into());
            for (at, entry) in batch.entries.iter().enumerate().filter(|it| self.takes(it.1)) {
                found.push(((self.key)(entry), n_all, Place { job, batch: batch_id.clone(), at }));
                n_all += 1;
            }
            if SORTED_ENTRIES.max(n_needed.saturating_mul(2)) <= found.len() {
                keep_first(&mut found);
            }
            Ok(())
        })?;
        keep_first(&mut found);
        if LOG_ENTRIES < n_all.min(offset.saturating_add(limit)) {
            return Err(FolioError::bad_request(format!(
                "{n_all} entries are too many to be sorted for a page behind the first {LOG_ENTRIES}; ask for an \
                 earlier one, or for the order of the records"
            )));
        }
        let places = found.into_iter().skip(offset).map(|it| it.2).collect();
        Ok((entries_at(view, jobs, places)?, n_all))
    }
}

/// Returns the entries at some places in the form of answers. Each batch is read once.
fn entries_at(view: &mut View<'_>, jobs: &[Job], places: Vec<Place>) -> Result<Vec<Value>, FolioError> {
    let mut by_batch: Vec<(Place, usize)> = places.into_iter().zip(0..).collect();
    by_batch.sort_unstable();
    let mut page = vec![None; by_batch.len()];
    let mut all = Shown::default();
    for of_batch in by_batch.chunk_by(|a, b| (a.0.job, &a.0.batch) == (b.0.job, &b.0.batch)) {
        let Place { job, batch, .. } = &of_batch[0].0;
        let job = &jobs[*job];
        let record = batch.as_ref().map(|id| view.get(&JOURNAL, id)).transpose()?.flatten();
        record.as_ref().map(|it| all.add(it.body.len())).transpose()?;
        let batch = match &record {
            Some(record) => Some(Batch::of(record)?),
            None => Batch::of_whole(job),
        };
        for (place, slot) in of_batch {
            let entry = batch.as_ref().and_then(|it| it.entries.get(place.at));
            page[*slot] = entry.map(|it| shown(job, it));
        }
    }
    Ok(page.into_iter().flatten().collect())
}

async fn entries(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 100)?);
    let sort = call.query.get("sortBy").unwrap_or("source_record_order");
    let entities: &[&str] = match call.query.get("entityType").unwrap_or("ALL") {
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
    let is_descending = call.query.get("order").is_some_and(|it| it.eq_ignore_ascii_case("desc"));
    let errors_only = call.query.is_true("errorsOnly");
    let is_plain = sort == "source_record_order" && !errors_only && entities.is_empty();
    let selection = Selection { errors_only, entities, key: key_of(sort)?, is_descending };
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = require_job(view, &id)?;
        if is_plain && is_of_file_alone(&job) {
            let total = job.work_number("order");
            let (begin, end) = (offset.min(total), offset.saturating_add(limit).min(total));
            let (from, to) = if is_descending { (total - end, total - begin) } else { (begin, end) };
            let mut page = Vec::new();
            if from < to {
                some_of_file(view, &job, from, to, |entry| page.push(shown(&job, entry)))?;
            }
            if is_descending {
                page.reverse();
            }
            return Ok(json!({"entries": page, "totalRecords": total}));
        }
        let jobs = with_children(view, &id)?;
        let (page, total) = selection.page(view, &jobs, at(offset), at(limit))?;
        Ok(json!({"entries": page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn entry(call: Call) -> Answer {
    let (id, record) = (call.uuid_param("id")?, call.uuid_param("recordId")?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let job = require_job(view, &id)?;
        let mut found = of_stored(view, &job, &record)?;
        if found.is_none() {
            let jobs = with_children(view, &id)?;
            each_batch(view, &jobs, false, |job, _, batch| {
                if let Some(entry) = batch.entries.iter().find(|it| it.is_of(&record)) {
                    found.get_or_insert_with(|| shown(&jobs[job], entry));
                }
                Ok(())
            })?;
        }
        found.ok_or_else(|| {
            FolioError::not_found(format!(
                "Record with id '{record}' was not found in the log of the job '{id}'"
            ))
        })
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns the journal records of an entry.
fn journal_records(job: &Job, date_ms: i64, entry: &Stored<'_>) -> Vec<Value> {
    let record = |(at, [entity, entity_id, hrid, action, error]): (usize, [&str; 5])| {
        let is_bad = !error.is_empty();
        let mut map = Map::new();
        map.insert("id".into(), row_id(&entry.incoming_id.0, at).into());
        map.insert("jobExecutionId".into(), job.id().into());
        map.insert("sourceId".into(), (*entry.incoming_id.0).into());
        map.insert("sourceRecordOrder".into(), entry.order.into());
        map.insert("entityType".into(), entity.into());
        for (name, text) in [("entityId", entity_id), ("entityHrId", hrid), ("error", error)] {
            if !text.is_empty() {
                map.insert(name.into(), text.into());
            }
        }
        map.insert("actionType".into(), action.into());
        map.insert("actionStatus".into(), if is_bad { "ERROR" } else { "COMPLETED" }.into());
        map.insert("title".into(), (*entry.title.0).into());
        map.insert("actionDate".into(), dates::rmb(date_ms).into());
        Value::Object(map)
    };
    entry.rows().enumerate().map(record).collect()
}

async fn journal(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let sort = call.query.get("sortBy").unwrap_or("source_record_order").to_owned();
    let is_descending = call.query.get("order").is_some_and(|it| it.eq_ignore_ascii_case("desc"));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        require_job(view, &id)?;
        let jobs = with_children(view, &id)?;
        let (mut list, mut all) = (Vec::new(), Shown::default());
        each_batch(view, &jobs, false, |job, record, batch| {
            record.map(|it| all.add(it.body.len())).transpose()?;
            list.extend(batch.entries.iter().flat_map(|it| journal_records(&jobs[job], batch.date, it)));
            Ok(())
        })?;
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
