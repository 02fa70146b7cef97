//! Positions in lists, as clients hand them back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{ConclaveError, Result};

/// Encodes a position in a list for clients to send back.
pub(crate) fn cursor(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(parts.join("\n"))
}

/// Decodes a position. Errors: 400 for text that is not an encoded position.
pub(crate) fn cursor_parts(text: &str) -> Result<Vec<String>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|it| String::from_utf8(it).ok());
    let parts = bytes.ok_or_else(|| {
        ConclaveError::bad_request(format!("after is {text:?}; expected what an earlier answer gave as next"))
    })?;
    Ok(parts.split('\n').map(str::to_owned).collect())
}
