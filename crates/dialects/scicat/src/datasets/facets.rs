//! `fullfacet` and `metadataKeys` (section 4.5 of the contract).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use axum::extract::State;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{
    Arity, Counts, Expr, FacetCount, Field, Kind, StoreError, Type, ValueCounts, View, Weight,
};
use serde_json::{Map, Value, json};

use crate::app::{Asker, QueryText, Scicat, json_parameter};
use crate::datasets::filling::DATES;
use crate::datasets::forms::SEARCH;
use crate::dto::dataset as dto;
use crate::error::{Answer, ScicatError};
use crate::fullquery;
use crate::kinds::{DATASET, METADATA_KEYS};
use crate::scientific;

pub(crate) async fn full_facet(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = crate::app::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    answer_facets(&asker, &query, &DATASET, found.condition).await
}

/// Answers with `[{"type":[{"_id":"raw","count":3}],…,"all":[{"totalSets":4}]}]` for the facets that the request names.
///
/// Facets that the kind declares are counted, as are other fields that it knows. Names that are not fields are left out.
pub(crate) async fn answer_facets(
    asker: &Asker,
    query: &QueryText,
    kind: &'static Kind,
    condition: Expr,
) -> Answer {
    let names = names(query)?;
    let (asked, rest): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| kind.facet_named(name).is_some());
    let others: Vec<String> = rest.into_iter().filter(|name| is_field(kind, name)).collect();
    let (facets, fields) = (asked.clone(), others.clone());
    let (counts, of_others, n_all) = asker
        .db
        .read(Weight::Scan, move |view| {
            let facets: Vec<&str> = facets.iter().map(String::as_str).collect();
            let counts = view.facets(kind, &condition, &facets)?;
            let of_others = count_fields(view, kind, &condition, &fields)?;
            Ok::<_, StoreError>((counts, of_others, view.count(kind, &condition)?))
        })
        .await?;
    let declared = asked.iter().zip(&counts).map(|(facet, counts)| {
        let mut buckets = Buckets::default();
        counts.iter().for_each(|it| buckets.push(&id_of(kind, facet, &it.value), it.n_records));
        // Records of a single-valued field that are in no bucket have no value.
        let n_without = n_all.saturating_sub(counts.iter().map(|it| it.n_records).sum());
        if 0 < n_without && has_one_value(kind, facet) {
            buckets.push("null", n_without);
        }
        (facet, buckets)
    });
    let mut found: Vec<(&String, Buckets)> = declared.chain(others.iter().zip(of_others)).collect();
    found.sort_by_key(|(name, _)| names.iter().position(|it| it == *name));
    let mut row: Vec<(String, String)> = Vec::new();
    for (name, buckets) in found {
        let (name, list) = (shown_name(name), buckets.list());
        match row.iter_mut().find(|it| it.0 == name) {
            Some(before) => before.1 = list,
            None => row.push((name, list)),
        }
    }
    let all = if n_all == 0 { json!([]) } else { json!([{"totalSets": n_all}]) };
    row.push(("all".to_owned(), all.to_string()));
    let members = row.into_iter().map(|(name, list)| format!("{}:{list}", Value::from(name)));
    let body = format!("[{{{}}}]", members.collect::<Vec<_>>().join(","));
    Ok(answer::stored_json(StatusCode::OK, body.into()))
}

/// The buckets of a facet, written as JSON: as values, a million of them would take several times the room.
#[derive(Debug, Default)]
struct Buckets {
    text: String,
}

impl Buckets {
    /// Adds a bucket; `id` is JSON.
    fn push(&mut self, id: &str, n_records: u64) {
        let comma = if self.text.is_empty() { "" } else { "," };
        self.text.extend([comma, "{\"_id\":", id, ",\"count\":", &n_records.to_string(), "}"]);
    }

    fn list(self) -> String {
        format!("[{}]", self.text)
    }
}

/// Says whether a facet counts a field that has at most one value and is not a date. For lists and dates, the number of
/// records without a value is not reported.
fn has_one_value(kind: &Kind, facet: &str) -> bool {
    let path = kind.facet_named(facet).map(|it| it.path);
    path.and_then(|it| kind.column_of(&it.into()))
        .is_some_and(|it| it.arity == Arity::One && it.ty != Type::Instant)
}

/// Says whether a name is a field of the kind's records.
fn is_field(kind: &Kind, name: &str) -> bool {
    let is_dataset_field = || {
        let first = name.split('.').next().unwrap_or(name);
        kind.name == DATASET.name && dto::v4().fields.iter().any(|it| it.name == first)
    };
    kind.column_of(&name.into()).is_some() || is_dataset_field()
}

/// Counts the values of fields that are no facets: buckets by value, in descending order. As with declared facets, the
/// number of records without a value is not reported for lists and dates.
fn count_fields(
    view: &mut View<'_>,
    kind: &'static Kind,
    condition: &Expr,
    names: &[String],
) -> Result<Vec<Buckets>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let is_date = |name: &String| {
        kind.column_of(&name.as_str().into()).is_some_and(|it| it.ty == Type::Instant)
            || DATES.contains(&name.as_str())
    };
    let fields: Vec<Field> =
        names.iter().map(|it| Field { path: it.as_str().into(), by_day: is_date(it) }).collect();
    let counted = view.count_values(kind, condition, &fields)?;
    let of_field = |(field, mut found): (&Field, ValueCounts)| {
        if field.by_day {
            return day_buckets(found.n_records);
        }
        if found.n_without != 0 {
            found.n_records.insert("null".to_owned(), found.n_without);
        }
        buckets(found.n_records)
    };
    Ok(fields.iter().zip(counted).map(of_field).collect())
}

/// The number of records by value, which is written as JSON.
type Counted = HashMap<String, u64>;

/// Returns the buckets of values, in descending order. Records without a value come last.
fn buckets(counts: Counted) -> Buckets {
    let mut list: Vec<(Place, String, u64)> =
        counts.into_iter().map(|(value, n)| (Place::of(&value), value, n)).collect();
    list.sort_unstable_by(|a, b| b.0.compare(&a.0).then_with(|| b.1.cmp(&a.1)));
    let mut buckets = Buckets::default();
    list.iter().for_each(|(_, value, n)| buckets.push(value, *n));
    buckets
}

/// Returns the buckets of days, the last one first.
fn day_buckets(counts: Counted) -> Buckets {
    let mut days: BTreeMap<[u32; 3], u64> = BTreeMap::new();
    counts.iter().for_each(|(text, n)| *days.entry(day_of(text)).or_default() += n);
    let mut buckets = Buckets::default();
    days.iter().rev().for_each(|(day, n)| buckets.push(&shown_day(*day).to_string(), *n));
    buckets
}

/// Where a value is in the order of buckets, which descends.
enum Place {
    Last,
    Text(String),
    Number(f64),
    /// Values of other types sort by their texts.
    Other,
}

impl Place {
    fn of(value: &str) -> Self {
        match value.as_bytes().first() {
            Some(b'n') => Self::Last,
            Some(b'"') => serde_json::from_str(value).map_or(Self::Other, Self::Text),
            Some(b'-' | b'0'..=b'9') => value.parse().map_or(Self::Other, Self::Number),
            _ => Self::Other,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let rank = |it: &Self| match it {
            Self::Last => 0,
            Self::Text(_) => 1,
            Self::Number(_) => 2,
            Self::Other => 3,
        };
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// Maximum number of facets in one request.
const MAX_FACETS: usize = 64;

/// Returns the facets of a request: a JSON list of names.
fn names(query: &QueryText) -> Result<Vec<String>, ScicatError> {
    let Some(text) = query.get("facets").filter(|it| !it.is_empty()) else { return Ok(Vec::new()) };
    match json_parameter("facets", text)? {
        Value::Array(list) if list.len() <= MAX_FACETS => {
            Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Value::Array(list) => {
            let n = list.len();
            Err(ScicatError::bad_request(format!("{n} facets are asked for, at most {MAX_FACETS}")))
        }
        other => Err(ScicatError::bad_request(format!("facets must be a list of names, found {other}"))),
    }
}

/// Returns the name that is shown: `x` for `datasetlifecycle.x`.
fn shown_name(facet: &str) -> String {
    facet.rsplit('.').next().unwrap_or(facet).to_owned()
}

/// Returns the `_id` of the bucket of a declared facet's value, as JSON.
fn id_of(kind: &Kind, facet: &str, value: &str) -> String {
    let declared = kind.facet_named(facet);
    match declared.map(|it| it.counts) {
        Some(Counts::Days) => shown_day(day_of(value)).to_string(),
        _ => match declared.and_then(|it| kind.column_of(&it.path.into())).map(|it| it.ty) {
            Some(Type::Boolean | Type::Integer | Type::Real) => value.to_owned(),
            _ => Value::from(value).to_string(),
        },
    }
}

/// Returns year, month and day of `2020-01-15`.
fn day_of(text: &str) -> [u32; 3] {
    let mut parts = text.split('-').map(|it| it.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// Returns `{"year":2020,"month":1,"day":15}`.
fn shown_day([year, month, day]: [u32; 3]) -> Value {
    json!({"year": year, "month": month, "day": day})
}

pub(crate) async fn metadata_keys(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let fields = crate::app::object_parameter(&query, "fields")?;
    let found = fullquery::parse(&fields, &SEARCH, &asker.rights)?;
    answer_metadata_keys(&app, &asker, &DATASET, &fields, found.condition).await
}

/// Answers with the metadata keys of the records that satisfy a condition; `metadataKey` narrows them.
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
    let key = |it: FacetCount| scientific::key_and_name(&it.value).0.to_owned();
    let mut keys: Vec<String> = counts.into_iter().flatten().map(key).collect();
    keys.retain(|key| key.to_lowercase().contains(&wanted));
    keys.reverse();
    // A key may occur with several human-readable names.
    keys.dedup();
    keys.truncate(app.settings.metadata_keys_return_limit);
    Ok(answer::json(StatusCode::OK, &keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_sorted() {
        let counts = [("10", 1), ("9", 2), ("null", 3)].map(|(value, n)| (value.to_owned(), n));
        assert_eq!(
            buckets(counts.into()).list(),
            r#"[{"_id":10,"count":1},{"_id":9,"count":2},{"_id":null,"count":3}]"#
        );
        let mixed = [("true", 1), ("\"b\"", 1), ("-1.5", 1), ("\"a\"", 1), ("[1]", 1), ("2", 1)];
        let mixed = mixed.map(|(value, n)| (value.to_owned(), n));
        let list: Value = serde_json::from_str(&buckets(mixed.into()).list()).expect("JSON");
        let ids: Vec<&Value> = list.as_array().expect("a list").iter().map(|it| &it["_id"]).collect();
        assert_eq!(json!(ids), json!([true, [1], 2, -1.5, "b", "a"]));
        let days = ["2020-02-01", "2020-10-01"].map(|it| (it.to_owned(), 1));
        assert_eq!(
            day_buckets(days.into()).list(),
            r#"[{"_id":{"year":2020,"month":10,"day":1},"count":1},{"_id":{"year":2020,"month":2,"day":1},"count":1}]"#
        );
    }
}
