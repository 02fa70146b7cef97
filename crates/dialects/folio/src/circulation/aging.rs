//! Loans that are overdue for so long that the item counts as lost: aged, and billed when the policy says so.

use pinakes_store::{End, Expr, Query, StoreError, Txn, Value as Wanted};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::loans::{self, LOANS};
use super::moment;
use super::neighbours::ITEMS;
use super::policies::LOST_ITEM_POLICIES;
use super::records::{Records, object, text};
use crate::circulation::fees::actual_cost::Loss;
use crate::circulation::fees::{lost, settled};
use crate::circulation::notices::sending::LoanEvent;
use crate::circulation::{loan_policy, notices};
use crate::platform::chore::Parts;
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;

const NOT_AGED: [&str; 3] = ["Declared lost", "Claimed returned", "Aged to lost"];

fn open_until(field: &str, until_ms: i64) -> Expr {
    let open = Expr::Is("status.name".into(), loans::OPEN.into());
    open.and(Expr::Range(field.into(), End::Open, End::Included(Wanted::Instant(until_ms))))
}

/// Ages the loans whose time is over.
pub(crate) fn age(parts: &Parts) -> Result<(), FolioError> {
    let now_ms = parts.now_ms;
    let due = parts.tenant.read_blocking(move |view| -> Result<Vec<String>, FolioError> {
        let mut known = Records::default();
        let mut due = Vec::new();
        for record in view.find(&LOANS.kind, &Query::filter(open_until("dueDate", now_ms)))? {
            let loan = record.json()?;
            let Some(policy) = known.at(view, &LOST_ITEM_POLICIES, &loan, "lostItemPolicyId")? else {
                continue;
            };
            if is_due(&loan, &policy, now_ms) {
                due.push(record.id);
            }
        }
        Ok(due)
    })?;
    parts.each("a loan does not age", due, age_one)
}

/// Whether a loan is overdue for as long as its policy says.
fn is_due(loan: &Value, policy: &Value, now_ms: i64) -> bool {
    let period = match loan["dueDateChangedByRecall"].as_bool() {
        Some(true) => "recalledItemAgedLostOverdue",
        _ => "itemAgedLostOverdue",
    };
    let Some(due) = moment::parse(text(loan, "dueDate")) else { return false };
    !NOT_AGED.contains(&text(loan, "itemStatus"))
        && loan_policy::after(policy, period, due).is_some_and(|it| it.as_millisecond() <= now_ms)
}

fn age_one(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    let mut known = Records::default();
    let Some(record) = txn.get(&LOANS.kind, id)? else { return Ok(()) };
    let loan = record.json()?;
    let policy = known.at(txn, &LOST_ITEM_POLICIES, &loan, "lostItemPolicyId")?.unwrap_or_default();
    if !loans::is_open(&loan) || !is_due(&loan, &policy, writer.now_ms) {
        return Ok(());
    }
    let Some(item) = known.at(txn, &ITEMS, &loan, "itemId")? else { return Ok(()) };
    let mut book = Book::of(txn, &mut known, item)?;
    if NOT_AGED.contains(&book.status()) {
        return Ok(());
    }
    book.set_status(txn, writer, &mut known, "Aged to lost", |_| {})?;
    let now = moment::from_ms(writer.now_ms);
    let wait = match loan["dueDateChangedByRecall"].as_bool() {
        Some(true) => "patronBilledAfterRecalledItemAgedLost",
        _ => "patronBilledAfterAgedLost",
    };
    let billed = loan_policy::after(&policy, wait, now).unwrap_or(now);
    let mut body: Map<String, Value> = object(&loan);
    body.remove("actionComment");
    body.insert("action".into(), "itemAgedToLost".into());
    body.insert("itemStatus".into(), "Aged to lost".into());
    body.insert(
        "agedToLostDelayedBilling".into(),
        json!({
            "lostItemHasBeenBilled": false, "agedToLostDate": moment::wire(now),
            "dateLostItemShouldBeBilled": moment::wire(billed),
        }),
    );
    let loan = loans::change(txn, writer, body)?;
    notices::loan(txn, writer, &mut known, LoanEvent::AgedToLost, &loan)
}

/// Charges the loans that have aged to lost when their policy bills them.
pub(crate) fn charge(parts: &Parts) -> Result<(), FolioError> {
    let now_ms = parts.now_ms;
    let due = parts.tenant.read_blocking(move |view| -> Result<Vec<String>, StoreError> {
        let unbilled = open_until("agedToLostDelayedBilling.dateLostItemShouldBeBilled", now_ms)
            .and(Expr::Is("agedToLostDelayedBilling.lostItemHasBeenBilled".into(), false.into()));
        Ok(view.find(&LOANS.kind, &Query::filter(unbilled))?.into_iter().map(|it| it.id).collect())
    })?;
    parts.each("the fees of a loan that has aged to lost are not charged", due, charge_one)
}

fn charge_one(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    let mut known = Records::default();
    let Some(record) = txn.get(&LOANS.kind, id)? else { return Ok(()) };
    let loan = record.json()?;
    let is_billed = loan["agedToLostDelayedBilling"]["lostItemHasBeenBilled"].as_bool() != Some(false);
    if !loans::is_open(&loan) || is_billed || text(&loan, "itemStatus") != "Aged to lost" {
        return Ok(());
    }
    let Some(item) = known.at(txn, &ITEMS, &loan, "itemId")? else { return Ok(()) };
    let book = Book::of(txn, &mut known, item)?;
    let mut body = object(&loan);
    let mut billing = object(&loan["agedToLostDelayedBilling"]);
    billing.insert("lostItemHasBeenBilled".into(), true.into());
    body.insert("agedToLostDelayedBilling".into(), Value::Object(billing));
    let loan = loans::change(txn, writer, body)?;
    if lost::charge(txn, writer, &mut known, (&loan, &book), Loss::AgedToLost, "")? {
        return Ok(());
    }
    settled::close_as_paid(txn, writer, &loan)
}
