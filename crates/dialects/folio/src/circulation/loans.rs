//! Loans: their storage with its history, and the view shown at the desk (section 9.4 of the contract).
//!
//! An item has at most one open loan. The store enforces this, so it holds for every writer and for any number of
//! servers.

pub(crate) mod actions;
mod handlers;
pub(crate) mod renew;
pub(crate) mod view;

use pinakes_store::{Column, Expr, Index, Kind, Query, Record, Search, StoreError, Txn, Type, View};
use serde_json::{Map, Value, json};

use crate::platform::collection::{self, Collection, Hooks, Kinds, Metadata, Schema, Unique, Writer};
use crate::platform::cql::Names;
use crate::platform::dates;
use crate::platform::error::{Fault, FolioError};
use crate::platform::json::text_at;

pub(crate) use handlers::routes;

/// `/loan-storage/loans`.
pub(crate) static LOANS: Collection = Collection {
    table: "loan",
    permission: "circulation-storage.loans",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("userId", Type::Text),
            Column::one("itemId", Type::Text),
            Column::at("status", "status.name", Type::Text),
            Column::one("loanDate", Type::Instant),
            Column::one("dueDate", Type::Instant),
            Column::at("billedFrom", "agedToLostDelayedBilling.dateLostItemShouldBeBilled", Type::Instant),
        ],
        indexes: &[
            Index::unique_among("status", OPEN, &["itemId"]),
            Index::on(&["itemId"]),
            Index::on(&["userId"]),
            Index::on(&["dueDate"]),
        ],
        search: Search::Folded,
        ..Kind::named("folio_loan")
    },
    schema: Schema {
        required: &["itemId", "loanDate", "action"],
        types: &[
            ("itemId", Kinds::Uuid),
            ("userId", Kinds::Uuid),
            ("loanDate", Kinds::Text),
            ("action", Kinds::Text),
        ],
        defaults: &[("status", "{\"name\": \"Open\"}")],
        ..Schema::OPEN
    },
    names: Names {
        fields: &[
            "returnDate",
            "systemReturnDate",
            "actionComment",
            "itemStatus",
            "renewalCount",
            "loanPolicyId",
            "overdueFinePolicyId",
            "lostItemPolicyId",
            "checkoutServicePointId",
            "checkinServicePointId",
            "patronGroupIdAtCheckout",
            "proxyUserId",
            "dueDateChangedByRecall",
            "declaredLostDate",
            "claimedReturnedDate",
            "agedToLostDelayedBilling.lostItemHasBeenBilled",
            "agedToLostDelayedBilling.agedToLostDate",
            "itemEffectiveLocationIdAtCheckOut",
            "isDcb",
        ],
        ..Names::PLAIN
    },
    unique: &[Unique { column: "itemId", message: "Cannot have more than one open loan for the same item" }],
    hooks: Hooks { prepare: normalise, stored: loan_stored, deleting: note_deletion, ..Hooks::NONE },
    ..Collection::named("/loan-storage/loans", "loans", "folio_loan")
};

/// Checks a loan and keeps its new state: it is open or closed, and open for somebody.
fn loan_stored(
    txn: &mut Txn<'_>,
    writer: &Writer,
    loan: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let status = loan["status"]["name"].as_str().unwrap_or_default();
    let (message, key, value) = match status {
        OPEN if text_at(loan, "userId").is_none() => ("Open loan must have a user ID", "userId", "null"),
        OPEN | CLOSED => return note(txn, writer, loan, if old.is_some() { "U" } else { "I" }),
        _ => ("Loan status must be \"Open\" or \"Closed\"", "status", status),
    };
    Err(FolioError::unprocessable(Fault::new(message).with(key, value)))
}

/// `/loan-storage/loan-history`: every state of every loan.
pub(crate) static HISTORY: Collection = Collection {
    table: "audit_loan",
    permission: "circulation-storage.loans-history",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::at("loan", "loan.id", Type::Text),
            Column::at("user", "loan.userId", Type::Text),
            Column::one("createdDate", Type::Instant),
        ],
        indexes: &[Index::on(&["loan"])],
        search: Search::Folded,
        ..Kind::named("folio_loan_history")
    },
    metadata: Metadata::Off,
    is_served: false,
    ..Collection::named("/loan-storage/loan-history", "loansHistory", "folio_loan_history")
};

/// Status of an open loan.
pub(crate) const OPEN: &str = "Open";
/// Status of a closed loan.
pub(crate) const CLOSED: &str = "Closed";

/// Returns the open loan of an item.
pub(crate) fn open_loan_of(view: &mut View<'_>, item: &str) -> Result<Option<Record>, StoreError> {
    let open = Expr::Is("itemId".into(), item.into()).and(Expr::Is("status.name".into(), OPEN.into()));
    view.first(&LOANS.kind, open)
}

/// Returns the most recent loan of an item.
pub(crate) fn last_loan_of(view: &mut View<'_>, item: &str) -> Result<Option<Value>, StoreError> {
    let of_item = Query::filter(Expr::Is("itemId".into(), item.into()));
    let last = Query { limit: Some(1), ..of_item.sorted("loanDate", pinakes_store::Direction::Descending) };
    view.find(&LOANS.kind, &last)?.first().map(Record::json).transpose()
}

/// Returns the open loans of a user.
pub(crate) fn open_loans_of(view: &mut View<'_>, user: &str) -> Result<Vec<Record>, StoreError> {
    let open = Expr::Is("userId".into(), user.into()).and(Expr::Is("status.name".into(), OPEN.into()));
    view.find(&LOANS.kind, &Query::filter(open))
}

/// Stores a changed loan.
pub(crate) fn change(
    txn: &mut Txn<'_>,
    writer: &Writer,
    loan: Map<String, Value>,
) -> Result<Value, FolioError> {
    let id = loan.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stored = collection::put(
        txn,
        writer,
        &LOANS,
        &id,
        loan,
        collection::Missing::Refuse,
        collection::Lock::Ignored,
    )?;
    Ok(stored.body)
}

/// Converts dates to the format of circulation; an open loan must have a borrower.
fn normalise(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    // Two formats: FOLIO's storage declares some properties as dates and keeps the others as given.
    const WIRE: [&str; 2] = ["loanDate", "returnDate"];
    const STORED: [&str; 4] = ["dueDate", "systemReturnDate", "claimedReturnedDate", "declaredLostDate"];
    for name in WIRE.iter().chain(&STORED) {
        let Some(text) = body.get(*name).and_then(Value::as_str) else { continue };
        let Some(moment) = super::moment::parse(text) else {
            return Err(FolioError::bad_request(format!(
                "{name} is {text:?}, expected a date and time in ISO 8601"
            )));
        };
        let normal = match WIRE.contains(name) {
            true => super::moment::wire(moment),
            false => dates::rmb(moment.as_millisecond()),
        };
        body.insert((*name).to_owned(), normal.into());
    }
    for name in ["itemId", "userId"] {
        if let Some(id) = body.get(name).and_then(Value::as_str).and_then(crate::platform::values::parse_uuid)
        {
            body.insert(name.to_owned(), id.into());
        }
    }
    Ok(())
}

fn note_deletion(txn: &mut Txn<'_>, writer: &Writer, loan: &Value) -> Result<(), FolioError> {
    note(txn, writer, loan, "D")
}

fn note(txn: &mut Txn<'_>, writer: &Writer, loan: &Value, operation: &str) -> Result<(), FolioError> {
    let note = json!({"createdDate": dates::rmb(writer.now_ms), "operation": operation, "loan": loan});
    let Value::Object(note) = note else { return Ok(()) };
    collection::insert(txn, writer, &HISTORY, note).map(drop)
}

/// Checks whether a loan is open.
pub(crate) fn is_open(loan: &Value) -> bool {
    text_at(loan, "status.name") == Some(OPEN)
}
