//! Records of the embedded engine: a narrow row, a body, and rows of references. Identifiers and links are rows of
//! their own in either engine.

use rusqlite::{CachedStatement, Connection};

use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::{Document, Taken};
use crate::kind_statements::KindStatements;
use crate::pending_links;
use crate::session::Session;
use crate::{Kind, Result, StoreError};

/// The head columns of a narrow row.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    /// `None` for a new one.
    pub(crate) key: Option<i64>,
    pub(crate) id: &'a str,
    pub(crate) version: i64,
    pub(crate) sequence: i64,
    /// The list of members and its length.
    pub(crate) list: Option<(i64, i64)>,
}

impl<'a> Head<'a> {
    /// Returns the head of a new record.
    pub(crate) fn new(document: &'a Document, version: u64, sequence: u64) -> Self {
        Self {
            key: None,
            id: &document.id,
            version: version.cast_signed(),
            sequence: sequence.cast_signed(),
            list: document.list.map(|(list, n)| (list.0, n.cast_signed())),
        }
    }
}

/// Inserts the narrow row of a record and returns its key.
///
/// Errors: the id, or a value of a unique index, is taken.
pub(crate) fn write_row(
    session: &mut Session<'_>,
    statements: &KindStatements,
    kind: &'static Kind,
    head: Head<'_>,
    taken: &Taken,
) -> Result<i64> {
    let connection = session.embedded()?;
    insert_row(connection, &mut connection.prepare_cached(&statements.insert_row)?, kind, head, taken)
}

fn insert_row(
    connection: &Connection,
    statement: &mut CachedStatement<'_>,
    kind: &'static Kind,
    head: Head<'_>,
    taken: &Taken,
) -> Result<i64> {
    statement.raw_bind_parameter(1, head.key)?;
    statement.raw_bind_parameter(2, head.id)?;
    for (n, number) in [head.version, head.sequence, taken.class.0].into_iter().enumerate() {
        statement.raw_bind_parameter(3 + n, number)?;
    }
    for (n, cell) in taken.cells.iter().enumerate() {
        statement.raw_bind_parameter(6 + n, cell)?;
    }
    if kind.members.is_some() {
        let n = 6 + taken.cells.len();
        statement.raw_bind_parameter(n, head.list.map(|it| it.0))?;
        statement.raw_bind_parameter(n + 1, head.list.map_or(0, |it| it.1))?;
    }
    match statement.raw_execute() {
        Ok(_) => Ok(connection.last_insert_rowid()),
        Err(error) => Err(duplicate(error.into(), kind, head.id, taken)),
    }
}

/// Where the links of new records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPlace {
    /// Into their own table.
    InOrder,
    /// See [`pending_links`].
    Pending,
}

/// Inserts records of one kind with their bodies and references; returns the key of each, or `None` where the id or a
/// value of a unique index is taken.
///
/// Writes table by table, and references in the order of their tables, so that neighbouring rows are written
/// consecutively.
pub(crate) fn insert_many(
    session: &mut Session<'_>,
    statements: &KindStatements,
    kind: &'static Kind,
    documents: &[&Document],
    link_place: LinkPlace,
    mut next_sequence: impl FnMut() -> u64,
) -> Result<Vec<Option<i64>>> {
    let connection = session.embedded()?;
    let mut statement = connection.prepare_cached(&statements.insert_row)?;
    let mut keys = Vec::with_capacity(documents.len());
    for document in documents {
        let head = Head::new(document, 1, next_sequence());
        keys.push(match insert_row(connection, &mut statement, kind, head, &document.taken) {
            Ok(key) => Some(key),
            Err(StoreError::Duplicate { .. }) => None,
            Err(error) => return Err(error),
        });
    }
    let made: Vec<(i64, &Document)> =
        keys.iter().zip(documents).filter_map(|(key, document)| Some(((*key)?, *document))).collect();
    let mut statement = connection.prepare_cached(&statements.insert_body)?;
    for (key, document) in &made {
        statement.raw_bind_parameter(1, key)?;
        statement.raw_bind_parameter(2, &document.body[..])?;
        statement.raw_execute()?;
    }
    insert_values(connection, statements, &made)?;
    insert_identifiers(connection, kind, &made)?;
    insert_links(connection, kind, &made, link_place)?;
    Ok(keys)
}

/// Inserts the values of many-valued columns.
fn insert_values(
    connection: &Connection,
    statements: &KindStatements,
    made: &[(i64, &Document)],
) -> Result<()> {
    let mut values: Vec<(usize, &Cell, i64)> = made
        .iter()
        .flat_map(|(key, document)| document.taken.many.iter().map(move |(column, it)| (*column, it, *key)))
        .collect();
    values.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| a.1.total_order(b.1)).then_with(|| a.2.cmp(&b.2))
    });
    for of_column in values.chunk_by(|a, b| a.0 == b.0) {
        let mut statement = connection.prepare_cached(&statements.insert_many[of_column[0].0])?;
        for (_, value, key) in of_column {
            statement.raw_bind_parameter(1, value)?;
            statement.raw_bind_parameter(2, key)?;
            statement.raw_execute()?;
        }
    }
    Ok(())
}

fn insert_identifiers(connection: &Connection, kind: &Kind, made: &[(i64, &Document)]) -> Result<()> {
    let mut rows: Vec<[&str; 4]> = Vec::new();
    for (_, document) in made {
        let of_record = document.taken.identifiers.iter();
        rows.extend(of_record.map(|(scheme, value)| [scheme, value.as_str(), kind.name, &document.id]));
    }
    insert_texts(connection, INSERT_IDENTIFIER, rows)
}

fn insert_links(
    connection: &Connection,
    kind: &Kind,
    made: &[(i64, &Document)],
    place: LinkPlace,
) -> Result<()> {
    let mut rows: Vec<[&str; 5]> = Vec::new();
    for (_, document) in made {
        let of_record = document.taken.links.iter();
        rows.extend(
            of_record.map(|(relation, to, target)| [to, target.as_str(), relation, kind.name, &document.id]),
        );
    }
    let sql = match place {
        LinkPlace::InOrder => INSERT_LINK,
        LinkPlace::Pending => pending_links::INSERT,
    };
    insert_texts(connection, sql, rows)
}

fn insert_texts<const N: usize>(connection: &Connection, sql: &str, mut rows: Vec<[&str; N]>) -> Result<()> {
    rows.sort_unstable();
    let mut statement = connection.prepare_cached(sql)?;
    for row in rows {
        for (n, text) in row.into_iter().enumerate() {
            statement.raw_bind_parameter(1 + n, text)?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

// An identifier of a former declaration that is not removed yet may be present; a record yields each only once.
const INSERT_IDENTIFIER: &str =
    "INSERT INTO identifier (scheme, value, kind, id) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const DELETE_IDENTIFIER: &str =
    "DELETE FROM identifier WHERE scheme = ?1 AND value = ?2 AND kind = ?3 AND id = ?4";
const INSERT_LINK: &str = "INSERT INTO link (to_kind, target, relation, kind, id) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
const DELETE_LINK: &str =
    "DELETE FROM link WHERE to_kind = ?1 AND target = ?2 AND relation = ?3 AND kind = ?4 AND id = ?5";

/// Updates the narrow row of a record; its list of members stays unless the document brings one.
///
/// Errors: a value of a unique index is taken.
pub(crate) fn change_row(
    session: &mut Session<'_>,
    statements: &KindStatements,
    document: &Document,
    key: i64,
    version: u64,
    sequence: u64,
) -> Result<()> {
    let (kind, taken) = (document.kind, &document.taken);
    let mut values: Vec<Cell> = vec![key.into(), version.into(), sequence.into(), taken.class.0.into()];
    values.extend(taken.cells.iter().cloned());
    let sql = match document.list {
        Some((list, n)) => {
            values.extend([Cell::Int(list.0), n.into()]);
            &statements.update_row_and_list
        }
        None => &statements.update_row,
    };
    session.execute(sql, &values).map_err(|error| duplicate(error, kind, &document.id, taken))?;
    Ok(())
}

/// Writes the many-valued columns, identifiers and links of a record.
pub(crate) fn write_references(
    session: &mut Session<'_>,
    statements: &KindStatements,
    kind: &Kind,
    key: i64,
    id: &str,
    taken: &Taken,
) -> Result<()> {
    let sql = (&statements.insert_many[..], INSERT_IDENTIFIER, INSERT_LINK);
    change_references(session, sql, kind, key, id, taken)
}

/// Deletes the many-valued columns, identifiers and links of a record.
pub(crate) fn drop_references(
    session: &mut Session<'_>,
    statements: &KindStatements,
    kind: &Kind,
    key: i64,
    id: &str,
    taken: &Taken,
) -> Result<()> {
    let sql = (&statements.delete_many[..], DELETE_IDENTIFIER, DELETE_LINK);
    change_references(session, sql, kind, key, id, taken)
}

/// Runs one statement for each of them: column values (none where a record is one row), identifiers, links.
fn change_references(
    session: &mut Session<'_>,
    (of_columns, of_identifier, of_link): (&[String], &str, &str),
    kind: &Kind,
    key: i64,
    id: &str,
    taken: &Taken,
) -> Result<()> {
    for (column, value) in taken.many.iter().filter(|_| !of_columns.is_empty()) {
        session.execute(&of_columns[*column], &[value.clone(), key.into()])?;
    }
    for (scheme, value) in &taken.identifiers {
        let values = [(*scheme).into(), value.as_str().into(), kind.name.into(), id.into()];
        session.execute(of_identifier, &values)?;
    }
    for (relation, to, target) in &taken.links {
        let values = [(*to).into(), target.as_str().into(), (*relation).into(), kind.name.into(), id.into()];
        session.execute(of_link, &values)?;
    }
    Ok(())
}

/// Formats a value for an error's text.
pub(crate) fn shown(value: Cell) -> String {
    match value {
        Cell::Text(text) => text,
        Cell::Int(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns the error that names the taken value when an engine refuses a row as a duplicate.
fn duplicate(error: StoreError, kind: &'static Kind, id: &str, taken: &Taken) -> StoreError {
    let StoreError::Sqlite(rusqlite::Error::SqliteFailure(failure, Some(message))) = &error else {
        return error;
    };
    if failure.code != rusqlite::ErrorCode::ConstraintViolation {
        return error;
    }
    let column = message.rsplit('.').next().unwrap_or_default();
    match one_columns(kind).zip(&taken.cells).find(|(it, _)| it.name == column) {
        Some((it, value)) => {
            StoreError::Duplicate { kind: kind.name, column: it.name, value: shown(value.clone()) }
        }
        None => StoreError::Duplicate { kind: kind.name, column: "id", value: id.to_owned() },
    }
}
