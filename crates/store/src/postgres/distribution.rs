//! The column by which each table can be distributed over machines, for engines that do so (`create_distributed_table`
//! of Citus): stated in the table's comment, `distributed by COLUMN` or `copied everywhere`.
//!
//! The rule that makes this possible: every unique key of a distributed table contains the column. A kind's own unique
//! index cannot contain its id, so its table is copied everywhere; such kinds should be small.
//! `tests/drills/distribution.sh` checks all tables for this.

use crate::session::Session;
use crate::{Kind, Result, Uniqueness};

/// Tables shared by all kinds, and the column; `None`: copied everywhere.
const SHARED: [(&str, Option<&str>); 9] = [
    ("meta", None),
    ("kind", None),
    ("class", None),
    ("staging", None),
    ("lease", None),
    // Each session counts in rows of its own slot.
    ("facet", Some("slot")),
    ("identifier", Some("value")),
    ("link", Some("target")),
    ("tombstone", Some("id")),
];

/// Writes this into the comments of the tables where it is missing.
pub(super) fn declare(session: &mut Session<'_>, kinds: &[&'static Kind]) -> Result<()> {
    let mut wanted: Vec<(String, String)> =
        SHARED.iter().map(|(table, column)| ((*table).to_owned(), comment(*column))).collect();
    for kind in kinds {
        let is_spread = kind.indexes.iter().all(|it| it.uniqueness == Uniqueness::Shared);
        wanted.push((format!("k_{}", kind.name), comment(is_spread.then_some("id"))));
        if kind.members.is_some() {
            wanted.push((format!("m_{}", kind.name), comment(Some("list"))));
        }
    }
    let sql = "SELECT c.relname::text, coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')";
    let said = session.all(sql, &[], |row| Ok((row.text(0)?, row.text(1)?)))?;
    for (table, comment) in wanted.iter().filter(|it| !said.contains(it)) {
        session.batch(&format!("COMMENT ON TABLE \"{table}\" IS '{comment}'"))?;
    }
    Ok(())
}

fn comment(column: Option<&str>) -> String {
    column.map_or_else(|| "copied everywhere".to_owned(), |it| format!("distributed by {it}"))
}
