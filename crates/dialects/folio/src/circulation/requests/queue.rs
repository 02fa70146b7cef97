//! The queue of open requests for an item.

use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::{Map, Value};

use super::{AWAITING_PICKUP, NOT_FILLED, REQUESTS, are_titles_requested, is_open};
use crate::circulation::book::Book;
use crate::circulation::moment;
use crate::circulation::records::{object, text};
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::FolioError;

/// An open request.
#[derive(Debug, Clone)]
pub(crate) struct Request(pub(crate) Value);

impl Request {
    pub(crate) fn id(&self) -> &str {
        text(&self.0, "id")
    }

    /// Returns the id of the requester.
    pub(crate) fn requester(&self) -> &str {
        text(&self.0, "requesterId")
    }

    pub(crate) fn item(&self) -> &str {
        text(&self.0, "itemId")
    }

    pub(crate) fn status(&self) -> &str {
        text(&self.0, "status")
    }

    pub(crate) fn is_hold(&self) -> bool {
        text(&self.0, "requestType") == "Hold"
    }

    pub(crate) fn is_recall(&self) -> bool {
        text(&self.0, "requestType") == "Recall"
    }

    pub(crate) fn is_page(&self) -> bool {
        text(&self.0, "requestType") == "Page"
    }

    pub(crate) fn is_for_title(&self) -> bool {
        text(&self.0, "requestLevel") == "Title"
    }

    /// Returns its position in the queue; requests without one come last.
    fn position(&self) -> u64 {
        self.0["position"].as_u64().unwrap_or(u64::MAX)
    }

    /// Returns the closing status of a request that expired before `now_ms`, while waiting or on the hold shelf.
    fn outlived(&self, now_ms: i64) -> Option<&'static str> {
        let is_past =
            |name: &str| moment::parse(text(&self.0, name)).is_some_and(|it| it.as_millisecond() < now_ms);
        match self.status() {
            NOT_FILLED if is_past("requestExpirationDate") => Some("Closed - Unfilled"),
            AWAITING_PICKUP if is_past("holdShelfExpirationDate") => Some("Closed - Pickup expired"),
            _ => None,
        }
    }
}

/// Open requests in order. Requests for other items of the same title are included, but are not this item's.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    requests: Vec<Request>,
    item: String,
    /// Expired requests, with the status that they get.
    over: Vec<(Request, &'static str)>,
}

impl Queue {
    /// Reads the queue of an item.
    pub(crate) fn of_item(view: &mut View<'_>, book: &Book, now_ms: i64) -> Result<Self, StoreError> {
        let by_title = are_titles_requested(view)?;
        let (field, id) = if by_title { ("instanceId", book.instance_id()) } else { ("itemId", book.id()) };
        Self::by(view, field, id, book.id(), now_ms)
    }

    /// Reads the requests for an item or instance.
    pub(crate) fn by(
        view: &mut View<'_>,
        field: &str,
        id: &str,
        item: &str,
        now_ms: i64,
    ) -> Result<Self, StoreError> {
        let mut queue = Self { item: item.to_owned(), ..Self::default() };
        for record in view.find(&REQUESTS.kind, &Query::filter(Expr::Is(field.into(), id.into())))? {
            let request = Request(record.json()?);
            match request.outlived(now_ms) {
                _ if !is_open(request.status()) => {}
                Some(status) => queue.over.push((request, status)),
                None => queue.requests.push(request),
            }
        }
        queue.requests.sort_by_key(Request::position);
        Ok(queue)
    }

    /// Returns all open requests.
    pub(crate) fn requests(&self) -> &[Request] {
        &self.requests
    }

    fn of_this_item(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|it| it.item().is_empty() || it.item() == self.item)
    }

    /// Returns the next request for the item.
    pub(crate) fn first(&self) -> Option<&Request> {
        self.of_this_item().next()
    }

    /// Checks whether a matching request waits for the item.
    pub(crate) fn has(&self, is_it: impl Fn(&Request) -> bool) -> bool {
        self.of_this_item().any(is_it)
    }

    /// Removes the next request from the queue if it is this user's.
    pub(crate) fn take_first_of(&mut self, user: &str) -> Option<Request> {
        let id = self.first().filter(|it| it.requester() == user)?.id().to_owned();
        self.take(&id)
    }

    /// Removes a request from the queue.
    pub(crate) fn take(&mut self, id: &str) -> Option<Request> {
        let place = self.requests.iter().position(|it| it.id() == id)?;
        Some(self.requests.remove(place))
    }

    /// Inserts a request at a position, counted from 0.
    pub(crate) fn insert(&mut self, place: usize, request: Request) {
        self.requests.insert(place.min(self.requests.len()), request);
    }

    /// Closes a request that was removed from the queue; the following ones move up.
    pub(crate) fn close(
        &mut self,
        txn: &mut Txn<'_>,
        writer: &Writer,
        request: Request,
        status: &str,
    ) -> Result<Value, FolioError> {
        let mut body = object(&request.0);
        body.remove("position");
        body.insert("status".into(), status.into());
        let closed = store(txn, writer, body)?;
        self.settle(txn, writer)?;
        Ok(closed)
    }

    /// Changes a request without moving it.
    pub(crate) fn change(
        &mut self,
        txn: &mut Txn<'_>,
        writer: &Writer,
        id: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Option<Request>, FolioError> {
        let Some(request) = self.requests.iter_mut().find(|it| it.id() == id) else { return Ok(None) };
        let mut body = object(&request.0);
        change(&mut body);
        request.0 = store(txn, writer, body)?;
        Ok(Some(request.clone()))
    }

    /// Closes expired requests and numbers the others from 1; returns the closed ones.
    pub(crate) fn settle(&mut self, txn: &mut Txn<'_>, writer: &Writer) -> Result<Vec<Value>, FolioError> {
        let mut closed = Vec::new();
        for (request, status) in std::mem::take(&mut self.over) {
            let mut body = object(&request.0);
            body.remove("position");
            body.insert("status".into(), status.into());
            closed.push(store(txn, writer, body)?);
        }
        for (place, request) in self.requests.iter_mut().enumerate() {
            let position = place as u64 + 1;
            if request.position() != position {
                let mut body = object(&request.0);
                body.insert("position".into(), position.into());
                request.0 = store(txn, writer, body)?;
            }
        }
        Ok(closed)
    }
}

/// Stores a changed request.
pub(crate) fn store(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: Map<String, Value>,
) -> Result<Value, FolioError> {
    let id = body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(collection::put(txn, writer, &REQUESTS, &id, body, Missing::Refuse, Lock::Ignored)?.body)
}
