//! The stages of a bulk load of SciCat's records: split, prepare, write.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use indicatif::ProgressBar;
use pinakes_scicat::import::{Existing, Importer, Loading, Prepared, RecordType};
use pinakes_store::{Tenant, pipeline};

use super::split::{Piece, Splitter};
use crate::commands::import::source::Source;
use crate::terminal::{counted, thousands};

/// Maximum number of records in a batch; each batch is a transaction.
const BATCH_RECORDS: usize = 8_000;
/// Bytes after which a batch is full.
const BATCH_BYTES: usize = 8 << 20;

/// A record that was left out.
pub(crate) struct Rejected {
    /// The file.
    pub(crate) source: Arc<str>,
    /// The line on which it begins, from 1.
    pub(crate) line: u64,
    /// Why.
    pub(crate) reason: String,
    /// The record's bytes.
    pub(crate) record: Vec<u8>,
}

/// The outcome of an import, by sort.
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

    /// Returns the number of records that now exist.
    pub(crate) fn n_records(&self) -> u64 {
        self.by_sort.values().flatten().sum()
    }

    /// Returns a line per sort, e.g. `dataset: 50 new, 2 there already`.
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

/// Records as split, in order.
struct RawBatch {
    source: Arc<str>,
    pieces: Vec<Piece>,
}

/// The same records after preparation.
struct Batch {
    source: Arc<str>,
    ready: Vec<(Prepared, Piece)>,
    rejected: Vec<Rejected>,
}

/// Loads all sources into a tenant. Records of more than `limit_bytes` are rejected.
///
/// Errors: a source cannot be read to its end (the records before the failure are loaded); the store; an error of
/// `reject`.
pub(crate) fn load(
    importer: &Importer,
    tenant: &Tenant,
    existing: Existing,
    sources: Vec<Source>,
    limit_bytes: usize,
    bar: &ProgressBar,
    reject: &mut dyn FnMut(&Rejected) -> anyhow::Result<()>,
) -> anyhow::Result<Totals> {
    let mut loading = Loading::begin(importer.clone(), tenant.clone(), existing)?;
    let mut totals = Totals::default();
    let read = pipeline(
        |take| read_all(sources, limit_bytes, take),
        |raw| prepare(importer, raw),
        |batch| {
            let used = write_one(&mut loading, batch, &mut totals, reject)?;
            bar.set_message(counted(totals.n_records(), "record"));
            Ok::<_, anyhow::Error>(used)
        },
    )?;
    bar.set_message("making indexes");
    loading.finish()?;
    read.map(|()| totals)
}

/// Splits all sources into batches, until the load ends or a source cannot be read.
fn read_all(
    sources: Vec<Source>,
    limit_bytes: usize,
    take: &mut dyn FnMut(RawBatch) -> bool,
) -> anyhow::Result<()> {
    for source in sources {
        let name: Arc<str> = source.name.into();
        let mut splitter = Splitter::new(source.input, limit_bytes);
        loop {
            let mut batch = RawBatch { source: Arc::clone(&name), pieces: Vec::new() };
            let filled = fill(&mut batch.pieces, &mut splitter);
            // The records before a failure are loaded.
            if !take(batch) {
                return Ok(());
            }
            let is_end = filled.with_context(|| {
                format!("{name} cannot be read beyond its record on line {}", splitter.line())
            })?;
            if is_end {
                break;
            }
        }
    }
    Ok(())
}

/// Fills a batch; returns true at the end of the source.
fn fill(pieces: &mut Vec<Piece>, splitter: &mut Splitter<impl std::io::BufRead>) -> std::io::Result<bool> {
    let mut n_bytes = 0;
    while pieces.len() < BATCH_RECORDS && n_bytes < BATCH_BYTES {
        let Some(piece) = splitter.next()? else { return Ok(true) };
        n_bytes += piece.record.len();
        pieces.push(piece);
    }
    Ok(false)
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
    Batch { source: raw.source, ready, rejected }
}

/// A batch that has been written, to be dropped.
type Used = (Arc<[Prepared]>, Vec<Option<Piece>>);

impl Rejected {
    fn of(source: &Arc<str>, piece: Piece, reason: String) -> Self {
        Self { source: Arc::clone(source), line: piece.line, reason, record: piece.record }
    }
}

/// Writes a batch and returns it.
fn write_one(
    loading: &mut Loading,
    batch: Batch,
    totals: &mut Totals,
    reject: &mut dyn FnMut(&Rejected) -> anyhow::Result<()>,
) -> anyhow::Result<Used> {
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
    Ok((ready, pieces))
}
