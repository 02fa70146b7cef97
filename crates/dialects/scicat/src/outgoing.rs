//! Requests that this server sends to others: the URLs of jobs' actions, DataCite, schemas and logbooks. Each exchange
//! has one deadline, answers are limited in size, and no error repeats a secret of the request.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, Url};

/// Maximum number of bytes read of an error answer.
const REFUSAL_BYTES: usize = 64 << 10;
/// Maximum number of characters of an answer that an error repeats.
const SHOWN_CHARS: usize = 300;

/// A request to another server.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: String,
    /// Names and values as configured.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Reason why a request failed. Names only the server: paths and queries may hold secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutgoingError {
    /// The request cannot be sent as it is.
    #[error("the request to {server} failed: {reason}")]
    Request { server: String, reason: String },
    /// No answer came.
    #[error("{server} did not answer: {reason}")]
    NoAnswer { server: String, reason: String },
    /// The answer is a refusal.
    #[error("{server} answered {status}: {text}")]
    Refused { server: String, status: StatusCode, text: String },
}

impl OutgoingError {
    /// Says whether the same request may succeed later: there was no answer, or the server says that it cannot handle
    /// it now.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Request { .. } => false,
            Self::NoAnswer { .. } => true,
            Self::Refused { status, .. } => {
                let later =
                    [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
                status.is_server_error() || later.contains(status)
            }
        }
    }
}

impl Outgoing {
    /// Creates a plain GET request.
    pub(crate) fn get(url: &str) -> Self {
        Self { method: Method::GET, url: url.to_owned(), headers: Vec::new(), body: String::new() }
    }

    /// Sends the request; the answer must be a success.
    pub(crate) async fn send(self, timeout: Duration) -> Result<(), OutgoingError> {
        self.exchange(timeout).await.map(|_| ())
    }

    /// Sends the request and returns the answer, which must be a success.
    ///
    /// Errors: as for sending; an answer that breaks off, or has more than `most_bytes`.
    pub(crate) async fn fetch(self, timeout: Duration, most_bytes: usize) -> Result<Vec<u8>, OutgoingError> {
        let server = server_of(&self.url);
        let answer = self.exchange(timeout).await?;
        whole(answer, most_bytes).await.map_err(|reason| OutgoingError::NoAnswer { server, reason })
    }

    async fn exchange(self, timeout: Duration) -> Result<Response, OutgoingError> {
        let server = server_of(&self.url);
        let refused = |reason: String| OutgoingError::Request { server: server.clone(), reason };
        let url = address(&self.url).map_err(refused)?;
        let headers = headers(&self.headers).map_err(refused)?;
        let client = client().map_err(|error| refused(reason(&error).to_owned()))?;
        let request = client.request(self.method, url).headers(headers).body(self.body).timeout(timeout);
        let answer = request.send().await.map_err(|error| OutgoingError::NoAnswer {
            server: server.clone(),
            reason: reason(&error).to_owned(),
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = String::from_utf8_lossy(&beginning(answer).await).chars().take(SHOWN_CHARS).collect();
        Err(OutgoingError::Refused { server, status, text })
    }
}

fn client() -> reqwest::Result<Client> {
    pinakes_tls::provider();
    // Redirects are not followed, as their targets have not been configured.
    Client::builder().redirect(reqwest::redirect::Policy::none()).build()
}

fn headers(named: &[(String, String)]) -> Result<HeaderMap, String> {
    let header = |(name, value): &(String, String)| {
        let parsed = (HeaderName::try_from(name.as_str()).ok(), HeaderValue::try_from(value.as_str()).ok());
        match parsed {
            (Some(name), Some(value)) => Ok((name, value)),
            _ => Err(format!("the header {name:?} cannot be sent")),
        }
    };
    named.iter().map(header).collect()
}

/// Parses a URL. Errors: why no request is sent there.
fn address(url: &str) -> Result<Url, String> {
    if has_dot_segment(url) {
        return Err("its path holds a segment of dots, which would lead elsewhere".to_owned());
    }
    Url::parse(url).map_err(|_| "its URL is not valid".to_owned())
}

/// Reads a whole answer within its limit. Errors: it broke off, or is larger.
async fn whole(mut answer: Response, most_bytes: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|_| "its answer broke off".to_owned())? {
        if most_bytes < bytes.len() + piece.len() {
            return Err(format!("its answer has more than {most_bytes} bytes"));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reads an answer up to its limit; returns what arrived if it breaks off.
async fn beginning(mut answer: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = answer.chunk().await {
        bytes.extend_from_slice(&piece[..piece.len().min(REFUSAL_BYTES - bytes.len())]);
        if REFUSAL_BYTES <= bytes.len() {
            break;
        }
    }
    bytes
}

/// Describes the kind of failure, without the content of the request.
fn reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "the time for it is over"
    } else if error.is_connect() {
        "no connection"
    } else if error.is_builder() {
        "its URL cannot be asked"
    } else {
        "the exchange failed"
    }
}

/// Says whether the path contains `.` or `..`, also encoded, which URL parsers remove together with the segment before.
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    path.split(['/', '\\']).any(is_dots)
}

/// Returns the host and port of a URL, such as `example.org:8080`.
pub(crate) fn server_of(url: &str) -> String {
    let authority = url.parse::<http::Uri>().ok().and_then(|it| it.authority().cloned());
    authority.map_or_else(
        || "a server whose URL cannot be read".to_owned(),
        |it| it.as_str().rsplit('@').next().unwrap_or_default().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_without_secrets() {
        assert_eq!(server_of("https://user:word@example.org:81/a?token=1"), "example.org:81");
        for (url, expected) in [
            ("http://a/b/../c", true),
            ("http://a/b/%2E%2e", true),
            ("http://a/b/./c?x=..", true),
            ("http://a/b..c/d.?x=/../", false),
        ] {
            assert_eq!(has_dot_segment(url), expected, "{url}");
        }
        assert_eq!(server_of("nonsense with spaces"), "a server whose URL cannot be read");
    }
}
