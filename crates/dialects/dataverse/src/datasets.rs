//! Datasets: `/api/datasets` (sections 3 to 5 of the contract).
//!
//! A dataset is a small record that says which versions it has; what a version says is a record of its own, so that adding a
//! file or setting a lock never rewrites metadata. Versions are numbered by *ordinals* from 1 in the order in which they
//! were begun; files say from which ordinal to which they belong.

pub(crate) mod archival;
pub(crate) mod compare;
pub(crate) mod create;
pub(crate) mod curation;
pub(crate) mod ddi;
pub(crate) mod edit;
pub(crate) mod jsonld;
pub(crate) mod locks;
mod migrate;
pub(crate) mod moving;
pub(crate) mod people;
pub(crate) mod publish;
pub(crate) mod remove;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod storage;
pub(crate) mod terms;
mod values;
pub(crate) mod version;

use http::StatusCode;
use pinakes_store::{Column, Expr, Identifier, Index, Kind, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::Call;
use crate::asker::Asker;
use crate::error::ApiError;
use crate::ids::Ids;
use crate::permissions::Place;
use crate::routing::Routes;
use crate::stored;

pub(crate) use version::{State, VERSION, Version};

/// Datasets by number: body is a [`Dataset`].
pub(crate) static DATASET: Kind = Kind {
    columns: &[
        Column::one("pid", Type::Folded),
        Column::one("owner", Type::Integer),
        Column::one("creator", Type::Integer),
        Column::one("guestbook", Type::Integer),
        Column::one("publicationDate", Type::Text),
        Column::one("isLocked", Type::Boolean),
        Column::one("harvestedBy", Type::Text),
        Column::one("harvestId", Type::Text),
    ],
    indexes: &[
        Index::unique(&["pid"]),
        Index::on(&["owner"]),
        Index::on(&["creator"]),
        Index::on(&["guestbook"]),
        Index::on(&["isLocked"]),
        Index::on(&["harvestedBy", "harvestId"]),
    ],
    identifiers: &[Identifier { scheme: "doi", path: "doi" }],
    ..Kind::named("dataverse_dataset")
};

/// A dataset.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Dataset {
    /// Number.
    pub id: i64,
    /// The collection it lies in.
    pub owner: i64,
    /// `doi:10.5072/FK2/AB12CD`.
    pub pid: String,
    /// The DOI alone, for look-ups over all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
    /// `doi`, `hdl` or `perma`.
    pub protocol: String,
    /// `10.5072`.
    pub authority: String,
    /// `FK2/AB12CD`.
    pub identifier: String,
    /// `file1://10.5072/FK2/AB12CD`.
    pub storage_identifier: String,
    /// Who made it.
    pub creator: i64,
    /// When.
    pub create_time: String,
    /// When its first version was published, `2026-01-31`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication_date: Option<String>,
    /// `dataset`, `software`, …
    pub dataset_type: String,
    /// The guestbook that downloads are entered in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guestbook: Option<i64>,
    /// Most files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_count_limit: Option<i64>,
    /// Language of metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_language: Option<String>,
    /// The date field that citations show instead of the publication date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citation_date_field: Option<String>,
    /// What keeps it from being changed, for a while.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<Lock>,
    /// `true` when there are locks, so that they are found; set by [`put`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) is_locked: Option<bool>,
    /// The draft, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The newest version that was released and not deaccessioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<Numbered>,
    /// The newest version that is no draft, deaccessioned or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Numbered>,
    /// Ordinal of the newest version.
    pub last_ordinal: i64,
    /// Most bytes of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<i64>,
    /// Whether it has a private URL, and which kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_anonymized: Option<bool>,
    /// The harvesting client by which it came; none for datasets that lie here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvested_by: Option<String>,
    /// Where it came from, as facets name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_source: Option<String>,
    /// The provider's name for its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harvest_id: Option<String>,
    /// Small settings by name: thumbnail file, curation status, storage driver.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub more: Map<String, Value>,
}

/// The draft of a dataset, with what every change of it advances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Draft {
    /// Number of the version's record.
    pub version: i64,
    /// Position among the versions.
    pub ordinal: i64,
    /// Counts changes, from 1.
    pub internal: i64,
    /// When it was changed last.
    pub last_update_time: String,
}

/// A version that is no draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Numbered {
    /// Number of the version's record.
    pub version: i64,
    /// Position among the versions.
    pub ordinal: i64,
    /// The `1` of 1.0.
    pub number: i64,
    /// The `0` of 1.0.
    pub minor: i64,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lock {
    /// `Ingest`, `Workflow`, `InReview`, `finalizePublication`, …
    pub lock_type: String,
    /// When it was set, `Sat Jan 31 10:20:30 UTC 2026`.
    pub date: String,
    /// Name of the user.
    pub user: String,
    /// Why.
    #[serde(default)]
    pub message: String,
}

impl Dataset {
    /// Where roles on it count.
    pub(crate) fn place(&self) -> Place {
        Place::dataset(self.id, self.owner)
    }

    /// Whether a version of it was ever released.
    pub(crate) fn was_released(&self) -> bool {
        self.publication_date.is_some()
    }

    /// `https://doi.org/10.5072/FK2/AB12CD`.
    pub(crate) fn persistent_url(&self) -> String {
        let rest = format!("{}/{}", self.authority, self.identifier);
        match self.protocol.as_str() {
            "hdl" => format!("https://hdl.handle.net/{rest}"),
            "perma" => format!("perma:{rest}"),
            _ => format!("https://doi.org/{rest}"),
        }
    }
}

/// The dataset that is asked for: by number, or by `:persistentId` with the parameter `persistentId`.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    name: Name,
    /// The caller, from whom a dataset may be kept; none when the server itself looks for it.
    asker: Option<Asker>,
}

#[derive(Debug, Clone)]
enum Name {
    /// By its number.
    Number(i64),
    /// By its persistent identifier, in the form in which it is stored.
    Pid(String),
}

impl Wanted {
    /// Of the path's parameter `id`.
    ///
    /// Errors: 400 for what is no number, and without `persistentId`.
    pub(crate) fn of(call: &Call) -> Result<Self, ApiError> {
        Self::parse(call.param("id"), call.query.filled("persistentId"), &call.asker)
    }

    /// By its number, whoever asks.
    pub(crate) fn number(id: i64) -> Self {
        Self { name: Name::Number(id), asker: None }
    }

    /// By its persistent identifier, whoever asks.
    pub(crate) fn pid(pid: &str) -> Self {
        Self { name: Name::Pid(pid.to_owned()), asker: None }
    }

    /// The same of its parts.
    pub(crate) fn parse(id: &str, pid: Option<&str>, asker: &Asker) -> Result<Self, ApiError> {
        let asked = |name| Self { name, asker: Some(asker.clone()) };
        if id == ":persistentId" {
            let pid = pid.ok_or_else(|| {
                ApiError::bad_request(
                    "When accessing a dataset based on Persistent ID, a persistentId query parameter must be present.",
                )
            })?;
            // Some scripts send the number here.
            return Ok(asked(pid.parse().map_or_else(|_| Name::Pid(pid.to_owned()), Name::Number)));
        }
        let number =
            id.parse().map_err(|_| ApiError::bad_request(format!("Bad dataset ID number: {id}.")))?;
        Ok(asked(Name::Number(number)))
    }

    /// The dataset. Errors: 404, for one that is kept from the caller as well.
    pub(crate) fn find(&self, view: &mut View<'_>) -> Result<Dataset, ApiError> {
        let found = match &self.name {
            Name::Number(id) => by_id(view, *id)?,
            Name::Pid(pid) => by_pid(view, pid)?,
        };
        let missing = || {
            ApiError::not_found(match &self.name {
                Name::Number(id) => format!("Dataset with ID {id} not found."),
                Name::Pid(pid) => format!("Dataset with Persistent ID {pid} not found."),
            })
        };
        let dataset = found.ok_or_else(missing)?;
        match &self.asker {
            Some(asker) if crate::collections::fair::is_dataset_kept_from(view, asker, &dataset)? => {
                Err(missing())
            }
            _ => Ok(dataset),
        }
    }
}

/// The stored form of a persistent identifier: `https://doi.org/10.5072/x` is `doi:10.5072/x`.
pub(crate) fn canonical_pid(text: &str) -> String {
    let resolvers = [
        ("https://doi.org/", "doi:"),
        ("http://doi.org/", "doi:"),
        ("https://dx.doi.org/", "doi:"),
        ("http://dx.doi.org/", "doi:"),
        ("https://hdl.handle.net/", "hdl:"),
        ("http://hdl.handle.net/", "hdl:"),
    ];
    let text = text.trim();
    let found = resolvers.iter().find_map(|(url, scheme)| Some((scheme, text.strip_prefix(url)?)));
    found.map_or_else(|| text.to_owned(), |(scheme, rest)| format!("{scheme}{rest}"))
}

/// The dataset of that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Dataset>, ApiError> {
    stored::get(view, &DATASET, &id.to_string())
}

/// The dataset of that persistent identifier, whatever its case.
pub(crate) fn by_pid(view: &mut View<'_>, pid: &str) -> Result<Option<Dataset>, ApiError> {
    let value = pinakes_store::Value::Folded(canonical_pid(pid));
    let found = view.first(&DATASET, Expr::Is("pid".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Stores a dataset.
pub(crate) fn put(txn: &mut Txn<'_>, dataset: &Dataset) -> Result<(), ApiError> {
    let is_locked = (!dataset.locks.is_empty()).then_some(true);
    stored::put(txn, &DATASET, &dataset.id.to_string(), &Dataset { is_locked, ..dataset.clone() })
}

/// Errors: 403 for a dataset that is described elsewhere, and changed there alone.
fn refuse_harvested(dataset: &Dataset) -> Result<(), ApiError> {
    match dataset.harvested_by {
        Some(_) => Err(ApiError::forbidden("Harvested datasets cannot be edited.")),
        None => Ok(()),
    }
}

/// The draft of a dataset, begun as a copy of its newest version when there is none. The dataset is changed and not yet
/// stored: the caller ends with [`put`], and with [`version::put`] when it changes the version. Takes one number.
pub(crate) fn open_draft(
    txn: &mut Txn<'_>,
    now: &str,
    dataset: &mut Dataset,
    ids: &mut Ids,
) -> Result<Version, ApiError> {
    refuse_harvested(dataset)?;
    if let Some(draft) = &mut dataset.draft {
        draft.internal += 1;
        draft.last_update_time = now.to_owned();
        let id = draft.version;
        return version::of_dataset(txn, dataset, id);
    }
    let last = dataset.last.as_ref().map(|it| it.version);
    let last = last.ok_or_else(|| ApiError::new(StatusCode::CONFLICT, "The dataset has no version."))?;
    let copied = version::of_dataset(txn, dataset, last)?;
    dataset.last_ordinal += 1;
    let draft = Draft {
        version: ids.next()?,
        ordinal: dataset.last_ordinal,
        internal: 1,
        last_update_time: now.to_owned(),
    };
    let version = copied.as_draft(&draft);
    dataset.draft = Some(draft);
    version::put(txn, &version)?;
    Ok(version)
}

/// The same for changes that are no metadata (files): stores the dataset.
pub(crate) fn draft_for_edit(
    txn: &mut Txn<'_>,
    now: &str,
    dataset: &mut Dataset,
    ids: &mut Ids,
) -> Result<Draft, ApiError> {
    match &mut dataset.draft {
        Some(draft) => {
            draft.internal += 1;
            draft.last_update_time = now.to_owned();
        }
        None => {
            open_draft(txn, now, dataset, ids)?;
        }
    }
    put(txn, dataset)?;
    dataset.draft.clone().ok_or_else(|| ApiError::internal("The draft is gone."))
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(create::routes)
        .with(migrate::routes)
        .with(ddi::routes)
        .with(show::routes)
        .with(edit::routes)
        .with(publish::routes)
        .with(remove::routes)
        .with(people::routes)
        .with(locks::routes)
        .with(moving::routes)
        .with(storage::routes)
        .with(archival::routes)
        .with(curation::routes)
        .with(compare::routes)
}

/// Refuses a dataset of a collection that is kept from the caller, as if it were not there. Errors: 404.
pub(crate) fn require_not_kept(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
) -> Result<(), ApiError> {
    if crate::collections::fair::is_dataset_kept_from(view, asker, dataset)? {
        return Err(ApiError::not_found(format!("Dataset with Persistent ID {} not found.", dataset.pid)));
    }
    Ok(())
}
