//! A tenant's tables in PostgreSQL: one schema, created from the declarations of kinds.
//!
//! For a kind `x`: `k_x` has one row per record, `m_x` chunks of member lists. Shared by all kinds: those of the
//! embedded engine, with the counts in separate rows for each session (`slot`), so that writers never wait for each
//! other's counts. `distribution.rs` says by which column each table can be distributed over machines.

use std::time::Duration;

use crate::columns::{index_name, one_columns};
use crate::format::FORMAT;
use crate::kind::IndexShare;
use crate::lease_table;
use crate::remake::{self, Changed, Remake, Reshaped, UNDER_WAY};
use crate::renumber;
use crate::session::Session;
use crate::users::Users;
use crate::{Arity, Column, Index, Kind, Result, StoreError, Text};

use super::distribution;
use super::records::many_columns;
pub(crate) use super::records::type_name;
use super::session::PgSession;

const BASE: &str = "
CREATE TABLE IF NOT EXISTS meta (name text COLLATE \"C\" PRIMARY KEY, value bigint NOT NULL, text text);
CREATE TABLE IF NOT EXISTS kind (name text COLLATE \"C\" PRIMARY KEY, declaration text NOT NULL);
CREATE TABLE IF NOT EXISTS class (kind text COLLATE \"C\" NOT NULL, class bigint NOT NULL, row bigint NOT NULL, fields text NOT NULL, PRIMARY KEY (kind, class));
CREATE TABLE IF NOT EXISTS facet (kind text COLLATE \"C\" NOT NULL, facet text COLLATE \"C\" NOT NULL, class bigint NOT NULL, value text COLLATE \"C\" NOT NULL, slot bigint NOT NULL, n bigint NOT NULL, PRIMARY KEY (kind, facet, class, value, slot)) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS identifier (scheme text COLLATE \"C\" NOT NULL, value text COLLATE \"C\" NOT NULL, kind text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, PRIMARY KEY (scheme, value, kind, id));
CREATE INDEX IF NOT EXISTS identifier_record ON identifier (kind, id);
CREATE TABLE IF NOT EXISTS link (to_kind text COLLATE \"C\" NOT NULL, target text COLLATE \"C\" NOT NULL, relation text COLLATE \"C\" NOT NULL, kind text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, PRIMARY KEY (to_kind, target, relation, kind, id));
CREATE INDEX IF NOT EXISTS link_record ON link (kind, id);
CREATE TABLE IF NOT EXISTS tombstone (sequence bigint NOT NULL, kind text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL, PRIMARY KEY (sequence, kind, id));
CREATE INDEX IF NOT EXISTS tombstone_kind ON tombstone (kind, sequence);
CREATE TABLE IF NOT EXISTS staging (kind text COLLATE \"C\" NOT NULL, list bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (kind, list));
CREATE SEQUENCE IF NOT EXISTS keys;
CREATE SEQUENCE IF NOT EXISTS lists;
";

/// Words are stemmed as English and there are no stop words, so that both engines find the same.
const SEARCH: &str = "
CREATE TEXT SEARCH DICTIONARY pinakes_stem (TEMPLATE = snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION pinakes (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION pinakes ALTER MAPPING FOR asciiword, word, numword, hword, hword_part, asciihword, hword_asciipart, hword_numpart, numhword WITH pinakes_stem;
";

/// Which staged lists to delete when a tenant is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// None: staged lists may belong to a running server.
    Keep,
    /// All: no server has the tenant open, so no record will take them over.
    All,
}

/// Lock timeout for a table whose columns or indexes change: other users of the table wait meanwhile as well.
const TABLE_WAIT: &str = "SET LOCAL lock_timeout = '2s'";
const NO_TABLE_WAIT: &str = "SET LOCAL lock_timeout = 0";
/// Pause before the next attempt, during which others are served.
const TABLE_PAUSE: Duration = Duration::from_secs(1);
/// The error code for a lock timeout.
pub(super) const LOCK_TIMEOUT: &str = "55P03";

/// Brings a tenant's schema into line with `kinds`. Servers that start at the same time wait for the first. Returns the
/// kinds that are being rebuilt, and how often declarations have changed.
///
/// Errors: the tables were written by a newer program.
pub(super) fn apply(session: &mut PgSession, kinds: &[&'static Kind], sweep: Sweep) -> Result<Applied> {
    loop {
        session.begin("BEGIN", None);
        session.unbounded()?;
        let result = apply_in(session, kinds, sweep);
        match result {
            Ok(applied) => return session.commit(None).map(|()| applied),
            Err(error) => {
                session.end();
                match error {
                    StoreError::Postgres { code, .. } if code == LOCK_TIMEOUT => {
                        tracing::info!(
                            schema = session.schema,
                            "a table to be changed is in use; the change will be retried"
                        );
                        std::thread::sleep(TABLE_PAUSE);
                    }
                    error => return Err(error),
                }
            }
        }
    }
}

/// The result of [`apply`].
type Applied = (Vec<(&'static Kind, Remake)>, i64);

fn apply_in(pg: &mut PgSession, kinds: &[&'static Kind], sweep: Sweep) -> Result<Applied> {
    pg.batch("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '/migration', 0))")?;
    let place = format!("schema {}", pg.schema);
    let mut session = Session::Postgres(pg);
    let is_new = session
        .first(
            "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'meta'",
            &[],
            |_| Ok(()),
        )?
        .is_none();
    if is_new {
        session.batch(BASE)?;
        session.batch(SEARCH)?;
        session.execute("INSERT INTO meta (name, value) VALUES ('format', ?1)", &[FORMAT.into()])?;
    }
    let found = session.first("SELECT value FROM meta WHERE name = 'format'", &[], |row| row.int(0))?;
    if let Some(found) = found.filter(|found| FORMAT < *found) {
        return Err(StoreError::Newer { place, found, known: FORMAT });
    }
    let users = if sweep == Sweep::All { Users::None } else { Users::Others };
    if let Some(found) = found.filter(|found| *found < FORMAT) {
        renumber::migrate(&mut session, kinds, &place, found, users)?;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'format'", &[FORMAT.into()])?;
    }
    lease_table::create_table(&mut session)?;
    let mut under_way = Vec::new();
    for kind in kinds {
        let sql = "SELECT declaration FROM kind WHERE name = ?1";
        let known = session.first(sql, &[kind.name.into()], |row| row.text(0))?;
        match known {
            Some(declaration) if declaration == kind.declaration() => continue,
            Some(declaration) => {
                let changed = Changed { kind, declaration, tables: String::new() };
                if under_way.is_empty() {
                    keep_writers_out(&mut session)?;
                }
                under_way.push((*kind, remake::begin(&mut session, &changed, reshape)?));
                continue;
            }
            None => {
                create_table(&mut session, kind)?;
                create_indexes(&mut session, kind)?;
            }
        }
        let sql = "INSERT INTO kind (name, declaration) VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET declaration = excluded.declaration";
        session.execute(sql, &[kind.name.into(), kind.declaration().as_str().into()])?;
    }
    distribution::declare(&mut session, kinds)?;
    match sweep {
        Sweep::All => sweep_lists(&mut session, "TRUE"),
        Sweep::Keep => sweep_lists(&mut session, "since < now() - interval '1 day'"),
    }?;
    let declared = remake::declared(&mut session)?;
    Ok((under_way, declared))
}

/// Waits for all running writes, which follow the former declarations; later ones see that these have changed.
fn keep_writers_out(session: &mut Session<'_>) -> Result<()> {
    session.batch(&format!("{TABLE_WAIT}; LOCK TABLE kind IN EXCLUSIVE MODE; {NO_TABLE_WAIT}"))
}

/// Builds the missing declared indexes and drops those no longer declared, while others read and write. One server does
/// this; others go on without.
pub(super) fn bring_indexes(pg: &mut PgSession, kinds: &[&'static Kind]) -> Result<()> {
    pg.begin_none();
    let lock = "SELECT CASE WHEN pg_try_advisory_lock(hashtextextended(current_schema() || '/indexes', 0)) THEN 1::bigint ELSE 0 END";
    if Session::Postgres(pg).first(lock, &[], |row| row.int(0))? != Some(1) {
        return Ok(());
    }
    pg.unbounded()?;
    let brought = kinds.iter().try_for_each(|kind| bring_indexes_of(&mut Session::Postgres(pg), kind));
    pg.begin_none();
    pg.batch("RESET statement_timeout; RESET lock_timeout")?;
    pg.batch("SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/indexes', 0))")?;
    brought
}

fn bring_indexes_of(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    let sql = "SELECT c.relname::text, CASE WHEN i.indisvalid THEN 1::bigint ELSE 0 END FROM pg_index i \
               JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass(?1)";
    let table = format!("\"k_{}\"", kind.name);
    let found = session.all(sql, &[table.as_str().into()], |row| Ok((row.text(0)?, row.int(1)? == 1)))?;
    let declared = indexes(kind);
    let fixed = fixed_indexes(kind);
    for (name, is_valid) in &found {
        let is_wanted = fixed.contains(name) || declared.iter().any(|it| it.0 == *name);
        if !is_wanted || !is_valid {
            session.batch(&format!("DROP INDEX CONCURRENTLY IF EXISTS \"{name}\""))?;
        }
    }
    for (name, definition) in declared {
        if !found.contains(&(name.clone(), true)) {
            let definition = definition.replace("{name}", &name).replace("INDEX IF", "INDEX CONCURRENTLY IF");
            session.batch(&definition)?;
        }
    }
    Ok(())
}

fn sweep_lists(session: &mut Session<'_>, which: &str) -> Result<()> {
    // First the mark, then the members: a write of a dead server may still succeed in taking the list over.
    let sql = format!("DELETE FROM staging WHERE {which} RETURNING kind, list");
    let left = session.all(&sql, &[], |row| Ok((row.text(0)?, row.int(1)?)))?;
    for (kind, list) in left {
        session.execute(&format!("DELETE FROM \"m_{kind}\" WHERE list = ?1"), &[list.into()])?;
    }
    Ok(())
}

fn create_table(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    let name = kind.name;
    let mut columns = String::new();
    for column in one_columns(kind) {
        columns.push_str(&format!(", \"{}\" {}{}", column.name, type_name(column.ty), collation(column)));
    }
    for (_, column) in many_columns(kind) {
        columns.push_str(&format!(
            ", \"{}\" {}[]{} NOT NULL",
            column.name,
            type_name(column.ty),
            collation(column)
        ));
    }
    if kind.members.is_some() {
        columns.push_str(", list bigint, n_members bigint NOT NULL DEFAULT 0");
    }
    create_members(session, kind)?;
    columns.push_str(", body bytea NOT NULL");
    if kind.text != Text::None {
        columns.push_str(", words tsvector");
    }
    session.batch(&format!(
        "CREATE TABLE \"k_{name}\" (key bigint NOT NULL, id text COLLATE \"C\" NOT NULL, version bigint NOT NULL, sequence bigint NOT NULL, class bigint NOT NULL{columns}, CONSTRAINT \"{id}\" PRIMARY KEY (id));
         ALTER TABLE \"k_{name}\" ALTER body SET STORAGE EXTERNAL;{words}
         CREATE INDEX \"{key}\" ON \"k_{name}\" (key);
         CREATE INDEX \"{sequence}\" ON \"k_{name}\" (sequence)",
        // Lists of distinct words hardly compress: trying costs more than storing them.
        words = if kind.text == Text::None {
            String::new()
        } else {
            format!(" ALTER TABLE \"k_{name}\" ALTER words SET STORAGE EXTERNAL;")
        },
        id = short(&format!("i_{name}_id")),
        key = short(&format!("i_{name}_key")),
        sequence = short(&format!("i_{name}_sequence")),
    ))
}

/// Creates the table of a kind's members, if it has any.
fn create_members(session: &mut Session<'_>, kind: &Kind) -> Result<()> {
    if kind.members.is_none() {
        return Ok(());
    }
    session.batch(&format!(
        "CREATE TABLE IF NOT EXISTS \"m_{0}\" (list bigint NOT NULL, position bigint NOT NULL, n bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (list, position));
         ALTER TABLE \"m_{0}\" ALTER body SET STORAGE EXTERNAL",
        kind.name
    ))
}

fn collation(column: &Column) -> &'static str {
    if matches!(column.ty, crate::Type::Text | crate::Type::Folded) { " COLLATE \"C\"" } else { "" }
}

/// Shortens a name to the engine's 63 bytes.
fn short(name: &str) -> String {
    const NAME_BYTES_MAX: usize = 63;
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let hash = name_hash(name);
    format!("{}_{hash:016x}", name.chars().take(40).collect::<String>())
}

/// Returns 63 bits of hash, which distinguish a shortened name from others.
fn name_hash(name: &str) -> i64 {
    (crate::document::fnv(name.as_bytes(), 0) >> 1).max(1).cast_signed()
}

/// Creates the missing indexes that queries use. Each ends in the key, which orders ties.
pub(crate) fn create_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for (name, definition) in indexes(kind) {
        session.batch(&definition.replace("{name}", &name))?;
    }
    Ok(())
}

/// Creates a part of them.
pub(crate) fn create_share(session: &mut Session<'_>, kind: &'static Kind, share: IndexShare) -> Result<()> {
    let words = words_index(kind);
    for (name, definition) in indexes(kind) {
        let own = if name == words { IndexShare::Words } else { IndexShare::Others };
        if own == share {
            session.batch(&definition.replace("{name}", &name))?;
        }
    }
    Ok(())
}

fn words_index(kind: &Kind) -> String {
    short(&format!("t_{}", kind.name))
}

/// Drops the declared indexes, for a bulk load.
pub(crate) fn drop_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for (name, _) in indexes(kind) {
        session.batch(&format!("DROP INDEX IF EXISTS \"{name}\""))?;
    }
    Ok(())
}

/// Returns (name, definition) of each index, with a placeholder for the name in the definition.
fn indexes(kind: &'static Kind) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for index in kind.indexes {
        list.push((short(&declared_name(kind, index)), ordered(kind, index)));
    }
    for (_, column) in many_columns(kind) {
        list.push((
            many_index(kind, column),
            format!(
                "CREATE INDEX IF NOT EXISTS \"{{name}}\" ON \"k_{}\" USING gin (\"{}\")",
                kind.name, column.name
            ),
        ));
    }
    if kind.text != Text::None {
        list.push((
            words_index(kind),
            format!("CREATE INDEX IF NOT EXISTS \"{{name}}\" ON \"k_{}\" USING gin (words)", kind.name),
        ));
    }
    list
}

fn ordered(kind: &Kind, index: &Index) -> String {
    let mut columns: Vec<String> =
        index.columns.iter().map(|name| format!("\"{name}\" NULLS FIRST")).collect();
    let unique = if index.uniqueness.refuses() { "UNIQUE " } else { "" };
    if !index.uniqueness.refuses() {
        columns.push("key".to_owned());
    }
    format!(
        "CREATE {unique}INDEX IF NOT EXISTS \"{{name}}\" ON \"k_{}\" ({}){}",
        kind.name,
        columns.join(", "),
        index.uniqueness.condition_sql()
    )
}

/// Brings the table of a kind into line with its declaration without reading a row: columns that are obsolete or to be
/// rebuilt are dropped, those to be rebuilt are added empty. No column is left to be emptied.
fn reshape(session: &mut Session<'_>, changed: &Changed, parts: &Reshaped) -> Result<Vec<String>> {
    let kind = changed.kind;
    let table = format!("\"k_{}\"", kind.name);
    session.batch(TABLE_WAIT)?;
    let fixed = fixed_indexes(kind);
    let stays = |name: &String| {
        let many = many_columns(kind).filter(|it| !parts.columns.iter().any(|made| made.name == it.1.name));
        fixed.contains(name)
            || parts.indexes.iter().any(|it| short(&declared_name(kind, it)) == *name)
            || many.into_iter().any(|it| many_index(kind, it.1) == *name)
            || (!parts.drops_words && words_index(kind) == *name)
    };
    let sql = "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass(?1)";
    let found = session.all(sql, &[table.as_str().into()], |row| row.text(0))?;
    for name in found.iter().filter(|it| !stays(it)) {
        session.batch(&format!("DROP INDEX \"{name}\""))?;
    }
    let sql = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(?1) AND 0 < attnum AND NOT attisdropped";
    let held = session.all(sql, &[table.as_str().into()], |row| row.text(0))?;
    let is_new = |name: &str| parts.columns.iter().any(|it| it.name == name);
    for name in &held {
        let stays = match name.as_str() {
            "key" | "id" | "version" | "sequence" | "class" | "body" => true,
            "list" | "n_members" => kind.members.is_some(),
            "words" => !parts.drops_words,
            name => kind.column_named(name).is_some() && !is_new(name),
        };
        if !stays {
            session.batch(&format!("ALTER TABLE {table} DROP COLUMN \"{name}\""))?;
        }
    }
    for column in &parts.columns {
        let (name, ty, collation) = (column.name, type_name(column.ty), collation(column));
        session.batch(&match column.arity {
            Arity::One => format!("ALTER TABLE {table} ADD COLUMN \"{name}\" {ty}{collation}"),
            Arity::Many => format!(
                "ALTER TABLE {table} ADD COLUMN \"{name}\" {ty}[]{collation} NOT NULL DEFAULT '{{}}'; \
                 ALTER TABLE {table} ALTER COLUMN \"{name}\" DROP DEFAULT"
            ),
        })?;
    }
    if kind.members.is_some() && !held.iter().any(|it| it == "list") {
        session.batch(&format!(
            "ALTER TABLE {table} ADD COLUMN list bigint, ADD COLUMN n_members bigint NOT NULL DEFAULT 0"
        ))?;
    }
    create_members(session, kind)?;
    if parts.words {
        session.batch(&format!(
            "ALTER TABLE {table} ADD COLUMN words tsvector; ALTER TABLE {table} ALTER words SET STORAGE EXTERNAL"
        ))?;
    }
    session.batch(NO_TABLE_WAIT)?;
    let sql = "INSERT INTO kind (name, declaration) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET declaration = excluded.declaration";
    session.execute(sql, &[kind.name.into(), UNDER_WAY.into()])?;
    Ok(Vec::new())
}

/// Returns whether all declared indexes exist and are valid.
pub(crate) fn has_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<bool> {
    let sql = "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
               WHERE i.indrelid = to_regclass(?1) AND i.indisvalid";
    let found = session.all(sql, &[format!("\"k_{}\"", kind.name).as_str().into()], |row| row.text(0))?;
    Ok(indexes(kind).iter().all(|it| found.contains(&it.0)))
}

/// Returns the indexes that every kind has.
fn fixed_indexes(kind: &Kind) -> [String; 3] {
    ["id", "key", "sequence"].map(|it| short(&format!("i_{}_{it}", kind.name)))
}

fn declared_name(kind: &Kind, index: &Index) -> String {
    let name = index_name(kind, index);
    if index.uniqueness.refuses() { format!("u{name}") } else { name }
}

fn many_index(kind: &Kind, column: &Column) -> String {
    short(&format!("x_{}_{}", kind.name, column.name))
}
