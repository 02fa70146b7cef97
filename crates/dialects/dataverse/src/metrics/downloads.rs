//! Downloads by dataset and by file, and numbers of distinct users: `/api/info/metrics/uniquedownloads` and related
//! routes.

use std::collections::{BTreeMap, HashMap};

use pinakes_store::{Expr, Query, View, Weight};
use serde_json::Value;

use super::{asked_month, below, table};
use crate::app::Call;
use crate::asker::Asker;
use crate::datasets::wanted::is_dataset_kept_from;
use crate::error::{Answer, ApiError};
use crate::files::{Found, rows};
use crate::guestbooks::{self, ENTRY};
use crate::routing::Routes;
use crate::{datasets, stored};

/// Adds the routes.
pub(crate) fn routes(mut routes: Routes) -> Routes {
    for (name, of, people) in [
        ("uniquedownloads", Of::Datasets, true),
        ("uniquefiledownloads", Of::Files, true),
        ("filedownloads", Of::Files, false),
    ] {
        let path = |rest: &str| format!("/info/metrics/{name}{rest}");
        routes = routes
            .get(&path(""), move |call| counted(call, of, people, false))
            .get(&path("/toMonth"), move |call| counted(call, of, people, false))
            .get(&path("/toMonth/{month}"), move |call| counted(call, of, people, false))
            .get(&path("/monthly"), move |call| counted(call, of, people, true));
    }
    routes
}

/// The object of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Datasets,
    Files,
}

/// Who downloaded: an account, the mail address that a guest gave, or an unknown guest.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Person {
    User(i64),
    Mail(String),
    Guest,
}

impl Person {
    fn of(entry: &guestbooks::Entry) -> Self {
        let mail = entry.response.get("email").and_then(Value::as_str).filter(|it| !it.is_empty());
        match (entry.user, mail) {
            (Some(user), _) => Self::User(user),
            (None, Some(mail)) => Self::Mail(mail.to_lowercase()),
            (None, None) => Self::Guest,
        }
    }
}

/// A dataset or file: its number and its name.
struct Item {
    id: i64,
    pid: String,
}

/// Downloads of one object.
#[derive(Debug, Default)]
struct Downloads {
    /// Their number, by month.
    by_month: BTreeMap<String, u64>,
    /// The month in which each person downloaded first, if people are counted.
    people: HashMap<Person, String>,
}

impl Downloads {
    fn add(&mut self, month: &str, person: Option<Person>) {
        *self.by_month.entry(month.to_owned()).or_default() += 1;
        let Some(person) = person else { return };
        let first = self.people.entry(person).or_insert_with(|| month.to_owned());
        if month < first.as_str() {
            month.clone_into(first);
        }
    }

    /// Returns the number of downloads, or of people, up to the end of each month with downloads.
    fn cumulative(&self, people: bool) -> Vec<(String, u64)> {
        let mut new = self.by_month.clone();
        if people {
            new.values_mut().for_each(|n| *n = 0);
            self.people.values().for_each(|month| *new.entry(month.clone()).or_default() += 1);
        }
        let mut n = 0;
        let up_to = |(month, more)| {
            n += more;
            (month, n)
        };
        new.into_iter().map(up_to).collect()
    }
}

/// Returns the published datasets or files that were downloaded up to the end of a month, without those hidden from the
/// caller.
fn downloads(
    view: &mut View<'_>,
    asker: &Asker,
    (of, people): (Of, bool),
    parent: Option<&str>,
    month: Option<&str>,
) -> Result<Vec<(Item, Downloads)>, ApiError> {
    let below = below(view, parent)?;
    let mut found: BTreeMap<i64, Downloads> = BTreeMap::new();
    view.try_for_each(&ENTRY, &Query::filter(Expr::All), |record| {
        let entry: guestbooks::Entry = stored::parsed(&record)?;
        let on = entry.time.get(..7).unwrap_or_default();
        if !entry.is_request && month.is_none_or(|month| on <= month) {
            let id = if of == Of::Files { entry.file } else { entry.dataset };
            found.entry(id).or_default().add(on, people.then(|| Person::of(&entry)));
        }
        Ok::<_, ApiError>(())
    })?;
    let mut items = Vec::new();
    for (id, downloads) in found {
        let file = if of == Of::Files { rows::data_file(view, id)? } else { None };
        let dataset = file.as_ref().map_or(id, |it| it.dataset);
        let Some(dataset) = datasets::by_id(view, dataset)? else { continue };
        let is_asked = below.as_ref().is_none_or(|it| it.contains(&dataset.owner));
        if dataset.released.is_none() || !is_asked || is_dataset_kept_from(view, asker, &dataset)? {
            continue;
        }
        let pid = match (of, file) {
            (Of::Datasets, _) => dataset.pid,
            (Of::Files, None) => continue,
            (Of::Files, Some(file)) => {
                let found = Found::of(view, file)?;
                if found.published_row().is_none() {
                    continue;
                }
                found.file.pid.unwrap_or_default()
            }
        };
        items.push((Item { id, pid }, downloads));
    }
    Ok(items)
}

/// Answers with a row and count per object; if by month, with cumulative counts.
async fn counted(call: Call, of: Of, people: bool, by_month: bool) -> Answer {
    let (parent, month) = (call.query.filled("parentAlias").map(str::to_owned), asked_month(&call)?);
    let asker = call.asker.clone();
    let read =
        move |view: &mut View<'_>| downloads(view, &asker, (of, people), parent.as_deref(), month.as_deref());
    let items = call.db().read(Weight::Scan, read).await?;
    let mut rows: Vec<(String, Item, u64)> = Vec::new();
    for (item, downloads) in items {
        let counts = downloads.cumulative(people);
        let first = if by_month { 0 } else { counts.len().saturating_sub(1) };
        rows.extend(counts.into_iter().skip(first).map(|(month, n)| {
            let on = if by_month { month } else { String::new() };
            (on, Item { id: item.id, pid: item.pid.clone() }, n)
        }));
    }
    rows.sort_by(|a, b| (&a.0, b.2, a.1.id).cmp(&(&b.0, a.2, b.1.id)));
    match (of, by_month) {
        (Of::Datasets, false) => table(
            &call,
            ["pid", "count"],
            rows.into_iter().map(|it| [it.1.pid.into(), it.2.into()]).collect(),
        ),
        (Of::Datasets, true) => table(
            &call,
            ["date", "pid", "count"],
            rows.into_iter().map(|it| [it.0.into(), it.1.pid.into(), it.2.into()]).collect(),
        ),
        (Of::Files, false) => table(
            &call,
            ["id", "pid", "count"],
            rows.into_iter().map(|it| [it.1.id.into(), it.1.pid.into(), it.2.into()]).collect(),
        ),
        (Of::Files, true) => table(
            &call,
            ["date", "id", "pid", "count"],
            rows.into_iter().map(|it| [it.0.into(), it.1.id.into(), it.1.pid.into(), it.2.into()]).collect(),
        ),
    }
}
