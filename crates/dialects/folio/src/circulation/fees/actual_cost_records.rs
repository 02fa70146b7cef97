//! Lost items whose actual cost is still to be determined, as they are stored.

use pinakes_store::{Column, Expr, Index, Kind, Query, Search, StoreError, Type, View};
use serde_json::Value;

use crate::circulation::fees::charged::plain;
use crate::platform::collection::{Collection, Schema};
use crate::platform::cql::Names;

/// `/actual-cost-record-storage/actual-cost-records`.
pub(crate) static ACTUAL_COSTS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::at("loan", "loan.id", Type::Text),
            Column::at("user", "user.id", Type::Text),
            Column::one("status", Type::Text),
            Column::one("lossType", Type::Folded),
            Column::one("expirationDate", Type::Instant),
        ],
        indexes: &[Index::on(&["loan"]), Index::on(&["status"])],
        search: Search::Folded,
        ..Kind::named("folio_actual_cost")
    },
    names: Names {
        fields: &[
            "lossDate",
            "user.barcode",
            "user.firstName",
            "user.lastName",
            "user.patronGroupId",
            "user.patronGroup",
            "item.id",
            "item.barcode",
            "item.loanTypeId",
            "item.loanType",
            "item.materialTypeId",
            "item.materialType",
            "item.permanentLocationId",
            "item.permanentLocation",
            "item.effectiveLocationId",
            "item.effectiveLocation",
            "item.holdingsRecordId",
            "instance.id",
            "instance.title",
            "feeFine.ownerId",
            "feeFine.owner",
            "feeFine.typeId",
            "feeFine.type",
            "feeFine.accountId",
            "additionalInfoForStaff",
            "additionalInfoForPatron",
        ],
        ..Names::PLAIN
    },
    schema: Schema {
        required: &["lossType", "lossDate", "user", "loan", "item", "instance"],
        ..Schema::OPEN
    },
    ..plain(
        "/actual-cost-record-storage/actual-cost-records",
        "actualCostRecords",
        "actual_cost_record",
        "folio_actual_cost",
        "actual-cost-record-storage.actual-cost-records",
    )
};

/// Status of a record whose cost is still to be determined.
pub(crate) const OPEN: &str = "Open";

/// Returns the open records of a loan.
pub(crate) fn open_of_loan(view: &mut View<'_>, loan: &str) -> Result<Vec<Value>, StoreError> {
    let open = Expr::Is("loan.id".into(), loan.into()).and(Expr::Is("status".into(), OPEN.into()));
    view.find(&ACTUAL_COSTS.kind, &Query::filter(open))?.iter().map(pinakes_store::Record::json).collect()
}

/// Checks whether a loan has an open record.
pub(super) fn is_open_for(view: &mut View<'_>, loan: &str) -> Result<bool, StoreError> {
    Ok(!open_of_loan(view, loan)?.is_empty())
}
