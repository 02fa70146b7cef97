//! The work of one job, step by step: count the file, split it ([`whole_file`]), read a batch ([`reading`]), prepare it,
//! store it.

mod batch;
mod ending;
mod reading;
mod whole_file;

use std::sync::Arc;
use std::time::{Duration, Instant};

use pinakes_store::{Lease, StoreError, Tenant, Txn};
use serde_json::{Value, json};

use super::engine::{BatchError, Engine, FailedLate, KnownFailures, Outcome, Prepared, Setup, unsupported};
use super::job::{CHUNK, Job, child_ended};
use super::journal::Entry;
use super::pace::Wrote;
use super::setup::{SetupError, setup};
use crate::data_import::imports::{Parts, Permits};
use crate::platform::collection::Writer;
use crate::platform::limits::BATCH_RECORDS;
use batch::Batch;
use ending::{chunks_are_over, end, end_chunks, end_of_chunks, fail, renew, store_entries};
use reading::{OpenFile, read_chunk};
use whole_file::{count, split};

pub(crate) use ending::Step;

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
        self.file = Some(OpenFile::open(tenant, job)?);
        self.read_file(setup, now_ms)
    }

    fn read_file(&mut self, setup: &Setup, now_ms: i64) -> Result<Option<Batch>, StoreError> {
        let n_most = self.batch_records;
        self.file.as_mut().map(|it| it.batch(setup, n_most, now_ms)).transpose()
    }
}

/// Returns why the job as a whole is refused, judging by its first readable record.
fn refused(setup: &Setup, batch: &Batch) -> Option<String> {
    let kind = batch.records.iter().find_map(|it| it.incoming.record.as_ref().ok())?.leader.kind();
    (!setup.takes(kind)).then(|| unsupported(&setup.tree.name, kind))
}

/// Stores a batch; if records fail after part of them was written, stores it again without the steps that fail.
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
            Err(BatchError::Late(FailedLate { at, failure })) => {
                failed.insert(at, failure);
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
    failed: &KnownFailures,
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
