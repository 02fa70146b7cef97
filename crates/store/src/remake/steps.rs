//! The steps of a kind's rebuild: each is a transaction over a bounded number of rows.

use std::ops::ControlFlow;

use crate::cell::Cell;
use crate::columns::{many_table, one_columns};
use crate::counters::{BEHIND, CHANGES, RECORDS};
use crate::error::outdated;
use crate::postgres;
use crate::session::{Flavour, Session};
use crate::sqlite;
use crate::{Arity, Class, Document, Kind, Result, StoreError, Text, Txn};

use super::{Remake, Row, Stage, mark_name, read, write};

/// Rows rebuilt in one step.
pub(crate) const STEP_ROWS: usize = 500;
/// Size of bodies after which a step takes no more rows.
const STEP_BYTES: usize = 16 << 20;
/// Rows of counts and references deleted in one step.
const STEP_CLEARED: usize = 5_000;

/// The database's error code for a violation of a unique index.
const UNIQUE_VIOLATION: &str = "23505";

/// What is left to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Further steps.
    Steps,
    /// Further steps; this one has rebuilt rows.
    Rows,
    /// Further steps, once another server has built the indexes.
    Wait,
    /// The indexes of a database, which are built outside transactions, and one more step.
    Indexes,
    Nothing,
}

/// Takes the next step of a rebuild, whichever process began it.
pub(crate) fn step(txn: &mut Txn<'_>, kind: &'static Kind) -> Result<Left> {
    let Some(mut remake) = read(&mut txn.view.session, kind)? else {
        let sql = "SELECT declaration FROM kind WHERE name = ?1";
        let known = txn.view.session.first(sql, &[kind.name.into()], |row| row.text(0))?;
        // Another process may have taken the last step.
        return if known.as_deref() == Some(&kind.declaration()) {
            Ok(Left::Nothing)
        } else {
            Err(outdated())
        };
    };
    txn.touched_schema = true;
    let mut left = Left::Steps;
    match remake.stage {
        Stage::Facets => {
            let is_done = clear_facets(&mut txn.view.session, kind, &remake)?;
            remake.next_if(is_done);
        }
        Stage::Identifiers => {
            const COLUMNS: [&str; 4] = ["scheme", "value", "kind", "id"];
            let is_done = !remake.identifiers
                || clear_references(
                    &mut txn.view.session,
                    kind,
                    ("identifier", &COLUMNS),
                    &mut remake.cursor,
                )?;
            remake.next_if(is_done);
        }
        Stage::Links => {
            const COLUMNS: [&str; 5] = ["to_kind", "target", "relation", "kind", "id"];
            let is_done = !remake.links
                || clear_references(&mut txn.view.session, kind, ("link", &COLUMNS), &mut remake.cursor)?;
            remake.next_if(is_done);
        }
        Stage::Rows => {
            let last = if remake.has_rows() { make_rows(txn, kind, &remake)? } else { None };
            remake.last = last.unwrap_or(i64::MAX);
            remake.next_if(last.is_none());
            left = Left::Rows;
        }
        Stage::Indexes => return make_index(txn, kind),
    }
    write(&mut txn.view.session, kind, &remake)?;
    Ok(left)
}

impl Remake {
    fn next_if(&mut self, is_done: bool) {
        if is_done {
            self.cursor.clear();
            self.stage = match self.stage {
                Stage::Facets => Stage::Identifiers,
                Stage::Identifiers => Stage::Links,
                Stage::Links => Stage::Rows,
                Stage::Rows | Stage::Indexes => Stage::Indexes,
            };
        }
    }
}

/// Deletes some counts that are obsolete or to be rebuilt; returns whether none is left.
fn clear_facets(session: &mut Session<'_>, kind: &'static Kind, remake: &Remake) -> Result<bool> {
    let made = kind.facets.iter().map(|it| it.name).filter(|name| !remake.facets.iter().any(|it| it == name));
    let kept = made.chain([RECORDS, CHANGES, BEHIND]).map(Cell::from).collect();
    let slot = if session.flavour() == Flavour::Postgres { ", slot" } else { "" };
    let sql = format!(
        "DELETE FROM facet WHERE kind = ?1 AND (facet, class, value{slot}) IN (SELECT facet, class, value{slot} FROM facet \
         WHERE kind = ?1 AND NOT ({}) LIMIT {STEP_CLEARED})",
        session.flavour().in_set("facet", 2)
    );
    Ok(session.execute(&sql, &[kind.name.into(), Cell::Set(kept)])? < STEP_CLEARED)
}

/// Deletes some references of a kind; returns whether none is left. References that writers add meanwhile may be
/// deleted as well: later steps add them again.
fn clear_references(
    session: &mut Session<'_>,
    kind: &'static Kind,
    (table, columns): (&str, &[&str]),
    cursor: &mut Vec<String>,
) -> Result<bool> {
    // No index covers those of a kind: the whole table is scanned once.
    let names = columns.join(", ");
    let marks: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
    let sql = format!(
        "SELECT {names} FROM {table} WHERE ({names}) > ({}) ORDER BY {names} LIMIT {STEP_CLEARED}",
        marks.join(", ")
    );
    cursor.resize(columns.len(), String::new());
    let cells = |texts: &[String]| texts.iter().map(|it| it.as_str().into()).collect::<Vec<Cell>>();
    let rows: Vec<Vec<String>> = session.all(&sql, &cells(cursor), |row| {
        (0..columns.len()).map(|n| row.text(n)).collect::<Result<Vec<_>>>()
    })?;
    let is_done = rows.len() < STEP_CLEARED;
    if let Some(last) = rows.last() {
        cursor.clone_from(last);
    }
    let conditions: Vec<String> =
        columns.iter().zip(&marks).map(|(name, mark)| format!("{name} = {mark}")).collect();
    let sql = format!("DELETE FROM {table} WHERE {}", conditions.join(" AND "));
    let place = columns.iter().position(|it| *it == "kind").unwrap_or_default();
    each(session, &sql, rows.iter().filter(|it| it[place] == kind.name).map(|it| cells(it)).collect())?;
    Ok(is_done)
}

/// Rebuilds the next rows; returns the key of the last, `None` when there are none left.
fn make_rows(txn: &mut Txn<'_>, kind: &'static Kind, remake: &Remake) -> Result<Option<i64>> {
    let flavour = txn.view.session.flavour();
    let sql = format!(
        "SELECT r.key, r.class, r.id, {} FROM {} WHERE ?1 < r.key ORDER BY r.key LIMIT {STEP_ROWS}",
        flavour.body(),
        flavour.rows_with_bodies(kind.name)
    );
    let (mut rows, mut n_bytes) = (Vec::new(), 0);
    txn.view.session.rows(&sql, &[remake.last.into()], |row| {
        let document = Document::stored(kind, row.text(2)?, row.bytes(3)?)?;
        n_bytes += document.body.len();
        rows.push(Row { key: row.int(0)?, class: Class(row.int(1)?), document });
        Ok(if n_bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    for row in &rows {
        let taken = &row.document.taken;
        txn.ensure_class(kind, taken)?;
        txn.counters.move_record(kind, row.class, taken.class);
        txn.counters.count_facets(kind, taken, 1, |it| remake.facets.iter().any(|name| name == it.name));
    }
    let session = &mut txn.view.session;
    let (sql, values) = update_sql(kind, remake, flavour);
    each(session, &sql, rows.iter().map(values).collect::<Result<_>>()?)?;
    let references = || rows.iter().map(|it| (&it.document.id, &it.document.taken));
    if flavour == Flavour::Sqlite {
        for (number, column) in kind.columns.iter().enumerate() {
            if column.arity == Arity::Many && remake.lacks_column(column.name) {
                let sql = format!(
                    "INSERT INTO {} (value, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                    many_table(kind, column)
                );
                let of_row = |row: &Row| {
                    let own = row.document.taken.many.iter().filter(|it| it.0 == number);
                    own.map(|it| vec![it.1.clone(), row.key.into()]).collect::<Vec<_>>()
                };
                each(session, &sql, rows.iter().flat_map(of_row).collect())?;
            }
        }
    }
    if remake.identifiers {
        let of_row = references().flat_map(|(id, taken)| {
            let own = taken.identifiers.iter();
            own.map(|(scheme, value)| texts([scheme, value, kind.name, id]))
        });
        let sql =
            "INSERT INTO identifier (scheme, value, kind, id) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
        each(session, sql, of_row.collect())?;
    }
    if remake.links {
        let of_row = references().flat_map(|(id, taken)| {
            let own = taken.links.iter();
            own.map(|(relation, to, target)| texts([to, target, relation, kind.name, id]))
        });
        let sql = "INSERT INTO link (to_kind, target, relation, kind, id) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        each(session, sql, of_row.collect())?;
    }
    Ok(rows.last().map(|it| it.key))
}

fn texts<const N: usize>(list: [&str; N]) -> Vec<Cell> {
    list.into_iter().map(Cell::from).collect()
}

/// Runs a statement for each list of values.
fn each(session: &mut Session<'_>, sql: &str, lists: Vec<Vec<Cell>>) -> Result<()> {
    match session {
        Session::Postgres(session) => {
            session.many(&format!("{sql} RETURNING 1"), &lists, |_| Ok(())).map(|_| ())
        }
        _ => lists.iter().try_for_each(|it| session.execute(sql, it).map(|_| ())),
    }
}

/// Returns the statement that rebuilds a row, and its parameters: key, class, then the missing parts. There are none for a
/// row whose body cannot be read.
fn update_sql<'r>(
    kind: &'static Kind,
    remake: &'r Remake,
    flavour: Flavour,
) -> (String, impl Fn(&Row) -> Result<Vec<Cell>> + 'r) {
    let mut sets = vec!["class = ?2".to_owned()];
    let mut n = 2;
    let mut set = |name: &str, wrap: &dyn Fn(&str) -> String| {
        n += 1;
        sets.push(format!("\"{name}\" = {}", wrap(&format!("?{n}"))));
    };
    let plain = |mark: &str| mark.to_owned();
    let single: Vec<usize> =
        one_columns(kind).enumerate().filter(|it| remake.lacks_column(it.1.name)).map(|it| it.0).collect();
    one_columns(kind).filter(|it| remake.lacks_column(it.name)).for_each(|it| set(it.name, &plain));
    let many: Vec<usize> = (0..kind.columns.len())
        .filter(|it| {
            let column = &kind.columns[*it];
            flavour == Flavour::Postgres && column.arity == Arity::Many && remake.lacks_column(column.name)
        })
        .collect();
    many.iter().for_each(|it| set(kind.columns[*it].name, &plain));
    let has_words = flavour == Flavour::Postgres && remake.words && kind.text != Text::None;
    if has_words {
        set("words", &|mark| format!("to_tsvector('pinakes', {mark})"));
    }
    sets.extend(remake.gone.iter().map(|it| format!("\"{it}\" = NULL")));
    let sql = format!("UPDATE \"k_{}\" SET {} WHERE key = ?1", kind.name, sets.join(", "));
    let values = move |row: &Row| {
        let taken = &row.document.taken;
        let mut values = vec![row.key.into(), taken.class.0.into()];
        values.extend(single.iter().map(|it| taken.cells[*it].clone()));
        values.extend(many.iter().map(|column| {
            let own = taken.many.iter().filter(|it| it.0 == *column);
            Cell::Set(own.map(|it| it.1.clone()).collect())
        }));
        if has_words {
            values.push(Cell::Text(postgres::words::folded(&row.document.searched_text()?)));
        }
        Ok(values)
    };
    (sql, values)
}

/// Builds one missing index; when none is missing, the kind is as declared.
fn make_index(txn: &mut Txn<'_>, kind: &'static Kind) -> Result<Left> {
    let session = &mut txn.view.session;
    match session {
        Session::Postgres(_) => {
            if !postgres::schema::has_indexes(session, kind)? {
                return Ok(Left::Indexes);
            }
        }
        _ => {
            if sqlite::schema::create_missing_index(session, kind).map_err(|error| not_unique(kind, error))? {
                return Ok(Left::Steps);
            }
        }
    }
    let values = [kind.name.into(), kind.declaration().as_str().into()];
    session.execute("UPDATE kind SET declaration = ?2 WHERE name = ?1", &values)?;
    session.execute("DELETE FROM meta WHERE name = ?1", &[mark_name(kind).as_str().into()])?;
    Ok(Left::Nothing)
}

/// Returns the error that says what to do where records share a value that is declared unique.
pub(crate) fn not_unique(kind: &'static Kind, error: StoreError) -> StoreError {
    let is_violation = match &error {
        StoreError::Sqlite(rusqlite::Error::SqliteFailure(failure, _)) => {
            failure.code == rusqlite::ErrorCode::ConstraintViolation
        }
        StoreError::Postgres { code, .. } => code == UNIQUE_VIOLATION,
        _ => false,
    };
    if !is_violation {
        return error;
    }
    StoreError::Query(format!(
        "{}: {error}: records have a value in common that is declared unique; delete all but one of them, \
         or run the version before and change them",
        kind.name
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static KIND: Kind = Kind { text: Text::AllStrings, ..Kind::named("thing") };

    #[test]
    fn a_body_that_cannot_be_read_is_damaged_and_not_without_words() {
        let remake = Remake { words: true, ..Remake::default() };
        let (_, values) = update_sql(&KIND, &remake, Flavour::Postgres);
        let row = |bytes: &'static [u8]| {
            let document = Document::with_bytes(&KIND, "a", &json!({}), bytes).expect("a document");
            Row { key: 1, class: document.taken.class, document }
        };
        let sound = values(&row(br#"{"name":"beam line"}"#)).expect("the values of a sound row");
        assert!(matches!(sound.last(), Some(Cell::Text(words)) if words.contains("beam")), "{sound:?}");
        let found = values(&row(br#"{"name":"Beam "#));
        assert!(
            matches!(&found, Err(StoreError::Damaged(text)) if text.contains("thing \"a\"")),
            "{found:?}"
        );
    }
}
