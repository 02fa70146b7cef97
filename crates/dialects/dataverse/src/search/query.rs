//! The part of Solr's query syntax that clients use, converted into conditions of the store (section 7 of the
//! contract).
//!
//! Words of which any may match, `"phrases"`, `field:value`, `AND`, `OR`, `NOT`, `+`, `-`, parentheses, `*` within and
//! at the end of words, `?` within words, `word~1` and `"two words"~3`, `[a TO b]` by number, date or text, `NOW-7DAYS`
//! as a date.

use pinakes_store::{End, Expr, Path, Pattern, TextQuery, Word, fold};

use super::tokens::{Alike, Token, tokens};

/// Maximum length of a query, in bytes.
const QUERY_BYTES: usize = 16 << 10;
/// Maximum nesting of parentheses.
const DEPTH: usize = 32;

/// Maximum number of values that are matched by patterns: words in a field, with `*` or `?`, or before a tilde.
const PATTERNS: usize = 64;
/// Maximum number of those before a tilde, whose patterns are large.
const ALIKE: usize = 8;

/// A parsed query.
#[derive(Debug, Clone)]
pub(crate) struct Parsed {
    /// The condition.
    pub(crate) filter: Expr,
    /// The words to find, for ranking and highlighting.
    pub(crate) words: Vec<String>,
}

/// Parses a query; `now_ms` is the value of `NOW`.
///
/// Errors: the text after `Search Syntax Error: `.
pub(crate) fn parse(text: &str, now_ms: i64) -> Result<Parsed, String> {
    if QUERY_BYTES < text.len() {
        return Err(format!("the query has {} bytes, {QUERY_BYTES} are read", text.len()));
    }
    let tokens = tokens(text, now_ms)?;
    let mut reader = Reader { tokens, at: 0, words: Vec::new(), depth: 0, n_patterns: 0, n_alike: 0 };
    let filter = reader.group(None)?;
    if reader.at < reader.tokens.len() {
        return Err(format!("Cannot parse '{text}': a parenthesis is closed that was not opened"));
    }
    Ok(Parsed { filter, words: reader.words })
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    words: Vec<String>,
    depth: usize,
    n_patterns: usize,
    n_alike: usize,
}

/// How a clause is combined with the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occur {
    Should,
    Must,
    MustNot,
}

impl Reader {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Parses clauses up to a closing parenthesis or the end; `field` is that of the parenthesis.
    fn group(&mut self, field: Option<&str>) -> Result<Expr, String> {
        if DEPTH < self.depth {
            return Err("the query is nested too deeply".to_owned());
        }
        let mut clauses: Vec<(Occur, Expr)> = Vec::new();
        let mut joins_and = false;
        loop {
            match self.peek() {
                None | Some(Token::Close) => break,
                Some(Token::And) => {
                    self.at += 1;
                    if let Some(last) = clauses.last_mut().filter(|it| it.0 == Occur::Should) {
                        last.0 = Occur::Must;
                    }
                    joins_and = true;
                    continue;
                }
                Some(Token::Or) => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let occur = match self.peek() {
                Some(Token::Must) => {
                    self.at += 1;
                    Occur::Must
                }
                Some(Token::MustNot | Token::Not) => {
                    self.at += 1;
                    Occur::MustNot
                }
                _ if joins_and => Occur::Must,
                _ => Occur::Should,
            };
            joins_and = false;
            let is_wanted = occur != Occur::MustNot;
            let expr = self.clause(field, is_wanted)?;
            clauses.push((occur, expr));
        }
        Ok(joined(clauses))
    }

    /// Counts a value that is matched by a pattern. Errors: more of them than allowed.
    fn count_pattern(&mut self, field: Option<&str>, token: &Token) -> Result<(), String> {
        let is_pattern = match token {
            Token::Word(word) => field.is_some_and(|it| !is_exact(it)) || is_wild(word),
            Token::Phrase(_) => field.is_some_and(|it| !is_exact(it)),
            Token::Alike(..) => true,
            _ => false,
        };
        self.n_patterns += usize::from(is_pattern);
        self.n_alike += usize::from(matches!(token, Token::Alike(..)));
        if ALIKE < self.n_alike {
            return Err(format!("more than {ALIKE} words or phrases before ~ are not looked for at once"));
        }
        if PATTERNS < self.n_patterns {
            return Err(format!(
                "more than {PATTERNS} words in fields, or with * or ? in them, are not looked for at once"
            ));
        }
        Ok(())
    }

    fn clause(&mut self, field: Option<&str>, is_wanted: bool) -> Result<Expr, String> {
        let token = self.next();
        if let Some(token) = &token {
            self.count_pattern(field, token)?;
        }
        match token {
            Some(Token::Open) => {
                self.depth += 1;
                let inner = self.group(field)?;
                self.depth -= 1;
                match self.next() {
                    Some(Token::Close) => Ok(inner),
                    _ => Err("a parenthesis is opened and not closed".to_owned()),
                }
            }
            Some(Token::Field(name)) => {
                if matches!(self.peek(), None | Some(Token::Close | Token::Field(_))) {
                    return Err(format!("the field {name} has no value"));
                }
                self.clause(Some(&name), is_wanted)
            }
            Some(Token::Range(low, high, has_low, has_high)) => {
                let field = field.ok_or("a range stands without a field")?;
                Ok(range(field, &low, &high, has_low, has_high))
            }
            Some(Token::Word(word)) => {
                if is_wanted && field.is_none_or(|it| !is_exact(it)) && word != "*" {
                    self.words.extend(word.trim_end_matches('*').split_whitespace().map(str::to_owned));
                }
                value(field, &word, false)
            }
            Some(Token::Phrase(phrase)) => {
                if is_wanted && field.is_none_or(|it| !is_exact(it)) {
                    self.words.extend(phrase.split_whitespace().map(str::to_owned));
                }
                value(field, &phrase, true)
            }
            Some(Token::Alike(text, _)) if field.is_some_and(is_exact) => value(field, &text, true),
            Some(Token::Alike(text, alike)) => {
                if is_wanted {
                    self.words.extend(text.split_whitespace().map(str::to_owned));
                }
                let path = field.map_or_else(|| Path::dotted("text"), path_of);
                Ok(match alike {
                    Alike::Spelling(word) => Expr::Word(path, word),
                    Alike::Nearness(pattern) => with_words(path, &text, true, folded_pattern(&pattern)?),
                })
            }
            Some(other) => Err(format!("{other:?} stands where a value is expected")),
            None => Err("the query ends where a value is expected".to_owned()),
        }
    }
}

fn joined(clauses: Vec<(Occur, Expr)>) -> Expr {
    let has_must = clauses.iter().any(|it| it.0 == Occur::Must);
    let (mut must, mut should) = (Vec::new(), Vec::new());
    for (occur, expr) in clauses {
        match occur {
            Occur::Must => must.push(expr),
            Occur::MustNot => must.push(Expr::Not(Box::new(expr))),
            Occur::Should if !has_must => should.push(expr),
            Occur::Should => {}
        }
    }
    match should.len() {
        0 => {}
        1 => must.extend(should),
        _ => must.push(Expr::Or(should)),
    }
    must.into_iter().fold(Expr::All, Expr::and)
}

/// Fields that are compared by exact value, with their paths in documents.
const EXACT: [(&str, &str); 10] = [
    ("id", "id"),
    ("entityId", "entity"),
    ("dvObjectType", "type"),
    ("dsPersistentId", "pid"),
    ("identifier", "identifier"),
    ("dvAlias", "identifier"),
    ("parentId", "parent"),
    ("subtreePaths", "subtree"),
    ("datasetPersistentIdentifier", "pid"),
    ("fileContentType", "contentType"),
];

/// Names of facets in queries, besides `{field}_ss`.
const FACETS: [&str; 9] = [
    "datasetType",
    "dvCategory",
    "metadataSource",
    "publicationStatus",
    "publicationDate",
    "license",
    "fileTypeGroupFacet",
    "fileAccess",
    "fileTag",
];

fn facet_name(field: &str) -> Option<&str> {
    if FACETS.contains(&field) {
        return Some(field);
    }
    field.strip_suffix("_ss").or_else(|| field.strip_suffix("_s"))
}

fn is_exact(field: &str) -> bool {
    EXACT.iter().any(|it| it.0 == field) || facet_name(field).is_some()
}

/// Returns the text under which documents store a facet's value.
pub(crate) fn facet_value(name: &str, value: &str) -> String {
    format!("{name}\u{1}{value}")
}

/// Internal facet for harvested objects; not shown.
pub(crate) const HARVESTED: &str = "isHarvested";

fn path_of(field: &str) -> Path {
    match field {
        "name" => Path::dotted("name"),
        "description" | "text" | "_text_" => Path::dotted("text"),
        "fileName" | "filename_without_extension_en" => Path::dotted("name"),
        _ => Path::steps(["fields", field]),
    }
}

fn value(field: Option<&str>, text: &str, is_phrase: bool) -> Result<Expr, String> {
    let Some(field) = field else {
        return if text == "*" && !is_phrase { Ok(Expr::All) } else { words(text, is_phrase) };
    };
    match field {
        "*" => return Ok(Expr::All),
        "isHarvested" => {
            let is_harvested = Expr::Is(Path::dotted("facetValues"), facet_value(HARVESTED, "true").into());
            return Ok(if text == "true" { is_harvested } else { Expr::Not(Box::new(is_harvested)) });
        }
        _ => {}
    }
    if let Some((_, path)) = EXACT.iter().find(|it| it.0 == field) {
        let path = Path::dotted(path);
        if text == "*" {
            return Ok(Expr::Exists(path));
        }
        if let Some(prefix) = text.strip_suffix('*').filter(|_| !is_phrase) {
            return Ok(Expr::Prefix(path, prefix.to_owned()));
        }
        let forms = match field {
            "dsPersistentId" => vec![text.to_owned(), text.to_uppercase(), format!("doi:10.5072/{text}")],
            _ => vec![text.to_owned()],
        };
        if field == "identifier" || field == "dvAlias" {
            return Ok(Expr::Is(path, pinakes_store::Value::Folded(text.to_owned())));
        }
        if field == "dsPersistentId" {
            let tail = regex_text(text);
            let pattern = Pattern::new(&format!("(^|[:/]){tail}$"), "i").map_err(|it| it.to_string())?;
            return Ok(Expr::Or(vec![
                Expr::In(path.clone(), forms.into_iter().map(Into::into).collect()),
                Expr::Regex(path, pattern),
            ]));
        }
        return Ok(Expr::In(path, forms.into_iter().map(Into::into).collect()));
    }
    if let Some(name) = facet_name(field) {
        let path = Path::dotted("facetValues");
        return Ok(match text.strip_suffix('*').filter(|_| !is_phrase) {
            Some(prefix) => Expr::Prefix(path, facet_value(name, prefix)),
            None => Expr::Is(path, facet_value(name, text).into()),
        });
    }
    let path = path_of(field);
    if text == "*" {
        return Ok(Expr::Exists(path));
    }
    wild(path, text, is_phrase)
}

/// Returns the condition that a path contains these words, one after the other; outside of phrases, `*` and `?` are
/// wildcards.
fn wild(path: Path, text: &str, is_phrase: bool) -> Result<Expr, String> {
    let folded = fold(text);
    let parts = folded.split_whitespace().map(|it| if is_phrase { regex_text(it) } else { wild_text(it) });
    let parts: Vec<String> = parts.collect();
    Ok(with_words(path, &folded, is_phrase, folded_pattern(&parts.join(r"[^\pL\pN]+"))?))
}

/// Returns the condition that a pattern of whole words matches at a path. The words themselves are conditions, too:
/// they are looked up in the index, and the pattern is only tried on the remaining documents.
fn with_words(path: Path, text: &str, is_phrase: bool, pattern: Pattern) -> Expr {
    let is_in_word = |it: char| it.is_alphanumeric() || (!is_phrase && (it == '*' || it == '?'));
    let is_word =
        text.chars().all(is_in_word) && text.starts_with(char::is_alphanumeric) && !text.ends_with('?');
    if let Some(word) = is_word.then(|| Word::wild(text)).flatten() {
        return Expr::Word(path, word);
    }
    // Wildcards at the beginning of a part, and `?` at its end, are no wildcards.
    let parts =
        text.split(|it| !is_in_word(it)).map(|it| it.trim_start_matches(['*', '?']).trim_end_matches('?'));
    let words = parts.filter_map(Word::wild).map(|it| Expr::Word(path.clone(), it));
    let mut all: Vec<Expr> = words.collect();
    all.push(Expr::Regex(path, pattern));
    Expr::And(all)
}

/// Returns a pattern for folded text that matches whole words.
pub(super) fn folded_pattern(inner: &str) -> Result<Pattern, String> {
    Pattern::new(&format!(r"(^|[^\pL\pN]){inner}($|[^\pL\pN])"), "f").map_err(|it| it.to_string())
}

/// Returns whether a text contains wildcards: `*` anywhere after the first letter, `?` between two letters.
fn is_wild(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    (1..letters.len()).any(|at| is_wild_at(&letters, at))
}

fn is_wild_at(letters: &[char], at: usize) -> bool {
    match letters[at] {
        '*' => true,
        '?' => {
            letters[at - 1].is_alphanumeric() && letters.get(at + 1).is_some_and(|it| it.is_alphanumeric())
        }
        _ => false,
    }
}

/// Converts a word into a regular expression, with `*` and `?` as wildcards.
fn wild_text(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            '*' if at != 0 => out.push_str(r"[\pL\pN]*"),
            '?' if at != 0 && is_wild_at(&letters, at) => out.push_str(r"[\pL\pN]"),
            it => out.push_str(&regex_text(it.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

fn regex_text(text: &str) -> String {
    text.chars().flat_map(|it| if it.is_alphanumeric() { vec![it] } else { vec!['\\', it] }).collect()
}

/// Returns the condition for words, or a phrase, anywhere in a document.
fn words(text: &str, is_phrase: bool) -> Result<Expr, String> {
    if !is_phrase && is_wild(text) {
        return wild(Path::dotted("text"), text, false);
    }
    let parts: Vec<String> =
        text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if parts.is_empty() {
        return Ok(Expr::Ids(Vec::new()));
    }
    let phrase = parts.join(" ");
    Ok(Expr::Text(match is_phrase || 1 < parts.len() {
        true => TextQuery { phrases: vec![phrase], ..TextQuery::default() },
        false => TextQuery { words: parts, ..TextQuery::default() },
    }))
}

fn range(field: &str, low: &str, high: &str, has_low: bool, has_high: bool) -> Expr {
    let field = match field {
        "dateSort" | "publicationDate" => "date",
        other => other,
    };
    let path = if field == "date" { Path::dotted("date") } else { path_of(field) };
    let numbers = by_number(field, low, high, has_low, has_high);
    let end = |text: &str, is_in: bool| match text {
        "*" => End::Open,
        text if is_in => End::Included(text.into()),
        text => End::Excluded(text.into()),
    };
    // `2020` as an upper end includes the whole year.
    let high = if high == "*" || !has_high { high.to_owned() } else { format!("{high}\u{10ffff}") };
    let mut by_text = Expr::Range(path.clone(), end(low, has_low), end(&high, has_high));
    // A date without day or month reaches into a range that begins within its year or month.
    let longer = if has_low { longer_dates(low) } else { Vec::new() };
    if !longer.is_empty() {
        let reaches = Expr::In(path, longer.into_iter().map(Into::into).collect());
        by_text = Expr::Or(vec![by_text, reaches]);
    }
    let Some(by_number) = numbers else { return by_text };
    // Numeric values are compared as numbers, dates as text.
    let is_text = Expr::Not(Box::new(Expr::Exists(number_path(field))));
    Expr::Or(vec![by_number, by_text.and(is_text)])
}

/// Returns the year, and the month, that contain a date: for `2010-05-01`, `2010` and `2010-05`. None for other texts.
fn longer_dates(date: &str) -> Vec<&str> {
    let has_form = |part: &str, length: usize| {
        part.bytes().enumerate().all(|(at, it)| if at == 4 { it == b'-' } else { it.is_ascii_digit() })
            && part.len() == length
    };
    let parts = [(4, date.get(..4)), (7, date.get(..7))];
    let parts = parts.into_iter().filter_map(|(length, part)| Some((length, part?)));
    let is_longer = |(length, part): &(usize, &str)| {
        has_form(part, *length) && date.as_bytes().get(*length) == Some(&b'-')
    };
    parts.filter(is_longer).map(|it| it.1).collect()
}

/// Returns the path of a field's numeric values in documents.
fn number_path(field: &str) -> Path {
    Path::steps(["numbers", field])
}

/// Returns a numeric range; `None` if an end is neither a number nor open, or both are open.
fn by_number(field: &str, low: &str, high: &str, has_low: bool, has_high: bool) -> Option<Expr> {
    if low == "*" && high == "*" {
        return None;
    }
    let end = |text: &str, is_in: bool| {
        if text == "*" {
            return Some(End::Open);
        }
        let number = pinakes_store::Value::Real(number(text)?);
        Some(if is_in { End::Included(number) } else { End::Excluded(number) })
    };
    Some(Expr::Range(number_path(field), end(low, has_low)?, end(high, has_high)?))
}

/// Parses a number.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|it: &f64| it.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse(text, 0) {
            Ok(it) => format!("{:?}", it.filter),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn queries_are_read() {
        assert_eq!(shown("*"), "All");
        assert_eq!(shown("*:*"), "All");
        assert!(shown("tide gauge").starts_with("Or([Text("));
        assert!(shown("tide AND gauge").starts_with("And([Text("));
        assert!(shown("tide -gauge").contains("Not("));
        assert!(shown("id:dataset_4_draft").starts_with("In(Path([\"id\"])"));
        assert!(shown("subject_ss:\"Earth and Sky\"").contains("subject\\u{1}Earth and Sky"));
        assert!(shown("timePeriodCoveredStart:[2000-01 TO 2020]").starts_with("Or([Range("));
        assert!(
            shown("targetSampleActualSize:[90 TO *]")
                .contains("Range(Path([\"numbers\", \"targetSampleActualSize\"])")
        );
        assert_eq!(longer_dates("2010-05-01"), ["2010", "2010-05"]);
        assert_eq!(longer_dates("2010-05"), ["2010"]);
        assert!(["2010", "*", "10-05-01", "a-b", "2010x05-01"].iter().all(|it| longer_dates(it).is_empty()));
        assert!(shown("isHarvested:true").contains("isHarvested\\u{1}true"));
        assert!(shown("isHarvested:false").starts_with("Not("));
        for word in ["fin?hes", "fin*", "f*hes"] {
            let means = format!("Word(Path([\"text\"]), Word {{ folded: {word:?}, likeness: Wild }})");
            assert!(shown(word).contains(&means), "{word}: {}", shown(word));
        }
        assert!(shown("finches?").starts_with("Text("), "a question mark at the end is punctuation");
        assert!(shown("doi:10.5072/FK2/AB").contains("phrases"));
        assert!(shown("gauge~0").starts_with("Text("), "no edit is allowed");
        assert!(shown("subject_ss:Earth~1").starts_with("Is("), "whole values are compared as they are");
        assert!(shown("x.org/~ada/a").contains("x org ada a"), "a tilde within a word is a letter");
        let joined = shown("(title:gauge~1^2 OR a) AND \"b c\"~2");
        assert!(joined.starts_with("And(["), "{joined}");
        assert!(joined.contains("Or([Word(Path([\"fields\", \"title\"])"), "{joined}");
        assert!(shown("(a OR b) AND title:c").starts_with("And("));
        for (text, most) in [("gauge~2 ", ALIKE), ("ti?e ", PATTERNS), ("title:tide ", PATTERNS)] {
            assert!(shown(&text.repeat(most)).starts_with("Or(["), "{text}: as many as are allowed");
            assert!(
                shown(&text.repeat(most + 1)).starts_with(&format!("error: more than {most} words")),
                "{text}"
            );
        }
        for wrong in ["(a", "a)", "\"a", "title:", "[a TO b]", "x:[a b]"] {
            assert!(shown(wrong).starts_with("error"), "{wrong}: {}", shown(wrong));
        }
        assert_eq!(parse("tide -gauge id:x", 0).unwrap().words, ["tide"]);
    }
}
