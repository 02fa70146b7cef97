//! History: who changed which record, and what was there before (sections 4.7 and 9 of the contract). Kept for the
//! sorts of records that `trackables` names, written in the transaction of the change itself.
//!
//! The sums that a dataset keeps of its blocks change with the blocks, not by anybody's hand: they leave no entry.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{
    Column, Direction, Expr, Index, Kind, Query, Txn, Type, Value as Condition, View, Weight,
};
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat};
use crate::condition::{self, Language};
use crate::datasets::change::object;
use crate::datasets::read::object_parameter;
use crate::error::{Answer, ScicatError};
use crate::resource::{RESOURCES, Resource};
use crate::settings::Settings;

/// Entries of history.
pub(crate) static HISTORY: Kind = Kind {
    columns: &[
        Column::one("subsystem", Type::Text),
        Column::one("documentId", Type::Text),
        Column::one("operation", Type::Text),
        Column::one("user", Type::Text),
        Column::one("timestamp", Type::Instant),
    ],
    indexes: &[Index::on(&["documentId"]), Index::on(&["timestamp"])],
    ..Kind::named("scicat_history")
};

/// Entries in one answer when nothing is said.
const DEFAULT_LIMIT: u64 = 100;
/// Changes shown in a dataset's own `history` at most, the latest.
const SHOWN_CHANGES: u64 = 1_000;
/// What entries of datasets say of themselves.
pub(crate) const DATASETS: &str = "Dataset";
/// Fields that change with every write.
const NOTES: [&str; 3] = ["updatedAt", "updatedBy", "__v"];

/// A sort of records whose changes may be tracked, as its resource describes it.
pub(crate) struct Tracked {
    /// As `trackables` and the entries name it.
    pub(crate) name: &'static str,
    /// Its records.
    pub(crate) kind: &'static Kind,
    /// The groups that may read the history of such records.
    pub(crate) readers: fn(&Settings) -> &[String],
}

/// A sort of records whose changes may be tracked.
#[derive(Clone, Copy)]
pub(crate) struct Subsystem(&'static Tracked);

impl Subsystem {
    fn all() -> impl Iterator<Item = Self> {
        RESOURCES.iter().flat_map(|it| it.tracked).map(Self)
    }

    /// Of a kind of records, when changes of it can be tracked.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        Self::all().find(|it| it.0.kind.name == kind.name)
    }

    /// The names of all.
    pub(crate) fn names() -> Vec<&'static str> {
        Self::all().map(Self::name).collect()
    }

    fn name(self) -> &'static str {
        self.0.name
    }

    /// The groups that may read the history of such records.
    fn readers(self, settings: &Settings) -> &[String] {
        (self.0.readers)(settings)
    }
}

impl std::fmt::Debug for Subsystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Subsystem {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Subsystem {}

/// Whether changes of a sort of records leave entries, and how much each holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// They leave none.
    Off,
    /// Whole documents before and after.
    Documents(Subsystem),
    /// Only what differs.
    Differences(Subsystem),
}

impl Tracking {
    /// As the settings say for `subsystem`.
    pub(crate) fn of(settings: &Settings, subsystem: Option<Subsystem>) -> Self {
        let is_named = |it: &Subsystem| settings.trackables.iter().any(|name| name == it.name());
        match subsystem.filter(is_named) {
            None => Self::Off,
            Some(subsystem) if settings.trackable_strategy == "delta" => Self::Differences(subsystem),
            Some(subsystem) => Self::Documents(subsystem),
        }
    }

    /// Notes that a record became `after`, whose `updatedBy` and `updatedAt` say by whom and when. `version` is that
    /// which the record had before.
    pub(crate) fn note_change(
        self,
        txn: &mut Txn<'_>,
        id: &str,
        version: u64,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Result<(), ScicatError> {
        let is_same = |name: &String| NOTES.contains(&name.as_str()) || before.get(name) == after.get(name);
        if self == Self::Off || before.keys().chain(after.keys()).all(is_same) {
            return Ok(());
        }
        let note = |name: &str| after.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (user, now) = (note("updatedBy"), note("updatedAt"));
        self.put(txn, "update", (id, version), (before, after), (&user, &now))
    }

    /// Notes that `user` deleted a record.
    pub(crate) fn note_deletion(
        self,
        txn: &mut Txn<'_>,
        id: &str,
        version: u64,
        before: &Map<String, Value>,
        user: &str,
        now: &str,
    ) -> Result<(), ScicatError> {
        self.put(txn, "delete", (id, version), (before, &Map::new()), (user, now))
    }

    fn put(
        self,
        txn: &mut Txn<'_>,
        operation: &str,
        (id, version): (&str, u64),
        (before, after): (&Map<String, Value>, &Map<String, Value>),
        (user, now): (&str, &str),
    ) -> Result<(), ScicatError> {
        let (subsystem, before, after) = match self {
            Self::Off => return Ok(()),
            Self::Documents(subsystem) => (subsystem, before.clone(), after.clone()),
            Self::Differences(subsystem) => {
                let (mut before, mut after) = differences(before, after);
                // Who and when stand in the entry itself.
                for name in NOTES {
                    before.shift_remove(name);
                    after.shift_remove(name);
                }
                (subsystem, before, after)
            }
        };
        let entry = json!({
            "subsystem": subsystem.name(), "documentId": id, "before": before, "after": after,
            "operation": operation, "user": user, "timestamp": now,
        });
        // An id that comes anew counts its versions anew, so the time belongs to the name.
        let name = format!("{}/{id}/{version}/{now}", subsystem.name());
        txn.put(&HISTORY, &name, &entry)?;
        Ok(())
    }
}

/// What of two documents differs, objects within them taken apart.
fn differences(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut was, mut is) = (Map::new(), Map::new());
    for (name, old) in before {
        match (old, after.get(name)) {
            (old, Some(new)) if old == new => {}
            (Value::Object(old), Some(Value::Object(new))) => {
                let (old, new) = differences(old, new);
                was.insert(name.clone(), Value::Object(old));
                is.insert(name.clone(), Value::Object(new));
            }
            (old, new) => {
                was.insert(name.clone(), old.clone());
                if let Some(new) = new {
                    is.insert(name.clone(), new.clone());
                }
            }
        }
    }
    for (name, new) in after {
        if !before.contains_key(name) {
            is.insert(name.clone(), new.clone());
        }
    }
    (was, is)
}

/// The `history` of a dataset as v3 shows it: for each change, the oldest first, the fields that changed.
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

/// History, for the rest of the dialect.
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

/// The entries that the caller may read. Errors: 403 for who may read none.
fn readable(app: &Scicat, asker: &Asker) -> Result<Expr, ScicatError> {
    if asker.rights.is_admin {
        return Ok(Expr::All);
    }
    let is_reader = |it: &Subsystem| asker.caller().is_in_any(it.readers(&app.settings));
    let names: Vec<Condition> =
        Subsystem::all().filter(is_reader).map(|it| Condition::Text(it.name().to_owned())).collect();
    if names.is_empty() {
        Err(ScicatError::forbidden_resource())
    } else {
        Ok(Expr::In("subsystem".into(), names))
    }
}

/// The condition of `filter`, e.g. `{"subsystem":"Dataset","documentId":"…"}`.
fn condition(query: &QueryText) -> Result<Expr, ScicatError> {
    condition::parse(&object_parameter(query, "filter")?, &HISTORY, Language::LoopBack)
}

/// `GET /history?filter=&skip=&limit=`, and of one sort alone: the latest first.
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

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn differences_are_taken_from_inside() {
        let before = map(json!({"a": 1, "b": {"c": 1, "d": {"e": [1]}}, "gone": 1, "same": {"x": 1}}));
        let after = map(json!({"a": 2, "b": {"c": 1, "d": {"e": [2]}}, "new": null, "same": {"x": 1}}));
        let (was, is) = differences(&before, &after);
        assert_eq!(Value::Object(was), json!({"a": 1, "b": {"d": {"e": [1]}}, "gone": 1}));
        assert_eq!(Value::Object(is), json!({"a": 2, "b": {"d": {"e": [2]}}, "new": null}));
    }

    #[test]
    fn every_sort_has_its_kind() {
        for subsystem in Subsystem::all() {
            let kinds = crate::KINDS.iter().filter(|it| Subsystem::of(it) == Some(subsystem));
            assert_eq!(kinds.count(), 1, "{subsystem:?}");
        }
        assert_eq!(Subsystem::names().len(), 9);
    }
}
