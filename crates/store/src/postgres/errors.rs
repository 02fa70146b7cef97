//! What the database's errors mean to callers.

use tokio_postgres::error::SqlState;

use crate::StoreError;

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(found) = error.as_db_error() else {
            return Self::Unavailable(chain(&error));
        };
        let code = found.code();
        // Of statements sent together, one behind the one that lost may be answered first: it says only that the
        // transaction is over.
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
        // A schema that may not be used is passed over, as if it were not there.
        if [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_SCHEMA_NAME].contains(code) {
            return Self::Unavailable(format!(
                "{}; its user needs CREATE on the database, or schemas that it owns",
                described(found)
            ));
        }
        match code.code().get(..2) {
            // Connection, resources, the operator's intervention; a commit nobody knows of; a standby that takes
            // no writes.
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

/// Whether the session is of no more use after this error: the server ends it, or takes no writes any more.
pub(super) fn ends_session(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    error.is_closed()
        || code.code().starts_with("57P")
        || code.code().starts_with("08")
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || error.as_db_error().is_some_and(|it| it.severity() == "FATAL" || it.severity() == "PANIC")
}

/// Whether the database refuses, or is refused, for reasons that waiting does not change: a wrong password stays wrong, and
/// so does a certificate (in rustls' words).
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

/// An error with what caused it.
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
