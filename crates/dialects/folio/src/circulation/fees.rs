//! What patrons owe, and what keeps them from borrowing: collections as far as the desk asks (section 12).

use pinakes_store::{Column, Expr, Index, Kind, Query, Type, View, Weight};
use serde_json::{Value, json};

use super::{loans, moment};
use crate::app::{Call, json_answer};
use crate::collection::{Collection, Kinds, Schema, Unique};
use crate::cql::Names;
use crate::error::{Answer, FolioError};
use crate::json::text_at;
use crate::users::USERS;

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
        ],
        indexes: &[Index::on(&["userId"]), Index::on(&["loanId"]), Index::on(&["itemId"])],
        ..Kind::named("folio_account")
    },
    schema: Schema {
        required: &["amount", "remaining", "userId", "feeFineId", "ownerId"],
        types: &[("amount", Kinds::Number), ("remaining", Kinds::Number), ("userId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    ..plain("/accounts", "accounts", "accounts", "folio_account", "accounts")
};

/// `/feefineactions`: what was done about an account.
pub(crate) static FEE_FINE_ACTIONS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("accountId", Type::Text), Column::one("userId", Type::Text)],
        indexes: &[Index::on(&["accountId"]), Index::on(&["userId"])],
        ..Kind::named("folio_fee_fine_action")
    },
    schema: Schema { required: &["accountId", "userId"], ..Schema::OPEN },
    ..plain("/feefineactions", "feefineactions", "feefineactions", "folio_fee_fine_action", "feefineactions")
};

/// `/feefines`: the kinds of fees.
pub(crate) static FEE_FINES: Collection = Collection {
    schema: Schema { required: &["feeFineType"], ..Schema::OPEN },
    reference_data: include_str!("../../reference/fee-fine-types.json"),
    names: Names { whole: &["feeFineType"], ..Names::PLAIN },
    ..plain("/feefines", "feefines", "feefines", "folio_fee_fine", "feefines")
};

/// `/owners`: to whom fees are due.
pub(crate) static OWNERS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("owner", Type::Folded)],
        indexes: &[Index::unique(&["owner"])],
        ..Kind::named("folio_owner")
    },
    schema: Schema { required: &["owner"], ..Schema::OPEN },
    unique: &[Unique { column: "owner", message: "" }],
    ..plain("/owners", "owners", "owners", "folio_owner", "owners")
};

/// `/payments`: the ways to pay.
pub(crate) static PAYMENTS: Collection = Collection {
    schema: Schema { required: &["nameMethod"], ..Schema::OPEN },
    ..plain("/payments", "payments", "payments", "folio_payment", "payments")
};

/// `/waives`: the reasons to let a fee go.
pub(crate) static WAIVES: Collection = Collection {
    schema: Schema { required: &["nameReason"], ..Schema::OPEN },
    ..plain("/waives", "waivers", "waives", "folio_waive", "waives")
};

/// `/manualblocks`.
pub(crate) static MANUAL_BLOCKS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("userId", Type::Text), Column::one("type", Type::Folded)],
        indexes: &[Index::on(&["userId"])],
        ..Kind::named("folio_manual_block")
    },
    schema: Schema {
        required: &["type", "desc", "userId"],
        types: &[("userId", Kinds::Uuid), ("borrowing", Kinds::Boolean)],
        ..Schema::OPEN
    },
    ..plain("/manualblocks", "manualblocks", "manualblocks", "folio_manual_block", "manualblocks")
};

/// `/patron-block-conditions`: what automated blocks may be about. FOLIO's six, fixed.
pub(crate) static BLOCK_CONDITIONS: Collection = Collection {
    reference_data: include_str!("../../reference/patron-block-conditions.json"),
    ..plain(
        "/patron-block-conditions",
        "patronBlockConditions",
        "patron_block_conditions",
        "folio_block_condition",
        "patron-block-conditions",
    )
};

/// `/patron-block-limits`: from which number on a condition blocks a group.
pub(crate) static BLOCK_LIMITS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("patronGroupId", Type::Text), Column::one("conditionId", Type::Text)],
        indexes: &[Index::unique(&["patronGroupId", "conditionId"])],
        ..Kind::named("folio_block_limit")
    },
    schema: Schema {
        required: &["patronGroupId", "conditionId"],
        types: &[("patronGroupId", Kinds::Uuid), ("conditionId", Kinds::Uuid), ("value", Kinds::Number)],
        ..Schema::OPEN
    },
    unique: &[Unique { column: "conditionId", message: "" }],
    ..plain(
        "/patron-block-limits",
        "patronBlockLimits",
        "patron_block_limits",
        "folio_block_limit",
        "patron-block-limits",
    )
};

/// A collection by its names.
const fn plain(
    path: &'static str,
    list: &'static str,
    table: &'static str,
    kind: &'static str,
    permission: &'static str,
) -> Collection {
    Collection { table, permission, ..Collection::named(path, list, kind) }
}

const MAX_ITEMS: &str = "3d7c52dc-c732-4223-8bf8-e5917801386f";
const MAX_LOST_ITEMS: &str = "72b67965-5b73-4840-bc0b-be8f3f6e047e";
const MAX_OVERDUE_ITEMS: &str = "584fbd4f-6a34-4730-a6ca-73a6a6a9d845";
const MAX_OVERDUE_RECALLS: &str = "e5b45031-a202-4abb-917b-e1df9346fe2c";
const MAX_DAYS_OF_OVERDUE_RECALL: &str = "08530ac4-07f2-48e6-9dda-a97bc2bf7053";
const MAX_BALANCE: &str = "cf7a0d5f-a327-4ca1-aa9e-dc55ec006b8a";

/// What an automated block keeps a patron from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) condition: String,
    pub(crate) message: String,
    pub(crate) keeps_from_borrowing: bool,
    pub(crate) keeps_from_renewing: bool,
    pub(crate) keeps_from_requesting: bool,
}

/// The automated blocks of a patron: the limits of the group that what the patron has now goes beyond.
pub(crate) fn automated_blocks(
    view: &mut View<'_>,
    user: &Value,
    now_ms: i64,
) -> Result<Vec<Block>, FolioError> {
    let (Some(id), Some(group)) = (text_at(user, "id"), text_at(user, "patronGroup")) else {
        return Ok(Vec::new());
    };
    let limits =
        view.find(&BLOCK_LIMITS.kind, &Query::filter(Expr::Is("patronGroupId".into(), group.into())))?;
    if limits.is_empty() {
        return Ok(Vec::new());
    }
    let held = Held::of(view, id, now_ms)?;
    let mut blocks = Vec::new();
    for limit in limits {
        let limit = limit.json()?;
        let (Some(condition), Some(value)) = (text_at(&limit, "conditionId"), limit["value"].as_f64()) else {
            continue;
        };
        let Some(condition) = view.get(&BLOCK_CONDITIONS.kind, condition)? else { continue };
        let condition = condition.json()?;
        let flag = |name: &str| condition[name].as_bool().unwrap_or(false);
        if held.is_beyond(text_at(&condition, "id").unwrap_or_default(), value) {
            blocks.push(Block {
                condition: text_at(&condition, "id").unwrap_or_default().to_owned(),
                message: text_at(&condition, "message").unwrap_or_default().to_owned(),
                keeps_from_borrowing: flag("blockBorrowing"),
                keeps_from_renewing: flag("blockRenewals"),
                keeps_from_requesting: flag("blockRequests"),
            });
        }
    }
    blocks.retain(|it| it.keeps_from_borrowing || it.keeps_from_renewing || it.keeps_from_requesting);
    Ok(blocks)
}

/// What a patron has now.
#[derive(Debug, Default)]
struct Held {
    n_items: u32,
    n_lost: u32,
    n_overdue: u32,
    n_overdue_recalls: u32,
    days_of_overdue_recall: f64,
    balance: f64,
}

impl Held {
    fn of(view: &mut View<'_>, user: &str, now_ms: i64) -> Result<Self, FolioError> {
        let mut held = Self::default();
        for loan in loans::open_loans_of(view, user)? {
            let loan = loan.json()?;
            let due_ms = text_at(&loan, "dueDate").and_then(moment::parse).map(|it| it.as_millisecond());
            held.n_items += 1;
            if matches!(text_at(&loan, "itemStatus"), Some("Declared lost" | "Aged to lost")) {
                held.n_lost += 1;
            }
            let Some(late_ms) = due_ms.map(|it| now_ms - it).filter(|it| 0 < *it) else { continue };
            held.n_overdue += 1;
            if loan["dueDateChangedByRecall"].as_bool().unwrap_or(false) {
                const DAY_MS: f64 = 86_400_000.0;
                held.n_overdue_recalls += 1;
                #[expect(clippy::cast_precision_loss, reason = "a span of days, shown to nobody")]
                let days = late_ms as f64 / DAY_MS;
                held.days_of_overdue_recall = held.days_of_overdue_recall.max(days);
            }
        }
        let open = Expr::Is("userId".into(), user.into()).and(Expr::Is("status.name".into(), "Open".into()));
        for account in view.find(&ACCOUNTS.kind, &Query::filter(open))? {
            held.balance += account.json()?["remaining"].as_f64().unwrap_or(0.0);
        }
        Ok(held)
    }

    fn is_beyond(&self, condition: &str, limit: f64) -> bool {
        match condition {
            // A patron with the most items that are allowed may not borrow another.
            MAX_ITEMS => limit <= f64::from(self.n_items),
            MAX_LOST_ITEMS => limit < f64::from(self.n_lost),
            MAX_OVERDUE_ITEMS => limit < f64::from(self.n_overdue),
            MAX_OVERDUE_RECALLS => limit < f64::from(self.n_overdue_recalls),
            MAX_DAYS_OF_OVERDUE_RECALL => limit < self.days_of_overdue_recall,
            MAX_BALANCE => limit < self.balance,
            _ => false,
        }
    }
}

/// `GET /automated-patron-blocks/{userId}`.
pub(crate) async fn show_automated(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Vec<Block>, FolioError> {
        match view.get(&USERS.kind, &id)? {
            Some(user) => automated_blocks(view, &user.json()?, now_ms),
            None => Ok(Vec::new()),
        }
    };
    let blocks = call.db().read(Weight::Scan, read).await?;
    let list: Vec<Value> = blocks.iter().map(|it| json!({
        "patronBlockConditionId": it.condition, "message": it.message, "blockBorrowing": it.keeps_from_borrowing,
        "blockRenewals": it.keeps_from_renewing, "blockRequests": it.keeps_from_requesting,
    })).collect();
    Ok(json_answer(http::StatusCode::OK, &json!({"automatedPatronBlocks": list})))
}

/// The manual blocks of a patron that hold now: their reasons.
pub(crate) fn manual_blocks(
    view: &mut View<'_>,
    user: &str,
    action: &str,
    now_ms: i64,
) -> Result<Vec<String>, FolioError> {
    let of_user = Query::filter(Expr::Is("userId".into(), user.into()));
    let mut reasons = Vec::new();
    for block in view.find(&MANUAL_BLOCKS.kind, &of_user)? {
        let block = block.json()?;
        let ends_ms = text_at(&block, "expirationDate").and_then(moment::parse).map(|it| it.as_millisecond());
        if block[action].as_bool().unwrap_or(false) && ends_ms.is_none_or(|it| now_ms < it) {
            reasons.push(text_at(&block, "desc").unwrap_or_default().to_owned());
        }
    }
    Ok(reasons)
}
