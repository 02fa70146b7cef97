//! What users are told beside the notices of circulation: which templates an event has (mod-event-config), the list of
//! a user's notifications (mod-notify), messages that a client has rendered (mod-sender).

use http::StatusCode;
use http::header::LOCATION;
use pinakes_http::answer;
use pinakes_store::{
    Column, Expr, Index, Kind, Query, Record, Search, Txn, Type, Value as StoreValue, View, Weight,
};
use serde_json::{Map, Value, json};

use crate::circulation::neighbours::USERS;
use crate::circulation::notices::mail::{self, EMAILS};
use crate::circulation::notices::sending::rendered;
use crate::circulation::records::text;
use crate::configuration::records::TEMPLATES;
use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Kinds, Lock, Missing, Page, Schema, Writer, answer_list, delete, expr_of, insert,
};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};

/// `/eventConfig`: the templates of events.
pub(crate) static EVENTS: Collection = Collection {
    permission: "event.config",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("name", Type::Folded), Column::one("active", Type::Boolean)],
        indexes: &[Index::on(&["name"])],
        ..Kind::named("folio_event_config")
    },
    schema: Schema {
        required: &["name", "active", "templates"],
        types: &[
            ("name", Kinds::Text),
            ("active", Kinds::Boolean),
            ("templates", Kinds::List),
            ("templates.templateId", Kinds::Text),
            ("templates.outputFormat", Kinds::Text),
            ("templates.deliveryChannel", Kinds::Text),
        ],
        ..Schema::OPEN
    },
    has_result_info: false,
    is_served: false,
    ..Collection::named("/eventConfig", "eventEntity", "event_configurations")
};

/// `/notify`: notifications of users.
pub(crate) static NOTIFICATIONS: Collection = Collection {
    permission: "notify",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("recipientId", Type::Text),
            Column::one("seen", Type::Boolean),
            Column::at("updated", "metadata.updatedDate", Type::Instant),
        ],
        indexes: &[Index::on(&["recipientId"])],
        search: Search::Folded,
        ..Kind::named("folio_notification")
    },
    schema: Schema {
        required: &["recipientId"],
        types: &[("recipientId", Kinds::Uuid), ("seen", Kinds::Boolean), ("text", Kinds::Text)],
        defaults: &[("seen", "false")],
        ..Schema::OPEN
    },
    is_served: false,
    ..Collection::named("/notify", "notifications", "notify_data")
};

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let (event, notification) = ("/eventConfig/{id}", "/notify/{id}");
    routes
        .get("/eventConfig", to("event.config.collection.get"), |call| list(call, &EVENTS))
        .post("/eventConfig", to("event.config.item.post"), |call| collection::create(call, &EVENTS))
        .get(event, to("event.config.item.get"), |call| collection::by_id(call, &EVENTS))
        .put(event, to("event.config.item.put"), replace_event)
        .delete(event, to("event.config.item.delete"), |call| collection::remove(call, &EVENTS))
        .get("/notify", to("notify.collection.get"), |call| list(call, &NOTIFICATIONS))
        .post("/notify", to("notify.item.post"), notify)
        .get("/notify/_self", Access::User, own)
        .delete("/notify/_self", Access::User, forget_own)
        .post("/notify/_username/{name}", to("notify.item.post"), notify_named)
        .get(notification, to("notify.item.get"), |call| collection::by_id(call, &NOTIFICATIONS))
        .put(notification, to("notify.item.put"), replace_notification)
        .delete(notification, to("notify.item.delete"), |call| collection::remove(call, &NOTIFICATIONS))
        .post("/patron-notice", to("patron-notice.post"), patron_notice)
        .post("/message-delivery", to("sender.message-delivery"), hand_over)
}

async fn list(call: Call, collection: &'static Collection) -> Answer {
    let page = Page::of(&call)?;
    answer_list(&call, collection, page).await
}

/// Replaces the templates of an event; the answer shows them.
async fn replace_event(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        collection::put(txn, &writer(), &EVENTS, &id, body.clone(), Missing::Refuse, Lock::Ignored)
    };
    let stored = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &stored.body))
}

/// Whether an event has a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has, and it is on its way, if the user has an address.
    Sent,
    /// It has none, or it is switched off.
    NoSuchEvent,
}

/// Sends a user the messages that an event has, in a language.
pub(crate) fn tell(
    txn: &mut Txn<'_>,
    writer: &Writer,
    event: &str,
    user: &Value,
    language: &str,
    context: &Value,
) -> Result<Told, FolioError> {
    let named = Expr::Is("name".into(), StoreValue::Folded(event.to_owned()));
    let active = named.and(Expr::Is("active".into(), true.into()));
    let Some(config) = txn.first(&EVENTS.kind, active)? else { return Ok(Told::NoSuchEvent) };
    let config = config.json()?;
    for template in config["templates"].as_array().into_iter().flatten() {
        if matches!(text(template, "deliveryChannel"), "" | "email") {
            let (id, format) = (text(template, "templateId"), text(template, "outputFormat"));
            send_template(txn, writer, user, id, (language, format), context)?;
        }
    }
    Ok(Told::Sent)
}

/// Renders a template and sends it to a user. Errors: 400 for a template that does not exist or cannot be rendered.
fn send_template(
    txn: &mut Txn<'_>,
    writer: &Writer,
    user: &Value,
    template: &str,
    (language, format): (&str, &str),
    context: &Value,
) -> Result<(), FolioError> {
    let missing = || FolioError::bad_request(format!("Template with id {template} does not exist"));
    let record = txn.get(&TEMPLATES.kind, template)?.ok_or_else(missing)?;
    let language = if language.is_empty() { "en" } else { language };
    let (header, body) = rendered(&record.json()?, language, context)
        .map_err(|it| FolioError::bad_request(format!("Template with id {template}: {it}")))?;
    match text(user, "personal.email") {
        "" => Ok(()),
        to => mail::queue_as(txn, writer, to, (&header, &body), format),
    }
}

/// Sends a user a text that no template has.
pub(crate) fn write_to(
    txn: &mut Txn<'_>,
    writer: &Writer,
    user: &Value,
    header: &str,
    body: &str,
) -> Result<(), FolioError> {
    match text(user, "personal.email") {
        "" => Ok(()),
        to => mail::queue_as(txn, writer, to, (header, body), "text/plain"),
    }
}

/// Says whether something was sent to the user's address after an instant.
pub(crate) fn was_told_since(view: &mut View<'_>, user: &Value, since_ms: i64) -> Result<bool, FolioError> {
    let to = text(user, "personal.email");
    if to.is_empty() {
        return Ok(false);
    }
    let newest = Query::filter(Expr::Is("to".into(), StoreValue::Folded(to.to_owned())))
        .sorted("date", pinakes_store::Direction::Descending)
        .window(0, 1);
    let newest = view.find(&EMAILS.kind, &newest)?.first().map(Record::json).transpose()?;
    let at_ms = newest.as_ref().and_then(|it| dates::parse_ms(text(it, "date")));
    Ok(at_ms.is_some_and(|it| since_ms < it))
}

/// Stores a notification, and sends the messages of its `eventConfigName`.
///
/// Errors: 400 for an event or a user that does not exist.
async fn notify(mut call: Call) -> Answer {
    let body = call.object().await?;
    stored(&call, body).await
}

/// Does the same for the user with a name.
async fn notify_named(mut call: Call) -> Answer {
    let (mut body, name) = (call.object().await?, call.param("name").to_owned());
    let wanted = name.clone();
    let read = move |view: &mut View<'_>| {
        view.first(&USERS.kind, Expr::Is("username".into(), StoreValue::Folded(wanted.clone())))
    };
    let user = call.db().read(Weight::Point, read).await?;
    let user = user.ok_or_else(|| FolioError::bad_request(format!("Can not find user {name}")))?;
    body.insert("recipientId".into(), user.id.into());
    stored(&call, body).await
}

async fn stored(call: &Call, body: Map<String, Value>) -> Answer {
    let writer = Writer::of(call);
    let write = move |txn: &mut Txn<'_>| -> Result<_, FolioError> {
        let writer = writer();
        let stored = insert(txn, &writer, &NOTIFICATIONS, body.clone())?;
        let event = text(&stored.body, "eventConfigName");
        if !event.is_empty() {
            let user = recipient(txn, text(&stored.body, "recipientId"))?;
            let language = text(&stored.body, "lang");
            let told = tell(txn, &writer, event, &user, language, &stored.body["context"])?;
            if told == Told::NoSuchEvent {
                return Err(FolioError::bad_request(format!(
                    "There is no active event config with name {event}"
                )));
            }
        }
        Ok(stored)
    };
    let stored = call.db().write(write).await?;
    let location = format!("/notify/{}", stored.id);
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &stored.body), LOCATION, &location))
}

/// Returns the record of a user to whom something is sent. Errors: 400.
fn recipient(view: &mut View<'_>, id: &str) -> Result<Value, FolioError> {
    let found = match parse_uuid(id) {
        Some(id) => view.get(&USERS.kind, &id)?,
        None => None,
    };
    let missing = || FolioError::bad_request(format!("User with id {id} does not exist"));
    Ok(found.ok_or_else(missing)?.json()?)
}

/// Replaces a notification. Errors: 422 for another id in the body.
async fn replace_notification(mut call: Call) -> Answer {
    let (id, body) = (call.uuid_param("id")?, call.object().await?);
    if let Some(other) = body.get("id").and_then(Value::as_str).filter(|it| !it.eq_ignore_ascii_case(&id)) {
        return Err(FolioError::unprocessable(Fault::new("Can not change the id").with("id", other)));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        collection::put(txn, &writer(), &NOTIFICATIONS, &id, body.clone(), Missing::Refuse, Lock::Ignored)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists the caller's notifications.
async fn own(call: Call) -> Answer {
    let (page, user) = (Page::of(&call)?, call.asker.user_id().unwrap_or_default());
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (filter, order) = expr_of(view, page.collections, &NOTIFICATIONS, &page.cql)?;
        let filter = filter.and(Expr::Is("recipientId".into(), user.as_str().into()));
        let total = view.count(&NOTIFICATIONS.kind, &filter)?;
        let query = Query { order, ..Query::filter(filter) }.window(page.offset, page.limit);
        let found = if page.limit == 0 { Vec::new() } else { view.find(&NOTIFICATIONS.kind, &query)? };
        let found = found.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"notifications": found, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Deletes the caller's notifications that were seen: `?olderthan=`. Errors: 404 if there are none.
async fn forget_own(call: Call) -> Answer {
    let user = call.asker.user_id().unwrap_or_default();
    let before_ms = match call.query.filled("olderthan") {
        Some(text) => {
            let bad = || FolioError::bad_request(format!("olderthan is {text:?}, expected a date"));
            Some(
                dates::parse_ms(text)
                    .or_else(|| dates::parse_ms(&format!("{text}T00:00:00.000Z")))
                    .ok_or_else(bad)?,
            )
        }
        None => None,
    };
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let seen =
            Expr::Is("recipientId".into(), user.as_str().into()).and(Expr::Is("seen".into(), true.into()));
        let (writer, mut n) = (writer(), 0);
        for record in txn.find(&NOTIFICATIONS.kind, &Query::filter(seen))? {
            let changed_ms = dates::parse_ms(text(&record.json()?, "metadata.updatedDate"));
            if before_ms.is_none_or(|it| changed_ms.is_some_and(|at| at < it)) {
                delete(txn, &writer, &NOTIFICATIONS, &record.id)?;
                n += 1;
            }
        }
        if n == 0 { Err(FolioError::not_found("Not found")) } else { Ok(()) }
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Renders a template for a user and sends it:
/// `{"recipientId","templateId","deliveryChannel","outputFormat","lang","context"}`.
async fn patron_notice(mut call: Call) -> Answer {
    let body = call.object().await?;
    for name in ["recipientId", "templateId", "deliveryChannel", "outputFormat", "lang"] {
        required_text(&body, name)?;
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let body = Value::Object(body.clone());
        let user = recipient(txn, text(&body, "recipientId"))?;
        let manner = (text(&body, "lang"), text(&body, "outputFormat"));
        send_template(txn, &writer(), &user, text(&body, "templateId"), manner, &body["context"])
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::OK))
}

/// Hands messages over to the mail worker: `{"notificationId","recipientUserId","messages":[…]}`.
///
/// Errors: 400 for a user that does not exist, or a channel other than mail.
async fn hand_over(mut call: Call) -> Answer {
    let body = call.object().await?;
    required_text(&body, "notificationId")?;
    required_text(&body, "recipientUserId")?;
    let body = Value::Object(body);
    let Some(messages) = body["messages"].as_array() else {
        return Err(FolioError::unprocessable(Fault::missing("messages")));
    };
    if let Some(other) = messages.iter().map(|it| text(it, "deliveryChannel")).find(|it| *it != "email") {
        return Err(FolioError::bad_request(format!("Delivery channel '{other}' is not supported")));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let (writer, user) = (writer(), recipient(txn, text(&body, "recipientUserId"))?);
        let to = text(&user, "personal.email");
        for message in body["messages"].as_array().into_iter().flatten().filter(|_| !to.is_empty()) {
            let letter = (text(message, "header"), text(message, "body"));
            mail::queue_as(txn, &writer, to, letter, text(message, "outputFormat"))?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
