//! The work of one job, step by step: count the file, split it, read a batch, prepare it, store it.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pinakes_marc::{Encoding, Format, Reader, SniffError, sniff};
use pinakes_store::{Document, Expr, Lease, Query, StoreError, Tenant, Txn};
use serde_json::{Value, json};

use super::engine::{BatchError, Engine, FailedLate, KnownFailures, Outcome, Prepared, Setup, unsupported};
use super::files::StoredFile;
use super::incoming::{Coding, Incoming};
use super::job::{CHUNK, Job, NewJob, child_ended};
use super::journal::{Entry, JOURNAL};
use super::pace::Wrote;
use super::setup::{SetupError, setup};
use crate::data_import::imports::{Parts, Permits};
use crate::platform::collection::Writer;
use crate::platform::json as text_form;
use crate::platform::limits::{
    BATCH_BYTES, BATCH_RECORDS, HEAD_BYTES, HEAD_RECORDS, LEASE_MS, MISSING_LINES,
};
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

/// The state of a running job in this thread.
pub(crate) struct Active {
    setup: Option<Arc<Setup>>,
    file: Option<OpenFile>,
    /// The part of the last batch that was not written because others were waiting for the writer.
    rest: Option<Batch>,
    /// The next batch, prepared while the last one was written.
    ahead: Option<Batch>,
    batch_records: usize,
    /// Time per record for which the last batch held the writer, in milliseconds.
    record_ms: f64,
    /// Timing of the last write.
    wrote: Option<Wrote>,
}

impl Default for Active {
    fn default() -> Self {
        Self {
            setup: None,
            file: None,
            rest: None,
            ahead: None,
            batch_records: 32,
            record_ms: 0.0,
            wrote: None,
        }
    }
}

struct OpenFile {
    reader: Reader<StoredFile>,
    /// Byte offset in the file at which the reader started.
    base: u64,
    /// Number of records before that offset.
    n_before: u64,
    /// A record that was read but did not fit into its batch.
    kept: Option<Incoming>,
    /// Number of records returned so far.
    order: u64,
    end: u64,
}

/// Records ready for a transaction.
#[derive(Clone)]
struct Batch {
    records: Arc<Vec<Prepared>>,
    /// Position of the first record that is not stored yet.
    first: usize,
    /// Number of records of the job before the batch.
    from_order: u64,
    /// Byte offset in the file at which the next batch begins.
    next_at: u64,
    is_last: bool,
    /// The chunk of the records, how many of its records are done after the batch, and whether that is all.
    chunk: Option<(String, u64, bool)>,
}

impl Batch {
    /// Returns the records that are not stored yet.
    fn records(&self) -> &[Prepared] {
        self.records.get(self.first..).unwrap_or_default()
    }

    /// Returns the batch limited to its first `n` records, which were stored.
    fn up_to(&self, n: usize) -> Self {
        let Some(next) = self.records().get(n) else { return self.clone() };
        let n_left = (self.records().len() - n) as u64;
        let chunk = self.chunk.clone().map(|(id, n_done, _)| (id, n_done - n_left, false));
        Self { next_at: next.incoming.offset, is_last: false, chunk, ..self.clone() }
    }

    /// Returns what is left of the batch once its first `n` records are stored.
    fn after(&self, n: usize) -> Option<Self> {
        let is_left = n < self.records().len();
        is_left.then(|| Self {
            first: self.first + n,
            from_order: self.from_order + n as u64,
            ..self.clone()
        })
    }
}

/// The result of writing a batch.
struct Written {
    step: Step,
    /// Number of records stored.
    n_done: usize,
    /// How long the writer was held.
    held: Duration,
}

impl Active {
    /// Does the next piece of work of a job; a batch should hold the tenant's writer for `hold`.
    pub(crate) fn step(
        &mut self,
        tenant: &Tenant,
        lease: &Lease,
        job: Job,
        hold: Duration,
        parts: &Parts,
        permits: &Permits,
    ) -> Result<Step, StoreError> {
        let now_ms = parts.clock.now_ms();
        self.fit(hold);
        match job.work("source").as_str() {
            Some("split") => permits.run(|| split(tenant, lease, &job, parts)),
            Some("file") if job.work("format").is_null() => {
                permits.run(|| count(tenant, lease, &job, now_ms))
            }
            Some("file" | "chunks") => self.batch(tenant, lease, &job, parts, permits),
            _ => fail(
                tenant,
                lease,
                &job,
                "FILE_PROCESSING_ERROR",
                "this job has no records to import",
                now_ms,
            ),
        }
    }

    fn batch(
        &mut self,
        tenant: &Tenant,
        lease: &Lease,
        job: &Job,
        parts: &Parts,
        permits: &Permits,
    ) -> Result<Step, StoreError> {
        let now_ms = parts.clock.now_ms();
        let setup = match &self.setup {
            Some(setup) => Arc::clone(setup),
            None => {
                let (at, of) = (job.clone(), parts.clone());
                match tenant.read_blocking(move |view| setup(view, &at, &of)) {
                    Ok(made) => Arc::clone(self.setup.insert(Arc::new(made))),
                    Err(SetupError::Profile(message)) => {
                        return fail(tenant, lease, job, "RECORD_UPDATE_ERROR", &message, now_ms);
                    }
                    Err(SetupError::Store(error)) => return Err(error),
                }
            }
        };
        let from_order = job.work_number("order");
        let rest = self.rest.take().filter(|it| it.from_order == from_order);
        let batch = match rest {
            Some(rest) => Some(rest),
            None => self.ahead.take().filter(|it| it.from_order == from_order),
        };
        let batch = match batch {
            Some(batch) => Some(batch),
            None => {
                (self.file, self.ahead) = (None, None);
                permits.run(|| self.read(tenant, job, &setup, now_ms))?
            }
        };
        let Some(batch) = batch else {
            return end_of_chunks(tenant, lease, job, now_ms);
        };
        if from_order == 0
            && let Some(message) = refused(&setup, &batch)
        {
            return fail(tenant, lease, job, "RECORD_UPDATE_ERROR", &message, now_ms);
        }
        let prepares = batch.chunk.is_none() && !batch.is_last && self.ahead.is_none();
        let batch = Arc::new(batch);
        let (writing, wrote) = (Arc::clone(&batch), Arc::clone(&setup));
        let write = || {
            let began = Instant::now();
            let written = write(tenant, lease, job.id(), &wrote, &writing, parts);
            (written, Wrote { took: began.elapsed(), ended_at: Instant::now() })
        };
        let (written, how) = if prepares {
            // The next batch is prepared while this one is being written.
            let (written, ahead) = std::thread::scope(|scope| {
                let preparing = scope.spawn(|| permits.run(|| self.read_file(&setup, now_ms)));
                let written = write();
                (written, preparing.join().unwrap_or(Err(StoreError::Panicked)))
            });
            self.ahead = ahead?;
            written
        } else {
            write()
        };
        self.wrote = Some(how);
        let written = written?;
        self.record_ms = written.held.as_secs_f64() * 1e3 / written.n_done.max(1) as f64;
        self.rest = batch.after(written.n_done);
        Ok(written.step)
    }

    /// Returns the timing of the last step's write, if there was one.
    pub(crate) fn take_wrote(&mut self) -> Option<Wrote> {
        self.wrote.take()
    }

    /// Adjusts the size of batches so that each holds the writer for about `hold`.
    fn fit(&mut self, hold: Duration) {
        if self.record_ms <= 0.0 {
            return;
        }
        let fitting = (hold.as_secs_f64() * 1e3 / self.record_ms) as usize;
        let (least, most) = BATCH_RECORDS;
        // At most double the size at once: one quick batch is weak evidence.
        self.batch_records = fitting.clamp(least, most).min(self.batch_records * 2);
    }

    /// Returns the next batch; `None` if a job of chunks has none.
    fn read(
        &mut self,
        tenant: &Tenant,
        job: &Job,
        setup: &Setup,
        now_ms: i64,
    ) -> Result<Option<Batch>, StoreError> {
        if job.work("source").as_str() == Some("chunks") {
            return read_chunk(tenant, job, setup, self.batch_records, now_ms);
        }
        self.file = Some(open(tenant, job)?);
        self.read_file(setup, now_ms)
    }

    fn read_file(&mut self, setup: &Setup, now_ms: i64) -> Result<Option<Batch>, StoreError> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let from_order = file.order;
        let (mut records, mut n_bytes) = (Vec::with_capacity(self.batch_records), 0);
        let mut is_last = false;
        while records.len() < self.batch_records && n_bytes < BATCH_BYTES {
            match file.next()? {
                None => {
                    is_last = true;
                    break;
                }
                Some(incoming) => {
                    n_bytes += incoming.raw.len();
                    records.push(setup.prepare(incoming, now_ms));
                }
            }
        }
        let next_at = file.base + file.reader.offset();
        // Only reading further shows whether this was the end.
        if !is_last {
            let ahead = file.order;
            file.kept = file.next()?;
            file.order = ahead;
            is_last = file.kept.is_none();
        }
        Ok(Some(Batch { records: Arc::new(records), first: 0, from_order, next_at, is_last, chunk: None }))
    }
}

impl OpenFile {
    fn next(&mut self) -> Result<Option<Incoming>, StoreError> {
        if let Some(kept) = self.kept.take() {
            self.order += 1;
            return Ok(Some(kept));
        }
        let format = self.reader.format();
        let (base, n_before, order) = (self.base, self.n_before, self.order);
        if self.end <= base && self.end != 0 {
            return Ok(None);
        }
        let raw = self.reader.next_record().map_err(|error| StoreError::Damaged(error.to_string()))?;
        let Some(mut raw) = raw else { return Ok(None) };
        raw.number += n_before;
        raw.offset += base;
        for problem in &mut raw.problems {
            problem.record += n_before;
            problem.offset += base;
        }
        let incoming = Incoming::read(format, raw, order);
        self.order += 1;
        Ok(Some(incoming))
    }
}

/// Returns the name under which a job stores the format of its file; it can be parsed back.
const fn name_of(format: Format) -> &'static str {
    match format {
        Format::Iso2709 => "iso2709",
        Format::Xml => "xml",
        Format::Json => "json",
        Format::Mnemonic => "text",
    }
}

/// Opens a job's file at the position where the job stopped.
fn open(tenant: &Tenant, job: &Job) -> Result<OpenFile, StoreError> {
    let format: Format =
        job.work("format").as_str().and_then(|it| it.parse().ok()).unwrap_or(Format::Iso2709);
    let from = job.work_number("from");
    let to = job.work("to").as_u64();
    let order = job.work_number("order");
    // ISO 2709 can be read from any record on; the other formats need what comes before.
    let base = if format == Format::Iso2709 { job.work_number("at").max(from) } else { from };
    let file = StoredFile::new(tenant.clone(), job.work("parts"), base, to);
    let end = file.end();
    let n_before = job.work_number("recordsBefore");
    let is_resumed = base != from;
    let reader = Reader::new(file, format);
    let mut open = OpenFile {
        reader,
        base,
        n_before: n_before + if is_resumed { order } else { 0 },
        kept: None,
        order,
        end,
    };
    if !is_resumed {
        open.order = 0;
        while open.order < order && open.next()?.is_some() {}
    }
    Ok(open)
}

/// Returns why the job as a whole is refused, judging by its first readable record.
fn refused(setup: &Setup, batch: &Batch) -> Option<String> {
    let kind = batch.records.iter().find_map(|it| it.incoming.record.as_ref().ok())?.leader.kind();
    (!setup.takes(kind)).then(|| unsupported(&setup.tree.name, kind))
}

/// Reads records of the job's oldest open chunk.
fn read_chunk(
    tenant: &Tenant,
    job: &Job,
    setup: &Setup,
    n_most: usize,
    now_ms: i64,
) -> Result<Option<Batch>, StoreError> {
    let id = job.id().to_owned();
    let open = Query::filter(Expr::And(vec![
        Expr::Is("jobId".into(), id.as_str().into()),
        Expr::Is("isOpen".into(), true.into()),
    ]))
    .sorted("number", pinakes_store::Direction::Ascending)
    .window(0, 1);
    let chunk = tenant.read_blocking(move |view| view.find(&CHUNK, &open))?;
    let Some(chunk) = chunk.into_iter().next() else { return Ok(None) };
    let body = chunk.json()?;
    let done = job.work_number("chunkAt");
    let coding = coding_of(body.get("contentType").and_then(Value::as_str).unwrap_or_default());
    let list = body.get("records").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let rest = list.get(usize::try_from(done).unwrap_or(usize::MAX)..).unwrap_or_default();
    let mut records = Vec::new();
    let mut n_bytes = 0;
    for record in rest.iter().take(n_most) {
        let text = record.get("record").and_then(Value::as_str).unwrap_or_default();
        let order = record.get("order").and_then(Value::as_u64).unwrap_or(0);
        n_bytes += text.len();
        let incoming = Incoming::sent(coding, Bytes::copy_from_slice(text.as_bytes()), order);
        records.push(setup.prepare(incoming, now_ms));
        if BATCH_BYTES < n_bytes {
            break;
        }
    }
    let done = done + records.len() as u64;
    let is_done = list.len() as u64 <= done;
    Ok(Some(Batch {
        records: Arc::new(records),
        first: 0,
        from_order: job.work_number("order"),
        next_at: 0,
        is_last: false,
        chunk: Some((chunk.id, done, is_done)),
    }))
}

/// Returns the encoding of a chunk's records.
fn coding_of(content_type: &str) -> Coding<'_> {
    match content_type {
        "MARC_RAW" | "" => Coding::Marc(Format::Iso2709),
        "MARC_JSON" => Coding::Marc(Format::Json),
        "MARC_XML" => Coding::Marc(Format::Xml),
        other => Coding::Other(other),
    }
}

/// Handles a job of chunks that has none left: it waits, or it is finished.
fn end_of_chunks(tenant: &Tenant, lease: &Lease, job: &Job, now_ms: i64) -> Result<Step, StoreError> {
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
fn chunks_are_over(job: &Job) -> bool {
    let done = job.work_number("order");
    let is_last = job.work("last").as_bool().unwrap_or(false);
    (0 < job.total() && job.total() <= done) || (is_last && job.work_number("received") <= done)
}

/// Ends a job of chunks; announced records that were never sent count as failed.
fn end_chunks(txn: &mut Txn<'_>, job: &mut Job, now_ms: i64) -> Result<(), StoreError> {
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
fn end(txn: &mut Txn<'_>, job: &mut Job, now_ms: i64) -> Result<(), StoreError> {
    job.finish(now_ms);
    source_storage::put_snapshot(txn, job.id(), job.text("status"), now_ms)?;
    job.save(txn)?;
    child_ended(txn, job, now_ms)
}

fn renew(txn: &mut Txn<'_>, lease: &Lease) -> Result<(), StoreError> {
    txn.renew_lease(lease, LEASE_MS).map(drop)
}

/// Ends a job with an error that concerns all of it.
fn fail(
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

/// Stores a batch; if records fail after part of them was written, stores it again without these.
fn write(
    tenant: &Tenant,
    lease: &Lease,
    job_id: &str,
    setup: &Arc<Setup>,
    batch: &Arc<Batch>,
    parts: &Parts,
) -> Result<Written, StoreError> {
    let mut failed = KnownFailures::new();
    let whole = batch;
    loop {
        let (setup, batch, known) = (Arc::clone(setup), Arc::clone(whole), failed.clone());
        let (lease, job_id) = (lease.clone(), job_id.to_owned());
        let others = tenant.is_embedded().then(|| tenant.clone());
        let (now_ms, entropy, collections) = (parts.clock.now_ms(), parts.entropy.clone(), parts.collections);
        let result = tenant.write_blocking(move |txn: &mut Txn<'_>| {
            let started = Instant::now();
            let writer = Writer::new(now_ms, setup.user_id.clone(), entropy.clone(), collections);
            // There is one writer: a request that waits for it need not wait for the rest of the batch.
            let is_waited_for = || others.as_ref().is_some_and(|it| 0 < it.n_waiting());
            let whose = (&lease, job_id.as_str());
            let (step, n_done) = store(txn, whose, &setup, &batch, &known, writer, &is_waited_for)?;
            Ok(Written { step, n_done, held: started.elapsed() })
        });
        match result {
            Ok(done) => return Ok(done),
            Err(BatchError::Late(FailedLate { at, message })) => {
                failed.insert(at, message);
            }
            Err(BatchError::Lost) => {
                let n_done = whole.records().len();
                return Ok(Written { step: Step::Ended, n_done, held: Duration::ZERO });
            }
            Err(BatchError::Store(error)) => return Err(error),
            Err(BatchError::Other(message)) => return Err(StoreError::Damaged(message)),
        }
    }
}

/// Runs the transaction of a batch; also returns how many of its records are stored, which is all unless others were
/// waiting for the writer.
fn store(
    txn: &mut Txn<'_>,
    (lease, job_id): (&Lease, &str),
    setup: &Setup,
    batch: &Batch,
    failed: &HashMap<usize, String>,
    writer: Writer,
    is_waited_for: &dyn Fn() -> bool,
) -> Result<(Step, usize), BatchError> {
    let now_ms = writer.now_ms;
    renew(txn, lease)?;
    let job = Job::get(txn, job_id)?;
    let Some(mut job) = job.filter(|it| !it.is_final() && it.work_number("order") == batch.from_order) else {
        return Err(BatchError::Lost);
    };
    let outcome: Outcome = {
        let mut engine = Engine { setup, txn, writer, now_ms, cache: Default::default() };
        engine.run(batch.records(), failed, is_waited_for)?
    };
    let n_done = outcome.n_done;
    let batch = &batch.up_to(n_done);
    let records = &batch.records()[..n_done];
    store_entries(txn, job_id, batch.from_order, &outcome.entries, now_ms)?;
    let done = batch.from_order + n_done as u64;
    job.set_work("order", done);
    job.set_work("at", batch.next_at);
    job.set_work("failed", job.work_number("failed") + outcome.n_failed);
    let mut summary = job.summary();
    summary.add(&outcome.entries);
    job.set_work("summary", Value::Object(summary.0));
    // Count a run of unreadable records across batches: the file is garbage from some point on.
    let is_garbage = |(record, entry): &(&Prepared, &Entry)| {
        let incoming = &record.incoming;
        !entry.error.is_empty() && (incoming.record.is_err() || !incoming.warnings.is_empty())
    };
    let run = records.iter().zip(&outcome.entries).rev().take_while(is_garbage).count();
    let before = if run == n_done { job.work_number("unreadable") } else { 0 };
    let n_unreadable = before + run as u64;
    job.set_work("unreadable", n_unreadable);
    let total = job.total();
    job.set_progress(done, total.max(done));
    let mut step = Step::Did;
    if let Some((chunk, n_done, is_done)) = &batch.chunk {
        job.set_work("chunkAt", if *is_done { 0 } else { *n_done });
        if *is_done {
            close_chunk(txn, chunk, job_id)?;
        }
        if *is_done && chunks_are_over(&job) {
            end_chunks(txn, &mut job, now_ms)?;
            step = Step::Ended;
        }
    } else if batch.is_last {
        end(txn, &mut job, now_ms)?;
        step = Step::Ended;
    } else if setup.most_unreadable <= n_unreadable {
        let message = format!(
            "{n_unreadable} records in a row could not be read, the last of them ends at byte {}; the rest of the file \
             was not looked at. Is it a file of MARC records?",
            batch.next_at
        );
        job.fail("FILE_PROCESSING_ERROR", &message, now_ms);
        job.save(txn)?;
        child_ended(txn, &job, now_ms)?;
        step = Step::Ended;
    }
    job.save(txn)?;
    Ok((step, n_done))
}

/// Marks a chunk as completed once all its records are stored; its id stays known.
fn close_chunk(txn: &mut Txn<'_>, id: &str, job_id: &str) -> Result<(), StoreError> {
    let number = txn.get(&CHUNK, id)?.map(|it| it.json()).transpose()?;
    let number = number.and_then(|it| it.get("number").cloned()).unwrap_or_default();
    txn.update(&CHUNK, id, &json!({"jobId": job_id, "number": number, "isOpen": false})).map(drop)
}

fn store_entries(
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
fn count(tenant: &Tenant, lease: &Lease, job: &Job, now_ms: i64) -> Result<Step, StoreError> {
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

/// Splits a file into children of a bounded number of records each (section 2.1 of the contract).
fn split(tenant: &Tenant, lease: &Lease, job: &Job, parts: &Parts) -> Result<Step, StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(order: u64) -> Prepared {
        let incoming =
            Incoming { offset: order * 100, ..Incoming::sent(Coding::Other("none"), Bytes::new(), order) };
        let (title, record_id, external_id) = (String::new(), order.to_string(), String::new());
        Prepared { incoming, title, record_id, external_id, authority: None }
    }

    fn batch(chunk: Option<(String, u64, bool)>) -> Batch {
        let records = Arc::new((10..20).map(prepared).collect());
        let is_last = chunk.is_none();
        Batch { records, first: 0, from_order: 10, next_at: 2_000, is_last, chunk }
    }

    #[test]
    fn a_batch_that_ends_early_leaves_the_rest() {
        let whole = batch(None);
        let part = whole.up_to(4);
        assert_eq!((part.next_at, part.is_last), (1_400, false));
        let rest = whole.after(4).unwrap();
        assert_eq!((rest.from_order, rest.records().len(), rest.records()[0].incoming.order), (14, 6, 14));
        let part = rest.up_to(1);
        assert_eq!((part.next_at, part.is_last), (1_500, false));
        let end = rest.up_to(6);
        assert_eq!((end.next_at, end.is_last), (2_000, true));
        assert!(rest.after(6).is_none() && whole.after(10).is_none());
    }

    #[test]
    fn a_chunk_is_done_with_its_last_record() {
        let whole = batch(Some(("c".to_owned(), 30, true)));
        assert_eq!(whole.up_to(4).chunk, Some(("c".to_owned(), 24, false)));
        let rest = whole.after(4).unwrap();
        assert_eq!(rest.up_to(5).chunk, Some(("c".to_owned(), 29, false)));
        assert_eq!(rest.up_to(6).chunk, Some(("c".to_owned(), 30, true)));
    }
}
