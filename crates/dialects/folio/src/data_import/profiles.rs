//! Job, match, action and mapping profiles (section 5 of the contract): the definition of an import, as records.
//!
//! FOLIO's default profiles are part of the program (`data/profiles/defaults.json`): they cannot be changed and are not
//! stored in any tenant. Profiles that a site creates are records, and so are the associations between profiles: which
//! child is below which parent, on which outcome. An association created with a job profile applies within that job
//! only; the same match profile can appear in several trees.

mod associations;
pub(crate) mod forms;
mod protection;
mod routes;
mod snapshot;

use std::sync::LazyLock;

use pinakes_store::{Column, Expr, Index, Kind, Query, StoreError, Type, View};
use serde_json::{Map, Value};

use crate::platform::error::FolioError;

pub(crate) use protection::protections;
pub(crate) use routes::routes;
pub(crate) use snapshot::{PROFILE_SNAPSHOT, snapshot_of, store_snapshot};

/// The types of profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileType {
    Job,
    Match,
    Action,
    Mapping,
}

/// Columns and indexes of all profile kinds.
static COLUMNS: [Column; 1] = [Column::one("name", Type::Text)];
static INDEXES: [Index; 1] = [Index::on(&["name"])];

const fn profile_kind(name: &'static str) -> Kind {
    Kind { id_path: Some("id"), columns: &COLUMNS, indexes: &INDEXES, ..Kind::named(name) }
}

static JOB: Kind = profile_kind("folio_job_profile");
static MATCH: Kind = profile_kind("folio_match_profile");
static ACTION: Kind = profile_kind("folio_action_profile");
static MAPPING: Kind = profile_kind("folio_mapping_profile");

/// Associations, by id.
pub(crate) static ASSOCIATION: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("masterProfileId", Type::Text),
        Column::one("detailProfileId", Type::Text),
        Column::one("jobProfileId", Type::Text),
    ],
    indexes: &[
        Index::on(&["masterProfileId"]),
        Index::on(&["detailProfileId"]),
        Index::on(&["jobProfileId"]),
    ],
    ..Kind::named("folio_profile_association")
};

/// The kinds of this module.
pub(crate) static KINDS: [&Kind; 7] =
    [&JOB, &MATCH, &ACTION, &MAPPING, &ASSOCIATION, &PROFILE_SNAPSHOT, &protection::SETTING];

impl ProfileType {
    /// All types.
    pub(crate) const ALL: [Self; 4] = [Self::Job, Self::Match, Self::Action, Self::Mapping];

    /// Returns the last part of its path, which is also the name of its list.
    pub(crate) const fn list(self) -> &'static str {
        match self {
            Self::Job => "jobProfiles",
            Self::Match => "matchProfiles",
            Self::Action => "actionProfiles",
            Self::Mapping => "mappingProfiles",
        }
    }

    /// Returns its name in associations and snapshots.
    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Self::Job => "JOB_PROFILE",
            Self::Match => "MATCH_PROFILE",
            Self::Action => "ACTION_PROFILE",
            Self::Mapping => "MAPPING_PROFILE",
        }
    }

    /// Returns its name in messages.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::Match => "Match",
            Self::Action => "Action",
            Self::Mapping => "Mapping",
        }
    }

    /// Returns the properties that each profile must have.
    pub(crate) const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Job => &["name", "dataType"],
            Self::Match => &["name"],
            Self::Action => &["name", "action", "folioRecord"],
            Self::Mapping => &["name", "incomingRecordType", "existingRecordType"],
        }
    }

    /// Returns the type with a name.
    pub(crate) fn typed(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.type_name() == name)
    }

    /// Returns its kind in the store.
    pub(crate) fn kind(self) -> &'static Kind {
        match self {
            Self::Job => &JOB,
            Self::Match => &MATCH,
            Self::Action => &ACTION,
            Self::Mapping => &MAPPING,
        }
    }
}

static DEFAULTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let text = include_str!("../../data/profiles/defaults.json");
    serde_json::from_str(text).unwrap_or_default()
});

/// Returns FOLIO's default entries of a list.
pub(crate) fn defaults(list: &str) -> &'static [Value] {
    DEFAULTS.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn has_id(value: &Value, id: &str) -> bool {
    value.get("id").and_then(Value::as_str) == Some(id)
}

/// Checks whether a profile is one of FOLIO's defaults.
pub(crate) fn is_default(sort: ProfileType, id: &str) -> bool {
    defaults(sort.list()).iter().any(|it| has_id(it, id))
}

/// Returns the profile with an id.
pub(crate) fn get(view: &mut View<'_>, sort: ProfileType, id: &str) -> Result<Option<Value>, StoreError> {
    if let Some(found) = defaults(sort.list()).iter().find(|it| has_id(it, id)) {
        return Ok(Some(found.clone()));
    }
    view.get(sort.kind(), id)?.map(|it| it.json()).transpose()
}

/// Returns the profile with an id, or else with that name.
pub(crate) fn find(view: &mut View<'_>, sort: ProfileType, text: &str) -> Result<Option<Value>, StoreError> {
    if let Some(found) = get(view, sort, text)? {
        return Ok(Some(found));
    }
    let is_named = |it: &&Value| it.get("name").and_then(Value::as_str) == Some(text);
    if let Some(found) = defaults(sort.list()).iter().find(is_named) {
        return Ok(Some(found.clone()));
    }
    view.first(sort.kind(), Expr::Is("name".into(), text.into()))?.map(|it| it.json()).transpose()
}

/// Returns all profiles of a type, FOLIO's defaults first.
fn all(view: &mut View<'_>, sort: ProfileType) -> Result<Vec<Value>, StoreError> {
    let mut list = defaults(sort.list()).to_vec();
    for record in view.find(sort.kind(), &Query::filter(Expr::All))? {
        list.push(record.json()?);
    }
    Ok(list)
}

fn not_found(sort: ProfileType, id: &str) -> FolioError {
    FolioError::not_found(format!("{} Profile with id '{id}' was not found", sort.word()))
}
