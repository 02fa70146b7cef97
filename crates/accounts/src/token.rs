//! API tokens: 32 random bytes that are shown once and stored as their SHA-256.
//!
//! A plain hash is sufficient, unlike for passwords, as 256 random bits cannot be guessed. A token is a
//! record of the kind `accounts_token` whose id is that hash, so that finding it takes one read by id.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinakes_store::{Column, Expr, Index, Kind, Query, Record, StoreError, Txn, Type, Value, View};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::entropy::{Entropy, hex};
use crate::error::{AccountsError, Result};

/// Prefix of every token, by which this server and secret scanners recognise it.
const PREFIX: &str = "pnk_";

/// API tokens of a tenant.
pub static TOKEN: Kind = Kind {
    columns: &[Column::one("user", Type::Text), Column::one("name", Type::Text)],
    indexes: &[Index::unique(&["user", "name"])],
    ..Kind::named("accounts_token")
};

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// SHA-256 of the text, in hexadecimal.
    pub id: String,
    /// Its purpose; unique among the user's tokens.
    pub name: String,
    /// Id of its user.
    pub user: String,
    /// The groups to which it is restricted, out of the user's groups; if absent, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// When it expires, in milliseconds since 1970; if absent, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
    /// When it was created, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// The text of a token, to be shown once and then dropped. Only [`TokenText::reveal`] gives access to it.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl TokenText {
    /// Creates a new token.
    pub fn random(entropy: &Entropy) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(entropy.bytes::<32>())))
    }

    /// Returns the text itself, e.g. `pnk_4fXh…`.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the id under which it is stored.
    pub fn id(&self) -> String {
        id_of(&self.0)
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(..)")
    }
}

/// Says whether `text` has the form of an API token, known or not, rather than of a JSON web token.
pub fn is_api_token(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Returns the id under which a token is stored.
pub fn id_of(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

impl Token {
    fn from_record(record: &Record) -> Result<Self> {
        serde_json::from_slice(&record.body)
            .map_err(|error| StoreError::Damaged(format!("{} {:?}: {error}", TOKEN.name, record.id)).into())
    }

    /// Says whether it has expired.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }
}

/// Stores a token of an existing user.
///
/// Errors: [`AccountsError::UnknownUser`], [`AccountsError::TokenNameTaken`].
pub fn insert(txn: &mut Txn<'_>, token: &Token) -> Result<()> {
    if crate::user::by_id(txn, &token.user)?.is_none() {
        return Err(AccountsError::UnknownUser(token.user.clone()));
    }
    let body = serde_json::to_value(token)
        .map_err(|error| StoreError::Damaged(format!("token {:?}: {error}", token.name)))?;
    match txn.insert(&TOKEN, &token.id, &body) {
        Ok(_) => Ok(()),
        Err(StoreError::Duplicate { .. }) => {
            Err(AccountsError::TokenNameTaken { user: token.user.clone(), name: token.name.clone() })
        }
        Err(other) => Err(other.into()),
    }
}

/// Removes a token and returns it.
pub fn remove(txn: &mut Txn<'_>, id: &str) -> Result<Option<Token>> {
    txn.delete(&TOKEN, id)?.as_ref().map(Token::from_record).transpose()
}

/// Returns the token with this id; see [`id_of`].
pub fn by_id(view: &mut View<'_>, id: &str) -> Result<Option<Token>> {
    view.get(&TOKEN, id)?.as_ref().map(Token::from_record).transpose()
}

/// Returns the token with the sequence number of its last change.
pub(crate) fn with_sequence(view: &mut View<'_>, id: &str) -> Result<Option<(Token, u64)>> {
    let Some(record) = view.get(&TOKEN, id)? else { return Ok(None) };
    Ok(Some((Token::from_record(&record)?, record.sequence)))
}

/// Returns the sequence number of the token's last change; `None` for an unknown token.
pub(crate) fn sequence(view: &mut View<'_>, id: &str) -> Result<Option<u64>> {
    Ok(view.get(&TOKEN, id)?.map(|record| record.sequence))
}

/// Returns the tokens of a user, in order of creation.
pub fn of_user(view: &mut View<'_>, user: &str) -> Result<Vec<Token>> {
    let query = Query::filter(Expr::Is("user".into(), Value::Text(user.into())));
    view.find(&TOKEN, &query)?.iter().map(Token::from_record).collect()
}

/// Returns all tokens of the tenant, in order of creation.
pub fn all(view: &mut View<'_>) -> Result<Vec<Token>> {
    view.find(&TOKEN, &Query::filter(Expr::All))?.iter().map(Token::from_record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_not_printed_and_not_kept() {
        let text = TokenText::random(&Entropy::seeded(1));
        assert!(is_api_token(text.reveal()) && text.reveal().len() == 47, "{}", text.reveal());
        assert_eq!(format!("{text:?}"), "TokenText(..)");
        assert_eq!(text.id().len(), 64);
        assert_ne!(text, TokenText::random(&Entropy::seeded(2)));
    }

    #[test]
    fn tokens_end_at_their_time() {
        let mut token = Token {
            id: "x".into(),
            name: "n".into(),
            user: "u".into(),
            groups: None,
            expires_at_ms: Some(10),
            created_at_ms: 0,
        };
        assert!(!token.is_expired(9) && token.is_expired(10));
        token.expires_at_ms = None;
        assert!(!token.is_expired(i64::MAX));
    }
}
