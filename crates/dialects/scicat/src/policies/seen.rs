//! Policies of owner groups, as they were last seen.

use std::sync::Arc;

use pinakes_http::Db;
use pinakes_store::{Record, StoreError, Txn, Weight};
use quick_cache::sync::Cache;
use serde_json::Value;

use crate::error::ScicatError;
use crate::kinds::POLICY;

/// What the policy of a group gave its datasets when it was last looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Of the policy's last change.
    sequence: u64,
    pub(crate) classification: String,
}

impl Seen {
    fn of(record: &Record) -> Result<Self, StoreError> {
        Ok(Self { sequence: record.sequence, classification: classification(&record.json()?) })
    }

    /// Whether the policy is still the one that was seen, or gives the same.
    pub(crate) fn holds(&self, txn: &mut Txn<'_>, group: &str) -> Result<bool, StoreError> {
        let Some(record) = txn.get(&POLICY, group)? else { return Ok(false) };
        Ok(record.sequence == self.sequence || Self::of(&record)?.classification == self.classification)
    }
}

/// Policies that were seen lately, so that a new dataset need not read that of its group: the transaction that stores
/// it says whether what was seen still holds.
#[derive(Clone)]
pub(crate) struct SeenPolicies(Arc<Cache<(String, String), Seen>>);

/// Groups whose policies are remembered.
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

    /// What the group's policy gives, as it was when it was last seen; `None` when there is none.
    pub(crate) async fn of(&self, db: &Db, group: &str) -> Result<Option<Seen>, ScicatError> {
        match self.0.get(&Self::key(db, group)) {
            Some(seen) => Ok(Some(seen)),
            None => self.look(db, group).await,
        }
    }

    /// What it gives now.
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

/// What every dataset of the policy's group carries as `classification`.
pub(crate) fn classification(policy: &Value) -> String {
    let redundancy = policy.get("tapeRedundancy").and_then(Value::as_str).unwrap_or(DEFAULT_REDUNDANCY);
    format!("IN=medium,AV={redundancy},CO=low")
}

/// The availability in a classification: `low` in `IN=medium,AV=low,CO=low`.
pub(crate) fn redundancy(classification: &str) -> Option<&str> {
    let part = classification.split(',').find_map(|it| it.trim().strip_prefix("AV="))?;
    Some(part.trim()).filter(|it| !it.is_empty())
}

/// How many copies on tape a group has when nothing is said.
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
