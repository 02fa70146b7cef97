//! What an index reads from the store: changes in sequence order, and the identity of the store.

use super::layout::Row;
use super::members::{MembersReader, OfMembers};
use crate::counters::is_behind;
use crate::session::{Flavour, HORIZON, Session};
use crate::{Kind, ListId, Result, StoreError};

/// Records read in one step.
const STEP_RECORDS: u64 = 1_000;
/// Bytes of bodies, or of what is held of their members, after which a step ends.
const STEP_BYTES: usize = 16 << 20;
/// Number of records from which a kind gets an index.
pub(crate) const MANY_RECORDS: u64 = 200;

/// Changes of a kind, read from one snapshot.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) rows: Vec<Row>,
    pub(super) deleted: Vec<String>,
    /// The step holds all changes up to this number.
    pub(super) upto: u64,
    /// Whether no further changes are left.
    pub(super) is_last: bool,
    /// Upper bound on the remaining changes, of all kinds.
    pub(super) n_left: u64,
    /// Whether a bulk load is under way, which is indexed when it is over.
    pub(super) is_loading: bool,
}

impl Step {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.deleted.is_empty()
    }

    /// Reads the changes after a number. `members`: the statement that reads the chunks of a list of members.
    pub(super) fn read(
        session: &mut Session<'_>,
        kind: &'static Kind,
        after: u64,
        members: &str,
    ) -> Result<Self> {
        let flavour = session.flavour();
        if flavour == Flavour::Sqlite && is_behind(session, kind.name)? {
            return Ok(Self { is_loading: true, ..Self::default() });
        }
        let last = last_sequence(session)?;
        let window = match flavour {
            Flavour::Sqlite => "LIMIT ?3",
            Flavour::Postgres => "FETCH FIRST ?3 ROWS WITH TIES",
        };
        let sql = format!(
            "SELECT r.key, r.id, r.version, r.sequence, {}, {}, {} FROM {} \
             WHERE ?1 < r.sequence AND r.sequence <= ?2 ORDER BY r.sequence {window}",
            n_members_sql(kind),
            flavour.body(),
            if kind.members.is_some() { "r.list" } else { "CAST(NULL AS bigint)" },
            flavour.rows_with_bodies(kind.name)
        );
        let (mut rows, mut lists, mut n_bytes, mut is_cut) = (Vec::new(), Vec::new(), 0, false);
        session.rows(&sql, &[after.into(), last.into(), STEP_RECORDS.into()], |row| {
            let list = row.optional_int(6)?;
            let row = Row {
                key: row.int(0)?,
                id: row.text(1)?,
                version: row.int(2)?,
                sequence: row.int(3)?,
                n_members: row.int(4)?,
                members: OfMembers::none(kind),
                body: row.bytes(5)?,
            };
            // Changes with the same number stay together.
            if STEP_BYTES < n_bytes && rows.last().is_some_and(|it: &Row| it.sequence != row.sequence) {
                is_cut = true;
                return Ok(std::ops::ControlFlow::Break(()));
            }
            n_bytes += row.body.len();
            rows.push(row);
            lists.push(list);
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        if let Some(mut reader) = MembersReader::of(kind) {
            let mut n_bytes = 0;
            for at in 0..rows.len() {
                if STEP_BYTES < n_bytes && rows[at - 1].sequence != rows[at].sequence {
                    rows.truncate(at);
                    is_cut = true;
                    break;
                }
                if let Some(list) = lists[at] {
                    rows[at].members = reader.read(session, members, ListId(list))?;
                    n_bytes += rows[at].members.n_bytes();
                }
            }
        }
        let is_last = !is_cut && (rows.len() as u64) < STEP_RECORDS;
        let upto = match rows.last() {
            Some(row) if !is_last => row.sequence.cast_unsigned(),
            _ => last.max(after),
        };
        let sql = "SELECT id FROM tombstone WHERE kind = ?1 AND ?2 < sequence AND sequence <= ?3";
        let values = [kind.name.into(), after.into(), upto.into()];
        let deleted = session.all(sql, &values, |row| row.text(0))?;
        Ok(Self { rows, deleted, upto, is_last, n_left: last.saturating_sub(upto), is_loading: false })
    }
}

/// Returns the SQL of a record's number of members.
pub(super) fn n_members_sql(kind: &Kind) -> &'static str {
    if kind.members.is_some() { "r.n_members" } else { "CAST(0 AS bigint)" }
}

/// Returns the number of the last change such that no older one can appear any more.
pub(super) fn last_sequence(session: &mut Session<'_>) -> Result<u64> {
    let sql = match session.flavour() {
        Flavour::Sqlite => "SELECT value FROM meta WHERE name = 'sequence'".to_owned(),
        Flavour::Postgres => format!("SELECT {HORIZON} - 1"),
    };
    Ok(session.first(&sql, &[], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
}

/// What a snapshot tells of the changes of all kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Latest {
    /// All changes up to this number are in the snapshot.
    pub(super) upto: u64,
    /// Identity of a database; `None` for a file.
    pub(super) store: Option<String>,
    /// The last change of each kind.
    pub(super) of_kinds: Vec<u64>,
}

impl Latest {
    pub(super) fn read(session: &mut Session<'_>, kinds: &[&Kind]) -> Result<Self> {
        let flavour = session.flavour();
        let upto = last_sequence(session)?;
        let store = if flavour == Flavour::Postgres { Some(store_identity(session)?) } else { None };
        let mut sql = "SELECT 0".to_owned();
        kinds.iter().for_each(|it| sql.extend([", ", &flavour.last_change(it.name)]));
        let of_kinds = session.first(&sql, &[], |row| {
            (1..=kinds.len()).map(|at| Ok(row.int(at)?.cast_unsigned())).collect::<Result<Vec<u64>>>()
        })?;
        let of_kinds = of_kinds
            .ok_or_else(|| StoreError::Damaged("the last changes of the kinds were not told".into()))?;
        Ok(Self { upto, store, of_kinds })
    }
}

/// Identifies a tenant of a database and the history (timeline) of its primary: a standby that takes over may lack the
/// last commits.
pub(super) const DATABASE_IDENTITY: &str = "(SELECT c.system_identifier::text || '-' \
     || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '-' || d.oid::text || '-' || n.oid::text \
     FROM pg_control_system() c, pg_database d, pg_namespace n \
     WHERE d.datname = current_database() AND n.nspname = current_schema())";

/// Returns a text that identifies a store.
pub(crate) fn store_identity(session: &mut Session<'_>) -> Result<String> {
    if session.flavour() == Flavour::Postgres {
        let sql = format!("SELECT {DATABASE_IDENTITY}");
        return session
            .first(&sql, &[], |row| row.text(0))?
            .ok_or_else(|| StoreError::Damaged("the database has no identity".into()));
    }
    let sql = "SELECT value FROM meta WHERE name = 'store'";
    let number = session.first(sql, &[], |row| row.int(0))?;
    number
        .map(|it| format!("{it:016x}"))
        .ok_or_else(|| StoreError::Damaged("the store has no identity".into()))
}

/// Returns whether records of a kind were changed after a number.
pub(super) fn has_changed_since(session: &mut Session<'_>, kind: &Kind, covered: u64) -> Result<bool> {
    let sql = format!("SELECT 1 FROM \"k_{}\" WHERE ?1 < sequence LIMIT 1", kind.name);
    if session.first(&sql, &[covered.into()], |_| Ok(()))?.is_some() {
        return Ok(true);
    }
    let sql = "SELECT 1 FROM tombstone WHERE kind = ?1 AND ?2 < sequence LIMIT 1";
    Ok(session.first(sql, &[kind.name.into(), covered.into()], |_| Ok(()))?.is_some())
}

/// Returns whether a kind has so many records that an index is worthwhile.
pub(super) fn has_many(session: &mut Session<'_>, kind: &Kind) -> Result<bool> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM \"k_{}\" LIMIT ?1) x", kind.name);
    let n = session.first(&sql, &[MANY_RECORDS.into()], |row| row.int(0))?.unwrap_or(0);
    Ok(MANY_RECORDS <= n.cast_unsigned())
}
