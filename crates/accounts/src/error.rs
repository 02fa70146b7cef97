//! Why accounts could not do what was asked.

use pinakes_store::StoreError;

/// A refusal or failure. What was to be changed is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// Another user has the name.
    #[error("a user named {0:?} exists already; choose another name, or change that user")]
    UsernameTaken(String),
    /// Another user has the id or UUID.
    #[error("a user with {column} {value:?} exists already")]
    IdTaken {
        /// `id` or `uuid`.
        column: &'static str,
        /// The value that is taken.
        value: String,
    },
    /// No such user.
    #[error("no user {0:?} in this tenant; `pinakes user list` shows those that exist")]
    UnknownUser(String),
    /// The name cannot be a user's.
    #[error(
        "{found:?} cannot name a user: expected 1 to {limit_bytes} bytes without control characters \
             and without white space at either end"
    )]
    Username {
        /// What was given, cut to what is worth showing.
        found: String,
        /// Most bytes that a name may have.
        limit_bytes: usize,
    },
    /// The id is not one that accounts are known by.
    #[error("{0:?} cannot be a user's id: expected 24 hexadecimal digits, lower case")]
    UserId(String),
    /// The password is empty or too long. It is not shown.
    #[error("a password has 1 to {limit_bytes} bytes, this one has {found_bytes}")]
    Password {
        /// Bytes given.
        found_bytes: usize,
        /// Most bytes allowed: hashing costs time and memory.
        limit_bytes: usize,
    },
    /// The user has a token of that name.
    #[error("user {user:?} has a token named {name:?} already; remove it or choose another name")]
    TokenNameTaken {
        /// Id of the user.
        user: String,
        /// The name.
        name: String,
    },
    /// No such token.
    #[error("no token {0:?} in this tenant; `pinakes token list` shows those that exist")]
    UnknownToken(String),
    /// Too many password checks wait for a free core.
    #[error("{waiting} password checks are waiting already; try again in {retry_after_s} s")]
    Busy {
        /// Checks waiting.
        waiting: usize,
        /// Seconds after which a retry makes sense.
        retry_after_s: u32,
    },
    /// The account, or the network that asks, has failed to log in too often.
    #[error("too many failed logins; try again in {retry_after_s} s")]
    TooManyFailures {
        /// Seconds after which a login may be tried again.
        retry_after_s: u32,
    },
    /// The account of that name belongs to somebody who does not log in at another server, or at a different one.
    #[error("the account {0:?} is not that of a user of another server")]
    NotTheirs(String),
    /// A directory or provider cannot be asked, or answers what cannot be used.
    #[error("{server}: {reason}")]
    Elsewhere {
        /// Which.
        server: String,
        /// Why, without what was sent.
        reason: String,
    },
    /// The file is not a list of functional accounts.
    #[error("functional accounts: {0}; expected a JSON list of {{username, email, password, role, global}}")]
    FunctionalAccounts(String),
    /// The signing secret is unusable.
    #[error("the signing secret {place}: {reason}")]
    Secret {
        /// Where it was looked for.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The hashing of a password failed, e.g. for want of memory.
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

/// What a call gives.
pub type Result<T, E = AccountsError> = std::result::Result<T, E>;

/// A failure of another server, without what was sent to it.
pub(crate) fn failed(server: &str, reason: impl std::fmt::Display) -> AccountsError {
    AccountsError::Elsewhere { server: server.to_owned(), reason: reason.to_string() }
}
