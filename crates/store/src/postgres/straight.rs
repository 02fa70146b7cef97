//! Bulk insertion of records by COPY straight into their tables.
//!
//! A COPY fails as a whole when an id or another unique value is taken; then none of it is kept, and the records go
//! through the session's staging table (`bulk.rs`), which shows which of them were new. An import into a catalogue that
//! has none of its records, the common case, never pays for that.

use bytes::Bytes;
use tokio_postgres::types::Type as PgType;

use super::binary::{Chunks, Fields};
use super::records::{Kept, Placed, many_columns, many_type, one_type};
use super::session::PgSession;
use super::vectors::vectors;
use super::words;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::Document;
use crate::session::Session;
use crate::{Kind, Result, StoreError, Text};

/// The error code for a violation of a unique index.
const TAKEN: &str = "23505";

/// Inserts records of one kind; `None` when that is not possible here, and nothing was done.
pub(super) fn insert(
    session: &mut PgSession,
    kind: &'static Kind,
    documents: &[&Document],
    kept: &[Option<Kept>],
) -> Result<Option<Vec<Placed>>> {
    session.batch("SAVEPOINT guarded")?;
    // The number of the transaction is the sequence number of its changes.
    let Some(sequence) = session.mark.xid else {
        session.batch("RELEASE guarded")?;
        return Ok(None);
    };
    let copied = copy_all(session, kind, documents, kept, sequence);
    match copied {
        Err(StoreError::Postgres { code, .. }) if code == TAKEN => {
            session.undo_guarded()?;
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(placed) => {
            session.batch("RELEASE guarded")?;
            Ok(Some(placed))
        }
    }
}

fn copy_all(
    session: &mut PgSession,
    kind: &'static Kind,
    documents: &[&Document],
    kept: &[Option<Kept>],
    sequence: i64,
) -> Result<Vec<Placed>> {
    let placed: Vec<Placed> = (0..documents.len())
        .map(|index| match kept.get(index).copied().flatten() {
            Some(kept) => Placed { version: kept.version, sequence: kept.sequence.unwrap_or(sequence) },
            None => Placed { version: 1, sequence },
        })
        .collect();
    let mut keys = keys(session, documents.len())?;
    for (key, kept) in keys.iter_mut().zip(kept) {
        *key = kept.and_then(|it| it.key).unwrap_or(*key);
    }
    let words = words_of(session, kind, documents)?;
    let columns = Columns::of(kind);
    let rows = documents.iter().enumerate().map(|(index, document)| {
        let (key, placed, words) = (keys[index], placed[index], words.get(index));
        move |row: &mut Fields<'_>| put_record(row, document, key, placed, words)
    });
    let names: Vec<String> = columns.names.iter().map(|it| format!("\"{it}\"")).collect();
    let sql = format!("COPY \"k_{}\" ({}) FROM STDIN (FORMAT binary)", kind.name, names.join(", "));
    session.copy_in(&sql, &mut Chunks::new(&columns.types, rows))?;
    copy_references(session, kind, documents)?;
    Ok(placed)
}

/// Inserts identifiers and links, whose tables are shared by all kinds.
fn copy_references(session: &mut PgSession, kind: &'static Kind, documents: &[&Document]) -> Result<()> {
    const TEXTS: [PgType; 5] = [PgType::TEXT, PgType::TEXT, PgType::TEXT, PgType::TEXT, PgType::TEXT];
    let texts = |list: [&str; 5], n: usize, row: &mut Fields<'_>| {
        list.iter().take(n).try_for_each(|it| row.put(&Cell::from(*it)))
    };
    if documents.iter().any(|it| !it.taken.identifiers.is_empty()) {
        let rows = documents.iter().flat_map(|document| {
            document.taken.identifiers.iter().map(move |(scheme, value)| {
                move |row: &mut Fields<'_>| texts([scheme, value, kind.name, &document.id, ""], 4, row)
            })
        });
        let sql = "COPY identifier (scheme, value, kind, id) FROM STDIN (FORMAT binary)";
        session.copy_in(sql, &mut Chunks::new(&TEXTS[..4], rows))?;
    }
    if documents.iter().any(|it| !it.taken.links.is_empty()) {
        let rows = documents.iter().flat_map(|document| {
            document.taken.links.iter().map(move |(relation, to, target)| {
                move |row: &mut Fields<'_>| texts([to, target, relation, kind.name, &document.id], 5, row)
            })
        });
        let sql = "COPY link (to_kind, target, relation, kind, id) FROM STDIN (FORMAT binary)";
        session.copy_in(sql, &mut Chunks::new(&TEXTS, rows))?;
    }
    Ok(())
}

/// Returns new keys, in order.
fn keys(session: &mut PgSession, n: usize) -> Result<Vec<i64>> {
    let sql = "SELECT nextval('keys') FROM generate_series(1, ?1::bigint)";
    Session::Postgres(session).all(sql, &[(n as u64).into()], |row| row.int(0))
}

/// Returns the words of each document as a `tsvector`; nothing for a kind without text.
fn words_of(session: &mut PgSession, kind: &'static Kind, documents: &[&Document]) -> Result<Vec<Bytes>> {
    if kind.text == Text::None {
        return Ok(Vec::new());
    }
    let text = |it: &&Document| -> Result<String> { Ok(words::folded(&it.searched_text()?)) };
    vectors(session, &documents.iter().map(text).collect::<Result<Vec<_>>>()?)
}

/// The columns of a record's table, in the order in which rows are written.
struct Columns {
    names: Vec<&'static str>,
    types: Vec<PgType>,
}

impl Columns {
    fn of(kind: &'static Kind) -> Self {
        let mut list = vec![
            ("key", PgType::INT8),
            ("id", PgType::TEXT),
            ("version", PgType::INT8),
            ("sequence", PgType::INT8),
            ("class", PgType::INT8),
        ];
        list.extend(one_columns(kind).map(|it| (it.name, one_type(it.ty))));
        list.extend(many_columns(kind).map(|(_, it)| (it.name, many_type(it.ty))));
        if kind.members.is_some() {
            list.extend([("list", PgType::INT8), ("n_members", PgType::INT8)]);
        }
        list.push(("body", PgType::BYTEA));
        if kind.text != Text::None {
            list.push(("words", PgType::TS_VECTOR));
        }
        let (names, types) = list.into_iter().unzip();
        Self { names, types }
    }
}

fn put_record(
    row: &mut Fields<'_>,
    document: &Document,
    key: i64,
    placed: Placed,
    words: Option<&Bytes>,
) -> Result<()> {
    let (kind, taken) = (document.kind, &document.taken);
    row.put(&key.into())?;
    row.put_bytes(document.id.as_bytes())?;
    for number in [placed.version, placed.sequence, taken.class.0] {
        row.put(&number.into())?;
    }
    taken.cells.iter().try_for_each(|it| row.put(it))?;
    let mut many = taken.many.as_slice();
    for (index, _) in many_columns(kind) {
        let n = many.iter().take_while(|it| it.0 == index).count();
        let (own, rest) = many.split_at(n);
        row.put_list(own.iter().map(|it| &it.1))?;
        many = rest;
    }
    if kind.members.is_some() {
        row.put(&document.list.map_or(Cell::Null, |(list, _)| Cell::Int(list.0)))?;
        row.put(&document.list.map_or(0, |(_, n)| n).into())?;
    }
    row.put_bytes(&document.body)?;
    words.map_or(Ok(()), |it| row.put_bytes(it))
}
