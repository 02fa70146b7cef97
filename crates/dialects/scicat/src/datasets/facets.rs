//! `fullfacet` and `metadataKeys` (section 4.5 of the contract).

use axum::extract::State;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Counts, Expr, FacetCount, Kind, StoreError, Type, Weight};
use serde_json::{Map, Value, json};

use super::{DATASET, METADATA_KEYS, SEARCH};
use crate::app::{Asker, QueryText, Scicat, json_parameter};
use crate::error::{Answer, ScicatError};
use crate::fullquery;

pub(crate) async fn full_facet(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = super::read::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    answer_facets(&asker, &query, &DATASET, found.condition).await
}

/// `[{"type":[{"_id":"raw","count":3}],…,"all":[{"totalSets":4}]}]` for the facets that the request names.
pub(crate) async fn answer_facets(
    asker: &Asker,
    query: &QueryText,
    kind: &'static Kind,
    condition: Expr,
) -> Answer {
    let wanted: Vec<(String, String)> = names(query)?
        .into_iter()
        .filter(|name| kind.facet_named(name).is_some())
        .map(|name| (shown_name(&name), name))
        .collect();
    let asked: Vec<String> = wanted.iter().map(|(_, facet)| facet.clone()).collect();
    let (counts, n_all) = asker
        .db
        .read(Weight::Scan, move |view| {
            let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            let counts = view.facets(kind, &condition, &asked)?;
            Ok::<_, StoreError>((counts, view.count(kind, &condition)?))
        })
        .await?;
    let mut row = Map::new();
    for ((shown, facet), counts) in wanted.into_iter().zip(counts) {
        row.insert(shown, Value::Array(counts.iter().map(|it| bucket(kind, &facet, it)).collect()));
    }
    let all = if n_all == 0 { json!([]) } else { json!([{"totalSets": n_all}]) };
    row.insert("all".to_owned(), all);
    Ok(answer::json(StatusCode::OK, &json!([row])))
}

/// The facets of a request: a JSON list of names.
fn names(query: &QueryText) -> Result<Vec<String>, ScicatError> {
    let Some(text) = query.get("facets").filter(|it| !it.is_empty()) else { return Ok(Vec::new()) };
    match json_parameter("facets", text)? {
        Value::Array(list) => Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        other => Err(ScicatError::bad_request(format!("facets must be a list of names, found {other}"))),
    }
}

/// `datasetlifecycle.x` is shown as `x`.
fn shown_name(facet: &str) -> String {
    facet.rsplit('.').next().unwrap_or(facet).to_owned()
}

fn bucket(kind: &Kind, facet: &str, count: &FacetCount) -> Value {
    let declared = kind.facet_named(facet);
    let id = match declared.map(|it| it.counts) {
        Some(Counts::Days) => day(&count.value),
        _ => match declared.and_then(|it| kind.column_of(&it.path.into())).map(|it| it.ty) {
            Some(Type::Boolean) => Value::Bool(count.value == "true"),
            Some(Type::Integer | Type::Real) => serde_json::from_str(&count.value).unwrap_or_default(),
            _ => Value::from(count.value.as_str()),
        },
    };
    json!({"_id": id, "count": count.n_records})
}

/// `{"year":2020,"month":1,"day":15}` of `2020-01-15`.
fn day(text: &str) -> Value {
    let mut parts = text.split('-').map(|it| it.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    json!({"year": next(), "month": next(), "day": next()})
}

pub(crate) async fn metadata_keys(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = super::read::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    answer_metadata_keys(&app, &asker, &DATASET, &fields, found.condition).await
}

/// The keys of the metadata of the records that satisfy a condition; `metadataKey` narrows them.
pub(crate) async fn answer_metadata_keys(
    app: &Scicat,
    asker: &Asker,
    kind: &'static Kind,
    fields: &Map<String, Value>,
    condition: Expr,
) -> Answer {
    let wanted = fields.get("metadataKey").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let counts =
        asker.db.read(Weight::Scan, move |view| view.facets(kind, &condition, &[METADATA_KEYS])).await;
    let counts = counts.map_err(|error: StoreError| ScicatError::from(error))?;
    let mut keys: Vec<String> = counts.into_iter().flatten().map(|it| it.value).collect();
    keys.retain(|key| key.to_lowercase().contains(&wanted));
    keys.reverse();
    keys.truncate(app.settings.metadata_keys_return_limit);
    Ok(answer::json(StatusCode::OK, &keys))
}
