//! Versions of datasets: how they are stored, selected by requests, and who may see them (section 4 of the contract).

use pinakes_store::{Column, Direction, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::asker::Asker;
use crate::clock;
use crate::datasets::{Dataset, Draft};
use crate::error::ApiError;
use crate::grants::Permission;
use crate::users::User;
use crate::{permissions, stored};

/// Versions by number: body is a [`Version`].
pub(crate) static VERSION: Kind = Kind {
    columns: &[
        Column::one("dataset", Type::Integer),
        Column::one("ordinal", Type::Integer),
        Column::one("license", Type::Integer),
        Column::many("contributorIds", Type::Integer),
    ],
    indexes: &[Index::unique(&["dataset", "ordinal"]), Index::on(&["license"])],
    ..Kind::named("dataverse_version")
};

/// State of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum State {
    /// Being edited.
    #[default]
    Draft,
    /// Published.
    Released,
    /// Deaccessioned: withdrawn.
    Deaccessioned,
}

impl State {
    /// Returns `DRAFT`, `RELEASED` or `DEACCESSIONED`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "DRAFT",
            Self::Released => "RELEASED",
            Self::Deaccessioned => "DEACCESSIONED",
        }
    }
}

/// A version.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Version {
    /// Number of the record.
    pub id: i64,
    /// The dataset.
    pub dataset: i64,
    /// Position among the dataset's versions, from 1.
    pub ordinal: i64,
    /// Its state.
    pub state: State,
    /// The `1` of 1.0; `None` for drafts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// The `0` of 1.0; `None` for drafts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor: Option<i64>,
    /// Number of changes, from 1; for a draft, the dataset's record has the current value.
    pub internal: i64,
    /// When it was begun.
    pub create_time: String,
    /// When it was last changed; for a draft, the dataset's record has the current value.
    pub last_update_time: String,
    /// When it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_time: Option<String>,
    /// When it was deaccessioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_time: Option<String>,
    /// Reason of the deaccession.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaccession_note: Option<String>,
    /// Forwarding URL of a deaccessioned version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaccession_link: Option<String>,
    /// Archival status: `{"status": …, "message": …}`; empty if none was reported.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub archival: Map<String, Value>,
    /// Its creators' note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_note: Option<String>,
    /// The licence, by number; `None` if `terms` hold custom terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<i64>,
    /// Terms of use and of access that are set, by their names in the API.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub terms: Map<String, Value>,
    /// Whether access to restricted files may be requested.
    pub file_access_request: bool,
    /// The metadata, as the object `metadataBlocks` of the API.
    pub metadata_blocks: Map<String, Value>,
    /// Numbers of the contributing users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contributor_ids: Vec<i64>,
    /// Names of the contributing users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contributors: Vec<String>,
}

impl Version {
    /// Returns when it was published, or else last changed: the first of these times that can be read.
    pub(crate) fn published(&self) -> Option<&str> {
        let times = [self.release_time.as_deref(), Some(&self.last_update_time), Some(&self.create_time)];
        times.into_iter().flatten().find(|it| clock::parse(it).is_some())
    }

    /// Returns a draft with the contents of this version.
    pub(crate) fn as_draft(&self, draft: &Draft) -> Self {
        Self {
            id: draft.version,
            ordinal: draft.ordinal,
            state: State::Draft,
            number: None,
            minor: None,
            internal: draft.internal,
            create_time: draft.last_update_time.clone(),
            last_update_time: draft.last_update_time.clone(),
            release_time: None,
            archive_time: None,
            deaccession_note: None,
            deaccession_link: None,
            archival: Map::new(),
            version_note: None,
            contributors: Vec::new(),
            contributor_ids: Vec::new(),
            ..self.clone()
        }
    }

    /// Records the caller as a contributor; returns whether that is new.
    pub(crate) fn note_contributor(&mut self, asker: &Asker) -> bool {
        asker.user.as_ref().is_some_and(|user| self.add_contributor(user))
    }

    fn add_contributor(&mut self, user: &User) -> bool {
        let is_new = !self.contributor_ids.contains(&user.id);
        if is_new {
            self.contributor_ids.push(user.id);
            self.contributors.push(user.display_name());
        }
        is_new
    }

    /// Replaces a contributor by another user, who may be one already.
    pub(crate) fn replace_contributor(&mut self, former: i64, user: &User) {
        let Some(at) = self.contributor_ids.iter().position(|it| *it == former) else { return };
        self.contributor_ids.remove(at);
        if at < self.contributors.len() {
            self.contributors.remove(at);
        }
        self.add_contributor(user);
    }

    /// Returns `1.0`, or `DRAFT`.
    pub(crate) fn friendly_number(&self) -> String {
        match (self.number, self.minor) {
            (Some(number), Some(minor)) => format!("{number}.{minor}"),
            _ => "DRAFT".to_owned(),
        }
    }
}

/// The version that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spec {
    /// `:draft`.
    Draft,
    /// `:latest`: the draft for callers who may see it, otherwise the newest published version.
    Latest,
    /// `:latest-published`.
    LatestPublished,
    /// `1.0`, or `1`.
    Number(i64, i64),
}

impl Spec {
    /// Parses a version identifier.
    ///
    /// Errors: 400 `Illegal version identifier '…'`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let illegal = || ApiError::bad_request(format!("Illegal version identifier '{text}'"));
        Ok(match text {
            ":draft" => Self::Draft,
            ":latest" => Self::Latest,
            ":latest-published" => Self::LatestPublished,
            _ => {
                let (number, minor) = text.split_once('.').unwrap_or((text, "0"));
                let part = |text: &str| text.parse::<u32>().map(i64::from).map_err(|_| illegal());
                Self::Number(part(number)?, part(minor)?)
            }
        })
    }
}

/// Whether deaccessioned versions are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// They are excluded.
    Hidden,
    /// They are included.
    Shown,
}

/// Returns the version that `spec` selects, if the caller may see it.
///
/// Errors: 401 for a draft that the caller may not see; 404 `Dataset version … of dataset … not found`.
pub(crate) fn find(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    text: &str,
    withdrawn: Withdrawn,
) -> Result<Version, ApiError> {
    let spec = Spec::parse(text)?;
    crate::datasets::wanted::require_not_kept(view, asker, dataset)?;
    let missing =
        || ApiError::not_found(format!("Dataset version {text} of dataset {} not found", dataset.id));
    let may_see = |view: &mut View<'_>| {
        permissions::may(view, asker, dataset.place(), Permission::ViewUnpublishedDataset)
    };
    let published = match withdrawn {
        Withdrawn::Shown => dataset.last.as_ref().map(|it| it.version),
        Withdrawn::Hidden => dataset.released.as_ref().map(|it| it.version),
    };
    let id = match (spec, &dataset.draft) {
        (Spec::Draft, Some(draft)) => {
            if !may_see(view)? {
                return Err(permissions::refusal(asker));
            }
            draft.version
        }
        (Spec::Draft, None) => return Err(missing()),
        (Spec::Latest, Some(draft)) if may_see(view)? => draft.version,
        (Spec::Latest, Some(_)) if published.is_none() => return Err(permissions::refusal(asker)),
        (Spec::Latest | Spec::LatestPublished, _) => published.ok_or_else(missing)?,
        (Spec::Number(number, minor), _) => {
            let found = by_number(view, dataset, number, minor)?.ok_or_else(missing)?;
            if found.state == State::Deaccessioned && withdrawn == Withdrawn::Hidden {
                return Err(missing());
            }
            return Ok(found);
        }
    };
    of_dataset(view, dataset, id)
}

/// Returns the version with that number, if it is not a draft.
fn by_number(
    view: &mut View<'_>,
    dataset: &Dataset,
    number: i64,
    minor: i64,
) -> Result<Option<Version>, ApiError> {
    for known in dataset.released.iter().chain(&dataset.last) {
        if (known.number, known.minor) == (number, minor) {
            return of_dataset(view, dataset, known.version).map(Some);
        }
    }
    let wanted = Some((number, minor));
    let found = newest_first(view, dataset)?;
    Ok(found.into_iter().find(|it| it.number.zip(it.minor) == wanted))
}

/// Returns the version with that record number. Errors: it does not exist.
pub(crate) fn of_dataset(view: &mut View<'_>, dataset: &Dataset, id: i64) -> Result<Version, ApiError> {
    let found: Option<Version> = stored::get(view, &VERSION, &id.to_string())?;
    let version = found.filter(|it| it.dataset == dataset.id);
    let version = version.ok_or_else(|| {
        ApiError::not_found(format!("Dataset version {id} of dataset {} not found", dataset.id))
    })?;
    Ok(brought_up_to_date(version, dataset))
}

/// Copies a draft's count of changes and the time of the last one from the dataset's record.
fn brought_up_to_date(mut version: Version, dataset: &Dataset) -> Version {
    if let Some(draft) = dataset.draft.as_ref().filter(|it| it.version == version.id) {
        version.internal = draft.internal;
        version.last_update_time.clone_from(&draft.last_update_time);
    }
    version
}

/// Returns all versions, newest first.
pub(crate) fn newest_first(view: &mut View<'_>, dataset: &Dataset) -> Result<Vec<Version>, ApiError> {
    let query =
        Query::filter(Expr::Is("dataset".into(), dataset.id.into())).sorted("ordinal", Direction::Descending);
    let all: Vec<Version> = stored::find(view, &VERSION, &query)?;
    Ok(all.into_iter().map(|it| brought_up_to_date(it, dataset)).collect())
}

/// Returns the ordinals of the versions that are published and not deaccessioned, the newest first.
pub(crate) fn released_ordinals(view: &mut View<'_>, dataset: &Dataset) -> Result<Vec<i64>, ApiError> {
    if !dataset.was_released() {
        return Ok(Vec::new());
    }
    let all = newest_first(view, dataset)?.into_iter();
    Ok(all.filter(|it| it.state == State::Released).map(|it| it.ordinal).collect())
}

/// Stores a version.
pub(crate) fn put(txn: &mut Txn<'_>, version: &Version) -> Result<(), ApiError> {
    stored::put(txn, &VERSION, &version.id.to_string(), version)
}

/// Removes a version's record.
pub(crate) fn remove(txn: &mut Txn<'_>, id: i64) -> Result<(), ApiError> {
    txn.delete(&VERSION, &id.to_string())?;
    Ok(())
}

/// Returns the title of a version.
pub(crate) fn title_of(version: &Version) -> String {
    let blocks = Value::Object(version.metadata_blocks.clone());
    crate::blocks::fields::Metadata(&blocks).one("title").unwrap_or_default().to_owned()
}
