//! Words of records as a `tsvector`, made here from what the database once said of each word.
//!
//! To parse and stem a text costs the database more than to store it, and records of a site use the same few thousand
//! words. So the database is asked what it makes of a word when it is first met; after that a text is looked up, and what
//! comes out is to the byte what `to_tsvector` would have made of it. A text with a word of which the database makes
//! anything but one lexeme is left to the database as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use super::session::PgSession;
use crate::session::{Cell, Session};
use crate::{Result, StoreError};

/// Words remembered at most; beyond, all are forgotten.
const KNOWN: usize = 200_000;
/// Unknown words of which a flight asks at most, for each text and besides: texts of nothing but new words are made by
/// the database with less work.
const ASKED_EACH: usize = 4;
const ASKED_BESIDES: usize = 4_096;
/// Longest word that is looked up, in bytes; the database leaves longer ones out.
const WORD_BYTES: usize = 1_024;
/// Places of one lexeme at most, and the last place that is told from those behind it (`MAXNUMPOS`, `MAXENTRYPOS` of
/// PostgreSQL's `ts_type.h`).
const PLACES: usize = 255;
const LAST_PLACE: u16 = 16_383;

/// What is known of words, for all sessions of a database.
#[derive(Default)]
pub(super) struct Stems(RwLock<HashMap<Box<str>, Stem>>);

/// What the database makes of a word.
enum Stem {
    Lexeme(Box<str>),
    /// Nothing, or more than one lexeme.
    Odd,
}

/// Texts of words apart by blanks as values of type `tsvector` in binary form, in the same order.
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
    /// The words of texts that nothing is known of.
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

/// Whether the stemmer leaves a word as it is: all its rules are about letters at a word's end.
fn is_its_own_lexeme(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.last().is_some_and(u8::is_ascii_digit) && bytes.len() <= WORD_BYTES && word.is_ascii()
}

/// `None` when the database must make it.
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
