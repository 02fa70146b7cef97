//! A loan as the desk shows it: with its item, its borrower, the names of its policies and the amount owed.

use std::collections::HashMap;
use std::sync::Arc;

use pinakes_store::{Expr, Query, StoreError, View};
use serde_json::{Map, Value, json};

use crate::circulation::book::Book;
use crate::circulation::fees::ACCOUNTS;
use crate::circulation::neighbours::{GROUPS, ITEMS, SERVICE_POINTS, USERS};
use crate::circulation::policies::{LOAN_POLICIES, LOST_ITEM_POLICIES, OVERDUE_POLICIES};
use crate::circulation::records::{Records, copy, object, text};
use crate::platform::collection::Collection;

/// Returns loans as the desk shows them, in the same order.
pub(crate) fn extended_all(
    view: &mut View<'_>,
    known: &mut Records,
    loans: Vec<Value>,
) -> Result<Vec<Value>, StoreError> {
    let of = |field: &'static str| loans.iter().map(move |it| text(it, field));
    view.read_ahead_of(&[
        (&ITEMS.kind, of("itemId").collect()),
        (&USERS.kind, of("userId").chain(of("proxyUserId")).collect()),
        (&GROUPS.kind, of("patronGroupIdAtCheckout").collect()),
        (&LOAN_POLICIES.kind, of("loanPolicyId").collect()),
        (&OVERDUE_POLICIES.kind, of("overdueFinePolicyId").collect()),
        (&LOST_ITEM_POLICIES.kind, of("lostItemPolicyId").collect()),
        (&SERVICE_POINTS.kind, of("checkoutServicePointId").chain(of("checkinServicePointId")).collect()),
    ])?;
    let items = known.load(view, &ITEMS, of("itemId"))?;
    Book::load(view, known, &items)?;
    let users = known.load(view, &USERS, of("userId").chain(of("proxyUserId")))?;
    let groups = users.iter().map(|it| text(it, "patronGroup"));
    known.load(view, &GROUPS, groups.chain(of("patronGroupIdAtCheckout")))?;
    known.load(view, &LOAN_POLICIES, of("loanPolicyId"))?;
    known.load(view, &OVERDUE_POLICIES, of("overdueFinePolicyId"))?;
    known.load(view, &LOST_ITEM_POLICIES, of("lostItemPolicyId"))?;
    known.load(view, &SERVICE_POINTS, of("checkoutServicePointId").chain(of("checkinServicePointId")))?;
    let ids: Vec<&str> = loans.iter().map(|it| text(it, "id")).collect();
    let owed = owed(view, &ids)?;
    let mut list = Vec::with_capacity(loans.len());
    for loan in &loans {
        let owed = owed.get(text(loan, "id")).copied().unwrap_or(0.0);
        list.push(extended(view, known, loan, owed)?);
    }
    Ok(list)
}

/// Returns a loan as the desk shows it; `owed` is the sum of its open fees.
pub(crate) fn extended(
    view: &mut View<'_>,
    known: &mut Records,
    loan: &Value,
    owed: f64,
) -> Result<Value, StoreError> {
    let mut body = object(loan);
    let metadata = body.remove("metadata");
    body.remove("patronGroupIdAtCheckout");
    body.remove("itemStatus");
    if let Some(item) = known.at(view, &ITEMS, loan, "itemId")? {
        let book = Book::of(view, known, item)?;
        body.insert("item".into(), Value::Object(book.summary()));
    }
    for (field, name) in [("userId", "borrower"), ("proxyUserId", "proxy")] {
        if let Some(user) = known.at(view, &USERS, loan, field)? {
            body.insert(name.into(), Value::Object(person(&user)));
        }
    }
    if let Some(group) = known.at(view, &GROUPS, loan, "patronGroupIdAtCheckout")? {
        body.insert(
            "patronGroupAtCheckout".into(),
            json!({"id": text(&group, "id"), "name": text(&group, "group")}),
        );
    }
    let policies: [(&str, &str, &'static Collection); 3] = [
        ("loanPolicyId", "loanPolicy", &LOAN_POLICIES),
        ("overdueFinePolicyId", "overdueFinePolicy", &OVERDUE_POLICIES),
        ("lostItemPolicyId", "lostItemPolicy", &LOST_ITEM_POLICIES),
    ];
    for (field, name, collection) in policies {
        if let Some(policy) = known.at(view, collection, loan, field)? {
            body.insert(name.into(), json!({"name": text(&policy, "name")}));
        }
    }
    for (field, name) in
        [("checkoutServicePointId", "checkoutServicePoint"), ("checkinServicePointId", "checkinServicePoint")]
    {
        if let Some(point) = known.at(view, &SERVICE_POINTS, loan, field)? {
            body.insert(name.into(), service_point(&point));
        }
    }
    body.insert("feesAndFines".into(), json!({"amountRemainingToPay": owed}));
    body.entry("isDcb").or_insert(false.into());
    body.extend(metadata.map(|it| ("metadata".to_owned(), it)));
    Ok(Value::Object(body))
}

/// Sums the open fees of loans.
fn owed(view: &mut View<'_>, loans: &[&str]) -> Result<HashMap<String, f64>, StoreError> {
    let mut owed = HashMap::new();
    if loans.is_empty() {
        return Ok(owed);
    }
    let of_loans = Expr::In("loanId".into(), loans.iter().map(|id| (*id).into()).collect());
    for account in view.find(&ACCOUNTS.kind, &Query::filter(of_loans))? {
        let account = account.json()?;
        if text(&account, "status.name") != super::CLOSED {
            *owed.entry(text(&account, "loanId").to_owned()).or_default() +=
                account["remaining"].as_f64().unwrap_or(0.0);
        }
    }
    Ok(owed)
}

/// Returns the properties of a person that loans and requests show.
pub(crate) fn person(user: &Arc<Value>) -> Map<String, Value> {
    let mut map = Map::new();
    copy(&user["personal"], &["firstName", "lastName", "middleName", "preferredFirstName"], &mut map);
    copy(user, &["barcode", "patronGroup"], &mut map);
    map
}

/// Returns the properties of a service point that loans and requests show.
pub(crate) fn service_point(point: &Value) -> Value {
    let mut map = Map::new();
    copy(
        point,
        &["name", "code", "discoveryDisplayName", "description", "shelvingLagTime", "pickupLocation"],
        &mut map,
    );
    Value::Object(map)
}
