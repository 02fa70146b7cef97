//! Items: single copies with barcodes and statuses (section 10 of the contract).

use pinakes_store::{Column, Facet, Index, Kind, Search, Txn, Type};
use serde_json::{Map, Value};

use super::holdings::HOLDINGS;
use super::instances::number;
use super::kinds::ITEM;
use super::{derived, joins};
use crate::inventory::harvested::holdings_stored;
use crate::places::LOCATIONS;
use crate::platform::collection::{Collection, Hooks, Kinds, Locking, Reference, Schema, Unique, Writer};
use crate::platform::cql::Names;
use crate::platform::dates;
use crate::platform::error::{Fault, FolioError};
use crate::platform::hrids::Numbered;
use crate::platform::json::text_at;
use crate::vocabularies as types;

/// The statuses that an item may have (section 14.3 of the contract).
pub const STATUSES: [&str; 21] = [
    "Aged to lost",
    "Available",
    "Awaiting pickup",
    "Awaiting delivery",
    "Checked out",
    "Claimed returned",
    "Declared lost",
    "In process",
    "In process (non-requestable)",
    "In transit",
    "Intellectual item",
    "Long missing",
    "Lost and paid",
    "Missing",
    "On order",
    "Order closed",
    "Paged",
    "Restricted",
    "Unavailable",
    "Unknown",
    "Withdrawn",
];

/// Properties of an item.
const KNOWN: &[&str] = &[
    "accessionNumber",
    "additionalCallNumbers",
    "administrativeNotes",
    "barcode",
    "chronology",
    "circulationNotes",
    "copyNumber",
    "descriptionOfPieces",
    "discoverySuppress",
    "displaySummary",
    "effectiveCallNumberComponents",
    "effectiveLocationId",
    "effectiveShelvingOrder",
    "electronicAccess",
    "enumeration",
    "formerIds",
    "holdingsRecord2",
    "holdingsRecordId",
    "hrid",
    "inTransitDestinationServicePointId",
    "itemDamagedStatusDate",
    "itemDamagedStatusId",
    "itemIdentifier",
    "itemLevelCallNumber",
    "itemLevelCallNumberPrefix",
    "itemLevelCallNumberSuffix",
    "itemLevelCallNumberTypeId",
    "lastCheckIn",
    "materialType",
    "materialTypeId",
    "missingPieces",
    "missingPiecesDate",
    "notes",
    "numberOfMissingPieces",
    "numberOfPieces",
    "order",
    "permanentLoanTypeId",
    "permanentLocation",
    "permanentLocationId",
    "purchaseOrderLineIdentifier",
    "statisticalCodeIds",
    "status",
    "tags",
    "temporaryLoanTypeId",
    "temporaryLocation",
    "temporaryLocationId",
    "volume",
    "yearCaption",
];

/// `/item-storage/items`.
pub static ITEMS: Collection = Collection {
    permission: "inventory-storage.items",
    table: "item",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("hrid", Type::Folded),
            Column::one("barcode", Type::Folded),
            Column::one("holdingsRecordId", Type::Text),
            Column::at("status", "status.name", Type::Folded),
            Column::one("materialTypeId", Type::Text),
            Column::one("permanentLoanTypeId", Type::Text),
            Column::one("effectiveLocationId", Type::Text),
            Column::one("effectiveShelvingOrder", Type::Folded),
            Column::at("callNumber", "effectiveCallNumberComponents.callNumber", Type::Folded),
            Column::one("discoverySuppress", Type::Boolean),
            Column::at("createdDate", "metadata.createdDate", Type::Instant),
            Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
        ],
        indexes: &[
            Index::unique(&["hrid"]),
            Index::unique(&["barcode"]),
            Index::on(&["holdingsRecordId"]),
            Index::on(&["updatedDate"]),
        ],
        search: Search::Folded,
        joins: &["id", "holdingsRecordId"],
        lists: super::listed::OF_ITEMS,
        facets: &[
            Facet { name: "status", path: "status.name", counts: pinakes_store::Counts::Values },
            Facet::values("materialTypeId"),
            Facet::values("permanentLoanTypeId"),
            Facet::values("temporaryLoanTypeId"),
            Facet::values("effectiveLocationId"),
            Facet::values("permanentLocationId"),
            Facet::values("temporaryLocationId"),
            Facet::values("itemDamagedStatusId"),
            Facet::values("statisticalCodeIds"),
            Facet::values("itemLevelCallNumberTypeId"),
        ],
        ..Kind::named(ITEM)
    },
    schema: Schema {
        required: &["holdingsRecordId", "materialTypeId", "permanentLoanTypeId", "status", "status.name"],
        types: &[
            ("holdingsRecordId", Kinds::Uuid),
            ("materialTypeId", Kinds::Uuid),
            ("permanentLoanTypeId", Kinds::Uuid),
            ("temporaryLoanTypeId", Kinds::Uuid),
            ("permanentLocationId", Kinds::Uuid),
            ("temporaryLocationId", Kinds::Uuid),
            ("itemDamagedStatusId", Kinds::Uuid),
            ("itemLevelCallNumberTypeId", Kinds::Uuid),
            ("barcode", Kinds::Text),
            ("hrid", Kinds::Text),
            ("status", Kinds::Object),
            ("status.name", Kinds::Text),
            ("notes", Kinds::List),
            ("circulationNotes", Kinds::List),
            ("yearCaption", Kinds::List),
            ("formerIds", Kinds::List),
            ("electronicAccess", Kinds::List),
            ("statisticalCodeIds", Kinds::List),
            ("discoverySuppress", Kinds::Boolean),
        ],
        known: KNOWN,
        lists: &[
            "formerIds",
            "yearCaption",
            "administrativeNotes",
            "notes",
            "circulationNotes",
            "electronicAccess",
            "statisticalCodeIds",
            "additionalCallNumbers",
        ],
        defaults: &[("discoverySuppress", "false")],
    },
    unique: &[Unique { column: "barcode", message: "" }],
    references: &[
        Reference { path: "holdingsRecordId", to: || &HOLDINGS },
        Reference { path: "materialTypeId", to: || &types::MATERIAL_TYPES },
        Reference { path: "permanentLoanTypeId", to: || &types::LOAN_TYPES },
        Reference { path: "temporaryLoanTypeId", to: || &types::LOAN_TYPES },
        Reference { path: "permanentLocationId", to: || &LOCATIONS },
        Reference { path: "temporaryLocationId", to: || &LOCATIONS },
        Reference { path: "effectiveLocationId", to: || &LOCATIONS },
        Reference { path: "itemDamagedStatusId", to: || &types::ITEM_DAMAGED_STATUSES },
        Reference { path: "itemLevelCallNumberTypeId", to: || &types::CALL_NUMBER_TYPES },
        Reference { path: "statisticalCodeIds", to: || &types::STATISTICAL_CODES },
    ],
    names: Names {
        elements: &[("notes", "note"), ("circulationNotes", "note"), ("electronicAccess", "uri")],
        whole: &["hrid", "barcode", "status.name", "accessionNumber", "effectiveShelvingOrder"],
        anywhere: &["barcode", "hrid", "effectiveCallNumberComponents.callNumber"],
        ..Names::PLAIN
    },
    locking: Locking::From(1),
    numbered: Some(Numbered::Items),
    hooks: Hooks {
        prepare,
        foreign: joins::of_items,
        stored: item_stored,
        deleting: item_goes,
        ..Hooks::NONE
    },
    ..Collection::named("/item-storage/items", "items", "folio_item")
};

/// Completes an item: hrid, status with its date, properties derived from its holdings.
fn prepare(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &mut Map<String, Value>,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    number(txn, writer, Numbered::Items, body, old)?;
    for name in ["holdingsRecord2", "materialType", "permanentLocation", "temporaryLocation"] {
        body.shift_remove(name);
    }
    if let Some(Value::Object(status)) = body.get_mut("status") {
        let name = status.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !name.is_empty() && !STATUSES.contains(&name.as_str()) {
            let fault = Fault::new(format!("{name} is no status of an item")).ty("1").code("-1");
            return Err(FolioError::unprocessable(fault.with("status.name", name)));
        }
        let before = old.and_then(|it| it.get("status"));
        let date = match before {
            Some(before) if before.get("name").and_then(Value::as_str) == Some(&name) => {
                before.get("date").cloned()
            }
            _ => Some(dates::rmb(writer.now_ms).into()),
        };
        status.extend(date.map(|it| ("date".to_owned(), it)));
    }
    let holdings = body.get("holdingsRecordId").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    if let Some(record) = txn.get(&HOLDINGS.kind, &holdings)? {
        derived::derive(body, &record.json()?);
    }
    Ok(())
}

/// Called when an item was created or changed.
pub(crate) fn item_stored(
    txn: &mut Txn<'_>,
    writer: &Writer,
    item: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let holdings = text_at(item, "holdingsRecordId");
    let former = old.and_then(|it| text_at(it, "holdingsRecordId")).filter(|it| Some(*it) != holdings);
    for id in holdings.into_iter().chain(former) {
        if let Some(record) = txn.get(&HOLDINGS.kind, id)? {
            holdings_stored(txn, writer, &record.json()?, None)?;
        }
    }
    Ok(())
}

/// Called when an item is deleted.
pub(crate) fn item_goes(txn: &mut Txn<'_>, writer: &Writer, item: &Value) -> Result<(), FolioError> {
    item_stored(txn, writer, item, None)
}
