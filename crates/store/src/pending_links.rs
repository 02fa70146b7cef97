//! Links of a bulk load that are not yet in their table.
//!
//! The table of links is ordered by target. A load delivers links in the order of its records, so each would change a
//! different page. The links of a load into an empty kind (SQLite) are appended here instead and sorted into the table
//! at once when the load ends. Reads of links meanwhile read both tables; changing or deleting a record sorts them in
//! first.

use crate::error::Result;
use crate::session::{Flavour, Session};

/// The table; without an index, as it is only appended to and read as a whole.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS link_pending (to_kind TEXT NOT NULL, target TEXT NOT NULL, relation TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL) STRICT;";

/// Appends a link.
pub(crate) const INSERT: &str =
    "INSERT INTO link_pending (to_kind, target, relation, kind, id) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Returns the SQL source from which links are read.
pub(crate) fn source(session: &mut Session<'_>) -> Result<&'static str> {
    Ok(if has_any(session)? {
        "(SELECT to_kind, target, relation, kind, id FROM link \
          UNION ALL SELECT to_kind, target, relation, kind, id FROM link_pending)"
    } else {
        "link"
    })
}

/// Sorts the pending links into their table.
pub(crate) fn settle(session: &mut Session<'_>) -> Result<()> {
    if !has_any(session)? {
        return Ok(());
    }
    session.execute(
        "INSERT INTO link (to_kind, target, relation, kind, id) SELECT to_kind, target, relation, kind, id \
         FROM link_pending ORDER BY to_kind, target, relation, kind, id",
        &[],
    )?;
    session.execute("DELETE FROM link_pending", &[]).map(|_| ())
}

/// Deletes the pending links of a kind.
pub(crate) fn forget(session: &mut Session<'_>, kind: &str) -> Result<()> {
    if !has_any(session)? {
        return Ok(());
    }
    session.execute("DELETE FROM link_pending WHERE kind = ?1", &[kind.into()]).map(|_| ())
}

fn has_any(session: &mut Session<'_>) -> Result<bool> {
    if session.flavour() == Flavour::Postgres {
        return Ok(false);
    }
    Ok(session.first("SELECT 1 FROM link_pending LIMIT 1", &[], |_| Ok(()))?.is_some())
}
