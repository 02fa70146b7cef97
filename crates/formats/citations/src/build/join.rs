//! The third stage: replaces the keys of citations by numbers.
//!
//! If all keys fit one table, each citation is looked up at once. Otherwise (a Grace hash join) a share of the keys at
//! a time: citations, partitioned by their citing key, get that number and are partitioned by their cited key, then get
//! that number.

use std::io;

use super::keys::{KeyTable, PartWriter, groups, half_of, read_part, remove_parts, word_of};
use super::local_ids::{self, IdJoin};
use super::number::KEYS;
use super::pairs::{Pair, PairSorter};
use super::scan::{EDGE_BYTES, EDGES};
use super::workspace::Workspace;
use crate::build::error::BuildError;
use crate::build::progress::{Observer, Progress, Step};
use crate::build::used::Used;
use crate::statement::Statements;

/// Citations with a citing number and a cited key.
const HALF: &str = "half";
const HALF_BYTES: usize = 20;
/// Citations by citing number, and by cited number, in runs.
pub(crate) const BY_CITING: &str = "by-citing";
pub(crate) const BY_CITED: &str = "by-cited";
const PROGRESS_STEP: u64 = 1 << 18;

/// Writes the citations as pairs of numbers, sorted both ways.
pub(crate) fn join(
    work: &mut Workspace,
    keys_at_once: u64,
    observer: &mut dyn Observer,
) -> Result<(), BuildError> {
    let mut ids = IdJoin::create(work)?;
    let mut target = Target {
        by_citing: PairSorter::create(&work.path(BY_CITING))?,
        by_cited: PairSorter::create(&work.path(BY_CITED))?,
        used: Used::new(work.plan.n_candidates),
        n_without_doi: 0,
        n_done: 0,
        n_total: work.plan.counts.n_rows_kept,
        observer,
    };
    let groups = groups(work, KEYS, keys_at_once)?;
    if let [all] = groups.as_slice() {
        let (table, _) = KeyTable::load(work, KEYS, all.clone())?;
        join_at_once(work, &table, &mut target)?;
        ids.take(work, all.clone(), &table, &mut target.used)?;
    } else {
        join_in_shares(work, &groups, &mut ids, &mut target)?;
    }
    ids.finish(work)?;
    target.used.write(work)?;
    work.plan.counts.n_without_doi = target.n_without_doi;
    work.plan.reference_runs = target.by_citing.finish()?.list().to_vec();
    work.plan.citation_runs = target.by_cited.finish()?.list().to_vec();
    Ok(work.save()?)
}

/// Removes the input of the join, once the next stage is entered.
pub(crate) fn remove_used_up(work: &Workspace) -> io::Result<()> {
    for name in [EDGES, HALF, KEYS] {
        remove_parts(work, name)?;
    }
    local_ids::remove_keyed(work)
}

/// The destination of joined citations.
struct Target<'a> {
    by_citing: PairSorter,
    by_cited: PairSorter,
    used: Used,
    n_without_doi: u64,
    n_done: u64,
    n_total: u64,
    observer: &'a mut dyn Observer,
}

impl Target<'_> {
    fn push(&mut self, citing: Option<u32>, cited: Option<u32>, statements: Statements) -> io::Result<()> {
        self.n_done += 1;
        if self.n_done.is_multiple_of(PROGRESS_STEP) {
            let (n_done, n_total) = (self.n_done, Some(self.n_total));
            self.observer.progress(Progress { step: Step::Join, n_done, n_total, n_rows: self.n_total });
        }
        let (Some(citing), Some(cited)) = (citing, cited) else {
            self.n_without_doi += 1;
            return Ok(());
        };
        self.used.set(citing);
        self.used.set(cited);
        self.by_citing.push(Pair::new(citing, cited, statements.word()))?;
        self.by_cited.push(Pair::new(cited, citing, statements.dates_only().word()))
    }
}

fn join_at_once(work: &Workspace, table: &KeyTable, target: &mut Target<'_>) -> Result<(), BuildError> {
    for part in 0..super::keys::N_PARTS {
        let mut edges = read_part::<EDGE_BYTES>(work, EDGES, part)?;
        while let Some(edge) = edges.next()? {
            let (citing, cited) = (table.get(word_of(&edge, 0)), table.get(word_of(&edge, 8)));
            target.push(citing, cited, Statements::from_word(word_of(&edge, 16)))?;
        }
    }
    Ok(())
}

fn join_in_shares(
    work: &Workspace,
    groups: &[std::ops::Range<usize>],
    ids: &mut IdJoin,
    target: &mut Target<'_>,
) -> Result<(), BuildError> {
    let mut half = PartWriter::<HALF_BYTES>::open(work, HALF, &[])?;
    for group in groups {
        let (table, _) = KeyTable::load(work, KEYS, group.clone())?;
        ids.take(work, group.clone(), &table, &mut target.used)?;
        for part in group.clone() {
            join_citing(work, part, &table, &mut half, target)?;
        }
    }
    half.checkpoint()?;
    for group in groups {
        let (table, _) = KeyTable::load(work, KEYS, group.clone())?;
        for part in group.clone() {
            let mut halves = read_part::<HALF_BYTES>(work, HALF, part)?;
            while let Some(record) = halves.next()? {
                let cited = table.get(word_of(&record, 0));
                let statements = Statements::from_word(word_of(&record, 12));
                target.push(Some(half_of(&record, 8)), cited, statements)?;
            }
        }
    }
    Ok(())
}

fn join_citing(
    work: &Workspace,
    part: usize,
    table: &KeyTable,
    half: &mut PartWriter<HALF_BYTES>,
    target: &mut Target<'_>,
) -> Result<(), BuildError> {
    let mut edges = read_part::<EDGE_BYTES>(work, EDGES, part)?;
    while let Some(edge) = edges.next()? {
        let Some(citing) = table.get(word_of(&edge, 0)) else {
            target.push(None, None, Statements::default())?;
            continue;
        };
        let mut record = [0; HALF_BYTES];
        record[..8].copy_from_slice(&edge[8..16]);
        record[8..12].copy_from_slice(&citing.to_le_bytes());
        record[12..].copy_from_slice(&edge[16..]);
        half.push(word_of(&edge, 8), &record)?;
    }
    Ok(())
}
