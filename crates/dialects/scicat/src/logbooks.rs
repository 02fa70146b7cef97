//! Logbooks of proposals, which are kept by a `SciChat` service: this server signs in there and passes on what the
//! caller may read. Without a service (`logbook_enabled`) the answers are empty, as the original's are.

pub(crate) mod session;

use std::cmp::Reverse;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pinakes_http::answer;
use pinakes_store::Weight;
use serde_json::{Map, Value, json};

use crate::app::{Asker, Path, QueryText, Scicat, json_parameter};
use crate::datasets::read;
use crate::error::{Answer, ScicatError};
use crate::kinds::{DATASET, PROPOSAL};
use crate::outgoing::{Outgoing, OutgoingError};
use crate::resource::Resource;
use crate::{listing, proposals};

/// Maximum size of the service's answer, in bytes.
const ANSWER_BYTES: usize = 64 << 20;

/// The routes of logbooks.
pub(crate) static RESOURCE: Resource = Resource::of_routes(routes);

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/api/v3/logbooks", get(list))
        .route("/api/v3/logbooks/{name}", get(by_name))
        .route("/api/v3/datasets/{pid}/logbook", get(of_dataset))
        .route("/api/v4/datasets/{pid}/logbook", get(of_dataset))
}

/// `GET /logbooks`: sorted by the newest message, newest first; logbooks without messages last.
async fn list(app: State<Scicat>, asker: Asker) -> Answer {
    asker.forbid_anonymous()?;
    if !app.settings.logbook_enabled {
        return Ok(answer::json(StatusCode::OK, &json!([])));
    }
    let Value::Array(all) = ask(&app, "/Logbooks").await? else {
        return Err(unusable("a list of logbooks was expected"));
    };
    // A logbook without a name cannot be matched to a proposal, so nobody sees it.
    let named = all.into_iter().filter_map(|it| Some((name_of(&it)?.to_owned(), it)));
    let (names, logbooks): (Vec<String>, Vec<Value>) = named.unzip();
    let may_read = may_read(&app, &asker, names).await?;
    let readable = logbooks.into_iter().zip(may_read).filter(|it| it.1);
    let mut shown: Vec<Value> = readable.map(|it| it.0).collect();
    shown.sort_by_key(|it| Reverse(messages(it).last().map(sent_ms)));
    Ok(answer::json(StatusCode::OK, &Value::Array(shown)))
}

/// `GET /logbooks/{name}?filters=`: the logbook of a proposal.
async fn by_name(app: State<Scicat>, asker: Asker, Path(name): Path<String>, query: QueryText) -> Answer {
    asker.forbid_anonymous()?;
    if !app.settings.logbook_enabled {
        return Ok(answer::empty(StatusCode::OK));
    }
    if may_read(&app, &asker, vec![name.clone()]).await? != [true] {
        return Err(ScicatError::forbidden("Unauthorized to this logbook"));
    }
    show(&app, &name, &query).await
}

/// `GET /datasets/{pid}/logbook?filters=`: the logbook of the first proposal that the dataset names, for callers who
/// may read the dataset through their groups, or who may read the proposal. Publishing a dataset does not open its
/// logbook.
async fn of_dataset(app: State<Scicat>, asker: Asker, Path(pid): Path<String>, query: QueryText) -> Answer {
    let dataset = read::readable(&app, &asker, &pid).await?.json()?;
    let proposal = dataset.pointer("/proposalIds/0").and_then(Value::as_str);
    let Some(proposal) = proposal.filter(|_| app.settings.logbook_enabled) else {
        return Ok(answer::empty(StatusCode::OK));
    };
    asker.forbid_anonymous()?;
    let class = listing::with_class(&asker, &DATASET, &pid).await?.map(|it| it.1);
    let is_member = class.is_some_and(|it| asker.rights.is_member(&it));
    if !is_member && may_read(&app, &asker, vec![proposal.to_owned()]).await? != [true] {
        return Err(ScicatError::forbidden("Unauthorized to this logbook"));
    }
    show(&app, proposal, &query).await
}

/// Returns for each of these names whether a signed-in caller may read the logbook: they must be allowed to read the
/// proposal of that name. A logbook without a proposal here is readable for everyone who is signed in, as with the
/// original.
async fn may_read(app: &Scicat, asker: &Asker, names: Vec<String>) -> Result<Vec<bool>, ScicatError> {
    let rights = proposals::rights(app, asker);
    let weight = if names.len() == 1 { Weight::Point } else { Weight::Scan };
    let read = asker.db.read(weight, move |view| {
        let may_read = |name: &String| {
            let Some(proposal) = view.get(&PROPOSAL, name)? else { return Ok(true) };
            Ok(rights.may_read(&*view.class(&PROPOSAL, proposal.class)?))
        };
        names.iter().map(may_read).collect()
    });
    read.await
}

/// Answers with a logbook and the messages that `filters` asks for.
async fn show(app: &Scicat, name: &str, query: &QueryText) -> Answer<Response> {
    let filters = query.get("filters").filter(|it| !it.is_empty()).unwrap_or("{}");
    let Value::Object(parsed) = json_parameter("filters", filters)? else {
        return Err(ScicatError::bad_request("filters must be a JSON object"));
    };
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let path = format!("/Logbooks/{}?filter={}", encoded(name), encoded(filters));
    let mut logbook = ask(app, &path).await?;
    // The service may match names less strictly than this server: the logbook in its answer must be the one that was
    // checked.
    if name_of(&logbook) != Some(name) {
        return Err(no_such_logbook());
    }
    if let Some(Value::Array(messages)) = logbook.get_mut("messages") {
        arrange(messages, &parsed);
    }
    Ok(answer::json(StatusCode::OK, &logbook))
}

/// Sorts messages by `sortField` (`timestamp:desc`, `sender:asc`, `entry:asc`) and keeps the page of `skip` and `limit`.
fn arrange(messages: &mut Vec<Value>, filters: &Map<String, Value>) {
    let sort_field = filters.get("sortField").and_then(Value::as_str).unwrap_or_default();
    if let Some((field, direction)) = sort_field.split_once(':') {
        let text = |message: &Value, pointer: &str| {
            message.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_lowercase()
        };
        match field {
            "timestamp" => messages.sort_by_key(sent_ms),
            "sender" => messages.sort_by_cached_key(|it| text(it, "/sender").replace('@', "")),
            "entry" => messages.sort_by_cached_key(|it| text(it, "/content/body")),
            _ => {}
        }
        if direction != "asc" {
            messages.reverse();
        }
    }
    let number = |name| filters.get(name).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    if let (Some(skip), Some(limit)) = (number("skip"), number("limit")) {
        messages.drain(..skip.min(messages.len()));
        messages.truncate(limit);
    }
}

fn name_of(logbook: &Value) -> Option<&str> {
    logbook.get("name").and_then(Value::as_str)
}

fn messages(logbook: &Value) -> &[Value] {
    logbook.get("messages").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns when a message was sent, in milliseconds, as recorded by Matrix.
fn sent_ms(message: &Value) -> i64 {
    message.get("origin_server_ts").and_then(Value::as_i64).unwrap_or(0)
}

/// Asks the service for a path. If the token is no longer accepted, signs in again once.
async fn ask(app: &Scicat, path: &str) -> Result<Value, ScicatError> {
    let known = app.logbook_session.token();
    let is_known = known.is_some();
    let token = match known {
        Some(token) => token,
        None => sign_in(app).await?,
    };
    let answered = match get_with(app, path, &token).await {
        Err(OutgoingError::Refused { status: StatusCode::UNAUTHORIZED, .. }) if is_known => {
            let token = sign_in(app).await?;
            get_with(app, path, &token).await
        }
        answered => answered,
    };
    let bytes = answered.map_err(|error| match error {
        OutgoingError::Refused { status: StatusCode::NOT_FOUND, .. } => no_such_logbook(),
        error => unusable(&error.to_string()),
    })?;
    serde_json::from_slice(&bytes).map_err(|error| unusable(&format!("its answer is no JSON: {error}")))
}

async fn get_with(app: &Scicat, path: &str, token: &str) -> Result<Vec<u8>, OutgoingError> {
    let headers = vec![("Authorization".to_owned(), format!("Bearer {token}"))];
    let request = Outgoing { method: Method::GET, url: address(app, path), headers, body: String::new() };
    request.fetch(timeout(app), ANSWER_BYTES).await
}

/// Signs in at the service and stores the token, which it calls `token` or, in its older form, `id`.
async fn sign_in(app: &Scicat) -> Result<String, ScicatError> {
    let settings = &app.settings;
    let credentials =
        json!({"username": settings.logbook_username, "password": settings.logbook_password.reveal()});
    let request = Outgoing {
        method: Method::POST,
        url: address(app, "/Users/login"),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: credentials.to_string(),
    };
    let bytes = request.fetch(timeout(app), ANSWER_BYTES).await.map_err(|error| match error {
        // The service's error for a failed login may repeat the credentials.
        OutgoingError::Refused { status, .. } => unusable(&format!("it refused the login with {status}")),
        error => unusable(&error.to_string()),
    })?;
    let answer: Value =
        serde_json::from_slice(&bytes).map_err(|_| unusable("what it answers to the login is no JSON"))?;
    let token = ["token", "id"].iter().find_map(|name| answer.get(*name).and_then(Value::as_str));
    let token = token.ok_or_else(|| unusable("its login gave neither token nor id"))?;
    app.logbook_session.keep(token.to_owned());
    Ok(token.to_owned())
}

fn address(app: &Scicat, path: &str) -> String {
    format!("{}{path}", app.settings.logbook_base_url.trim_end_matches('/'))
}

fn timeout(app: &Scicat) -> Duration {
    Duration::from_millis(app.settings.outgoing_timeout_ms)
}

fn no_such_logbook() -> ScicatError {
    ScicatError::not_found("the logbook service has no such logbook")
}

/// Creates the 502 for a service that cannot be used.
fn unusable(reason: &str) -> ScicatError {
    ScicatError::with(StatusCode::BAD_GATEWAY, format!("the logbook service cannot be asked: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sorted_then_paged() {
        let message = |at: i64, sender: &str, body: &str| json!({"origin_server_ts": at, "sender": sender, "content": {"body": body}});
        let all = [message(2, "@Bo:x", "c"), message(1, "@ada:x", "b"), message(3, "@cy:x", "A")];
        for (filters, expected) in [
            (json!({}), vec![2, 1, 3]),
            (json!({"sortField": "timestamp:asc"}), vec![1, 2, 3]),
            (json!({"sortField": "timestamp:desc", "skip": 1, "limit": 1}), vec![2]),
            (json!({"sortField": "sender:asc"}), vec![1, 2, 3]),
            (json!({"sortField": "entry:asc"}), vec![3, 1, 2]),
            (json!({"skip": 5, "limit": 10}), vec![]),
            (json!({"skip": -1, "limit": 1}), vec![2, 1, 3]),
        ] {
            let mut messages = all.to_vec();
            arrange(&mut messages, filters.as_object().unwrap_or(&Map::new()));
            assert_eq!(messages.iter().map(sent_ms).collect::<Vec<_>>(), expected, "{filters}");
        }
    }
}
