//! The circulation desk: check out, check in, renew. A barcode scanner types a barcode and Enter, which submits the
//! form; neither script nor mouse is needed.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::Fields;
use crate::record::{Link, items, text};

/// Maximum number of service points to choose from.
const POINTS_MAX: usize = 200;

/// The outcome of a form.
#[derive(Serialize)]
struct Outcome {
    is_done: bool,
    /// Key of the attempted action.
    action_key: &'static str,
    /// Name of the item.
    item: String,
    due: String,
    /// Reasons of an error.
    reasons: Vec<String>,
}

pub(crate) async fn form(State(site): State<Site>, visitor: Visitor, fields: Fields) -> Result<Response> {
    let page = desk(&site, &visitor, &fields, None).await;
    site.shown(&visitor, page)
}

pub(crate) async fn act(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let page = acted(&site, &visitor, body).await;
    site.shown(&visitor, page)
}

async fn acted(site: &Site, visitor: &Visitor, body: Body) -> Result<Response> {
    let fields = site.form(visitor, body).await?;
    visitor.proven(&fields)?;
    let outcome = done(site, visitor, &fields).await?;
    desk(site, visitor, &fields, Some(outcome)).await
}

async fn desk(site: &Site, visitor: &Visitor, fields: &Fields, outcome: Option<Outcome>) -> Result<Response> {
    if visitor.caller.is_anonymous() {
        return Err(SiteError::SignIn);
    }
    let said = site.read(visitor, "folio", &format!("/service-points?limit={POINTS_MAX}")).await;
    let said = said.map_err(|error| match error {
        SiteError::NotFound | SiteError::SignIn => SiteError::Forbidden,
        other => other,
    })?;
    let points = items(&said, "servicepoints").iter();
    let points: Vec<Link> =
        points.map(|it| Link { text: text(it, "name"), href: Some(text(it, "id")) }).collect();
    let action = match fields.text("action") {
        "in" => "in",
        "renew" => "renew",
        _ => "out",
    };
    // After a success the next item of the same patron can be scanned.
    let is_done = outcome.as_ref().is_some_and(|it| it.is_done);
    let item = if is_done { "" } else { fields.text("item") };
    let focus = if action == "in" || !fields.text("patron").is_empty() { "item" } else { "patron" };
    let page = json!({
        "title_key": "desk", "points": points, "point": fields.text("point"), "patron": fields.text("patron"),
        "item": item, "action": action, "outcome": outcome, "focus": focus,
    });
    site.page(visitor, StatusCode::OK, "desk.html", page)
}

async fn done(site: &Site, visitor: &Visitor, fields: &Fields) -> Result<Outcome> {
    let (item, patron, point) = (fields.text("item"), fields.text("patron"), fields.text("point"));
    let (action_key, path, wanted) = match fields.text("action") {
        "in" => {
            let now = now_text(site);
            let wanted = json!({"itemBarcode": item, "servicePointId": point, "checkInDate": now});
            ("check_in", "/circulation/check-in-by-barcode", wanted)
        }
        "renew" => {
            let wanted = json!({"itemBarcode": item, "userBarcode": patron, "servicePointId": point});
            ("renew", "/circulation/renew-by-barcode", wanted)
        }
        _ => {
            let wanted = json!({"itemBarcode": item, "userBarcode": patron, "servicePointId": point});
            ("check_out", "/circulation/check-out-by-barcode", wanted)
        }
    };
    let said = site.ask(visitor, "folio", Method::POST, path, Some(&wanted)).await?;
    let answer: Value = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
    if matches!(said.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(SiteError::Forbidden);
    }
    if said.status.is_server_error() {
        return Err(SiteError::Failed(said.status));
    }
    let is_done = said.status.is_success();
    let loan = answer.get("loan").unwrap_or(&answer);
    let title = [text(loan, "item/title"), text(&answer, "item/title")].into_iter().find(|it| !it.is_empty());
    let due = if action_key == "check_in" { String::new() } else { text(loan, "dueDate") };
    let mut reasons: Vec<String> = items(&answer, "errors").iter().map(|it| text(it, "message")).collect();
    if !is_done && reasons.is_empty() {
        reasons.push(String::from_utf8_lossy(&said.body).chars().take(300).collect());
    }
    let item = title.unwrap_or_else(|| item.to_owned());
    let due = due.get(..16).unwrap_or_default().replace('T', " ");
    Ok(Outcome { is_done, action_key, item, due, reasons })
}

/// Returns the current time in FOLIO's format.
fn now_text(site: &Site) -> String {
    let now = time::OffsetDateTime::from_unix_timestamp(site.context.clock().now_ms().div_euclid(1000));
    let now = now.unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    now.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
}
