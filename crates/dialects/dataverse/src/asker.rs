//! Who asks: API tokens, signed URLs, private URLs, or nobody (section 0.3 of the contract).

use std::net::IpAddr;
use std::sync::Arc;

use crate::error::ApiError;
use crate::users::User;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub struct Asker {
    /// The account; none for guests and for holders of a private URL.
    pub user: Option<Arc<User>>,
    /// The private URL that came as the token.
    pub preview: Option<Preview>,
    /// The address of the client, for groups of addresses.
    pub peer: Option<IpAddr>,
    /// The text of the API token that came, which its owner may be told again.
    pub token: Option<String>,
    /// Whether a signed URL stands for the user.
    pub is_signed: bool,
    /// The server's account that is signed in at the pages for people, whether it has a user here or not.
    pub account: Option<Arc<pinakes_accounts::User>>,
}

/// What a private URL lets its holder see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview {
    /// The dataset.
    pub dataset: i64,
    /// Whether it names no authors. Such a token opens downloads alone, see `credentials.rs`.
    pub anonymized: bool,
}

impl Asker {
    /// How role assignments name the caller: `@user`, `!42` for the private URL of dataset 42, or `:guest`.
    pub fn identifier(&self) -> String {
        match (&self.user, self.preview) {
            (Some(user), _) => user.identifier(),
            (None, Some(preview)) => format!("!{}", preview.dataset),
            (None, None) => GUEST.to_owned(),
        }
    }

    /// Whether the caller may do everything.
    pub fn is_superuser(&self) -> bool {
        self.user.as_ref().is_some_and(|it| it.superuser)
    }

    /// Whether nobody is logged in.
    pub fn is_guest(&self) -> bool {
        self.user.is_none()
    }

    /// The account. Errors: 401 when there is none.
    pub fn user(&self) -> Result<&Arc<User>, ApiError> {
        self.user.as_ref().ok_or_else(|| {
            ApiError::unauthorized("Only authenticated users can perform the requested operation")
        })
    }

    /// The account of a superuser. Errors: 401 for guests, 403 with `message` for others.
    pub fn superuser(&self, message: &str) -> Result<&Arc<User>, ApiError> {
        let user = self.user()?;
        if user.superuser { Ok(user) } else { Err(ApiError::forbidden(message)) }
    }
}

/// How guests are named.
pub(crate) const GUEST: &str = ":guest";

/// The names under which roles may be assigned to the caller, without groups that were made here.
pub(crate) fn own_names(asker: &Asker) -> Vec<String> {
    let mut names = vec![asker.identifier(), ":AllUsers".to_owned()];
    if asker.user.is_some() {
        names.push(":authenticated-users".to_owned());
    } else if asker.preview.is_some() {
        names.push(":guest".to_owned());
    }
    names
}
