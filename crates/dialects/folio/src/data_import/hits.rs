//! What records of a batch were found, and what its transaction has looked up.

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

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        self.text("/id").unwrap_or_default()
    }

    /// Id of the instance, holdings record or authority.
    pub(crate) fn external_id(&self) -> Option<&str> {
        ["instanceId", "holdingsId", "authorityId"]
            .iter()
            .find_map(|name| self.text(&format!("/externalIdsHolder/{name}")))
    }
}

/// What a match found.
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

/// What the profiles of a batch find, looked up together, and what the batch itself has stored since.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By number of the match and value.
    pub(crate) stored: Vec<HashMap<String, Vec<Hit>>>,
    pub(crate) added: Vec<HashMap<String, Vec<Hit>>>,
    stale: Stale,
}

impl Cache {
    /// Notes that a source record is no longer what is current.
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

/// Ids that must not be taken for what is stored any more.
pub(crate) type Stale = HashSet<String>;
