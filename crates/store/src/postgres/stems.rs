//! The lexemes of words, as the database has named them, and texts built from them as a `tsvector`.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use bytes::Bytes;

use crate::cell::Cell;
use crate::{Result, StoreError};

/// Maximum number of cached words; beyond, all are forgotten.
const KNOWN: usize = 200_000;
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

impl Stems {
    /// Returns the words of texts that are not cached.
    pub(super) fn unknown(&self, texts: &[String]) -> Vec<String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let words = texts.iter().flat_map(|text| words(text));
        let unknown: HashSet<&str> = words
            .filter(|it| !is_its_own_lexeme(it) && it.len() <= WORD_BYTES && !known.contains_key(*it))
            .collect();
        unknown.into_iter().map(str::to_owned).collect()
    }

    /// Remembers what the database turns words into, in the order of the words.
    pub(super) fn learn(&self, words: Vec<String>, told: Vec<Cell>) -> Result<()> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if KNOWN < known.len() + words.len() {
            known.clear();
        }
        for (word, lexemes) in words.into_iter().zip(told) {
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

    /// Returns the `tsvector` of each text; `None` where the database must build it.
    pub(super) fn vectors(&self, texts: &[String]) -> Vec<Option<Bytes>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        texts.iter().map(|text| vector(&known, text)).collect()
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
