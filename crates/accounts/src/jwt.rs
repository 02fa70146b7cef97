//! JSON web tokens signed with HMAC-SHA-256 (RFC 7519 and RFC 7515, `alg` HS256), and no others: a token that names
//! another algorithm is refused before its signature is checked.
//!
//! The `jsonwebtoken` crate reads and writes them. It is given only the HMAC: its own sets of algorithms include RSA
//! and three types of elliptic curves, which are not used here.

use std::sync::Once;

use hmac::{Hmac, KeyInit as _, Mac as _};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Map, Value};
use sha2::Sha256;

/// Maximum size of a token, in bytes.
const TOKEN_LIMIT_BYTES: usize = 16 << 10;

/// The result of checking a token.
#[derive(Debug, Clone, PartialEq)]
pub enum Verified {
    /// Signed with our key and valid now.
    Valid(Map<String, Value>),
    /// Signed with our key, but expired.
    Expired(Map<String, Value>),
    /// Anything else; the reason is for the log, not for the caller.
    Invalid(&'static str),
}

/// Signs `claims`, which are written in their given order.
pub fn sign(key: &[u8], claims: &Map<String, Value>) -> String {
    install();
    let signed = jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(key));
    // A map of JSON values can always be serialised, and HMAC takes any key.
    let Ok(token) = signed else { unreachable!("JSON is signed") };
    token
}

/// Checks the signature and then the times; `now_s` is in seconds since 1970.
///
/// `exp` and `nbf` may be absent, as other programs allow; if present they must be numbers.
pub fn verify(key: &[u8], token: &str, now_s: i64) -> Verified {
    match signed_claims(key, token) {
        Ok(claims) => in_time(claims, now_s),
        Err(reason) => Verified::Invalid(reason),
    }
}

/// Returns the tenant that a token claims to be for. Nothing about it is verified.
pub(crate) fn claimed_tenant(token: &str) -> Option<String> {
    if TOKEN_LIMIT_BYTES < token.len() {
        return None;
    }
    let claims: Map<String, Value> = jsonwebtoken::dangerous::insecure_decode_claims(token).ok()?;
    claims.get("tenant").and_then(Value::as_str).map(str::to_owned)
}

fn signed_claims(key: &[u8], token: &str) -> Result<Map<String, Value>, &'static str> {
    if TOKEN_LIMIT_BYTES < token.len() {
        return Err("longer than 16 KiB");
    }
    install();
    let mut validation = Validation::new(Algorithm::HS256);
    // The library would use the system's clock; ours is passed in, see `in_time`. Audiences are checked by callers.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let decoded =
        jsonwebtoken::decode::<Map<String, Value>>(token, &DecodingKey::from_secret(key), &validation);
    let decoded = decoded.map_err(|error| reason(&error))?;
    if decoded.header.crit.is_some() {
        return Err("header demands extensions");
    }
    Ok(decoded.claims)
}

fn reason(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidToken => "not three parts",
        ErrorKind::InvalidSignature => "signature does not match",
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => "algorithm is not HS256",
        ErrorKind::Base64(_) => "a part is not base64url",
        ErrorKind::Json(_) => "header or claims are not a JSON object of a token",
        _ => "no token that is understood here",
    }
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

/// Returns when the claims expire, in seconds since 1970.
pub fn expiry_s(claims: &Map<String, Value>) -> Option<i64> {
    let exp = claims.get("exp")?;
    #[expect(clippy::cast_possible_truncation, reason = "a float out of range saturates, which is meant")]
    exp.as_i64().or_else(|| exp.as_f64().map(|it| it as i64))
}

/// Returns the HMAC-SHA-256 of `text`.
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    Hs256::new(key).of(text).finalize().into_bytes().into()
}

/// The only algorithm that the library is given.
static HMAC_ALONE: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| match algorithm {
        Algorithm::HS256 => Ok(Box::new(Hs256::new(key.as_bytes()))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    verifier_factory: |algorithm, key| match algorithm {
        Algorithm::HS256 => Ok(Box::new(Hs256::new(key.try_get_as_bytes()?))),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    },
    key_utils: KeyUtils::new_unimplemented(),
};

fn install() {
    static INSTALLED: Once = Once::new();
    // Nothing else in the process installs a provider; if something did, its provider would serve as well.
    INSTALLED.call_once(|| _ = HMAC_ALONE.install_default());
}

/// HMAC-SHA-256 with a fixed key.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(key: &[u8]) -> Self {
        // HMAC takes keys of any length (RFC 2104).
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { unreachable!("HMAC takes any key") };
        Self(mac)
    }

    fn of(&self, text: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(text);
        mac
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, text: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.of(text).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Compares the signatures in constant time.
    fn verify(&self, text: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        self.of(text).verify_slice(signature).map_err(signature::Error::from_source)
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::json;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    /// The example token of jwt.io, created by other programs.
    const KNOWN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
        eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.\
        SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

    #[test]
    fn agrees_with_other_programs() {
        let known = claims(json!({"sub": "1234567890", "name": "John Doe", "iat": 1_516_239_022}));
        assert_eq!(verify(b"your-256-bit-secret", KNOWN, 0), Verified::Valid(known.clone()));
        let ours = sign(b"your-256-bit-secret", &known);
        assert_eq!(ours.split('.').nth(1), KNOWN.split('.').nth(1), "claims in their order");
        assert_eq!(verify(b"your-256-bit-secret", &ours, 0), Verified::Valid(known));
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
        for header in [
            json!({"alg": "none"}),
            json!({"alg": "RS256"}),
            json!({"alg": "HS384"}),
            json!({"alg": "HS512"}),
            json!({}),
            json!({"alg": "HS256", "crit": []}),
        ] {
            let signed = format!(
                "{}.{}",
                URL_SAFE_NO_PAD.encode(header.to_string()),
                URL_SAFE_NO_PAD.encode(r#"{"_id":"1"}"#)
            );
            let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac(b"k", signed.as_bytes())));
            assert!(matches!(verify(b"k", &token, 0), Verified::Invalid(_)), "{header}");
        }
        for forged in ["eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.", "..", ""] {
            assert!(matches!(verify(b"k", forged, 0), Verified::Invalid(_)), "{forged}");
        }
    }

    #[test]
    fn expiry_that_is_no_number_is_refused() {
        let token = sign(b"k", &claims(json!({"exp": "never"})));
        assert!(matches!(verify(b"k", &token, 0), Verified::Invalid(_)));
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
