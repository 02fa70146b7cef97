//! Small services of the site: feedback, workflows, usage reports.

use std::net::IpAddr;

use pinakes_store::{Kind, Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::blocks::validate::is_email;
use crate::error::{Answer, ApiError};
use crate::routes::Routes;
use crate::{collections, datasets, envelope, metrics, site_settings, stored};

/// Usage reports by month: body `{"yearMonth", "state", "server", "stateChangeTimestamp"}`.
pub(crate) static USAGE_REPORT: Kind = Kind::named("dataverse_usage_report");

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/sendfeedback", send_feedback)
        .post("/admin/feedback", send_feedback)
        .get("/admin/workflows", no_workflows)
        .get("/admin/workflows/default", no_workflows)
        .get("/admin/workflows/ip-whitelist", show_addresses)
        .put("/admin/workflows/ip-whitelist", set_addresses)
        .delete("/admin/workflows/ip-whitelist", delete_addresses)
        .post("/admin/makeDataCount/sendToHub", sent)
        .post("/admin/makeDataCount/{id}/addUsageMetricsFromSushiReport", sent)
        .get("/admin/makeDataCount/{id}/processingState", show_report)
        .post("/admin/makeDataCount/{id}/processingState", set_report)
        .delete("/admin/makeDataCount/{id}/processingState", delete_report)
        .get("/datasets/{id}/makeDataCount/{metric}", no_usage)
        .get("/datasets/{id}/makeDataCount/{metric}/{month}", no_usage)
}

/// A text without tags.
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

/// Takes a message to those responsible for a collection or dataset. No mail leaves the server: it is answered with what would be
/// sent.
async fn send_feedback(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let body: Map<String, Value> = serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad_request(format!("Invalid JSON; error message: {error}")))?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(subject), Some(message)) = (text("subject"), text("body")) else {
        return Err(ApiError::bad_request("Feedback needs a subject and a body."));
    };
    let from = match (&call.asker.user, text("fromEmail")) {
        (Some(user), None) => user.email.clone(),
        (_, given) => given.unwrap_or_default(),
    };
    if !is_email(&from) {
        return Err(ApiError::bad_request(format!("fromEmail {from:?} is not a valid email address.")));
    }
    limit_feedback(&call, &from).await?;
    let (target, identifier) = (body.get("targetId").and_then(Value::as_i64), text("identifier"));
    let find = move |view: &mut View<'_>| -> Result<Vec<String>, ApiError> {
        contacts(view, target, identifier.as_deref())
    };
    let to = call.db().read(Weight::Point, find).await?;
    let support = call.app.settings.system_email.clone();
    let sent = json!({
        "fromEmail": from,
        "toEmail": if to.is_empty() { support.clone() } else { to.join(",") },
        "ccEmail": support,
        "subject": plain(&subject),
        "body": plain(&message),
    });
    envelope::ok(json!([sent]))
}

/// Mail addresses of those responsible for an object; none for the installation.
fn contacts(
    view: &mut View<'_>,
    target: Option<i64>,
    identifier: Option<&str>,
) -> Result<Vec<String>, ApiError> {
    let missing = || ApiError::bad_request("Feedback target object not found.");
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
        let dataset = datasets::by_id(view, id)?.ok_or_else(missing)?;
        return of_dataset(view, &dataset);
    }
    let Some(identifier) = identifier else { return Ok(Vec::new()) };
    if let Ok(collection) = collections::find(view, identifier) {
        return Ok(collection.contacts);
    }
    let dataset = datasets::by_pid(view, identifier)?.ok_or_else(missing)?;
    of_dataset(view, &dataset)
}

/// Feedback of guests and users is limited per hour where the site says so. Errors: 429.
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
    Err(ApiError::new(
        http::StatusCode::TOO_MANY_REQUESTS,
        format!("Too many requests: the limit of {limit} per hour for {action} was reached."),
    ))
}

async fn no_workflows(_: Call) -> Answer {
    envelope::ok(Vec::<Value>::new())
}

const ADDRESSES: &str = ":WorkflowsAdminIpWhitelist";

async fn show_addresses(call: Call) -> Answer {
    let set = call.db().read(Weight::Point, |view| site_settings::get(view, ADDRESSES)).await?;
    envelope::message(set.unwrap_or_else(|| "127.0.0.1;::1".to_owned()))
}

async fn set_addresses(mut call: Call) -> Answer {
    let text = call.text().await?;
    let sound = !text.is_empty() && text.split(';').all(|it| it.trim().parse::<IpAddr>().is_ok());
    if !sound {
        return Err(ApiError::bad_request("Request contains illegal IP addresses."));
    }
    let value = text.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        txn.put(&site_settings::SETTING, ADDRESSES, &json!({"value": value}))?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message(format!("White list set to '{text}'"))
}

async fn delete_addresses(call: Call) -> Answer {
    let write = |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&site_settings::SETTING, ADDRESSES)?);
    call.db().write(write).await?;
    envelope::message("Restored whitelist to default")
}

/// Nothing is sent to, or taken from, Make Data Count.
async fn sent(_: Call) -> Answer {
    envelope::message("Data has been sent to Make Data Count")
}

async fn show_report(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let found =
        call.db().read(Weight::Point, move |view| stored::get::<Value>(view, &USAGE_REPORT, &id)).await?;
    let missing =
        || ApiError::not_found(format!("Could not find an existing process state for {}", call.param("id")));
    envelope::ok(found.ok_or_else(missing)?)
}

async fn set_report(call: Call) -> Answer {
    let state = call.query.get("state").unwrap_or_default().to_uppercase();
    if !["NEW", "DONE", "SKIP", "PROCESSING", "FAILED"].contains(&state.as_str()) {
        return Err(ApiError::bad_request(format!(
            "State {state} is not one of NEW, DONE, SKIP, PROCESSING, FAILED"
        )));
    }
    let server = call.query.filled("server").map(str::to_owned);
    let (id, now_ms) = (call.param("id").to_owned(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let before: Option<Value> = stored::get(txn, &USAGE_REPORT, &id)?;
        let kept = before.and_then(|it| it["server"].as_str().map(str::to_owned)).or_else(|| server.clone());
        let body = json!({
            "yearMonth": id, "state": state, "server": kept,
            "stateChangeTimestamp": crate::clock::precise(now_ms),
        });
        let body = Value::Object(envelope::object(body));
        txn.put(&USAGE_REPORT, &id, &body)?;
        Ok(body)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete_report(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let gone =
        call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&USAGE_REPORT, &id)?)).await?;
    match gone {
        Some(_) => envelope::message(format!("Processing State deleted for {}", call.param("id"))),
        None => Err(ApiError::not_found(format!("Processing State not found for {}", call.param("id")))),
    }
}

/// Usage of one dataset: no reports are taken in, so that there is none.
async fn no_usage(call: Call) -> Answer {
    let wanted = datasets::Wanted::of(&call)?;
    call.db().read(Weight::Point, move |view| wanted.find(view)).await?;
    match metrics::usage_metric(call.param("metric"))? {
        "citations" => envelope::ok(Vec::<Value>::new()),
        metric => envelope::ok(json!({ metric: 0 })),
    }
}
