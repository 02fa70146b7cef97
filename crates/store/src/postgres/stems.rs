//! Words of records as a `tsvector`, built here from what the database has said about each word before.
//!
//! Parsing and stemming a text costs the database more than storing it, and the records of a site use the same few
//! thousand words. So the database is asked about a word when it is first seen; after that, texts are built from the
//! cache, and the result is byte for byte what `to_tsvector` would have returned. A text with a word that the database
//! does not turn into exactly one lexeme is left to the database as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::session::PgSession;
use crate::cell::Cell;
use crate::session::Session;
use crate::{Result, StoreError};

/// Maximum number of cached words; beyond, all are forgotten.
const KNOWN: usize = 200_000;
/// Maximum number of unknown words asked about in a flight, per text and in addition: texts of only new words are
/// cheaper to build in the database.
const ASKED_EACH: usize = 4;
const ASKED_BESIDES: usize = 4_096;
/// Maximum length in bytes of a word that is looked up; the database leaves longer ones out.
const WORD_BYTES: usize = 1_024;
/// Maximum number of positions of one lexeme, and the last position that is distinguished from later ones (`MAXNUMPOS`,
/// `MAXENTRYPOS` of PostgreSQL's `ts_type.h`).
const PLACES: usize = 255;
const LAST_PLACE: u16 = 16_383;

/// The cached words, for all sessions of a database.
#[derive(Default)]
pub(super) struct Stems(RwLock<HashMap<Box<str>, Stem>>);

/// What the database turns a word into.
enum Stem {
    Lexeme(Box<str>),
    /// No lexeme, or more than one.
    Odd,
}

/// Returns texts of blank-separated words as values of type `tsvector` in binary format, in the same order.
pub(super) fn vectors(session: &mut PgSession, texts: &[String]) -> Result<Vec<Bytes>> {
    let stems = session.stems.clone();
    let unknown = stems.unknown(texts);
    if !unknown.is_empty() && unknown.len() <= ASKED_BESIDES + ASKED_EACH * texts.len() {
        stems.learn(session, unknown)?;
    }
    let (mut vectors, mut left) = (vec![Bytes::new(); texts.len()], Vec::new());
    {
        let known = stems.0.read().unwrap_or_else(PoisonError::into_inner);
        for (index, text) in texts.iter().enumerate() {
            match vector(&known, text) {
                Some(vector) => vectors[index] = vector,
                None => left.push(index),
            }
        }
    }
    if !left.is_empty() {
        let asked: Vec<Cell> = left.iter().map(|index| texts[*index].as_str().into()).collect();
        let sql = "SELECT tsvectorsend(to_tsvector('pinakes', u.text)) \
                   FROM unnest(?1::text[]) WITH ORDINALITY u (text, n) ORDER BY u.n";
        let made = Session::Postgres(session).all(sql, &[Cell::Set(asked)], |row| row.bytes(0))?;
        for (index, made) in left.into_iter().zip(made) {
            vectors[index] = made;
        }
    }
    Ok(vectors)
}

impl Stems {
    /// Returns the words of texts that are not cached.
    fn unknown(&self, texts: &[String]) -> Vec<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let words = texts.iter().flat_map(|text| words(text));
        let unknown: HashSet<&str> = words
            .filter(|it| !is_its_own_lexeme(it) && it.len() <= WORD_BYTES && !known.contains_key(*it))
            .collect();
        unknown.into_iter().map(str::to_owned).collect()
    }

    fn learn(&self, session: &mut PgSession, unknown: Vec<String>) -> Result<()> {
        let asked = unknown.iter().map(|it| it.as_str().into()).collect();
        let sql = "SELECT tsvector_to_array(to_tsvector('pinakes', u.word)) \
                   FROM unnest(?1::text[]) WITH ORDINALITY u (word, n) ORDER BY u.n";
        let told = Session::Postgres(session).all(sql, &[Cell::Set(asked)], |row| row.cell(0))?;
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if KNOWN < known.len() + unknown.len() {
            known.clear();
        }
        for (word, lexemes) in unknown.into_iter().zip(told) {
            let stem = match lexemes {
                Cell::Set(list) => match list.as_slice() {
                    [Cell::Text(lexeme)] => Stem::Lexeme(lexeme.as_str().into()),
                    _ => Stem::Odd,
                },
                other => return Err(StoreError::Damaged(format!("lexemes as {other:?}"))),
            };
            known.insert(word.into(), stem);
        }
        Ok(())
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|it| !it.is_empty())
}

/// Returns whether the stemmer leaves a word unchanged: all its rules concern letters at a word's end.
fn is_its_own_lexeme(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.last().is_some_and(u8::is_ascii_digit) && bytes.len() <= WORD_BYTES && word.is_ascii()
}

/// Builds the `tsvector` of a text; `None` when the database must build it.
fn vector(known: &HashMap<Box<str>, Stem>, text: &str) -> Option<Bytes> {
    let mut lexemes = Vec::with_capacity(128);
    for (n, word) in words(text).enumerate() {
        let lexeme = if is_its_own_lexeme(word) {
            word
        } else {
            match known.get(word)? {
                Stem::Lexeme(lexeme) => lexeme,
                Stem::Odd => return None,
            }
        };
        lexemes.push((lexeme, u16::try_from(n + 1).unwrap_or(LAST_PLACE).min(LAST_PLACE)));
    }
    lexemes.sort_unstable();
    let of_lexeme = || lexemes.chunk_by(|a, b| a.0 == b.0);
    let mut out = Vec::with_capacity(16 + 16 * lexemes.len());
    out.extend_from_slice(&i32::try_from(of_lexeme().count()).ok()?.to_be_bytes());
    for places in of_lexeme() {
        out.extend_from_slice(places[0].0.as_bytes());
        out.push(0);
        let mut places: Vec<u16> = places.iter().map(|it| it.1).take(PLACES).collect();
        places.dedup();
        out.extend_from_slice(&u16::try_from(places.len()).ok()?.to_be_bytes());
        places.iter().for_each(|it| out.extend_from_slice(&it.to_be_bytes()));
    }
    Some(out.into())
}
