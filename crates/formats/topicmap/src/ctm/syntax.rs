//! The syntax tree of a CTM document.

/// Something that stands for a topic or a value.
#[derive(Debug, Clone)]
pub(super) enum Term {
    /// A topic of the document.
    Identifier(String),
    /// An absolute IRI: a subject identifier, or a value of type anyURI.
    Iri(String),
    /// `=` before an IRI or variable.
    SubjectLocator(Box<Term>),
    /// `^` before an IRI or variable.
    ItemIdentifier(Box<Term>),
    /// `$name`.
    Variable(String),
    /// `?`, or `?name`.
    Wildcard(Option<String>),
    /// `[ ... ]`.
    Embedded(Box<Block>),
    /// A value and the IRI of its datatype.
    Literal(String, String),
}

/// The statements about one topic.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// None for an embedded topic without identity.
    pub(super) subject: Option<Term>,
    pub(super) assertions: Vec<(Assertion, u64)>,
}

#[derive(Debug, Clone)]
pub(super) enum Assertion {
    Identity(Term),
    IsA(Term),
    KindOf(Term),
    Name { kind: Option<Term>, value: Term, tail: Tail, variants: Vec<(Term, Tail, u64)> },
    Occurrence { kind: Term, value: Term, tail: Tail },
    Invocation { name: String, arguments: Vec<Term> },
}

/// Scope and reifier.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    pub(super) scope: Vec<Term>,
    pub(super) reifier: Option<Term>,
}

#[derive(Debug, Clone)]
pub(super) enum Statement {
    Topic(Block),
    Association {
        kind: Term,
        roles: Vec<RoleTerm>,
        tail: Tail,
    },
    Invocation {
        name: String,
        arguments: Vec<Term>,
    },
    /// Absolute IRI.
    Include(String),
    /// Absolute IRI, and the syntax.
    MergeMap(String, Option<String>),
    /// `~ topic` at the beginning.
    Reifier(Term),
}

#[derive(Debug, Clone)]
pub(super) struct RoleTerm {
    pub(super) kind: Term,
    pub(super) player: Term,
    pub(super) reifier: Option<Term>,
}

#[derive(Debug, Clone)]
pub(super) struct Template {
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<(Statement, u64)>,
    pub(super) line: u64,
}

#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) statements: Vec<(Statement, u64)>,
    pub(super) templates: Vec<Template>,
}
