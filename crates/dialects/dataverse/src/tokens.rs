//! API tokens and the tokens of private URLs.
//!
//! A token is a UUID of version 4 (clients refuse anything else). Its text is derived from the server's secret, the
//! owner and a random salt, so that it can be shown to the owner again although the store contains only its hash and
//! the salt.

use pinakes_accounts::token::id_of as hash_of;
use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde::{Deserialize, Serialize};

use crate::app::Dataverse;
use crate::asker::Preview;
use crate::error::ApiError;
use crate::stored;

/// Tokens, by the SHA-256 of their text. One per user and one per private URL.
pub(crate) static TOKEN: Kind = Kind {
    columns: &[Column::one("user", Type::Integer), Column::one("dataset", Type::Integer)],
    indexes: &[Index::on(&["user"]), Index::on(&["dataset"])],
    ..Kind::named("dataverse_token")
};

/// Lifetime of an API token, in milliseconds (a year).
pub(crate) const LIFE_MS: i64 = 365 * 24 * 3600 * 1000;

/// A stored token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    /// The user it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<i64>,
    /// The dataset of a private URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<i64>,
    /// Whether that URL hides the authors.
    #[serde(default)]
    pub anonymized: bool,
    /// The salt from which its text is derived.
    pub salt: String,
    /// When it expires, in milliseconds since 1970; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
}

/// The bearer of a token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bearer {
    /// A user.
    User(i64),
    /// The holder of a private URL.
    Preview(Preview),
}

/// Returns the id of the record for a token's text.
pub(crate) fn id_of(text: &str) -> String {
    hash_of(&text.trim().to_ascii_lowercase())
}

impl Token {
    /// Returns a new token of a user, valid for a year.
    pub(crate) fn of_user(app: &Dataverse, user: i64) -> Self {
        Self {
            user: Some(user),
            dataset: None,
            anonymized: false,
            salt: app.context.entropy().uuid().to_string(),
            expires_at_ms: Some(app.now_ms() + LIFE_MS),
        }
    }

    /// Returns a new token of a private URL.
    pub(crate) fn of_preview(app: &Dataverse, preview: Preview) -> Self {
        Self {
            user: None,
            dataset: Some(preview.dataset),
            anonymized: preview.anonymized,
            salt: app.context.entropy().uuid().to_string(),
            expires_at_ms: None,
        }
    }

    /// Returns the text, which has the form of a version 4 UUID.
    pub(crate) fn text(&self, app: &Dataverse, tenant: &str) -> String {
        let owner = format!("dataverse token {:?} {:?} {}", self.user, self.dataset, self.salt);
        let bytes = app.context.accounts().derived(tenant, &owner);
        let mut half = [0; 16];
        half.copy_from_slice(&bytes[..16]);
        uuid::Builder::from_random_bytes(half).into_uuid().to_string()
    }
}

/// Returns the bearer of the token with this id; `None` if it does not exist or has expired.
pub(crate) fn bearer(view: &mut View<'_>, id: &str, now_ms: i64) -> Result<Option<Bearer>, ApiError> {
    let Some(token) = stored::get::<Token>(view, &TOKEN, id)? else { return Ok(None) };
    if token.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms) {
        return Ok(None);
    }
    Ok(match (token.user, token.dataset) {
        (Some(user), _) => Some(Bearer::User(user)),
        (None, Some(dataset)) => Some(Bearer::Preview(Preview { dataset, anonymized: token.anonymized })),
        (None, None) => None,
    })
}

/// Returns the token of a user.
pub(crate) fn of_user(view: &mut View<'_>, user: i64) -> Result<Option<Token>, ApiError> {
    let found = view.first(&TOKEN, Expr::Is("user".into(), user.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the token of a dataset's private URL.
pub(crate) fn of_dataset(view: &mut View<'_>, dataset: i64) -> Result<Option<Token>, ApiError> {
    let found = view.first(&TOKEN, Expr::Is("dataset".into(), dataset.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Removes every token for which `path` is `number`. Returns how many there were.
pub(crate) fn remove(txn: &mut Txn<'_>, path: &'static str, number: i64) -> Result<usize, ApiError> {
    let found = txn.find(&TOKEN, &Query::filter(Expr::Is(path.into(), number.into())))?;
    for record in &found {
        txn.delete(&TOKEN, &record.id)?;
    }
    Ok(found.len())
}

/// Stores a token with the text `text`.
pub(crate) fn insert(txn: &mut Txn<'_>, text: &str, token: &Token) -> Result<(), ApiError> {
    stored::insert(txn, &TOKEN, &id_of(text), token)
}
