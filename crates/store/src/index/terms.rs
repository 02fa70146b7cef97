//! What of a body is found in the index: a term for each value at each path, but numbers, which stand in columns.
//!
//! A term is the path, a tag that says what stands there, and the value so that terms sort as values do. Paths are
//! walked as [`crate::matches`] walks them: lists are entered, lists in lists are not.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use crate::eval::instant_ms;
use crate::{Path, fold};

/// Longest text of a term, in bytes: of a longer one its beginning is kept, under a tag of its own.
pub(super) const TEXT_BYTES: usize = 160;
/// Longest path of a term, in bytes.
const PATH_BYTES: usize = 600;
/// Terms of a record at most. One that has more, or a longer path, is decided on its body.
const TERMS: usize = 20_000;
/// Longest word of a text.
pub(super) const WORD_BYTES: usize = 80;

/// What a term says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// It is there, in whatever way.
    Present = b'p',
    /// A list stands there.
    List = b'a',
    /// A list of so many elements stands there.
    Length = b'l',
    /// A list that has a list among its elements.
    Nested = b'n',
    /// An object stands there.
    Object = b'o',
    /// `null`, or a list with `null` among its elements.
    Null = b'z',
    Boolean = b'b',
    /// A text that is whole.
    Text = b's',
    /// The beginning of a text.
    LongText = b'S',
    /// A folded text that is whole.
    Folded = b'f',
    /// The beginning of a folded text.
    LongFolded = b'F',
    /// A word of a folded text.
    Word = b'w',
    /// A text of which not all words are terms.
    ManyWords = b'W',
    /// Three characters that follow each other in a folded text.
    Gram = b'g',
}

/// Characters of a [`Tag::Gram`].
pub(super) const GRAM_BYTES: usize = 3;

/// Three characters that follow each other.
pub(super) type Gram = [u8; GRAM_BYTES];

/// Whether a character belongs to runs: printable ASCII, which folding leaves next to each other.
pub(super) fn is_gram_byte(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// The runs of three characters in a folded text, each once.
pub(super) fn grams_of(folded: &str) -> BTreeSet<Gram> {
    let runs = folded.as_bytes().windows(GRAM_BYTES).filter(|it| it.iter().all(|byte| is_gram_byte(*byte)));
    runs.filter_map(|it| it.try_into().ok()).collect()
}

/// Terms about a record as a whole begin so; those about paths do not.
const WHOLE: [u8; 2] = [0, 3];

/// The term of a record's id.
pub(super) fn id_term(id: &str) -> Vec<u8> {
    whole(b'i', id.as_bytes())
}

/// A term that no record has.
pub(super) fn nobodys_term() -> Vec<u8> {
    whole(b'-', &[])
}

/// The term of a record's row.
pub(super) fn key_term(key: i64) -> Vec<u8> {
    whole(b'k', &key.to_be_bytes())
}

/// The term of a record's class.
pub(super) fn class_term(class: i64) -> Vec<u8> {
    whole(b'c', &class.to_be_bytes())
}

/// What all terms of classes begin with.
pub(super) fn class_prefix() -> Vec<u8> {
    whole(b'c', &[])
}

/// The term of records that are decided on their bodies.
pub(super) fn beyond_term() -> Vec<u8> {
    whole(b'u', &[])
}

/// What all terms of the entries of a list begin with.
pub(super) fn list_prefix(list: usize) -> Vec<u8> {
    whole(b'l', &[u8::try_from(list).unwrap_or(u8::MAX)])
}

/// The term of records of which not all entries of lists are terms.
pub(super) fn unlisted_term() -> Vec<u8> {
    whole(b'm', &[])
}

fn whole(what: u8, value: &[u8]) -> Vec<u8> {
    let mut term = WHOLE.to_vec();
    term.push(what);
    term.extend_from_slice(value);
    term
}

/// The bytes of a path, ended.
pub(super) fn path_bytes(steps: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in steps {
        push_step(&mut bytes, step);
    }
    bytes.extend_from_slice(&[0, 0]);
    bytes
}

/// A term about a path.
pub(super) fn term(path: &[u8], tag: Tag, value: &[u8]) -> Vec<u8> {
    let mut term = Vec::with_capacity(path.len() + 1 + value.len());
    term.extend_from_slice(path);
    term.push(tag as u8);
    term.extend_from_slice(value);
    term
}

fn push_step(bytes: &mut Vec<u8>, step: &str) {
    if !bytes.is_empty() {
        bytes.extend_from_slice(&[0, 1]);
    }
    push_escaped(bytes, step);
}

/// Adds a text such that two zero bytes, or a zero and a one, are not part of it.
pub(super) fn push_escaped(bytes: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(0xff);
        }
    }
}

/// The name of the column of a path, for numbers and instants.
pub(super) fn column_key(steps: &[String]) -> String {
    let mut key = String::new();
    steps.iter().for_each(|step| push_key(&mut key, step));
    key
}

fn push_key(key: &mut String, step: &str) {
    key.push('/');
    for character in step.chars() {
        match character {
            '/' | '%' | '.' | '\\' | '\u{0}'..='\u{1f}' => {
                key.push_str(&format!("%{:02x}", u32::from(character)));
            }
            other => key.push(other),
        }
    }
}

/// Whether the index knows what stands at a path: not when a step may be a position in a list.
pub(crate) fn is_indexed(path: &Path) -> bool {
    !path.as_steps().iter().any(|step| step.parse::<usize>().is_ok())
}

/// Numbers below are told apart by their 64-bit float.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

/// The beginning of a text, cut between characters, and whether it is all of it.
pub(super) fn cut(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, true);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (&text[..end], false)
}

/// What takes the terms of a body.
pub(super) trait Sink {
    fn term(&mut self, term: &[u8]);
    fn number(&mut self, key: &str, number: f64);
    fn instant(&mut self, key: &str, ms: i64);
}

/// Hands all terms of a body to `sink`; false when there are more than are kept.
pub(super) fn walk(body: &Json, is_folded: bool, sink: &mut dyn Sink) -> bool {
    let mut walk = Walk { sink, is_folded, path: Vec::new(), key: String::new(), scratch: Vec::new(), n: 0 };
    match body {
        Json::Object(map) => walk.object(map),
        _ => true,
    }
}

struct Walk<'s> {
    sink: &'s mut dyn Sink,
    is_folded: bool,
    path: Vec<u8>,
    key: String,
    scratch: Vec<u8>,
    n: usize,
}

impl Walk<'_> {
    fn object(&mut self, map: &Map<String, Json>) -> bool {
        map.iter().all(|(step, value)| self.below(step, |walk| walk.value(value)))
    }

    fn below(&mut self, step: &str, visit: impl FnOnce(&mut Self) -> bool) -> bool {
        let (path_end, key_end) = (self.path.len(), self.key.len());
        push_step(&mut self.path, step);
        push_key(&mut self.key, step);
        let is_within = self.path.len() <= PATH_BYTES && visit(self);
        self.path.truncate(path_end);
        self.key.truncate(key_end);
        is_within
    }

    fn value(&mut self, value: &Json) -> bool {
        self.emit(Tag::Present, &[]);
        match value {
            Json::Object(map) => {
                self.emit(Tag::Object, &[]);
                self.object(map)
            }
            Json::Array(list) => {
                self.emit(Tag::List, &[]);
                self.emit(Tag::Length, &(list.len() as u64).to_be_bytes());
                list.iter().all(|it| match it {
                    Json::Object(map) => self.object(map),
                    Json::Array(inner) => {
                        self.emit(Tag::Nested, &[]);
                        inner.iter().all(|it| self.nested(it))
                    }
                    scalar => self.scalar(scalar),
                })
            }
            scalar => self.scalar(scalar),
        }
    }

    /// What lies in a list of a list: only that it is there counts.
    fn nested(&mut self, value: &Json) -> bool {
        match value {
            Json::Object(map) => map.iter().all(|(step, value)| {
                self.below(step, |walk| {
                    walk.emit(Tag::Present, &[]);
                    walk.nested(value)
                })
            }),
            Json::Array(list) => list.iter().all(|it| self.nested(it)),
            _ => self.n < TERMS,
        }
    }

    fn scalar(&mut self, value: &Json) -> bool {
        match value {
            Json::Null => self.emit(Tag::Null, &[]),
            Json::Bool(it) => self.emit(Tag::Boolean, &[u8::from(*it)]),
            Json::Number(number) => {
                if let Some(number) = number.as_f64() {
                    // Numbers are columns alone: most are written once, and a term each would be the bulk of an index.
                    self.n += 1;
                    self.sink.number(&self.key, number);
                }
            }
            Json::String(text) => self.text(text),
            Json::Array(_) | Json::Object(_) => {}
        }
        self.n < TERMS
    }

    fn text(&mut self, text: &str) {
        let (begin, is_whole) = cut(text, TEXT_BYTES);
        self.emit(if is_whole { Tag::Text } else { Tag::LongText }, begin.as_bytes());
        if let Some(ms) = instant_ms(text) {
            self.sink.instant(&self.key, ms);
        }
        if !self.is_folded {
            return;
        }
        let folded = fold(text);
        let (begin, is_whole) = cut(&folded, TEXT_BYTES);
        self.emit(if is_whole { Tag::Folded } else { Tag::LongFolded }, begin.as_bytes());
        for word in words_of(&folded) {
            if WORD_BYTES < word.len() || TERMS <= self.n {
                self.emit(Tag::ManyWords, &[]);
                break;
            }
            self.emit(Tag::Word, word.as_bytes());
        }
    }

    fn emit(&mut self, tag: Tag, value: &[u8]) {
        self.n += 1;
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.path);
        self.scratch.extend_from_slice(&[0, 0, tag as u8]);
        self.scratch.extend_from_slice(value);
        self.sink.term(&self.scratch);
    }
}

/// The words of a folded text: runs of letters and digits.
pub(crate) fn words_of(folded: &str) -> impl Iterator<Item = &str> {
    folded.split(|it: char| !is_in_word(it)).filter(|it| !it.is_empty())
}

/// Whether a character belongs to a word.
fn is_in_word(character: char) -> bool {
    character.is_alphanumeric()
}
