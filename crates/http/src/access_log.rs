//! One line a request, through `tracing` with the target `access`. Secrets in queries are blotted out.

use std::borrow::Cow;
use std::time::Duration;

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::stages::RequestScope;

/// What an access log line is written at: the key `access_log` of `pinakes.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// Not at all.
    Off,
    /// At level debug.
    #[default]
    Debug,
    /// At level info.
    Info,
}

/// Query parameters whose values are secrets, lower case.
const SECRETS: [&str; 9] =
    ["access_token", "refresh_token", "id_token", "token", "jwt", "key", "api_key", "apikey", "password"];

impl AccessLog {
    /// Whether lines are wanted, so that nothing is prepared for the bin.
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::Off => false,
            Self::Debug => tracing::enabled!(target: "access", tracing::Level::DEBUG),
            Self::Info => tracing::enabled!(target: "access", tracing::Level::INFO),
        }
    }

    pub(crate) fn write(self, line: &Line<'_>) {
        let us = u64::try_from(line.took.as_micros()).unwrap_or(u64::MAX);
        macro_rules! event {
            ($level:expr) => {
                tracing::event!(
                    target: "access",
                    $level,
                    request_id = line.request_id,
                    peer = line.scope.peer().map(tracing::field::display),
                    method = %line.method,
                    path = line.path,
                    status = line.status.as_u16(),
                    bytes = line.bytes,
                    us,
                    dialect = line.dialect,
                    route = line.scope.route(),
                    tenant = line.scope.tenant(),
                    user = line.scope.username(),
                    "request answered"
                )
            };
        }
        match self {
            Self::Off => {}
            Self::Debug => event!(tracing::Level::DEBUG),
            Self::Info => event!(tracing::Level::INFO),
        }
    }
}

/// What a line says.
pub(crate) struct Line<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) method: &'a Method,
    /// From [`redacted`].
    pub(crate) path: &'a str,
    pub(crate) status: StatusCode,
    /// Length of the body if it is known when the answer begins.
    pub(crate) bytes: Option<u64>,
    pub(crate) took: Duration,
    pub(crate) dialect: &'a str,
    pub(crate) scope: &'a RequestScope,
}

/// Path and query with the values of secret parameters replaced by `***`.
pub(crate) fn redacted(path_and_query: &str) -> Cow<'_, str> {
    let Some((path, query)) = path_and_query.split_once('?') else { return Cow::Borrowed(path_and_query) };
    if !query.split('&').any(is_secret) {
        return Cow::Borrowed(path_and_query);
    }
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(pair) => format!("{name}=***"),
        _ => pair.to_owned(),
    });
    Cow::Owned(format!("{path}?{}", pairs.collect::<Vec<_>>().join("&")))
}

fn is_secret(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or("");
    let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    SECRETS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blotted_out() {
        for (given, expected) in [
            ("/a", "/a"),
            ("/a?b=c", "/a?b=c"),
            ("/a?access_token=eyJ.x.y&b=c", "/a?access_token=***&b=c"),
            ("/a?b=c&Access%5FToken=eyJ", "/a?b=c&Access%5FToken=***"),
            ("/a?key=1&key=2", "/a?key=***&key=***"),
        ] {
            assert_eq!(redacted(given), expected);
        }
    }
}
