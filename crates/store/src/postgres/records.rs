//! The statements that write records: one statement per record, whatever the record has.
//!
//! A record is one row: its columns, its lists of values as arrays with GIN indexes, its body, its words as a
//! `tsvector`. Its identifiers and links are rows of tables shared by all kinds, written by the same statement. The
//! row's only unique key is the id, so that an engine that distributes tables over machines can do so by id; kinds with
//! unique indexes of their own stay on one machine.

use tokio_postgres::types::Type as PgType;

use super::session::PgSession;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::{Document, Taken};
use crate::kind_statements::{KindStatements, STEP_CHUNKS};
use crate::row::Row;
use crate::{Arity, Column, Kind, Record, Result, StoreError, Text, Type};

/// The sequence number of a change: the number of its transaction. Followers see changes up to the oldest running
/// transaction, so none appears late.
pub(crate) const SEQUENCE: &str = "pg_current_xact_id()::text::bigint";

/// The result of writing a record: version, sequence number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) version: i64,
    pub(crate) sequence: i64,
}

/// The parts that an existing record keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    /// `None` for a new one.
    pub(crate) key: Option<i64>,
    pub(crate) version: i64,
    /// `None` for the transaction's own.
    pub(crate) sequence: Option<i64>,
}

/// Maximum size of an index entry: a third of a page, less the other data of the entry. Compression is not considered:
/// whether a text is refused should not depend on it.
const INDEXED_BYTES: usize = 2_500;

/// Checks text lengths. Errors: an indexed text is longer than an index of this engine can hold.
pub(super) fn check_lengths(document: &Document) -> Result<()> {
    let (kind, taken) = (document.kind, &document.taken);
    let is_indexed = |name: &str| kind.indexes.iter().any(|it| it.columns.contains(&name));
    let single = one_columns(kind).zip(&taken.cells).filter(|(it, _)| is_indexed(it.name));
    let single = single.map(|(column, cell)| (column.path, cell));
    let many = taken.many.iter().map(|(index, cell)| (kind.columns[*index].path, cell));
    let columns = single.chain(many).filter_map(|(path, cell)| match cell {
        Cell::Text(text) => Some((path, text.len())),
        _ => None,
    });
    let counted = taken.counted.iter().flat_map(|(index, list)| {
        let path = kind.facets[*index].path;
        list.values().map(move |it| (path, it.len()))
    });
    let identifiers = taken.identifiers.iter().map(|(scheme, it)| (*scheme, it.len() + document.id.len()));
    let links = taken.links.iter().map(|(relation, _, it)| (*relation, it.len() + document.id.len()));
    let all = columns.chain(counted).chain(identifiers).chain(links).chain([("id", document.id.len())]);
    match all.into_iter().find(|it| INDEXED_BYTES < it.1) {
        None => Ok(()),
        Some((path, n_bytes)) => Err(StoreError::Query(format!(
            "{} {:?}: a text in {path} has {n_bytes} bytes; PostgreSQL indexes {INDEXED_BYTES} at most, shorten it",
            kind.name,
            document.id.chars().take(SHOWN_CHARS).collect::<String>()
        ))),
    }
}

/// Number of characters of an id shown in an error.
const SHOWN_CHARS: usize = 200;

/// Returns the statements of a kind for this engine.
pub(crate) fn statements(kind: &'static Kind) -> KindStatements {
    let name = kind.name;
    let list = if kind.members.is_some() { ", r.list, r.n_members" } else { "" };
    let records =
        format!("SELECT r.key, r.id, r.version, r.sequence, r.class, r.body{list} FROM \"k_{name}\" r");
    let record = |condition: &str| format!("{records} WHERE {condition}");
    KindStatements {
        insert_row: insert(kind),
        insert_body: String::new(),
        update_row: update(kind, ""),
        update_row_and_list: update(kind, "list"),
        update_body: String::new(),
        delete_row: delete(kind),
        delete_body: String::new(),
        by_id: record("r.id = ?1"),
        by_ids: record("r.id = ANY(?1)"),
        by_key: record("r.key = ANY(?1)"),
        records: records.clone(),
        has: format!("SELECT 1 FROM \"k_{name}\" r WHERE r.id = ?1"),
        insert_many: Vec::new(),
        delete_many: Vec::new(),
        // Only while the list is staged: one that was swept meanwhile gets no more members.
        insert_members: format!(
            "INSERT INTO \"m_{name}\" (list, position, n, body) SELECT ?1::bigint, ?2::bigint, ?3::bigint, ?4::bytea \
             FROM staging WHERE kind = '{name}' AND list = ?1 FOR KEY SHARE"
        ),
        members: format!(
            "SELECT position, n, body FROM \"m_{name}\" WHERE list = ?1 AND ?2 < position + n AND position >= \
             coalesce((SELECT max(position) FROM \"m_{name}\" WHERE list = ?1 AND position <= ?2), 0) \
             ORDER BY position LIMIT {STEP_CHUNKS}"
        ),
        members_of_lists: format!(
            "SELECT list, position, n, body FROM \"m_{name}\" WHERE list = ANY(?1) ORDER BY list, position"
        ),
        delete_members: format!("DELETE FROM \"m_{name}\" WHERE list = ?1"),
    }
}

/// Returns the columns of a kind that hold lists of values.
pub(super) fn many_columns(kind: &'static Kind) -> impl Iterator<Item = (usize, &'static Column)> {
    kind.columns.iter().enumerate().filter(|(_, it)| it.arity == Arity::Many)
}

/// Parameter numbers, assigned in order.
struct Marks(usize);

impl Marks {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("?{}", self.0)
    }
}

fn words(mark: &str) -> String {
    format!("to_tsvector('pinakes', {mark})")
}

/// Returns the statement that inserts a record. Parameters: key or NULL, id, version, sequence or NULL, class, columns,
/// lists of values, list and length, body, words, then identifiers and links. It returns no row when the id or a unique
/// value is taken.
fn insert(kind: &'static Kind) -> String {
    let name = kind.name;
    let mut marks = Marks(0);
    let mut names =
        vec!["key", "id", "version", "sequence", "class"].into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut values = vec![
        format!("coalesce({}, nextval('keys'))", marks.next()),
        marks.next(),
        marks.next(),
        format!("coalesce({}, {SEQUENCE})", marks.next()),
        marks.next(),
    ];
    for column in one_columns(kind).chain(many_columns(kind).map(|it| it.1)) {
        names.push(format!("\"{}\"", column.name));
        values.push(marks.next());
    }
    if kind.members.is_some() {
        names.extend(["list".to_owned(), "n_members".to_owned()]);
        values.extend([marks.next(), marks.next()]);
    }
    names.push("body".to_owned());
    values.push(marks.next());
    if kind.text != Text::None {
        names.push("words".to_owned());
        values.push(words(&marks.next()));
    }
    let mut parts = vec![format!(
        "r AS (INSERT INTO \"k_{name}\" ({}) VALUES ({}) ON CONFLICT DO NOTHING RETURNING version, sequence)",
        names.join(", "),
        values.join(", ")
    )];
    if !kind.identifiers.is_empty() {
        let (scheme, value) = (marks.next(), marks.next());
        parts.push(format!(
            "i AS (INSERT INTO identifier (scheme, value, kind, id) SELECT u.scheme, u.value, '{name}', ?2 \
             FROM r, unnest({scheme}::text[], {value}::text[]) u (scheme, value) ON CONFLICT DO NOTHING)"
        ));
    }
    if !kind.links.is_empty() {
        let (relation, to, target) = (marks.next(), marks.next(), marks.next());
        parts.push(format!(
            "l AS (INSERT INTO link (to_kind, target, relation, kind, id) SELECT u.to_kind, u.target, u.relation, '{name}', ?2 \
             FROM r, unnest({relation}::text[], {to}::text[], {target}::text[]) u (relation, to_kind, target) ON CONFLICT DO NOTHING)"
        ));
    }
    format!("WITH {} SELECT version, sequence FROM r", parts.join(", "))
}

/// Returns the statement that updates a record. Parameters: key, class, columns, lists of values, with `list` list and
/// length, body, words.
fn update(kind: &'static Kind, list: &str) -> String {
    let mut marks = Marks(1);
    let mut sets = vec!["version = version + 1".to_owned(), format!("sequence = {SEQUENCE}")];
    sets.push(format!("class = {}", marks.next()));
    for column in one_columns(kind).chain(many_columns(kind).map(|it| it.1)) {
        sets.push(format!("\"{}\" = {}", column.name, marks.next()));
    }
    if !list.is_empty() {
        sets.extend([format!("list = {}", marks.next()), format!("n_members = {}", marks.next())]);
    }
    sets.push(format!("body = {}", marks.next()));
    if kind.text != Text::None {
        sets.push(format!("words = {}", words(&marks.next())));
    }
    format!("UPDATE \"k_{}\" SET {} WHERE key = ?1 RETURNING version, sequence", kind.name, sets.join(", "))
}

/// Returns the statement that deletes a record. Parameters: key, id.
fn delete(kind: &'static Kind) -> String {
    let name = kind.name;
    let mut parts = vec![format!("r AS (DELETE FROM \"k_{name}\" WHERE key = ?1 RETURNING key)")];
    if !kind.identifiers.is_empty() {
        parts.push(format!("i AS (DELETE FROM identifier WHERE kind = '{name}' AND id = ?2)"));
    }
    if !kind.links.is_empty() {
        parts.push(format!("l AS (DELETE FROM link WHERE kind = '{name}' AND id = ?2)"));
    }
    format!(
        "WITH {} INSERT INTO tombstone (sequence, kind, id) SELECT {SEQUENCE}, '{name}', ?2 FROM r",
        parts.join(", ")
    )
}

/// Inserts a record; `None` when its id or a unique value is taken.
pub(crate) fn insert_record(
    session: &mut PgSession,
    statements: &KindStatements,
    document: &Document,
    kept: Option<Kept>,
) -> Result<Option<Placed>> {
    check_lengths(document)?;
    let mut placed = None;
    session.rows(&statements.insert_row, &insert_values(document, kept)?, |row| {
        placed = Some(place(&row)?);
        Ok(std::ops::ControlFlow::Break(()))
    })?;
    if placed.is_some() {
        note(session, document);
    }
    Ok(placed)
}

/// Records what the transaction wrote, by which it can be recognised later.
pub(super) fn note(session: &mut PgSession, document: &Document) {
    session.mark.written = Some((document.kind.name, document.id.clone()));
}

/// Deletes a record; leaves a tombstone.
pub(crate) fn delete_record(
    session: &mut PgSession,
    statements: &KindStatements,
    record: &Record,
    kind: &'static Kind,
) -> Result<()> {
    session.execute(&statements.delete_row, &[record.key.into(), record.id.as_str().into()])?;
    session.mark.written = Some((kind.name, record.id.clone()));
    Ok(())
}

/// Inserts many records in one flight; `None` for each whose id or unique value is taken.
pub(crate) fn insert_records(
    session: &mut PgSession,
    statements: &KindStatements,
    documents: &[&Document],
    kept: &[Option<Kept>],
) -> Result<Vec<Option<Placed>>> {
    let lists: Vec<Vec<Cell>> = documents
        .iter()
        .enumerate()
        .map(|(index, document)| insert_values(document, kept.get(index).copied().flatten()))
        .collect::<Result<_>>()?;
    let placed = session.many(&statements.insert_row, &lists, |row| place(&row))?;
    if let Some((last, _)) = documents.iter().zip(&placed).rfind(|it| it.1.is_some()) {
        note(session, last);
    }
    Ok(placed)
}

fn place(row: &Row<'_, '_>) -> Result<Placed> {
    Ok(Placed { version: row.int(0)?, sequence: row.int(1)? })
}

/// Returns the values of a new row. Errors: the body cannot be read.
pub(super) fn insert_values(document: &Document, kept: Option<Kept>) -> Result<Vec<Cell>> {
    let (kind, taken) = (document.kind, &document.taken);
    let mut values = vec![
        kept.and_then(|it| it.key).map_or(Cell::Null, Cell::Int),
        document.id.as_str().into(),
        kept.map_or(1, |it| it.version).into(),
        kept.and_then(|it| it.sequence).map_or(Cell::Null, Cell::Int),
        taken.class.0.into(),
    ];
    push_columns(kind, taken, &mut values);
    if kind.members.is_some() {
        push_list(document, &mut values);
    }
    push_body(document, &mut values)?;
    let texts = |list: Vec<&str>| Cell::Set(list.into_iter().map(Cell::from).collect());
    if !kind.identifiers.is_empty() {
        values.push(texts(taken.identifiers.iter().map(|it| it.0).collect()));
        values.push(texts(taken.identifiers.iter().map(|it| it.1.as_str()).collect()));
    }
    if !kind.links.is_empty() {
        values.push(texts(taken.links.iter().map(|it| it.0).collect()));
        values.push(texts(taken.links.iter().map(|it| it.1).collect()));
        values.push(texts(taken.links.iter().map(|it| it.2.as_str()).collect()));
    }
    Ok(values)
}

/// Replaces a record's row. Errors: a unique value is taken (code 23505).
pub(crate) fn update_record(
    session: &mut PgSession,
    statements: &KindStatements,
    document: &Document,
    key: i64,
) -> Result<Placed> {
    check_lengths(document)?;
    let mut values = vec![key.into(), document.taken.class.0.into()];
    push_columns(document.kind, &document.taken, &mut values);
    let sql = if document.list.is_some() {
        push_list(document, &mut values);
        &statements.update_row_and_list
    } else {
        &statements.update_row
    };
    push_body(document, &mut values)?;
    let has_unique = document.kind.indexes.iter().any(|it| it.uniqueness.refuses());
    let mut placed = None;
    let mut visit = |row: Row<'_, '_>| {
        placed = Some(place(&row)?);
        Ok(std::ops::ControlFlow::Break(()))
    };
    if has_unique {
        session.guarded(sql, &values, &mut visit)?;
    } else {
        session.rows(sql, &values, &mut visit)?;
    }
    note(session, document);
    placed.ok_or_else(|| StoreError::Missing { kind: document.kind.name, id: document.id.clone() })
}

fn push_columns(kind: &'static Kind, taken: &Taken, values: &mut Vec<Cell>) {
    values.extend(taken.cells.iter().cloned());
    for (index, _) in many_columns(kind) {
        let list = taken.many.iter().filter(|it| it.0 == index).map(|it| it.1.clone());
        values.push(Cell::Set(list.collect()));
    }
}

fn push_list(document: &Document, values: &mut Vec<Cell>) {
    let list = document.list.map(|(list, n)| (Cell::Int(list.0), n));
    let (list, n) = list.unwrap_or((Cell::Null, 0));
    values.extend([list, n.into()]);
}

fn push_body(document: &Document, values: &mut Vec<Cell>) -> Result<()> {
    values.push(Cell::Blob(document.body.clone()));
    if document.kind.text != Text::None {
        values.push(Cell::Text(super::words::folded(&document.searched_text()?)));
    }
    Ok(())
}

/// Returns the SQL type of a column's values.
pub(crate) fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Text | Type::Folded => "text",
        Type::Integer | Type::Boolean | Type::Instant => "bigint",
        Type::Real => "double precision",
    }
}

/// Returns the wire type of a column of single values.
pub(super) fn one_type(ty: Type) -> PgType {
    match type_name(ty) {
        "text" => PgType::TEXT,
        "bigint" => PgType::INT8,
        _ => PgType::FLOAT8,
    }
}

/// Returns the wire type of a column of lists.
pub(super) fn many_type(ty: Type) -> PgType {
    match type_name(ty) {
        "text" => PgType::TEXT_ARRAY,
        "bigint" => PgType::INT8_ARRAY,
        _ => PgType::FLOAT8_ARRAY,
    }
}
