//! Fees and fines: what patrons owe, why, and how it was settled (mod-feesfines).
//!
//! An *account* is one fee; each step to settle it is an *action*. Staff pay, waive, transfer, refund and cancel
//! through the routes of [`actions`]; circulation charges by the policies of the loan ([`overdue`], [`lost`]), in the
//! transaction that checks the item in or declares it lost.

pub(crate) mod accounts;
pub(crate) mod action_records;
mod actions;
pub(crate) mod actual_cost;
pub(crate) mod actual_cost_records;
pub(crate) mod charged;
pub(crate) mod lost;
mod money;
pub(crate) mod overdue;
mod reports;
pub(crate) mod routes;
pub(crate) mod settled;

use pinakes_store::{Arity, Column, Index, Kind, Search, Type};

use crate::circulation::fees::charged::{ACCOUNT, plain};
use crate::platform::collection::{Collection, Hooks, Kinds, Schema};
use crate::platform::cql::Names;

/// `/accounts`: fees and fines.
pub(crate) static ACCOUNTS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("userId", Type::Text),
            Column::one("loanId", Type::Text),
            Column::one("itemId", Type::Text),
            Column::at("status", "status.name", Type::Text),
            Column::one("feeFineId", Type::Text),
            Column::one("feeFineType", Type::Folded),
            Column::one("ownerId", Type::Text),
        ],
        indexes: &[Index::on(&["userId"]), Index::on(&["loanId"]), Index::on(&["itemId"])],
        search: Search::Folded,
        ..Kind::named(ACCOUNT)
    },
    schema: Schema {
        required: &["amount", "remaining", "userId", "feeFineId", "ownerId"],
        types: &[
            ("amount", Kinds::Number),
            ("remaining", Kinds::Number),
            ("userId", Kinds::Uuid),
            ("feeFineId", Kinds::Uuid),
            ("ownerId", Kinds::Uuid),
        ],
        lists: &["contributors"],
        ..Schema::OPEN
    },
    names: Names {
        whole: &["feeFineType"],
        fields: &[
            "amount",
            "remaining",
            "paymentStatus.name",
            "feeFineOwner",
            "title",
            "barcode",
            "callNumber",
            "location",
            "materialType",
            "materialTypeId",
            "dueDate",
            "returnedDate",
            "loanPolicyId",
            "overdueFinePolicyId",
            "lostItemFeePolicyId",
            "holdingsRecordId",
            "instanceId",
            "contributors",
            "itemStatus.name",
            "dateCreated",
        ],
        ..Names::PLAIN
    },
    hooks: Hooks { stored: settled::account_stored, ..Hooks::NONE },
    ..plain("/accounts", "accounts", "accounts", ACCOUNT, "accounts")
};

/// `/feefines`: the types of fees.
pub(crate) static FEE_FINES: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("feeFineType", Type::Folded), Column::one("ownerId", Type::Text)],
        indexes: &[Index::unique(&["feeFineType", "ownerId"])],
        ..Kind::named("folio_fee_fine")
    },
    schema: Schema {
        required: &["feeFineType"],
        types: &[("ownerId", Kinds::Uuid), ("feeFineType", Kinds::Text)],
        ..Schema::OPEN
    },
    names: Names { whole: &["feeFineType"], ..Names::PLAIN },
    reference_data: include_str!("../../reference/fee-fine-types.json"),
    taken: Some("Unable to process request"),
    gone: Some("FeefineObject does not exist"),
    ..plain("/feefines", "feefines", "feefines", "folio_fee_fine", "feefines")
};

/// `/owners`: to whom fees are owed. Two owners may have the same name.
pub(crate) static OWNERS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("owner", Type::Folded),
            Column {
                name: "servicePoints",
                path: "servicePointOwner.value",
                ty: Type::Text,
                arity: Arity::Many,
            },
        ],
        indexes: &[Index::on(&["owner"])],
        ..Kind::named("folio_owner")
    },
    schema: Schema { required: &["owner"], ..Schema::OPEN },
    ..plain("/owners", "owners", "owners", "folio_owner", "owners")
};

/// `/payments`: the payment methods.
pub(crate) static PAYMENTS: Collection = Collection {
    schema: Schema { required: &["nameMethod"], ..Schema::OPEN },
    ..plain("/payments", "payments", "payments", "folio_payment", "payments")
};

/// `/waives`: the reasons for waiving a fee.
pub(crate) static WAIVES: Collection = Collection {
    schema: Schema { required: &["nameReason"], ..Schema::OPEN },
    ..plain("/waives", "waivers", "waives", "folio_waive", "waives")
};

/// `/transfers`: the accounts to which fees are transferred.
pub(crate) static TRANSFERS: Collection = Collection {
    schema: Schema { required: &["accountName"], ..Schema::OPEN },
    ..plain("/transfers", "transfers", "transfers", "folio_transfer", "transfers")
};

/// `/transfer-criterias`: when fees are transferred.
pub(crate) static TRANSFER_CRITERIA: Collection = Collection {
    schema: Schema { required: &["criteria"], ..Schema::OPEN },
    ..plain(
        "/transfer-criterias",
        "transferCriterias",
        "transfer_criteria",
        "folio_transfer_criteria",
        "transfer-criterias",
    )
};

/// `/refunds`: the reasons for refunds.
pub(crate) static REFUNDS: Collection = Collection {
    schema: Schema { required: &["nameReason"], ..Schema::OPEN },
    ..plain("/refunds", "refunds", "refunds", "folio_refund", "refunds")
};

/// `/comments`: whether actions need a comment.
pub(crate) static COMMENTS: Collection =
    Collection { ..plain("/comments", "comments", "comments", "folio_fee_comment", "comments") };
