//! `GET /api/v4/metadatakeys`: the metadata keys that the caller may see, counted from the records
//! themselves, so that there is no separate table of keys that could become stale.

use std::collections::{BTreeMap, HashSet};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use pinakes_accounts::Caller;
use pinakes_http::answer;
use pinakes_store::{
    Direction, Expr, Kind, Order, Query, StoreError, Value as Condition, View, Weight, matches,
};
use serde_json::{Map, Value, json};

use crate::app::{Asker, QueryText, Scicat};
use crate::documents::text;
use crate::error::{Answer, ScicatError};
use crate::filter::Filter;
use crate::kinds::DATASET;
use crate::kinds::INSTRUMENT;
use crate::kinds::METADATA_KEYS;
use crate::kinds::PROPOSAL;
use crate::kinds::SAMPLE;
use crate::scientific;
use crate::strict;

/// The name under which the server itself makes the rows.
const MADE_BY: &str = "system";
/// Maximum number of groups that are listed with a key.
const MAX_GROUPS: usize = 256;

/// Returns the sources of keys, as rows name them, each with the condition on what the caller may see.
fn visible(asker: &Asker) -> [(&'static str, &'static Kind, Expr); 4] {
    let proposals = asker.rights.of_keeper(&asker.settings().proposal_groups);
    [
        ("Dataset", &DATASET, asker.rights.visible()),
        ("Proposal", &PROPOSAL, proposals.visible()),
        ("Sample", &SAMPLE, asker.rights.of_keeper(&[]).visible()),
        ("Instrument", &INSTRUMENT, Expr::All),
    ]
}

/// Fields of a row.
const FIELDS: [&str; 13] = [
    "_id",
    "id",
    "key",
    "sourceType",
    "sourceId",
    "humanReadableName",
    "userGroups",
    "isPublished",
    "usageCount",
    "createdAt",
    "updatedAt",
    "createdBy",
    "updatedBy",
];

/// Keys have no kind of their own: conditions on them are evaluated row by row.
static ROW: Kind = Kind::named("scicat_metadata_key");

pub(super) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v4/metadatakeys", get(list))
        .route("/api/v4/metadatakeys/findone", get(find_one))
        .route("/api/v4/metadatakeys/count", get(count))
}

async fn list(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let filter = strict::parse(&query, &ROW, &FIELDS)?;
    let rows = selected(&asker, &filter).await?;
    let window = &filter.window;
    let (skip, limit) = (as_count(window.skip), as_count(window.limit));
    let chosen = rows.into_iter().skip(skip).take(limit).map(|mut row| {
        filter.fields.apply(&mut row);
        row
    });
    Ok(answer::json(StatusCode::OK, &chosen.collect::<Vec<_>>()))
}

async fn find_one(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let filter = strict::parse(&query, &ROW, &FIELDS)?;
    Ok(match selected(&asker, &filter).await?.into_iter().next() {
        Some(row) => answer::json(StatusCode::OK, &row),
        None => answer::empty(StatusCode::OK),
    })
}

async fn count(_: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let filter = strict::parse(&query, &ROW, &FIELDS)?;
    let count = selected(&asker, &filter).await?.len();
    Ok(answer::json(StatusCode::OK, &json!({"count": count})))
}

fn as_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the rows that satisfy a filter, in its order.
async fn selected(asker: &Asker, filter: &Filter) -> Result<Vec<Map<String, Value>>, ScicatError> {
    let (visible, caller, is_admin) = (visible(asker), asker.caller().clone(), asker.rights.is_admin);
    let rows = asker.db.read(Weight::Scan, move |view| rows(view, &visible, &caller, is_admin)).await;
    let mut rows = rows.map_err(|error: StoreError| ScicatError::from(error))?;
    rows.retain(|row| matches(&filter.condition, &Value::Object(row.clone())));
    sort(&mut rows, &filter.window.order);
    Ok(rows)
}

/// Sorts by one field, and by key within it. All keys of a source have the same times: a sort by these, which is v4's
/// default, leaves them sorted by key.
fn sort(rows: &mut [Map<String, Value>], order: &[Order]) {
    rows.sort_by_cached_key(|row| text(row, "key").to_owned());
    let Some((field, direction)) =
        order.first().and_then(|it| Some((it.path.as_steps().first()?, it.direction)))
    else {
        return;
    };
    match field.as_str() {
        "usageCount" => rows.sort_by_key(|row| row.get("usageCount").and_then(Value::as_u64)),
        "key" | "_id" | "id" | "sourceType" | "humanReadableName" => {
            rows.sort_by_cached_key(|row| text(row, field).to_owned());
        }
        _ => return,
    }
    if direction == Direction::Descending {
        rows.reverse();
    }
}

/// Returns a row for each key and human-readable name of each source.
fn rows(
    view: &mut View<'_>,
    visible: &[(&'static str, &'static Kind, Expr); 4],
    caller: &Caller,
    is_admin: bool,
) -> Result<Vec<Map<String, Value>>, StoreError> {
    let published = Expr::Is("isPublished".into(), Condition::Boolean(true));
    let mut rows = Vec::new();
    for (source, kind, visible) in visible {
        let has_groups = !kind.class_fields.is_empty();
        let counts = keys(view, kind, visible)?;
        if counts.is_empty() {
            continue;
        }
        let [oldest, newest] = times(view, kind, visible)?;
        let is_public: HashSet<String> = if has_groups {
            keys(view, kind, &published)?.into_iter().map(|it| it.0).collect()
        } else {
            counts.iter().map(|it| it.0.clone()).collect()
        };
        let of_groups =
            if has_groups { groups_of_keys(view, kind, visible, caller, is_admin)? } else { BTreeMap::new() };
        for (counted, n_records) in counts {
            let (key, name) = scientific::key_and_name(&counted);
            let id =
                if name.is_empty() { format!("{source}_{key}") } else { format!("{source}_{key}_{name}") };
            let row = json!({
                "_id": id, "id": id, "key": key, "sourceType": source, "humanReadableName": name,
                "userGroups": of_groups.get(&counted).cloned().unwrap_or_default(),
                "isPublished": is_public.contains(&counted), "usageCount": n_records,
                "createdBy": MADE_BY, "updatedBy": MADE_BY, "createdAt": oldest, "updatedAt": newest,
            });
            if let Value::Object(row) = row {
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// Returns when the oldest and the newest record of a source that the caller may see were created: keys have no times
/// of their own.
fn times(view: &mut View<'_>, kind: &'static Kind, visible: &Expr) -> Result<[Value; 2], StoreError> {
    let mut time = |direction| {
        let at_end = Query::filter(visible.clone()).sorted("createdAt", direction).window(0, 1);
        let record = view.find(kind, &at_end)?.into_iter().next();
        let body = record.map(|it| it.json()).transpose()?.unwrap_or_default();
        Ok::<_, StoreError>(body.get("createdAt").cloned().unwrap_or_default())
    };
    Ok([time(Direction::Ascending)?, time(Direction::Descending)?])
}

/// Returns for each key the groups whose records contain it: all groups for admins, otherwise only the
/// caller's own.
fn groups_of_keys(
    view: &mut View<'_>,
    kind: &'static Kind,
    visible: &Expr,
    caller: &Caller,
    is_admin: bool,
) -> Result<BTreeMap<String, Vec<String>>, StoreError> {
    let groups: Vec<String> = if is_admin {
        let owners = view.facets(kind, visible, &["ownerGroup"])?.into_iter().flatten();
        owners.take(MAX_GROUPS).map(|it| it.value).collect()
    } else {
        caller.groups.to_vec()
    };
    let mut of_keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for group in groups {
        let named = Condition::Text(group.clone());
        let of_group = Expr::Or(vec![
            Expr::Is("ownerGroup".into(), named.clone()),
            Expr::Is("accessGroups".into(), named),
        ]);
        for (counted, _) in keys(view, kind, &visible.clone().and(of_group))? {
            of_keys.entry(counted).or_default().push(group.clone());
        }
    }
    Ok(of_keys)
}

fn keys(
    view: &mut View<'_>,
    kind: &'static Kind,
    condition: &Expr,
) -> Result<Vec<(String, u64)>, StoreError> {
    let counts = view.facets(kind, condition, &[METADATA_KEYS])?;
    Ok(counts.into_iter().flatten().map(|it| (it.value, it.n_records)).collect())
}
