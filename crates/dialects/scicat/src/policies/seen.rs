//! Cache of the policies of owner groups.

use std::sync::Arc;

use pinakes_http::Db;
use pinakes_store::{Record, StoreError, Txn, Weight};
use quick_cache::sync::Cache;
use serde_json::Value;

use crate::error::ScicatError;
use crate::kinds::POLICY;

/// The classification from a group's policy when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Sequence number of the policy's last change.
    sequence: u64,
    pub(crate) classification: String,
}

impl Seen {
    fn of(record: &Record) -> Result<Self, StoreError> {
        Ok(Self { sequence: record.sequence, classification: classification(&record.json()?) })
    }

    /// Says whether the policy is unchanged, or still gives the same classification.
    pub(crate) fn holds(&self, txn: &mut Txn<'_>, group: &str) -> Result<bool, StoreError> {
        let Some(record) = txn.get(&POLICY, group)? else { return Ok(false) };
        Ok(record.sequence == self.sequence || Self::of(&record)?.classification == self.classification)
    }
}

/// Recently read policies, so that creating a dataset need not read that of its group first: the transaction that
/// stores the dataset checks whether the cached policy is still valid.
#[derive(Clone)]
pub(crate) struct SeenPolicies(Arc<Cache<(String, String), Seen>>);

/// Maximum number of groups whose policies are cached.
pub(crate) const SEEN_GROUPS: usize = 10_000;

impl Default for SeenPolicies {
    fn default() -> Self {
        Self(Arc::new(Cache::new(SEEN_GROUPS)))
    }
}

impl SeenPolicies {
    fn key(db: &Db, group: &str) -> (String, String) {
        (db.tenant().name().to_owned(), group.to_owned())
    }

    /// Returns the cached policy of the group, or reads it; `None` if there is none.
    pub(crate) async fn of(&self, db: &Db, group: &str) -> Result<Option<Seen>, ScicatError> {
        match self.0.get(&Self::key(db, group)) {
            Some(seen) => Ok(Some(seen)),
            None => self.look(db, group).await,
        }
    }

    /// Reads the group's policy and caches it.
    pub(crate) async fn look(&self, db: &Db, group: &str) -> Result<Option<Seen>, ScicatError> {
        let id = group.to_owned();
        let record = db.read(Weight::Point, move |view| view.get(&POLICY, &id)).await?;
        let seen = record.as_ref().map(Seen::of).transpose()?;
        let key = Self::key(db, group);
        match &seen {
            Some(seen) => self.0.insert(key, seen.clone()),
            None => drop(self.0.remove(&key)),
        }
        Ok(seen)
    }
}

/// Returns the `classification` of every dataset of the policy's group.
pub(crate) fn classification(policy: &Value) -> String {
    let redundancy = policy.get("tapeRedundancy").and_then(Value::as_str).unwrap_or(DEFAULT_REDUNDANCY);
    format!("IN=medium,AV={redundancy},CO=low")
}

/// Returns the availability in a classification: `low` in `IN=medium,AV=low,CO=low`.
pub(crate) fn redundancy(classification: &str) -> Option<&str> {
    let part = classification.split(',').find_map(|it| it.trim().strip_prefix("AV="))?;
    Some(part.trim()).filter(|it| !it.is_empty())
}

/// The default redundancy of a group's data on tape.
pub(crate) const DEFAULT_REDUNDANCY: &str = "low";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn redundancy_is_the_availability() {
        assert_eq!(redundancy("IN=medium,AV=medium,CO=low"), Some("medium"));
        assert_eq!(redundancy("AV=high"), Some("high"));
        for none in ["", "IN=medium,CO=low", "AV=", "XAV=low"] {
            assert_eq!(redundancy(none), None, "{none}");
        }
    }

    #[test]
    fn classification_follows_the_policy() {
        assert_eq!(classification(&json!({"tapeRedundancy": "medium"})), "IN=medium,AV=medium,CO=low");
        assert_eq!(classification(&json!({})), "IN=medium,AV=low,CO=low");
    }
}
