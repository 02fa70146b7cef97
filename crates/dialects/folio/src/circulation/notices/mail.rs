//! Messages, and the worker that sends them through the site's mail server (mod-email).
//!
//! A message is a record: it is written with the event it reports and sent afterwards; it keeps the number of attempts
//! and their outcome. A server that is killed after sending a message and before recording that sends it again, with
//! the same `Message-ID`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport as _};
use pinakes_http::answer;
use pinakes_store::{Column, Direction, Expr, Index, Kind, Query, Search, Txn, Type};
use serde_json::{Map, Value, json};

use crate::circulation::records::{object, text};
use crate::platform::app::Call;
use crate::platform::chore::Parts;
use crate::platform::collection::{
    self, Collection, Kinds, Lock, Missing, Page, Schema, Writer, answer_list,
};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::limits::{MAIL_ATTEMPTS, MAIL_BATCH, MAIL_KEPT_MS, MAIL_TIMEOUT_S};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::timers;

/// The route of the chore that sends.
pub(crate) const DELIVERY: &str = "/delayedTask/retryFailedEmails";

/// `/smtp-configuration`: the site's mail server, one record.
pub(crate) static SMTP: Collection = Collection {
    table: "smtp_configuration",
    permission: "email.smtp-configuration",
    schema: Schema {
        required: &["host", "port", "username", "password"],
        types: &[("host", Kinds::Text), ("port", Kinds::Integer), ("ssl", Kinds::Boolean)],
        ..Schema::OPEN
    },
    ..Collection::named("/smtp-configuration", "smtpConfigurations", "folio_smtp_configuration")
};

/// `/email`: messages, sent or to be sent.
pub(crate) static EMAILS: Collection = Collection {
    table: "email_statistics",
    permission: "email.message",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("status", Type::Text),
            Column::one("to", Type::Folded),
            Column::one("date", Type::Instant),
            Column::one("shouldRetry", Type::Boolean),
        ],
        indexes: &[Index::on(&["shouldRetry", "date"])],
        search: Search::Folded,
        ..Kind::named("folio_email")
    },
    schema: Schema { required: &["to"], types: &[("to", Kinds::Text)], ..Schema::OPEN },
    is_served: false,
    ..Collection::named("/email", "emailEntity", "folio_email")
};

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/email", Access::to("email.message.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            answer_list(&call, &EMAILS, page).await
        })
        .post("/email", Access::to("email.message.post"), take)
        .delete("/delayedTask/expiredMessages", Access::to("email.message.delete"), forget)
}

/// Deletes messages of a status, `?emailStatus=` (delivered ones by default), dated before `?expirationDate=`, by default
/// a day ago.
async fn forget(call: Call) -> Answer {
    let status = call.query.filled("emailStatus").unwrap_or("DELIVERED").to_owned();
    let before_ms = match call.query.filled("expirationDate") {
        Some(text) => {
            let day = || dates::parse_ms(&format!("{text}T00:00:00.000Z"));
            let bad = || FolioError::bad_request(format!("expirationDate is {text:?}, expected a date"));
            dates::parse_ms(text).or_else(day).ok_or_else(bad)?
        }
        None => call.app.now_ms() - MAIL_KEPT_MS,
    };
    let of_status = Expr::Is("status".into(), status.as_str().into());
    let old = Query::filter(of_status).sorted("date", Direction::Ascending);
    let writer = Writer::of(&call);
    loop {
        let (old, writer) = (old.clone().window(0, MAIL_BATCH), writer.clone());
        let write = move |txn: &mut Txn<'_>| -> Result<bool, FolioError> {
            let writer = writer();
            let found = txn.find(&EMAILS.kind, &old)?;
            let mut n_left = MAIL_BATCH;
            for record in found {
                if dates::parse_ms(text(&record.json()?, "date")).is_none_or(|it| it < before_ms) {
                    collection::delete(txn, &writer, &EMAILS, &record.id)?;
                    n_left -= 1;
                }
            }
            Ok(n_left == 0)
        };
        if !call.db().write(write).await? {
            return Ok(answer::empty(StatusCode::NO_CONTENT));
        }
    }
}

/// What a client's message must have.
const NEEDED: [&str; 4] = ["notificationId", "to", "header", "body"];

/// Queues a message sent by a client: `{"notificationId","to","header","body",…}`.
async fn take(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let absent = |name: &&&str| body.get(**name).is_none_or(Value::is_null);
    let faults: Vec<Fault> = NEEDED.iter().filter(absent).map(|it| Fault::missing(it)).collect();
    if !faults.is_empty() {
        return Err(FolioError::faults(StatusCode::UNPROCESSABLE_ENTITY, faults));
    }
    let to = text(&body, "to").to_owned();
    if to.parse::<Mailbox>().is_err() {
        let fault = Fault::new("to is no mail address").with("to", to);
        return Err(FolioError::unprocessable(fault));
    }
    let writer = Writer::of(&call);
    let told = format!("The message has been delivered to {to}");
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let (writer, letter) = (writer(), (text(&body, "header"), text(&body, "body")));
        let mut message = message(writer.now_ms, &to, letter, text(&body, "outputFormat"));
        for name in ["notificationId", "from", "deliveryVerification"] {
            message.extend(body.get(name).map(|it| (name.to_owned(), it.clone())));
        }
        store(txn, &writer, message)
    };
    call.db().write(write).await?;
    Ok(answer::bytes(StatusCode::OK, http::HeaderValue::from_static("text/plain"), told))
}

/// Stores a message to be sent, and wakes the worker.
pub(super) fn queue(
    txn: &mut Txn<'_>,
    writer: &Writer,
    to: &str,
    header: &str,
    body: &str,
) -> Result<(), FolioError> {
    queue_as(txn, writer, to, (header, body), "text/html")
}

/// Does the same for a subject and a text in a format: `text/html` or `text/plain`.
pub(super) fn queue_as(
    txn: &mut Txn<'_>,
    writer: &Writer,
    to: &str,
    letter: (&str, &str),
    format: &str,
) -> Result<(), FolioError> {
    store(txn, writer, message(writer.now_ms, to, letter, format))
}

fn message(now_ms: i64, to: &str, (header, body): (&str, &str), format: &str) -> Map<String, Value> {
    let format = if format.is_empty() { "text/html" } else { format };
    object(&json!({
        "to": to, "header": header, "body": body, "outputFormat": format, "deliveryChannel": "email",
        "date": dates::millis(now_ms), "status": "NEW", "shouldRetry": true, "attemptCount": 0,
    }))
}

fn store(txn: &mut Txn<'_>, writer: &Writer, message: Map<String, Value>) -> Result<(), FolioError> {
    collection::insert(txn, writer, &EMAILS, message)?;
    timers::wake(txn, DELIVERY)
}

/// Locks per tenant for deliveries: the timer and clients who request one take turns, otherwise a message would be sent
/// twice.
static DELIVERING: LazyLock<Mutex<HashMap<String, Arc<Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// Sends the waiting messages.
pub(crate) fn deliver(parts: &Parts) -> Result<(), FolioError> {
    let turn = {
        let mut all = DELIVERING.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(parts.tenant.name().to_owned()).or_default())
    };
    let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let read = |view: &mut pinakes_store::View<'_>| -> Result<(Option<Value>, Vec<Value>), FolioError> {
        let smtp = view.first(&SMTP.kind, Expr::All)?.map(|it| it.json()).transpose()?;
        let waiting = Query::filter(Expr::Is("shouldRetry".into(), true.into()));
        let waiting = Query { limit: Some(MAIL_BATCH), ..waiting.sorted("date", Direction::Ascending) };
        let found = view.find(&EMAILS.kind, &waiting)?;
        Ok((smtp, found.iter().map(|it| it.json()).collect::<Result<Vec<Value>, _>>()?))
    };
    loop {
        let (smtp, waiting) = parts.tenant.read_blocking(read)?;
        // Without a mail server, messages wait until one is configured.
        let Some(smtp) = smtp.filter(|_| !waiting.is_empty()) else { return Ok(()) };
        let n = waiting.len() as u64;
        let transport = transport(&smtp);
        let mut failed = 0;
        for message in waiting {
            let sent = match &transport {
                Ok(transport) => send(transport, &smtp, &message),
                Err(error) => Err(error.clone()),
            };
            failed += u64::from(sent.is_err());
            note(parts, &message, sent)?;
        }
        if n < MAIL_BATCH || failed == n {
            return Ok(());
        }
    }
}

fn transport(smtp: &Value) -> Result<SmtpTransport, String> {
    let host = text(smtp, "host");
    let port = smtp["port"].as_u64().and_then(|it| u16::try_from(it).ok()).ok_or("the port is no port")?;
    let parameters = || TlsParameters::new(host.to_owned()).map_err(|error| format!("TLS: {error}"));
    let tls = match (smtp["ssl"].as_bool(), text(smtp, "startTlsOptions")) {
        (Some(true), _) => Tls::Wrapper(parameters()?),
        (_, "REQUIRED") => Tls::Required(parameters()?),
        (_, "OPTIONAL") => Tls::Opportunistic(parameters()?),
        _ => Tls::None,
    };
    let transport = SmtpTransport::builder_dangerous(host)
        .port(port)
        .tls(tls)
        .timeout(Some(Duration::from_secs(MAIL_TIMEOUT_S)));
    let (name, password) = (text(smtp, "username"), text(smtp, "password"));
    Ok(match text(smtp, "loginOption") {
        "DISABLED" | "NONE" => transport,
        _ if name.is_empty() => transport,
        _ => transport.credentials(Credentials::new(name.to_owned(), password.to_owned())),
    }
    .build())
}

fn send(transport: &SmtpTransport, smtp: &Value, message: &Value) -> Result<(), String> {
    let from = [text(message, "from"), text(smtp, "from")].into_iter().find(|it| !it.is_empty());
    let from = from.unwrap_or("noreply@folio.org");
    let address = |text: &str| text.parse::<Mailbox>().map_err(|error| format!("address {text}: {error}"));
    let built = Message::builder()
        .from(address(from)?)
        .to(address(text(message, "to"))?)
        .subject(text(message, "header").replace(['\r', '\n'], " "))
        .message_id(Some(format!("<{}@pinakes>", text(message, "id"))))
        .header(match text(message, "outputFormat") {
            "text/plain" => ContentType::TEXT_PLAIN,
            _ => ContentType::TEXT_HTML,
        })
        .body(text(message, "body").to_owned())
        .map_err(|error| error.to_string())?;
    transport.send(&built).map(drop).map_err(|error| error.to_string())
}

/// Records the outcome of an attempt.
fn note(parts: &Parts, message: &Value, sent: Result<(), String>) -> Result<(), FolioError> {
    let attempts = message["attemptCount"].as_u64().unwrap_or(0) + 1;
    let (status, told, retries) = match sent {
        Ok(()) => ("DELIVERED", format!("The message has been delivered to {}", text(message, "to")), false),
        Err(error) => {
            tracing::warn!(error, id = text(message, "id"), tenant = parts.tenant.name(), "mail is not sent");
            (
                "FAILURE",
                format!("Error in the 'mod-email' module, the module didn't send email | message: {error}"),
                attempts < MAIL_ATTEMPTS,
            )
        }
    };
    let mut body: Map<String, Value> = object(message);
    body.insert("status".into(), status.into());
    body.insert("message".into(), told.into());
    body.insert("attemptCount".into(), attempts.into());
    body.insert("shouldRetry".into(), retries.into());
    let id = text(message, "id").to_owned();
    let (now_ms, entropy, collections) = (parts.now_ms, parts.entropy.clone(), parts.collections);
    parts.tenant.write_blocking(move |txn: &mut Txn<'_>| {
        let writer = Writer::new(now_ms, None, entropy.clone(), collections);
        collection::put(txn, &writer, &EMAILS, &id, body.clone(), Missing::Refuse, Lock::Ignored).map(drop)
    })
}
