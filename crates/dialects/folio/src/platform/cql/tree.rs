//! A query as a tree.

use std::fmt;

/// Why a query cannot be parsed: where, what was found, what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("CQLParseException: {reason} at character {at}")]
pub struct CqlError {
    /// What is wrong.
    pub reason: String,
    /// Position in bytes.
    pub at: usize,
}

/// A query: a condition and an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cql {
    /// The condition.
    pub condition: Node,
    /// Index names with their direction.
    pub sort: Vec<SortKey>,
}

impl Cql {
    /// Limits the query to records whose property is `value`.
    pub fn among(&mut self, property: &str, value: &str) {
        let wanted = Node::Clause(Clause {
            index: property.to_owned(),
            relation: Relation::Exact,
            modifiers: Vec::new(),
            term: Term::new(value),
        });
        let asked = std::mem::replace(&mut self.condition, everything());
        self.condition = Node::And(Box::new(asked), Box::new(wanted));
    }

    /// Excludes records whose property is `true`.
    pub fn leave_out(&mut self, property: &str) {
        let hidden = Node::Clause(Clause {
            index: property.to_owned(),
            relation: Relation::Exact,
            modifiers: Vec::new(),
            term: Term::new("true"),
        });
        let asked = std::mem::replace(&mut self.condition, everything());
        self.condition = Node::Not(Box::new(asked), Box::new(hidden));
    }
}

/// A field to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// Name of the field.
    pub index: String,
    /// Whether to sort in descending order.
    pub is_descending: bool,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// One comparison.
    Clause(Clause),
    /// Both conditions.
    And(Box<Node>, Box<Node>),
    /// At least one of the conditions.
    Or(Box<Node>, Box<Node>),
    /// The first and not the second.
    Not(Box<Node>, Box<Node>),
    /// The negation of a condition: a `NOT` without anything before it.
    Negation(Box<Node>),
}

impl Node {
    /// Checks whether all comparisons pass a test.
    pub(crate) fn all_clauses(&self, test: &impl Fn(&Clause) -> bool) -> bool {
        match self {
            Self::And(a, b) | Self::Or(a, b) | Self::Not(a, b) => a.all_clauses(test) && b.all_clauses(test),
            Self::Negation(it) => it.all_clauses(test),
            Self::Clause(clause) => test(clause),
        }
    }

    /// Writes each comparison anew.
    pub(crate) fn with_clauses(self, of: &impl Fn(Clause) -> Self) -> Self {
        let below = |it: Box<Self>| Box::new(it.with_clauses(of));
        match self {
            Self::And(a, b) => Self::And(below(a), below(b)),
            Self::Or(a, b) => Self::Or(below(a), below(b)),
            Self::Not(a, b) => Self::Not(below(a), below(b)),
            Self::Negation(it) => Self::Negation(below(it)),
            Self::Clause(clause) => of(clause),
        }
    }
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Name of the field; `cql.serverChoice` if none is given.
    pub index: String,
    /// How it is compared.
    pub relation: Relation,
    /// `/@name=value` or `/@name`, in order.
    pub modifiers: Vec<Modifier>,
    /// The term to compare with.
    pub term: Term,
}

/// A modifier that refers to an element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modifier {
    /// Name of the element's field, without `@`.
    pub name: String,
    /// Its relation and value; without them, it names the field that the term is compared with.
    pub value: Option<(Relation, Term)>,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `=`: words, in any order.
    Words,
    /// `==`: the whole value.
    Exact,
    /// `<>`.
    Different,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `adj`: the words in sequence.
    Adjacent,
    /// `all`: all words.
    All,
    /// `any`: at least one of the words.
    Any,
}

/// A term as it was written, with its escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term(String);

/// A part of a term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal characters.
    Text(String),
    /// `*`.
    Any,
    /// `?`.
    One,
}

impl Term {
    /// Wraps the text between the quotes, including escapes and wildcards.
    pub fn new(raw: impl Into<String>) -> Self {
        Self(raw.into())
    }

    /// Returns its parts.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            let piece = match character {
                '\\' => {
                    text.extend(characters.next());
                    continue;
                }
                '*' => Piece::Any,
                '?' => Piece::One,
                // `^` anchors a term at the start or end of the field, which `==` does anyway.
                '^' => continue,
                other => {
                    text.push(other);
                    continue;
                }
            };
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(piece);
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        pieces
    }

    /// Returns the literal text if the term has no wildcards.
    pub fn literal(&self) -> Option<String> {
        match self.pieces().as_slice() {
            [] => Some(String::new()),
            [Piece::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }

    /// Splits it into words, each a term; wildcards stay with their word.
    pub fn words(&self) -> Vec<Self> {
        let mut words = Vec::new();
        let mut word = String::new();
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some(escaped) if escaped.is_alphanumeric() || matches!(escaped, '*' | '?') => {
                        word.extend(['\\', escaped]);
                    }
                    _ => words.push(std::mem::take(&mut word)),
                },
                '*' | '?' => word.push(character),
                other if other.is_alphanumeric() => word.push(other),
                _ => words.push(std::mem::take(&mut word)),
            }
        }
        words.push(word);
        words.into_iter().filter(|it| !it.is_empty()).map(Self).collect()
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn everything() -> Node {
    Node::Clause(Clause {
        index: ALL_RECORDS.to_owned(),
        relation: Relation::Words,
        modifiers: Vec::new(),
        term: Term::new("1"),
    })
}

/// The index that matches every record.
pub(crate) const ALL_RECORDS: &str = "cql.allRecords";
