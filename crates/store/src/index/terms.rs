//! What the index holds of a body: a term for each value at each path, except numbers, which are in columns.
//!
//! A term is the path, a tag for the type of value, and the value encoded so that terms sort as values do. Paths are
//! traversed as [`crate::matches`] does: into lists, but not into lists within lists.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::eval::instant_ms;
use crate::word::words_of;
use crate::{Expr, Fields, Kind, Path, Search, Tree, Value, fold};

/// Maximum length of a text term in bytes: of a longer text only the beginning and a hash are kept, under a tag of its
/// own.
pub(super) const TEXT_BYTES: usize = 160;
/// Length of the beginning of a longer text. Each further byte would be a node of the term dictionary for every text.
pub(super) const BEGIN_BYTES: usize = 32;
/// Length of the hash of a longer text, which tells it from all others with the same beginning.
const HASH_BYTES: usize = 16;
/// Terminates the path in a term.
const PATH_END: [u8; 2] = [0, 0];
/// Maximum length of a term's path in bytes.
const PATH_BYTES: usize = 600;
/// Maximum number of terms of a record. One that has more, or a longer path, is decided on its body.
const TERMS: usize = 20_000;
/// Maximum length of an indexed word in bytes.
pub(super) const WORD_BYTES: usize = 80;

/// What a term asserts about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    /// A text exists, or a value in a list within a list. Numbers are in columns, and the other values have terms that
    /// say as much.
    Present = b'p',
    /// It is a list.
    List = b'a',
    /// It is a list of so many elements.
    Length = b'l',
    /// It is a list with a list among its elements.
    Nested = b'n',
    /// It is an object.
    Object = b'o',
    /// It is a list with an object among its elements.
    Objects = b'O',
    /// It is an object without members, or a list with one among its elements.
    Empty = b'e',
    /// How a list begins that no list of several elements is around: see [`First`].
    First = b'1',
    /// The value below lists, of which one has several elements, that the first element of each leads to: see [`First`].
    Leading = b'2',
    /// How a list begins to which the first element of each of such lists leads.
    LeadingFirst = b'3',
    /// It is `null`, or a list with `null` among its elements.
    Null = b'z',
    Boolean = b'b',
    /// A whole text.
    Text = b's',
    /// The beginning and the hash of a text: see [`TextTerm`].
    LongText = b'S',
    /// A whole folded text.
    Folded = b'f',
    /// The beginning and the hash of a folded text.
    LongFolded = b'F',
    /// A word of a folded text.
    Word = b'w',
    /// A text with words that are not all terms.
    ManyWords = b'W',
    /// A trigram of a folded text.
    Gram = b'g',
    /// Nothing is known of the values there of members ([`Kind::member_values`]).
    Untold = b'u',
    /// A member has no value there, or `null`.
    Lacking = b'x',
    /// A member has a value there that is neither number nor text.
    Odd = b'y',
    /// A member has a text there that is no point in time.
    Undated = b'd',
    /// The index does not hold each value there of members.
    ManyValues = b'm',
    /// The least text of members, at least as long as [`BEGIN_BYTES`] unless it is whole.
    Lowest = b'<',
    /// The greatest text of members, as [`Tag::Lowest`], or the least that is greater than all with its beginning.
    Highest = b'>',
}

impl Tag {
    /// Returns whether it tells a value, or where positions may be.
    fn is_of_values(self) -> bool {
        match self {
            Self::Length | Self::Nested | Self::Boolean => true,
            Self::Text | Self::LongText | Self::Folded | Self::LongFolded => true,
            Self::Word | Self::ManyWords | Self::Gram => true,
            Self::Present | Self::List | Self::Object | Self::Objects => false,
            Self::Empty | Self::First | Self::Leading | Self::LeadingFirst | Self::Null => false,
            Self::Untold | Self::Lacking | Self::Odd | Self::Undated | Self::ManyValues => false,
            Self::Lowest | Self::Highest => false,
        }
    }
}

/// The type of a value by which records are sorted: of the first element of a list, or of what the first elements of
/// lists lead to. The term of a text goes on with the text; numbers are in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum First {
    Text = b's',
    Object = b'o',
    No = b'0',
    Yes = b'1',
    /// A list, of which [`Tag::LeadingFirst`] says how it begins.
    List = b'a',
    /// What no index tells: of a list, how a list in it begins; of a text, all that is behind its beginning.
    Other = b'?',
}

/// Length of a [`Tag::Gram`].
pub(super) const GRAM_BYTES: usize = 3;

/// A trigram.
pub(super) type Gram = [u8; GRAM_BYTES];

/// Returns whether a byte can be part of a trigram: printable ASCII, which folding leaves next to each other.
pub(super) fn is_gram_byte(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// Returns the distinct trigrams of a folded text.
pub(super) fn grams_of(folded: &str) -> BTreeSet<Gram> {
    let runs = folded.as_bytes().windows(GRAM_BYTES).filter(|it| it.iter().all(|byte| is_gram_byte(*byte)));
    runs.filter_map(|it| it.try_into().ok()).collect()
}

/// Prefix of terms about a record as a whole, which no term about a path has.
const WHOLE: [u8; 2] = [0, 3];

/// Returns the term of a record's id.
pub(super) fn id_term(id: &str) -> Vec<u8> {
    whole(b'i', id.as_bytes())
}

/// Returns the common prefix of all id terms.
pub(super) fn id_prefix() -> Vec<u8> {
    whole(b'i', &[])
}

/// Returns a term that no record has.
pub(super) fn nobodys_term() -> Vec<u8> {
    whole(b'-', &[])
}

/// Returns the term of a record's row key.
pub(super) fn key_term(key: i64) -> Vec<u8> {
    whole(b'k', &key.to_be_bytes())
}

/// Returns the term of a record's class.
pub(super) fn class_term(class: i64) -> Vec<u8> {
    whole(b'c', &class.to_be_bytes())
}

/// Returns the common prefix of all class terms.
pub(super) fn class_prefix() -> Vec<u8> {
    whole(b'c', &[])
}

/// Returns the term of records that are decided on their bodies.
pub(super) fn beyond_term() -> Vec<u8> {
    whole(b'u', &[])
}

/// Returns the common prefix of all terms for entries of a list.
pub(super) fn list_prefix(list: usize) -> Vec<u8> {
    whole(b'l', &[u8::try_from(list).unwrap_or(u8::MAX)])
}

/// Returns the term of records whose list entries are not all terms.
pub(super) fn unlisted_term() -> Vec<u8> {
    whole(b'm', &[])
}

/// Returns the term of records of whose members the trigrams are not terms.
pub(super) fn many_grams_term() -> Vec<u8> {
    whole(b'g', &[])
}

fn whole(what: u8, value: &[u8]) -> Vec<u8> {
    let mut term = WHOLE.to_vec();
    term.push(what);
    term.extend_from_slice(value);
    term
}

/// Returns the bytes of a path, terminated.
pub(super) fn path_bytes(steps: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in steps {
        push_step(&mut bytes, step);
    }
    bytes.extend_from_slice(&PATH_END);
    bytes
}

/// Returns a term about a path.
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

/// Appends a text, escaped so that neither two zero bytes nor a zero and a one occur in it.
pub(super) fn push_escaped(bytes: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(0xff);
        }
    }
}

/// Returns the least byte string greater than all with this prefix.
pub(super) fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < 0xff {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

/// Returns the column name of a path, for numbers and instants.
pub(super) fn column_key(steps: &[String]) -> String {
    let mut key = String::new();
    steps.iter().for_each(|step| push_key(&mut key, step));
    key
}

/// Returns the column name, for numbers, of what a tag tells at a path.
pub(super) fn key_of(tag: Tag, key: &str) -> String {
    // Other names begin with a slash.
    format!("{}{key}", char::from(tag as u8))
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

/// Returns whether the index of a kind tells all of a path: not when a step may be a position in a list.
pub(crate) fn is_indexed(kind: &Kind, path: &Path) -> bool {
    let steps = path.as_steps();
    kind.search != Search::Values
        && steps.first().is_none_or(|member| is_member_indexed(kind, member))
        && steps.iter().skip(1).all(|step| Path::position(step).is_none())
}

/// Returns whether the index of a kind covers a member of a body.
pub(super) fn is_member_indexed(kind: &Kind, member: &str) -> bool {
    !matches!(kind.search, Search::Declared | Search::Values)
        || kind.columns.iter().any(|it| it.path.split('.').next() == Some(member))
}

/// Returns whether the terms of values alone decide a condition.
pub(super) fn is_of_values(expr: &Expr) -> bool {
    let is_scalar = |value: &Value| !matches!(value, Value::Null | Value::Json(_));
    match expr {
        Expr::Is(_, value) => is_scalar(value),
        Expr::In(_, values) => values.iter().all(is_scalar),
        Expr::Range(..) | Expr::Prefix(..) | Expr::Regex(..) | Expr::Word(..) | Expr::Size(..) => true,
        _ => false,
    }
}

/// Returns the beginning of a text, at most so many bytes, cut at a character boundary.
pub(super) fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// What the index holds of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextTerm<'t> {
    /// All of it.
    Whole(&'t [u8]),
    /// [`BEGIN_BYTES`] of it and, cut to [`HASH_BYTES`], its SHA-256 hash: two texts never have the same.
    Long([u8; BEGIN_BYTES + HASH_BYTES]),
}

impl<'t> TextTerm<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        if bytes.len() <= TEXT_BYTES {
            return Self::Whole(bytes);
        }
        let mut long = [0; BEGIN_BYTES + HASH_BYTES];
        let (begin, hash) = long.split_at_mut(BEGIN_BYTES);
        begin.copy_from_slice(&bytes[..BEGIN_BYTES]);
        hash.copy_from_slice(&Sha256::digest(bytes)[..HASH_BYTES]);
        Self::Long(long)
    }

    /// Returns the one of two tags that applies, and the value.
    pub(super) fn tagged(&self, whole: Tag, long: Tag) -> (Tag, &[u8]) {
        match self {
            Self::Whole(bytes) => (whole, bytes),
            Self::Long(bytes) => (long, bytes),
        }
    }
}

/// Receives the terms of a body.
pub(super) trait Sink {
    fn term(&mut self, term: &[u8]);
    /// Receives a text that is no whole term, and the column name of its path.
    fn long_text(&mut self, key: &str, text: &str);
    fn number(&mut self, key: &str, number: f64);
    fn instant(&mut self, key: &str, ms: i64);
}

/// Passes all terms of a body to `sink`; false when there are more than are kept.
pub(super) fn walk(kind: &Kind, body: &Tree<'_>, sink: &mut dyn Sink) -> bool {
    let mut walk = Walk {
        sink,
        search: kind.search,
        way: Way::Plain,
        path: Vec::new(),
        key: String::new(),
        scratch: Vec::new(),
        n: 0,
    };
    let Tree::Object(fields) = body else { return true };
    fields
        .iter()
        .filter(|(member, _)| is_member_indexed(kind, member))
        .all(|(member, value)| walk.below(member, |walk| walk.value(value)))
}

/// The lists that are around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// None, or such as have one element only.
    Plain,
    /// Some with several elements; it is in the first one of each.
    Leading,
    /// Others.
    Behind,
}

impl Way {
    /// Returns the way to an element of a list.
    fn into_list(self, position: usize, length: usize) -> Self {
        match self {
            Self::Plain if length == 1 => Self::Plain,
            Self::Plain | Self::Leading if position == 0 => Self::Leading,
            Self::Plain | Self::Leading | Self::Behind => Self::Behind,
        }
    }
}

struct Walk<'s> {
    sink: &'s mut dyn Sink,
    search: Search,
    way: Way,
    path: Vec<u8>,
    key: String,
    scratch: Vec<u8>,
    n: usize,
}

impl Walk<'_> {
    fn members(&mut self, fields: &Fields<'_>) -> bool {
        if fields.is_empty() {
            self.emit(Tag::Empty, &[]);
        }
        fields.iter().all(|(step, value)| self.below(step, |walk| walk.value(value)))
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

    fn value(&mut self, value: &Tree<'_>) -> bool {
        if self.way == Way::Leading {
            self.sorted(Tag::Leading, value);
        }
        match value {
            Tree::Object(fields) => {
                self.emit(Tag::Object, &[]);
                self.members(fields)
            }
            Tree::List(list) => {
                self.emit(Tag::List, &[]);
                self.emit(Tag::Length, &(list.len() as u64).to_be_bytes());
                match (list.first(), self.way) {
                    (None, _) | (_, Way::Behind) => {}
                    (Some(first), Way::Plain) => self.sorted(Tag::First, first),
                    (Some(first), Way::Leading) => self.sorted(Tag::LeadingFirst, first),
                }
                if list.iter().any(|it| matches!(it, Tree::Object(_))) {
                    self.emit(Tag::Objects, &[]);
                }
                let around = self.way;
                let is_within = list.iter().enumerate().all(|(position, it)| {
                    self.way = around.into_list(position, list.len());
                    match it {
                        Tree::Object(fields) => self.members(fields),
                        Tree::List(inner) => {
                            self.emit(Tag::Nested, &[]);
                            inner.iter().all(|it| self.nested(it))
                        }
                        scalar => self.scalar(scalar),
                    }
                });
                self.way = around;
                is_within
            }
            Tree::Text(text) => {
                self.emit(Tag::Present, &[]);
                self.text(text);
                self.n < TERMS
            }
            scalar => self.scalar(scalar),
        }
    }

    /// Handles a value by which records are sorted.
    fn sorted(&mut self, tag: Tag, value: &Tree<'_>) {
        if self.search == Search::Values {
            return;
        }
        let ty = match value {
            Tree::Null => return,
            Tree::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.sink.number(&key_of(tag, &self.key), number);
                }
                return;
            }
            Tree::Text(text) if text.len() <= TEXT_BYTES => First::Text,
            Tree::Boolean(false) => First::No,
            Tree::Boolean(true) => First::Yes,
            Tree::Object(_) => First::Object,
            Tree::List(_) if tag == Tag::Leading => First::List,
            Tree::Text(_) | Tree::List(_) => First::Other,
        };
        let mut term = vec![ty as u8];
        if let (First::Text, Tree::Text(text)) = (ty, value) {
            term.extend_from_slice(text.as_bytes());
        }
        self.emit(tag, &term);
    }

    /// Handles a value in a list within a list: only its existence counts.
    fn nested(&mut self, value: &Tree<'_>) -> bool {
        match value {
            Tree::Object(fields) => fields.iter().all(|(step, value)| {
                self.below(step, |walk| {
                    walk.emit(Tag::Present, &[]);
                    walk.nested(value)
                })
            }),
            Tree::List(list) => list.iter().all(|it| self.nested(it)),
            _ => self.n < TERMS,
        }
    }

    fn scalar(&mut self, value: &Tree<'_>) -> bool {
        match value {
            Tree::Null => self.emit(Tag::Null, &[]),
            Tree::Boolean(it) => self.emit(Tag::Boolean, &[u8::from(*it)]),
            Tree::Number(number) => {
                if let Some(number) = number.as_f64() {
                    // Numbers are only in columns: most occur once, and a term for each would make up the bulk of an
                    // index.
                    self.n += 1;
                    self.sink.number(&self.key, number);
                }
            }
            Tree::Text(text) => self.text(text),
            Tree::List(_) | Tree::Object(_) => {}
        }
        self.n < TERMS
    }

    fn text(&mut self, text: &str) {
        let term = TextTerm::of(text);
        let (tag, value) = term.tagged(Tag::Text, Tag::LongText);
        self.emit(tag, value);
        if tag == Tag::LongText {
            self.sink.long_text(&self.key, text);
        }
        if let Some(ms) = instant_ms(text) {
            self.sink.instant(&self.key, ms);
        }
        if self.search != Search::Folded {
            return;
        }
        let folded = fold(text);
        let term = TextTerm::of(&folded);
        let (tag, value) = term.tagged(Tag::Folded, Tag::LongFolded);
        self.emit(tag, value);
        for word in words_of(&folded) {
            if WORD_BYTES < word.len() || TERMS <= self.n {
                self.emit(Tag::ManyWords, &[]);
                break;
            }
            self.emit(Tag::Word, word.as_bytes());
        }
    }

    fn emit(&mut self, tag: Tag, value: &[u8]) {
        if self.search == Search::Values && !tag.is_of_values() {
            return;
        }
        self.n += 1;
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.path);
        self.scratch.extend_from_slice(&PATH_END);
        self.scratch.push(tag as u8);
        self.scratch.extend_from_slice(value);
        self.sink.term(&self.scratch);
    }
}
