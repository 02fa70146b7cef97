//! Errors of accounts.

use pinakes_store::StoreError;

/// An error. What was to be changed is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// Another user has the name.
    #[error("a user named {0:?} already exists; choose another name, or change that user")]
    UsernameTaken(String),
    /// Another user has the id or UUID.
    #[error("a user with {column} {value:?} already exists")]
    IdTaken {
        /// `id` or `uuid`.
        column: &'static str,
        /// The value that is already used.
        value: String,
    },
    /// No such user.
    #[error("no user {0:?} in this tenant; `pinakes user list` shows those that exist")]
    UnknownUser(String),
    /// The name is not valid for a user.
    #[error(
        "{found:?} cannot name a user: expected 1 to {limit_bytes} bytes without control characters \
             and without white space at either end"
    )]
    Username {
        /// The given name, shortened for display.
        found: String,
        /// Maximum length of a name, in bytes.
        limit_bytes: usize,
    },
    /// The id does not have the form of an account id.
    #[error("{0:?} cannot be a user's id: expected 24 hexadecimal digits, lower case")]
    UserId(String),
    /// The password is empty or too long. It is not shown.
    #[error("a password has 1 to {limit_bytes} bytes, this one has {found_bytes}")]
    Password {
        /// Its length in bytes.
        found_bytes: usize,
        /// Maximum length in bytes: hashing costs time and memory.
        limit_bytes: usize,
    },
    /// The user already has a token of that name.
    #[error("user {user:?} already has a token named {name:?}; remove it or choose another name")]
    TokenNameTaken {
        /// Id of the user.
        user: String,
        /// The name.
        name: String,
    },
    /// No such token.
    #[error("no token {0:?} in this tenant; `pinakes token list` shows those that exist")]
    UnknownToken(String),
    /// Too many password checks are waiting for a free core.
    #[error("{waiting} password checks are waiting already; try again in {retry_after_s} s")]
    Busy {
        /// Number of waiting checks.
        waiting: usize,
        /// Seconds after which a retry makes sense.
        retry_after_s: u32,
    },
    /// The account, or the network of the request, has had too many failed logins.
    #[error("too many failed logins; try again in {retry_after_s} s")]
    TooManyFailures {
        /// Seconds after which a login may be attempted again.
        retry_after_s: u32,
    },
    /// The account of that name belongs to a user who does not log in at an external server, or logs in at a
    /// different one.
    #[error("the account {0:?} is not that of a user of another server")]
    NotTheirs(String),
    /// A directory or provider cannot be reached, or its answer is unusable.
    #[error("{server}: {reason}")]
    Elsewhere {
        /// The server.
        server: String,
        /// The reason, without what was sent.
        reason: String,
    },
    /// The file is not a list of functional accounts.
    #[error("functional accounts: {0}; expected a JSON list of {{username, email, password, role, global}}")]
    FunctionalAccounts(String),
    /// The signing secret is unusable.
    #[error("the signing secret {place}: {reason}")]
    Secret {
        /// Where it was expected.
        place: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// Hashing a password failed, e.g. because of a lack of memory.
    #[error("the password could not be hashed: {0}")]
    Hash(String),
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for AccountsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Result of a call.
pub type Result<T, E = AccountsError> = std::result::Result<T, E>;

/// Creates the error for a failure of another server, without what was sent to it.
pub(crate) fn failed(server: &str, reason: impl std::fmt::Display) -> AccountsError {
    AccountsError::Elsewhere { server: server.to_owned(), reason: reason.to_string() }
}
