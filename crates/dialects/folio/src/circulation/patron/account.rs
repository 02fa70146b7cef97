//! `GET /patron/account/{id}`: what a patron has, owes and waits for.

use http::StatusCode;
use pinakes_store::{Expr, Order, Query, StoreError, View, Weight};
use serde_json::{Map, Value, json};

use crate::circulation::fees::ACCOUNTS;
use crate::circulation::loans::{self, LOANS};
use crate::circulation::moment;
use crate::circulation::neighbours::{INSTANCES, ITEMS, locale_of};
use crate::circulation::patron::summary::patron;
use crate::circulation::records::{Records, copy, text};
use crate::circulation::requests::{REQUESTS, view};
use crate::platform::app::Call;
use crate::platform::collection::parsed;
use crate::platform::cql;
use crate::platform::error::{Answer, FolioError};
use crate::platform::values::json_answer;

/// What a request asks to see.
struct Asked {
    loans: bool,
    charges: bool,
    holds: bool,
    /// Of each list.
    skip: u64,
    limit: Option<u64>,
}

/// `?includeLoans&includeCharges&includeHolds&sortBy&offset&limit`: lists are empty unless they are asked for; the totals
/// are always there. `sortBy` orders loans, as the end of a CQL query does.
pub(super) async fn show(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let limit = match call.query.get("limit").unwrap_or_default() {
        "" => None,
        _ => Some(call.query.number("limit", 0)?),
    };
    let is = |name: &str| call.query.is_true(name);
    let asked = Asked {
        loans: is("includeLoans"),
        charges: is("includeCharges"),
        holds: is("includeHolds"),
        skip: call.query.number("offset", 0)?,
        limit,
    };
    let sort = call.query.get("sortBy").filter(|it| !it.is_empty());
    let order = match sort {
        Some(sort) => {
            let text = format!("cql.allRecords=1 sortBy {sort}");
            cql::order(&parsed(&call.app.settings, &text)?, &LOANS.names)
        }
        None => Vec::new(),
    };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        patron(view, &id, now_ms)?;
        let mut known = Records::default();
        let currency = text(&locale_of(view)?, "currency").to_owned();
        let mut account = Map::new();
        account.insert("id".into(), id.as_str().into());
        charges(view, &mut known, &id, &currency, &asked, &mut account)?;
        let open = Expr::Is("status.name".into(), loans::OPEN.into());
        let of_user = Expr::Is("userId".into(), id.as_str().into()).and(open);
        account.insert("totalLoans".into(), view.count(&LOANS.kind, &of_user)?.into());
        let mut list = Vec::new();
        if asked.loans {
            let found = page(view, &LOANS.kind, of_user, &asked, order.clone())?;
            let extended = loans::view::extended_all(view, &mut known, found)?;
            list.extend(extended.iter().map(|it| loan(it, now_ms)));
        }
        account.insert("loans".into(), list.into());
        let open = Expr::Prefix("status".into(), "Open".to_owned());
        let of_user = Expr::Is("requesterId".into(), id.as_str().into()).and(open);
        account.insert("totalHolds".into(), view.count(&REQUESTS.kind, &of_user)?.into());
        let mut list = Vec::new();
        if asked.holds {
            let found = page(view, &REQUESTS.kind, of_user, &asked, Vec::new())?;
            list.extend(view::extended(view, &found)?.iter().map(hold));
        }
        account.insert("holds".into(), list.into());
        Ok(Value::Object(account))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// The records of a list that a request asks to see.
fn page(
    view: &mut View<'_>,
    kind: &'static pinakes_store::Kind,
    filter: Expr,
    asked: &Asked,
    order: Vec<Order>,
) -> Result<Vec<Value>, StoreError> {
    let query = Query { skip: asked.skip, limit: asked.limit, order, ..Query::filter(filter) };
    view.find(kind, &query)?.iter().map(pinakes_store::Record::json).collect()
}

/// What is owed, in all and one by one.
fn charges(
    view: &mut View<'_>,
    known: &mut Records,
    user: &str,
    currency: &str,
    asked: &Asked,
    account: &mut Map<String, Value>,
) -> Result<(), FolioError> {
    let of_user = Expr::Is("userId".into(), user.into());
    let mut owed = Vec::new();
    for record in view.find(&ACCOUNTS.kind, &Query::filter(of_user))? {
        let fee = record.json()?;
        if text(&fee, "status.name").eq_ignore_ascii_case("open") {
            owed.push(fee);
        }
    }
    let hundredths = |fee: &Value| (100.0 * fee["remaining"].as_f64().unwrap_or(0.0)).round();
    // A sum of nothing is -0.0.
    let total = owed.iter().map(hundredths).fold(0.0, |sum, it| sum + it) / 100.0;
    account.insert("totalCharges".into(), money(total, currency));
    account.insert("totalChargesCount".into(), owed.len().into());
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut list = Vec::new();
    if asked.charges {
        for fee in owed.iter().skip(at(asked.skip)).take(asked.limit.map_or(usize::MAX, at)) {
            let mut charge = Map::new();
            charge.insert("item".into(), item_of_fee(view, known, fee)?);
            charge.insert("chargeAmount".into(), money(hundredths(fee) / 100.0, currency));
            for (name, value) in [
                ("accrualDate", text(fee, "metadata.createdDate")),
                ("state", text(fee, "paymentStatus.name")),
                ("reason", text(fee, "feeFineType")),
                ("feeFineId", text(fee, "id")),
            ] {
                if !value.is_empty() {
                    charge.insert(name.into(), value.into());
                }
            }
            list.push(Value::Object(charge));
        }
    }
    account.insert("charges".into(), list.into());
    Ok(())
}

fn money(amount: f64, currency: &str) -> Value {
    json!({"amount": amount, "isoCurrencyCode": currency})
}

/// The item that a fee is for; what the fee says of it where the item is gone.
fn item_of_fee(view: &mut View<'_>, known: &mut Records, fee: &Value) -> Result<Value, StoreError> {
    let mut item = Map::new();
    copy(fee, &["itemId", "instanceId", "title"], &mut item);
    if let Some(found) = known.at(view, &ITEMS, fee, "itemId")? {
        let book = crate::circulation::book::Book::of(view, known, found)?;
        item = described(&Value::Object(book.summary()));
    } else if let Some(instance) = known.at(view, &INSTANCES, fee, "instanceId")? {
        copy(&instance, &["title"], &mut item);
    }
    Ok(Value::Object(item))
}

/// `{instanceId, itemId, title, author}` of what loans and requests show of an item.
fn described(shown: &Value) -> Map<String, Value> {
    let mut item = Map::new();
    copy(shown, &["instanceId"], &mut item);
    if let Some(id) = shown.get("id") {
        item.insert("itemId".into(), id.clone());
    }
    copy(shown, &["title"], &mut item);
    let names = ["contributors", "contributorNames"].iter().find_map(|it| shown.get(*it)?.as_array());
    let names: Vec<&str> = names.into_iter().flatten().map(|it| text(it, "name")).collect();
    if !names.is_empty() {
        item.insert("author".into(), names.join("; ").into());
    }
    item
}

/// A loan as the desk sees it, for its borrower.
pub(super) fn loan(loan: &Value, now_ms: i64) -> Value {
    let mut shown = Map::new();
    copy(loan, &["id"], &mut shown);
    shown.insert("item".into(), Value::Object(described(&loan["item"])));
    copy(loan, &["loanDate", "dueDate"], &mut shown);
    let due = moment::parse(text(loan, "dueDate"));
    shown.insert("overdue".into(), due.is_some_and(|it| it < moment::from_ms(now_ms)).into());
    Value::Object(shown)
}

/// A request as the desk sees it, for who asked.
pub(super) fn hold(request: &Value) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: &Value| {
        if !value.is_null() {
            shown.insert(name.to_owned(), value.clone());
        }
    };
    put("requestId", &request["id"]);
    let mut about = Map::new();
    for name in ["instanceId", "itemId"] {
        copy(request, &[name], &mut about);
    }
    let title = described(&request["instance"]);
    for name in ["title", "author"] {
        if let Some(value) = title.get(name) {
            about.insert(name.into(), value.clone());
        }
    }
    put("item", &Value::Object(about));
    for (name, from) in [
        ("requestDate", "requestDate"),
        ("expirationDate", "requestExpirationDate"),
        ("requestType", "requestType"),
        ("fulfillmentPreference", "fulfillmentPreference"),
        ("status", "status"),
        ("pickupLocationId", "pickupServicePointId"),
        ("deliveryAddressTypeId", "deliveryAddressTypeId"),
        ("queuePosition", "position"),
        ("patronComments", "patronComments"),
        ("cancellationReasonId", "cancellationReasonId"),
        ("canceledByUserId", "cancelledByUserId"),
        ("cancellationAdditionalInformation", "cancellationAdditionalInformation"),
        ("canceledDate", "cancelledDate"),
    ] {
        put(name, &request[from]);
    }
    Value::Object(shown)
}
