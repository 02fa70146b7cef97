//! What is done with a file before its records are read: its format is detected, and its records are counted, or the file
//! is split.

use std::io::Read as _;

use pinakes_marc::{Encoding, Format, Reader, SniffError, sniff};
use pinakes_store::{Lease, StoreError, Tenant, Txn};
use serde_json::json;

use super::ending::{Step, fail, renew};
use crate::data_import::files::StoredFile;
use crate::data_import::imports::Parts;
use crate::data_import::job::{Job, NewJob};
use crate::platform::limits::{HEAD_BYTES, HEAD_RECORDS};
use crate::source_records::source_storage;

/// Returns the name under which a job stores the format of its file; it can be parsed back.
const fn name_of(format: Format) -> &'static str {
    match format {
        Format::Iso2709 => "iso2709",
        Format::Xml => "xml",
        Format::Json => "json",
        Format::Mnemonic => "text",
    }
}

/// Detects the format of a file by its first bytes, or, if these are damaged, by the records that follow.
fn format_of(head: &[u8]) -> Result<Format, String> {
    let begins_with_length =
        head.trim_ascii_start().iter().take(5).filter(|it| it.is_ascii_digit()).count() == 5;
    match sniff(head) {
        // Delimiters alone prove nothing, since garbage contains them too.
        Ok(Format::Iso2709) | Err(SniffError::Unknown) if !begins_with_length => {
            let mut records = pinakes_marc::records(Format::Iso2709, head).take(HEAD_RECORDS);
            let is_marc = records.any(|raw| {
                let parsed = pinakes_marc::parse(Format::Iso2709, Encoding::Leader, raw);
                parsed.complete().is_some_and(|it| !it.fields.is_empty())
            });
            if is_marc { Ok(Format::Iso2709) } else { Err(SniffError::Unknown.to_string()) }
        }
        found => found.map_err(|error| error.to_string()),
    }
}

/// Detects the format of a job's file, or returns why it cannot be read.
fn head_of(tenant: &Tenant, job: &Job) -> Result<Result<Format, String>, StoreError> {
    let file = StoredFile::new(tenant.clone(), job.work("parts"), 0, None);
    let mut head = Vec::new();
    file.take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(format_of(&head).map_err(|error| format!("File is empty or content is invalid! {error}")))
}

/// Counts the records of a file before its job starts.
pub(super) fn count(tenant: &Tenant, lease: &Lease, job: &Job, now_ms: i64) -> Result<Step, StoreError> {
    let format = match head_of(tenant, job)? {
        Ok(format) => format,
        Err(message) => return fail(tenant, lease, job, "FILE_PROCESSING_ERROR", &message, now_ms),
    };
    let file = StoredFile::new(tenant.clone(), job.work("parts"), 0, None);
    let mut reader = Reader::new(file, format);
    let mut total = 0_u64;
    while reader.next_record().map_err(|error| StoreError::Damaged(error.to_string()))?.is_some() {
        total += 1;
    }
    if total == 0 {
        let message = "File is empty or content is invalid! no record was found in it";
        return fail(tenant, lease, job, "FILE_PROCESSING_ERROR", message, now_ms);
    }
    let (id, lease) = (job.id().to_owned(), lease.clone());
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Step, StoreError> {
        renew(txn, &lease)?;
        let Some(mut job) = Job::get(txn, &id)?.filter(|it| !it.is_final()) else { return Ok(Step::Ended) };
        job.set_work("format", name_of(format));
        job.set_progress(0, total);
        job.set_status("PARSING_IN_PROGRESS");
        source_storage::put_snapshot(txn, &id, "PARSING_IN_PROGRESS", now_ms)?;
        job.save(txn)?;
        Ok(Step::Did)
    })
}

/// Splits a file into children of a bounded number of records each.
pub(super) fn split(tenant: &Tenant, lease: &Lease, job: &Job, parts: &Parts) -> Result<Step, StoreError> {
    let now_ms = parts.clock.now_ms();
    let child_records = parts.settings.import_child_records.max(1);
    let format = match head_of(tenant, job)? {
        Ok(format) => format,
        Err(message) => return fail(tenant, lease, job, "FILE_PROCESSING_ERROR", &message, now_ms),
    };
    let file = StoredFile::new(tenant.clone(), job.work("parts"), 0, None);
    let end = file.end();
    let mut reader = Reader::new(file, format);
    // (first byte, first record, number of records) of each child.
    let mut children: Vec<(u64, u64, u64)> = Vec::new();
    let mut total = 0_u64;
    while let Some(raw) = reader.next_record().map_err(|error| StoreError::Damaged(error.to_string()))? {
        let offset = raw.offset;
        // Formats other than ISO 2709 can only be read from the beginning, so one child gets all records.
        if total == 0 || (format == Format::Iso2709 && total.is_multiple_of(child_records)) {
            children.push((offset, total, 0));
        }
        if let Some(last) = children.last_mut() {
            last.2 += 1;
        }
        total += 1;
    }
    if total == 0 {
        let message = "File is empty or content is invalid! no record was found in it";
        return fail(tenant, lease, job, "FILE_PROCESSING_ERROR", message, now_ms);
    }
    let (id, lease, entropy) = (job.id().to_owned(), lease.clone(), parts.entropy.clone());
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Step, StoreError> {
        renew(txn, &lease)?;
        let Some(mut parent) = Job::get(txn, &id)?.filter(|it| !it.is_final()) else {
            return Ok(Step::Ended);
        };
        let n_children = children.len();
        let key = parent.text("fileName").to_owned();
        for (at, (from, first, n_records)) in children.iter().enumerate() {
            let to = children.get(at + 1).map_or(end, |it| it.0);
            let mut child = Job::create(
                txn,
                NewJob {
                    id: entropy.uuid_at(now_ms).to_string(),
                    parent: id.clone(),
                    subordination: "COMPOSITE_CHILD",
                    file_name: format!("{key}_{}.mrc", at + 1),
                    user_id: parent.text("userId").to_owned(),
                    run_by: parent.0.get("runBy").cloned().unwrap_or_default(),
                    profile: parent.0.get("jobProfileInfo").cloned(),
                    now_ms,
                },
            )?;
            child.set("jobPartNumber", at as u64 + 1);
            child.set("totalJobParts", n_children as u64);
            child.set_status("PARSING_IN_PROGRESS");
            child.set_progress(0, *n_records);
            let parts = parent.work("parts").clone();
            for (name, value) in [
                ("source", json!("file")),
                ("format", json!(name_of(format))),
                ("parts", parts),
                ("from", json!(if at == 0 { 0 } else { *from })),
                ("to", json!(to)),
                ("recordsBefore", json!(first)),
                ("snapshot", parent.work("snapshot").clone()),
                ("pending", json!(true)),
            ] {
                child.set_work(name, value);
            }
            source_storage::put_snapshot(txn, child.id(), "PARSING_IN_PROGRESS", now_ms)?;
            child.save(txn)?;
        }
        parent.set_status("PARSING_IN_PROGRESS");
        parent.set_progress(0, total);
        parent.set("totalRecordsInFile", total);
        parent.set_work("pending", false);
        parent.save(txn)?;
        Ok(Step::Ended)
    })
}
