//! Links: a collection shows a dataset or collection from elsewhere (sections 2.2 and 5.5 of the contract).

pub(crate) mod serve;

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};

use crate::collections::{self, Collection};
use crate::error::ApiError;
use crate::stored;

/// Links by `{linked}/{collection}`: body is a [`Link`].
pub(crate) static LINK: Kind = Kind {
    columns: &[Column::one("linked", Type::Integer), Column::one("collection", Type::Integer)],
    indexes: &[Index::on(&["linked"]), Index::on(&["collection"])],
    ..Kind::named("dataverse_link")
};

/// A link.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Link {
    /// The dataset or collection that is shown.
    pub linked: i64,
    /// Whether it is a dataset.
    pub is_dataset: bool,
    /// The collection that shows it.
    pub collection: i64,
    /// When it was created.
    pub created: String,
    /// The saved search that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<i64>,
}

/// Returns the id of a link's record.
pub(crate) fn id_of(linked: i64, collection: i64) -> String {
    format!("{linked}/{collection}")
}

/// Returns the links that show an object.
pub(crate) fn of(view: &mut View<'_>, linked: i64) -> Result<Vec<Link>, ApiError> {
    stored::find_by(view, &LINK, "linked", linked)
}

/// Returns the links of a collection.
pub(crate) fn in_collection(view: &mut View<'_>, collection: i64) -> Result<Vec<Link>, ApiError> {
    stored::find_by(view, &LINK, "collection", collection)
}

/// Creates a link unless it exists. Returns whether it was created.
pub(crate) fn insert(txn: &mut Txn<'_>, link: &Link) -> Result<bool, ApiError> {
    let id = id_of(link.linked, link.collection);
    if txn.has(&LINK, &id)? {
        return Ok(false);
    }
    stored::insert(txn, &LINK, &id, link)?;
    Ok(true)
}

/// Removes the links of an object that is being deleted, in both directions.
pub(crate) fn remove_of(txn: &mut Txn<'_>, object: i64) -> Result<(), ApiError> {
    for path in ["linked", "collection"] {
        for record in txn.find(&LINK, &Query::filter(Expr::Is(path.into(), object.into())))? {
            txn.delete(&LINK, &record.id)?;
        }
    }
    Ok(())
}

/// Returns whether an object is linked to a collection or one above it.
pub(crate) fn of_collection_into(
    view: &mut View<'_>,
    object: i64,
    target: &Collection,
) -> Result<bool, ApiError> {
    let above: Vec<i64> = collections::with_owners(view, target.clone())?.iter().map(|it| it.id).collect();
    Ok(of(view, object)?.iter().any(|it| above.contains(&it.collection)))
}

/// Removes those links.
pub(crate) fn unlink_collection_from(
    txn: &mut Txn<'_>,
    object: i64,
    target: &Collection,
) -> Result<(), ApiError> {
    for collection in collections::with_owners(txn, target.clone())? {
        txn.delete(&LINK, &id_of(object, collection.id))?;
    }
    Ok(())
}
