//! Records by which others are counted, and what is taken of the bodies of these.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::eval::any_value;
use crate::join_keys::join_hash;
use crate::{Path, Result, StoreError};

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

/// Checks the number of values at a path.
pub(crate) fn check_values(n_values: usize, path: &Path, most: u64) -> Result<()> {
    if most < n_values as u64 {
        let fault = format!("{path:?} has more than {most} values here; narrow the search down");
        return Err(StoreError::Query(fault));
    }
    Ok(())
}
