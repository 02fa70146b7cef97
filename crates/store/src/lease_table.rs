//! The table of leases.

use crate::Result;
use crate::session::{Flavour, Session};

/// Creates the table, in either engine's dialect. It is small, so an engine that distributes tables replicates it to
/// every node.
pub(crate) fn create_table(session: &mut Session<'_>) -> Result<()> {
    let (text, integer, end) = match session.flavour() {
        Flavour::Sqlite => ("TEXT", "INTEGER", " WITHOUT ROWID, STRICT"),
        Flavour::Postgres => ("text COLLATE \"C\"", "bigint", ""),
    };
    session.batch(&format!(
        "CREATE TABLE IF NOT EXISTS lease (queue {text} NOT NULL, id {text} NOT NULL, owner {text}, \
         turn {integer} NOT NULL, until_ms {integer} NOT NULL, PRIMARY KEY (queue, id)){end};
         CREATE INDEX IF NOT EXISTS lease_until ON lease (queue, until_ms, id)"
    ))
}
