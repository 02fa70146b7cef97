//! One log line per request, through `tracing` with the target `access`. Secrets in paths and queries are
//! redacted.

use std::borrow::Cow;
use std::time::Duration;

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::secrets::is_secret_name;
use crate::stages::RequestScope;

/// The level of access log lines: the key `access_log` of `pinakes.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// No lines.
    Off,
    /// At level debug.
    #[default]
    Debug,
    /// At level info.
    Info,
}

/// Names, lower case, whose values are secrets in a query, although they are not everywhere: see [`is_secret_name`].
const SECRETS_OF_QUERIES: [&str; 5] = ["key", "unblock-key", "code", "pin", "uploadid"];
/// Path segments that are followed by a secret, lower case, and after how many segments it comes: tokens of private
/// URLs, permissions to set a password, and to upload (behind a tenant).
const SECRET_BEHIND: [(&str, usize); 4] = [
    ("privateurldatasetversion", 1),
    ("previewurldatasetversion", 1),
    ("password-reset-action", 1),
    ("uploadparts", 2),
];
/// Prefixes of tokens issued here, and of web tokens: where one appears in a path, a client has put it into the wrong
/// place.
const TOKENS_BEGIN: [&str; 2] = ["pnk_", "eyJ"];

impl AccessLog {
    /// Returns whether lines are wanted, so that nothing is prepared in vain.
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

/// The content of a line.
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

/// Returns path and query with secret segments and the values of secret parameters replaced by `***`.
pub(crate) fn redacted(path_and_query: &str) -> Cow<'_, str> {
    let (path, query) = match path_and_query.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path_and_query, None),
    };
    let path = redacted_path(path);
    let Some(query) = query.filter(|it| it.split('&').any(is_secret)) else {
        return match (path, query) {
            (Cow::Borrowed(_), _) => Cow::Borrowed(path_and_query),
            (Cow::Owned(path), None) => Cow::Owned(path),
            (Cow::Owned(path), Some(query)) => Cow::Owned(format!("{path}?{query}")),
        };
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(pair) => format!("{name}=***"),
        _ => pair.to_owned(),
    });
    Cow::Owned(format!("{path}?{}", pairs.collect::<Vec<_>>().join("&")))
}

fn redacted_path(path: &str) -> Cow<'_, str> {
    let decoded = |it: &str| percent_decode_str(it).decode_utf8_lossy().into_owned();
    let distance = |it: &str| {
        let word = decoded(it).to_ascii_lowercase();
        SECRET_BEHIND.iter().find(|it| it.0 == word).map(|it| it.1)
    };
    let is_token = |it: &str| TOKENS_BEGIN.iter().any(|begin| decoded(it).starts_with(begin));
    if !path.split('/').any(|it| is_token(it) || distance(it).is_some()) {
        return Cow::Borrowed(path);
    }
    // Number of segments until the next secret.
    let mut left = None;
    let parts = path.split('/').map(|it| {
        if it.is_empty() {
            return it;
        }
        let is_hidden = left == Some(1) || is_token(it);
        left = distance(it).or_else(|| left.filter(|n| 1 < *n).map(|n| n - 1));
        if is_hidden { "***" } else { it }
    });
    Cow::Owned(parts.collect::<Vec<_>>().join("/"))
}

fn is_secret(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or("");
    let name = percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase();
    is_secret_name(&name) || SECRETS_OF_QUERIES.contains(&name.as_str())
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
            ("/a?unblock-key=1&newPassword=2&code=3", "/a?unblock-key=***&newPassword=***&code=***"),
            ("/api/datasets/privateUrlDatasetVersion/1-2", "/api/datasets/privateUrlDatasetVersion/***"),
            (
                "/x/previewUrlDatasetVersion//1-2/citation?a=b",
                "/x/previewUrlDatasetVersion//***/citation?a=b",
            ),
            ("/authn/password-reset-action/1?token=2", "/authn/password-reset-action/***?token=***"),
            ("/data-import/uploadParts/diku/1-2/3", "/data-import/uploadParts/diku/***/3"),
            (
                "/data-import/uploadUrl/subsequent?uploadId=1",
                "/data-import/uploadUrl/subsequent?uploadId=***",
            ),
            ("/api/v3/users/eyJ0.eyJ1.x/settings", "/api/v3/users/***/settings"),
            ("/x/pnk%5F12", "/x/***"),
            ("/x/pnk/eyj", "/x/pnk/eyj"),
        ] {
            assert_eq!(redacted(given), expected);
        }
    }
}
