//! JSON web tokens signed with HMAC-SHA-256 (RFC 7519 and RFC 7515, `alg` HS256), and nothing else: a
//! token that names another algorithm is not looked at further.
//!
//! Signing is `base64url(header) . base64url(claims)` and the HMAC of that text; the comparison of
//! signatures takes the same time wherever they differ.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value};
use sha2::Sha256;

/// Largest token that is looked at, in bytes.
const TOKEN_LIMIT_BYTES: usize = 16 << 10;
/// `{"alg":"HS256","typ":"JWT"}`, encoded.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";

/// What a token turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Verified {
    /// Signed with our key and in its time.
    Valid(Map<String, Value>),
    /// Signed with our key, but its `exp` has passed.
    Expired(Map<String, Value>),
    /// Anything else; the reason is for the log, not for the caller.
    Invalid(&'static str),
}

/// Signs `claims`, which are written in their order.
pub fn sign(key: &[u8], claims: &Map<String, Value>) -> String {
    // A map of JSON values always has a text.
    let body = serde_json::to_vec(claims).unwrap_or_default();
    let mut token = String::with_capacity(HEADER.len() + body.len() * 4 / 3 + 48);
    token.push_str(HEADER);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(body, &mut token);
    let signature = mac(key, token.as_bytes()).finalize().into_bytes();
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    token
}

/// Checks the signature first and the time after; `now_s` is in seconds since 1970.
///
/// `exp` and `nbf` may be absent, as other programs allow; when they are there they must be numbers.
pub fn verify(key: &[u8], token: &str, now_s: i64) -> Verified {
    match signed_claims(key, token) {
        Ok(claims) => in_time(claims, now_s),
        Err(reason) => Verified::Invalid(reason),
    }
}

/// The tenant that a token says it is for. Nothing about it is proven.
pub(crate) fn claimed_tenant(token: &str) -> Option<String> {
    if TOKEN_LIMIT_BYTES < token.len() {
        return None;
    }
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Map<String, Value> = serde_json::from_slice(&claims).ok()?;
    claims.get("tenant").and_then(Value::as_str).map(str::to_owned)
}

fn signed_claims(key: &[u8], token: &str) -> Result<Map<String, Value>, &'static str> {
    if TOKEN_LIMIT_BYTES < token.len() {
        return Err("longer than 16 KiB");
    }
    let (signed, signature) = token.rsplit_once('.').ok_or("not three parts")?;
    let (header, claims) = signed.split_once('.').ok_or("not three parts")?;
    if header != HEADER {
        check_header(header)?;
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "signature is not base64url")?;
    mac(key, signed.as_bytes()).verify_slice(&signature).map_err(|_| "signature does not match")?;
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|_| "claims are not base64url")?;
    serde_json::from_slice(&claims).map_err(|_| "claims are not a JSON object")
}

fn check_header(encoded: &str) -> Result<(), &'static str> {
    let text = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| "header is not base64url")?;
    let header: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|_| "header is not a JSON object")?;
    if header.get("alg").and_then(Value::as_str) != Some("HS256") {
        return Err("algorithm is not HS256");
    }
    if header.contains_key("crit") {
        return Err("header demands extensions");
    }
    Ok(())
}

fn in_time(claims: Map<String, Value>, now_s: i64) -> Verified {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 stay far below 2^53")]
    let now_s = now_s as f64;
    match (seconds(&claims, "nbf"), seconds(&claims, "exp")) {
        (Err(reason), _) | (_, Err(reason)) => Verified::Invalid(reason),
        (Ok(Some(from)), _) if now_s < from => Verified::Invalid("not valid yet"),
        (_, Ok(Some(until))) if until <= now_s => Verified::Expired(claims),
        _ => Verified::Valid(claims),
    }
}

fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, &'static str> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or("exp or nbf is not a number"),
    }
}

/// When the claims expire, in seconds since 1970.
pub fn expiry_s(claims: &Map<String, Value>) -> Option<i64> {
    let exp = claims.get("exp")?;
    #[expect(clippy::cast_possible_truncation, reason = "a float out of range saturates, which is meant")]
    exp.as_i64().or_else(|| exp.as_f64().map(|it| it as i64))
}

fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of any length (RFC 2104).
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { unreachable!("HMAC takes any key") };
    mac.update(text);
    mac
}

/// The HMAC-SHA-256 of `text`.
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    mac(key, text).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    /// The example token of jwt.io, made by other programs.
    const KNOWN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
        eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.\
        SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

    #[test]
    fn agrees_with_other_programs() {
        let known = claims(json!({"sub": "1234567890", "name": "John Doe", "iat": 1_516_239_022}));
        assert_eq!(sign(b"your-256-bit-secret", &known), KNOWN);
        assert_eq!(verify(b"your-256-bit-secret", KNOWN, 0), Verified::Valid(known));
    }

    #[test]
    fn time_is_looked_at_after_the_signature() {
        let body = claims(json!({"nbf": 10, "exp": 20}));
        let token = sign(b"k", &body);
        assert_eq!(verify(b"k", &token, 9), Verified::Invalid("not valid yet"));
        assert_eq!(verify(b"k", &token, 10), Verified::Valid(body.clone()));
        assert_eq!(verify(b"k", &token, 20), Verified::Expired(body));
        assert_eq!(verify(b"other", &token, 20), Verified::Invalid("signature does not match"));
    }

    #[test]
    fn other_algorithms_are_refused() {
        for header in
            [json!({"alg": "none"}), json!({"alg": "RS256"}), json!({}), json!({"alg": "HS256", "crit": []})]
        {
            let signed = format!(
                "{}.{}",
                URL_SAFE_NO_PAD.encode(header.to_string()),
                URL_SAFE_NO_PAD.encode(r#"{"_id":"1"}"#)
            );
            let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac(b"k", signed.as_bytes())));
            assert!(matches!(verify(b"k", &token, 0), Verified::Invalid(_)), "{header}");
        }
        assert!(matches!(verify(b"k", "eyJhbGciOiJub25lIn0.e30.", 0), Verified::Invalid(_)));
    }

    #[test]
    fn expiry_that_is_no_number_is_refused() {
        let token = sign(b"k", &claims(json!({"exp": "never"})));
        assert_eq!(verify(b"k", &token, 0), Verified::Invalid("exp or nbf is not a number"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_invalid(text in ".{0,200}") {
            prop_assert!(matches!(verify(b"k", &text, 0), Verified::Invalid(_)));
        }

        #[test]
        fn a_changed_byte_is_noticed(at in 0usize..200, to in proptest::char::any(), key in any::<[u8; 8]>()) {
            let token = sign(&key, &claims(json!({"_id": "6b00e640a38974763ecd9ea4", "exp": 1e18})));
            let mut changed: Vec<char> = token.chars().collect();
            let at = at % changed.len();
            prop_assume!(changed[at] != to);
            changed[at] = to;
            let changed: String = changed.into_iter().collect();
            prop_assert!(matches!(verify(&key, &changed, 0), Verified::Invalid(_)));
        }
    }
}
