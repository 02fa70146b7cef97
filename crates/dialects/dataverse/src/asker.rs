//! The caller of a request, authenticated by API token, signed URL or private URL, or anonymous (section 0.3 of the
//! contract).

use std::net::IpAddr;
use std::sync::Arc;

use crate::error::ApiError;
use crate::users::User;

/// The caller of a request.
#[derive(Debug, Clone, Default)]
pub struct Asker {
    /// The account; `None` for guests and for holders of a private URL.
    pub user: Option<Arc<User>>,
    /// The private URL, if its token was sent.
    pub preview: Option<Preview>,
    /// The address of the client, for IP groups.
    pub peer: Option<IpAddr>,
    /// The API token that was sent, which may be returned to its owner.
    pub token: Option<String>,
    /// Whether the user is authenticated by a signed URL.
    pub is_signed: bool,
    /// The server's account that is signed in on the website, whether or not it has a user here.
    pub account: Option<Arc<pinakes_accounts::User>>,
}

/// What the holder of a private URL may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview {
    /// The dataset.
    pub dataset: i64,
    /// Whether authors are hidden. Such a token is valid for downloads only, see `credentials.rs`.
    pub anonymized: bool,
}

impl Asker {
    /// Returns how role assignments name the caller: `@user`, `!42` for the private URL of dataset 42, or `:guest`.
    pub fn identifier(&self) -> String {
        match (&self.user, self.preview) {
            (Some(user), _) => user.identifier(),
            (None, Some(preview)) => format!("!{}", preview.dataset),
            (None, None) => GUEST.to_owned(),
        }
    }

    /// Returns whether the caller may do everything.
    pub fn is_superuser(&self) -> bool {
        self.user.as_ref().is_some_and(|it| it.superuser)
    }

    /// Returns whether the caller is not authenticated.
    pub fn is_guest(&self) -> bool {
        self.user.is_none()
    }

    /// Returns the account. Errors: 401 if there is none.
    pub fn user(&self) -> Result<&Arc<User>, ApiError> {
        self.user.as_ref().ok_or_else(|| {
            ApiError::unauthorized("Only authenticated users can perform the requested operation")
        })
    }

    /// Returns the account of a superuser. Errors: 401 for guests, 403 with `message` for others.
    pub fn superuser(&self, message: &str) -> Result<&Arc<User>, ApiError> {
        let user = self.user()?;
        if user.superuser { Ok(user) } else { Err(ApiError::forbidden(message)) }
    }
}

/// Name of guests.
pub(crate) const GUEST: &str = ":guest";

/// Returns the names under which roles may be assigned to the caller, except for groups defined on this server.
pub(crate) fn own_names(asker: &Asker) -> Vec<String> {
    let mut names = vec![asker.identifier(), ":AllUsers".to_owned()];
    if asker.user.is_some() {
        names.push(":authenticated-users".to_owned());
    } else if asker.preview.is_some() {
        names.push(":guest".to_owned());
    }
    names
}
