//! What staff print and walk with: slips for items to fetch or to search, and lists of items in transit and of a hold
//! shelf to clear.

use http::StatusCode;
use pinakes_store::{Expr, Query, Record, StoreError, Value as Wanted, View, Weight};
use serde_json::{Map, Value, json};

use super::book::Book;
use super::loans::{self, LOANS};
use super::moment;
use super::neighbours::{DEPARTMENTS, GROUPS, ITEMS, LOCATIONS, SERVICE_POINTS, USERS};
use super::policies::{CANCELLATION_REASONS, setting};
use super::records::{Records, copy, text};
use super::requests::{self, AWAITING_PICKUP, NOT_FILLED, REQUESTS};
use crate::circulation::requests::view;
use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::SLIPS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::users::user::ADDRESS_TYPES;

/// The routes of slips and lists.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/circulation/pick-slips/{servicePointId}", Access::to("circulation.pick-slips.get"), pick_slips)
        .get(
            "/circulation/search-slips/{servicePointId}",
            Access::to("circulation.search-slips.get"),
            search_slips,
        )
        .get(
            "/circulation/requests-reports/hold-shelf-clearance/{id}",
            Access::to("circulation.requests.hold-shelf-clearance-report.get"),
            shelf_to_clear,
        )
        .get(
            "/inventory-reports/items-in-transit",
            Access::to("circulation.inventory.items-in-transit-report.get"),
            in_transit,
        )
}

async fn pick_slips(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("servicePointId")?, call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let slips = slips(view, &id, "Page", |status| status == "Paged", now_ms)?;
        Ok(json!({"totalRecords": slips.len(), "pickSlips": slips}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Slips for holds, where the site's setting `PRINT_HOLD_REQUESTS` asks for them.
async fn search_slips(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("servicePointId")?, call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let is_on = setting(view, "PRINT_HOLD_REQUESTS")?
            .is_some_and(|it| it["printHoldRequestsEnabled"].as_bool() == Some(true));
        let slips = match is_on {
            true => slips(view, &id, "Hold", |_| true, now_ms)?,
            false => Vec::new(),
        };
        Ok(json!({"totalRecords": slips.len(), "searchSlips": slips}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// The requests of a type that wait for items which a service point is the first for, as slips can print them.
fn slips(
    view: &mut View<'_>,
    service_point: &str,
    kind: &str,
    has_status: fn(&str) -> bool,
    now_ms: i64,
) -> Result<Vec<Value>, StoreError> {
    let folded = |text: &str| Wanted::Folded(text.to_owned());
    let waiting =
        Expr::Is("status".into(), folded(NOT_FILLED)).and(Expr::Is("requestType".into(), folded(kind)));
    let mut known = Records::default();
    let mut list = Vec::new();
    for record in view.find(
        &REQUESTS.kind,
        &Query::filter(waiting).sorted("requestDate", pinakes_store::Direction::Ascending),
    )? {
        let request = record.json()?;
        let Some(item) = known.at(view, &ITEMS, &request, "itemId")? else { continue };
        let book = Book::of(view, &mut known, item)?;
        if text(&book.location, "primaryServicePoint") != service_point || !has_status(book.status()) {
            continue;
        }
        list.push(slip(view, &mut known, &book, &request, now_ms)?);
        if SLIPS <= list.len() {
            break;
        }
    }
    Ok(list)
}

fn slip(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    request: &Value,
    now_ms: i64,
) -> Result<Value, StoreError> {
    let mut item = book.slip(view, known)?;
    let last = text(&book.item, "lastCheckIn.dateTime");
    if !last.is_empty() {
        item.insert("lastCheckedInDateTime".into(), last.into());
    }
    let mut map = Map::new();
    map.insert("item".into(), Value::Object(item));
    map.insert("request".into(), request_shown(view, known, request)?);
    map.insert("requester".into(), requester_shown(view, known, request)?);
    map.insert("currentDateTime".into(), moment::wire(moment::from_ms(now_ms)).into());
    Ok(Value::Object(map))
}

/// What slips and notices can print of a request.
pub(crate) fn request_shown(
    view: &mut View<'_>,
    known: &mut Records,
    request: &Value,
) -> Result<Value, StoreError> {
    let mut shown = Map::new();
    shown.insert("requestID".into(), request["id"].clone());
    let point = known.at(view, &SERVICE_POINTS, request, "pickupServicePointId")?.unwrap_or_default();
    shown.insert("servicePointPickup".into(), text(&point, "discoveryDisplayName").into());
    if point.is_object() && text(&point, "discoveryDisplayName").is_empty() {
        shown.insert("servicePointPickup".into(), text(&point, "name").into());
    }
    copy(
        request,
        &["requestDate", "requestExpirationDate", "holdShelfExpirationDate", "patronComments"],
        &mut shown,
    );
    if let Some(comment) = request.get("cancellationAdditionalInformation") {
        shown.insert("additionalInfo".into(), comment.clone());
    }
    if let Some(reason) = known.at(view, &CANCELLATION_REASONS, request, "cancellationReasonId")? {
        let public = match text(&reason, "publicDescription") {
            "" => text(&reason, "name"),
            public => public,
        };
        shown.insert("reasonForCancellation".into(), public.into());
    }
    if let Some(address) = known.at(view, &ADDRESS_TYPES, request, "deliveryAddressTypeId")? {
        shown.insert("deliveryAddressType".into(), address["addressType"].clone());
    }
    Ok(Value::Object(shown))
}

/// What slips and notices can print of who made a request.
pub(crate) fn requester_shown(
    view: &mut View<'_>,
    known: &mut Records,
    request: &Value,
) -> Result<Value, StoreError> {
    let user = known.at(view, &USERS, request, "requesterId")?.unwrap_or_default();
    let mut shown = person_shown(view, known, &user)?;
    let addresses = user["personal"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wanted = text(request, "deliveryAddressTypeId");
    let delivered = addresses.iter().find(|it| !wanted.is_empty() && text(it, "addressTypeId") == wanted);
    if let Some(address) = delivered {
        address_shown(address, "", &mut shown);
    }
    Ok(Value::Object(shown))
}

fn address_shown(address: &Value, prefix: &str, shown: &mut Map<String, Value>) {
    for (name, field) in [
        ("addressLine1", "addressLine1"),
        ("addressLine2", "addressLine2"),
        ("city", "city"),
        ("region", "region"),
        ("postalCode", "postalCode"),
        ("countryId", "countryId"),
    ] {
        if let Some(value) = address.get(field) {
            let name = match prefix {
                "" => name.to_owned(),
                prefix => format!("{prefix}{}{}", name[..1].to_uppercase(), &name[1..]),
            };
            shown.insert(name, value.clone());
        }
    }
}

/// What slips and notices can print of a person.
pub(crate) fn person_shown(
    view: &mut View<'_>,
    known: &mut Records,
    user: &Value,
) -> Result<Map<String, Value>, StoreError> {
    let mut shown = Map::new();
    let personal = &user["personal"];
    copy(personal, &["firstName", "lastName", "middleName", "preferredFirstName"], &mut shown);
    if text(personal, "preferredFirstName").is_empty()
        && let Some(first) = personal.get("firstName")
    {
        shown.insert("preferredFirstName".into(), first.clone());
    }
    copy(user, &["barcode"], &mut shown);
    if let Some(group) = known.at(view, &GROUPS, user, "patronGroup")? {
        shown.insert("patronGroup".into(), group["group"].clone());
    }
    let departments = user["departments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names = Vec::new();
    for id in departments.iter().filter_map(Value::as_str) {
        if let Some(department) = known.get(view, &DEPARTMENTS, id)? {
            names.push(text(&department, "name").to_owned());
        }
    }
    shown.insert("departments".into(), names.join("; ").into());
    let addresses = personal["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let primary = addresses.iter().find(|it| it["primaryAddress"].as_bool() == Some(true));
    if let Some(address) = primary {
        address_shown(address, "primary", &mut shown);
        if let Some(kind) = known.at(view, &ADDRESS_TYPES, address, "addressTypeId")? {
            shown.insert("primaryDeliveryAddressType".into(), kind["addressType"].clone());
        }
    }
    Ok(shown)
}

/// Requests that were closed while their item waited on the shelf: the item is to be taken off it.
async fn shelf_to_clear(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let on_shelf = Query::filter(Expr::Is("status.name".into(), "Awaiting pickup".into()));
        let mut last: Vec<Value> = Vec::new();
        for item in view.find(&ITEMS.kind, &on_shelf)? {
            let of_item = Query::filter(Expr::Is("itemId".into(), item.id.as_str().into()));
            let requests = view.find(&REQUESTS.kind, &of_item)?;
            let requests = requests.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
            if requests.iter().any(|it| text(it, "status") == AWAITING_PICKUP) {
                continue;
            }
            let closed = requests
                .into_iter()
                .filter(|it| matches!(text(it, "status"), "Closed - Cancelled" | "Closed - Pickup expired"))
                .filter(|it| text(it, "pickupServicePointId") == id)
                .max_by_key(|it| {
                    [text(it, "awaitingPickupRequestClosedDate"), text(it, "metadata.updatedDate")].join(" ")
                });
            last.extend(closed);
        }
        let shown = view::extended(view, &last)?;
        Ok(json!({"totalRecords": shown.len(), "requests": shown}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Items on their way, with the loan they come from and the request they go to.
async fn in_transit(call: Call) -> Answer {
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut known = Records::default();
        let mut list = Vec::new();
        let on_the_way = Query::filter(Expr::Is("status.name".into(), "In transit".into()));
        for item in view.find(&ITEMS.kind, &on_the_way)? {
            let book = Book::of(view, &mut known, item.json()?.into())?;
            list.push(moving(view, &mut known, &book)?);
        }
        Ok(json!({"totalRecords": list.len(), "items": list}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn moving(view: &mut View<'_>, known: &mut Records, book: &Book) -> Result<Value, FolioError> {
    let mut shown = book.summary();
    for name in ["inTransitDestinationServicePointId", "lastCheckIn", "effectiveLocationId"] {
        copy(&book.item, &[name], &mut shown);
    }
    shown.insert("effectiveCallNumberComponents".into(), book.item["effectiveCallNumberComponents"].clone());
    copy(&book.item, &["effectiveShelvingOrder"], &mut shown);
    let point = |view: &mut View<'_>, known: &mut Records, id: &str| {
        Ok::<_, StoreError>(known.get(view, &SERVICE_POINTS, id)?.map(|it| loans::view::service_point(&it)))
    };
    let goes_to = text(&book.item, "inTransitDestinationServicePointId");
    if let Some(to) = point(view, known, goes_to)? {
        shown.insert("inTransitDestinationServicePoint".into(), to);
    }
    if let Some(location) = known.at(view, &LOCATIONS, &book.item, "effectiveLocationId")? {
        let mut place = Map::new();
        copy(&location, &["name", "code"], &mut place);
        shown.insert("location".into(), Value::Object(place));
    }
    let of_item = || Query::filter(Expr::Is("itemId".into(), book.id().into()));
    let loans =
        view.find(&LOANS.kind, &of_item())?.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
    if let Some(loan) = loans.iter().max_by_key(|it| text(it, "loanDate").to_owned()) {
        let mut last = Map::new();
        copy(loan, &["checkinServicePointId", "checkinServicePoint"], &mut last);
        if let Some(from) = point(view, known, text(loan, "checkinServicePointId"))? {
            last.insert("checkInServicePoint".into(), from);
        }
        shown.insert("loan".into(), Value::Object(last));
    }
    let requests =
        view.find(&REQUESTS.kind, &of_item())?.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
    let first = requests
        .iter()
        .filter(|it| requests::is_open(text(it, "status")))
        .min_by_key(|it| it["position"].as_u64().unwrap_or(u64::MAX));
    if let Some(request) = first {
        let mut next = Map::new();
        copy(
            request,
            &["requestType", "requestDate", "requestExpirationDate", "pickupServicePointId"],
            &mut next,
        );
        if let Some(to) = point(view, known, text(request, "pickupServicePointId"))? {
            next.insert("requestPickupServicePointName".into(), to["name"].clone());
        }
        let user = known.at(view, &USERS, request, "requesterId")?.unwrap_or_default();
        if let Some(group) = known.at(view, &GROUPS, &user, "patronGroup")? {
            next.insert("requestPatronGroup".into(), group["desc"].clone());
        }
        next.insert("tags".into(), request["tags"]["tagList"].clone());
        shown.insert("request".into(), Value::Object(next));
    }
    Ok(Value::Object(shown))
}
