//! Asking a provider: requests with a deadline, answers within a bound, errors without what a URL may hold.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use reqwest::{Client, Url};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most bytes of an answer.
const ANSWER_BYTES: usize = 64 << 20;
/// Most redirects that are followed.
const REDIRECTS: usize = 5;

/// Returns a header of `name: value`; none for a text that is none.
pub(super) fn header(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once(':')?;
    let name = HeaderName::try_from(name.trim()).ok()?;
    Some((name, HeaderValue::try_from(value.trim()).ok()?))
}

/// Gets what is at a URL with these parameters.
///
/// Errors: why there is nothing, in words.
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
