//! What happens to a loan beside its end and its renewal: lost, claimed returned, missing, another due date.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::Txn;
use serde_json::{Map, Value, json};

use super::{LOANS, is_open};
use crate::circulation::book::Book;
use crate::circulation::fees::actual_cost::Loss;
use crate::circulation::fees::lost::{self, Found};
use crate::circulation::fees::settled;
use crate::circulation::neighbours::ITEMS;
use crate::circulation::notices::sending::LoanEvent;
use crate::circulation::records::{Records, object};
use crate::circulation::{moment, notices};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// The routes of actions.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/circulation/loans/{id}/declare-item-lost",
            Access::to("circulation.loans.declare-item-lost.post"),
            |call| act(call, declare_lost),
        )
        .post(
            "/circulation/loans/{id}/claim-item-returned",
            Access::to("circulation.loans.claim-item-returned.post"),
            |call| act(call, claim_returned),
        )
        .post(
            "/circulation/loans/{id}/declare-claimed-returned-item-as-missing",
            Access::to("circulation.loans.declare-claimed-returned-item-as-missing.post"),
            |call| act(call, declare_missing),
        )
        .post(
            "/circulation/loans/{id}/change-due-date",
            Access::to("circulation.loans.change-due-date.post"),
            |call| act(call, change_due_date),
        )
}

/// What an action makes of a loan, and of the item's status.
type Action = fn(&mut Map<String, Value>, &Body, &Writer) -> Result<Option<&'static str>, FolioError>;

/// The body of an action and the loan that it is about.
struct Body {
    body: Value,
    loan_id: String,
    item_status: String,
}

impl Body {
    fn text(&self, name: &str) -> Option<&str> {
        self.body[name].as_str().filter(|it| !it.trim().is_empty())
    }

    /// A date that must be given. Errors: 422 with `message`.
    fn date(&self, name: &str, message: &str) -> Result<String, FolioError> {
        let date = self.text(name).and_then(moment::parse).map(moment::wire);
        date.ok_or_else(|| {
            FolioError::unprocessable(Fault::new(message).with(name, self.text(name).unwrap_or("null")))
        })
    }
}

async fn act(mut call: Call, action: Action) -> Answer {
    let id = call.uuid_param("id")?;
    let body = Value::Object(call.object().await?);
    let writer = Writer::of(&call);
    call.db().write(move |txn| apply(txn, &writer(), &id, &body, action)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

fn apply(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    body: &Value,
    action: Action,
) -> Result<(), FolioError> {
    let Some(record) = txn.get(&LOANS.kind, id)? else { return Err(FolioError::not_found("loan not found")) };
    let loan = record.json()?;
    if !is_open(&loan) {
        return Err(FolioError::unprocessable(Fault::new("Loan is closed").with("loanId", id)));
    }
    let mut known = Records::default();
    let item = known.at(txn, &ITEMS, &loan, "itemId")?;
    let mut book = item.map(|it| Book::of(txn, &mut known, it)).transpose()?;
    let item_status = book.as_ref().map(|it| it.status().to_owned()).unwrap_or_default();
    let body = Body { body: body.clone(), loan_id: id.to_owned(), item_status };
    let mut changed = object(&loan);
    changed.remove("actionComment");
    let status = action(&mut changed, &body, writer)?;
    if let Some(comment) = body.text("comment") {
        changed.insert("actionComment".into(), comment.into());
    }
    if let Some(status) = status {
        changed.insert("itemStatus".into(), status.into());
        if let Some(book) = &mut book {
            book.set_status(txn, writer, &mut known, status, |_| {})?;
        }
    }
    let action = changed.get("action").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stored = super::change(txn, writer, changed)?;
    match (action.as_str(), &book) {
        ("declaredLost", Some(book)) => charge_loss(txn, writer, &mut known, (&loan, &stored, book), &body),
        ("dueDateChanged", _) => notices::loan(txn, writer, &mut known, LoanEvent::DueDateChanged, &stored),
        _ => Ok(()),
    }
}

/// Charges what a lost item costs. What was charged because it had aged to lost is taken back first.
fn charge_loss(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    (before, loan, book): (&Value, &Value, &Book),
    body: &Body,
) -> Result<(), FolioError> {
    let point = body.text("servicePointId").unwrap_or_default();
    if body.item_status == "Aged to lost" {
        lost::refund_lost_fees(txn, writer, known, before, Found::DeclaredLost, point)?;
    }
    if lost::charge(txn, writer, known, (loan, book), Loss::Declared, point)? {
        return Ok(());
    }
    settled::close_as_paid(txn, writer, loan)
}

fn declare_lost(
    loan: &mut Map<String, Value>,
    body: &Body,
    writer: &Writer,
) -> Result<Option<&'static str>, FolioError> {
    if body.item_status == "Declared lost" {
        let fault = Fault::new("The item is already declared lost").with("itemId", text_of(loan, "itemId"));
        return Err(FolioError::unprocessable(fault));
    }
    let now = moment::wire(moment::from_ms(writer.now_ms));
    let date = body.text("declaredLostDateTime").and_then(moment::parse).map_or(now, moment::wire);
    loan.insert("action".into(), "declaredLost".into());
    loan.insert("declaredLostDate".into(), date.into());
    loan.remove("claimedReturnedDate");
    loan.remove("agedToLostDelayedBilling");
    Ok(Some("Declared lost"))
}

fn claim_returned(
    loan: &mut Map<String, Value>,
    body: &Body,
    _: &Writer,
) -> Result<Option<&'static str>, FolioError> {
    if body.item_status == "Claimed returned" {
        let fault = Fault::new("Item is already claimed returned").with("loanId", &body.loan_id);
        return Err(FolioError::unprocessable(fault));
    }
    let date = body.date("itemClaimedReturnedDateTime", "Item claimed returned date is a required field")?;
    loan.insert("action".into(), "claimedReturned".into());
    loan.insert("claimedReturnedDate".into(), date.into());
    Ok(Some("Claimed returned"))
}

fn declare_missing(
    loan: &mut Map<String, Value>,
    body: &Body,
    _: &Writer,
) -> Result<Option<&'static str>, FolioError> {
    if body.text("comment").is_none() {
        return Err(FolioError::unprocessable(
            Fault::new("Comment is a required field").with("comment", "null"),
        ));
    }
    if body.item_status != "Claimed returned" {
        let fault = Fault::new("Item is not Claimed returned").with("itemId", text_of(loan, "itemId"));
        return Err(FolioError::unprocessable(fault));
    }
    loan.insert("action".into(), "markedMissing".into());
    loan.insert("status".into(), json!({"name": super::CLOSED}));
    Ok(Some("Missing"))
}

fn change_due_date(
    loan: &mut Map<String, Value>,
    body: &Body,
    _: &Writer,
) -> Result<Option<&'static str>, FolioError> {
    if matches!(body.item_status.as_str(), "Declared lost" | "Claimed returned" | "Aged to lost") {
        let fault =
            Fault::new(format!("item is {}", body.item_status)).with("itemId", text_of(loan, "itemId"));
        return Err(FolioError::unprocessable(fault));
    }
    let due = body.date("dueDate", "A new due date is required in order to change due date")?;
    loan.insert("action".into(), "dueDateChanged".into());
    loan.insert("dueDate".into(), due.into());
    loan.remove("dueDateChangedByRecall");
    Ok(None)
}

fn text_of<'a>(loan: &'a Map<String, Value>, name: &str) -> &'a str {
    loan.get(name).and_then(Value::as_str).unwrap_or_default()
}
