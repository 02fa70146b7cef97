//! Bulk insertion of records by COPY.
//!
//! Records go straight into their tables (`straight.rs`) as long as none of them exists already. Otherwise COPY fills a
//! table private to the session, and one statement moves the rows over: it skips taken ids and values and returns which
//! rows were new, which COPY cannot do by itself. Both ways are part of the caller's transaction: a lost connection
//! leaves nothing behind.

use std::collections::HashMap;

use tokio_postgres::types::Type as PgType;

use super::binary::{Chunks, Fields};
use super::records::{
    Kept, Placed, SEQUENCE, check_lengths, insert_records, insert_values, many_columns, many_type, note,
    one_type, type_name,
};
use super::session::PgSession;
use super::straight;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::Document;
use crate::kind_statements::KindStatements;
use crate::session::Session;
use crate::{Kind, Result, Text};

/// Fewer records than this are inserted one by one in one flight.
const BULK_RECORDS_MIN: usize = 16;

/// Inserts many records of one kind; `None` for each whose id or unique value is taken.
pub(crate) fn insert_many(
    session: &mut PgSession,
    statements: &KindStatements,
    kind: &'static Kind,
    documents: &[&Document],
    kept: &[Option<Kept>],
) -> Result<Vec<Option<Placed>>> {
    documents.iter().try_for_each(|it| check_lengths(it))?;
    if documents.len() < BULK_RECORDS_MIN {
        return insert_records(session, statements, documents, kept);
    }
    if !session.met_taken
        && let Some(placed) = straight::insert(session, kind, documents, kept)?
    {
        documents.last().iter().for_each(|it| note(session, it));
        return Ok(placed.into_iter().map(Some).collect());
    }
    let table = Table::of(kind);
    session.batch(&table.create)?;
    let rows = documents.iter().enumerate().map(|(index, document)| {
        let mut values = insert_values(document, kept.get(index).copied().flatten())?;
        values.insert(0, Cell::Int(i64::try_from(index).unwrap_or(i64::MAX)));
        Ok(values)
    });
    let rows = rows.map(|values: Result<Vec<Cell>>| {
        move |row: &mut Fields<'_>| values?.iter().try_for_each(|it| row.put(it))
    });
    session.copy_in(&table.copy, &mut Chunks::new(&table.types, rows))?;
    let mut by_id = HashMap::new();
    let placed = Session::Postgres(session).all(&table.take_over, &[], |row| {
        Ok((row.text(0)?, Placed { version: row.int(1)?, sequence: row.int(2)? }))
    })?;
    by_id.extend(placed);
    session.batch(&table.empty)?;
    if let Some(last) = documents.iter().rev().find(|it| by_id.contains_key(&it.id)) {
        note(session, last);
    }
    session.met_taken = by_id.len() < documents.len();
    // Of two with the same id, the first was inserted.
    Ok(documents.iter().map(|it| by_id.remove(&it.id)).collect())
}

/// The session's staging table for a kind, and its statements.
struct Table {
    create: String,
    copy: String,
    types: Vec<PgType>,
    take_over: String,
    empty: String,
}

impl Table {
    fn of(kind: &'static Kind) -> Self {
        let columns = columns(kind);
        let name = format!("\"copied_{}\"", kind.name);
        let declared: Vec<String> =
            columns.iter().enumerate().map(|(n, it)| format!("c{n} {}", it.declared)).collect();
        let unpacked: String = columns
            .iter()
            .enumerate()
            .filter(|(_, it)| matches!(it.declared.as_str(), "text" | "bytea"))
            .map(|(n, _)| format!("; ALTER TABLE pg_temp.{name} ALTER c{n} SET STORAGE EXTERNAL"))
            .collect();
        Self {
            // Compressing data that is read only once would be wasted work.
            create: format!(
                "DO $$ BEGIN IF to_regclass('pg_temp.{name}') IS NULL THEN \
                 CREATE TEMP TABLE {name} ({}) ON COMMIT DELETE ROWS{unpacked}; END IF; END $$",
                declared.join(", ")
            ),
            copy: format!("COPY pg_temp.{name} FROM STDIN (FORMAT binary)"),
            types: columns.iter().map(|it| it.ty.clone()).collect(),
            take_over: take_over(kind, &columns, &name),
            empty: format!("TRUNCATE pg_temp.{name}"),
        }
    }
}

/// A column of the staging table.
struct Staged {
    /// Its type in SQL.
    declared: String,
    /// Its type in the wire protocol.
    ty: PgType,
    /// The record's column that it is moved to; empty for references.
    target: String,
    /// The expression by which it is moved; `{}` is the column.
    as_value: &'static str,
}

/// Returns the columns, in the order of the record's values, after its index in the list.
fn columns(kind: &'static Kind) -> Vec<Staged> {
    let plain = |declared: &str, ty: PgType, target: &str| Staged {
        declared: declared.to_owned(),
        ty,
        target: target.to_owned(),
        as_value: "{}",
    };
    let mut list = vec![
        plain("bigint", PgType::INT8, ""),
        Staged { as_value: "coalesce({}, nextval('keys'))", ..plain("bigint", PgType::INT8, "key") },
        plain("text", PgType::TEXT, "id"),
        plain("bigint", PgType::INT8, "version"),
        Staged { as_value: "sequence", ..plain("bigint", PgType::INT8, "sequence") },
        plain("bigint", PgType::INT8, "class"),
    ];
    for column in one_columns(kind) {
        list.push(plain(type_name(column.ty), one_type(column.ty), column.name));
    }
    for (_, column) in many_columns(kind) {
        list.push(plain(&format!("{}[]", type_name(column.ty)), many_type(column.ty), column.name));
    }
    if kind.members.is_some() {
        list.extend([plain("bigint", PgType::INT8, "list"), plain("bigint", PgType::INT8, "n_members")]);
    }
    list.push(plain("bytea", PgType::BYTEA, "body"));
    if kind.text != Text::None {
        let words = plain("text", PgType::TEXT, "words");
        list.push(Staged { as_value: "to_tsvector('pinakes', {})", ..words });
    }
    let n_references =
        2 * usize::from(!kind.identifiers.is_empty()) + 3 * usize::from(!kind.links.is_empty());
    list.extend((0..n_references).map(|_| plain("text[]", PgType::TEXT_ARRAY, "")));
    list
}

/// Returns the SQL that moves the rows over in order, and returns id, version and sequence of those that were new.
fn take_over(kind: &'static Kind, columns: &[Staged], table: &str) -> String {
    let name = kind.name;
    let of_record = || columns.iter().enumerate().filter(|(_, it)| !it.target.is_empty());
    let targets: Vec<String> = of_record().map(|(_, it)| format!("\"{}\"", it.target)).collect();
    let values: Vec<String> = of_record()
        .map(|(n, it)| match it.as_value {
            "sequence" => format!("coalesce(s.c{n}, {SEQUENCE})"),
            as_value => as_value.replace("{}", &format!("s.c{n}")),
        })
        .collect();
    let mut parts = vec![format!(
        "r AS (INSERT INTO \"k_{name}\" ({}) SELECT {} FROM (SELECT * FROM pg_temp.{table} ORDER BY c0) s \
         ON CONFLICT DO NOTHING RETURNING id, version, sequence)",
        targets.join(", "),
        values.join(", ")
    )];
    // Of two rows with the same id, the first is inserted.
    let fresh = format!(
        "(SELECT DISTINCT ON (t.c2) t.* FROM pg_temp.{table} t JOIN r ON r.id = t.c2 ORDER BY t.c2, t.c0) s"
    );
    let mut n = columns.len()
        - 2 * usize::from(!kind.identifiers.is_empty())
        - 3 * usize::from(!kind.links.is_empty());
    if !kind.identifiers.is_empty() {
        parts.push(format!(
            "i AS (INSERT INTO identifier (scheme, value, kind, id) SELECT u.scheme, u.value, '{name}', s.c2 \
             FROM {fresh}, unnest(s.c{n}, s.c{}) u (scheme, value) ON CONFLICT DO NOTHING)",
            n + 1
        ));
        n += 2;
    }
    if !kind.links.is_empty() {
        parts.push(format!(
            "l AS (INSERT INTO link (to_kind, target, relation, kind, id) SELECT u.to_kind, u.target, u.relation, '{name}', s.c2 \
             FROM {fresh}, unnest(s.c{n}, s.c{}, s.c{}) u (relation, to_kind, target) ON CONFLICT DO NOTHING)",
            n + 1,
            n + 2
        ));
    }
    format!("WITH {} SELECT id, version, sequence FROM r", parts.join(", "))
}
