//! Documents of the search: collections, datasets and files, each a record of its own.

use pinakes_store::{Column, Counts, Facet, Index, Kind, Search, Text, Txn, Type};

use crate::error::ApiError;

/// Documents by their ids in Solr: `dataset_43`, `dataset_43_draft`, `datafile_44`, `dataverse_42`.
pub(crate) static DOCUMENT: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("type", Type::Text),
        Column::one("entity", Type::Text),
        Column::one("dataset", Type::Integer),
        Column::one("identifier", Type::Folded),
        Column::one("pid", Type::Text),
        Column::one("parent", Type::Text),
        Column::one("sortName", Type::Text),
        Column::one("date", Type::Text),
        Column::many("subtree", Type::Text),
        Column::many("above", Type::Integer),
        Column::many("seenBy", Type::Text),
        Column::many("facetValues", Type::Text),
        Column::one("place.south", Type::Real),
        Column::one("place.north", Type::Real),
    ],
    indexes: &[
        Index::on(&["type"]),
        Index::on(&["entity"]),
        Index::on(&["dataset"]),
        Index::on(&["identifier"]),
        Index::on(&["pid"]),
        Index::on(&["sortName"]),
        Index::on(&["date"]),
        Index::on(&["place.south"]),
        Index::on(&["place.north"]),
    ],
    facets: &[Facet { name: "facetValues", path: "facetValues", counts: Counts::Values }],
    class_fields: &["type", "public"],
    text: Text::At(&["text"]),
    search: Search::Folded,
    joins: &["seenBy", "entity", "parent"],
    ..Kind::named("dataverse_document")
};

/// Returns the mark of an unpublished document for those who may see it: holders of the permission on the object with
/// that number.
pub(crate) fn seen_by(object: i64) -> String {
    object.to_string()
}

/// Deletes a document.
pub(crate) fn forget(txn: &mut Txn<'_>, id: &str) -> Result<(), ApiError> {
    txn.delete(&DOCUMENT, id)?;
    Ok(())
}
