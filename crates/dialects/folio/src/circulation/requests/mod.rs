//! Requests for items and titles: hold, recall, page (section 12 of the contract).
//!
//! Open requests for an item stand in a queue, numbered from 1. Where a site has title-level requests switched on
//! (`TLR` of `/circulation/settings`), the queue is that of the instance.

mod change;
mod create;
mod handlers;
mod joins;
pub(crate) mod queue;
mod view;

pub(crate) use handlers::routes;

use pinakes_store::{Column, Expr, Index, Kind, Query, StoreError, Type, View};
use serde_json::Value;

use super::policies::SETTINGS;
use crate::collection::{Collection, Hooks, Kinds, Schema};
use crate::cql::Names;

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
        ],
        indexes: &[
            Index::on(&["itemId"]),
            Index::on(&["instanceId"]),
            Index::on(&["requesterId"]),
            Index::on(&["status"]),
        ],
        ..Kind::named("folio_request")
    },
    schema: Schema {
        required: &["requestType", "requestDate", "requesterId", "instanceId", "requestLevel"],
        types: &[("requesterId", Kinds::Uuid), ("instanceId", Kinds::Uuid), ("itemId", Kinds::Uuid)],
        defaults: &[("status", "\"Open - Not yet filled\"")],
        ..Schema::OPEN
    },
    names: Names {
        whole: &["status", "requestType"],
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
    hooks: Hooks { foreign: joins::of_requests, ..Hooks::NONE },
    ..Collection::named("/request-storage/requests", "requests", "folio_request")
};

pub(crate) const NOT_FILLED: &str = "Open - Not yet filled";
pub(crate) const AWAITING_PICKUP: &str = "Open - Awaiting pickup";
pub(crate) const AWAITING_DELIVERY: &str = "Open - Awaiting delivery";
pub(crate) const IN_TRANSIT: &str = "Open - In transit";

/// Whether a status is one of a request that still waits.
pub(crate) fn is_open(status: &str) -> bool {
    status.starts_with("Open")
}

/// Whether the site takes requests for titles.
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
