//! Tokens of the accounts that scenarios use.

use http::header::HeaderValue;

use crate::error::BenchError;

/// Returns a header value with the token of the environment variable that `--token-env` names, behind `prefix`.
///
/// Errors: there is no token in it; no message contains the token itself.
pub(super) fn token_header(variable: &str, prefix: &str) -> Result<HeaderValue, BenchError> {
    let wrong = |reason: &str| BenchError::BadOption {
        option: "--token-env",
        value: variable.to_owned(),
        reason: reason.to_owned(),
    };
    let token = std::env::var(variable).map_err(|_| wrong("this environment variable is not set"))?;
    if token.trim().is_empty() {
        // What is measured would be the answers to somebody who is not signed in.
        return Err(wrong("this environment variable is empty"));
    }
    let mut value =
        HeaderValue::try_from(format!("{prefix}{token}")).map_err(|_| wrong("it holds no token"))?;
    value.set_sensitive(true);
    Ok(value)
}
