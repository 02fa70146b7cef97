//! Users of Dataverse. Name and password belong to an account of the server, shared with the other dialects; everything
//! else, including the number that Dataverse's clients use, is stored here.

pub(crate) mod builtin;
pub(crate) mod me;
pub(crate) mod removal;
pub(crate) mod traces;

use pinakes_store::{Column, Expr, Facet, Index, Kind, Search, Txn, Type, View};
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
    facets: &[Facet::days("createdTime")],
    search: Search::Exact,
    ..Kind::named("dataverse_user")
};

/// A user.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    /// Number.
    pub id: i64,
    /// User name for logging in; unique regardless of case.
    pub name: String,
    /// The account of the server, by its id; `None` for users of other identity providers.
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
    /// Whether the user is a superuser.
    pub superuser: bool,
    /// Whether the user is deactivated.
    pub deactivated: bool,
    /// When the user was deactivated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deactivated_time: Option<String>,
    /// When the address was confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_last_confirmed: Option<String>,
    /// When the user was created.
    pub created_time: String,
    /// When the user last logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_login_time: Option<String>,
    /// When the user last used a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_api_use_time: Option<String>,
    /// `builtin`, or the identity provider.
    pub authentication_provider_id: String,
    /// The user's id at that provider.
    pub persistent_user_id: String,
    /// Whether a new confirmation of the address was requested.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub confirmation_asked: bool,
    /// The user's rate limit tier.
    pub rate_limit_tier: i64,
    /// Muted kinds of notifications.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub muted_notifications: Vec<String>,
    /// Kinds of notifications that are not to be sent by mail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub muted_emails: Vec<String>,
}

impl User {
    /// Returns the user's identifier in role assignments: `@name`.
    pub fn identifier(&self) -> String {
        format!("@{}", self.name)
    }

    /// Returns the display name.
    pub fn display_name(&self) -> String {
        format!("{} {}", self.first_name, self.last_name).trim().to_owned()
    }

    /// Returns the user as JSON (section 8 of the contract).
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

/// Returns the user with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<User>, ApiError> {
    stored::get(view, &USER, &id.to_string())
}

/// Returns the user with that name, regardless of case.
pub(crate) fn by_name(view: &mut View<'_>, name: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Folded(name.to_owned());
    let found = view.first(&USER, Expr::Is("name".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Stores a user.
pub(crate) fn put(txn: &mut Txn<'_>, user: &User) -> Result<(), ApiError> {
    stored::put(txn, &USER, &user.id.to_string(), user)
}

/// Returns the user with that mail address, regardless of case.
pub(crate) fn by_email(view: &mut View<'_>, email: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Folded(email.trim().to_owned());
    let found = view.first(&USER, Expr::Is("email".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the user with an account of the server.
pub(crate) fn by_account(view: &mut View<'_>, account: &str) -> Result<Option<User>, ApiError> {
    let value = pinakes_store::Value::Text(account.to_owned());
    let found = view.first(&USER, Expr::Is("account".into(), value))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the user with an identifier `@name`, or with a number.
///
/// Errors: 400 `User … not found.`
pub(crate) fn identified(view: &mut View<'_>, text: &str) -> Result<User, ApiError> {
    let name = text.strip_prefix('@').unwrap_or(text);
    let found = by_name(view, name)?;
    found.ok_or_else(|| ApiError::bad_request(format!("User {name} not found.")))
}
