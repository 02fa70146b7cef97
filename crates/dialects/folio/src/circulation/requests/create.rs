//! `POST /circulation/requests`.

use std::sync::Arc;

use http::StatusCode;
use pinakes_store::{StoreError, Txn, View};
use serde_json::{Map, Value};

use super::queue::{Queue, Request};
use super::{REQUESTS, are_titles_requested, view};
use crate::circulation::book::Book;
use crate::circulation::check_out::{inactive, is_proxy};
use crate::circulation::neighbours::{HOLDINGS, INSTANCES, ITEMS, SERVICE_POINTS, USERS};
use crate::circulation::notices;
use crate::circulation::notices::sending::{LoanEvent, RequestEvent};
use crate::circulation::overrides::{Block, Overrides};
use crate::circulation::policies::{REQUEST_POLICIES, setting};
use crate::circulation::records::{Records, object, text};
use crate::circulation::rules::PolicyKind;
use crate::circulation::terms::{self, Circumstances};
use crate::circulation::{loans, moment, patron_blocks};
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Fault, FolioError};
use crate::platform::values::parse_uuid;

/// Item statuses and the request types that they allow.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("Available", &["Page"]),
    ("Restricted", &["Hold", "Page", "Recall"]),
    ("Checked out", &["Hold", "Recall"]),
    ("Awaiting pickup", &["Hold", "Recall"]),
    ("Awaiting delivery", &["Hold", "Recall"]),
    ("In transit", &["Hold", "Recall"]),
    ("Paged", &["Hold", "Recall"]),
    ("On order", &["Hold", "Recall"]),
    ("In process", &["Hold", "Recall"]),
];

/// Returns the request types that an item's status allows.
pub(crate) fn allowed_types(status: &str) -> &'static [&'static str] {
    match status {
        "Missing" => &["Hold"],
        _ => ALLOWED.iter().find(|(it, _)| *it == status).map_or(&[], |(_, types)| types),
    }
}

/// The content of a request to be created.
pub(crate) struct RequestDraft<'a> {
    pub(crate) body: &'a Map<String, Value>,
    pub(crate) overrides: &'a Overrides,
}

impl RequestDraft<'_> {
    fn text(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

fn refused(fault: Fault) -> FolioError {
    FolioError::unprocessable(fault)
}

/// Creates a request and applies its effects: a page reserves the item, a recall makes a loan due earlier.
pub(crate) fn create(
    txn: &mut Txn<'_>,
    writer: &Writer,
    wish: &RequestDraft<'_>,
) -> Result<Value, FolioError> {
    let mut known = Records::default();
    let kind = wish.text("requestType").to_owned();
    if !matches!(kind.as_str(), "Hold" | "Page" | "Recall") {
        let message = "requestType must be one of the following: \"Hold\", \"Page\", \"Recall\"";
        return Err(refused(Fault::new(message).with("requestType", kind)));
    }
    let by_title = are_titles_requested(txn)?;
    let level = wish.text("requestLevel");
    let is_for_title = level == "Title";
    if !matches!((level, by_title), ("" | "Item", _) | ("Title", true)) {
        let levels = if by_title { "\"Item\", \"Title\"" } else { "\"Item\"" };
        let message = format!("requestLevel must be one of the following: {levels}");
        return Err(refused(
            Fault::new(message).code("REQUEST_LEVEL_IS_NOT_ALLOWED").with("requestLevel", level),
        ));
    }
    let way = wish.text("fulfillmentPreference");
    if !matches!(way, "" | "Hold Shelf" | "Delivery") {
        let message = "fulfillmentPreference must be one of the following: \"Hold Shelf\", \"Delivery\"";
        let fault = Fault::new(message).code("FULFILLMENT_PREFERENCE_IS_NOT_ALLOWED");
        return Err(refused(fault.with("fulfillmentPreference", way)));
    }
    if !wish.text("instanceId").is_empty() {
        instance(txn, wish)?;
    }
    if is_for_title && !(wish.text("itemId").is_empty() && wish.text("holdingsRecordId").is_empty()) {
        let fault = Fault::new("Attempt to create TLR request linked to an item")
            .code("ATTEMPT_TO_CREATE_TLR_LINKED_TO_AN_ITEM")
            .with("itemId", wish.text("itemId"))
            .with("holdingsRecordId", wish.text("holdingsRecordId"));
        return Err(refused(fault));
    }
    let user = requester(txn, writer, wish)?;
    refuse_proxy(txn, writer, wish)?;
    let mut book = match is_for_title {
        true => item_of_title(txn, &mut known, wish, &kind, &user)?,
        false => Some(item(txn, &mut known, wish)?),
    };
    let instance = match &book {
        Some(book) => book.instance_id().to_owned(),
        None => instance(txn, wish)?,
    };
    let mut queue = match &book {
        Some(book) => Queue::of_item(txn, book, writer.now_ms)?,
        None => Queue::by(txn, "instanceId", &instance, "", writer.now_ms)?,
    };
    refuse_pickup(txn, &mut known, wish)?;
    match &book {
        _ if is_for_title => refuse_double_of_title(&queue, &user, &instance)?,
        Some(book) => {
            let policy = refuse_item(txn, &mut known, &user, book, &kind)?;
            refuse_other_point(&policy, wish, &kind)?;
            refuse_double(&queue, &user, book)?;
        }
        None => {}
    }
    queue.settle(txn, writer)?;

    let mut body = view::stored(wish.body.clone());
    body.remove("overrideBlocks");
    body.insert("instanceId".into(), instance.into());
    body.insert("requestLevel".into(), if is_for_title { "Title" } else { "Item" }.into());
    let date = moment::parse(wish.text("requestDate")).unwrap_or(moment::from_ms(writer.now_ms));
    body.insert("requestDate".into(), moment::wire(date).into());
    body.insert("status".into(), super::NOT_FILLED.into());
    body.insert("position".into(), (queue.requests().len() as u64 + 1).into());
    // A title-level hold is assigned an item when one is returned.
    if let Some(book) = book.as_ref().filter(|_| !is_for_title || kind != "Hold") {
        body.insert("itemId".into(), book.id().into());
        if let Some(holdings) = book.item.get("holdingsRecordId") {
            body.insert("holdingsRecordId".into(), holdings.clone());
        }
    }
    let stored = collection::insert(txn, writer, &REQUESTS, body)?.body;
    if let Some(book) = book.as_mut().filter(|_| !is_for_title || kind != "Hold") {
        take_effect(txn, writer, &mut known, book, &kind)?;
    }
    let event = match kind.as_str() {
        "Page" => RequestEvent::Paged,
        "Recall" => RequestEvent::Recalled,
        _ => RequestEvent::Held,
    };
    notices::request(txn, writer, event, &stored)?;
    Ok(view::extended_all(txn, &mut known, &[stored])?.pop().unwrap_or_default())
}

/// Returns the requester, if they may request.
fn requester(txn: &mut Txn<'_>, writer: &Writer, wish: &RequestDraft<'_>) -> Result<Value, FolioError> {
    let id = wish.text("requesterId");
    let Some(user) = txn.get(&USERS.kind, id)? else {
        let fault = Fault::new("A valid user and patron group are required. User is null");
        return Err(refused(fault.with("requesterId", id)));
    };
    let user = user.json()?;
    if text(&user, "patronGroup").is_empty() {
        let fault = Fault::new("A valid patron group is required. PatronGroup ID is null");
        return Err(refused(fault.with("requesterId", id)));
    }
    let mut faults = Vec::new();
    if inactive(&user, writer.now_ms, "").is_some() {
        faults.push(Fault::new("Inactive users cannot make requests").with("requesterId", id));
    }
    if !wish.overrides.passes(Block::Patron) {
        for reason in patron_blocks::manual_blocks(txn, id, "requests", writer.now_ms)? {
            let fault = Fault::new("Patron blocked from requesting").code("USER_IS_BLOCKED_MANUALLY");
            faults.push(wish.overrides.refusal(fault.with("reason", reason), Block::Patron));
        }
        for block in patron_blocks::automated_blocks(txn, &user, writer.now_ms)? {
            if block.keeps_from_requesting {
                let fault = Fault::new(block.message).code("USER_IS_BLOCKED_AUTOMATICALLY");
                faults.push(wish.overrides.refusal(fault, Block::Patron));
            }
        }
    }
    if faults.is_empty() {
        Ok(user)
    } else {
        Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults))
    }
}

/// Refuses a proxy who may not act for the requester.
fn refuse_proxy(view: &mut View<'_>, writer: &Writer, wish: &RequestDraft<'_>) -> Result<(), FolioError> {
    let proxy = wish.text("proxyUserId");
    if proxy.is_empty() || is_proxy(view, writer.now_ms, proxy, wish.text("requesterId"))? {
        return Ok(());
    }
    Err(refused(Fault::new("proxyUserId is not valid").with("proxyUserId", proxy)))
}

fn item(view: &mut View<'_>, known: &mut Records, wish: &RequestDraft<'_>) -> Result<Book, FolioError> {
    let given = wish.text("itemId");
    if given.is_empty() {
        return Err(refused(
            Fault::new("Cannot create an item level request with no item ID").with("itemId", "null"),
        ));
    }
    let found = match parse_uuid(given) {
        Some(id) => known.get(view, &ITEMS, &id)?,
        None => None,
    };
    match found {
        Some(item) => Ok(Book::of(view, known, item)?),
        None => Err(refused(Fault::new("Item does not exist").with("itemId", given))),
    }
}

fn instance(view: &mut View<'_>, wish: &RequestDraft<'_>) -> Result<String, FolioError> {
    let id = wish.text("instanceId");
    if view.has(&INSTANCES.kind, id)? {
        return Ok(id.to_owned());
    }
    Err(refused(Fault::new("Instance does not exist").code("INSTANCE_DOES_NOT_EXIST").with("instanceId", id)))
}

/// Chooses the item of a title-level request: one whose status and rules allow the type. A hold may have no item,
/// unless the site makes holds follow the rules.
fn item_of_title(
    txn: &mut Txn<'_>,
    known: &mut Records,
    wish: &RequestDraft<'_>,
    kind: &str,
    user: &Value,
) -> Result<Option<Book>, FolioError> {
    let instance = instance(txn, wish)?;
    let books = books_of(txn, known, &instance)?;
    for book in &books {
        if let Some(loan) = is_on_loan_to(txn, book, user)? {
            let fault = Fault::new("This requester already has a loan for one of the instance's items")
                .code("REQUESTER_ALREADY_HAS_LOAN_FOR_ONE_OF_INSTANCES_ITEMS");
            return Err(refused(
                fault
                    .with("itemId", book.id())
                    .with("userId", text(user, "id"))
                    .with("loanId", text(&loan, "id")),
            ));
        }
    }
    for book in books {
        if !allowed_types(book.status()).contains(&kind) {
            continue;
        }
        let policy = policy_of(txn, known, &book, user)?;
        if allows(&policy, kind) {
            refuse_other_point(&policy, wish, kind)?;
            return Ok(Some(book));
        }
    }
    let follows_rules = setting(txn, "TLR")?
        .is_some_and(|it| it["tlrHoldShouldFollowCirculationRules"].as_bool() == Some(true));
    if kind == "Hold" && !follows_rules {
        return Ok(None);
    }
    let message = format!("{kind} requests are not allowed for this patron and title combination");
    let fault = Fault::new(message).code("REQUEST_NOT_ALLOWED_FOR_PATRON_TITLE_COMBINATION");
    Err(refused(fault.with("requesterId", wish.text("requesterId")).with("instanceId", instance)))
}

/// Returns the items of a title; those on loan are ordered by due date.
pub(super) fn books_of(
    view: &mut View<'_>,
    known: &mut Records,
    instance: &str,
) -> Result<Vec<Book>, StoreError> {
    use pinakes_store::{Expr, Query};
    let of_title = Query::filter(Expr::Is("instanceId".into(), instance.into()));
    let holdings: Vec<pinakes_store::Value> =
        view.find(&HOLDINGS.kind, &of_title)?.into_iter().map(|it| it.id.into()).collect();
    if holdings.is_empty() {
        return Ok(Vec::new());
    }
    let mut books = Vec::new();
    for item in view.find(&ITEMS.kind, &Query::filter(Expr::In("holdingsRecordId".into(), holdings)))? {
        let book = Book::of(view, known, item.json()?.into())?;
        let due = open_loan(view, &book)?.map(|it| text(&it, "dueDate").to_owned()).unwrap_or_default();
        books.push((due, book));
    }
    books.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(books.into_iter().map(|it| it.1).collect())
}

/// Refuses a pickup service point that is missing, does not exist, or is not a pickup location.
fn refuse_pickup(
    view: &mut View<'_>,
    known: &mut Records,
    wish: &RequestDraft<'_>,
) -> Result<(), FolioError> {
    let id = wish.text("pickupServicePointId");
    if id.is_empty() {
        if wish.text("fulfillmentPreference") == "Delivery" {
            return Ok(());
        }
        let fault = Fault::new("Hold Shelf Fulfillment Requests require a Pickup Service Point")
            .code("HOLD_SHELF_REQUESTS_REQUIRE_PICKUP_SERVICE_POINT");
        return Err(refused(fault.with("id", wish.text("id"))));
    }
    let fault = match known.get(view, &SERVICE_POINTS, id)? {
        None => Fault::new("Pickup service point does not exist"),
        Some(point) if point["pickupLocation"].as_bool() != Some(true) => {
            Fault::new("Service point is not a pickup location").code("SERVICE_POINT_IS_NOT_PICKUP_LOCATION")
        }
        Some(_) => return Ok(()),
    };
    Err(refused(fault.with("pickupServicePointId", id)))
}

/// Refuses a request that the item's status, the rules, or the requester's own loan do not allow; returns the request
/// policy.
fn refuse_item(
    view: &mut View<'_>,
    known: &mut Records,
    user: &Value,
    book: &Book,
    kind: &str,
) -> Result<Arc<Value>, FolioError> {
    if let Some(loan) = is_on_loan_to(view, book, user)? {
        let fault = Fault::new("This requester currently has this item on loan.")
            .code("REQUESTER_ALREADY_HAS_THIS_ITEM_ON_LOAN");
        return Err(refused(
            fault
                .with("itemId", book.id())
                .with("userId", text(user, "id"))
                .with("loanId", text(&loan, "id")),
        ));
    }
    let policy = policy_of(view, known, book, user)?;
    if allows(&policy, kind) && allowed_types(book.status()).contains(&kind) {
        return Ok(policy);
    }
    let message = format!("{kind} requests are not allowed for this patron and item combination");
    Err(refused(Fault::new(message).with("requestType", kind)))
}

/// Returns the loan of the item if it is the user's.
fn is_on_loan_to(view: &mut View<'_>, book: &Book, user: &Value) -> Result<Option<Value>, StoreError> {
    Ok(open_loan(view, book)?.filter(|it| text(it, "userId") == text(user, "id")))
}

/// Returns the request policy of an item for a user. Errors: 422 if the rules name a policy that does not exist.
pub(super) fn policy_of(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    user: &Value,
) -> Result<Arc<Value>, FolioError> {
    let chosen = terms::choose(view, book, text(user, "patronGroup"))?;
    let id = chosen.policies.id(PolicyKind::Request);
    known.get(view, &REQUEST_POLICIES, id)?.ok_or_else(|| {
        let message = format!("Request policy {id} could not be found, please check circulation rules");
        refused(Fault::new(message).with(PolicyKind::Request.id_key(), id))
    })
}

/// Checks whether a policy allows a request type.
pub(super) fn allows(policy: &Value, kind: &str) -> bool {
    policy["requestTypes"].as_array().is_some_and(|it| it.iter().any(|it| it == kind))
}

/// Returns the service points that a policy allows for a type; `None` for all.
pub(super) fn allowed_points<'a>(policy: &'a Value, kind: &str) -> Option<Vec<&'a str>> {
    let list = policy["allowedServicePoints"].get(kind)?.as_array()?;
    (!list.is_empty()).then(|| list.iter().filter_map(Value::as_str).collect())
}

/// Refuses a pickup location that the policy does not allow.
fn refuse_other_point(policy: &Value, wish: &RequestDraft<'_>, kind: &str) -> Result<(), FolioError> {
    let point = wish.text("pickupServicePointId");
    if point.is_empty() || allowed_points(policy, kind).is_none_or(|it| it.contains(&point)) {
        return Ok(());
    }
    let fault = Fault::new("One or more Pickup locations are no longer available")
        .code("REQUEST_PICKUP_SERVICE_POINT_IS_NOT_ALLOWED")
        .with("pickupServicePointId", point)
        .with("requestType", kind)
        .with("requestPolicyId", text(policy, "id"));
    Err(refused(fault))
}

fn open_loan(view: &mut View<'_>, book: &Book) -> Result<Option<Value>, StoreError> {
    loans::open_loan_of(view, book.id())?.map(|it| it.json()).transpose()
}

fn refuse_double(queue: &Queue, user: &Value, book: &Book) -> Result<(), FolioError> {
    let user = text(user, "id");
    let own = |it: &&Request| it.requester() == user && (it.item().is_empty() || it.item() == book.id());
    let Some(own) = queue.requests().iter().find(own) else { return Ok(()) };
    let fault =
        Fault::new("This requester already has an open request for this item").code("ITEM_ALREADY_REQUESTED");
    Err(refused(fault.with("requesterId", user).with("itemId", book.id()).with("requestId", own.id())))
}

/// Refuses a request for a title by a user who waits for the title or for one of its items.
fn refuse_double_of_title(queue: &Queue, user: &Value, instance: &str) -> Result<(), FolioError> {
    let user = text(user, "id");
    let Some(own) = queue.requests().iter().find(|it| it.requester() == user) else { return Ok(()) };
    let fault = match own.is_for_title() {
        true => Fault::new("This requester already has an open request for this instance")
            .code("INSTANCE_ALREADY_REQUESTED"),
        false => Fault::new("This requester already has an open request for one of the instance's items")
            .code("ONE_OF_INSTANCES_ITEMS_HAS_OPEN_REQUEST"),
    };
    let fault = fault.with("requesterId", user).with("instanceId", instance);
    Err(refused(fault.with("requestId", own.id())))
}

/// Applies the immediate effects of a request.
fn take_effect(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    book: &mut Book,
    kind: &str,
) -> Result<(), FolioError> {
    if kind == "Page" {
        return book.set_status(txn, writer, known, "Paged", |_| {});
    }
    let Some(loan) = open_loan(txn, book)? else { return Ok(()) };
    let mut changed = object(&loan);
    changed.remove("actionComment");
    let action = if kind == "Recall" { "recallrequested" } else { "holdrequested" };
    changed.insert("action".into(), action.into());
    if kind == "Recall" && loan["dueDateChangedByRecall"].as_bool() != Some(true) {
        let policy = terms::loan_policy(txn, known, text(&loan, "loanPolicyId"))?;
        let point = text(&loan, "checkoutServicePointId");
        let circumstances = Circumstances::of(txn, known, &policy, point, writer.now_ms)?;
        let dates = (moment::parse(text(&loan, "loanDate")), moment::parse(text(&loan, "dueDate")));
        if let (Some(loan_date), Some(due_date)) = dates {
            let recalled = circumstances.terms(&policy, false).at_recall(loan_date, due_date);
            changed.insert("dueDate".into(), moment::wire(recalled).into());
            changed.insert("dueDateChangedByRecall".into(), true.into());
        }
    }
    let stored = loans::change(txn, writer, changed)?;
    if kind == "Recall" { notices::loan(txn, writer, known, LoanEvent::Recalled, &stored) } else { Ok(()) }
}
