//! Requests that this server sends to others: the URLs of jobs' actions, and DataCite. On threads of their own, one
//! deadline for the whole exchange, answers bounded, no secret of the request in any error.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Request, StatusCode};

/// Most of an answer that is read, in bytes.
const ANSWER_BYTES: u64 = 1 << 20;
/// Most of an answer that an error repeats, in characters.
const SHOWN_CHARS: usize = 300;

/// A request to another server.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: String,
    /// Names and values as the configuration has them.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Why a request came to nothing. Names the server alone: paths and queries may hold secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutgoingError {
    /// It cannot be sent as it is.
    #[error("the request to {server} cannot be made: {reason}")]
    Request { server: String, reason: String },
    /// No answer came.
    #[error("{server} did not answer: {reason}")]
    NoAnswer { server: String, reason: String },
    /// The answer is a refusal.
    #[error("{server} answered {status}: {text}")]
    Refused { server: String, status: StatusCode, text: String },
}

impl Outgoing {
    /// Sends it and waits for the end of the answer, which must be a success.
    pub(crate) async fn send(self, timeout: Duration) -> Result<(), OutgoingError> {
        let server = server_of(&self.url);
        let sent = tokio::task::spawn_blocking(move || self.send_blocking(timeout)).await;
        sent.unwrap_or_else(|error| Err(OutgoingError::NoAnswer { server, reason: error.to_string() }))
    }

    fn send_blocking(self, timeout: Duration) -> Result<(), OutgoingError> {
        let server = server_of(&self.url);
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let request = self.request(&server)?;
        let no_answer =
            |error: ureq::Error| OutgoingError::NoAnswer { server: server.clone(), reason: reason(&error) };
        let mut answer = agent.run(request).map_err(no_answer)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_string().unwrap_or_default();
        let text = text.chars().take(SHOWN_CHARS).collect();
        Err(OutgoingError::Refused { server, status, text })
    }

    fn request(self, server: &str) -> Result<Request<String>, OutgoingError> {
        let refused = |reason: String| OutgoingError::Request { server: server.to_owned(), reason };
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.url.parse().map_err(|_| refused("its URL is none".to_owned()))?;
        for (name, value) in self.headers {
            let (Ok(header), Ok(value)) =
                (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
            else {
                return Err(refused(format!("the header {name:?} cannot be sent")));
            };
            request.headers_mut().insert(header, value);
        }
        Ok(request)
    }
}

/// The kind of failure, without what the request held.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => "the time for it is over".to_owned(),
        ureq::Error::HostNotFound => "no such host".to_owned(),
        ureq::Error::ConnectionFailed => "no connection".to_owned(),
        ureq::Error::BadUri(_) => "its URL is none that can be asked".to_owned(),
        _ => "the exchange failed".to_owned(),
    }
}

/// `example.org:8080` of a URL.
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
        assert_eq!(server_of("nonsense with spaces"), "a server whose URL cannot be read");
    }
}
