//! Matched records of a batch, and the lookups of its transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::data_import::tree::{Criterion, MatchSpec};

/// A stored source record.
#[derive(Debug, Clone)]
pub(crate) struct Hit(pub(crate) Arc<Value>);

impl Hit {
    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer).and_then(Value::as_str)
    }

    /// Returns its id.
    pub(crate) fn id(&self) -> &str {
        self.text("/id").unwrap_or_default()
    }

    /// Returns the id of the instance, holdings record or authority.
    pub(crate) fn external_id(&self) -> Option<&str> {
        ["instanceId", "holdingsId", "authorityId"]
            .iter()
            .find_map(|name| self.text(&format!("/externalIdsHolder/{name}")))
    }
}

/// The result of a match.
#[derive(Debug)]
pub(crate) enum Hits {
    Sources(Vec<Hit>),
    /// Ids of instances, holdings, items, authorities.
    Records(Vec<String>),
}

impl Hits {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sources(list) => list.len(),
            Self::Records(list) => list.len(),
        }
    }
}

/// The lookups of all matches of a batch, done together, and what the batch itself has stored since.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By number of the match, then by value.
    pub(crate) stored: Vec<HashMap<String, Vec<Hit>>>,
    pub(crate) added: Vec<HashMap<String, Vec<Hit>>>,
    stale: Stale,
}

impl Cache {
    /// Marks a source record as outdated.
    pub(crate) fn drop_record(&mut self, id: &str) {
        self.stale.insert(id.to_owned());
    }

    pub(crate) fn of(&self, spec: &MatchSpec, value: &str) -> impl Iterator<Item = &Hit> {
        let lists = [self.stored.get(spec.number), self.added.get(spec.number)];
        let hits: Vec<&Hit> = match spec.criterion {
            Criterion::Exact => {
                lists.into_iter().flatten().filter_map(|it| it.get(value)).flatten().collect()
            }
            criterion => lists
                .into_iter()
                .flatten()
                .flat_map(|it| it.iter())
                .filter(|(existing, _)| criterion.holds(value, existing))
                .flat_map(|(_, hits)| hits)
                .collect(),
        };
        hits.into_iter().filter(|it| !self.stale.contains(it.id()))
    }
}

/// Ids of source records that are outdated.
pub(crate) type Stale = HashSet<String>;
