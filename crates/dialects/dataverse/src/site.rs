//! Feedback to the contacts of collections and datasets.

use pinakes_store::{View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::blocks::validate::is_email;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{collections, datasets, envelope, files, site_settings};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes.post("/sendfeedback", send_feedback).post("/admin/feedback", send_as_admin)
}

/// Returns a text without tags.
pub(crate) fn plain(text: &str) -> String {
    let (mut out, mut in_tag) = (String::with_capacity(text.len()), false);
    for letter in text.chars() {
        match letter {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if !in_tag => out.push(letter),
            _ => {}
        }
    }
    out
}

/// Accepts a message to the contacts of a collection or dataset. The server sends no mail: the answer contains what its
/// sender said. It does not tell the contacts' addresses, which the site may hide.
async fn send_feedback(mut call: Call) -> Answer {
    let mail = mail(&mut call).await?;
    envelope::ok(json!([{"fromEmail": mail.from, "subject": mail.subject, "body": mail.body}]))
}

/// Accepts such a message from an administrator, who sees the whole mail that would be sent.
async fn send_as_admin(mut call: Call) -> Answer {
    let mail = mail(&mut call).await?;
    let support = call.app.settings.system_email.clone();
    envelope::ok(json!([{
        "fromEmail": mail.from,
        "toEmail": if mail.to.is_empty() { support.clone() } else { mail.to.join(",") },
        "ccEmail": support,
        "subject": mail.subject,
        "body": mail.body,
    }]))
}

/// A message to contacts.
struct Mail {
    from: String,
    /// Addresses of the contacts; none for the installation.
    to: Vec<String>,
    subject: String,
    body: String,
}

/// Reads and checks a message. Errors: 400, 404 for an unknown object, 429 if there were too many.
async fn mail(call: &mut Call) -> Result<Mail, ApiError> {
    let bytes = call.bytes().await?;
    let body: Map<String, Value> = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("Invalid JSON; error message: {error}")))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(subject), Some(message)) = (text("subject"), text("body")) else {
        return Err(ApiError::bad_request("Body missing required fields."));
    };
    let message = plain(&message);
    if message.is_empty() {
        return Err(ApiError::bad_request("Body can not be empty."));
    }
    limit_length(call, &message).await?;
    let given = text("fromEmail").filter(|it| !it.trim().is_empty());
    let own = call.asker.user.as_ref().map(|it| it.email.clone());
    let from = given.or(own).ok_or_else(|| ApiError::bad_request("Missing fromEmail"))?;
    if !is_email(&from) {
        return Err(ApiError::bad_request(format!("Invalid fromEmail: {from}")));
    }
    limit_feedback(call, &from).await?;
    let (target, identifier) = (body.get("targetId").and_then(Value::as_i64), text("identifier"));
    let find = move |view: &mut View<'_>| -> Result<Vec<String>, ApiError> {
        contacts(view, target, identifier.as_deref())
    };
    let to = call.db().read(Weight::Point, find).await?;
    Ok(Mail { from, to, subject: plain(&subject), body: message })
}

/// Returns the contact addresses of an object; none for the installation.
fn contacts(
    view: &mut View<'_>,
    target: Option<i64>,
    identifier: Option<&str>,
) -> Result<Vec<String>, ApiError> {
    let missing = || ApiError::not_found("Feedback target object not found.");
    let of_dataset = |view: &mut View<'_>, dataset: &datasets::Dataset| -> Result<Vec<String>, ApiError> {
        let newest = dataset.draft.as_ref().map(|it| it.version);
        let Some(id) = newest.or(dataset.last.as_ref().map(|it| it.version)) else { return Ok(Vec::new()) };
        let blocks = Value::Object(datasets::version::of_dataset(view, dataset, id)?.metadata_blocks);
        let metadata = crate::blocks::fields::Metadata(&blocks);
        Ok(metadata
            .children("datasetContact", "datasetContactEmail")
            .into_iter()
            .map(str::to_owned)
            .collect())
    };
    if let Some(id) = target.filter(|it| *it != 0) {
        if let Some(collection) = collections::by_id(view, id)? {
            return Ok(collection.contacts);
        }
        if let Some(dataset) = datasets::by_id(view, id)? {
            return of_dataset(view, &dataset);
        }
        let file = files::Wanted::number(id).find(view).map_err(|_| missing())?;
        let found = files::Found::of(view, file)?;
        return of_dataset(view, &found.dataset);
    }
    let Some(identifier) = identifier else { return Ok(Vec::new()) };
    if let Ok(collection) = collections::find(view, identifier) {
        return Ok(collection.contacts);
    }
    let dataset = datasets::by_pid(view, identifier)?.ok_or_else(missing)?;
    of_dataset(view, &dataset)
}

/// Checks the length of a message. Errors: 400 if it exceeds the site's limit, `:ContactFeedbackMessageSizeLimit`
/// (characters; 0 for no limit).
async fn limit_length(call: &Call, message: &str) -> Result<(), ApiError> {
    let name = ":ContactFeedbackMessageSizeLimit";
    let set = call.db().read(Weight::Point, move |view| site_settings::get(view, name)).await?;
    let most: usize = set.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
    let n_letters = message.chars().count();
    if most != 0 && most < n_letters {
        return Err(ApiError::bad_request(format!("Body exceeds feedback length: {n_letters} > {most}}}.")));
    }
    Ok(())
}

/// Limits the feedback of guests and users per hour if the site has such a limit. Errors: 429.
async fn limit_feedback(call: &Call, from: &str) -> Result<(), ApiError> {
    let name = ":RateLimitingCapacityByTierAndAction";
    let set = call.db().read(Weight::Point, move |view| site_settings::get(view, name)).await?;
    let rules: Value = set.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or_default();
    let tier = call.asker.user.as_ref().map_or(0, |it| it.rate_limit_tier);
    if call.asker.is_superuser() {
        return Ok(());
    }
    let action = "CheckRateLimitForDatasetFeedbackCommand";
    let limit = rules.as_array().into_iter().flatten().find_map(|rule| {
        let is_it = rule["tier"].as_i64() == Some(tier)
            && rule["actions"].as_array().is_some_and(|all| all.iter().any(|it| it == action));
        rule["limitPerHour"].as_u64().filter(|_| is_it)
    });
    let Some(limit) = limit else { return Ok(()) };
    let who = format!("{} {} {from}", call.tenant(), call.asker.identifier());
    if call.app.feedback.takes(&who, limit, call.app.now_ms()) {
        return Ok(());
    }
    Err(ApiError::new(http::StatusCode::TOO_MANY_REQUESTS, "Too many requests to send feedback."))
}
