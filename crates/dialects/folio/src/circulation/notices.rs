//! Notices to patrons: events of loans, requests and fees are reported by mail, as the notice policy of the circulation
//! rules says (mod-circulation, mod-template-engine, mod-email).
//!
//! A notice is created in the transaction of its event: either as the rendered message, which the mail worker sends
//! ([`mail`]), or as a row that says when to create it ([`scheduled`]). So none is lost, and none is created twice.
//! Check-outs and check-ins of one visit are combined into one message ([`sessions`]).

pub(crate) mod context;
pub(crate) mod fee_actions;
pub(crate) mod mail;
pub(crate) mod messages;
mod mustache;
pub(crate) mod planned;
pub(crate) mod routes;
pub(crate) mod scheduled;
pub(crate) mod sending;
pub(crate) mod sessions;

use http::StatusCode;
use pinakes_store::{Txn, View};
use serde_json::{Value, json};

use self::planned::Plan;
use crate::circulation::book::Book;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::notices::sending::{
    FeeEvent, LoanEvent, RequestEvent, notices_of, parties, policy, rendered, send,
};
use crate::circulation::policies::setting;
use crate::circulation::records::{Records, text};
use crate::configuration::records::TEMPLATES;
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::values::json_answer;

pub(crate) use mail::deliver;
pub(crate) use scheduled::send_due;
pub(crate) use sessions::end_old_sessions;

/// Creates the notices for a loan event, and plans those for its due date.
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
        planned::plan_due_date(txn, writer, loan, &policy, event)?;
    }
    for notice in notices_of(&policy, "loanNotices", event.name()) {
        let plan = Plan::of_loan(event.name(), &notice, loan);
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

/// Creates the notices for a request event.
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
        let plan = Plan::of_request(event.name(), &notice, request);
        match plan.first_run(writer.now_ms) {
            Some(at) => plan.store(txn, writer, at)?,
            None => {
                let context = context::of_request(txn, &mut known, Some(&book), request)?;
                send(txn, writer, &user, text(&notice, "templateId"), context)?;
            }
        }
    }
    planned::plan_request_ends(txn, writer, request, &policy, event)
}

/// Creates the notices for a fee that circulation charged.
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
        let plan = Plan::of_fee(event.name(), &notice, loan, action);
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

/// `POST /template-request`: renders a template for a context.
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
        let format = match text(&body, "outputFormat") {
            "" => "text/html",
            format => format,
        };
        let has_format =
            template["outputFormats"].as_array().is_none_or(|it| it.iter().any(|it| it == format));
        if !has_format && !text(&body, "outputFormat").is_empty() {
            let message = format!("Requested template does not support '{format}' output format");
            return Err(FolioError::bad_request(message));
        }
        if !language.is_empty() && template["localizedTemplates"].get(language).is_none() {
            let message =
                format!("Requested template does not have localized template for language '{language}'");
            return Err(FolioError::bad_request(message));
        }
        let context = context::localised(view, body["context"].clone())?;
        let (header, text_body) = rendered(&template, language, &context)
            .map_err(|it| FolioError::unprocessable(Fault::new(it).with("templateId", &id)))?;
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
