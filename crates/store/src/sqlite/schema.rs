//! A tenant's tables and indexes in its file, created from the declarations of kinds.
//!
//! For a kind `x`: `k_x` has one narrow row per record, `b_x` the bodies, `x_x_<column>` the values of a many-valued
//! column, `m_x` chunks of member lists. Shared by all kinds: `meta`, `kind`, `class`, `facet`, `facet_list`,
//! `identifier`, `link`, `link_pending`, `tombstone`, `staging`, `lease`.

use crate::cell::Cell;
use crate::columns::{index_name, many_table};
use crate::counters::{CHANGES, Counters, RECORDS, is_behind};
use crate::document::Taken;
use crate::format::{FORMAT, refuse_company};
use crate::lease_table;
use crate::pending_links;
use crate::remake::{self, Changed, Remake, Reshaped, UNDER_WAY};
use crate::renumber;
use crate::session::Session;
use crate::users::Users;
use crate::whole_lists;
use crate::{Arity, Index, Kind, Result, StoreError, Type};

const BASE: &str = "
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, text TEXT) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS kind (name TEXT PRIMARY KEY, declaration TEXT NOT NULL, tables TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS class (row INTEGER PRIMARY KEY, kind TEXT NOT NULL, class INTEGER NOT NULL, fields TEXT NOT NULL, UNIQUE (kind, class)) STRICT;
CREATE TABLE IF NOT EXISTS facet (kind TEXT NOT NULL, facet TEXT NOT NULL, class INTEGER NOT NULL, value TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (kind, facet, class, value)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS identifier (scheme TEXT NOT NULL, value TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (scheme, value, kind, id)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS link (to_kind TEXT NOT NULL, target TEXT NOT NULL, relation TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (to_kind, target, relation, kind, id)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS tombstone (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS tombstone_kind ON tombstone (kind, sequence);
CREATE TABLE IF NOT EXISTS staging (kind TEXT NOT NULL, list INTEGER NOT NULL, PRIMARY KEY (kind, list)) WITHOUT ROWID, STRICT;
INSERT OR IGNORE INTO meta (name, value) VALUES ('sequence', 0), ('list', 0), ('store', random());
";

/// Brings a tenant's tables into line with `kinds`. Must be called in a transaction. Returns the kinds that are being
/// rebuilt from now on.
///
/// Errors: the tables were written by a newer program.
pub(crate) fn apply(
    session: &mut Session<'_>,
    kinds: &[&'static Kind],
    place: &str,
    users: Users,
) -> Result<Vec<(&'static Kind, Remake)>> {
    session.batch(BASE)?;
    session.batch(whole_lists::TABLE)?;
    session.batch(pending_links::TABLE)?;
    lease_table::create_table(session)?;
    let found = session.first("SELECT value FROM meta WHERE name = 'format'", &[], |row| row.int(0))?;
    match found {
        Some(found) if FORMAT < found => {
            return Err(StoreError::Newer { place: place.to_owned(), found, known: FORMAT });
        }
        Some(FORMAT) => {}
        Some(found) => {
            refuse_company(place, found, users)?;
            renumber::migrate(session, kinds, place, found, users)?;
            drop_texts(session)?;
            session.execute("UPDATE meta SET value = ?1 WHERE name = 'format'", &[FORMAT.into()])?;
        }
        None => {
            session.execute("INSERT INTO meta (name, value) VALUES ('format', ?1)", &[FORMAT.into()])?;
        }
    }
    let mut under_way = Vec::new();
    for kind in kinds {
        let known = session.first(
            "SELECT declaration, tables FROM kind WHERE name = ?1",
            &[kind.name.into()],
            |row| Ok((row.text(0)?, row.text(1)?)),
        )?;
        match known {
            Some((declaration, _)) if declaration == kind.declaration() => continue,
            Some((declaration, tables)) => {
                let changed = Changed { kind, declaration, tables };
                under_way.push((*kind, remake::begin(session, &changed, reshape)?));
                continue;
            }
            None => {
                create_rows(session, kind)?;
                create_fixed_indexes(session, kind)?;
                create_beside(session, kind)?;
                create_indexes(session, kind)?;
            }
        }
        know(session, kind, &kind.declaration())?;
    }
    Ok(under_way)
}

/// Stores a kind's declaration and its tables of many-valued columns.
fn know(session: &mut Session<'_>, kind: &Kind, declaration: &str) -> Result<()> {
    let sql = "INSERT INTO kind (name, declaration, tables) VALUES (?1, ?2, ?3) \
               ON CONFLICT (name) DO UPDATE SET declaration = excluded.declaration, tables = excluded.tables";
    let tables = many_tables(kind).join(" ");
    session.execute(sql, &[kind.name.into(), declaration.into(), tables.as_str().into()]).map(|_| ())
}

/// Drops the text indexes that former formats had in the file.
fn drop_texts(session: &mut Session<'_>) -> Result<()> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%'";
    for table in session.all(sql, &[], |row| row.text(0))? {
        session.batch(&format!("DROP TABLE \"{table}\""))?;
    }
    session.batch("DROP TABLE IF EXISTS text_mark")
}

/// Creates the declared indexes that do not exist.
pub(crate) fn create_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    kind.indexes.iter().try_for_each(|index| create_index(session, kind, index))
}

/// Page cache while an index is made, in KiB. Its entries are sorted in parts of this size, which lie in temporary files:
/// a part that fits in a processor's cache is sorted in half the time, and memory does not grow with the records.
const SORTING_CACHE_KIB: i64 = 8 << 10;

fn create_index(session: &mut Session<'_>, kind: &Kind, index: &Index) -> Result<()> {
    let unique = if index.uniqueness.refuses() { "UNIQUE " } else { "" };
    let columns: Vec<String> = index.columns.iter().map(|name| format!("\"{name}\"")).collect();
    let cache = session.first("PRAGMA cache_size", &[], |row| row.int(0))?.unwrap_or(-SORTING_CACHE_KIB);
    session.batch(&format!("PRAGMA cache_size = {}", -SORTING_CACHE_KIB))?;
    let created = session.batch(&format!(
        "CREATE {unique}INDEX IF NOT EXISTS \"{}\" ON \"k_{}\" ({}){}",
        index_name(kind, index),
        kind.name,
        columns.join(", "),
        index.uniqueness.condition_sql()
    ));
    session.batch(&format!("PRAGMA cache_size = {cache}"))?;
    created
}

/// Creates one missing declared index; returns whether there was one.
pub(crate) fn create_missing_index(session: &mut Session<'_>, kind: &'static Kind) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?1";
    for index in kind.indexes {
        let name = index_name(kind, index);
        if session.first(sql, &[name.as_str().into()], |_| Ok(()))?.is_none() {
            return create_index(session, kind, index).map(|()| true);
        }
    }
    Ok(false)
}

/// Drops the declared indexes, for a bulk load.
pub(crate) fn drop_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for index in kind.indexes {
        session.batch(&format!("DROP INDEX IF EXISTS \"{}\"", index_name(kind, index)))?;
    }
    Ok(())
}

fn many_tables(kind: &Kind) -> Vec<String> {
    kind.columns.iter().filter(|it| it.arity == Arity::Many).map(|it| many_table(kind, it)).collect()
}

/// Creates the table of a kind's narrow rows.
fn create_rows(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    let mut columns = String::new();
    for column in kind.columns.iter().filter(|it| it.arity == Arity::One) {
        columns.push_str(&format!(", \"{}\" {}", column.name, type_name(column.ty)));
    }
    if kind.members.is_some() {
        columns.push_str(", list INTEGER, n_members INTEGER NOT NULL DEFAULT 0");
    }
    session.batch(&format!(
        "CREATE TABLE \"k_{}\" (key INTEGER PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, sequence INTEGER NOT NULL, class INTEGER NOT NULL{columns})",
        kind.name
    ))
}

/// Creates the tables beside it: bodies, members, values of many-valued columns.
fn create_beside(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    let name = kind.name;
    if kind.members.is_some() {
        session.batch(&format!(
            "CREATE TABLE IF NOT EXISTS \"m_{name}\" (list INTEGER NOT NULL, position INTEGER NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
             CREATE UNIQUE INDEX IF NOT EXISTS \"m_{name}_list\" ON \"m_{name}\" (list, position)"
        ))?;
    }
    session.batch(&format!(
        "CREATE TABLE IF NOT EXISTS \"b_{name}\" (key INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT"
    ))?;
    for table in many_tables(kind) {
        session.batch(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (value ANY NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (value, key)) WITHOUT ROWID, STRICT"
        ))?;
    }
    Ok(())
}

/// Returns the declared type of a column. Text and instants keep their values as given; `REAL` would turn large
/// integers into floats, so numbers have no affinity.
fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Text | Type::Folded => "TEXT",
        Type::Integer | Type::Boolean | Type::Instant => "INTEGER",
        Type::Real => "NUMERIC",
    }
}

/// Columns that every narrow row has.
const OWN_COLUMNS: [&str; 5] = ["key", "id", "version", "sequence", "class"];
/// Prefix of the name of a column that is no longer declared: dropping it would rewrite every row.
const GONE: &str = "gone ";

/// Brings the tables of a kind into line with its declaration without reading a row: obsolete parts are dropped, parts
/// to be rebuilt are added empty. Returns the renamed columns that are still to be emptied.
fn reshape(session: &mut Session<'_>, changed: &Changed, parts: &Reshaped) -> Result<Vec<String>> {
    let gone = reshape_tables(session, changed, parts)?;
    let kind = changed.kind;
    know(session, kind, UNDER_WAY)?;
    if parts.links {
        pending_links::forget(session, kind.name)?;
    }
    let sql =
        format!("DELETE FROM facet_list WHERE kind = ?1 AND NOT ({})", session.flavour().in_set("facet", 2));
    let kept = parts.facets.iter().map(|it| it.name.into()).collect();
    session.execute(&sql, &[kind.name.into(), Cell::Set(kept)])?;
    Ok(gone)
}

fn reshape_tables(session: &mut Session<'_>, changed: &Changed, parts: &Reshaped) -> Result<Vec<String>> {
    let kind = changed.kind;
    drop_other_indexes(session, kind, parts)?;
    let gone = rename_other_columns(session, kind, parts)?;
    let add = |session: &mut Session<'_>, column: &str| {
        session.batch(&format!("ALTER TABLE \"k_{}\" ADD COLUMN {column}", kind.name))
    };
    for column in parts.columns.iter().filter(|it| it.arity == Arity::One) {
        add(session, &format!("\"{}\" {}", column.name, type_name(column.ty)))?;
    }
    if kind.members.is_some() && !held_columns(session, kind)?.iter().any(|it| it.0 == "list") {
        add(session, "list INTEGER")?;
        add(session, "n_members INTEGER NOT NULL DEFAULT 0")?;
    }
    let is_made = |table: &str| {
        let mut columns = kind.columns.iter().filter(|it| it.arity == Arity::Many);
        columns.any(|it| many_table(kind, it) == table && !parts.has(it.name))
    };
    for table in changed.tables.split_whitespace().filter(|it| !is_made(it)) {
        session.batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    create_beside(session, kind)?;
    Ok(gone)
}

fn drop_other_indexes(session: &mut Session<'_>, kind: &Kind, parts: &Reshaped) -> Result<()> {
    let fixed = ["id", "sequence"].map(|it| format!("i_{}_{it}", kind.name));
    let stays =
        |name: &String| fixed.contains(name) || parts.indexes.iter().any(|it| index_name(kind, it) == *name);
    let sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL";
    let found = session.all(sql, &[format!("k_{}", kind.name).as_str().into()], |row| row.text(0))?;
    found.iter().filter(|it| !stays(it)).try_for_each(|name| session.batch(&format!("DROP INDEX \"{name}\"")))
}

/// Renames columns that are obsolete or to be rebuilt; returns those that can be emptied.
fn rename_other_columns(session: &mut Session<'_>, kind: &Kind, parts: &Reshaped) -> Result<Vec<String>> {
    let found = held_columns(session, kind)?;
    let stays = |name: &str| {
        let is_list = (name == "list" || name == "n_members") && kind.members.is_some();
        let mut columns = kind.columns.iter().filter(|it| it.arity == Arity::One);
        OWN_COLUMNS.contains(&name) || is_list || columns.any(|it| it.name == name && !parts.has(name))
    };
    let mut number =
        found.iter().filter_map(|it| it.0.strip_prefix(GONE)?.parse::<u32>().ok()).max().unwrap_or(0);
    let mut gone = Vec::new();
    for (name, may_be_null) in found.iter().filter(|it| !stays(&it.0) && !it.0.starts_with(GONE)) {
        number += 1;
        let other = format!("{GONE}{number}");
        session.batch(&format!("ALTER TABLE \"k_{}\" RENAME COLUMN \"{name}\" TO \"{other}\"", kind.name))?;
        if *may_be_null {
            gone.push(other);
        }
    }
    Ok(gone)
}

/// Returns the existing columns of the narrow rows: name, and whether the value may be absent.
fn held_columns(session: &mut Session<'_>, kind: &Kind) -> Result<Vec<(String, bool)>> {
    let sql = format!("SELECT name, \"notnull\" FROM pragma_table_info('k_{}')", kind.name);
    session.all(&sql, &[], |row| Ok((row.text(0)?, row.int(1)? == 0)))
}

/// Creates the indexes that every kind has.
fn create_fixed_indexes(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    session.batch(&format!(
        "CREATE UNIQUE INDEX \"i_{0}_id\" ON \"k_{0}\" (id);
         CREATE INDEX \"i_{0}_sequence\" ON \"k_{0}\" (sequence)",
        kind.name
    ))
}

/// Bodies read in one step of [`recount`].
const STEP_ROWS: i64 = 1_000;

/// Recounts the facets of a kind after an unfinished bulk load.
pub(crate) fn recount(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    if !is_behind(session, kind.name)? {
        return Ok(());
    }
    let name = kind.name;
    tracing::info!(kind = name, "recounting after a bulk load that was interrupted");
    let sql = "DELETE FROM facet WHERE kind = ?1 AND facet NOT IN (?2, ?3)";
    session.execute(sql, &[name.into(), RECORDS.into(), CHANGES.into()])?;
    whole_lists::forget(session, kind)?;
    let sql = format!("SELECT key, body FROM \"b_{name}\" WHERE ?1 < key ORDER BY key LIMIT {STEP_ROWS}");
    let mut counters = Counters::default();
    let mut last = i64::MIN;
    loop {
        let rows = session.all(&sql, &[last.into()], |row| Ok((row.int(0)?, row.bytes(1)?)))?;
        let Some(end) = rows.last() else { break };
        last = end.0;
        for (key, body) in rows {
            let body = serde_json::from_slice(&body)
                .map_err(|error| StoreError::Damaged(format!("{name}: body of row {key}: {error}")))?;
            counters.count_lists(kind, &Taken::from(kind, &body), 1);
        }
        if STEP_LISTS < counters.n_lists() {
            counters.flush(session)?;
        }
    }
    counters.flush(session)
}

/// Number of lists that [`recount`] accumulates before it writes them.
const STEP_LISTS: usize = 100_000;
