//! The words that a text search finds: without case, accents and English endings, the same in the index and in a single
//! text.

use std::borrow::Cow;
use std::collections::HashMap;

use frostem::{Algorithm, Stemmer};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::terms::{WORD_BYTES, cut};
use crate::TextQuery;
use crate::postgres::words::folded;

/// Length of the shortest word that is stemmed.
const STEMMED_BYTES: usize = 3;

/// Returns whether a word may have an ending.
fn has_stem(word: &str) -> bool {
    STEMMED_BYTES <= word.len() && word.bytes().all(|it| it.is_ascii_lowercase())
}

/// Returns a word as the index holds it.
fn stemmed<'w>(stemmer: &Stemmer, word: &'w str) -> Cow<'w, str> {
    let word = cut(word, WORD_BYTES);
    if has_stem(word) { stemmer.stem(word) } else { Cow::Borrowed(word) }
}

/// Splits a text that is folded already into words, as [`folded`] leaves it.
#[derive(Clone)]
pub(super) struct Cutter {
    stemmer: Stemmer,
    token: Token,
    /// Words and what they are stemmed to: a text repeats the words of others, and stemming takes longer than a look.
    known: HashMap<Box<str>, Box<str>>,
}

/// Maximum number of words that a [`Cutter`] remembers.
const KNOWN_WORDS: usize = 1 << 14;

impl Cutter {
    pub(super) fn new() -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English), token: Token::default(), known: HashMap::new() }
    }
}

/// The words of a text.
pub(super) struct Cut<'c> {
    cutter: &'c mut Cutter,
    words: std::str::Split<'c, char>,
}

impl Tokenizer for Cutter {
    type TokenStream<'a> = Cut<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Cut<'a> {
        self.token.reset();
        Cut { cutter: self, words: text.split(' ') }
    }
}

impl TokenStream for Cut<'_> {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.find(|it| !it.is_empty()) else { return false };
        let Cutter { stemmer, token, known } = &mut *self.cutter;
        token.position = token.position.wrapping_add(1);
        token.text.clear();
        let word = cut(word, WORD_BYTES);
        // Numbers and the like would soon fill the memory.
        if !has_stem(word) {
            token.text.push_str(word);
            return true;
        }
        if let Some(stem) = known.get(word) {
            token.text.push_str(stem);
            return true;
        }
        let stem = stemmer.stem(word);
        token.text.push_str(&stem);
        if KNOWN_WORDS <= known.len() {
            known.clear();
        }
        known.insert(word.into(), stem.into());
        true
    }

    fn token(&self) -> &Token {
        &self.cutter.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.cutter.token
    }
}

/// A text query in terms of indexed words.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    /// One of these must occur if there are no phrases.
    pub(super) any: Vec<Vec<String>>,
    /// Each of these must occur.
    pub(super) all: Vec<Vec<String>>,
    /// None of these may occur.
    pub(super) none: Vec<Vec<String>>,
}

impl Words {
    pub(crate) fn of(query: &TextQuery) -> Self {
        let phrases = |list: &[String]| list.iter().map(|it| stems(it)).filter(|it| !it.is_empty()).collect();
        Self { any: phrases(&query.words), all: phrases(&query.phrases), none: phrases(&query.without) }
    }

    /// Returns whether a text satisfies it.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        if self.all.is_empty() && self.any.is_empty() {
            return false;
        }
        let text = stems(text);
        let has = |phrase: &Vec<String>| text.windows(phrase.len()).any(|it| it == phrase.as_slice());
        let is_found = if self.all.is_empty() { self.any.iter().any(has) } else { self.all.iter().all(has) };
        is_found && !self.none.iter().any(has)
    }
}

fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::new(Algorithm::English);
    let folded = folded(text);
    folded.split(' ').filter(|it| !it.is_empty()).map(|it| stemmed(&stemmer, it).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, query: TextQuery) -> bool {
        Words::of(&query).are_in(text)
    }

    #[test]
    fn words_phrases_and_exclusions() {
        let text = "Röntgen diffraction of growing crystals, x-ray";
        let words = |it: &[&str]| TextQuery {
            words: it.iter().map(|it| (*it).to_owned()).collect(),
            ..TextQuery::default()
        };
        assert!(has(text, words(&["CRYSTAL"])));
        assert!(has(text, words(&["nothing", "rontgen"])));
        assert!(!has(text, words(&["nothing"])));
        assert!(!has(text, words(&[])));
        let phrase = |it: &str| TextQuery { phrases: vec![it.into()], ..TextQuery::default() };
        assert!(has(text, phrase("x-ray")));
        assert!(has(text, phrase("growing crystal")));
        assert!(!has(text, phrase("crystal growing")));
        assert!(!has(text, TextQuery { without: vec!["x ray".into()], ..words(&["diffraction"]) }));
    }
}
