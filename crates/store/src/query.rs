//! Queries on a kind: a small tree of conditions, an order and a window.
//!
//! Dialects translate their own query languages into this; the planner does the rest. Every condition means the same on
//! a declared column and on any other path of the body, on either engine.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::{JoinKeys, Word};

/// Steps into a body. Lists on the way are descended into: the condition holds if one element satisfies it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Vec<String>);

impl Path {
    /// Parses dotted text: `scientificMetadata.temperature.value`.
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }
    /// Returns the path of these steps, which may themselves contain dots.
    pub fn steps(steps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(steps.into_iter().map(Into::into).collect())
    }
    /// Returns the steps.
    pub fn as_steps(&self) -> &[String] {
        &self.0
    }
    /// Returns the position in a list that a step denotes, if it is a number as positions are written: `10`, not `010`.
    pub(crate) fn position(step: &str) -> Option<usize> {
        let is_written = step == "0" || step.starts_with(|first| ('1'..='9').contains(&first));
        step.parse().ok().filter(|_| is_written)
    }
    /// Returns whether this is the path that `dotted` denotes.
    pub fn is_dotted(&self, dotted: &str) -> bool {
        self.0.iter().map(String::as_str).eq(dotted.split('.'))
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Self {
        Self::dotted(text)
    }
}

/// A value in a condition. Comparison is within one type: a number never matches a string.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Matches `null` and absent values.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A string.
    Text(String),
    /// A point in time in milliseconds since 1970; matches ISO 8601 strings that denote it.
    Instant(i64),
    /// A string compared without case and accents, see [`crate::fold()`].
    Folded(String),
    /// A list or object, equal as a whole.
    Json(Json),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(it: bool) -> Self {
        Self::Boolean(it)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// One end of a range.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// No limit.
    Open,
    /// Up to and including the value.
    Included(Value),
    /// Up to but excluding the value.
    Excluded(Value),
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// Always true.
    All,
    /// Never true.
    Nothing,
    /// All of them hold.
    And(Vec<Expr>),
    /// At least one of them holds.
    Or(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// The value, or an element of the list, equals this.
    Is(Path, Value),
    /// The value, or an element of the list, is one of these.
    In(Path, Vec<Value>),
    /// The value, or an element of the list, lies in the range.
    Range(Path, End, End),
    /// The path exists, even as `null`.
    Exists(Path),
    /// The string has this prefix.
    Prefix(Path, String),
    /// The string matches the pattern.
    Regex(Path, Pattern),
    /// The string contains the word, ignoring case and accents.
    Word(Path, Word),
    /// One element of the list satisfies the condition, whose paths start at the element.
    Element(Path, Box<Expr>),
    /// The list has that many elements.
    Size(Path, u64),
    /// Words in the text of the record, see [`TextQuery`].
    Text(TextQuery),
    /// The id of the record is one of these.
    Ids(Vec<String>),
    /// The text or whole number, or one of the list, is one of these, of which there may be millions.
    Joined(Path, JoinKeys),
}

impl Expr {
    /// Returns the path of a condition on the values of one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Is(path, _)
            | Self::In(path, _)
            | Self::Range(path, ..)
            | Self::Exists(path)
            | Self::Prefix(path, _)
            | Self::Regex(path, _)
            | Self::Word(path, _)
            | Self::Element(path, _)
            | Self::Size(path, _)
            | Self::Joined(path, _) => Some(path),
            Self::All
            | Self::Nothing
            | Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::Text(_)
            | Self::Ids(_) => None,
        }
    }

    /// Combines both conditions; simplifies `All` away.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, it) | (it, Self::All) => it,
            (Self::And(mut list), Self::And(more)) => {
                list.extend(more);
                Self::And(list)
            }
            (Self::And(mut list), it) | (it, Self::And(mut list)) => {
                list.push(it);
                Self::And(list)
            }
            (a, b) => Self::And(vec![a, b]),
        }
    }
}

/// The part of a text that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextPart {
    /// All of it.
    #[default]
    All,
    /// Its ASCII digits.
    Digits,
    /// Its letters and digits, of all scripts.
    Alphanumerics,
}

impl TextPart {
    /// Returns the part of a text.
    pub fn of(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::All => Cow::Borrowed(text),
            Self::Digits => Cow::Owned(text.chars().filter(char::is_ascii_digit).collect()),
            Self::Alphanumerics => Cow::Owned(text.chars().filter(|it| it.is_alphanumeric()).collect()),
        }
    }
}

/// A regular expression, compiled once with a limit on its size; matching takes linear time.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: regex::Regex,
    flags: String,
    part: TextPart,
}

/// Equal if compiled from the same text and flags, and matched against the same part.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() && self.flags == other.flags && self.part == other.part
    }
}

impl Pattern {
    /// Compiles `text`, unanchored. `flags` are those of JavaScript and MongoDB: `i`, `m`, `s`, `x`; with `f` the
    /// pattern is matched against the folded string ([`crate::fold()`]).
    ///
    /// Errors: the text is not a regular expression, uses back-references or look-around, or is too large.
    pub fn new(text: &str, flags: &str) -> Result<Self, crate::StoreError> {
        let mut builder = regex::RegexBuilder::new(text);
        for flag in flags.chars() {
            match flag {
                'i' => builder.case_insensitive(true),
                'm' => builder.multi_line(true),
                's' => builder.dot_matches_new_line(true),
                'x' => builder.ignore_whitespace(true),
                'u' | 'g' | 'f' => &mut builder,
                other => {
                    return Err(crate::StoreError::Query(format!(
                        "regular expression flag {other:?} is not one of i, m, s, x, f"
                    )));
                }
            };
        }
        let compiled = builder.size_limit(PATTERN_SIZE_BYTES).dfa_size_limit(PATTERN_SIZE_BYTES).build();
        compiled
            .map(|regex| Self { regex, flags: flags.to_owned(), part: TextPart::All })
            .map_err(|error| crate::StoreError::Query(format!("regular expression: {error}")))
    }

    /// Returns the same pattern, to be matched against a part of each text.
    pub fn on(self, part: TextPart) -> Self {
        Self { part, ..self }
    }

    /// Returns the part of each text that it is matched against.
    pub fn part(&self) -> TextPart {
        self.part
    }

    /// Returns whether it is matched against folded strings.
    pub fn is_folding(&self) -> bool {
        self.flags.contains('f')
    }

    /// Returns whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        let text = self.part.of(text);
        if self.is_folding() {
            return self.regex.is_match(&crate::fold(&text));
        }
        self.regex.is_match(&text)
    }

    /// Returns the text it was compiled from.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// Returns the flags it was compiled with.
    pub fn flags(&self) -> &str {
        &self.flags
    }
}

/// Largest compiled size of a pattern from a request.
const PATTERN_SIZE_BYTES: usize = 1 << 20;

/// Words to find, as in MongoDB's text search: words are alternatives, all phrases in quotes must occur, words after
/// `-` must not. Case, accents and English endings are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TextQuery {
    /// One of these must occur; ignored if there are phrases.
    pub words: Vec<String>,
    /// Each of these must occur.
    pub phrases: Vec<String>,
    /// None of these may occur.
    pub without: Vec<String>,
}

/// What to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The field; absent values come first when ascending, as in MongoDB.
    pub path: Path,
    /// The direction.
    pub direction: Direction,
}

/// Direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// Which records to return, in what order, and which window of them.
#[derive(Debug, Clone)]
pub struct Query {
    /// The condition.
    pub filter: Expr,
    /// The order; empty means insertion order. Ties are in insertion order, newest first when the last field is
    /// descending.
    pub order: Vec<Order>,
    /// Records to skip.
    pub skip: u64,
    /// Maximum number of records to return; `None` for all.
    pub limit: Option<u64>,
    /// Keyset paging: only records after this one; from [`crate::Record::cursor`] of the last row seen. Only for the
    /// insertion order: refused together with an order.
    pub after: Option<i64>,
}

impl Query {
    /// Returns a query for all records that satisfy `filter`, in insertion order.
    pub fn filter(filter: Expr) -> Self {
        Self { filter, order: Vec::new(), skip: 0, limit: None, after: None }
    }
    /// Adds a sort by `path`.
    pub fn sorted(mut self, path: impl Into<Path>, direction: Direction) -> Self {
        self.order.push(Order { path: path.into(), direction });
        self
    }
    /// Sets the window.
    pub fn window(mut self, skip: u64, limit: u64) -> Self {
        self.skip = skip;
        self.limit = Some(limit);
        self
    }
}

/// How often a value of a facet occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetCount {
    /// The value, see [`crate::Counts`].
    pub value: String,
    /// Number of records that have it.
    pub n_records: u64,
}
