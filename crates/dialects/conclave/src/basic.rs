//! Name and password in each request (RFC 7617), for programs that keep no token.
//!
//! Checking a password takes a tenth of a second on purpose. A verified pair is remembered for a minute, by a keyed
//! hash of the header field, so that the passwords of programs with many requests are rarely checked. The user is
//! looked up each time all the same: a user who was locked out or left a group is refused at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use pinakes_accounts::{Accounts, Login, Password, User};
use pinakes_http::Db;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::error::{ConclaveError, Result};

/// How long a verified pair is not checked again, in milliseconds.
const REMEMBERED_MS: i64 = 60_000;
/// Maximum number of remembered pairs.
const REMEMBERED_MAX: usize = 4_096;

/// The web token that replaces a pair, and until when.
type Known = HashMap<[u8; 32], (Arc<str>, i64)>;

/// Recently verified pairs of name and password. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Remembered(Arc<Mutex<Known>>);

/// Returns the credentials of `Authorization: Basic`.
fn credentials(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("basic").then(|| rest.trim())
}

/// Returns the claims of a token for a user of this site.
pub(crate) fn claims(user: &User) -> Map<String, Value> {
    match json!({"username": user.username, "_id": user.id, "id": user.id}) {
        Value::Object(claims) => claims,
        _ => Map::new(),
    }
}

impl Remembered {
    /// Returns a token for the name and password of a request; `None` for a request without them.
    ///
    /// Errors: 401 for a wrong pair; 503 when too many checks are waiting.
    pub(crate) async fn token(
        &self,
        accounts: &Accounts,
        db: &Db,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<str>>> {
        let Some(pair) = credentials(headers) else { return Ok(None) };
        let tenant = db.tenant();
        let now_ms = accounts.clock().now_ms();
        let mut digest = Sha256::new();
        digest.update(accounts.derived(tenant.name(), "conclave-basic"));
        digest.update(pair.as_bytes());
        let key: [u8; 32] = digest.finalize().into();
        if let Ok(known) = self.0.lock()
            && let Some((token, until_ms)) = known.get(&key)
            && now_ms < *until_ms
        {
            return Ok(Some(Arc::clone(token)));
        }
        let wrong = || ConclaveError::wrong_password();
        let decoded =
            STANDARD.decode(pair).ok().and_then(|it| String::from_utf8(it).ok()).ok_or_else(wrong)?;
        let (name, password) = decoded.split_once(':').ok_or_else(wrong)?;
        let password = Password::new(password).map_err(|_| wrong())?;
        let Login::Welcome(user) = accounts.log_in(tenant, name, password).await? else {
            return Err(wrong());
        };
        let token: Arc<str> =
            accounts.sign_for(tenant.name(), claims(&user), REMEMBERED_MS / 1000 + 1).into();
        if let Ok(mut known) = self.0.lock() {
            if known.len() >= REMEMBERED_MAX {
                known.retain(|_, it| now_ms < it.1);
            }
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            known.insert(key, (Arc::clone(&token), now_ms + REMEMBERED_MS));
        }
        Ok(Some(token))
    }
}
