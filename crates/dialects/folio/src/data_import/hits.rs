//! Matched records of a batch, and the lookups of its transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::data_import::criteria::Criterion;
use crate::data_import::tree::MatchSpec;

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

/// What a look-up has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    by_value: HashMap<String, Vec<Hit>>,
    /// Incoming values that match more records than are considered.
    cut: HashSet<String>,
}

impl Found {
    /// Adds a record with a stored value.
    pub(crate) fn add(&mut self, existing: String, hit: Hit) {
        let list = self.by_value.entry(existing).or_default();
        if list.iter().all(|it| it.id() != hit.id()) {
            list.push(hit);
        }
    }

    /// Notes that an incoming value matches more records than were added.
    pub(crate) fn cut(&mut self, incoming: &str) {
        self.cut.insert(incoming.to_owned());
    }

    /// Adds what another look-up has found.
    pub(crate) fn absorb(&mut self, other: Self) {
        for (existing, hits) in other.by_value {
            hits.into_iter().for_each(|hit| self.add(existing.clone(), hit));
        }
        self.cut.extend(other.cut);
    }
}

/// The lookups of all matches of a batch, done together, and what the batch itself has stored since.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By number of the match.
    pub(crate) stored: Vec<Found>,
    pub(crate) added: Vec<Found>,
    stale: Stale,
}

impl Cache {
    /// Marks a source record as outdated.
    pub(crate) fn drop_record(&mut self, id: &str) {
        self.stale.insert(id.to_owned());
    }

    /// Returns whether one of the incoming values matches more stored records than are here.
    pub(crate) fn is_cut(&self, spec: &MatchSpec, incoming: &[String]) -> bool {
        self.stored.get(spec.number).is_some_and(|found| incoming.iter().any(|it| found.cut.contains(it)))
    }

    pub(crate) fn of(&self, spec: &MatchSpec, value: &str) -> impl Iterator<Item = &Hit> {
        let found = [self.stored.get(spec.number), self.added.get(spec.number)];
        let lists = found.into_iter().flatten().map(|it| &it.by_value);
        let hits: Vec<&Hit> = match spec.criterion {
            Criterion::Exact => lists.filter_map(|it| it.get(value)).flatten().collect(),
            criterion => lists
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
