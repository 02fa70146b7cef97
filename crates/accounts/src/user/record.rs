//! The record of a user, its kind, and how users are found.

use pinakes_store::{Column, Expr, Index, Kind, Query, Record, Search, StoreError, Type, Value, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::entropy::{Entropy, hex};
use crate::error::{AccountsError, Result};
use crate::password::PasswordHash;

/// Number of digits of a user's id.
pub(crate) const ID_DIGITS: usize = 24;

/// Users of a tenant, in all dialects.
pub static USER: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("username", Type::Text),
        Column::one("uuid", Type::Text),
        Column::one("email", Type::Text),
        Column::at("external_id", "externalId", Type::Text),
        Column::one("active", Type::Boolean),
        Column::many("groups", Type::Text),
    ],
    indexes: &[
        Index::unique(&["username"]),
        Index::unique(&["uuid"]),
        Index::on(&["email"]),
        Index::on(&["external_id"]),
    ],
    search: Search::Declared,
    joins: &["uuid"],
    ..Kind::named("accounts_user")
};

/// A user. What a dialect stores beyond this (settings, preferences) is in records of its own, or in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// 24 hexadecimal digits, never changes: identifies the user in SciCat's API, and is the record's id.
    pub id: String,
    /// UUID, never changes: identifies the user in FOLIO's API.
    pub uuid: Uuid,
    /// The login name; unique in the tenant, compared exactly.
    pub username: String,
    /// Mail address; several users may share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Given name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<String>,
    /// Family name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// Groups (SciCat: roles and access groups), in the order given, without duplicates.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Names of individual permissions (FOLIO).
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Whether the user belongs to the group `globalaccess` as well.
    #[serde(default)]
    pub global: bool,
    /// Whether the user may log in and use tokens.
    #[serde(default = "yes")]
    pub active: bool,
    /// The user's name in a directory or another system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Any other data of the user.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Json>,
    /// When the user was created, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When the user was last changed, in milliseconds since 1970.
    pub updated_at_ms: i64,
    /// The password's hash; without one the user cannot log in with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// Version of the record, 0 before it is stored.
    #[serde(skip)]
    pub version: u64,
}

pub(crate) fn yes() -> bool {
    true
}

impl User {
    /// Creates a user with new identifiers and a name, which is not stored yet.
    pub fn new(username: impl Into<String>, now_ms: i64, entropy: &Entropy) -> Self {
        Self::with_uuid(username, entropy.uuid(), now_ms)
    }

    /// Creates a user with a UUID from another system; the id is derived from it, so that a user who is
    /// loaded again gets the same id.
    pub fn with_uuid(username: impl Into<String>, uuid: Uuid, now_ms: i64) -> Self {
        Self {
            id: id_of(uuid),
            uuid,
            username: username.into(),
            email: None,
            display_name: None,
            first_name: None,
            last_name: None,
            groups: Vec::new(),
            permissions: Vec::new(),
            global: false,
            active: true,
            external_id: None,
            extra: Map::new(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            password: None,
            version: 0,
        }
    }

    fn from_record(record: &Record) -> Result<Self> {
        let mut user: Self = serde_json::from_slice(&record.body)
            .map_err(|error| StoreError::Damaged(format!("{} {:?}: {error}", USER.name, record.id)))?;
        user.version = record.version;
        Ok(user)
    }

    pub(crate) fn to_body(&self) -> Result<Json> {
        check_username(&self.username)?;
        check_id(&self.id)?;
        let mut user = self.clone();
        without_doubles(&mut user.groups);
        without_doubles(&mut user.permissions);
        serde_json::to_value(&user)
            .map_err(|error| StoreError::Damaged(format!("user {:?}: {error}", self.id)).into())
    }
}

/// Returns the id that belongs to a UUID: the first 96 bits of its SHA-256. A hash is used instead of the
/// UUID's first digits because systems that number their UUIDs vary only the last ones.
pub fn id_of(uuid: Uuid) -> String {
    hex(&Sha256::digest(uuid.as_bytes())[..ID_DIGITS / 2])
}

/// Returns the user with this id (24 hexadecimal digits).
pub fn by_id(view: &mut View<'_>, id: &str) -> Result<Option<User>> {
    view.get(&USER, id)?.as_ref().map(User::from_record).transpose()
}

/// Returns the sequence number of the user's last change; `None` for an unknown user.
pub(crate) fn sequence(view: &mut View<'_>, id: &str) -> Result<Option<u64>> {
    Ok(view.get(&USER, id)?.map(|record| record.sequence))
}

/// Returns the user with the sequence number of its last change.
pub(crate) fn with_sequence(view: &mut View<'_>, id: &str) -> Result<Option<(User, u64)>> {
    let Some(record) = view.get(&USER, id)? else { return Ok(None) };
    Ok(Some((User::from_record(&record)?, record.sequence)))
}

/// Returns the user with this UUID.
pub fn by_uuid(view: &mut View<'_>, uuid: Uuid) -> Result<Option<User>> {
    first(view, "uuid", uuid.to_string())
}

/// Returns the user with exactly this name.
pub fn by_username(view: &mut View<'_>, username: &str) -> Result<Option<User>> {
    first(view, "username", username.into())
}

/// Returns the user that another system knows by this name; the first if there are several.
pub fn by_external_id(view: &mut View<'_>, external_id: &str) -> Result<Option<User>> {
    first(view, "externalId", external_id.into())
}

/// Returns the users that satisfy the query, whose paths are the fields of [`User`] in camel case.
pub fn find(view: &mut View<'_>, query: &Query) -> Result<Vec<User>> {
    view.find(&USER, query)?.iter().map(User::from_record).collect()
}

/// Returns how many users satisfy the filter.
pub fn count(view: &mut View<'_>, filter: &Expr) -> Result<u64> {
    Ok(view.count(&USER, filter)?)
}

pub(crate) fn first(view: &mut View<'_>, path: &str, value: String) -> Result<Option<User>> {
    let record = view.first(&USER, Expr::Is(path.into(), Value::Text(value)))?;
    record.as_ref().map(User::from_record).transpose()
}

/// Maximum length of a user name, in bytes.
pub(crate) const USERNAME_LIMIT_BYTES: usize = 255;

pub(crate) fn check_username(name: &str) -> Result<()> {
    let sound = (1..=USERNAME_LIMIT_BYTES).contains(&name.len())
        && name.trim() == name
        && !name.chars().any(char::is_control);
    if sound {
        return Ok(());
    }
    Err(AccountsError::Username { found: name.chars().take(60).collect(), limit_bytes: USERNAME_LIMIT_BYTES })
}

pub(crate) fn check_id(id: &str) -> Result<()> {
    let sound = id.len() == ID_DIGITS && id.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    if sound { Ok(()) } else { Err(AccountsError::UserId(id.chars().take(60).collect())) }
}

pub(crate) fn without_doubles(list: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::with_capacity(list.len());
    list.retain(|it| seen.insert(it.clone()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_the_uuid_and_differ_where_only_the_last_digits_do() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(id_of(a), id_of(a));
        assert_ne!(id_of(a), id_of(b));
        assert!(check_id(&id_of(a)).is_ok());
    }

    #[test]
    fn names_and_ids_are_checked() {
        for bad in ["", " a", "a ", "a\nb", &"x".repeat(256)] {
            assert!(check_username(bad).is_err(), "{bad:?}");
        }
        for good in ["ingestor", "Åsa Öberg", "a@b.ch", &"x".repeat(255)] {
            assert!(check_username(good).is_ok(), "{good:?}");
        }
        for bad in ["", "6b00e640a38974763ecd9ea", "6B00E640A38974763ECD9EA4", "6b00e640a38974763ecd9eg4"] {
            assert!(check_id(bad).is_err(), "{bad:?}");
        }
    }
}
