//! Words of records as a `tsvector`, built here from what the database has said about each word before.
//!
//! Parsing and stemming a text costs the database more than storing it, and the records of a site use the same few
//! thousand words. So the database is asked about a word when it is first seen; after that, texts are built from the
//! cache, and the result is byte for byte what `to_tsvector` would have returned. A text with a word that the database
//! does not turn into exactly one lexeme is left to the database as a whole.

use bytes::Bytes;

use super::session::PgSession;
use crate::Result;
use crate::cell::Cell;
use crate::session::Session;

/// Maximum number of unknown words asked about in a flight, per text and in addition: texts of only new words are
/// cheaper to build in the database.
const ASKED_EACH: usize = 4;
const ASKED_BESIDES: usize = 4_096;
/// Returns texts of blank-separated words as values of type `tsvector` in binary format, in the same order.
pub(super) fn vectors(pg: &mut PgSession, texts: &[String]) -> Result<Vec<Bytes>> {
    let stems = pg.stems.clone();
    let mut session = Session::Postgres(pg);
    let unknown = stems.unknown(texts);
    if !unknown.is_empty() && unknown.len() <= ASKED_BESIDES + ASKED_EACH * texts.len() {
        let asked = unknown.iter().map(|it| it.as_str().into()).collect();
        let sql = "SELECT tsvector_to_array(to_tsvector('pinakes', u.word)) \
                   FROM unnest(?1::text[]) WITH ORDINALITY u (word, n) ORDER BY u.n";
        let told = session.all(sql, &[Cell::Set(asked)], |row| row.cell(0))?;
        stems.learn(unknown, told)?;
    }
    let built = stems.vectors(texts);
    let left = texts.iter().zip(&built).filter(|it| it.1.is_none());
    let asked: Vec<Cell> = left.map(|(text, _)| text.as_str().into()).collect();
    let mut made = Vec::new();
    if !asked.is_empty() {
        let sql = "SELECT tsvectorsend(to_tsvector('pinakes', u.text)) \
                   FROM unnest(?1::text[]) WITH ORDINALITY u (text, n) ORDER BY u.n";
        made = session.all(sql, &[Cell::Set(asked)], |row| row.bytes(0))?;
    }
    let mut made = made.into_iter();
    Ok(built.into_iter().map(|vector| vector.or_else(|| made.next()).unwrap_or_default()).collect())
}
