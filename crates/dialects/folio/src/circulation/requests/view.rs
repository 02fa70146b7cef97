//! A request as the desk shows it: with the current data of item, title, requester and pickup service point.

use pinakes_store::{StoreError, View};
use serde_json::{Map, Value, json};

use crate::circulation::book::Book;
use crate::circulation::loans::view::{person, service_point};
use crate::circulation::neighbours::{GROUPS, INSTANCES, ITEMS, SERVICE_POINTS, USERS};
use crate::circulation::policies::CANCELLATION_REASONS;
use crate::circulation::records::{Records, copy, object, text};
use crate::circulation::{loans, print_events};

/// Returns requests as the desk shows them, in the same order.
pub(crate) fn extended_all(
    view: &mut View<'_>,
    known: &mut Records,
    requests: &[Value],
) -> Result<Vec<Value>, StoreError> {
    let of = |field: &'static str| requests.iter().map(move |it| text(it, field));
    view.read_ahead_of(&[
        (&ITEMS.kind, of("itemId").collect()),
        (&INSTANCES.kind, of("instanceId").collect()),
        (&USERS.kind, of("requesterId").chain(of("proxyUserId")).collect()),
        (&SERVICE_POINTS.kind, of("pickupServicePointId").collect()),
    ])?;
    let items = known.load(view, &ITEMS, of("itemId"))?;
    Book::load(view, known, &items)?;
    known.load(view, &INSTANCES, of("instanceId"))?;
    let users = known.load(view, &USERS, of("requesterId").chain(of("proxyUserId")))?;
    known.load(view, &GROUPS, users.iter().map(|it| text(it, "patronGroup")))?;
    known.load(view, &SERVICE_POINTS, of("pickupServicePointId"))?;
    let mut list: Vec<Value> =
        requests.iter().map(|it| extended_one(view, known, it)).collect::<Result<_, StoreError>>()?;
    print_events::add_details(view, known, &mut list)?;
    Ok(list)
}

fn extended_one(view: &mut View<'_>, known: &mut Records, request: &Value) -> Result<Value, StoreError> {
    let mut body = object(request);
    let metadata = body.remove("metadata");
    for name in ["searchIndex", "item", "requester"] {
        body.remove(name);
    }
    let instance = known.at(view, &INSTANCES, request, "instanceId")?.unwrap_or_default();
    let mut title = Map::new();
    copy(&instance, &["title", "identifiers", "publication", "editions"], &mut title);
    let contributors = instance["contributors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<Value> = contributors.iter().map(|it| json!({"name": text(it, "name")})).collect();
    title.insert("contributorNames".into(), names.into());
    body.insert("instance".into(), Value::Object(title));
    if let Some(item) = known.at(view, &ITEMS, request, "itemId")? {
        let book = Book::of(view, known, item)?;
        let mut shown = book.summary();
        let status = book.status().to_owned();
        shown.insert("status".into(), status.into());
        let order = text(&book.item, "effectiveShelvingOrder").to_owned();
        if !order.is_empty() {
            shown.insert("effectiveShelvingOrder".into(), order.into());
        }
        for (name, value) in [
            ("itemEffectiveLocationId", &book.item["effectiveLocationId"]),
            ("itemEffectiveLocationName", &book.location["name"]),
        ] {
            if !value.is_null() {
                shown.insert(name.into(), value.clone());
            }
        }
        if let Some(point) = known.at(view, &SERVICE_POINTS, &book.location, "primaryServicePoint")? {
            shown.insert("retrievalServicePointId".into(), point["id"].clone());
            shown.insert("retrievalServicePointName".into(), point["name"].clone());
        }
        shown.remove("id");
        shown.remove("title");
        shown.remove("contributors");
        body.insert("item".into(), Value::Object(shown));
        if let Some(loan) = loans::open_loan_of(view, book.id())? {
            let mut shown = Map::new();
            copy(&loan.json()?, &["dueDate"], &mut shown);
            body.insert("loan".into(), Value::Object(shown));
        }
    }
    for (field, name) in [("requesterId", "requester"), ("proxyUserId", "proxy")] {
        let Some(user) = known.at(view, &USERS, request, field)? else { continue };
        let mut shown = person(&user);
        shown.remove("patronGroup");
        copy(&user, &["type"], &mut shown);
        if let Some(group) = known.at(view, &GROUPS, &user, "patronGroup")? {
            let mut group_shown = Map::new();
            copy(&group, &["id", "group", "desc"], &mut group_shown);
            shown.insert("patronGroupId".into(), group["id"].clone());
            shown.insert("patronGroup".into(), Value::Object(group_shown));
        }
        body.insert(name.into(), Value::Object(shown));
    }
    if let Some(point) = known.at(view, &SERVICE_POINTS, request, "pickupServicePointId")? {
        body.insert("pickupServicePoint".into(), service_point(&point));
    }
    if let Some(reason) = known.at(view, &CANCELLATION_REASONS, request, "cancellationReasonId")? {
        let mut shown = Map::new();
        copy(&reason, &["name", "publicDescription"], &mut shown);
        body.insert("cancellationReason".into(), Value::Object(shown));
    }
    body.extend(metadata.map(|it| ("metadata".to_owned(), it)));
    Ok(Value::Object(body))
}

/// Removes from a client's request the properties that were added for reading.
pub(crate) fn stored(mut body: Map<String, Value>) -> Map<String, Value> {
    const ADDED: [&str; 9] = [
        "printDetails",
        "item",
        "instance",
        "requester",
        "proxy",
        "pickupServicePoint",
        "loan",
        "cancellationReason",
        "deliveryAddress",
    ];
    body.retain(|name, _| !ADDED.contains(&name.as_str()));
    body
}

/// Returns requests as the desk shows them.
pub(crate) fn extended(view: &mut View<'_>, requests: &[Value]) -> Result<Vec<Value>, StoreError> {
    extended_all(view, &mut Records::default(), requests)
}
