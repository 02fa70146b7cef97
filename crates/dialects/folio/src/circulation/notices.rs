//! Notices to patrons: what happens to loans, requests and fees is told by mail, as the notice policy of the
//! circulation rules says (mod-circulation, mod-template-engine, mod-email).
//!
//! A notice is made in the transaction of what it tells: either the message itself, rendered, which the mail worker
//! sends ([`mail`]), or a row that says when to make it ([`scheduled`]). So none is lost, and none is made twice.
//! Check-outs and check-ins of one visit are told together ([`sessions`]).

pub(crate) mod context;
pub(crate) mod mail;
mod mustache;
pub(crate) mod scheduled;
pub(crate) mod sessions;

use http::StatusCode;
use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::{Value, json};

pub(crate) use mail::deliver;
pub(crate) use scheduled::send_due;
pub(crate) use sessions::end_old_sessions;

use crate::circulation::book::Book;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::policies::{NOTICE_POLICIES, setting};
use crate::circulation::records::{Records, text};
use crate::circulation::rules::PolicyKind;
use crate::circulation::terms;
use crate::configuration::records::TEMPLATES;
use crate::platform::app::{Call, json_answer};
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::limits::NOTICE_BYTES;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// The routes of notices and mail.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/template-request", Access::to("template-request.post"), render_template)
        .with(mail::routes)
        .with(sessions::routes)
}

/// What happened to a loan, in the words of notice policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoanEvent {
    CheckOut,
    CheckIn,
    Renewed,
    Recalled,
    DueDateChanged,
    AgedToLost,
}

impl LoanEvent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CheckOut => "Check out",
            Self::CheckIn => "Check in",
            Self::Renewed => "Renewed",
            Self::Recalled => "Item recalled",
            Self::DueDateChanged => "Manual due date change",
            Self::AgedToLost => "Aged to lost",
        }
    }

    /// Whether the loan is due at another time from now on.
    fn moves_due_date(self) -> bool {
        matches!(self, Self::CheckOut | Self::Renewed | Self::Recalled | Self::DueDateChanged)
    }
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEvent {
    Paged,
    Held,
    Recalled,
    Cancelled,
    Available,
    Expired,
    HoldExpired,
}

impl RequestEvent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paged => "Paging request",
            Self::Held => "Hold request",
            Self::Recalled => "Recall request",
            Self::Cancelled => "Request cancellation",
            Self::Available => "Available",
            Self::Expired => "Request expiration",
            Self::HoldExpired => "Hold expiration",
        }
    }

    /// The template that the site's setting has for requests for a title without an item.
    fn title_template(self) -> &'static str {
        match self {
            Self::Cancelled => "cancellationPatronNoticeTemplateId",
            Self::Expired | Self::HoldExpired => "expirationPatronNoticeTemplateId",
            _ => "confirmationPatronNoticeTemplateId",
        }
    }
}

/// What happened to a fee that circulation charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeeEvent {
    OverdueFineReturned,
    OverdueFineRenewed,
    AgedToLostFineCharged,
}

impl FeeEvent {
    fn name(self) -> &'static str {
        match self {
            Self::OverdueFineReturned => "Overdue fine returned",
            Self::OverdueFineRenewed => "Overdue fine renewed",
            Self::AgedToLostFineCharged => "Aged to lost - fine charged",
        }
    }
}

/// The notices of a policy about an event: of its list `loanNotices`, `requestNotices` or `feeFineNotices`.
fn notices_of(policy: &Value, list: &str, event: &str) -> Vec<Value> {
    let all = policy[list].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(|it| text(it, "sendOptions.sendWhen") == event).cloned().collect()
}

/// The notice policy that the rules choose; `None` when it is not there, tells nothing, or is switched off.
fn policy(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    group: &str,
) -> Result<Option<std::sync::Arc<Value>>, FolioError> {
    let chosen = terms::choose(view, book, group)?;
    let policy = known.get(view, &NOTICE_POLICIES, chosen.policies.id(PolicyKind::Notice))?;
    Ok(policy.filter(|it| it["active"].as_bool() != Some(false)))
}

/// The item and the borrower of a loan, when both are there.
fn parties(
    view: &mut View<'_>,
    known: &mut Records,
    loan: &Value,
) -> Result<Option<(Book, std::sync::Arc<Value>)>, StoreError> {
    let Some(user) = known.at(view, &USERS, loan, "userId")? else { return Ok(None) };
    let Some(item) = known.at(view, &ITEMS, loan, "itemId")? else { return Ok(None) };
    Ok(Some((Book::of(view, known, item)?, user)))
}

/// Tells what happened to a loan, and plans what is to be told of its due date.
pub(crate) fn loan(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    event: LoanEvent,
    loan: &Value,
) -> Result<(), FolioError> {
    let Some((book, user)) = parties(txn, known, loan)? else { return Ok(()) };
    let Some(policy) = policy(txn, known, &book, text(&user, "patronGroup"))? else { return Ok(()) };
    if event.moves_due_date() {
        scheduled::plan_due_date(txn, writer, loan, &policy, event)?;
    }
    for notice in notices_of(&policy, "loanNotices", event.name()) {
        let plan = scheduled::Plan::of_loan(event.name(), &notice, loan);
        if let Some(at) = plan.first_run(writer.now_ms) {
            plan.store(txn, writer, at)?;
        } else if matches!(event, LoanEvent::CheckOut | LoanEvent::CheckIn) {
            sessions::note(txn, writer, event, loan)?;
        } else {
            let context = context::of_loan(txn, known, &book, loan)?;
            send(txn, writer, &user, text(&notice, "templateId"), context)?;
        }
    }
    Ok(())
}

/// Tells what happened to a request.
pub(crate) fn request(
    txn: &mut Txn<'_>,
    writer: &Writer,
    event: RequestEvent,
    request: &Value,
) -> Result<(), FolioError> {
    let mut known = Records::default();
    let Some(user) = known.at(txn, &USERS, request, "requesterId")? else { return Ok(()) };
    let Some(item) = known.at(txn, &ITEMS, request, "itemId")? else {
        let template = setting(txn, "TLR")?.unwrap_or_default();
        let template = text(&template, event.title_template()).to_owned();
        if template.is_empty() {
            return Ok(());
        }
        let context = context::of_request(txn, &mut known, None, request)?;
        return send(txn, writer, &user, &template, context);
    };
    let book = Book::of(txn, &mut known, item)?;
    let Some(policy) = policy(txn, &mut known, &book, text(&user, "patronGroup"))? else { return Ok(()) };
    for notice in notices_of(&policy, "requestNotices", event.name()) {
        let plan = scheduled::Plan::of_request(event.name(), &notice, request);
        match plan.first_run(writer.now_ms) {
            Some(at) => plan.store(txn, writer, at)?,
            None => {
                let context = context::of_request(txn, &mut known, Some(&book), request)?;
                send(txn, writer, &user, text(&notice, "templateId"), context)?;
            }
        }
    }
    scheduled::plan_request_ends(txn, writer, request, &policy, event)
}

/// Tells of a fee that circulation charged.
pub(crate) fn fee(
    txn: &mut Txn<'_>,
    writer: &Writer,
    event: FeeEvent,
    loan: &Value,
    account: &Value,
    action: &Value,
) -> Result<(), FolioError> {
    let mut known = Records::default();
    let Some((book, user)) = parties(txn, &mut known, loan)? else { return Ok(()) };
    let Some(policy) = policy(txn, &mut known, &book, text(&user, "patronGroup"))? else { return Ok(()) };
    for notice in notices_of(&policy, "feeFineNotices", event.name()) {
        let plan = scheduled::Plan::of_fee(event.name(), &notice, loan, action);
        match plan.first_run(writer.now_ms) {
            Some(at) => plan.store(txn, writer, at)?,
            None => {
                let mut context = context::of_loan(txn, &mut known, &book, loan)?;
                context::add_fee(&mut context, account, action);
                send(txn, writer, &user, text(&notice, "templateId"), context)?;
            }
        }
    }
    Ok(())
}

/// Tells of what staff did about a fee, when they asked for it: by the template of the fee's type, or its owner's.
pub(crate) fn fee_action(
    txn: &mut Txn<'_>,
    writer: &Writer,
    action: &Value,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    use crate::circulation::fees::{ACCOUNTS, FEE_FINES, OWNERS};
    if action["notify"].as_bool() != Some(true) {
        return Ok(());
    }
    let mut known = Records::default();
    let Some(account) = known.at(txn, &ACCOUNTS, action, "accountId")? else { return Ok(()) };
    let Some(user) = known.at(txn, &USERS, &account, "userId")? else { return Ok(()) };
    let is_charge = text(action, "typeAction") == text(&account, "feeFineType");
    let (own, default) = match is_charge {
        true => ("chargeNoticeId", "defaultChargeNoticeId"),
        false => ("actionNoticeId", "defaultActionNoticeId"),
    };
    let kind = known.at(txn, &FEE_FINES, &account, "feeFineId")?.unwrap_or_default();
    let owner = known.at(txn, &OWNERS, &account, "ownerId")?.unwrap_or_default();
    let template = [text(&kind, own), text(&owner, default)].into_iter().find(|it| !it.is_empty());
    let Some(template) = template.map(str::to_owned) else { return Ok(()) };
    let mut context = json!({"user": context::person(txn, &mut known, &user)?});
    context["item"] = json!({
        "title": account["title"], "barcode": account["barcode"], "callNumber": account["callNumber"],
        "materialType": account["materialType"], "effectiveLocationSpecific": account["location"],
    });
    context::add_fee(&mut context, &account, action);
    send(txn, writer, &user, &template, context)
}

/// Makes the message of a template for a person. Without an address or a template nothing is made.
fn send(
    txn: &mut Txn<'_>,
    writer: &Writer,
    user: &Value,
    template: &str,
    context: Value,
) -> Result<(), FolioError> {
    let to = text(user, "personal.email");
    if to.is_empty() {
        return Ok(());
    }
    let Some(record) = txn.get(&TEMPLATES.kind, template)? else {
        tracing::warn!(template, "a notice policy names a template that is not there; nothing is sent");
        return Ok(());
    };
    let context = context::localised(txn, context)?;
    match rendered(&record.json()?, "en", &context) {
        Ok((header, body)) => mail::queue(txn, writer, to, &header, &body),
        Err(message) => {
            tracing::warn!(template, message, "a notice cannot be rendered; nothing is sent");
            Ok(())
        }
    }
}

/// Subject and body of a template in a language, or the first that it has.
fn rendered(template: &Value, language: &str, context: &Value) -> Result<(String, String), String> {
    let all = template["localizedTemplates"].as_object();
    let own = all.and_then(|it| it.get(language).or_else(|| it.values().next())).ok_or("it has no text")?;
    let render = |name: &str| {
        mustache::render(text(own, name), context, NOTICE_BYTES).map_err(|it| format!("{name}: {it}"))
    };
    Ok((render("header")?, render("body")?))
}

/// `POST /template-request`: a template's text for a context.
async fn render_template(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let id = text(&body, "templateId").to_owned();
    let now_ms = call.app.now_ms();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let Some(template) = view.get(&TEMPLATES.kind, &id)? else {
            return Err(FolioError::bad_request(format!("Template with id {id} does not exist")));
        };
        let template = template.json()?;
        let language = text(&body, "lang");
        let context = context::localised(view, body["context"].clone())?;
        let (header, text_body) = rendered(&template, language, &context)
            .map_err(|it| FolioError::unprocessable(Fault::new(it).with("templateId", &id)))?;
        let format = match text(&body, "outputFormat") {
            "" => "text/html",
            format => format,
        };
        Ok(json!({
            "templateId": id,
            "result": {"header": header, "body": text_body},
            "meta": {
                "size": text_body.len(), "dateCreate": crate::platform::dates::rmb(now_ms), "lang": language,
                "outputFormat": format,
            },
        }))
    };
    let rendered = call.db().read(pinakes_store::Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &rendered))
}

/// The records of a kind with a value at a path.
fn all_with(
    view: &mut View<'_>,
    kind: &'static pinakes_store::Kind,
    path: &str,
    value: &str,
) -> Result<Vec<Value>, StoreError> {
    view.find(kind, &Query::filter(Expr::Is(path.into(), value.into())))?
        .iter()
        .map(pinakes_store::Record::json)
        .collect()
}
