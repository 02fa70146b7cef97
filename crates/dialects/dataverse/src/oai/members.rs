//! Sets and their members.

use std::collections::BTreeMap;

use pinakes_store::{Column, Expr, Index, Kind, Search, Txn, Type, View};
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
    search: Search::Declared,
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
        let changed = version.published().unwrap_or_default().to_owned();
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

/// Returns all sets.
pub(super) fn all_sets(view: &mut View<'_>) -> Result<Vec<Set>, ApiError> {
    stored::find(view, &SET, &pinakes_store::Query::filter(Expr::All))
}

/// Returns the members of a set that are new or have changed, as they are to be stored.
pub(super) fn changed(view: &mut View<'_>, set: &Set, now: &str) -> Result<Vec<Member>, ApiError> {
    let now_ms = clock::parse(now).unwrap_or_default();
    let filter = query::parse(&set.definition, now_ms).map_err(ApiError::bad_request)?.filter;
    let own: Vec<Member> = stored::find_by(view, &MEMBER, "set", set.name.clone())?;
    let mut own: BTreeMap<String, Member> = own.into_iter().map(|it| (it.pid.clone(), it)).collect();
    let mut list = Vec::new();
    for id in index::public_datasets(view, filter)? {
        let Some(dataset) = datasets::by_id(view, id)? else { continue };
        let Some(released) = &dataset.released else { continue };
        if dataset.harvested_by.is_some() {
            continue;
        }
        let version = version::of_dataset(view, &dataset, released.version)?;
        let published = version.published().unwrap_or(now).to_owned();
        let member =
            |changed| Member { set: set.name.clone(), pid: dataset.pid.clone(), changed, deleted: false };
        match own.remove(&dataset.pid) {
            None => list.push(member(published)),
            Some(it) if it.deleted => list.push(member(now.to_owned())),
            Some(it) if it.is_older_than(&published) => list.push(member(published)),
            Some(_) => {}
        }
    }
    // A dataset that the search no longer finds may be found again later; a member is deleted only when its dataset is
    // no longer published.
    for (pid, member) in own {
        let is_there = datasets::by_pid(view, &pid)?.is_some_and(|it| it.released.is_some());
        if member.deleted == is_there {
            list.push(Member { deleted: !is_there, changed: now.to_owned(), ..member });
        }
    }
    Ok(list)
}

/// Stores members of a set, unless it was deleted.
pub(super) fn put(txn: &mut Txn<'_>, set: &str, members: &[Member]) -> Result<(), ApiError> {
    if !txn.has(&SET, set)? {
        return Ok(());
    }
    members.iter().try_for_each(|it| stored::put(txn, &MEMBER, &format!("{}/{}", it.set, it.pid), it))
}
