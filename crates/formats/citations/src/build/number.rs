//! The second stage: sorts the DOIs, which numbers them, and writes the keys by which citations find these
//! numbers. Local ids are numbered likewise.

use super::keys::{Conflicts, KEY_RECORD_BYTES, KeyTable, PartWriter, doi_key, groups, key_record, omid_key};
use super::local_ids;
use super::scan::DOIS;
use super::texts::TextRuns;
use super::workspace::Workspace;
use crate::build::error::BuildError;
use crate::build::progress::{Observer, Progress, Step};
use crate::omid::Omid;

/// Name of the files of keys.
pub(crate) const KEYS: &str = "keys";
const PROGRESS_STEP: u64 = 1 << 16;

/// Whether every key belongs to one DOI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    Distinct,
    /// Two DOIs have the same key: another seed is needed.
    Collision,
}

/// Numbers DOIs by their order and writes the number of every key.
pub(crate) fn number(
    work: &mut Workspace,
    keys_at_once: u64,
    observer: &mut dyn Observer,
) -> Result<Numbered, BuildError> {
    work.plan.n_candidates = write_keys(work, observer)?;
    let conflicts = check_keys(work, keys_at_once)?;
    if 0 < conflicts.n_dois {
        return Ok(Numbered::Collision);
    }
    work.plan.counts.n_omid_conflicts = conflicts.n_omids;
    local_ids::number(work)?;
    Ok(Numbered::Distinct)
}

/// Returns the number of different DOIs.
fn write_keys(work: &Workspace, observer: &mut dyn Observer) -> Result<u64, BuildError> {
    let runs = TextRuns::open(&work.path(DOIS), work.plan.doi_runs.clone())?;
    let mut keys = PartWriter::<KEY_RECORD_BYTES>::open(work, KEYS, &[])?;
    let mut texts = runs.merge();
    let mut doi = Vec::new();
    let mut n_dois = 0_u64;
    while let Some(text) = texts.next()? {
        if n_dois == 0 || doi != text.bytes {
            doi.clear();
            doi.extend_from_slice(text.bytes);
            n_dois += 1;
            let key = doi_key(&doi, work.plan.seed);
            keys.push(key, &key_record(key, number_of(n_dois)?))?;
            if n_dois.is_multiple_of(PROGRESS_STEP) {
                let n_rows = work.plan.counts.n_rows;
                observer.progress(Progress { step: Step::Number, n_done: n_dois, n_total: None, n_rows });
            }
        }
        if text.first != 0 {
            let key = omid_key(Omid::from_number(text.first));
            keys.push(key, &key_record(key, number_of(n_dois)?))?;
        }
    }
    keys.checkpoint()?;
    Ok(n_dois)
}

/// Returns the number of the last of `n_dois`.
fn number_of(n_dois: u64) -> Result<u32, BuildError> {
    u32::try_from(n_dois - 1).ok().filter(|number| *number < u32::MAX).ok_or(BuildError::TooMany)
}

/// Loads every key's table once to check whether one key has two numbers.
fn check_keys(work: &Workspace, keys_at_once: u64) -> Result<Conflicts, BuildError> {
    let mut all = Conflicts::default();
    for group in groups(work, KEYS, keys_at_once)? {
        let (_, conflicts) = KeyTable::load(work, KEYS, group)?;
        all.n_dois += conflicts.n_dois;
        all.n_omids += conflicts.n_omids;
    }
    Ok(all)
}
