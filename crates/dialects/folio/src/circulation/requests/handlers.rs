//! `/circulation/requests` and the paths below it.

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, StoreError, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::queue::{Queue, Request};
use super::{REQUESTS, any, change, create, view};
use crate::circulation::book::Book;
use crate::circulation::neighbours::{ITEMS, SERVICE_POINTS, USERS};
use crate::circulation::overrides::Overrides;
use crate::circulation::records::{Records, text};
use crate::platform::app::Call;
use crate::platform::collection::{self, Page, Writer, page_of};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};

/// Adds the routes of requests.
pub(crate) fn routes(routes: Routes) -> Routes {
    let queue = "/circulation/requests/queue";
    let of_item = format!("{queue}/item/{{id}}");
    let of_instance = format!("{queue}/instance/{{id}}");
    routes
        .get("/circulation/requests", Access::to("circulation.requests.collection.get"), list)
        .post("/circulation/requests", Access::to("circulation.requests.item.post"), make)
        .get("/circulation/requests/{id}", Access::to("circulation.requests.item.get"), by_id)
        .put("/circulation/requests/{id}", Access::to("circulation.requests.item.put"), replace)
        .delete("/circulation/requests/{id}", Access::to("circulation.requests.item.delete"), remove)
        .delete("/circulation/requests", Access::to("circulation.requests.collection.delete"), |call| {
            collection::remove_by_query(call, &REQUESTS)
        })
        .post(
            "/circulation/requests/instances",
            Access::to("circulation.requests.instances.item.post"),
            make_for_instance,
        )
        .post("/circulation/requests/{id}/move", Access::to("circulation.requests.item.move.post"), move_to)
        .get(
            "/circulation/requests/allowed-service-points",
            Access::to("circulation.requests.allowed-service-points.get"),
            allowed_service_points,
        )
        .get(&of_item, Access::to("circulation.requests.queue.item.get"), |call| show_queue(call, "itemId"))
        .get(&of_instance, Access::to("circulation.requests.queue.instance.get"), |call| {
            show_queue(call, "instanceId")
        })
        .post(
            &format!("{of_item}/reorder"),
            Access::to("circulation.requests.queue.item-reorder.collection.post"),
            |call| reorder(call, "itemId"),
        )
        .post(
            &format!("{of_instance}/reorder"),
            Access::to("circulation.requests.queue.instance-reorder.collection.post"),
            |call| reorder(call, "instanceId"),
        )
}

async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<(Vec<Value>, u64), FolioError> {
        let (records, total) = page_of(view, &REQUESTS, &page)?;
        let requests: Result<Vec<Value>, StoreError> =
            records.iter().map(pinakes_store::Record::json).collect();
        Ok((view::extended_all(view, &mut Records::default(), &requests?)?, total))
    };
    let (requests, total) = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &json!({"requests": requests, "totalRecords": total})))
}

async fn by_id(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let Some(record) = view.get(&REQUESTS.kind, &id)? else { return Ok(None) };
        Ok(view::extended_all(view, &mut Records::default(), &[record.json()?])?.pop())
    };
    let found = call.db().read(Weight::Point, read).await?;
    let request = found.ok_or_else(|| FolioError::not_found("request not found"))?;
    Ok(json_answer(StatusCode::OK, &request))
}

async fn make(mut call: Call) -> Answer {
    let body = call.object().await?;
    // Overrides of blocks are in `requestProcessingParameters.overrideBlocks`.
    let parameters =
        body.get("requestProcessingParameters").and_then(Value::as_object).cloned().unwrap_or_default();
    let overrides = Overrides::of(&call, &parameters)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        let mut body = body.clone();
        body.remove("requestProcessingParameters");
        create::create(txn, &writer(), &create::RequestDraft { body: &body, overrides: &overrides })
    };
    let request = call.db().write(write).await?;
    let location = format!("/circulation/requests/{}", text(&request, "id"));
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &request), LOCATION, &location))
}

/// Requests any item of an instance: the first that can be paged, else recalled, else held; items near the pickup
/// service point come first.
///
/// Errors: 422 with the reasons against the last item that was tried.
async fn make_for_instance(mut call: Call) -> Answer {
    let body = call.object().await?;
    required_text(&body, "instanceId")?;
    required_text(&body, "pickupServicePointId")?;
    let overrides = Overrides::of(&call, &Map::new())?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| any::create_for_any(txn, &writer(), &body, &overrides);
    let request = call.db().write(write).await?;
    let location = format!("/circulation/requests/{}", text(&request, "id"));
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &request), LOCATION, &location))
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let (overrides, writer) = (Overrides::of(&call, &Map::new())?, Writer::of(&call));
    call.db().write(move |txn| change::replace(txn, &writer(), &id, body.clone(), &overrides)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| change::remove(txn, &writer(), &id)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Moves a request: `{"destinationItemId","requestType"?}`.
async fn move_to(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = Value::Object(call.object().await?);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        let item = text(&body, "destinationItemId");
        change::move_to(txn, &writer(), &id, item, body["requestType"].as_str())
    };
    let request = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &request))
}

/// Returns the queue of an item or of an instance.
fn queue_of(view: &mut View<'_>, field: &str, id: &str, now_ms: i64) -> Result<Queue, FolioError> {
    let item = if field == "itemId" { id } else { "" };
    Ok(Queue::by(view, field, id, item, now_ms)?)
}

async fn show_queue(call: Call, field: &'static str) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, FolioError> {
        let queue = queue_of(view, field, &id, now_ms)?;
        let requests: Vec<Value> = queue.requests().iter().map(|it| it.0.clone()).collect();
        Ok(view::extended_all(view, &mut Records::default(), &requests)?)
    };
    let requests = call.db().read(Weight::Scan, read).await?;
    let total = requests.len();
    Ok(json_answer(StatusCode::OK, &json!({"requests": requests, "totalRecords": total})))
}

/// Reorders a queue: `{"reorderedQueue":[{"id","newPosition"}]}`.
async fn reorder(mut call: Call, field: &'static str) -> Answer {
    let id = call.uuid_param("id")?;
    let body = Value::Object(call.object().await?);
    let entries = body["reorderedQueue"].as_array().cloned().unwrap_or_default();
    let order: Vec<(String, u64)> = entries
        .iter()
        .map(|it| (text(it, "id").to_owned(), it["newPosition"].as_u64().unwrap_or_default()))
        .collect();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<Value>, FolioError> {
        let writer = writer();
        let mut queue = queue_of(txn, field, &id, writer.now_ms)?;
        change::reorder(txn, &writer, &mut queue, &order)?;
        let requests: Vec<Value> = queue.requests().iter().map(|it: &Request| it.0.clone()).collect();
        Ok(view::extended_all(txn, &mut Records::default(), &requests)?)
    };
    let requests = call.db().write(write).await?;
    let total = requests.len();
    Ok(json_answer(StatusCode::OK, &json!({"requests": requests, "totalRecords": total})))
}

/// Lists the service points that a requester may choose, by request type: `?operation=create&requesterId=` with
/// `itemId=` or `instanceId=`; `?operation=replace&requestId=` and `?operation=move&requestId=&itemId=` for an existing
/// request.
/// Refuses ids that are none, and parameters that do not belong together: a new request names the requester and an
/// item or an instance, an existing one itself, and when it is moved also the item.
fn refuse_combination(call: &Call) -> Result<(), FolioError> {
    let given = |name: &str| call.query.filled(name);
    let ids = [
        ("requesterId", "Requester"),
        ("instanceId", "Instance"),
        ("itemId", "Item"),
        ("requestId", "Request"),
    ];
    let faults: Vec<String> = ids
        .into_iter()
        .filter_map(|(name, what)| Some((what, given(name).filter(|it| parse_uuid(it).is_none())?)))
        .map(|(what, id)| format!("{what} ID is not a valid UUID: {id}."))
        .collect();
    if !faults.is_empty() {
        return Err(FolioError::bad_request(faults.join(" ")));
    }
    let has = ids.map(|(name, _)| given(name).is_some());
    let fits = match (given("operation"), has) {
        (Some("create"), [true, instance, item, false]) => instance != item,
        (Some("replace"), [false, false, false, true]) => true,
        (Some("move"), [false, false, true, true]) => true,
        // Without an operation, whatever can be answered.
        (None, [requester, instance, item, request]) => request || requester && (instance || item),
        _ => false,
    };
    if fits { Ok(()) } else { Err(FolioError::bad_request("Invalid combination of query parameters")) }
}

async fn allowed_service_points(call: Call) -> Answer {
    let given = |name: &str| call.query.get(name).unwrap_or_default().to_owned();
    let (mut requester, mut item, mut instance) =
        (given("requesterId"), given("itemId"), given("instanceId"));
    let (operation, request) = (given("operation"), given("requestId"));
    refuse_combination(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut known = Records::default();
        let missing = |what: &str, name: &str, id: &str| {
            FolioError::unprocessable(Fault::new(format!("{what} with ID {id} was not found")).with(name, id))
        };
        let mut only = None;
        if !request.is_empty() {
            let Some(found) = known.get(view, &REQUESTS, &request)? else {
                return Err(missing("Request", "requestId", &request));
            };
            requester = text(&found, "requesterId").to_owned();
            if item.is_empty() {
                item = text(&found, "itemId").to_owned();
            }
            instance = text(&found, "instanceId").to_owned();
            only = (operation == "replace").then(|| text(&found, "requestType").to_owned());
        }
        let only = only.as_deref();
        Ok(Value::Object(allowed_points(view, &requester, &item, &instance, only)?))
    };
    let body = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &body))
}

/// Returns the service points that a requester may choose for an item, or for the items of an instance, by request
/// type; only for the given type if there is one.
///
/// Errors: 422 for an unknown user or item.
pub(crate) fn allowed_points(
    view: &mut View<'_>,
    requester: &str,
    item: &str,
    instance: &str,
    only: Option<&str>,
) -> Result<Map<String, Value>, FolioError> {
    let mut known = Records::default();
    let missing = |what: &str, name: &str, id: &str| {
        FolioError::unprocessable(Fault::new(format!("{what} with ID {id} was not found")).with(name, id))
    };
    let Some(user) = known.get(view, &USERS, requester)? else {
        return Err(missing("User", "requesterId", requester));
    };
    let books = match item.is_empty() {
        true => create::books_of(view, &mut known, instance)?,
        false => match known.get(view, &ITEMS, item)? {
            Some(found) => vec![Book::of(view, &mut known, found)?],
            None => return Err(missing("Item", "itemId", item)),
        },
    };
    let mut allowed = Map::new();
    for book in &books {
        let policy = create::policy_of(view, &mut known, book, &user)?;
        let types: Vec<&str> = match only {
            Some(kind) => vec![kind],
            None => create::allowed_types(book.status()).to_vec(),
        };
        for kind in types {
            if !create::allows(&policy, kind) || allowed.contains_key(kind) {
                continue;
            }
            let points = points(view, create::allowed_points(&policy, kind))?;
            if !points.is_empty() {
                allowed.insert(kind.to_owned(), points.into());
            }
        }
    }
    Ok(allowed)
}

/// Returns the pickup service points, limited to `among` if given.
fn points(view: &mut View<'_>, among: Option<Vec<&str>>) -> Result<Vec<Value>, StoreError> {
    let pickup = Query::filter(Expr::Is("pickupLocation".into(), true.into()));
    let mut points = Vec::new();
    for record in
        view.find(&SERVICE_POINTS.kind, &pickup.sorted("name", pinakes_store::Direction::Ascending))?
    {
        if among.as_ref().is_none_or(|it| it.contains(&record.id.as_str())) {
            let point = record.json()?;
            points.push(json!({
                "id": point["id"], "name": point["name"],
                "discoveryDisplayName": point["discoveryDisplayName"],
            }));
        }
    }
    Ok(points)
}
