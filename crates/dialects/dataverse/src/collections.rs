//! Collections, which the original calls dataverses: `/api/dataverses` (section 2 of the contract).

pub(crate) mod fair;
pub(crate) mod json;
pub(crate) mod logo;
pub(crate) mod moving;
pub(crate) mod page;
pub(crate) mod people;
pub(crate) mod publication;
pub(crate) mod show;
pub(crate) mod storage;
pub(crate) mod structure;
pub(crate) mod visibility;
pub(crate) mod write;

use pinakes_store::{Column, Expr, Facet, Index, Kind, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::grants::Place;
use crate::stored;

/// Collections by number: body is a [`Collection`].
pub(crate) static COLLECTION: Kind = Kind {
    columns: &[
        Column::one("alias", Type::Folded),
        Column::one("parent", Type::Integer),
        Column::one("creator", Type::Integer),
        Column::one("publisher", Type::Integer),
        Column::one("isLocallyFair", Type::Boolean),
    ],
    indexes: &[
        Index::unique(&["alias"]),
        Index::on(&["parent"]),
        Index::on(&["creator"]),
        Index::on(&["publisher"]),
        Index::on(&["isLocallyFair"]),
    ],
    facets: &[Facet::days("publicationDate")],
    ..Kind::named("dataverse_collection")
};

/// The number of the root collection.
pub(crate) const ROOT: i64 = 1;
/// Maximum nesting of collections that is followed.
pub(crate) const DEPTH: usize = 64;

/// A collection.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Collection {
    /// Number.
    pub id: i64,
    /// Short name, unique regardless of case.
    pub alias: String,
    /// Name.
    pub name: String,
    /// The parent collection; `None` for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<i64>,
    /// Institution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affiliation: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `LABORATORY`, `UNCATEGORIZED`, …
    pub dataverse_type: String,
    /// Mail addresses of contacts, in order.
    pub contacts: Vec<String>,
    /// Colours, logo and link, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Value>,
    /// When it was created.
    pub creation_date: String,
    /// Who created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator: Option<i64>,
    /// When it was published; `None` before that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication_date: Option<String>,
    /// Who published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<i64>,
    /// Its own metadata blocks by name; `None` to inherit those of the parent collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_blocks: Option<Vec<String>>,
    /// Its own facets by field name; `None` to inherit those of the parent collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facets: Option<Vec<String>>,
    /// Requirements on fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_levels: Vec<InputLevel>,
    /// The role that creators of datasets get; 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_contributor_role: Option<i64>,
    /// Whether datasets need files to be published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_files: Option<bool>,
    /// Maximum number of files per dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_count_limit: Option<i64>,
    /// Whether files get persistent identifiers.
    #[serde(rename = "filePIDsEnabled", skip_serializing_if = "Option::is_none")]
    pub file_pids_enabled: Option<bool>,
    /// Language of metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_language: Option<String>,
    /// Label of a storage driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_driver: Option<String>,
    /// Storage quota for all files below it, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<i64>,
    /// Subjects of the datasets published in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Whether templates of the parent collection are offered as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_root: Option<bool>,
    /// The default template of new datasets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_template: Option<i64>,
    /// `true` if it is a locally FAIR collection, visible only to named assignees; a field, so that such collections
    /// can be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_locally_fair: Option<bool>,
    /// Curation label set, allowed dataset types and other small settings, by name.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub more: serde_json::Map<String, Value>,
}

/// A collection's requirements on a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputLevel {
    /// Its number.
    #[serde(default)]
    pub id: i64,
    /// The field.
    pub dataset_field_type_name: String,
    /// Whether it is required.
    pub required: bool,
    /// Whether it is included at all.
    pub include: bool,
    /// Whether the form of a new dataset includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_on_create: Option<bool>,
}

impl Collection {
    /// Returns the place at which roles on it apply.
    pub(crate) fn place(&self) -> Place {
        Place::collection(self.id)
    }

    /// Returns whether it is published.
    pub(crate) fn is_released(&self) -> bool {
        self.publication_date.is_some()
    }
}

/// Returns the collection that a path names by number, by short name, or as `:root`.
///
/// Errors: 404 `Can't find dataverse with identifier='…'`.
pub(crate) fn find(view: &mut View<'_>, text: &str) -> Result<Collection, ApiError> {
    let found = match text {
        ":root" => by_id(view, ROOT)?,
        _ => match text.parse() {
            Ok(id) => by_id(view, id)?,
            Err(_) => by_alias(view, text)?,
        },
    };
    found.ok_or_else(|| ApiError::not_found(format!("Can't find dataverse with identifier='{text}'")))
}

/// Returns the collection with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<Collection>, ApiError> {
    stored::get(view, &COLLECTION, &id.to_string())
}

/// Returns the collection with that number, which another record refers to.
///
/// Errors: it does not exist.
pub(crate) fn named_by_record(view: &mut View<'_>, id: i64) -> Result<Collection, ApiError> {
    by_id(view, id)?
        .ok_or_else(|| ApiError::not_found(format!("Can't find dataverse with identifier='{id}'")))
}

/// Returns the collection with that short name, regardless of case.
pub(crate) fn by_alias(view: &mut View<'_>, alias: &str) -> Result<Option<Collection>, ApiError> {
    let value = pinakes_store::Value::Folded(alias.to_owned());
    let found = view.first(&COLLECTION, Expr::Is("alias".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns a collection with all its ancestors: itself first, the root last.
pub(crate) fn with_owners(view: &mut View<'_>, collection: Collection) -> Result<Vec<Collection>, ApiError> {
    let mut all = vec![collection];
    while let Some(parent) = all.last().and_then(|it| it.parent)
        && all.len() < DEPTH
    {
        all.push(named_by_record(view, parent)?);
    }
    Ok(all)
}

/// Stores a collection.
pub(crate) fn put(txn: &mut Txn<'_>, collection: &Collection) -> Result<(), ApiError> {
    stored::put(txn, &COLLECTION, &collection.id.to_string(), collection)
}

/// Returns the collections directly below one.
pub(crate) fn children(view: &mut View<'_>, id: i64) -> Result<Vec<Collection>, ApiError> {
    stored::find_by(view, &COLLECTION, "parent", id)
}

/// Returns a collection and all below it, those nearer to it first.
pub(crate) fn below(view: &mut View<'_>, top: Collection) -> Result<Vec<Collection>, ApiError> {
    let mut all = vec![top];
    let (mut next, mut level) = (0, 0);
    while next < all.len() && level < DEPTH {
        let end = all.len();
        for at in next..end {
            all.extend(children(view, all[at].id)?);
        }
        (next, level) = (end, level + 1);
    }
    Ok(all)
}
