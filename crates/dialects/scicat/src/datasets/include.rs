//! The relations of a dataset that a filter may include: each becomes a list in the dataset.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use pinakes_http::Sink;
use pinakes_store::{Expr, Kind, Query, Record, Value as Condition, View};
use serde_json::{Map, Value};

use crate::app::Asker;
use crate::datasets::forms::Api;
use crate::documents::object;
use crate::error::ScicatError;
use crate::filter::{self, Filter, Include};
use crate::kinds::ATTACHMENT;
use crate::kinds::INSTRUMENT;
use crate::kinds::PROPOSAL;
use crate::kinds::SAMPLE;
use crate::kinds::{DATABLOCK, ORIG_DATABLOCK};
use crate::projection::Projection;
use crate::rights::Rights;
use crate::strict;

/// All relations, in the order in which `all` adds them.
const RELATIONS: [&str; 6] =
    ["instruments", "proposals", "origdatablocks", "datablocks", "attachments", "samples"];

/// Maximum number of relations that a filter may name, counting repeated ones.
const MAX_INCLUDES: usize = 32;

/// Maximum number of rows of a relation that are read together for several datasets.
const AHEAD_ROWS: usize = 1_000;

/// Returns the relations to include, with `all` expanded.
///
/// Errors: 400 that names an unknown relation.
fn resolve(include: &[Include]) -> Result<Vec<Include>, ScicatError> {
    if MAX_INCLUDES < include.len() {
        let n = include.len();
        return Err(ScicatError::bad_request(format!("{n} relations are included, at most {MAX_INCLUDES}")));
    }
    let mut list: Vec<Include> = Vec::new();
    for it in include {
        let names: Vec<&str> = match it.relation.as_str() {
            "all" => RELATIONS.to_vec(),
            name if RELATIONS.contains(&name) => vec![name],
            name => {
                return Err(ScicatError::bad_request(format!(
                    "Provided include field \"{name}\" is not part of the dataset relations"
                )));
            }
        };
        for name in names {
            // A repeated relation replaces the earlier one, as the dataset has one field for both.
            list.retain(|known| known.relation != name);
            list.push(Include { relation: name.to_owned(), scope: it.scope.clone() });
        }
    }
    Ok(list)
}

/// How rows belong to a dataset.
#[derive(Debug, Clone, Copy)]
enum Belongs {
    /// A field of the dataset holds their ids.
    ById(&'static str),
    /// They have the dataset's pid at a path, which may lie in objects of a list.
    ByPid(&'static str),
}

/// A relation and the options for its rows, parsed once for all datasets of an answer.
pub(crate) struct Relation {
    /// The field of the dataset that holds the rows.
    pub(crate) name: String,
    kind: &'static Kind,
    belongs: Belongs,
    scope: Filter,
    /// Condition on the rows that the caller may see.
    visible: Expr,
    is_limited: bool,
}

/// Returns the relations that a filter asks for, limited to rows that the caller could read on routes of their own.
///
/// Errors: 400 for an unknown relation, and for an invalid scope.
pub(crate) fn relations(include: &[Include], api: Api, asker: &Asker) -> Result<Vec<Relation>, ScicatError> {
    let relation = |it: Include| {
        let kind = kind_of(&it.relation);
        let mut scope = filter::from_value(it.scope.as_ref().unwrap_or(&Value::Null), kind)?;
        let sort = it.scope.as_ref().and_then(|it| it.get("limits")?.get("sort"));
        if let (Api::V4, Some(sort)) = (api, sort.filter(|it| !it.is_null())) {
            scope.window.order = strict::sort(sort)?;
        }
        Ok(Relation {
            kind,
            belongs: belongs(&it.relation),
            scope,
            visible: visible(&it.relation, api, asker),
            is_limited: it.scope.as_ref().is_some_and(|it| it.get("limits").is_some()),
            name: it.relation,
        })
    };
    resolve(include)?.into_iter().map(relation).collect()
}

/// Refuses fields inside a relation that is included, as v4 shows an included relation as a whole.
///
/// Errors: 400 that names the first such relation, in MongoDB's words; 400 for an unknown relation.
pub(crate) fn refuse_collision(filter: &Filter) -> Result<(), ScicatError> {
    let Projection::Only(names) = &filter.fields else { return Ok(()) };
    let is_named_inside = |relation: &str| {
        names.iter().any(|it| it.strip_prefix(relation).is_some_and(|rest| rest.starts_with('.')))
    };
    match resolve(&filter.include)?.iter().find(|it| is_named_inside(&it.relation)) {
        None => Ok(()),
        Some(Include { relation, .. }) => Err(ScicatError::bad_request(format!(
            "Invalid $project :: caused by :: Path collision at {relation}: it is included as a whole, so fields \
             cannot name parts of it"
        ))),
    }
}

/// Returns the condition on the rows of a relation that the caller may see. v3 shows a dataset's blocks and attachments
/// to everyone who may read the dataset, as its routes below the dataset do.
fn visible(relation: &str, api: Api, asker: &Asker) -> Expr {
    match (relation, api) {
        ("instruments", _) | ("origdatablocks" | "datablocks" | "attachments", Api::V3) => Expr::All,
        ("proposals", _) => asker.rights.of_keeper(&asker.settings().proposal_groups).visible(),
        ("samples", _) => asker.rights.of_keeper(&[]).visible(),
        _ => asker.rights.visible(),
    }
}

impl Relation {
    /// Hides blocks from everyone but the members of their groups, and those who see all: also blocks that are public.
    pub(crate) fn with_blocks_for_members(mut self, rights: &Rights) -> Self {
        if self.kind.members.is_some() && !rights.sees_all() {
            self.visible = self.visible.and(rights.in_own_groups());
        }
        self
    }

    /// Reads the rows of several datasets together. `None` where that saves nothing, or there are too many.
    pub(crate) fn read_ahead<'d>(
        &self,
        view: &mut View<'_>,
        datasets: impl ExactSizeIterator<Item = &'d Map<String, Value>>,
    ) -> Result<Option<Rows>, ScicatError> {
        if self.is_limited || datasets.len() < 2 {
            return Ok(None);
        }
        let mut rows = Rows::default();
        let keys: BTreeSet<String> = datasets.flat_map(|it| self.keys(it)).collect();
        let keys = keys.into_iter().collect();
        let (mut n, mut refused) = (0, Ok(()));
        view.for_each(self.kind, &self.query(keys), |record| {
            n += 1;
            refused = self.keys_of(&record).map(|keys| rows.add(record, keys));
            if refused.is_ok() && n <= AHEAD_ROWS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        refused?;
        if AHEAD_ROWS < n {
            return Ok(None);
        }
        view.read_members_ahead(self.kind, rows.list.iter().map(|it| &**it))?;
        Ok(Some(rows))
    }

    /// Writes the rows that belong to `dataset` as a list; returns false when the client has gone away. Files of blocks
    /// are copied as they are stored, so that memory does not grow with their number. `ahead`: rows of several datasets
    /// that were read before.
    pub(crate) fn push(
        &self,
        view: &mut View<'_>,
        dataset: &Map<String, Value>,
        ahead: Option<&Rows>,
        api: Api,
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        let keys = self.keys(dataset);
        let rows = match ahead {
            Some(ahead) => ahead.of(&keys),
            None => view.find(self.kind, &self.query(keys))?.into_iter().map(Arc::new).collect(),
        };
        let mut separator: &[u8] = b"[";
        for record in rows {
            if sink.push(separator).is_err() || !self.push_row(view, &record, dataset, api, sink)? {
                return Ok(false);
            }
            separator = b",";
        }
        let end: &[u8] = if separator == b"[" { b"[]" } else { b"]" };
        Ok(sink.push(end).is_ok())
    }

    /// Returns a query for the rows that belong to datasets with these keys.
    fn query(&self, keys: Vec<String>) -> Query {
        let mut values = keys.iter().cloned().map(Condition::Text);
        let belonging = match self.belongs {
            Belongs::ById(_) => Expr::Ids(keys),
            Belongs::ByPid(path) => match (values.next(), keys.len()) {
                (Some(pid), 1) => Expr::Is(path.into(), pid),
                (first, _) => Expr::In(path.into(), first.into_iter().chain(values).collect()),
            },
        };
        let mut query = self.scope.query(self.visible.clone().and(belonging));
        if !self.is_limited {
            query.limit = None;
        }
        query
    }

    /// Returns what the rows of a dataset are found by.
    fn keys(&self, dataset: &Map<String, Value>) -> Vec<String> {
        let named = match self.belongs {
            Belongs::ById(field) => dataset.get(field),
            Belongs::ByPid(_) => dataset.get("pid"),
        };
        texts(named)
    }

    /// Returns what a row is found by.
    fn keys_of(&self, record: &Record) -> Result<Vec<String>, ScicatError> {
        let Belongs::ByPid(path) = self.belongs else { return Ok(vec![record.id.clone()]) };
        let body = object(record)?;
        Ok(match path.split_once('.') {
            None => texts(body.get(path)),
            Some((list, field)) => {
                let rows = body.get(list).and_then(Value::as_array).into_iter().flatten();
                rows.flat_map(|it| texts(it.get(field))).collect()
            }
        })
    }

    fn push_row(
        &self,
        view: &mut View<'_>,
        record: &Record,
        dataset: &Map<String, Value>,
        api: Api,
        sink: &mut Sink,
    ) -> Result<bool, ScicatError> {
        if self.kind.members.is_some() {
            return crate::blocks::sorts::push(view, self.kind, record, &self.scope.fields, "", sink);
        }
        let is_below = self.kind.name == ATTACHMENT.name && api == Api::V3;
        if !is_below && self.scope.fields.is_everything() {
            return Ok(sink.push(&record.body).is_ok());
        }
        let mut row = object(record)?;
        if is_below {
            let pid = dataset.get("pid").and_then(Value::as_str).unwrap_or_default();
            crate::attachments::stored::v3_view(&mut row, "dataset", pid);
        }
        self.scope.fields.apply(&mut row);
        Ok(sink.push(Value::Object(row).to_string().as_bytes()).is_ok())
    }
}

fn kind_of(relation: &str) -> &'static Kind {
    match relation {
        "instruments" => &INSTRUMENT,
        "proposals" => &PROPOSAL,
        "samples" => &SAMPLE,
        "origdatablocks" => &ORIG_DATABLOCK,
        "datablocks" => &DATABLOCK,
        _ => &ATTACHMENT,
    }
}

fn belongs(relation: &str) -> Belongs {
    match relation {
        "instruments" => Belongs::ById("instrumentIds"),
        "proposals" => Belongs::ById("proposalIds"),
        "samples" => Belongs::ById("sampleIds"),
        "origdatablocks" | "datablocks" => Belongs::ByPid("datasetId"),
        _ => Belongs::ByPid("relationships.targetId"),
    }
}

/// Returns a text, or those of a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    let list = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Rows of a relation that were read for several datasets, in order.
#[derive(Default)]
pub(crate) struct Rows {
    list: Vec<Arc<Record>>,
    /// Their places, by what they are found by.
    by_key: HashMap<String, Vec<usize>>,
}

impl Rows {
    fn add(&mut self, record: Record, keys: Vec<String>) {
        keys.into_iter().for_each(|key| self.by_key.entry(key).or_default().push(self.list.len()));
        self.list.push(Arc::new(record));
    }

    /// Returns the rows that are found by any of these keys.
    fn of(&self, keys: &[String]) -> Vec<Arc<Record>> {
        let places = keys.iter().filter_map(|key| self.by_key.get(key)).flatten().copied();
        let places: BTreeSet<usize> = places.collect();
        places.into_iter().map(|place| self.list[place].clone()).collect()
    }
}

/// Returns a query for the rows of a kind that belong to a dataset.
pub(crate) fn of_dataset(pid: &str) -> Query {
    Query::filter(Expr::Is("datasetId".into(), Condition::Text(pid.to_owned())))
}
