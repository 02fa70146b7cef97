//! Changes to requests: pickup location, cancelling, reordering, moving to another item, expiration.

use pinakes_store::{Expr, Query, StoreError, Txn};
use serde_json::{Map, Value};

use super::create::{self, RequestDraft};
use super::queue::{Queue, Request, store};
use super::{REQUESTS, is_open, view};
use crate::circulation::book::Book;
use crate::circulation::neighbours::{ITEMS, SERVICE_POINTS};
use crate::circulation::notices;
use crate::circulation::notices::sending::RequestEvent;
use crate::circulation::overrides::Overrides;
use crate::circulation::policies::CANCELLATION_REASONS;
use crate::circulation::records::{Records, object, text};
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Fault, FolioError};

fn refused(fault: Fault) -> FolioError {
    FolioError::unprocessable(fault)
}

/// Returns the book of a request, if it has an item.
fn book_of(txn: &mut Txn<'_>, known: &mut Records, request: &Value) -> Result<Option<Book>, StoreError> {
    match known.at(txn, &ITEMS, request, "itemId")? {
        Some(item) => Book::of(txn, known, item).map(Some),
        None => Ok(None),
    }
}

fn queue_of(
    txn: &mut Txn<'_>,
    writer: &Writer,
    request: &Value,
    book: Option<&Book>,
) -> Result<Queue, StoreError> {
    match book {
        Some(book) => Queue::of_item(txn, book, writer.now_ms),
        None => Queue::by(txn, "instanceId", text(request, "instanceId"), "", writer.now_ms),
    }
}

/// `PUT /circulation/requests/{id}`: creates the request, replaces what may change, or closes it.
pub(crate) fn replace(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    mut body: Map<String, Value>,
    overrides: &Overrides,
) -> Result<(), FolioError> {
    let Some(old) = txn.get(&REQUESTS.kind, id)? else {
        body.insert("id".into(), id.into());
        let wish = RequestDraft { body: &body, overrides };
        return create::create(txn, writer, &wish).map(drop);
    };
    let old = old.json()?;
    let mut body = view::stored(body);
    body.insert("id".into(), id.into());
    for name in ["requestLevel", "instanceId", "itemId", "position"] {
        if let Some(value) = old.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    let status = body.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !is_open(text(&old, "status")) {
        let fault = Fault::new("The Request has already been closed").code("REQUEST_ALREADY_CLOSED");
        return Err(refused(fault.with("id", id)));
    }
    if let Some(point) = body.get("pickupServicePointId").and_then(Value::as_str)
        && !txn.has(&SERVICE_POINTS.kind, point)?
    {
        let fault = Fault::new("Pickup service point does not exist");
        return Err(refused(fault.with("pickupServicePointId", point)));
    }
    if is_open(&status) || status.is_empty() {
        body.entry("status").or_insert_with(|| old["status"].clone());
        return store(txn, writer, body).map(drop);
    }
    if let Some(reason) = body.get("cancellationReasonId").and_then(Value::as_str)
        && !txn.has(&CANCELLATION_REASONS.kind, reason)?
    {
        let fault = Fault::new("Cancellation reason does not exist").with("cancellationReasonId", reason);
        return Err(refused(fault));
    }
    close(txn, writer, &old, body, &status)
}

/// Closes a request; an item that was fetched only for this request becomes available again.
fn close(
    txn: &mut Txn<'_>,
    writer: &Writer,
    old: &Value,
    body: Map<String, Value>,
    status: &str,
) -> Result<(), FolioError> {
    let mut known = Records::default();
    let mut book = book_of(txn, &mut known, old)?;
    let mut queue = queue_of(txn, writer, old, book.as_ref())?;
    queue.take(text(old, "id"));
    let closed = queue.close(txn, writer, Request(Value::Object(body)), status)?;
    if status == "Closed - Cancelled" {
        notices::request(txn, writer, RequestEvent::Cancelled, &closed)?;
    }
    if let Some(book) = &mut book {
        free(txn, writer, &mut known, book, &queue)?;
    }
    Ok(())
}

fn free(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    book: &mut Book,
    queue: &Queue,
) -> Result<(), FolioError> {
    if book.status() == "Paged" && !queue.has(Request::is_page) {
        book.set_status(txn, writer, known, "Available", |_| {})?;
    }
    Ok(())
}

/// `DELETE /circulation/requests/{id}`.
pub(crate) fn remove(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    let removed = collection::delete(txn, writer, &REQUESTS, id)?;
    if !is_open(text(&removed, "status")) {
        return Ok(());
    }
    let mut known = Records::default();
    let mut book = book_of(txn, &mut known, &removed)?;
    let mut queue = queue_of(txn, writer, &removed, book.as_ref())?;
    queue.settle(txn, writer)?;
    match &mut book {
        Some(book) => free(txn, writer, &mut known, book, &queue),
        None => Ok(()),
    }
}

/// Reorders a queue: `order` gives each open request its new position.
///
/// Errors: 422 unless it contains every open request once, with positions from 1 without gaps.
pub(crate) fn reorder(
    txn: &mut Txn<'_>,
    writer: &Writer,
    queue: &mut Queue,
    order: &[(String, u64)],
) -> Result<(), FolioError> {
    let mut order = order.to_vec();
    order.sort_by_key(|it| it.1);
    let n_open = queue.requests().len();
    let names_all = order.len() == n_open
        && queue.requests().iter().all(|it| order.iter().filter(|(id, _)| id == it.id()).count() == 1);
    if !names_all {
        return Err(refused(Fault::new(
            "There is inconsistency between provided reordered queue and item queue.",
        )));
    }
    if order.iter().zip(1..).any(|((_, position), expected)| *position != expected) {
        return Err(refused(Fault::new("Positions must have sequential order.")));
    }
    let is_begun = |it: &Request| it.status() != super::NOT_FILLED;
    if let Some(first) = queue.requests().first().filter(|it| is_begun(it))
        && order.first().is_some_and(|(id, _)| id != first.id())
    {
        let fault = Fault::new("Requests can not be displaced from position 1 when fulfillment begun.");
        return Err(refused(fault.with("id", first.id())));
    }
    for (place, (id, _)) in order.iter().enumerate() {
        if let Some(request) = queue.take(id) {
            queue.insert(place, request);
        }
    }
    queue.settle(txn, writer).map(drop)
}

/// `POST /circulation/requests/{id}/move`: moves the request to the end of another item's queue.
pub(crate) fn move_to(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    item: &str,
    kind: Option<&str>,
) -> Result<Value, FolioError> {
    let mut known = Records::default();
    let Some(old) = txn.get(&REQUESTS.kind, id)? else {
        return Err(FolioError::not_found("request not found"));
    };
    let old = old.json()?;
    let Some(target) = known.get(txn, &ITEMS, item)? else {
        return Err(refused(Fault::new("Item does not exist").with("destinationItemId", item)));
    };
    let mut target = Book::of(txn, &mut known, target)?;
    if text(&old, "itemId") == target.id() {
        let fault = Fault::new("Not allowed to move request to the same item");
        let fault = fault.code("MOVING_REQUEST_TO_THE_SAME_ITEM").with("id", id);
        return Err(refused(fault.with("itemId", item)));
    }
    let kind = kind.unwrap_or_else(|| text(&old, "requestType")).to_owned();
    if !create::allowed_types(target.status()).contains(&kind.as_str()) {
        let message = format!("{kind} requests are not allowed for this patron and item combination");
        return Err(refused(Fault::new(message).with("requestType", kind)));
    }
    let mut source = book_of(txn, &mut known, &old)?;
    let mut left = queue_of(txn, writer, &old, source.as_ref())?;
    left.take(id);
    let joined = Queue::of_item(txn, &target, writer.now_ms)?;
    let n_there = joined.requests().iter().filter(|it| it.id() != id).count() as u64;
    let mut body = object(&old);
    body.insert("itemId".into(), target.id().into());
    body.insert("instanceId".into(), target.instance_id().into());
    if let Some(holdings) = target.item.get("holdingsRecordId") {
        body.insert("holdingsRecordId".into(), holdings.clone());
    }
    body.insert("requestType".into(), kind.as_str().into());
    body.insert("status".into(), super::NOT_FILLED.into());
    body.insert("position".into(), (n_there + 1).into());
    body.remove("holdShelfExpirationDate");
    let moved = store(txn, writer, body)?;
    left.settle(txn, writer)?;
    if let Some(source) = &mut source {
        free(txn, writer, &mut known, source, &left)?;
    }
    if kind == "Page" {
        target.set_status(txn, writer, &mut known, "Paged", |_| {})?;
    }
    Ok(view::extended_all(txn, &mut known, &[moved])?.pop().unwrap_or_default())
}

/// Closes all expired requests.
pub(crate) fn expire(txn: &mut Txn<'_>, writer: &Writer) -> Result<(), FolioError> {
    let open =
        [super::NOT_FILLED, super::AWAITING_PICKUP].map(|it| pinakes_store::Value::Folded(it.to_owned()));
    let query = Query::filter(Expr::In("status".into(), open.to_vec()));
    let mut items: Vec<(String, String)> = Vec::new();
    for record in txn.find(&REQUESTS.kind, &query)? {
        let request = record.json()?;
        let key = match text(&request, "itemId") {
            "" => ("instanceId".to_owned(), text(&request, "instanceId").to_owned()),
            item => ("itemId".to_owned(), item.to_owned()),
        };
        if !items.contains(&key) {
            items.push(key);
        }
    }
    let mut known = Records::default();
    for (field, id) in items {
        let book = match field.as_str() {
            "itemId" => known.get(txn, &ITEMS, &id)?,
            _ => None,
        };
        let mut book = book.map(|it| Book::of(txn, &mut known, it)).transpose()?;
        let mut queue = match &book {
            Some(book) => Queue::of_item(txn, book, writer.now_ms)?,
            None => Queue::by(txn, &field, &id, "", writer.now_ms)?,
        };
        for over in queue.settle(txn, writer)? {
            let event = match text(&over, "status") {
                "Closed - Pickup expired" => RequestEvent::HoldExpired,
                _ => RequestEvent::Expired,
            };
            notices::request(txn, writer, event, &over)?;
        }
        if let Some(book) = &mut book {
            free(txn, writer, &mut known, book, &queue)?;
        }
    }
    Ok(())
}
