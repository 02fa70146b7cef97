//! A tenant's tables in PostgreSQL: one schema, made from what the kinds declare.
//!
//! For a kind `x`: `k_x`, one row a record, and `m_x`, chunks of member lists. Shared by all kinds: those of the
//! embedded engine, with the counts in rows of their own for each session (`slot`), so that writers never wait
//! for each other's counts. By what the tables may be spread over machines says `distribution.rs`.

use crate::counters::Counters;
use crate::document::Document;
use crate::kind::differ_in_indexes_only;
use crate::leases;
use crate::renumber;
use crate::schema::{FORMAT, index_name};
use crate::session::Session;
use crate::statements::one_columns;
use crate::tenant::IndexShare;
use crate::users::Users;
use crate::{Index, Kind, Result, StoreError, Text};

use super::distribution;
pub(crate) use super::records::type_name;
use super::records::{Kept, insert_records, many_columns, statements};
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

/// Words are stemmed as English, none is left out, so that both engines find the same.
const SEARCH: &str = "
CREATE TEXT SEARCH DICTIONARY pinakes_stem (TEMPLATE = snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION pinakes (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION pinakes ALTER MAPPING FOR asciiword, word, numword, hword, hword_part, asciihword, hword_asciipart, hword_numpart, numhword WITH pinakes_stem;
";

/// What a tenant's tables want before they can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Lists in the making are somebody's.
    Keep,
    /// No server has the tenant open: what no record took over goes.
    All,
}

/// Brings a tenant's schema to what `kinds` declare. Servers that start at once wait for the first.
///
/// Errors: the tables were written by a newer program.
pub(super) fn apply(session: &mut PgSession, kinds: &[&'static Kind], sweep: Sweep) -> Result<()> {
    session.begin("BEGIN", None);
    session.unbounded()?;
    let result = apply_in(session, kinds, sweep);
    match result {
        Ok(()) => session.commit(None),
        Err(error) => {
            session.end();
            Err(error)
        }
    }
}

fn apply_in(pg: &mut PgSession, kinds: &[&'static Kind], sweep: Sweep) -> Result<()> {
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
    if let Some(found) = found.filter(|found| *found < FORMAT) {
        let users = if sweep == Sweep::All { Users::None } else { Users::Others };
        renumber::migrate(&mut session, kinds, &place, found, users)?;
        session.execute("UPDATE meta SET value = ?1 WHERE name = 'format'", &[FORMAT.into()])?;
    }
    leases::create_table(&mut session)?;
    for kind in kinds {
        let sql = "SELECT declaration FROM kind WHERE name = ?1";
        let known = session.first(sql, &[kind.name.into()], |row| row.text(0))?;
        match known {
            Some(declaration) if declaration == kind.declaration() => continue,
            // Indexes are made afterwards, beside readers and writers.
            Some(declaration) if differ_in_indexes_only(&declaration, &kind.declaration()) => {}
            Some(_) => remake(&mut session, kind)?,
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
    }
}

/// Makes the declared indexes that are missing and drops those that no declaration asks for any more, while
/// others read and write. One server does; others go on without.
pub(super) fn bring_indexes(pg: &mut PgSession, kinds: &[&'static Kind]) -> Result<()> {
    pg.begin_none();
    let lock = "SELECT CASE WHEN pg_try_advisory_lock(hashtextextended(current_schema() || '/indexes', 0)) THEN 1::bigint ELSE 0 END";
    if Session::Postgres(pg).first(lock, &[], |row| row.int(0))? != Some(1) {
        return Ok(());
    }
    pg.unbounded()?;
    for kind in kinds {
        bring_indexes_of(&mut Session::Postgres(pg), kind)?;
    }
    pg.begin_none();
    pg.batch("RESET statement_timeout; RESET lock_timeout")?;
    pg.batch("SELECT pg_advisory_unlock(hashtextextended(current_schema() || '/indexes', 0))")
}

fn bring_indexes_of(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    let sql = "SELECT c.relname::text, CASE WHEN i.indisvalid THEN 1::bigint ELSE 0 END FROM pg_index i \
               JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass(?1)";
    let table = format!("\"k_{}\"", kind.name);
    let found = session.all(sql, &[table.as_str().into()], |row| Ok((row.text(0)?, row.int(1)? == 1)))?;
    let declared = indexes(kind);
    let fixed = ["id", "key", "sequence"].map(|it| short(&format!("i_{}_{it}", kind.name)));
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
    // First the mark, then the members: a write of a dead server may still end in taking the list over.
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
        session.batch(&format!(
            "CREATE TABLE IF NOT EXISTS \"m_{name}\" (list bigint NOT NULL, position bigint NOT NULL, n bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (list, position));
             ALTER TABLE \"m_{name}\" ALTER body SET STORAGE EXTERNAL"
        ))?;
    }
    columns.push_str(", body bytea NOT NULL");
    if kind.text != Text::None {
        columns.push_str(", words tsvector");
    }
    session.batch(&format!(
        "CREATE TABLE \"k_{name}\" (key bigint NOT NULL, id text COLLATE \"C\" NOT NULL, version bigint NOT NULL, sequence bigint NOT NULL, class bigint NOT NULL{columns}, CONSTRAINT \"{id}\" PRIMARY KEY (id));
         ALTER TABLE \"k_{name}\" ALTER body SET STORAGE EXTERNAL;{words}
         CREATE INDEX \"{key}\" ON \"k_{name}\" (key);
         CREATE INDEX \"{sequence}\" ON \"k_{name}\" (sequence)",
        // Lists of different words hardly shrink: trying costs more than storing them.
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

fn collation(column: &crate::Column) -> &'static str {
    if matches!(column.ty, crate::Type::Text | crate::Type::Folded) { " COLLATE \"C\"" } else { "" }
}

/// A name within the engine's 63 bytes.
fn short(name: &str) -> String {
    const NAME_BYTES_MAX: usize = 63;
    if name.len() <= NAME_BYTES_MAX {
        return name.to_owned();
    }
    let hash = name_hash(name);
    format!("{}_{hash:016x}", name.chars().take(40).collect::<String>())
}

/// 63 bits of a name, by which a long one is told from others.
fn name_hash(name: &str) -> i64 {
    (crate::document::fnv(name.as_bytes(), 0) >> 1).max(1).cast_signed()
}

/// Makes the indexes that queries use; those that exist stay. Each ends in the key, which orders ties.
pub(crate) fn create_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for (name, definition) in indexes(kind) {
        session.batch(&definition.replace("{name}", &name))?;
    }
    Ok(())
}

/// Makes some of them.
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

/// Takes the declared indexes away, for a bulk load.
pub(crate) fn drop_indexes(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    for (name, _) in indexes(kind) {
        session.batch(&format!("DROP INDEX IF EXISTS \"{name}\""))?;
    }
    Ok(())
}

/// (name, definition) of each index, the name's place in the definition marked.
fn indexes(kind: &'static Kind) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for index in kind.indexes {
        let name = index_name(kind, index);
        let name = if index.uniqueness.refuses() { format!("u{name}") } else { name };
        list.push((short(&name), ordered(kind, index)));
    }
    for (_, column) in many_columns(kind) {
        let name = short(&format!("x_{}_{}", kind.name, column.name));
        list.push((
            name,
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

/// Makes everything that the declaration of a kind governs anew from the bodies. Classes stay: what a server
/// knows of them never becomes untrue.
fn remake(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    let name = kind.name;
    let old = session.all(
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = ?1",
        &[format!("k_{name}").as_str().into()],
        |row| row.text(0),
    )?;
    let key = short(&format!("i_{name}_key"));
    session.batch(&format!(
        "ALTER TABLE \"k_{name}\" RENAME TO \"old_{name}\"; ALTER TABLE \"old_{name}\" DROP CONSTRAINT \"{}\"",
        short(&format!("i_{name}_id"))
    ))?;
    for index in old.iter().filter(|it| **it != key && !it.ends_with("_id")) {
        session.batch(&format!("DROP INDEX IF EXISTS \"{index}\""))?;
    }
    session.batch(&format!("ALTER INDEX \"{key}\" RENAME TO \"old_key_{}\"", name_hash(name)))?;
    for sql in [
        "DELETE FROM facet WHERE kind = ?1 AND facet <> '*'",
        "DELETE FROM identifier WHERE kind = ?1",
        "DELETE FROM link WHERE kind = ?1",
    ] {
        session.execute(sql, &[name.into()])?;
    }
    session.execute("UPDATE facet SET n = n + 1 WHERE kind = ?1 AND facet = '*'", &[name.into()])?;
    create_table(session, kind)?;
    refill(session, kind)?;
    session.batch(&format!("DROP TABLE \"old_{name}\""))?;
    create_indexes(session, kind)
}

/// Rows taken over in one step.
const STEP_ROWS: usize = 500;

fn refill(session: &mut Session<'_>, kind: &'static Kind) -> Result<()> {
    let name = kind.name;
    let sql = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(?1) AND attname = 'list' AND NOT attisdropped";
    let had_list = session.first(sql, &[format!("\"old_{name}\"").as_str().into()], |_| Ok(()))?.is_some();
    let list = if had_list && kind.members.is_some() {
        ", o.list, o.n_members"
    } else {
        ", NULL::bigint, 0::bigint"
    };
    let sql = format!(
        "SELECT o.key, o.id, o.version, o.sequence, o.body{list} FROM \"old_{name}\" o WHERE ?1 < o.key ORDER BY o.key LIMIT {STEP_ROWS}"
    );
    let statements = statements(kind);
    let mut counters = Counters::default();
    let mut last = i64::MIN;
    loop {
        let rows = session.all(&sql, &[last.into()], |row| {
            let (key, version, sequence) = (row.int(0)?, row.int(2)?, row.int(3)?);
            let kept = Kept { key: Some(key), version, sequence: Some(sequence) };
            let list = row
                .optional_int(5)?
                .map(|list| (crate::ListId(list), row.int(6).unwrap_or(0).cast_unsigned()));
            Ok((key, kept, row.text(1)?, row.bytes(4)?, list))
        })?;
        let Some(end) = rows.last() else { break };
        last = end.0;
        let (mut documents, mut kept) = (Vec::new(), Vec::new());
        for (_, head, id, bytes, list) in rows {
            let mut document = Document::stored(kind, id, bytes)?;
            document.list = list;
            ensure_class(session, kind, &document)?;
            counters.count(kind, &document.taken, 1);
            documents.push(document);
            kept.push(Some(head));
        }
        if let Session::Postgres(pg) = session {
            insert_records(pg, &statements, &documents.iter().collect::<Vec<_>>(), &kept)?;
        }
    }
    counters.flush(session)
}

/// Stores a class inside the migration, which no writer runs beside.
fn ensure_class(session: &mut Session<'_>, kind: &Kind, document: &Document) -> Result<()> {
    session.execute(
        super::ADD_CLASS,
        &[kind.name.into(), document.taken.class.0.into(), (&*document.taken.class_text).into()],
    )?;
    Ok(())
}
