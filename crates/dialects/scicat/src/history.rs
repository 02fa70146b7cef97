//! History: who changed which record, and its values before (sections 4.7 and 9 of the contract). Kept for the
//! types of records that `trackables` names, and written in the transaction of the change itself.
//!
//! The sums that a dataset keeps over its blocks are updated automatically with the blocks, so their changes are
//! not recorded.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Direction, Expr, Query, Value as Condition, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::object_parameter;
use crate::app::{Asker, Path, QueryText, Scicat};
use crate::condition::{self, Language};
use crate::documents::object;
use crate::error::{Answer, ScicatError};
use crate::kinds::HISTORY;
use crate::resource::Resource;
use crate::settings::Settings;
use crate::tracking::{DATASETS, NOTES, Subsystem};

/// Number of entries in one answer if the request does not say.
const DEFAULT_LIMIT: u64 = 100;
/// Maximum number of changes shown in a dataset's own `history`; the latest are shown.
const SHOWN_CHANGES: u64 = 1_000;

/// Returns the `history` of a dataset as v3 shows it: for each change, oldest first, the fields that changed.
pub(crate) fn of_dataset(view: &mut View<'_>, pid: &str) -> Result<Vec<Value>, ScicatError> {
    let of_dataset = Expr::Is("documentId".into(), Condition::Text(pid.to_owned()))
        .and(Expr::Is("subsystem".into(), Condition::Text(DATASETS.to_owned())))
        .and(Expr::Is("operation".into(), Condition::Text("update".to_owned())));
    let query = Query::filter(of_dataset).sorted("timestamp", Direction::Descending).window(0, SHOWN_CHANGES);
    let mut changes = Vec::new();
    for record in view.find(&HISTORY, &query)? {
        changes.push(shown_change(&object(&record)?));
    }
    changes.reverse();
    Ok(changes)
}

fn shown_change(entry: &Map<String, Value>) -> Value {
    let part = |name: &str| entry.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (part("before"), part("after"));
    let mut change = Map::new();
    change.insert("_id".to_owned(), "".into());
    change.insert("updatedAt".to_owned(), entry.get("timestamp").cloned().unwrap_or_default());
    change.insert("updatedBy".to_owned(), entry.get("user").cloned().unwrap_or_default());
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let (old, new) = (before.get(name), after.get(name));
        if NOTES.contains(&name.as_str()) || old == new {
            continue;
        }
        let mut values = Map::new();
        for (key, value) in [("previousValue", old), ("currentValue", new)] {
            if let Some(value) = value {
                values.insert(key.to_owned(), value.clone());
            }
        }
        change.insert(name.clone(), Value::Object(values));
    }
    Value::Object(change)
}

/// The routes and kind of the history.
pub(crate) static RESOURCE: Resource = Resource { kinds: &[&HISTORY], ..Resource::of_routes(routes) };

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/history", get(|a, b, c| list(a, b, c, None)))
        .route("/api/v3/history/count", get(count))
        .route(
            "/api/v3/history/collection/{subsystem}",
            get(|a, b, c, d: Path<String>| list(a, b, c, Some(d.0))),
        )
}

/// Returns the groups that may read the history of a type of records.
fn readers(subsystem: Subsystem, settings: &Settings) -> &[String] {
    match subsystem.name() {
        DATASETS => &settings.history_access_dataset_groups,
        "OrigDatablock" => &settings.history_access_origdatablock_groups,
        "Datablock" => &settings.history_access_datablock_groups,
        "Attachment" => &settings.history_access_attachment_groups,
        "Sample" => &settings.history_access_sample_groups,
        "Proposal" => &settings.history_access_proposal_groups,
        "Instrument" => &settings.history_access_instrument_groups,
        "Policy" => &settings.history_access_policies_groups,
        "PublishedData" => &settings.history_access_published_data_groups,
        // No setting names readers for other types.
        _ => &[],
    }
}

/// Returns the condition on the entries that the caller may read. Errors: 403 if the caller may read none.
fn readable(app: &Scicat, asker: &Asker) -> Result<Expr, ScicatError> {
    if asker.rights.is_admin {
        return Ok(Expr::All);
    }
    let is_reader = |it: &Subsystem| asker.caller().is_in_any(readers(*it, &app.settings));
    let names: Vec<Condition> =
        Subsystem::all().filter(is_reader).map(|it| Condition::Text(it.name().to_owned())).collect();
    if names.is_empty() {
        Err(ScicatError::forbidden_resource())
    } else {
        Ok(Expr::In("subsystem".into(), names))
    }
}

/// Parses the condition of `filter`, such as `{"subsystem":"Dataset","documentId":"…"}`.
fn condition(query: &QueryText) -> Result<Expr, ScicatError> {
    condition::parse(&object_parameter(query, "filter")?, &HISTORY, Language::LoopBack)
}

/// `GET /history?filter=&skip=&limit=`, and the same for one type of records: latest entries first.
async fn list(app: State<Scicat>, asker: Asker, query: QueryText, subsystem: Option<String>) -> Answer {
    let mut wanted = readable(&app, &asker)?.and(condition(&query)?);
    if let Some(name) = subsystem {
        let known = Subsystem::all().find(|it| it.name().eq_ignore_ascii_case(&name));
        let name = known.map_or(name, |it| it.name().to_owned());
        wanted = wanted.and(Expr::Is("subsystem".into(), Condition::Text(name)));
    }
    let (skip, limit) = (number(&query, "skip", 0)?, number(&query, "limit", DEFAULT_LIMIT)?);
    let rows = Query::filter(wanted.clone()).sorted("timestamp", Direction::Descending).window(skip, limit);
    let (entries, n_all) = asker
        .db
        .read(Weight::Scan, move |view| {
            let entries = view.find(&HISTORY, &rows)?;
            Ok::<_, ScicatError>((entries, view.count(&HISTORY, &wanted)?))
        })
        .await?;
    let items: Result<Vec<_>, _> = entries.iter().map(object).collect();
    let items = items?;
    Ok(answer::json(
        StatusCode::OK,
        &json!({"count": items.len(), "items": items, "totalCount": n_all, "skip": skip, "limit": limit}),
    ))
}

async fn count(app: State<Scicat>, asker: Asker, query: QueryText) -> Answer {
    let wanted = readable(&app, &asker)?.and(condition(&query)?);
    let n = asker.db.read(Weight::Scan, move |view| view.count(&HISTORY, &wanted)).await;
    let n: u64 = n.map_err(|error: pinakes_store::StoreError| ScicatError::from(error))?;
    Ok(answer::json(StatusCode::OK, &json!({"count": n})))
}

fn number(query: &QueryText, name: &str, default: u64) -> Result<u64, ScicatError> {
    match query.get(name).filter(|it| !it.is_empty()) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| {
            ScicatError::bad_request(format!(
                "{name} must be a whole number that is not negative, found {text}"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_has_its_kind() {
        for subsystem in Subsystem::all() {
            let kinds = crate::resources::KINDS.iter().filter(|it| Subsystem::of(it) == Some(subsystem));
            assert_eq!(kinds.count(), 1, "{subsystem:?}");
        }
        assert_eq!(Subsystem::names().len(), 9);
    }

    #[test]
    fn every_sort_has_its_readers() {
        let named = |it: &str| vec![it.to_owned()];
        let settings = Settings {
            history_access_dataset_groups: named("Dataset"),
            history_access_origdatablock_groups: named("OrigDatablock"),
            history_access_datablock_groups: named("Datablock"),
            history_access_attachment_groups: named("Attachment"),
            history_access_sample_groups: named("Sample"),
            history_access_proposal_groups: named("Proposal"),
            history_access_instrument_groups: named("Instrument"),
            history_access_policies_groups: named("Policy"),
            history_access_published_data_groups: named("PublishedData"),
            ..Settings::default()
        };
        for subsystem in Subsystem::all() {
            assert_eq!(readers(subsystem, &settings), [subsystem.name()]);
        }
    }
}
