//! CQL as FOLIO's clients write it: parses text into a tree (`cql/tree.rs`). `cql/meaning.rs` translates the tree for a
//! kind.
//!
//! Grammar (section 1.4 of the contract): `index relation [/modifier] term`, `AND OR NOT` in any case, left to right
//! with equal precedence, parentheses, quoted or bare terms, `sortBy field/sort.descending` at the end. A relation
//! before parentheses applies to the bare terms within them; a complete clause within such parentheses is independent
//! of it. Adjacent bare words form one term.
//!
//! Limits: length, depth of parentheses, number of conditions and of words, see [`Bounds`].

mod meaning;
mod tokens;
mod tree;

pub(crate) use self::tree::everything;
use tokens::{Token, TokenKind, tokens};

pub(crate) use tree::ALL_RECORDS;
pub use tree::{Clause, Cql, CqlError, Modifier, Node, Piece, Relation, SortKey, Term};

pub(crate) use meaning::ANYWHERE;
pub use meaning::{Names, meaning, order};

/// Limits of a query.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum length of the text, in bytes.
    pub length_bytes: usize,
    /// Maximum nesting depth of parentheses.
    pub depth: usize,
    /// Maximum number of conditions.
    pub clauses: usize,
    /// Maximum number of words in all terms together.
    pub words: usize,
}

/// Parses a query. An empty text matches everything.
///
/// Errors: invalid CQL, or a query beyond the limits.
pub fn parse(text: &str, bounds: Bounds) -> Result<Cql, CqlError> {
    if bounds.length_bytes < text.len() {
        let reason = format!("the query has {} bytes, at most {} are read", text.len(), bounds.length_bytes);
        return Err(CqlError { reason, at: bounds.length_bytes });
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, end: text.len(), bounds, n_clauses: 0, n_words: 0 };
    if parser.peek().is_none() {
        return Ok(Cql { condition: everything(), sort: Vec::new() });
    }
    let condition = if parser.is_word("sortby") { everything() } else { parser.query(None, 0)?.node };
    let sort = parser.sort()?;
    match parser.peek() {
        None => Ok(Cql { condition, sort }),
        Some(token) => Err(parser.unexpected(&token.kind.clone(), "the end, AND, OR, NOT or sortBy")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    end: usize,
    bounds: Bounds,
    n_clauses: usize,
    n_words: usize,
}

/// Index, relation and modifiers that apply to bare terms within parentheses.
type Outer = (String, Relation, Vec<Modifier>);

/// Maximum height of a query's tree, which bounds the recursion of everything that walks it.
const TREE_HEIGHT: usize = 100;
/// Maximum number of conditions with the same operator that are chained in order; longer lists are split in halves.
const CHAIN: usize = 8;

/// A condition with its height.
struct Tree {
    node: Node,
    height: usize,
}

impl Tree {
    fn leaf(clause: Clause) -> Self {
        Self { node: Node::Clause(clause), height: 1 }
    }
}

/// How two conditions are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
    Not,
}

impl Joint {
    fn of(self, first: Tree, second: Tree) -> Tree {
        let height = first.height.max(second.height) + 1;
        let (first, second) = (Box::new(first.node), Box::new(second.node));
        let node = match self {
            Self::And => Node::And(first, second),
            Self::Or => Node::Or(first, second),
            Self::Not => Node::Not(first, second),
        };
        Tree { node, height }
    }
}

/// Combines `first` and the others with one operator from left to right. Excluding many conditions is the same as
/// excluding their disjunction.
fn joined(joint: Joint, first: Tree, mut others: Vec<Tree>) -> Tree {
    if joint == Joint::Not && CHAIN < others.len() {
        return joint.of(first, halved(Joint::Or, others));
    }
    others.insert(0, first);
    if joint == Joint::Not { chained(joint, others) } else { halved(joint, others) }
}

/// Builds a tree of low height from conditions whose grouping does not matter.
fn halved(joint: Joint, mut parts: Vec<Tree>) -> Tree {
    if parts.len() <= CHAIN {
        return chained(joint, parts);
    }
    let second = parts.split_off(parts.len() / 2);
    joint.of(halved(joint, parts), halved(joint, second))
}

fn chained(joint: Joint, parts: Vec<Tree>) -> Tree {
    let nothing = Tree { node: everything(), height: 1 };
    parts.into_iter().reduce(|first, second| joint.of(first, second)).unwrap_or(nothing)
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn kind(&self, ahead: usize) -> Option<&TokenKind> {
        self.tokens.get(self.at + ahead).map(|it| &it.kind)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(0), Some(TokenKind::Word(it)) if it.eq_ignore_ascii_case(word))
    }

    fn error<T>(&self, reason: impl Into<String>) -> Result<T, CqlError> {
        Err(CqlError { reason: reason.into(), at: self.peek().map_or(self.end, |it| it.at) })
    }

    fn unexpected(&self, found: &TokenKind, expected: &str) -> CqlError {
        let found = match found {
            TokenKind::Open => "(".to_owned(),
            TokenKind::Close => ")".to_owned(),
            TokenKind::Slash => "/".to_owned(),
            TokenKind::Relation(_) => "a relation".to_owned(),
            TokenKind::Word(word) | TokenKind::Quoted(word) => {
                format!("{:?}", word.chars().take(60).collect::<String>())
            }
        };
        CqlError {
            reason: format!("expected {expected}, found {found}"),
            at: self.peek().map_or(self.end, |it| it.at),
        }
    }

    fn query(&mut self, outer: Option<&Outer>, depth: usize) -> Result<Tree, CqlError> {
        let mut tree = self.operand(outer, depth)?;
        while let Some(joint) = self.joint()? {
            // First collect conditions with the same operator.
            let mut parts = Vec::new();
            loop {
                self.at += 1;
                self.modifiers()?;
                // Many clients write `AND NOT x` for `NOT x`.
                parts.push(self.operand(outer, depth)?);
                if self.joint()? != Some(joint) {
                    break;
                }
            }
            tree = joined(joint, tree, parts);
            if TREE_HEIGHT < tree.height {
                return self.error(format!(
                    "AND, OR and NOT alternate more than {TREE_HEIGHT} deep; put conditions that are joined alike side by side"
                ));
            }
        }
        Ok(tree)
    }

    /// Parses a condition, or `NOT` and a condition.
    fn operand(&mut self, outer: Option<&Outer>, depth: usize) -> Result<Tree, CqlError> {
        if !self.is_word("not") || matches!(self.kind(1), Some(TokenKind::Relation(_))) {
            return self.clause(outer, depth);
        }
        self.at += 1;
        let Tree { node, height } = self.clause(outer, depth)?;
        Ok(Tree { node: Node::Negation(Box::new(node)), height: height + 1 })
    }

    /// Returns the operator before the next condition, if there is one.
    fn joint(&self) -> Result<Option<Joint>, CqlError> {
        if self.is_word("prox") {
            return self.error("PROX is not understood");
        }
        let joints = [("and", Joint::And), ("or", Joint::Or), ("not", Joint::Not)];
        Ok(joints.into_iter().find(|it| self.is_word(it.0)).map(|it| it.1))
    }

    fn clause(&mut self, outer: Option<&Outer>, depth: usize) -> Result<Tree, CqlError> {
        if self.bounds.depth < depth {
            return self.error(format!("brackets are nested deeper than {} levels", self.bounds.depth));
        }
        self.n_clauses += 1;
        if self.bounds.clauses < self.n_clauses {
            return self.error(format!("there are more than {} conditions", self.bounds.clauses));
        }
        let Some(token) = self.peek().cloned() else {
            return self.error("expected a condition, found the end");
        };
        let is_bare = matches!(token.kind, TokenKind::Word(_));
        let word = match token.kind {
            TokenKind::Open => {
                self.at += 1;
                let tree = self.query(outer, depth + 1)?;
                return self.closed(tree);
            }
            TokenKind::Word(word) | TokenKind::Quoted(word) => word,
            other => return Err(self.unexpected(&other, "an index, a term or (")),
        };
        self.at += 1;
        let Some(relation) = self.relation() else {
            // A term on its own.
            let term = self.term(word, is_bare)?;
            let (index, relation, modifiers) = match outer {
                Some(outer) => outer.clone(),
                None => ("cql.serverChoice".to_owned(), Relation::Words, Vec::new()),
            };
            return Ok(Tree::leaf(Clause { index, relation, modifiers, term }));
        };
        let modifiers = self.modifiers()?;
        let index = Term::new(word).literal().unwrap_or_default();
        let Some(token) = self.peek().cloned() else { return self.error("expected a term, found the end") };
        match token.kind {
            TokenKind::Open => {
                self.at += 1;
                let tree = self.query(Some(&(index, relation, modifiers)), depth + 1)?;
                self.closed(tree)
            }
            TokenKind::Word(ref word) | TokenKind::Quoted(ref word) => {
                self.at += 1;
                let term = self.term(word.clone(), matches!(token.kind, TokenKind::Word(_)))?;
                Ok(Tree::leaf(Clause { index, relation, modifiers, term }))
            }
            other => Err(self.unexpected(&other, "a term or (")),
        }
    }

    /// Parses the term that begins with `first`; following bare words belong to it, up to an operator or the end of the
    /// condition.
    fn term(&mut self, first: String, is_bare: bool) -> Result<Term, CqlError> {
        const ENDS: [&str; 5] = ["and", "or", "not", "prox", "sortby"];
        let mut text = first;
        while let (true, Some(TokenKind::Word(word))) = (is_bare, self.kind(0)) {
            let begins_another = matches!(self.kind(1), Some(TokenKind::Relation(_) | TokenKind::Slash));
            if begins_another || ENDS.iter().any(|it| word.eq_ignore_ascii_case(it)) {
                break;
            }
            text.push(' ');
            text.push_str(word);
            self.at += 1;
        }
        let term = Term::new(text);
        self.n_words += term.words().len();
        if self.bounds.words < self.n_words {
            return self.error(format!("there are more than {} words", self.bounds.words));
        }
        Ok(term)
    }

    fn closed(&mut self, tree: Tree) -> Result<Tree, CqlError> {
        match self.kind(0).cloned() {
            Some(TokenKind::Close) => {
                self.at += 1;
                Ok(tree)
            }
            Some(other) => Err(self.unexpected(&other, ")")),
            None => self.error("expected ), found the end"),
        }
    }

    fn relation(&mut self) -> Option<Relation> {
        let relation = match self.kind(0)? {
            TokenKind::Relation(relation) => *relation,
            // The name of a relation counts as one only if a term follows.
            TokenKind::Word(word)
                if matches!(
                    self.kind(1),
                    Some(TokenKind::Word(_) | TokenKind::Quoted(_) | TokenKind::Open | TokenKind::Slash)
                ) =>
            {
                match word.to_ascii_lowercase().as_str() {
                    "adj" => Relation::Adjacent,
                    "all" => Relation::All,
                    "any" => Relation::Any,
                    "exact" => Relation::Exact,
                    "scr" => Relation::Words,
                    _ => return None,
                }
            }
            _ => return None,
        };
        self.at += 1;
        Some(relation)
    }

    /// Parses `/@name=value`, `/@name`, and `/name`; only modifiers with `@` have an effect here.
    fn modifiers(&mut self) -> Result<Vec<Modifier>, CqlError> {
        let mut list = Vec::new();
        while self.kind(0) == Some(&TokenKind::Slash) {
            self.at += 1;
            let Some(TokenKind::Word(name)) = self.kind(0).cloned() else {
                return self.error("expected a modifier behind /");
            };
            self.at += 1;
            let mut value = None;
            if let Some(TokenKind::Relation(relation)) = self.kind(0).cloned() {
                let Some(TokenKind::Word(term) | TokenKind::Quoted(term)) = self.kind(1).cloned() else {
                    return self.error("expected a value of the modifier");
                };
                self.at += 2;
                value = Some((relation, Term::new(term)));
            }
            if let Some(name) = name.strip_prefix('@') {
                list.push(Modifier { name: name.to_owned(), value });
            }
        }
        Ok(list)
    }

    fn sort(&mut self) -> Result<Vec<SortKey>, CqlError> {
        let mut keys = Vec::new();
        if !self.is_word("sortby") {
            return Ok(keys);
        }
        self.at += 1;
        while let Some(TokenKind::Word(index) | TokenKind::Quoted(index)) = self.kind(0).cloned() {
            self.at += 1;
            let mut is_descending = false;
            while self.kind(0) == Some(&TokenKind::Slash) {
                self.at += 1;
                if let Some(TokenKind::Word(modifier)) = self.kind(0) {
                    is_descending |=
                        matches!(modifier.to_ascii_lowercase().as_str(), "sort.descending" | "descending");
                    self.at += 1;
                }
            }
            keys.push(SortKey { index: Term::new(index).literal().unwrap_or_default(), is_descending });
        }
        if keys.is_empty() {
            return self.error("expected a field behind sortBy");
        }
        if 8 < keys.len() {
            return self.error("there are more than 8 fields to sort by");
        }
        Ok(keys)
    }
}
