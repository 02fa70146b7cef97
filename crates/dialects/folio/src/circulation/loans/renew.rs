//! `POST /circulation/renew-by-barcode` and `/circulation/renew-by-id`.

use http::StatusCode;
use pinakes_store::{Record, Txn};
use serde_json::{Map, Value};

use super::{open_loan_of, view};
use crate::circulation::book::Book;
use crate::circulation::check_out::inactive;
use crate::circulation::due_date::Standing;
use crate::circulation::fees::lost::{self, Found};
use crate::circulation::fees::overdue;
use crate::circulation::loan_policy::LoanPolicy;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::notices;
use crate::circulation::notices::sending::LoanEvent;
use crate::circulation::overrides::{Block, Overrides};
use crate::circulation::records::{Records, by_barcode, object, text};
use crate::circulation::requests::queue::{Queue, Request};
use crate::circulation::rules::PolicyKind;
use crate::circulation::terms::{self, Circumstances};
use crate::circulation::{moment, patron_blocks};
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Adds the routes of renewals.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/circulation/renew-by-barcode", Access::to("circulation.renew-by-barcode.post"), |call| {
            renew(call, Way::Barcodes)
        })
        .post("/circulation/renew-by-id", Access::to("circulation.renew-by-id.post"), |call| {
            renew(call, Way::Ids)
        })
}

/// How a request identifies item and user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Barcodes,
    Ids,
}

impl Way {
    fn field(self, what: What) -> &'static str {
        match (self, what) {
            (Self::Barcodes, What::Item) => "itemBarcode",
            (Self::Barcodes, What::User) => "userBarcode",
            (Self::Ids, What::Item) => "itemId",
            (Self::Ids, What::User) => "userId",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Item,
    User,
}

async fn renew(mut call: Call, way: Way) -> Answer {
    let body = call.object().await?;
    let overrides = Overrides::of(&call, &body)?;
    let writer = Writer::of(&call);
    let loan = call.db().write(move |txn| prolong(txn, &writer(), way, &body, &overrides)).await?;
    Ok(json_answer(StatusCode::OK, &loan))
}

/// Renews by `itemId` and `userId`; returns the loan in the form shown at the desk.
pub(crate) fn by_ids(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &Map<String, Value>,
    overrides: &Overrides,
) -> Result<Value, FolioError> {
    prolong(txn, writer, Way::Ids, body, overrides)
}

fn prolong(
    txn: &mut Txn<'_>,
    writer: &Writer,
    way: Way,
    body: &Map<String, Value>,
    overrides: &Overrides,
) -> Result<Value, FolioError> {
    let mut known = Records::default();
    let user = found(txn, way, What::User, body, &USERS)?.json()?;
    let item = found(txn, way, What::Item, body, &ITEMS)?.json()?;
    let book = Book::of(txn, &mut known, item.into())?;
    let no_loan = |message: &str| {
        let field = way.field(What::Item);
        FolioError::unprocessable(Fault::new(message).with(field, given(body, field)))
    };
    let Some(loan) = open_loan_of(txn, book.id())? else {
        return Err(no_loan("No loan can be found for the item"));
    };
    let loan = loan.json()?;
    if text(&loan, "userId") != text(&user, "id") {
        return Err(no_loan("Cannot renew item checked out to different user"));
    }
    refuse_blocked(txn, writer, &user, overrides)?;
    let queue = Queue::of_item(txn, &book, writer.now_ms)?;
    let chosen = terms::choose(txn, &book, text(&user, "patronGroup"))?;
    let policy = terms::loan_policy(txn, &mut known, chosen.policies.id(PolicyKind::Loan))?;
    let point = text(&loan, "checkoutServicePointId").to_owned();
    let circumstances = Circumstances::of(txn, &mut known, &policy, &point, writer.now_ms)?;
    let is_awaited = queue.first().is_some_and(Request::is_hold);
    let standing = Standing {
        due_date: moment::parse(text(&loan, "dueDate")).unwrap_or(moment::from_ms(writer.now_ms)),
        n_renewals: loan["renewalCount"].as_u64().unwrap_or(0),
        is_recalled: queue.first().is_some_and(Request::is_recall),
    };
    let by_policy = match book.status() {
        status @ ("Declared lost" | "Claimed returned" | "Aged to lost") => {
            Err(vec![format!("item is {status}")])
        }
        _ => circumstances.terms(&policy, is_awaited).at_renewal(standing),
    };
    let is_overridden = overrides.passes(Block::Renewal) || overrides.passes(Block::RenewalDueDate);
    let due = match by_policy {
        Ok(due) => due,
        Err(reasons) => overridden_due(overrides, &policy, reasons)?,
    };
    let now = moment::from_ms(writer.now_ms);
    let mut book = book;
    let is_lost = matches!(book.status(), "Declared lost" | "Aged to lost");
    if is_lost {
        lost::refund_lost_fees(txn, writer, &mut known, &loan, Found::Renewed, &point)?;
    }
    if !is_lost || lost::charges_overdue(txn, &mut known, &loan)? {
        overdue::charge(txn, writer, &mut known, (&loan, &book), now, (overdue::End::Renewal, &point))?;
    }
    if book.status() != "Checked out" {
        book.set_status(txn, writer, &mut known, "Checked out", |_| {})?;
    }
    let mut changed = object(&loan);
    changed.remove("actionComment");
    if is_lost {
        for name in ["declaredLostDate", "agedToLostDelayedBilling"] {
            changed.remove(name);
        }
    }
    changed.insert("itemStatus".into(), "Checked out".into());
    let action = if is_overridden { "renewedThroughOverride" } else { "renewed" };
    changed.insert("action".into(), action.into());
    changed.extend(overrides.comment().map(|it| ("actionComment".to_owned(), it.into())));
    changed.insert("dueDate".into(), moment::wire(due).into());
    changed.insert("renewalCount".into(), (standing.n_renewals + 1).into());
    changed.insert("loanPolicyId".into(), policy.id.as_str().into());
    changed.remove("dueDateChangedByRecall");
    let stored = super::change(txn, writer, changed)?;
    notices::loan(txn, writer, &mut known, LoanEvent::Renewed, &stored)?;
    let mut shown = view::extended_all(txn, &mut known, vec![stored])?.pop().unwrap_or_default();
    // This answer alone is not read back from the storage, so its date is in circulation's own format.
    shown["dueDate"] = moment::wire(due).into();
    Ok(shown)
}

fn given<'a>(body: &'a Map<String, Value>, field: &str) -> &'a str {
    body.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Reads the item or user that a request names.
fn found(
    txn: &mut Txn<'_>,
    way: Way,
    what: What,
    body: &Map<String, Value>,
    collection: &'static Collection,
) -> Result<Record, FolioError> {
    let field = way.field(what);
    let value = given(body, field);
    if value.is_empty() {
        let message = match (what, way) {
            (What::Item, Way::Barcodes) => "Renewal request must have an item barcode",
            (What::User, Way::Barcodes) => "Renewal request must have a user barcode",
            (What::Item, Way::Ids) => "Renewal request must have an item ID",
            (What::User, Way::Ids) => "Renewal request must have a user ID",
        };
        return Err(FolioError::unprocessable(Fault::new(message).with(field, "null")));
    }
    let record = match way {
        Way::Barcodes => by_barcode(txn, collection, value)?,
        Way::Ids => txn.get(&collection.kind, value)?,
    };
    record.ok_or_else(|| {
        let message = match (what, way) {
            (What::User, Way::Barcodes) => "Could not find user with matching barcode".to_owned(),
            (What::User, Way::Ids) => "user is not found".to_owned(),
            (What::Item, Way::Barcodes) => format!("No item with barcode {value} exists"),
            (What::Item, Way::Ids) => format!("No item with ID {value} exists"),
        };
        FolioError::unprocessable(Fault::new(message).with(field, value))
    })
}

fn refuse_blocked(
    txn: &mut Txn<'_>,
    writer: &Writer,
    user: &Value,
    overrides: &Overrides,
) -> Result<(), FolioError> {
    let mut faults = Vec::new();
    if let Some(message) = inactive(user, writer.now_ms, "Cannot renew for inactive user") {
        faults.push(Fault::new(message).with("userId", text(user, "id")));
    }
    if !overrides.passes(Block::Patron) {
        for reason in patron_blocks::manual_blocks(txn, text(user, "id"), "renewals", writer.now_ms)? {
            let fault = Fault::new("Patron blocked from renewing").code("USER_IS_BLOCKED_MANUALLY");
            faults.push(overrides.refusal(fault.with("reason", reason), Block::Patron));
        }
        for block in patron_blocks::automated_blocks(txn, user, writer.now_ms)? {
            if block.keeps_from_renewing {
                let fault = Fault::new(block.message).code("USER_IS_BLOCKED_AUTOMATICALLY");
                faults.push(overrides.refusal(fault, Block::Patron));
            }
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults)) }
}

/// Returns the due date given by an override of a refused renewal.
fn overridden_due(
    overrides: &Overrides,
    policy: &LoanPolicy,
    reasons: Vec<String>,
) -> Result<jiff::Timestamp, FolioError> {
    let given = overrides.due_date(Block::RenewalDueDate).or_else(|| overrides.due_date(Block::Renewal));
    if let Some(due) = given {
        return Ok(due);
    }
    let faults = reasons.into_iter().map(|reason| {
        let fault = Fault::new(reason).with("loanPolicyName", &policy.name).with("loanPolicyId", &policy.id);
        overrides.refusal(fault, Block::RenewalDueDate)
    });
    Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults.collect()))
}
