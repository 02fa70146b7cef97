//! A lost loan is over when all that was charged for it is paid.

use pinakes_store::{Expr, Kind, Query, StoreError, Txn, View};
use serde_json::{Map, Value, json};

use crate::circulation::book::Book;
use crate::circulation::fees::actual_cost_records;
use crate::circulation::fees::charged::{ACCOUNT, Automatic, CLOSED};
use crate::circulation::loans::{self, LOANS};
use crate::circulation::records::{Records, object, text};
use crate::inventory::items::ITEMS;
use crate::platform::collection::{Writer, by_kind};
use crate::platform::error::FolioError;

/// The accounts of a loan, of the kind of accounts.
pub(crate) fn of_loan(
    view: &mut View<'_>,
    accounts: &'static Kind,
    loan: &str,
) -> Result<Vec<Value>, StoreError> {
    let of_loan = Query::filter(Expr::Is("loanId".into(), loan.into()));
    view.find(accounts, &of_loan)?.iter().map(pinakes_store::Record::json).collect()
}

/// Fees that a lost item brings about.
const KINDS: [Automatic; 3] =
    [Automatic::LostItem, Automatic::LostItemProcessing, Automatic::LostItemActualCost];

/// After a change of an account: closes the loan of a lost item when nothing is owed for it any more.
pub(crate) fn account_stored(
    txn: &mut Txn<'_>,
    writer: &Writer,
    account: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let is_closed = |it: &Value| text(it, "status.name") == CLOSED;
    if !is_closed(account) || old.is_some_and(is_closed) || !KINDS.iter().any(|it| it.is_of(account)) {
        return Ok(());
    }
    // What returns or is renewed says itself what becomes of its loan.
    if text(account, "paymentStatus.name").starts_with("Cancelled item") {
        return Ok(());
    }
    close_if_settled(txn, writer, text(account, "loanId"))
}

/// Closes the open loan of a lost item for which nothing is owed any more: `Lost and paid`.
pub(crate) fn close_if_settled(txn: &mut Txn<'_>, writer: &Writer, loan: &str) -> Result<(), FolioError> {
    let Some(record) = txn.get(&LOANS.kind, loan)? else { return Ok(()) };
    let loan = record.json()?;
    let is_lost = matches!(text(&loan, "itemStatus"), "Declared lost" | "Aged to lost");
    let waits_for_billing =
        loan["agedToLostDelayedBilling"]["lostItemHasBeenBilled"].as_bool() == Some(false);
    if !loans::is_open(&loan) || !is_lost || waits_for_billing {
        return Ok(());
    }
    let accounts = &by_kind(writer.collections, ACCOUNT)?.kind;
    let owes = of_loan(txn, accounts, text(&loan, "id"))?
        .iter()
        .any(|it| KINDS.iter().any(|kind| kind.is_of(it)) && text(it, "status.name") != CLOSED);
    if owes || actual_cost_records::is_open_for(txn, text(&loan, "id"))? {
        return Ok(());
    }
    close_as_paid(txn, writer, &loan)
}

/// Closes the loan of a lost item; the item is `Lost and paid`.
pub(crate) fn close_as_paid(txn: &mut Txn<'_>, writer: &Writer, loan: &Value) -> Result<(), FolioError> {
    let mut known = Records::default();
    if let Some(item) = known.at(txn, &ITEMS, loan, "itemId")? {
        let mut book = Book::of(txn, &mut known, item)?;
        if matches!(book.status(), "Declared lost" | "Aged to lost") {
            book.set_status(txn, writer, &mut known, "Lost and paid", |_| {})?;
        }
    }
    let mut body: Map<String, Value> = object(loan);
    body.remove("actionComment");
    body.insert("action".into(), "closedLoan".into());
    body.insert("status".into(), json!({"name": loans::CLOSED}));
    body.insert("itemStatus".into(), "Lost and paid".into());
    loans::change(txn, writer, body).map(drop)
}
