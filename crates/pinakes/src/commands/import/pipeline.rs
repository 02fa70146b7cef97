//! Reading, preparing and writing at the same time, with bounded queues between.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use indicatif::ProgressBar;
use pinakes_scicat::import::{Existing, Importer, Loading, Prepared, RecordType};
use pinakes_store::Tenant;

use super::split::{Piece, Splitter};
use crate::commands::import::source::Source;
use crate::terminal::{counted, thousands};

/// Records in a batch at most; each batch is a transaction.
const BATCH_RECORDS: usize = 8_000;
/// Bytes after which a batch is full.
const BATCH_BYTES: usize = 8 << 20;
/// Batches that wait between two stages at most.
const WAITING_BATCHES: usize = 1;
/// Threads that prepare at most: the one that writes is the slower part beyond.
const PREPARING_THREADS: usize = 4;

/// A record that was left out.
pub(crate) struct Rejected {
    /// The file.
    pub(crate) source: Arc<str>,
    /// The line on which it begins, from 1.
    pub(crate) line: u64,
    /// Why.
    pub(crate) reason: String,
    /// Its bytes.
    pub(crate) record: Vec<u8>,
}

/// What became of the records, by sort.
#[derive(Default)]
pub(crate) struct Totals {
    by_sort: BTreeMap<RecordType, [u64; 3]>,
}

const NEW: usize = 0;
const REPLACED: usize = 1;
const KEPT: usize = 2;

impl Totals {
    fn add(&mut self, counts: &BTreeMap<RecordType, u64>, what: usize) {
        for (sort, n) in counts {
            self.by_sort.entry(*sort).or_default()[what] += n;
        }
    }

    /// Records that are there now.
    pub(crate) fn n_records(&self) -> u64 {
        self.by_sort.values().flatten().sum()
    }

    /// A line a sort, e.g. `dataset: 50 new, 2 there already`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let parts_of = |counts: &[u64; 3]| {
            let named =
                [(counts[NEW], "new"), (counts[REPLACED], "replaced"), (counts[KEPT], "there already")];
            let parts =
                named.iter().filter(|it| 0 < it.0).map(|(n, what)| format!("{} {what}", thousands(*n)));
            parts.collect::<Vec<_>>().join(", ")
        };
        self.by_sort.iter().map(|(sort, counts)| format!("{sort}: {}", parts_of(counts))).collect()
    }
}

/// Records as they were cut out, in order.
struct RawBatch {
    number: u64,
    source: Arc<str>,
    pieces: Vec<Piece>,
    /// Reading ended here before its time.
    failure: Option<anyhow::Error>,
}

/// The same after preparing.
struct Batch {
    number: u64,
    source: Arc<str>,
    ready: Vec<(Prepared, Piece)>,
    rejected: Vec<Rejected>,
    failure: Option<anyhow::Error>,
}

/// Loads all sources into a tenant. Records of `limit_bytes` at most; the rest is rejected.
///
/// Errors: a source that cannot be read to its end (what came before it is loaded), the store, `reject`'s own.
pub(crate) fn load(
    importer: &Importer,
    tenant: &Tenant,
    existing: Existing,
    sources: Vec<Source>,
    limit_bytes: usize,
    bar: &ProgressBar,
    reject: &mut dyn FnMut(&Rejected) -> anyhow::Result<()>,
) -> anyhow::Result<Totals> {
    let n_threads = available_parallelism().map_or(1, usize::from).clamp(1, PREPARING_THREADS);
    let (raw, to_prepare) = sync_channel(WAITING_BATCHES);
    let (ready, to_write) = sync_channel(WAITING_BATCHES);
    let (used, to_drop) = sync_channel(WAITING_BATCHES);
    let to_prepare = Arc::new(Mutex::new(to_prepare));
    thread::scope(|scope| {
        scope.spawn(move || read_all(sources, limit_bytes, &raw));
        for _ in 0..n_threads {
            let (to_prepare, ready) = (Arc::clone(&to_prepare), ready.clone());
            scope.spawn(move || prepare_all(importer, &to_prepare, &ready));
        }
        drop((ready, to_prepare));
        // The memory of a batch is given back while the next one is written.
        scope.spawn(move || to_drop.into_iter().for_each(drop));
        // Whatever ends the writing closes the queues, and with them the other stages.
        write_all(Loading::begin(importer.clone(), tenant.clone(), existing)?, to_write, used, bar, reject)
    })
}

/// Cuts all sources into batches, until nobody takes them or one cannot be read.
fn read_all(sources: Vec<Source>, limit_bytes: usize, raw: &SyncSender<RawBatch>) {
    let mut number = 0;
    for source in sources {
        let name: Arc<str> = source.name.into();
        let mut splitter = Splitter::new(source.input, limit_bytes);
        loop {
            let mut batch = RawBatch { number, source: Arc::clone(&name), pieces: Vec::new(), failure: None };
            let is_end = fill(&mut batch, &mut splitter);
            let is_failed = batch.failure.is_some();
            if raw.send(batch).is_err() || is_failed {
                return;
            }
            number += 1;
            if is_end {
                break;
            }
        }
    }
}

/// Fills a batch; true at the end of the source.
fn fill(batch: &mut RawBatch, splitter: &mut Splitter<impl std::io::BufRead>) -> bool {
    let mut n_bytes = 0;
    while batch.pieces.len() < BATCH_RECORDS && n_bytes < BATCH_BYTES {
        match splitter.next() {
            Ok(Some(piece)) => {
                n_bytes += piece.record.len();
                batch.pieces.push(piece);
            }
            Ok(None) => return true,
            Err(error) => {
                let place =
                    format!("{} cannot be read beyond its record on line {}", batch.source, splitter.line());
                batch.failure = Some(anyhow::Error::new(error).context(place));
                return true;
            }
        }
    }
    false
}

fn prepare_all(importer: &Importer, batches: &Mutex<Receiver<RawBatch>>, ready: &SyncSender<Batch>) {
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(raw) = next else { return };
        if ready.send(prepare(importer, raw)).is_err() {
            return;
        }
    }
}

fn prepare(importer: &Importer, raw: RawBatch) -> Batch {
    let (mut ready, mut rejected) = (Vec::with_capacity(raw.pieces.len()), Vec::new());
    for piece in raw.pieces {
        let prepared = match piece.fault.clone() {
            Some(fault) => Err(fault),
            None => importer.prepare(&piece.record),
        };
        match prepared {
            Ok(prepared) => ready.push((prepared, piece)),
            Err(reason) => rejected.push(Rejected::of(&raw.source, piece, reason)),
        }
    }
    Batch { number: raw.number, source: raw.source, ready, rejected, failure: raw.failure }
}

/// A batch that was written.
type Used = (Arc<[Prepared]>, Vec<Option<Piece>>);

impl Rejected {
    fn of(source: &Arc<str>, piece: Piece, reason: String) -> Self {
        Self { source: Arc::clone(source), line: piece.line, reason, record: piece.record }
    }
}

/// Writes batches in the order of their numbers.
fn write_all(
    mut loading: Loading,
    batches: Receiver<Batch>,
    used: SyncSender<Used>,
    bar: &ProgressBar,
    reject: &mut dyn FnMut(&Rejected) -> anyhow::Result<()>,
) -> anyhow::Result<Totals> {
    let (mut totals, mut early, mut next) = (Totals::default(), BTreeMap::new(), 0);
    for batch in batches {
        early.insert(batch.number, batch);
        while let Some(batch) = early.remove(&next) {
            next += 1;
            let failure = write_one(&mut loading, batch, &used, &mut totals, reject)?;
            bar.set_message(counted(totals.n_records(), "record"));
            if let Some(failure) = failure {
                loading.finish()?;
                return Err(failure);
            }
        }
    }
    bar.set_message("making indexes");
    loading.finish()?;
    Ok(totals)
}

/// Writes a batch and gives what ended the reading behind it, if anything did.
fn write_one(
    loading: &mut Loading,
    batch: Batch,
    used: &SyncSender<Used>,
    totals: &mut Totals,
    reject: &mut dyn FnMut(&Rejected) -> anyhow::Result<()>,
) -> anyhow::Result<Option<anyhow::Error>> {
    let (ready, mut pieces): (Vec<Prepared>, Vec<Option<Piece>>) =
        batch.ready.into_iter().map(|(prepared, piece)| (prepared, Some(piece))).unzip();
    let ready: Arc<[Prepared]> = ready.into();
    let written = if ready.is_empty() { Default::default() } else { loading.write(&ready)? };
    totals.add(&written.n_new, NEW);
    totals.add(&written.n_replaced, REPLACED);
    totals.add(&written.n_kept, KEPT);
    let mut rejected = batch.rejected;
    for (index, reason) in written.refused {
        let piece = pieces.get_mut(index).and_then(Option::take);
        rejected.extend(piece.map(|it| Rejected::of(&batch.source, it, reason)));
    }
    rejected.sort_by_key(|it| it.line);
    rejected.iter().try_for_each(reject)?;
    if let Err(unsent) = used.send((ready, pieces)) {
        // The thread is gone: this one gives the memory back.
        drop(unsent);
    }
    Ok(batch.failure)
}
