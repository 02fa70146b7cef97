//! Translation of the database's errors for callers.

use tokio_postgres::error::SqlState;

use crate::StoreError;

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(found) = error.as_db_error() else {
            return Self::Unavailable(chain(&error));
        };
        let code = found.code();
        // Of statements sent together, one after the statement that conflicted may be reported first: its error only
        // says that the transaction is aborted.
        if [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::IN_FAILED_SQL_TRANSACTION,
        ]
        .contains(code)
        {
            return Self::Conflict(found.message().to_owned());
        }
        if *code == SqlState::QUERY_CANCELED {
            return Self::TooLong;
        }
        if *code == SqlState::DISK_FULL {
            return Self::Full("the database".into());
        }
        // A schema without permission is skipped as if it did not exist.
        if [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_SCHEMA_NAME].contains(code) {
            return Self::Unavailable(format!(
                "{}; its user needs CREATE on the database, or schemas that it owns",
                described(found)
            ));
        }
        match code.code().get(..2) {
            // Connection, resources, operator intervention; a commit with unknown outcome; a standby that accepts no
            // writes.
            Some("08" | "53" | "57" | "28" | "58") => Self::Unavailable(described(found)),
            _ if *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
                || *code == SqlState::READ_ONLY_SQL_TRANSACTION
                || *code == SqlState::UNDEFINED_DATABASE =>
            {
                Self::Unavailable(described(found))
            }
            Some("XX") => Self::Damaged(described(found)),
            _ => Self::Postgres { code: code.code().to_owned(), message: described(found) },
        }
    }
}

/// Returns whether the session is unusable after this error: the server ends it, or accepts no more writes.
pub(super) fn ends_session(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    error.is_closed()
        || code.code().starts_with("57P")
        || code.code().starts_with("08")
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || error.as_db_error().is_some_and(|it| it.severity() == "FATAL" || it.severity() == "PANIC")
}

/// Returns whether the database refuses, or is refused, for reasons that waiting does not change: a wrong password
/// stays wrong, and so does a certificate (in rustls' words).
pub(super) fn is_lasting(reason: &str) -> bool {
    ["(28P01)", "(28000)", "(3D000)", "(42501)", "invalid peer certificate"]
        .iter()
        .any(|code| reason.contains(code))
}

fn described(error: &tokio_postgres::error::DbError) -> String {
    let mut text = format!("{} ({})", error.message(), error.code().code());
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(more);
    }
    text
}

/// Formats an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        at = cause.source();
    }
    text
}
