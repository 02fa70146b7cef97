//! The relations of a dataset that a filter may ask for: each becomes a list in the dataset.

use pinakes_store::{Expr, Kind, Query, Value as Condition, View};
use serde_json::{Map, Value};

use super::Api;
use crate::attachments::{self, ATTACHMENT};
use crate::blocks::{self, DATABLOCK, ORIG_DATABLOCK};
use crate::error::ScicatError;
use crate::filter::{self, Include};
use crate::instruments::INSTRUMENT;
use crate::proposals::PROPOSAL;
use crate::rights::Rights;
use crate::samples::SAMPLE;

/// Every relation, in the order in which `all` puts them in.
const RELATIONS: [&str; 6] =
    ["instruments", "proposals", "origdatablocks", "datablocks", "attachments", "samples"];

/// The relations that are asked for, `all` spelled out.
///
/// Errors: 400 that names what is no relation.
pub(crate) fn resolve(include: &[Include]) -> Result<Vec<Include>, ScicatError> {
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
        list.extend(
            names.into_iter().map(|name| Include { relation: name.to_owned(), scope: it.scope.clone() }),
        );
    }
    Ok(list)
}

/// Puts the relations into a dataset. v4 shows only related rows that the caller may read.
pub(crate) fn attach(
    view: &mut View<'_>,
    dataset: &mut Map<String, Value>,
    include: &[Include],
    api: Api,
    rights: &Rights,
) -> Result<(), ScicatError> {
    for it in include {
        let rows = related(view, dataset, it, api, rights)?;
        dataset.insert(it.relation.clone(), Value::Array(rows));
    }
    Ok(())
}

fn related(
    view: &mut View<'_>,
    dataset: &Map<String, Value>,
    include: &Include,
    api: Api,
    rights: &Rights,
) -> Result<Vec<Value>, ScicatError> {
    let (kind, condition) = relation(dataset, &include.relation);
    let visible = if api == Api::V4 && kind.class_fields.contains(&"isPublished") {
        rights.visible()
    } else {
        Expr::All
    };
    let scope = filter::from_value(include.scope.as_ref().unwrap_or(&Value::Null), kind)?;
    let mut query = scope.query(visible.and(condition));
    if include.scope.as_ref().and_then(|it| it.get("limits")).is_none() {
        query.limit = None;
    }
    let mut rows = Vec::new();
    for record in view.find(kind, &query)? {
        let mut row = blocks::whole(view, kind, &record)?;
        if kind.name == ATTACHMENT.name && api == Api::V3 {
            let pid = dataset.get("pid").and_then(Value::as_str).unwrap_or_default();
            attachments::v3_view(&mut row, "dataset", pid);
        }
        scope.fields.apply(&mut row);
        rows.push(Value::Object(row));
    }
    Ok(rows)
}

/// The kind of a relation and the condition on its rows.
fn relation(dataset: &Map<String, Value>, name: &str) -> (&'static Kind, Expr) {
    let pid = dataset.get("pid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_dataset = |path: &str| Expr::Is(path.into(), Condition::Text(pid.clone()));
    match name {
        "instruments" => (&INSTRUMENT, Expr::Ids(ids(dataset, "instrumentIds"))),
        "proposals" => (&PROPOSAL, Expr::Ids(ids(dataset, "proposalIds"))),
        "samples" => (&SAMPLE, Expr::Ids(ids(dataset, "sampleIds"))),
        "origdatablocks" => (&ORIG_DATABLOCK, of_dataset("datasetId")),
        "datablocks" => (&DATABLOCK, of_dataset("datasetId")),
        _ => (&ATTACHMENT, of_dataset("relationships.targetId")),
    }
}

fn ids(dataset: &Map<String, Value>, field: &str) -> Vec<String> {
    let list = dataset.get(field).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A query for the rows of a kind that belong to a dataset.
pub(crate) fn of_dataset(pid: &str) -> Query {
    Query::filter(Expr::Is("datasetId".into(), Condition::Text(pid.to_owned())))
}
