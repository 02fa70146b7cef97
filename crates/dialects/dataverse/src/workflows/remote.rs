//! Requests that workflows send to other programs.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method};

/// Timeout of one request: the publishing user waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of bytes of an answer that are reported.
const TOLD_BYTES: usize = 500;

/// The allowed methods.
pub(super) const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sending {
    /// URL.
    pub(super) url: String,
    /// One of [`METHODS`].
    pub(super) method: String,
    /// Media type of the body.
    pub(super) content_type: String,
    /// The body; empty for GET and DELETE.
    pub(super) body: String,
}

/// Sends a request.
///
/// Errors: a message why the request failed.
pub(super) async fn send(sending: &Sending) -> Result<(), String> {
    let method =
        Method::from_bytes(sending.method.as_bytes()).map_err(|_| "the method is none".to_owned())?;
    pinakes_tls::provider();
    let client = Client::builder()
        .redirect(Policy::none())
        .timeout(PATIENCE)
        .build()
        .map_err(|_| "no request can be made".to_owned())?;
    let has_body = method == Method::POST || method == Method::PUT;
    let mut request = client.request(method, &sending.url);
    if has_body {
        request = request.header("content-type", &sending.content_type).body(sending.body.clone());
    }
    let mut answer = request.send().await.map_err(|error| {
        let what = if error.is_timeout() {
            "the server did not answer in time"
        } else if error.is_connect() {
            "the server cannot be reached"
        } else {
            "the exchange with the server failed"
        };
        format!("Error communicating with server: {what}.")
    })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let first = answer.chunk().await.ok().flatten().unwrap_or_default();
    let told = String::from_utf8_lossy(&first[..first.len().min(TOLD_BYTES)]).into_owned();
    Err(format!("Error communicating with server. Server response: {told} ({}).", status.as_u16()))
}
