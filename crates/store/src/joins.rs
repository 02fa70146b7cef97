//! Joins of records of different kinds by texts that both hold, such as the id of a holdings record in its items
//! ([`crate::Kind::joins`]). The texts are known by hashes of 64 bits; those of a search index are kept in order, so that
//! a join of millions of records reads two sorted lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::eval::any_value;
use crate::parts::Parts;
use crate::scan::Scan;
use crate::{Expr, Kind, Path, Query, Result, StoreError, View, explain};

/// A set of texts, of any number, for [`Expr::Joined`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct JoinKeys {
    /// Their hashes, in order.
    pub(crate) hashes: Arc<Vec<i64>>,
}

/// Records by which others are grouped: texts, each with the number of the record that it leads to.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    /// The hashes of the texts, in order.
    pub(crate) hashes: Vec<i64>,
    /// The number of the owner for each of them.
    pub(crate) numbers: Vec<u32>,
    pub(crate) n_owners: u32,
}

/// The number of owners by value.
pub(crate) type ByValue = BTreeMap<String, u64>;

/// Returns the hash of a text by which records are joined.
pub(crate) fn join_hash(text: &str) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha256::digest(text)[..8]);
    i64::from_le_bytes(bytes)
}

/// Returns the hashes of the texts at a path.
pub(crate) fn join_hashes(body: &Json, path: &Path) -> BTreeSet<i64> {
    let mut hashes = BTreeSet::new();
    any_value(body, path.as_steps(), &mut |value| {
        hashes.extend(value.as_str().map(join_hash));
        false
    });
    hashes
}

/// Returns the texts and booleans at a path, as values that are counted.
pub(crate) fn values_at(body: &Json, path: &Path) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    any_value(body, path.as_steps(), &mut |value| {
        match value {
            Json::String(text) => drop(values.insert(text.clone())),
            Json::Bool(it) => drop(values.insert(it.to_string())),
            _ => {}
        }
        false
    });
    values
}

impl JoinKeys {
    pub(crate) fn of(mut hashes: Vec<i64>) -> Self {
        // Runs that are in order already are merged.
        hashes.sort();
        hashes.dedup();
        Self { hashes: Arc::new(hashes) }
    }

    /// Returns whether a text is one of them.
    pub fn has(&self, text: &str) -> bool {
        self.hashes.binary_search(&join_hash(text)).is_ok()
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

impl fmt::Debug for JoinKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.len())
    }
}

impl Owners {
    /// Returns the owners that pairs of a hash and a number name.
    pub(crate) fn of(mut pairs: Vec<(i64, u32)>, n_owners: u32) -> Self {
        pairs.sort();
        pairs.dedup_by_key(|it| it.0);
        let (hashes, numbers) = pairs.into_iter().unzip();
        Self { hashes, numbers, n_owners }
    }

    pub(crate) fn number_of(&self, hash: i64) -> Option<u32> {
        self.hashes.binary_search(&hash).ok().map(|at| self.numbers[at])
    }

    /// Returns the owners that a body names at a path.
    pub(crate) fn named_in(&self, body: &Json, path: &Path) -> BTreeSet<u32> {
        join_hashes(body, path).into_iter().filter_map(|it| self.number_of(it)).collect()
    }
}

impl View<'_> {
    /// Returns the texts at a path of the records that satisfy a condition. They are read from the search index if the
    /// kind is joined by the path, otherwise from bodies.
    pub fn join_keys(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<JoinKeys> {
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        if let Some(hashes) = scan.by_index_alone(self, |_, found| found.join_keys(path))? {
            return Ok(JoinKeys::of(hashes));
        }
        let mut hashes = Vec::new();
        self.each_part(kind, &query, &[path], |body| hashes.extend(join_hashes(body, path)))?;
        Ok(JoinKeys::of(hashes))
    }

    /// Returns the records that satisfy a condition as owners, each by its text at a path.
    pub fn owners(&mut self, kind: &'static Kind, filter: &Expr, path: &Path) -> Result<Owners> {
        let hashes = self.join_keys(kind, filter, path)?.hashes;
        let n_owners = u32::try_from(hashes.len()).unwrap_or(u32::MAX);
        Ok(Owners { hashes: Arc::unwrap_or_clone(hashes), numbers: (0..n_owners).collect(), n_owners })
    }

    /// Returns the same owners by the texts at `path` of the records that name one of them at `link`.
    pub fn owned(
        &mut self,
        kind: &'static Kind,
        owners: &Owners,
        link: &Path,
        path: &Path,
    ) -> Result<Owners> {
        let query = Query::filter(Expr::All);
        let scan = Scan::of(self, kind, &query)?;
        if let Some(pairs) = scan.by_index_alone(self, |_, found| found.owned(owners, link, path))? {
            return Ok(Owners::of(pairs, owners.n_owners));
        }
        let mut pairs = Vec::new();
        self.each_part(kind, &query, &[link, path], |body| {
            for hash in join_hashes(body, path) {
                pairs.extend(owners.named_in(body, link).into_iter().map(|it| (hash, it)));
            }
        })?;
        Ok(Owners::of(pairs, owners.n_owners))
    }

    /// Counts owners by the texts and booleans at each of some paths of the records that name them at `link`: an owner
    /// counts once for each value.
    ///
    /// Errors: a path has more values than a list answer may have rows.
    pub fn count_owners(
        &mut self,
        kind: &'static Kind,
        owners: &Owners,
        link: &Path,
        paths: &[Path],
    ) -> Result<Vec<BTreeMap<String, u64>>> {
        let query = Query::filter(Expr::All);
        let most = self.shared.limits.page_rows;
        let scan = Scan::of(self, kind, &query)?;
        let by_index =
            scan.by_index_alone(self, |view, found| found.count_owners(view, owners, link, paths, most))?;
        if let Some(counts) = by_index {
            return Ok(counts);
        }
        let mut seen: Vec<BTreeMap<String, BTreeSet<u32>>> = vec![BTreeMap::new(); paths.len()];
        let parts: Vec<&Path> = paths.iter().chain([link]).collect();
        self.each_part(kind, &query, &parts, |body| {
            let named = owners.named_in(body, link);
            for (seen, path) in seen.iter_mut().zip(paths).filter(|_| !named.is_empty()) {
                for value in values_at(body, path) {
                    seen.entry(value).or_default().extend(&named);
                }
            }
        })?;
        for (seen, path) in seen.iter().zip(paths) {
            check_values(seen.len(), path, most)?;
        }
        let count = |it: BTreeMap<String, BTreeSet<u32>>| {
            it.into_iter().map(|(value, owners)| (value, owners.len() as u64)).collect()
        };
        Ok(seen.into_iter().map(count).collect())
    }

    /// Passes parts of the bodies of a query to `visit`.
    fn each_part(
        &mut self,
        kind: &'static Kind,
        query: &Query,
        paths: &[&Path],
        mut visit: impl FnMut(&Json),
    ) -> Result<()> {
        explain::note(|| format!("{} join: bodies read", kind.name));
        let parts = Parts::default().with(paths.iter().copied());
        self.try_for_each(kind, query, |record| {
            visit(&record.json_of(&parts)?);
            Ok(())
        })
    }
}

/// Checks the number of values at a path.
pub(crate) fn check_values(n_values: usize, path: &Path, most: u64) -> Result<()> {
    if most < n_values as u64 {
        let fault = format!("{path:?} has more than {most} values here; narrow the search down");
        return Err(StoreError::Query(fault));
    }
    Ok(())
}
