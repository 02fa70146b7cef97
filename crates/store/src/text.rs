//! The text index: every word of a record, found without regard to case, accents and English endings.
//!
//! It follows the sequence of changes in batches instead of riding in each transaction: a batch of a
//! thousand records is indexed several times faster than a thousand records one by one. A search never
//! misses what is committed: it lets the index catch up first ([`StoreError::TextBehind`]).
//!
//! So it is in the embedded engine. In PostgreSQL the words are a column of the record, written with it.

use crate::document::searched_text;
use crate::postgres::words;
use crate::session::{Flavour, Session};
use crate::{Kind, Result, StoreError, Text, TextQuery, View};

/// Records indexed in one step when somebody waits for the index.
pub(crate) const STEP_RECORDS: usize = 1_000;
/// Records indexed in one step while nobody waits for the writer: about twenty milliseconds.
pub(crate) const STEP_IDLE_RECORDS: usize = 500;
/// Records indexed in one step beside other writes, which wait meanwhile: some milliseconds.
pub(crate) const STEP_BESIDE_RECORDS: usize = 250;

/// The SQL condition that a record's text satisfies the query bound to parameter `n`, for a kind with text.
pub(crate) fn condition(flavour: Flavour, kind: &Kind, n: usize) -> String {
    if flavour == Flavour::Postgres {
        return format!("r.words @@ to_tsquery('pinakes', ?{n})");
    }
    format!("r.key IN (SELECT t.rowid FROM \"t_{0}\" t WHERE \"t_{0}\" MATCH ?{n})", kind.name)
}

/// The query in the index's own language; every word is quoted, so nothing in it is an operator.
/// Empty when it can find nothing.
pub(crate) fn match_text(flavour: Flavour, query: &TextQuery) -> String {
    if flavour == Flavour::Postgres {
        return words::query(query);
    }
    let quoted = |word: &String| format!("\"{}\"", word.replace('"', "\"\"").replace('\0', " "));
    let phrases: Vec<String> = query.phrases.iter().map(quoted).collect();
    let words: Vec<String> = query.words.iter().map(quoted).collect();
    let mut text = if phrases.is_empty() {
        if words.is_empty() { "\"\"".to_owned() } else { format!("({})", words.join(" OR ")) }
    } else {
        format!("({})", phrases.join(" AND "))
    };
    for word in &query.without {
        text = format!("({text} NOT {})", quoted(word));
    }
    text
}

/// Refuses when changed records of `kind` are not indexed yet.
pub(crate) fn require_current(view: &mut View<'_>, kind: &'static Kind) -> Result<()> {
    if lag(&mut view.session, kind, 1)? == 0 {
        return Ok(());
    }
    view.behind = Some(kind);
    Err(StoreError::TextBehind(kind.name))
}

/// How many records wait to be indexed, counted up to `most`.
pub(crate) fn lag(session: &mut Session<'_>, kind: &Kind, most: u64) -> Result<u64> {
    if kind.text == Text::None || session.flavour() == Flavour::Postgres {
        return Ok(0);
    }
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM \"k_{0}\" WHERE (SELECT sequence FROM text_mark WHERE kind = '{0}') < sequence LIMIT ?1)",
        kind.name
    );
    Ok(session.first(&sql, &[most.into()], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
}

/// What a step of the index leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Every record is indexed.
    Current,
    /// More records may wait.
    Behind,
}

/// Indexes up to `most` of the records that wait, fewer once `is_enough` says so.
pub(crate) fn step(
    session: &mut Session<'_>,
    kind: &'static Kind,
    most: usize,
    is_enough: impl Fn() -> bool,
) -> Result<Progress> {
    if kind.text == Text::None || session.flavour() == Flavour::Postgres {
        return Ok(Progress::Current);
    }
    let name = kind.name;
    let waiting = format!(
        "SELECT r.key, r.sequence, b.body FROM \"k_{name}\" r JOIN \"b_{name}\" b ON b.key = r.key \
         WHERE (SELECT sequence FROM text_mark WHERE kind = '{name}') < r.sequence ORDER BY r.sequence LIMIT ?1"
    );
    let most = most as u64;
    let rows = session.all(&waiting, &[most.into()], |row| Ok((row.int(0)?, row.int(1)?, row.bytes(2)?)))?;
    let mut last = None;
    for (key, sequence, body) in &rows {
        if last.is_some() && is_enough() {
            break;
        }
        last = Some(*sequence);
        let text = searched_text(kind, body)
            .map_err(|error| StoreError::Damaged(format!("{name}: body of row {key}: {error}")))?;
        forget(session, kind, *key)?;
        let insert = format!("INSERT INTO \"t_{name}\" (rowid, text) VALUES (?1, ?2)");
        session.execute(&insert, &[(*key).into(), text.as_str().into()])?;
    }
    let Some(last) = last else { return Ok(Progress::Current) };
    session.execute("UPDATE text_mark SET sequence = ?1 WHERE kind = ?2", &[last.into(), name.into()])?;
    let is_all = (rows.len() as u64) < most && rows.last().map(|row| row.1) == Some(last);
    Ok(if is_all { Progress::Current } else { Progress::Behind })
}

/// What of the index does not agree with the records.
pub(crate) fn check(view: &mut View<'_>, kind: &Kind) -> Result<Vec<String>> {
    if kind.text == Text::None || view.session.flavour() == Flavour::Postgres {
        return Ok(Vec::new());
    }
    let name = kind.name;
    let mut lines = Vec::new();
    for (what, sql) in [
        (
            "records that the text index should hold and does not",
            format!(
                "SELECT count(*) FROM \"k_{name}\" WHERE sequence <= (SELECT sequence FROM text_mark WHERE kind = '{name}') \
                 AND key NOT IN (SELECT id FROM \"t_{name}_docsize\")"
            ),
        ),
        (
            "texts of no record in the text index",
            format!(
                "SELECT count(*) FROM \"t_{name}_docsize\" WHERE id NOT IN (SELECT key FROM \"k_{name}\")"
            ),
        ),
    ] {
        let n = view.session.first(&sql, &[], |row| row.int(0))?.unwrap_or(0);
        if n != 0 {
            lines.push(format!("{n} {what}"));
        }
    }
    Ok(lines)
}

/// Takes a record out of the index.
pub(crate) fn forget(session: &mut Session<'_>, kind: &Kind, key: i64) -> Result<()> {
    if kind.text != Text::None && session.flavour() == Flavour::Sqlite {
        session.execute(&format!("DELETE FROM \"t_{}\" WHERE rowid = ?1", kind.name), &[key.into()])?;
    }
    Ok(())
}
