//! Records by which others are counted, and what is taken of the bodies of these.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::Path;
use crate::eval::any_value;
use crate::join_keys::{join_hash, join_text};
use crate::ordered_hashes::OrderedHashes;

/// Records by which others are grouped: texts, each with the number of the record that it leads to.
#[derive(Debug, Clone, Default)]
pub struct Owners {
    /// The hashes of the texts.
    pub(crate) hashes: Arc<OrderedHashes>,
    /// The number of the owner for each of them.
    pub(crate) numbers: Vec<u32>,
    pub(crate) n_owners: u32,
}

/// The number of owners by value.
pub(crate) type ByValue = BTreeMap<String, u64>;
/// The numbers of the owners that have each value.
pub(crate) type OwnersOf = BTreeMap<String, BTreeSet<u32>>;

impl Owners {
    /// Returns the owners that pairs of a hash and a number name; of two with one hash, the lower number.
    pub(crate) fn of(mut pairs: Vec<(i64, u32)>, n_owners: u32) -> Self {
        // Runs that are in order already are merged. Comparing the hashes alone takes a third of the time.
        pairs.sort_by_key(|it| it.0);
        pairs.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.min(next.1);
            }
            is_same
        });
        let (hashes, numbers) = pairs.into_iter().unzip();
        Self { hashes: Arc::new(OrderedHashes::in_order(hashes)), numbers, n_owners }
    }

    /// Returns the owners that a body names at a path.
    fn named_in(&self, body: &Json, path: &Path) -> BTreeSet<u32> {
        let number = |hash: i64| self.hashes.position(hash).map(|at| self.numbers[at]);
        join_hashes(body, path).into_iter().filter_map(number).collect()
    }

    /// Adds the hashes at `path` of a body, each with the owner that it names at `link`.
    pub(crate) fn add_pairs(&self, body: &Json, link: &Path, path: &Path, pairs: &mut Vec<(i64, u32)>) {
        let named = self.named_in(body, link);
        for hash in join_hashes(body, path) {
            pairs.extend(named.iter().map(|it| (hash, *it)));
        }
    }

    /// Adds the owners that a body names at `link` to those that have its values at each of some paths.
    pub(crate) fn add_named(&self, body: &Json, link: &Path, paths: &[Path], seen: &mut [OwnersOf]) {
        let named = self.named_in(body, link);
        for (seen, path) in seen.iter_mut().zip(paths).filter(|_| !named.is_empty()) {
            for value in values_at(body, path) {
                seen.entry(value).or_default().extend(&named);
            }
        }
    }
}

/// Returns the hashes of the texts and whole numbers at a path.
pub(crate) fn join_hashes(body: &Json, path: &Path) -> BTreeSet<i64> {
    let mut hashes = BTreeSet::new();
    any_value(body, path.as_steps(), &mut |value| {
        hashes.extend(join_text(value).map(|it| join_hash(&it)));
        false
    });
    hashes
}

/// Returns the texts and booleans at a path, as values that are counted.
fn values_at(body: &Json, path: &Path) -> BTreeSet<String> {
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

#[cfg(test)]
mod tests {
    use super::Owners;

    #[test]
    fn a_hash_leads_to_one_owner() {
        let owners = Owners::of(vec![(1, 7), (2, 5), (1, 9), (2, 3), (-4, 0)], 10);
        assert_eq!((owners.hashes.as_slice(), owners.numbers.as_slice()), (&[-4, 1, 2][..], &[0, 7, 3][..]));
    }
}
