//! Blocks that keep patrons from borrowing, renewing and requesting: those that staff set, and automated ones that
//! follow from a patron's loans and fees (mod-patron-blocks).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Search, Txn, Type, View, Weight};
use serde_json::{Map, Value, json};

use crate::circulation::fees::ACCOUNTS;
use crate::circulation::fees::charged::plain;
use crate::circulation::{loans, moment};
use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Hooks, Kinds, Schema, Unique, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::users::user::USERS;

/// `/manualblocks`.
pub(crate) static MANUAL_BLOCKS: Collection = Collection {
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("userId", Type::Text), Column::one("type", Type::Folded)],
        indexes: &[Index::on(&["userId"])],
        search: Search::Folded,
        ..Kind::named("folio_manual_block")
    },
    schema: Schema {
        required: &["desc", "userId"],
        types: &[("userId", Kinds::Uuid), ("borrowing", Kinds::Boolean)],
        ..Schema::OPEN
    },
    gone: Some("ManualblockObject does not exist"),
    has_result_info: false,
    ..plain("/manualblocks", "manualblocks", "manualblocks", "folio_manual_block", "manualblocks")
};

/// `/manual-block-templates`: templates for blocks that staff set.
pub(crate) static MANUAL_BLOCK_TEMPLATES: Collection = Collection {
    schema: Schema { required: &["name"], ..Schema::OPEN },
    gone: Some("Not found"),
    has_result_info: false,
    ..plain(
        "/manual-block-templates",
        "manualBlockTemplates",
        "manual_block_templates",
        "folio_manual_block_template",
        "manual-block-templates",
    )
};

/// Requested synchronisations. Blocks are computed from the records themselves, so there is nothing to synchronise.
pub(crate) static SYNC_JOBS: Collection = Collection {
    is_served: false,
    ..plain(
        "/automated-patron-blocks/synchronization/job",
        "jobs",
        "synchronization_jobs",
        "folio_block_sync_job",
        "patron-blocks.synchronization.job",
    )
};

/// `/patron-block-conditions`: the conditions of automated blocks: FOLIO's six, fixed.
pub(crate) static BLOCK_CONDITIONS: Collection = Collection {
    reference_data: include_str!("../../reference/patron-block-conditions.json"),
    hooks: Hooks { prepare: check_condition, ..Hooks::NONE },
    is_served: false,
    ..plain(
        "/patron-block-conditions",
        "patronBlockConditions",
        "patron_block_conditions",
        "folio_block_condition",
        "patron-blocks.patron-block-conditions",
    )
};

/// `/patron-block-limits`: the value above which a condition blocks a group.
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
    hooks: Hooks { prepare: check_limit, ..Hooks::NONE },
    ..plain(
        "/patron-block-limits",
        "patronBlockLimits",
        "patron_block_limits",
        "folio_block_limit",
        "patron-blocks.patron-block-limits",
    )
};

/// Adds the routes beyond the collections.
pub(crate) fn routes(mut routes: Routes) -> Routes {
    let conditions = "/patron-block-conditions";
    let condition = "/patron-block-conditions/{id}";
    let job = "/automated-patron-blocks/synchronization/job";
    let to = |end: &str| Access::owned(format!("patron-blocks.{end}"));
    for event in EVENTS {
        let path = format!("/automated-patron-blocks/handlers/{event}");
        routes = routes.post(&path, to(&format!("handlers.{event}.post")), take_event);
    }
    // The six conditions are fixed.
    routes
        .get(conditions, to("patron-block-conditions.collection.get"), |call| async move {
            let page = collection::Page::of(&call)?;
            collection::answer_list(&call, &BLOCK_CONDITIONS, page).await
        })
        .get(condition, to("patron-block-conditions.item.get"), |call| {
            collection::by_id(call, &BLOCK_CONDITIONS)
        })
        .put(condition, to("patron-block-conditions.item.put"), |call| {
            collection::replace(call, &BLOCK_CONDITIONS)
        })
        .get("/automated-patron-blocks/{id}", to("automated-patron-blocks.collection.get"), show_automated)
        .get("/user-summary/{userId}", to("user-summary.item.get"), summary)
        .post(job, to("synchronization.job.post"), begin_sync)
        .get(&format!("{job}/{{id}}"), to("synchronization.job.get"), |call| {
            collection::by_id(call, &SYNC_JOBS)
        })
}

/// Events that other modules send to mod-patron-blocks. Here blocks follow from the loans and fees themselves.
const EVENTS: [&str; 8] = [
    "fee-fine-balance-changed",
    "item-aged-to-lost",
    "item-checked-in",
    "item-checked-out",
    "item-claimed-returned",
    "item-declared-lost",
    "loan-closed",
    "loan-due-date-changed",
];

async fn take_event(mut call: Call) -> Answer {
    let body = call.object().await?;
    if body.get("userId").is_none_or(Value::is_null) {
        return Err(FolioError::unprocessable(Fault::missing("userId")));
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Answers `{"scope":"full"|"user","userId"?}`, which is done at once, see [`SYNC_JOBS`].
async fn begin_sync(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let scope = body.get("scope").and_then(Value::as_str).unwrap_or_default();
    let fault = match scope {
        "full" => None,
        "user" if body.get("userId").and_then(Value::as_str).is_some() => None,
        "user" => Some(Fault::new("UserId is required for synchronization job with scope: USER")),
        other => Some(Fault::new("scope must be \"full\" or \"user\"").with("scope", other)),
    };
    if let Some(fault) = fault {
        return Err(FolioError::unprocessable(fault));
    }
    body.insert("status".into(), "done".into());
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| collection::insert(txn, &writer(), &SYNC_JOBS, body.clone());
    let stored = call.db().write(write).await?;
    Ok(collection::created(&SYNC_JOBS, &stored.id, stored.bytes))
}

/// Checks that a condition that blocks something has a message, and that one with a message blocks something.
fn check_condition(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
    let blocks = ["blockBorrowing", "blockRenewals", "blockRequests"]
        .iter()
        .any(|it| body.get(*it).and_then(Value::as_bool).unwrap_or(false));
    let fault = match (blocks, message.is_empty()) {
        (true, true) => "Message to be displayed is a required field if one or more Blocked actions selected",
        (false, false) => {
            "One or more Blocked actions must be selected for Message to be displayed to be used"
        }
        _ => return Ok(()),
    };
    Err(FolioError::unprocessable(Fault::new(fault).with("message", message)))
}

/// Checks that a limit is a number within its bounds, and a whole one where things are counted.
fn check_limit(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let Some(value) = body.get("value").filter(|it| !it.is_null()) else { return Ok(()) };
    let id = body.get("conditionId").and_then(Value::as_str).unwrap_or_default();
    let number = value.as_f64().unwrap_or(-1.0);
    let fault = if id == MAX_BALANCE {
        const MAX: f64 = 999_999.99;
        ((0.0..=MAX).contains(&number))
            .then_some(())
            .ok_or("Must be blank or a number from 0.00 to 999999.99")
    } else {
        const MAX: f64 = 999_999.0;
        ((0.0..=MAX).contains(&number) && number.fract() == 0.0)
            .then_some(())
            .ok_or("Must be blank or an integer from 0 to 999999")
    };
    let value = value.to_string();
    fault.map_err(|message| FolioError::unprocessable(Fault::new(message).with("value", value)))
}

const MAX_ITEMS: &str = "3d7c52dc-c732-4223-8bf8-e5917801386f";
const MAX_LOST_ITEMS: &str = "72b67965-5b73-4840-bc0b-be8f3f6e047e";
const MAX_OVERDUE_ITEMS: &str = "584fbd4f-6a34-4730-a6ca-73a6a6a9d845";
const MAX_OVERDUE_RECALLS: &str = "e5b45031-a202-4abb-917b-e1df9346fe2c";
const MAX_DAYS_OF_OVERDUE_RECALL: &str = "08530ac4-07f2-48e6-9dda-a97bc2bf7053";
const MAX_BALANCE: &str = "cf7a0d5f-a327-4ca1-aa9e-dc55ec006b8a";

/// An automated block, and what it keeps a patron from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) condition: String,
    pub(crate) message: String,
    pub(crate) keeps_from_borrowing: bool,
    pub(crate) keeps_from_renewing: bool,
    pub(crate) keeps_from_requesting: bool,
}

/// Returns the automated blocks of a patron: one for each limit of the group that the patron has reached or exceeded.
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
        let reach = held.reach(text_at(&condition, "id").unwrap_or_default(), value);
        blocks.push(Block {
            condition: text_at(&condition, "id").unwrap_or_default().to_owned(),
            message: text_at(&condition, "message").unwrap_or_default().to_owned(),
            keeps_from_borrowing: reach != Reach::Within && flag("blockBorrowing"),
            keeps_from_renewing: reach == Reach::Beyond && flag("blockRenewals"),
            keeps_from_requesting: reach == Reach::Beyond && flag("blockRequests"),
        });
    }
    blocks.retain(|it| it.keeps_from_borrowing || it.keeps_from_renewing || it.keeps_from_requesting);
    Ok(blocks)
}

/// The patron's current loans and fees, as numbers.
#[derive(Debug, Default)]
struct Held {
    /// Without lost items and items claimed returned.
    n_items: u32,
    n_lost: u32,
    n_overdue: u32,
    n_overdue_recalls: u32,
    days_of_overdue_recall: f64,
    balance: f64,
}

/// Where a value lies with regard to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Within,
    /// The limit is reached: no further item may be borrowed.
    Reached,
    Beyond,
}

fn is_lost(loan: &Value) -> bool {
    matches!(text_at(loan, "itemStatus"), Some("Declared lost" | "Aged to lost"))
}

fn is_claimed(loan: &Value) -> bool {
    text_at(loan, "itemStatus") == Some("Claimed returned")
}

fn open_accounts(view: &mut View<'_>, user: &str) -> Result<Vec<Value>, FolioError> {
    let open = Expr::Is("userId".into(), user.into()).and(Expr::Is("status.name".into(), "Open".into()));
    let found = view.find(&ACCOUNTS.kind, &Query::filter(open))?;
    Ok(found.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?)
}

impl Held {
    fn of(view: &mut View<'_>, user: &str, now_ms: i64) -> Result<Self, FolioError> {
        let mut held = Self::default();
        for loan in loans::open_loans_of(view, user)? {
            let loan = loan.json()?;
            held.n_lost += u32::from(is_lost(&loan));
            if is_lost(&loan) || is_claimed(&loan) {
                continue;
            }
            held.n_items += 1;
            let due_ms = text_at(&loan, "dueDate").and_then(moment::parse).map(|it| it.as_millisecond());
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
        held.balance = open_accounts(view, user)?.iter().filter_map(|it| it["remaining"].as_f64()).sum();
        Ok(held)
    }

    fn reach(&self, condition: &str, limit: f64) -> Reach {
        let beyond = |value: f64| if limit < value { Reach::Beyond } else { Reach::Within };
        match condition {
            MAX_ITEMS => match f64::from(self.n_items) {
                n if limit < n => Reach::Beyond,
                n if limit <= n => Reach::Reached,
                _ => Reach::Within,
            },
            MAX_LOST_ITEMS => beyond(f64::from(self.n_lost)),
            MAX_OVERDUE_ITEMS => beyond(f64::from(self.n_overdue)),
            MAX_OVERDUE_RECALLS => beyond(f64::from(self.n_overdue_recalls)),
            MAX_DAYS_OF_OVERDUE_RECALL => beyond(self.days_of_overdue_recall),
            MAX_BALANCE => beyond(self.balance),
            _ => Reach::Within,
        }
    }
}

/// `GET /user-summary/{userId}`: returns the numbers of a patron's loans and fees, as blocks count them.
async fn summary(call: Call) -> Answer {
    let id = call.uuid_param("userId")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let loans = loans::open_loans_of(view, &id)?;
        let loans = loans.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?;
        let fees = open_accounts(view, &id)?;
        if loans.is_empty() && fees.is_empty() {
            return Err(FolioError::not_found(format!("User summary for user ID {id} not found")));
        }
        let loans: Vec<Value> = loans
            .iter()
            .map(|it| {
                json!({
                    "loanId": it["id"], "dueDate": it["dueDate"],
                    "recall": it["dueDateChangedByRecall"].as_bool().unwrap_or(false),
                    "itemLost": is_lost(it), "itemClaimedReturned": is_claimed(it),
                })
            })
            .collect();
        let fees: Vec<Value> = fees
            .iter()
            .map(|it| {
                let mut fee = json!({
                    "feeFineId": it["id"], "feeFineTypeId": it["feeFineId"], "balance": it["remaining"],
                });
                if let Some(loan) = it.get("loanId") {
                    fee["loanId"] = loan.clone();
                }
                fee
            })
            .collect();
        Ok(json!({"id": id, "userId": id, "openLoans": loans, "openFeesFines": fees}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
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
    Ok(json_answer(StatusCode::OK, &json!({"automatedPatronBlocks": list})))
}

/// Returns the reasons of the patron's manual blocks in effect now.
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
