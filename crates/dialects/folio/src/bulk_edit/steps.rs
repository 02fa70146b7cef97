//! The steps of an operation: finding the records, previewing the rules, and writing the results. Steps that only
//! change rows of the operation work in batches. Each record is written in a transaction of its own, because a refused
//! one may have been partly written; transactions that run at the same time share their flush.

use futures_util::stream::{self, TryStreamExt as _};
use pinakes_store::{Expr, Query, Record, Txn, Value as StoreValue, View, Weight};
use serde_json::{Map, Value};

use super::marc::{self, MarcRule};
use super::rules::{self, Rule};
use super::table::{self, Entity};
use crate::bulk_edit::operations::{OPERATIONS, ROW, operation, refused, rows};
use crate::data_import::change_manager::parsed_records;
use crate::data_import::instance_by;
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Collections, Lock, Missing, Writer, put};
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::limits::{BULK_EDIT_BATCH, BULK_EDIT_WRITES};
use crate::source_records::{marc as records, source_storage};

/// States of a row.
const NEW: &str = "new";
const MATCHED: &str = "matched";
pub(super) const UNMATCHED: &str = "unmatched";
const COMMITTED: &str = "committed";
pub(super) const UNCHANGED: &str = "unchanged";
/// All row states.
pub(super) const ALL: [&str; 5] = [NEW, MATCHED, UNMATCHED, COMMITTED, UNCHANGED];
/// Row states with an error.
pub(super) const FAILED: [&str; 2] = [UNMATCHED, UNCHANGED];

/// Statuses in which an operation may write.
const REVIEWED: &[&str] = &["REVIEW_CHANGES"];

/// Returns the row states that a step shows, and which of the records in a row.
pub(super) fn shown(step: &str) -> Option<(&'static [&'static str], &'static str)> {
    match step {
        "UPLOAD" => Some((&[MATCHED, COMMITTED, UNCHANGED], "before")),
        "EDIT" => Some((&[MATCHED, COMMITTED, UNCHANGED], "after")),
        "COMMIT" => Some((&[COMMITTED], "after")),
        _ => None,
    }
}

/// Reads an operation and its record type, and checks that it is in a status that the step expects.
///
/// Errors: 404; 400 if another step is due.
fn due(view: &mut View<'_>, id: &str, expected: &[&str]) -> Result<(Map<String, Value>, Entity), FolioError> {
    let found = operation(view, id)?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let status = text("status");
    if !expected.contains(&status) {
        let message = format!("the operation is {status}, expected {}", expected.join(" or "));
        return Err(FolioError::bad_request(message));
    }
    let entity = Entity::named(text("entityType"));
    let entity = entity.ok_or_else(|| refused("unknown type", "entityType", text("entityType")))?;
    Ok((found, entity))
}

/// Runs a step over every row in the state `from`, one batch of rows per transaction; `each` changes the row and writes
/// nothing.
async fn walk(
    call: &Call,
    id: &str,
    from: &'static str,
    expected: &'static [&'static str],
    each: fn(&mut Txn<'_>, &Step, &mut Value) -> Result<(), FolioError>,
) -> Result<(), FolioError> {
    let collections = call.app.collections;
    let mut skip = 0;
    loop {
        let id = id.to_owned();
        let write = move |txn: &mut Txn<'_>| -> Result<(u64, u64), FolioError> {
            let (operation, entity) = due(txn, &id, expected)?;
            let step = Step {
                collections,
                entity,
                by: operation.get("identifierType").and_then(Value::as_str).unwrap_or_default().to_owned(),
                rules: rules::read(entity, operation.get("_rules").unwrap_or(&Value::Null))?,
                marc_rules: marc::read(operation.get("_marcRules").unwrap_or(&Value::Null))?,
                is_manual: operation.get("approach").and_then(Value::as_str) == Some("MANUAL"),
            };
            let batch = rows(txn, &id, &[from], (skip, BULK_EDIT_BATCH))?;
            let n_rows = batch.len() as u64;
            let mut n_left = 0;
            for mut row in batch {
                each(txn, &step, &mut row)?;
                n_left += u64::from(row["state"] == from);
                let row_id = row["id"].as_str().unwrap_or_default().to_owned();
                txn.update(&ROW, &row_id, &row)?;
            }
            Ok((n_rows, n_left))
        };
        let (n_rows, n_left) = call.db().write(write).await?;
        skip += n_left;
        if n_rows < BULK_EDIT_BATCH {
            return Ok(());
        }
    }
}

/// What a step knows about its operation.
struct Step {
    collections: Collections,
    entity: Entity,
    by: String,
    rules: Vec<Rule>,
    marc_rules: Vec<MarcRule>,
    is_manual: bool,
}

/// How the end of a step changes the operation, given the number of rows in each state and the time.
type Change = fn(&mut Map<String, Value>, &dyn Fn(&str) -> u64, &str);

/// Counts the rows and gives the operation its next status.
async fn finish(call: &Call, id: &str, change: Change) -> Result<Value, FolioError> {
    let (id, now) = (id.to_owned(), dates::rmb(call.app.now_ms()));
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let mut found = operation(txn, &id)?;
        let mut counts = Vec::with_capacity(ALL.len());
        for state in ALL {
            let filter =
                Expr::Is("operation".into(), id.as_str().into()).and(Expr::Is("state".into(), state.into()));
            counts.push((state, txn.count(&ROW, &filter)?));
        }
        let count = |state: &str| counts.iter().find(|it| it.0 == state).map_or(0, |it| it.1);
        change(&mut found, &count, &now);
        let changed = Value::Object(found);
        txn.update(&OPERATIONS.kind, &id, &changed)?;
        Ok(changed)
    };
    call.db().write(write).await
}

fn fail(row: &mut Value, state: &str, message: impl Into<String>) {
    row["state"] = state.into();
    row["error"] = message.into().into();
}

/// Finds the record of each identifier.
pub(super) async fn find(call: &Call, id: &str) -> Result<Value, FolioError> {
    walk(call, id, NEW, &["NEW"], find_one).await?;
    finish(call, id, |operation, count, now| {
        let (n_found, n_lost) = (count(MATCHED), count(UNMATCHED));
        operation.insert("processedNumOfRecords".into(), (n_found + n_lost).into());
        operation.insert("matchedNumOfRecords".into(), n_found.into());
        operation.insert("matchedNumOfErrors".into(), n_lost.into());
        let status = if n_found == 0 { "COMPLETED_WITH_ERRORS" } else { "DATA_MODIFICATION" };
        operation.insert("status".into(), status.into());
        if n_found == 0 {
            operation.insert("endTime".into(), now.into());
        }
    })
    .await
}

fn find_one(txn: &mut Txn<'_>, step: &Step, row: &mut Value) -> Result<(), FolioError> {
    let identifier = row["identifier"].as_str().unwrap_or_default().to_owned();
    let Some(path) = step.entity.identified_by(&step.by) else { return Ok(()) };
    let filter = match path {
        "id" => Expr::Ids(vec![identifier.to_lowercase()]),
        "holdingsRecordId" | "instanceId" => Expr::Is(path.into(), identifier.to_lowercase().into()),
        path => Expr::Is(path.into(), StoreValue::Folded(identifier.clone())),
    };
    let found: Vec<Record> = txn.find(&step.entity.collection().kind, &Query::filter(filter).window(0, 2))?;
    let record = match found.as_slice() {
        [] => {
            fail(row, UNMATCHED, "No match found");
            return Ok(());
        }
        [record] => record,
        _ => {
            fail(row, UNMATCHED, "Multiple matches for the same identifier.");
            return Ok(());
        }
    };
    let same = Expr::Is("operation".into(), row["operation"].as_str().unwrap_or_default().into())
        .and(Expr::Is("recordId".into(), record.id.as_str().into()));
    if txn.first(&ROW, same)?.is_some() {
        fail(row, UNMATCHED, "Duplicate entry");
        return Ok(());
    }
    row["recordId"] = record.id.as_str().into();
    row["before"] = record.json()?;
    row["state"] = MATCHED.into();
    Ok(())
}

/// Records in each row what the rules would make of its record.
pub(super) async fn try_out(call: &Call, id: &str) -> Result<Value, FolioError> {
    walk(call, id, MATCHED, &["DATA_MODIFICATION", "REVIEW_CHANGES"], try_one).await?;
    finish(call, id, |operation, count, _| {
        operation.insert("processedNumOfRecords".into(), count(MATCHED).into());
        operation.insert("status".into(), "REVIEW_CHANGES".into());
    })
    .await
}

fn try_one(txn: &mut Txn<'_>, step: &Step, row: &mut Value) -> Result<(), FolioError> {
    let mut after = row["before"].clone();
    if step.is_manual {
        if row["cells"].is_null() {
            row["after"] = after;
            return Ok(());
        }
        let cells = row["cells"].clone();
        match table::set_cells(txn, step.entity, &mut after, &cells)? {
            Ok(()) => row["after"] = after,
            Err(reason) => fail(row, UNCHANGED, reason),
        }
        return Ok(());
    }
    step.rules.iter().for_each(|it| it.change(&mut after));
    if step.entity == Entity::Instance && !step.marc_rules.is_empty() {
        let id = row["recordId"].as_str().unwrap_or_default();
        let source = source_storage::current_of(txn, "instanceId", id)?;
        let content = source.as_ref().and_then(|it| it.pointer("/parsedRecord/content"));
        let Some(mut record) = content.and_then(records::from_value) else {
            fail(row, UNCHANGED, "Instance with source FOLIO is not supported by MARC records bulk edit.");
            return Ok(());
        };
        let old = records::to_value(&record);
        step.marc_rules.iter().for_each(|it| it.change(&mut record));
        let new = records::to_value(&record);
        if old != new {
            row["ruled"] = after.clone();
            row["source"] = source.as_ref().map(|it| it["matchedId"].clone()).unwrap_or_default();
            row["marc"] = new;
            after = Value::Object(instance_by(txn, step.collections, &record, &after)?);
        }
    }
    row["after"] = after;
    Ok(())
}

/// Writes the changed records. A record that was changed in the meantime, or that the rules do not change, is reported
/// as an error.
pub(super) async fn commit(call: &Call, id: &str) -> Result<Value, FolioError> {
    loop {
        let of = id.to_owned();
        let read = move |view: &mut View<'_>| -> Result<(Entity, Vec<String>), FolioError> {
            let (_, entity) = due(view, &of, REVIEWED)?;
            let batch = rows(view, &of, &[MATCHED], (0, BULK_EDIT_BATCH))?;
            Ok((entity, batch.iter().filter_map(|it| it["id"].as_str().map(str::to_owned)).collect()))
        };
        let (entity, batch) = call.db().read(Weight::Scan, read).await?;
        if batch.is_empty() {
            break;
        }
        stream::iter(batch.into_iter().map(Ok))
            .try_for_each_concurrent(BULK_EDIT_WRITES, |row| commit_row(call, id, entity, row))
            .await?;
    }
    finish(call, id, |operation, count, now| {
        let (n_done, n_failed) = (count(COMMITTED), count(UNCHANGED));
        operation.insert("committedNumOfRecords".into(), n_done.into());
        operation.insert("committedNumOfErrors".into(), n_failed.into());
        let status = if n_failed == 0 { "COMPLETED" } else { "COMPLETED_WITH_ERRORS" };
        operation.insert("status".into(), status.into());
        operation.insert("endTime".into(), now.into());
    })
    .await
}

/// Writes one record, or records the reason for the failure in its row.
async fn commit_row(call: &Call, id: &str, entity: Entity, row_id: String) -> Result<(), FolioError> {
    let (of, at, writer) = (id.to_owned(), row_id.clone(), Writer::of(call));
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let Some(mut row) = matched(txn, &of, &at)? else { return Ok(()) };
        commit_one(txn, &writer(), entity.collection(), &mut row)?;
        txn.update(&ROW, &at, &row)?;
        Ok(())
    };
    let refused = match call.db().write(write).await {
        Err(error) if !error.status.is_server_error() => error.message(),
        done => return done,
    };
    let (of, at) = (id.to_owned(), row_id);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let Some(mut row) = matched(txn, &of, &at)? else { return Ok(()) };
        fail(&mut row, UNCHANGED, refused.as_str());
        txn.update(&ROW, &at, &row)?;
        Ok(())
    };
    call.db().write(write).await
}

/// Returns a row whose record is still to be written; `None` if another request has written it.
///
/// Errors: 400 if the operation was cancelled or has ended.
fn matched(txn: &mut Txn<'_>, id: &str, row_id: &str) -> Result<Option<Value>, FolioError> {
    due(txn, id, REVIEWED)?;
    let row = txn.get(&ROW, row_id)?.map(|it| it.json()).transpose()?;
    Ok(row.filter(|it| it["state"] == MATCHED))
}

/// Writes the record of one row. Errors: those of the record's collection.
fn commit_one(
    txn: &mut Txn<'_>,
    writer: &Writer,
    collection: &'static Collection,
    row: &mut Value,
) -> Result<(), FolioError> {
    let record_id = row["recordId"].as_str().unwrap_or_default().to_owned();
    if row["after"] == row["before"] {
        fail(row, UNCHANGED, "No change in value required");
        return Ok(());
    }
    let now = txn.get(&collection.kind, &record_id)?.map(|it| it.json()).transpose()?;
    if now.as_ref() != Some(&row["before"]) {
        let message = "The record cannot be saved because it is not the most recent version.";
        fail(row, UNCHANGED, message);
        return Ok(());
    }
    let has_marc = row["marc"].is_object();
    let ruled = if has_marc { &row["ruled"] } else { &row["after"] };
    let Value::Object(ruled) = ruled.clone() else {
        fail(row, UNCHANGED, "The record is no object.");
        return Ok(());
    };
    if !has_marc || row["ruled"] != row["before"] {
        let stored = put(txn, writer, collection, &record_id, ruled, Missing::Refuse, Lock::Checked)?;
        row["after"] = stored.body;
    }
    if has_marc && let Some(mut record) = records::from_value(&row["marc"]) {
        let matched = row["source"].as_str().unwrap_or_default();
        parsed_records::save(txn, writer, matched, &mut record)?;
        let stored = txn.get(&collection.kind, &record_id)?.map(|it| it.json()).transpose()?;
        row["after"] = stored.unwrap_or_default();
    }
    row["state"] = COMMITTED.into();
    Ok(())
}
