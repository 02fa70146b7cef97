//! The meaning of a CQL query for a kind, as conditions of the store.
//!
//! The comparison depends on the column of a field: points in time, numbers and booleans by value, `Type::Text` (ids,
//! codes) exactly, everything else ignoring case and accents. `=` searches for words; for ids, codes, numbers and dates
//! it is the same as `==`, and so it is for the fields listed in [`Names::whole`].

use pinakes_store::{Direction, End, Expr, Kind, Order, Path, Pattern, TextQuery, Type, Value, Word, fold};

use crate::platform::cql::tree::{ALL_RECORDS, Clause, Cql, CqlError, Node, Piece, Relation, Term};
use crate::platform::dates;

/// The meaning of names in queries about a kind.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// Names that clients use for other paths.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Lists of objects: the field of an element that is meant if only the list is named.
    pub elements: &'static [(&'static str, &'static str)],
    /// Fields whose value is a single word, so that `=` equals `==`.
    pub whole: &'static [&'static str],
    /// Fields searched by a term without an index: each of its words must be in one of them.
    pub anywhere: &'static [&'static str],
    /// Paths of further fields, in addition to those that the collection declares elsewhere.
    pub fields: &'static [&'static str],
}

impl Names {
    /// Names without any translation.
    pub const PLAIN: Self = Self { aliases: &[], elements: &[], whole: &[], anywhere: &[], fields: &[] };

    /// Returns the path that an index stands for.
    pub(crate) fn path<'a>(&self, index: &'a str) -> &'a str
    where
        'static: 'a,
    {
        self.aliases
            .iter()
            .find(|(alias, _)| alias.eq_ignore_ascii_case(index))
            .map_or(index, |(_, path)| path)
    }
}

/// Translates a query into a condition on `kind`. `foreign` may evaluate a clause about records of other kinds itself.
///
/// Errors: a pattern that is too large; errors of `foreign`.
pub fn meaning<E: From<CqlError>>(
    node: &Node,
    kind: &'static Kind,
    names: &Names,
    foreign: &mut dyn FnMut(&Clause) -> Result<Option<Expr>, E>,
) -> Result<Expr, E> {
    let mut of = |it: &Node| meaning(it, kind, names, &mut *foreign);
    Ok(match node {
        Node::And(a, b) => of(a)?.and(of(b)?),
        Node::Or(a, b) => Expr::Or(vec![of(a)?, of(b)?]),
        Node::Not(a, b) => {
            let without = Expr::Not(Box::new(of(b)?));
            of(a)?.and(without)
        }
        Node::Negation(it) => Expr::Not(Box::new(of(it)?)),
        Node::Clause(clause) => match foreign(clause)? {
            Some(expr) => expr,
            None => Reader { kind, names }.clause(clause)?,
        },
    })
}

/// Returns the order of a query.
pub fn order(cql: &Cql, names: &Names) -> Vec<Order> {
    let direction = |is_descending| if is_descending { Direction::Descending } else { Direction::Ascending };
    cql.sort
        .iter()
        .map(|key| Order { path: names.path(&key.index).into(), direction: direction(key.is_descending) })
        .collect()
}

/// Name in [`Names::aliases`] that stands for all of [`Names::anywhere`].
pub(crate) const ANYWHERE: &str = "cql.serverChoice";

struct Reader<'a> {
    kind: &'static Kind,
    names: &'a Names,
}

impl Reader<'_> {
    fn clause(&self, clause: &Clause) -> Result<Expr, CqlError> {
        if clause.index.eq_ignore_ascii_case(ALL_RECORDS) {
            return Ok(Expr::All);
        }
        if clause.index.eq_ignore_ascii_case("cql.serverChoice")
            || clause.index.eq_ignore_ascii_case("keyword")
        {
            return self.anywhere(clause);
        }
        let path = self.names.path(&clause.index);
        if path == ANYWHERE { self.anywhere(clause) } else { self.at(path, clause) }
    }

    /// Translates a clause about any field: each word may be in a different one, like a word of the title and the
    /// author's name.
    fn anywhere(&self, clause: &Clause) -> Result<Expr, CqlError> {
        let fields = self.names.anywhere;
        let in_one = |clause: &Clause| -> Result<Expr, CqlError> {
            Ok(Expr::Or(fields.iter().map(|path| self.at(path, clause)).collect::<Result<_, _>>()?))
        };
        let words = clause.term.words();
        if words.len() < 2 || !matches!(clause.relation, Relation::Words | Relation::All) {
            return in_one(clause);
        }
        let word = |term: Term| in_one(&Clause { term, ..clause.clone() });
        Ok(Expr::And(words.into_iter().map(word).collect::<Result<_, _>>()?))
    }

    /// Translates a clause about the field at `path`.
    fn at(&self, path: &str, clause: &Clause) -> Result<Expr, CqlError> {
        let element = self.names.elements.iter().find(|(list, _)| *list == path).map(|(_, field)| *field);
        if clause.modifiers.is_empty() {
            let inner = element.map(|field| format!("{path}.{field}"));
            return self.compared(inner.as_deref().unwrap_or(path), clause.relation, &clause.term);
        }
        let mut conditions = Vec::new();
        let mut fields = Vec::new();
        for modifier in &clause.modifiers {
            match &modifier.value {
                Some((relation, term)) => conditions.push(within(&modifier.name, *relation, term)?),
                None => fields.push(modifier.name.as_str()),
            }
        }
        if fields.is_empty() {
            fields.extend(element);
        }
        let each: Result<Vec<Expr>, CqlError> =
            fields.iter().map(|field| within(field, clause.relation, &clause.term)).collect();
        let mut each = each?;
        match each.len() {
            0 => {}
            1 => conditions.append(&mut each),
            _ => conditions.push(Expr::Or(each)),
        }
        Ok(Expr::Element(path.into(), Box::new(Expr::And(conditions))))
    }

    fn compared(&self, path: &str, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
        let place = Path::dotted(path);
        let ty = if self.kind.is_id(&place) {
            Some(Type::Text)
        } else {
            self.kind.column_of(&place).map(|it| it.ty)
        };
        let is_whole = self.names.whole.contains(&path);
        match ty {
            Some(Type::Text) => exact_text(&place, relation, term),
            Some(Type::Folded) if is_whole => folded(&place, whole(relation, term), term),
            Some(Type::Folded) => {
                let found = folded(&place, relation, term)?;
                Ok(self.narrowed(path, relation, term, found))
            }
            Some(Type::Instant) => instant(&place, relation, term),
            Some(Type::Integer | Type::Real) => Ok(number(&place, relation, term)),
            Some(Type::Boolean) => Ok(boolean(&place, relation, term)),
            None => {
                let found = anything(&place, if is_whole { whole(relation, term) } else { relation }, term)?;
                Ok(self.narrowed(path, relation, term, found))
            }
        }
    }

    /// Adds the text index to a condition on words, if the field is in that index.
    fn narrowed(&self, path: &str, relation: Relation, term: &Term, found: Expr) -> Expr {
        let pinakes_store::Text::At(paths) = self.kind.text else { return found };
        if !paths.contains(&path) {
            return found;
        }
        let words: Option<Vec<String>> = term.words().iter().map(Term::literal).collect();
        let Some(words) = words.filter(|it| !it.is_empty() && it.iter().all(|word| word.is_ascii())) else {
            return found;
        };
        let query = match relation {
            Relation::Words | Relation::All | Relation::Adjacent => {
                TextQuery { phrases: words, ..TextQuery::default() }
            }
            Relation::Any => TextQuery { words, ..TextQuery::default() },
            _ => return found,
        };
        Expr::Text(query).and(found)
    }
}

/// Replaces `=` with `==`, except in `field=""`, which asks whether there is a value.
fn whole(relation: Relation, term: &Term) -> Relation {
    if relation == Relation::Words && !term.pieces().is_empty() { Relation::Exact } else { relation }
}

/// Translates a condition on a field of a list element, whose type no column declares.
fn within(field: &str, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    let is_id = field.ends_with("Id") || field == "id";
    anything(&Path::dotted(field), if is_id { whole(relation, term) } else { relation }, term)
}

/// Compares ids and codes.
fn exact_text(path: &Path, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    let text = |text: String| Value::Text(crate::platform::values::parse_uuid(&text).unwrap_or(text));
    if term.pieces().is_empty() {
        return Ok(empty(path, relation, Value::Text(String::new())));
    }
    let Some(literal) = term.literal() else { return Ok(negated(relation, path, pattern(path, term, "s")?)) };
    let value = text(literal);
    Ok(match relation {
        Relation::Any | Relation::All => {
            let words = term.to_string();
            let each = words
                .split_whitespace()
                .map(|it| text(Term::new(it).literal().unwrap_or_default()))
                .collect();
            Expr::In(path.clone(), each)
        }
        _ => ordered(path, relation, value),
    })
}

/// Compares strings, ignoring case and accents.
fn folded(path: &Path, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    if term.pieces().is_empty() {
        return Ok(empty(path, relation, Value::Folded(String::new())));
    }
    match relation {
        Relation::Words | Relation::All | Relation::Any | Relation::Adjacent => words(path, relation, term),
        Relation::Exact | Relation::Different => {
            let equal = match (term.literal(), term.pieces().as_slice()) {
                (Some(literal), _) => Expr::Is(path.clone(), Value::Folded(literal)),
                (None, [Piece::Any]) => defined(path),
                (None, [Piece::Text(begin), Piece::Any]) => prefix(path, begin),
                _ => pattern(path, term, "fs")?,
            };
            Ok(negated(relation, path, equal))
        }
        _ => Ok(ordered(path, relation, Value::Folded(term.literal().unwrap_or_else(|| term.to_string())))),
    }
}

/// Compares a field of unknown type: the form of the term decides which types are possible.
fn anything(path: &Path, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    let text = folded(path, relation, term)?;
    let Some(literal) = term.literal().filter(|it| !it.is_empty()) else { return Ok(text) };
    let mut also = Vec::new();
    let is_equality = matches!(relation, Relation::Exact | Relation::Words | Relation::Different);
    if let Ok(number) = literal.parse::<i64>() {
        also.push(Value::Integer(number));
    } else if let Some(number) = literal.parse::<f64>().ok().filter(|it| it.is_finite()) {
        also.push(Value::Real(number));
    } else if let (true, Some(ms)) =
        (literal.as_bytes().first().is_some_and(u8::is_ascii_digit), dates::parse_ms(&literal))
    {
        // Times are compared by value, however they are written, and never as text.
        return Ok(ordered(path, relation, Value::Instant(ms)));
    }
    if let (true, Ok(truth)) = (is_equality, literal.parse::<bool>()) {
        also.push(Value::Boolean(truth));
    }
    if matches!(relation, Relation::Any | Relation::All | Relation::Adjacent) || also.is_empty() {
        return Ok(text);
    }
    if relation == Relation::Different {
        let mut equal = vec![Expr::Is(path.clone(), Value::Folded(literal))];
        equal.extend(also.into_iter().map(|it| Expr::Is(path.clone(), it)));
        return Ok(present(path).and(Expr::Not(Box::new(Expr::Or(equal)))));
    }
    let mut list = vec![text];
    list.extend(also.into_iter().map(|it| ordered(path, relation, it)));
    Ok(Expr::Or(list))
}

fn instant(path: &Path, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    if term.pieces().is_empty() {
        return Ok(empty(path, relation, Value::Folded(String::new())));
    }
    match term.literal().as_deref().and_then(dates::parse_ms) {
        Some(ms) => Ok(ordered(path, relation, Value::Instant(ms))),
        None => Ok(negated(relation, path, pattern(path, term, "fs")?)),
    }
}

fn number(path: &Path, relation: Relation, term: &Term) -> Expr {
    let literal = term.literal().unwrap_or_default();
    let value = match (literal.parse::<i64>(), literal.parse::<f64>()) {
        (Ok(whole), _) => Value::Integer(whole),
        (_, Ok(real)) if real.is_finite() => Value::Real(real),
        _ if literal.is_empty() => return empty(path, relation, Value::Folded(String::new())),
        _ => return Expr::Nothing,
    };
    ordered(path, relation, value)
}

fn boolean(path: &Path, relation: Relation, term: &Term) -> Expr {
    match term.literal().unwrap_or_default().to_ascii_lowercase().as_str() {
        "true" => ordered(path, relation, Value::Boolean(true)),
        "false" => ordered(path, relation, Value::Boolean(false)),
        "" => empty(path, relation, Value::Folded(String::new())),
        _ => Expr::Nothing,
    }
}

/// Compares with one value.
fn ordered(path: &Path, relation: Relation, value: Value) -> Expr {
    let range = |low, high| Expr::Range(path.clone(), low, high);
    match relation {
        Relation::Less => range(End::Open, End::Excluded(value)),
        Relation::LessOrEqual => range(End::Open, End::Included(value)),
        Relation::Greater => range(End::Excluded(value), End::Open),
        Relation::GreaterOrEqual => range(End::Included(value), End::Open),
        Relation::Different => {
            let there = match &value {
                Value::Text(_) => {
                    Expr::Range(path.clone(), End::Included(Value::Text(String::new())), End::Open)
                }
                Value::Folded(_) => defined(path),
                _ => present(path),
            };
            there.and(Expr::Not(Box::new(Expr::Is(path.clone(), value))))
        }
        _ => Expr::Is(path.clone(), value),
    }
}

/// Tests with `field=""` whether the field is present, with `field==""` whether it is empty.
fn empty(path: &Path, relation: Relation, nothing: Value) -> Expr {
    match relation {
        Relation::Exact => Expr::Is(path.clone(), nothing),
        Relation::Different => present(path).and(Expr::Not(Box::new(Expr::Is(path.clone(), nothing)))),
        _ => present(path),
    }
}

/// Tests that the field is present and not null.
fn present(path: &Path) -> Expr {
    Expr::Exists(path.clone()).and(Expr::Not(Box::new(Expr::Is(path.clone(), Value::Null))))
}

/// Matches any string.
fn defined(path: &Path) -> Expr {
    Expr::Range(path.clone(), End::Included(Value::Folded(String::new())), End::Open)
}

fn prefix(path: &Path, begin: &str) -> Expr {
    let low = fold(begin);
    let high = format!("{low}{}", char::MAX);
    Expr::Range(path.clone(), End::Included(Value::Folded(low)), End::Included(Value::Folded(high)))
}

/// Negates a condition for `<>`, limited to records that have a value.
fn negated(relation: Relation, path: &Path, equal: Expr) -> Expr {
    match relation {
        Relation::Different => present(path).and(Expr::Not(Box::new(equal))),
        _ => equal,
    }
}

/// Matches the whole value, with wildcards.
fn pattern(path: &Path, term: &Term, flags: &str) -> Result<Expr, CqlError> {
    let text = format!("^{}$", expression(term, ".", flags.contains('f')));
    compiled(path, &text, flags)
}

fn words(path: &Path, relation: Relation, term: &Term) -> Result<Expr, CqlError> {
    let words = term.words();
    if words.is_empty() {
        // The term consists of wildcards or punctuation only.
        return Ok(defined(path));
    }
    let one = |word: &Term| match word_of(word) {
        Some(word) => Ok(Expr::Word(path.clone(), word)),
        None => compiled(path, &whole_word(&expression(word, IN_WORD, true)), "f"),
    };
    Ok(match relation {
        Relation::Adjacent => {
            let joined: Vec<String> = words.iter().map(|word| expression(word, IN_WORD, true)).collect();
            let joined = joined.join(&format!("{NOT_IN_WORD}+"));
            let together = compiled(path, &whole_word(&joined), "f")?;
            // The words are looked up in the index; adjacency is tested on what remains.
            let each = words.iter().filter_map(word_of).map(|word| Expr::Word(path.clone(), word));
            Expr::And(each.chain([together]).collect())
        }
        Relation::Any => Expr::Or(words.iter().map(one).collect::<Result<_, _>>()?),
        _ => Expr::And(words.iter().map(one).collect::<Result<_, _>>()?),
    })
}

/// Returns a word with its wildcards; `None` if it does not consist of letters and digits.
fn word_of(word: &Term) -> Option<Word> {
    let text: String = word
        .pieces()
        .into_iter()
        .map(|it| match it {
            // An escaped wildcard is a literal character, and no part of a word.
            Piece::Text(text) if text.contains(['*', '?']) => None,
            Piece::Text(text) => Some(text),
            Piece::Any => Some("*".to_owned()),
            Piece::One => Some("?".to_owned()),
        })
        .collect::<Option<_>>()?;
    Word::wild(&text)
}

/// Puts an expression between word boundaries. Boundaries cost next to nothing; sets of all letters would be compiled
/// into a third of a megabyte for each word.
fn whole_word(expression: &str) -> String {
    match expression.strip_suffix(&format!("{IN_WORD}*")) {
        Some(begin) => format!("{WORD_BEGIN}{begin}"),
        None => format!("{WORD_BEGIN}{expression}{WORD_END}"),
    }
}

/// Start and end of a word; `_` separates words here.
const WORD_BEGIN: &str = r"(?:\b{start-half}|_)";
const WORD_END: &str = r"(?:\b{end-half}|_)";
const IN_WORD: &str = r"[\p{Alphabetic}\p{N}]";
const NOT_IN_WORD: &str = r"[^\p{Alphabetic}\p{N}]";

/// Converts a term to a regular expression; `any` stands for one character.
fn expression(term: &Term, any: &str, is_folded: bool) -> String {
    let mut text = String::new();
    for piece in term.pieces() {
        match piece {
            Piece::Text(it) if is_folded => text.push_str(&regex::escape(&fold(&it))),
            Piece::Text(it) => text.push_str(&regex::escape(&it)),
            Piece::Any => text.push_str(&format!("{any}*")),
            Piece::One => text.push_str(any),
        }
    }
    text
}

fn compiled(path: &Path, text: &str, flags: &str) -> Result<Expr, CqlError> {
    match Pattern::new(text, flags) {
        Ok(pattern) => Ok(Expr::Regex(path.clone(), pattern)),
        Err(error) => Err(CqlError { reason: error.to_string(), at: 0 }),
    }
}
