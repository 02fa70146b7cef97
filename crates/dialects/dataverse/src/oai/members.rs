//! Sets and their members.

use std::collections::BTreeMap;

use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View};
use serde::{Deserialize, Serialize};

use crate::datasets::version::{self, Version};
use crate::datasets::{self, Dataset};
use crate::error::ApiError;
use crate::search::{index, query};
use crate::{clock, stored};

/// Sets by name: body is a [`Set`].
pub(crate) static SET: Kind = Kind::named("dataverse_oai_set");

/// Members of sets, by `{set}/{pid}`: body is a [`Member`]. The set of all datasets has the empty name.
pub(crate) static MEMBER: Kind = Kind {
    columns: &[
        Column::one("set", Type::Text),
        Column::one("pid", Type::Text),
        Column::one("changed", Type::Text),
    ],
    indexes: &[Index::on(&["set"]), Index::on(&["pid"])],
    ..Kind::named("dataverse_oai_member")
};

/// A set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Set {
    /// Name in requests.
    pub name: String,
    /// The search that finds its members.
    pub definition: String,
    /// Description.
    pub description: String,
}

/// A member of a set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// The set.
    pub set: String,
    /// The dataset.
    pub pid: String,
    /// When it was added, changed or deleted.
    pub changed: String,
    /// Whether the dataset is no longer published.
    pub deleted: bool,
}

impl Member {
    /// Returns a published dataset as a member of no set.
    pub(super) fn of_none(dataset: &Dataset, version: &Version) -> Self {
        let changed = published(version).unwrap_or_default().to_owned();
        Self { set: String::new(), pid: dataset.pid.clone(), changed, deleted: false }
    }

    /// Returns when it was added, changed or deleted, in milliseconds since 1970; `None` if that cannot be read. The
    /// standard has no record without a datestamp, and none that is older than the earliest one of the repository: no
    /// time is made up for it.
    pub(super) fn changed_ms(&self) -> Option<i64> {
        clock::parse(&self.changed)
    }

    /// Returns whether it changed before this time, or at a time that cannot be read.
    fn is_older_than(&self, time: &str) -> bool {
        self.changed_ms().is_none() || self.changed.as_str() < time
    }
}

/// Returns when a version was published, or else last changed: the first of these times that can be read.
fn published(version: &Version) -> Option<&str> {
    let times =
        [version.release_time.as_deref(), Some(&version.last_update_time), Some(&version.create_time)];
    times.into_iter().flatten().find(|it| clock::parse(it).is_some())
}

/// Returns all sets.
pub(super) fn all_sets(view: &mut View<'_>) -> Result<Vec<Set>, ApiError> {
    stored::find(view, &SET, &pinakes_store::Query::filter(Expr::All))
}

/// Updates the members of a set.
pub(super) fn refresh(txn: &mut Txn<'_>, set: &Set, now: &str) -> Result<(), ApiError> {
    let now_ms = clock::parse(now).unwrap_or_default();
    let filter = query::parse(&set.definition, now_ms).map_err(ApiError::bad_request)?.filter;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for id in index::public_datasets(txn, filter)? {
        let Some(dataset) = datasets::by_id(txn, id)? else { continue };
        let Some(released) = &dataset.released else { continue };
        if dataset.harvested_by.is_some() {
            continue;
        }
        let version = version::of_dataset(txn, &dataset, released.version)?;
        found.insert(dataset.pid, published(&version).unwrap_or(now).to_owned());
    }
    for mut member in stored::find_by::<Member>(txn, &MEMBER, "set", set.name.clone())? {
        let id = format!("{}/{}", set.name, member.pid);
        // A dataset that the search no longer finds may be found again later; a member is deleted only when its dataset
        // is no longer published.
        let dataset = datasets::by_pid(txn, &member.pid)?;
        let is_there = dataset.is_some_and(|it| it.released.is_some());
        let changed = found.remove(&member.pid);
        if member.deleted == is_there {
            member.deleted = !is_there;
            member.changed = now.to_owned();
            stored::put(txn, &MEMBER, &id, &member)?;
        } else if let Some(changed) = changed.filter(|it| is_there && member.is_older_than(it)) {
            member.changed = changed;
            stored::put(txn, &MEMBER, &id, &member)?;
        }
    }
    for (pid, changed) in found {
        let member = Member { set: set.name.clone(), pid, changed, deleted: false };
        stored::put(txn, &MEMBER, &format!("{}/{}", set.name, member.pid), &member)?;
    }
    Ok(())
}

/// Returns all published datasets, as members of no set.
pub(super) fn everything(view: &mut View<'_>) -> Result<Vec<Member>, ApiError> {
    let mut members: BTreeMap<String, Member> = BTreeMap::new();
    for id in index::public_datasets(view, Expr::All)? {
        let Some(dataset) = datasets::by_id(view, id)? else { continue };
        let Some(released) = &dataset.released else { continue };
        let version = version::of_dataset(view, &dataset, released.version)?;
        members.insert(dataset.pid.clone(), Member::of_none(&dataset, &version));
    }
    Ok(members.into_values().collect())
}
