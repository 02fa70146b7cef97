//! How a job ends: with its last record, with records that were never sent, or as a whole.

use pinakes_store::{Document, Expr, Lease, StoreError, Tenant, Txn};
use serde_json::{Value, json};

use crate::data_import::job::{CHUNK, Job, child_ended};
use crate::data_import::journal::{Entry, JOURNAL};
use crate::platform::json as text_form;
use crate::platform::limits::{LEASE_MS, MISSING_LINES};
use crate::source_records::source_storage;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There may be more work.
    Did,
    /// There is nothing to do until more records are sent.
    Waits,
    /// The job is finished.
    Ended,
}

/// Handles a job of chunks that has none left: it waits, or it is finished.
pub(super) fn end_of_chunks(
    tenant: &Tenant,
    lease: &Lease,
    job: &Job,
    now_ms: i64,
) -> Result<Step, StoreError> {
    let (id, lease) = (job.id().to_owned(), lease.clone());
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Step, StoreError> {
        renew(txn, &lease)?;
        let Some(mut job) = Job::get(txn, &id)? else { return Ok(Step::Ended) };
        if job.is_final() {
            return Ok(Step::Ended);
        }
        let open = Expr::And(vec![
            Expr::Is("jobId".into(), id.as_str().into()),
            Expr::Is("isOpen".into(), true.into()),
        ]);
        if txn.first(&CHUNK, open)?.is_some() {
            return Ok(Step::Did);
        }
        if chunks_are_over(&job) {
            end_chunks(txn, &mut job, now_ms)?;
            job.save(txn)?;
            return Ok(Step::Ended);
        }
        // More chunks will be sent; there is nothing to do until then.
        job.set_work("pending", false);
        job.save(txn)?;
        Ok(Step::Waits)
    })
}

/// Checks whether all received records of a job are done and no more are expected.
pub(super) fn chunks_are_over(job: &Job) -> bool {
    let done = job.work_number("order");
    let is_last = job.work("last").as_bool().unwrap_or(false);
    (0 < job.total() && job.total() <= done) || (is_last && job.work_number("received") <= done)
}

/// Ends a job of chunks; announced records that were never sent count as failed.
pub(super) fn end_chunks(txn: &mut Txn<'_>, job: &mut Job, now_ms: i64) -> Result<(), StoreError> {
    let (total, done) = (job.total(), job.work_number("order"));
    if done < total {
        let n_missing = total - done;
        job.set_work("failed", job.work_number("failed") + n_missing);
        let message = "record announced but never sent";
        let entries: Vec<Entry> = (done..total.min(done + MISSING_LINES))
            .map(|order| Entry {
                order,
                incoming_id: uuid::Uuid::new_v4().to_string(),
                source_id: None,
                record_type: String::new(),
                title: "No content".to_owned(),
                error: format!("record {}: {message}", order + 1),
                warning: String::new(),
                raw: None,
                rows: Vec::new(),
            })
            .collect();
        let mut summary = job.summary();
        summary.add(&entries);
        job.set_work("summary", Value::Object(summary.0));
        store_entries(txn, job.id(), done, &entries, now_ms)?;
    }
    end(txn, job, now_ms)
}

/// Ends a job, updates the status of its snapshot, and finishes the parent if this was the last child.
pub(super) fn end(txn: &mut Txn<'_>, job: &mut Job, now_ms: i64) -> Result<(), StoreError> {
    job.finish(now_ms);
    source_storage::put_snapshot(txn, job.id(), job.text("status"), now_ms)?;
    job.save(txn)?;
    child_ended(txn, job, now_ms)
}

/// Keeps the lease on the job.
pub(super) fn renew(txn: &mut Txn<'_>, lease: &Lease) -> Result<(), StoreError> {
    txn.renew_lease(lease, LEASE_MS).map(drop)
}

/// Ends a job with an error that concerns all of it.
pub(super) fn fail(
    tenant: &Tenant,
    lease: &Lease,
    job: &Job,
    error_status: &'static str,
    message: &str,
    now_ms: i64,
) -> Result<Step, StoreError> {
    tracing::info!(job = job.id(), error_status, message, "an import failed");
    let (id, message, lease) = (job.id().to_owned(), message.to_owned(), lease.clone());
    tenant.write_blocking(move |txn: &mut Txn<'_>| -> Result<Step, StoreError> {
        renew(txn, &lease)?;
        if let Some(mut job) = Job::get(txn, &id)?.filter(|it| !it.is_final()) {
            job.fail(error_status, &message, now_ms);
            job.save(txn)?;
            child_ended(txn, &job, now_ms)?;
        }
        Ok(Step::Ended)
    })
}

/// Stores the results for records in the job's journal.
pub(super) fn store_entries(
    txn: &mut Txn<'_>,
    job_id: &str,
    from_order: u64,
    entries: &[Entry],
    now_ms: i64,
) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let id =
        format!("{job_id}/{from_order:012}/{}", if entries[0].rows.is_empty() { "missing" } else { "done" });
    let body = json!({
        "jobId": job_id,
        "order": from_order,
        "n": entries.len(),
        "hasErrors": entries.iter().any(|it| !it.error.is_empty()),
        "date": now_ms,
        "entries": entries.iter().map(Entry::json).collect::<Vec<_>>(),
    });
    let document = Document::with_bytes(&JOURNAL, id, &body, text_form::bytes(&body))?;
    txn.insert_document(&document).map(drop)
}
