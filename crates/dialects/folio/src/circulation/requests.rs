//! Requests for items and titles: hold, recall, page (section 12 of the contract).
//!
//! Open requests for an item form a queue, numbered from 1. If a site has title-level requests switched on (`TLR` of
//! `/circulation/settings`), the queue is that of the instance.

mod any;
mod change;
mod create;
mod handlers;
mod joins;
pub(crate) mod queue;
pub(crate) mod view;

use pinakes_store::{Arity, Column, Expr, Index, Kind, Query, Search, StoreError, Txn, Type, View};
use serde_json::{Map, Value};

use super::neighbours::{INSTANCES, ITEMS, SERVICE_POINTS, USERS};
use super::policies::SETTINGS;
use super::records::{Records, copy, text};
use crate::platform::collection::{Collection, Hooks, Kinds, Schema, Writer};
use crate::platform::cql::Names;
use crate::platform::error::FolioError;

pub(crate) use any::{create_for_item, create_for_title};
pub(crate) use change::{expire, replace};
pub(crate) use handlers::{allowed_points, routes};

/// `/request-storage/requests`.
pub(crate) static REQUESTS: Collection = Collection {
    table: "request",
    permission: "circulation-storage.requests",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("itemId", Type::Text),
            Column::one("instanceId", Type::Text),
            Column::one("requesterId", Type::Text),
            Column::one("pickupServicePointId", Type::Text),
            Column::one("status", Type::Folded),
            Column::one("requestType", Type::Folded),
            Column::one("requestDate", Type::Instant),
            Column::one("position", Type::Integer),
            Column::one("requestLevel", Type::Folded),
            Column::at("itemBarcode", "item.barcode", Type::Folded),
            Column::at("requesterBarcode", "requester.barcode", Type::Folded),
            Column::at("requesterLastName", "requester.lastName", Type::Folded),
            Column::at("requesterFirstName", "requester.firstName", Type::Folded),
            Column::at("title", "instance.title", Type::Folded),
            Column::at("callNumber", "searchIndex.callNumberComponents.callNumber", Type::Folded),
            Column::at("fullCallNumber", "searchIndex.fullCallNumber", Type::Folded),
            Column::at("shelvingOrder", "searchIndex.shelvingOrder", Type::Text),
            Column::at("pickupName", "searchIndex.pickupServicePointName", Type::Folded),
            Column {
                name: "identifiers",
                path: "instance.identifiers.value",
                ty: Type::Folded,
                arity: Arity::Many,
            },
        ],
        indexes: &[
            Index::on(&["itemId"]),
            Index::on(&["instanceId"]),
            Index::on(&["requesterId"]),
            Index::on(&["status"]),
            Index::on(&["itemBarcode"]),
            Index::on(&["requesterBarcode"]),
        ],
        search: Search::Folded,
        joins: &["itemId", "instanceId", "requesterId", "proxyUserId"],
        ..Kind::named(joins::KIND)
    },
    schema: Schema {
        required: &["requestType", "requestDate", "requesterId", "instanceId", "requestLevel"],
        types: &[("requesterId", Kinds::Uuid), ("instanceId", Kinds::Uuid), ("itemId", Kinds::Uuid)],
        defaults: &[("status", "\"Open - Not yet filled\"")],
        ..Schema::OPEN
    },
    names: Names {
        aliases: &[
            ("fullCallNumberIndex", "searchIndex.fullCallNumber"),
            ("itemIsbn", "instance.identifiers.value"),
        ],
        whole: &["status", "requestType", "requestLevel", "item.barcode", "requester.barcode"],
        fields: &[
            "fulfillmentPreference",
            "deliveryAddressTypeId",
            "requestExpirationDate",
            "holdShelfExpirationDate",
            "cancellationReasonId",
            "cancelledByUserId",
            "cancellationAdditionalInformation",
            "cancelledDate",
            "awaitingPickupRequestClosedDate",
            "proxyUserId",
            "holdingsRecordId",
            "patronComments",
            "requestProcessingParameters",
            "ecsRequestPhase",
        ],
        ..Names::PLAIN
    },
    hooks: Hooks { prepare: remember, foreign: joins::of_requests, ..Hooks::NONE },
    ..Collection::named("/request-storage/requests", "requests", joins::KIND)
};

/// Copies into a request the searchable data of its item, title, requester and pickup location, as they are now.
fn remember(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let mut known = Records::default();
    let whole = Value::Object(body.clone());
    let mut index = Map::new();
    if let Some(instance) = known.at(txn, &INSTANCES, &whole, "instanceId")? {
        let mut shown = Map::new();
        copy(&instance, &["title", "identifiers"], &mut shown);
        body.insert("instance".into(), Value::Object(shown));
    }
    if let Some(item) = known.at(txn, &ITEMS, &whole, "itemId")? {
        let mut shown = Map::new();
        copy(&item, &["barcode"], &mut shown);
        body.insert("item".into(), Value::Object(shown));
        let components = &item["effectiveCallNumberComponents"];
        let mut number = Map::new();
        copy(components, &["callNumber", "prefix", "suffix"], &mut number);
        index.insert("callNumberComponents".into(), Value::Object(number));
        let full: Vec<&str> = ["prefix", "callNumber", "suffix"]
            .iter()
            .map(|it| text(components, it))
            .filter(|it| !it.is_empty())
            .collect();
        index.insert("fullCallNumber".into(), full.join(" ").into());
        if let Some(order) = item.get("effectiveShelvingOrder") {
            index.insert("shelvingOrder".into(), order.clone());
        }
    }
    if let Some(user) = known.at(txn, &USERS, &whole, "requesterId")? {
        let mut shown = Map::new();
        copy(&user["personal"], &["firstName", "lastName", "middleName"], &mut shown);
        copy(&user, &["barcode"], &mut shown);
        body.insert("requester".into(), Value::Object(shown));
    }
    if let Some(point) = known.at(txn, &SERVICE_POINTS, &whole, "pickupServicePointId")? {
        index.insert("pickupServicePointName".into(), point["name"].clone());
    }
    body.insert("searchIndex".into(), Value::Object(index));
    Ok(())
}

pub(crate) const NOT_FILLED: &str = "Open - Not yet filled";
pub(crate) const AWAITING_PICKUP: &str = "Open - Awaiting pickup";
pub(crate) const AWAITING_DELIVERY: &str = "Open - Awaiting delivery";
pub(crate) const IN_TRANSIT: &str = "Open - In transit";

/// Checks whether a status is that of an open request.
pub(crate) fn is_open(status: &str) -> bool {
    status.starts_with("Open")
}

/// Checks whether the site accepts title-level requests.
pub(crate) fn are_titles_requested(view: &mut View<'_>) -> Result<bool, StoreError> {
    let names = ["TLR", "generalTlr"].map(|it| pinakes_store::Value::Folded(it.to_owned()));
    let found = view.find(&SETTINGS.kind, &Query::filter(Expr::In("name".into(), names.to_vec())))?;
    for record in found {
        let flag = &record.json()?["value"]["titleLevelRequestsFeatureEnabled"];
        if flag == &Value::Bool(true) || flag.as_str() == Some("true") {
            return Ok(true);
        }
    }
    Ok(false)
}
