//! Users as Dataverse knows them. Name and password are an account of the server, shared with the other dialects; the
//! rest, and the number that Dataverse's clients know, is kept here.

pub(crate) mod builtin;
pub(crate) mod me;
pub(crate) mod removal;
pub(crate) mod traces;

use pinakes_store::{Column, Expr, Index, Kind, Txn, Type, View};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::{envelope, stored};

/// Users by number: body is a [`User`].
pub(crate) static USER: Kind = Kind {
    columns: &[
        Column::one("name", Type::Folded),
        Column::one("email", Type::Folded),
        Column::one("superuser", Type::Boolean),
        Column::one("account", Type::Text),
    ],
    indexes: &[Index::unique(&["name"]), Index::unique(&["email"]), Index::on(&["account"])],
    ..Kind::named("dataverse_user")
};

/// A user.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    /// Number.
    pub id: i64,
    /// Name to log in with; unique whatever its case.
    pub name: String,
    /// The account of the server, by its id; none for users of other identity providers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Given name.
    pub first_name: String,
    /// Family name.
    pub last_name: String,
    /// Mail address, unique.
    pub email: String,
    /// Institution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affiliation: Option<String>,
    /// Position there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// ORCID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orcid: Option<String>,
    /// Whether the user may do everything.
    pub superuser: bool,
    /// Whether the user is shut out.
    pub deactivated: bool,
    /// When that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deactivated_time: Option<String>,
    /// When the address was confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_last_confirmed: Option<String>,
    /// When the user was made.
    pub created_time: String,
    /// When the user last logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_login_time: Option<String>,
    /// When the user last used a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_api_use_time: Option<String>,
    /// `builtin`, or the identity provider.
    pub authentication_provider_id: String,
    /// The user at that provider.
    pub persistent_user_id: String,
    /// Whether another confirmation of the address was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirmation_asked: bool,
    /// Which of the tiers of rate limits the user is in.
    pub rate_limit_tier: i64,
    /// Kinds of notifications that are not wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub muted_notifications: Vec<String>,
    /// Kinds of notifications that are not to be mailed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub muted_emails: Vec<String>,
}

impl User {
    /// `@name`, as role assignments have it.
    pub fn identifier(&self) -> String {
        format!("@{}", self.name)
    }

    /// Returns the name to show.
    pub fn display_name(&self) -> String {
        format!("{} {}", self.first_name, self.last_name).trim().to_owned()
    }

    /// As it is sent (section 8 of the contract).
    pub fn json(&self) -> Value {
        let map = envelope::object(serde_json::json!({
            "id": self.id,
            "identifier": self.identifier(),
            "displayName": self.display_name(),
            "firstName": self.first_name,
            "lastName": self.last_name,
            "email": self.email,
            "superuser": self.superuser,
            "deactivated": self.deactivated,
            "deactivatedTime": self.deactivated_time,
            "affiliation": self.affiliation,
            "position": self.position,
            "persistentUserId": self.persistent_user_id,
            "emailLastConfirmed": self.email_last_confirmed,
            "createdTime": self.created_time,
            "lastLoginTime": self.last_login_time,
            "lastApiUseTime": self.last_api_use_time,
            "authenticationProviderId": self.authentication_provider_id,
            "rateLimitTier": self.rate_limit_tier,
            "mutedNotifications": self.muted_notifications,
            "mutedEmails": self.muted_emails,
        }));
        map.into()
    }
}

/// Returns the user of that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<User>, ApiError> {
    stored::get(view, &USER, &id.to_string())
}

/// Returns the user of that name, whatever its case.
pub(crate) fn by_name(view: &mut View<'_>, name: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Folded(name.to_owned());
    let found = view.first(&USER, Expr::Is("name".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Stores a user.
pub(crate) fn put(txn: &mut Txn<'_>, user: &User) -> Result<(), ApiError> {
    stored::put(txn, &USER, &user.id.to_string(), user)
}

/// Returns the user of that mail address, whatever its case.
pub(crate) fn by_email(view: &mut View<'_>, email: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Folded(email.trim().to_owned());
    let found = view.first(&USER, Expr::Is("email".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the user of an account of the server.
pub(crate) fn by_account(view: &mut View<'_>, account: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Text(account.to_owned());
    let found = view.first(&USER, Expr::Is("account".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the user that an identifier, `@name`, or a number names.
///
/// Errors: 400 `User … not found.`
pub(crate) fn identified(view: &mut View<'_>, text: &str) -> Result<User, ApiError> {
    let name = text.strip_prefix('@').unwrap_or(text);
    let found = by_name(view, name)?;
    found.ok_or_else(|| ApiError::bad_request(format!("User {name} not found.")))
}
