//! Reading the records of a job: from its file, or from the chunks that a client sends.

use std::sync::Arc;

use bytes::Bytes;
use pinakes_marc::{Format, Reader};
use pinakes_store::{Direction, Expr, Query, StoreError, Tenant};
use serde_json::Value;

use super::batch::Batch;
use crate::data_import::engine::Setup;
use crate::data_import::files::StoredFile;
use crate::data_import::incoming::{Coding, Incoming};
use crate::data_import::job::{CHUNK, Job};
use crate::platform::limits::BATCH_BYTES;

/// A file that is being read.
pub(super) struct OpenFile {
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

impl OpenFile {
    /// Opens a job's file at the position where the job stopped.
    pub(super) fn open(tenant: &Tenant, job: &Job) -> Result<Self, StoreError> {
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
        let mut open = Self {
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

    /// Returns the next batch, of at most `n_most` records.
    pub(super) fn batch(&mut self, setup: &Setup, n_most: usize, now_ms: i64) -> Result<Batch, StoreError> {
        let from_order = self.order;
        let (mut records, mut n_bytes) = (Vec::with_capacity(n_most), 0);
        let mut is_last = false;
        while records.len() < n_most && n_bytes < BATCH_BYTES {
            match self.next()? {
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
        let next_at = self.base + self.reader.offset();
        // Only reading further shows whether this was the end.
        if !is_last {
            let ahead = self.order;
            self.kept = self.next()?;
            self.order = ahead;
            is_last = self.kept.is_none();
        }
        Ok(Batch { records: Arc::new(records), first: 0, from_order, next_at, is_last, chunk: None })
    }

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

/// Reads records of the job's oldest open chunk.
pub(super) fn read_chunk(
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
    .sorted("number", Direction::Ascending)
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
