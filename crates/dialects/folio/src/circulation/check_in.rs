//! `POST /circulation/check-in-by-barcode` (section 9.3 of the contract).

use http::StatusCode;
use jiff::Timestamp;
use pinakes_store::{Column, Index, Kind, Search, Txn, Type, View};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::loan_policy::Period;
use super::neighbours::{ITEMS, SERVICE_POINTS, USERS};
use super::records::{Records, by_barcode, object, text};
use super::requests::queue::{Queue, Request};
use super::requests::{AWAITING_DELIVERY, AWAITING_PICKUP, IN_TRANSIT};
use super::{loans, moment, terms};
use crate::circulation::fees::lost::{self, Found};
use crate::circulation::fees::overdue;
use crate::circulation::notices;
use crate::circulation::notices::sending::{LoanEvent, RequestEvent};
use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Schema, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::values::json_answer;

/// `/check-in-storage/check-ins`: which item was checked in, where and when.
pub(crate) static CHECK_INS: Collection = Collection {
    table: "check_in",
    permission: "circulation-storage.check-ins",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("itemId", Type::Text),
            Column::one("servicePointId", Type::Text),
            Column::one("occurredDateTime", Type::Instant),
        ],
        indexes: &[Index::on(&["itemId"])],
        search: Search::Folded,
        ..Kind::named("folio_check_in")
    },
    schema: Schema {
        required: &["occurredDateTime", "itemId", "servicePointId", "performedByUserId"],
        ..Schema::OPEN
    },
    ..Collection::named("/check-in-storage/check-ins", "checkIns", "folio_check_in")
};

/// The content of a check-in request.
#[derive(Debug, Clone)]
struct Asked {
    item: String,
    service_point: String,
    date: Timestamp,
    resolution: Option<String>,
    session: Option<String>,
}

impl Asked {
    fn of(body: &Map<String, Value>) -> Result<Self, FolioError> {
        let given = |name: &str| body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        let needed = |name: &str, what: &str| {
            given(name).map(str::to_owned).ok_or_else(|| {
                let fault = Fault::new(format!("Checkin request must have {what}"));
                FolioError::unprocessable(fault.with(name, "null"))
            })
        };
        let item = needed("itemBarcode", "an item barcode")?;
        let service_point = needed("servicePointId", "a service point id")?;
        let date = needed("checkInDate", "an check in date")?;
        let date = moment::parse(&date).ok_or_else(|| {
            let fault = Fault::new("checkInDate is no date and time in ISO 8601");
            FolioError::unprocessable(fault.with("checkInDate", date.as_str()))
        })?;
        Ok(Self {
            item,
            service_point,
            date,
            resolution: given("claimedReturnedResolution").map(str::to_owned),
            session: given("sessionId").map(str::to_owned),
        })
    }
}

/// Checks an item in.
pub(crate) async fn check_in(mut call: Call) -> Answer {
    let asked = Asked::of(&call.object().await?)?;
    let writer = Writer::of(&call);
    let done = call.db().write(move |txn| check_in_item(txn, &writer(), &asked)).await?;
    Ok(json_answer(StatusCode::OK, &done))
}

fn check_in_item(txn: &mut Txn<'_>, writer: &Writer, asked: &Asked) -> Result<Value, FolioError> {
    let mut known = Records::default();
    let Some(item) = by_barcode(txn, &ITEMS, &asked.item)? else {
        let fault =
            Fault::new(format!("No item with barcode {} exists", asked.item)).code("ITEM_BARCODE_NOT_FOUND");
        return Err(FolioError::unprocessable(fault.with("itemBarcode", &asked.item)));
    };
    let mut book = Book::of(txn, &mut known, item.json()?.into())?;
    refuse_status(&book, asked)?;
    let before = book.status().to_owned();
    let loan = loans::open_loan_of(txn, book.id())?.map(|it| it.json()).transpose()?;
    let mut queue = Queue::of_item(txn, &book, writer.now_ms)?;
    queue.settle(txn, writer)?;
    settle_fees(txn, writer, &mut known, loan.as_ref(), (&book, &before), asked)?;
    let in_house_use = loan.is_none()
        && before == "Available"
        && queue.first().is_none()
        && book.is_at_home_at(&asked.service_point);

    let next = next(&book, queue.first(), asked);
    let request = match next.request_status {
        Some(status) => promote(txn, writer, &mut known, &mut queue, &book, asked, status)?,
        None => None,
    };
    note(txn, writer, &book, asked, &before, queue.requests().len())?;
    let last = json!({
        "dateTime": moment::wire(asked.date), "servicePointId": asked.service_point, "staffMemberId": writer.user,
    });
    book.set_status(txn, writer, &mut known, next.status, |item| {
        item.insert("lastCheckIn".into(), last);
        if let Some(point) = &next.destination {
            item.insert("inTransitDestinationServicePointId".into(), point.as_str().into());
        }
    })?;
    if let Some(request) = request.as_ref().filter(|it| it.status() == AWAITING_PICKUP) {
        notices::request(txn, writer, RequestEvent::Available, &request.0)?;
    }
    let loan = match loan {
        Some(loan) => Some(close(txn, writer, &mut known, &loan, asked, next.status)?),
        None => None,
    };
    answer(txn, &mut known, &book, asked, &next, loan, request, in_house_use)
}

fn refuse_status(book: &Book, asked: &Asked) -> Result<(), FolioError> {
    let message = match book.status() {
        "Intellectual item" => {
            format!(
                "{} has the item status Intellectual item and cannot be checked in",
                book.named_with_type()
            )
        }
        "Claimed returned" if asked.resolution.is_none() => {
            "Item is claimed returned, a resolution is required".to_owned()
        }
        _ => return Ok(()),
    };
    Err(FolioError::unprocessable(Fault::new(message).with("itemBarcode", &asked.item)))
}

/// What happens next to a checked-in item.
#[derive(Debug)]
struct Next {
    status: &'static str,
    /// The service point it is sent to, if it is in transit.
    destination: Option<String>,
    /// The new status of the request that it fulfils.
    request_status: Option<&'static str>,
}

fn next(book: &Book, request: Option<&Request>, asked: &Asked) -> Next {
    let here = |status, request_status| Next { status, destination: None, request_status };
    let Some(request) = request else {
        if book.is_at_home_at(&asked.service_point) || book.location.is_null() {
            return here("Available", None);
        }
        let home = text(&book.location, "primaryServicePoint").to_owned();
        return Next { status: "In transit", destination: Some(home), request_status: None };
    };
    if text(&request.0, "fulfillmentPreference") == "Delivery" {
        return here("Awaiting delivery", Some(AWAITING_DELIVERY));
    }
    match text(&request.0, "pickupServicePointId") {
        pickup if pickup == asked.service_point || pickup.is_empty() => {
            here("Awaiting pickup", Some(AWAITING_PICKUP))
        }
        pickup => Next {
            status: "In transit",
            destination: Some(pickup.to_owned()),
            request_status: Some(IN_TRANSIT),
        },
    }
}

/// Assigns the item to the first request in the queue.
fn promote(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    queue: &mut Queue,
    book: &Book,
    asked: &Asked,
    status: &'static str,
) -> Result<Option<Request>, FolioError> {
    let Some(first) = queue.first() else { return Ok(None) };
    let is_new = first.status() != status;
    let (id, item) = (first.id().to_owned(), book.id().to_owned());
    let shelf_end = match status {
        AWAITING_PICKUP if is_new => shelf_end(txn, known, asked, writer.now_ms)?,
        _ => None,
    };
    queue.change(txn, writer, &id, |request| {
        request.insert("status".into(), status.into());
        request.insert("itemId".into(), item.into());
        request.extend(shelf_end.map(|it| ("holdShelfExpirationDate".to_owned(), moment::wire(it).into())));
    })
}

/// Returns the time until which an item is kept on the hold shelf of a service point.
fn shelf_end(
    view: &mut View<'_>,
    known: &mut Records,
    asked: &Asked,
    now_ms: i64,
) -> Result<Option<Timestamp>, FolioError> {
    let Some(point) = known.get(view, &SERVICE_POINTS, &asked.service_point)? else { return Ok(None) };
    let period = Period::of(&point["holdShelfExpiryPeriod"]).ok().flatten();
    let Some(end) = period.and_then(|it| it.after(moment::from_ms(now_ms))) else { return Ok(None) };
    let unit = text(&point, "holdShelfExpiryPeriod.intervalId");
    if matches!(unit, "Minutes" | "Hours") {
        return Ok(Some(end));
    }
    let zone = terms::zone(view)?;
    Ok(Some(moment::end_of_day(moment::day_of(end, &zone), &zone)))
}

/// Stores the check-in record.
fn note(
    txn: &mut Txn<'_>,
    writer: &Writer,
    book: &Book,
    asked: &Asked,
    status_before: &str,
    n_requests: usize,
) -> Result<(), FolioError> {
    let nobody = || "00000000-0000-0000-0000-000000000000".to_owned();
    let row = json!({
        "occurredDateTime": moment::wire(moment::from_ms(writer.now_ms)),
        "itemId": book.id(),
        "servicePointId": asked.service_point,
        "performedByUserId": writer.user.clone().unwrap_or_else(nobody),
        "itemStatusPriorToCheckIn": status_before,
        "requestQueueSize": n_requests,
        "itemLocationId": book.item["effectiveLocationId"],
        "sessionId": asked.session,
    });
    collection::insert(txn, writer, &CHECK_INS, object(&row)).map(drop)
}

/// Settles fees for a returned item: refunds those of a lost item and fines an overdue one.
fn settle_fees(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    loan: Option<&Value>,
    (book, before): (&Book, &str),
    asked: &Asked,
) -> Result<(), FolioError> {
    let point = asked.service_point.as_str();
    let Some(loan) = loan else {
        if before != "Lost and paid" {
            return Ok(());
        }
        return match loans::last_loan_of(txn, book.id())? {
            Some(last) => lost::refund_lost_fees(txn, writer, known, &last, Found::Returned, point),
            None => Ok(()),
        };
    };
    let is_lost = matches!(before, "Declared lost" | "Aged to lost");
    if is_lost {
        lost::refund_lost_fees(txn, writer, known, loan, Found::Returned, point)?;
    }
    let is_found = asked.resolution.as_deref() == Some("Found by library");
    if is_found || is_lost && !lost::charges_overdue(txn, known, loan)? {
        return Ok(());
    }
    let mut returned = object(loan);
    returned.insert("returnDate".into(), moment::wire(asked.date).into());
    let returned = Value::Object(returned);
    overdue::charge(txn, writer, known, (&returned, book), asked.date, (overdue::End::Return, point))
}

/// Closes the loan.
fn close(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    loan: &Value,
    asked: &Asked,
    item_status: &str,
) -> Result<Value, FolioError> {
    let action = match asked.resolution.as_deref() {
        Some("Returned by patron") => "checkedInReturnedByPatron",
        Some("Found by library") => "checkedInFoundByLibrary",
        _ => "checkedin",
    };
    let mut body = object(loan);
    body.remove("actionComment");
    body.insert("status".into(), json!({"name": loans::CLOSED}));
    body.insert("action".into(), action.into());
    body.insert("returnDate".into(), moment::wire(asked.date).into());
    body.insert("systemReturnDate".into(), moment::wire(moment::from_ms(writer.now_ms)).into());
    body.insert("checkinServicePointId".into(), asked.service_point.as_str().into());
    body.insert("itemStatus".into(), item_status.into());
    body.remove("agedToLostDelayedBilling");
    if body.contains_key("forUseAtLocation") {
        body.insert("forUseAtLocation".into(), super::use_at_location::returned(writer.now_ms));
    }
    let stored = loans::change(txn, writer, body)?;
    notices::loan(txn, writer, known, LoanEvent::CheckIn, &stored)?;
    let mut list = loans::view::extended_all(txn, known, vec![stored])?;
    Ok(list.pop().unwrap_or_default())
}

#[expect(clippy::too_many_arguments, reason = "the parts of one answer, made in one place")]
fn answer(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    asked: &Asked,
    next: &Next,
    loan: Option<Value>,
    request: Option<Request>,
    in_house_use: bool,
) -> Result<Value, FolioError> {
    let mut item = book.summary();
    let mut slip = book.slip(view, known)?;
    slip.insert("lastCheckedInDateTime".into(), moment::wire(asked.date).into());
    if let Some(id) = &next.destination {
        let (to, from) = (
            known.get(view, &SERVICE_POINTS, id)?.unwrap_or_default(),
            known.get(view, &SERVICE_POINTS, &asked.service_point)?.unwrap_or_default(),
        );
        item.insert("inTransitDestinationServicePoint".into(), json!({"id": id, "name": text(&to, "name")}));
        slip.insert("fromServicePoint".into(), text(&from, "name").into());
        slip.insert("toServicePoint".into(), text(&to, "name").into());
    }
    let mut context = Map::new();
    context.insert("item".into(), Value::Object(slip));
    if let Some(request) = request {
        let (requester, described) = request_slip(view, known, &request)?;
        context.insert("requester".into(), requester);
        context.insert("request".into(), described);
    }
    let mut body = Map::new();
    body.extend(loan.map(|it| ("loan".to_owned(), it)));
    body.insert("item".into(), Value::Object(item));
    body.insert("staffSlipContext".into(), Value::Object(context));
    body.insert("inHouseUse".into(), in_house_use.into());
    Ok(Value::Object(body))
}

/// Returns the tokens of a request and its requester for slips.
fn request_slip(
    view: &mut View<'_>,
    known: &mut Records,
    request: &Request,
) -> Result<(Value, Value), FolioError> {
    let user = known.get(view, &USERS, request.requester())?.unwrap_or_default();
    let point = known.at(view, &SERVICE_POINTS, &request.0, "pickupServicePointId")?.unwrap_or_default();
    let mut requester = loans::view::person(&user);
    requester.remove("patronGroup");
    let mut described = Map::new();
    described.insert("requestID".into(), request.id().into());
    described.insert("servicePointPickup".into(), text(&point, "name").into());
    for (name, field) in [
        ("requestDate", "requestDate"),
        ("requestExpirationDate", "requestExpirationDate"),
        ("holdShelfExpirationDate", "holdShelfExpirationDate"),
        ("patronComments", "patronComments"),
    ] {
        if let Some(value) = request.0.get(field) {
            described.insert(name.into(), value.clone());
        }
    }
    Ok((Value::Object(requester), Value::Object(described)))
}
