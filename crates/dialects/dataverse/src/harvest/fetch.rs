//! Requests to a provider: with a timeout, a size limit for answers, and errors that leave out sensitive parts of URLs.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::{Client, Url};

/// Timeout of one request.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum size of an answer, in bytes.
const ANSWER_BYTES: usize = 64 << 20;
/// Maximum number of redirects that are followed.
const REDIRECTS: usize = 5;

/// Parses a header `name: value`; `None` if it is invalid.
pub(super) fn header(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once(':')?;
    let name = HeaderName::try_from(name.trim()).ok()?;
    Some((name, HeaderValue::try_from(value.trim()).ok()?))
}

/// Requests a URL with these parameters.
///
/// Errors: a message why the request failed.
pub(super) async fn get(
    base: &str,
    parameters: &[(&str, &str)],
    custom: Option<&str>,
) -> Result<Vec<u8>, String> {
    let mut url = Url::parse(base).map_err(|_| "the URL of the provider is not valid".to_owned())?;
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
    pinakes_tls::provider();
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS))
        .timeout(PATIENCE)
        .build()
        .map_err(|_| "no request can be made".to_owned())?;
    let mut request = client.get(url);
    if let Some((name, value)) = custom.and_then(header) {
        request = request.header(name, value);
    }
    let mut answer = request.send().await.map_err(|error| reason(&error))?;
    if !answer.status().is_success() {
        return Err(format!("the provider answered {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| reason(&error))? {
        if ANSWER_BYTES < bytes.len() + piece.len() {
            return Err(format!("the provider's answer has more than {ANSWER_BYTES} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn reason(error: &reqwest::Error) -> String {
    let what = if error.is_timeout() {
        "the provider did not answer in time"
    } else if error.is_connect() {
        "the provider cannot be reached"
    } else {
        "the exchange with the provider failed"
    };
    what.to_owned()
}
