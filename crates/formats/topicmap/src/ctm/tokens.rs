//! The tokens of CTM.

use std::fmt;

use super::values;
use crate::error::Error;
use crate::iri::datatype;
use crate::words::{Scanner, Word};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Identifier(String),
    /// `prefix:local`, without space between.
    Prefixed(String, String),
    /// Bare or in `< >`, as it is written.
    Iri(String),
    Text(String),
    /// A number, date or instant, and the IRI of its datatype.
    Value(String, &'static str),
    Variable(String),
    Wildcard(Option<String>),
    /// `%name`.
    Directive(String),
    Mark(char),
    /// `^^`.
    Datatype,
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Identifier(it) | Token::Value(it, _) => out.write_str(it),
            Token::Prefixed(prefix, local) => write!(out, "{prefix}:{local}"),
            Token::Iri(it) => write!(out, "<{it}>"),
            Token::Text(it) => write!(out, "{it:?}"),
            Token::Variable(it) => write!(out, "${it}"),
            Token::Wildcard(it) => write!(out, "?{}", it.as_deref().unwrap_or_default()),
            Token::Directive(it) => write!(out, "%{it}"),
            Token::Mark(it) => write!(out, "{it:?}"),
            Token::Datatype => out.write_str("^^"),
        }
    }
}

impl Word for Token {
    fn is_mark(&self, mark: char) -> bool {
        matches!(self, Token::Mark(it) if *it == mark)
    }
}

/// Returns the tokens with their lines.
pub(super) fn tokens(text: &str, document: &str) -> Result<Vec<(Token, u64)>, Error> {
    let mut lexer = Lexer(Scanner::new(text, document));
    let mut out = Vec::new();
    loop {
        lexer.skip()?;
        let line = lexer.0.line;
        match lexer.token()? {
            Some(token) => out.push((token, line)),
            None => return Ok(out),
        }
    }
}

/// Splits the text into tokens.
struct Lexer<'t>(Scanner<'t>);

impl<'t> Lexer<'t> {
    /// Skips space, `# to the end of the line`, `#( over lines, nested )#`.
    fn skip(&mut self) -> Result<(), Error> {
        loop {
            self.0.skip_space();
            if self.0.rest.starts_with("#(") {
                self.0.take(2);
                let mut n_open = 1;
                while n_open > 0 {
                    let next = self
                        .0
                        .rest
                        .find(['#', ')'])
                        .ok_or_else(|| self.0.fault("a comment #( is not closed"))?;
                    self.0.take(next);
                    if self.0.rest.starts_with("#(") {
                        n_open += 1;
                        self.0.take(2);
                    } else if self.0.rest.starts_with(")#") {
                        n_open -= 1;
                        self.0.take(2);
                    } else {
                        self.0.take(1);
                    }
                }
            } else if self.0.rest.starts_with('#') {
                let end = self.0.rest.find('\n').unwrap_or(self.0.rest.len());
                self.0.take(end);
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token>, Error> {
        let Some(first) = self.0.rest.chars().next() else { return Ok(None) };
        if first.is_ascii_digit() || matches!(first, '+' | '-' | '.') {
            match values::literal(self.0.rest) {
                Some(Ok((len, kind))) => {
                    let text = self.0.take(len).to_owned();
                    if self.0.rest.starts_with(is_part) {
                        return Err(self.0.fault(format!("{text} runs into a word; is a space missing?")));
                    }
                    return Ok(Some(Token::Value(text, kind)));
                }
                Some(Err(reason)) => return Err(self.0.fault(reason)),
                None => {}
            }
        }
        let token = match first {
            '"' => Token::Text(self.text()?),
            '<' => {
                let end = self.0.rest.find(['>', '\n']).filter(|&at| self.0.rest[at..].starts_with('>'));
                let end = end.ok_or_else(|| self.0.fault("an IRI in < > is not closed on its line"))?;
                let iri = self.0.take(end + 1);
                Token::Iri(iri[1..end].trim().to_owned())
            }
            '$' | '?' | '%' => {
                self.0.take(1);
                let name = self.name().to_owned();
                match first {
                    '?' => Token::Wildcard(Some(name).filter(|it| !it.is_empty())),
                    _ if name.is_empty() => {
                        return Err(self.0.fault(format!("a name is missing behind {first}")));
                    }
                    '$' => Token::Variable(name),
                    _ => Token::Directive(name),
                }
            }
            '*' => {
                self.0.take(1);
                Token::Value("*".to_owned(), datatype::CTM_INTEGER)
            }
            '^' if self.0.rest.starts_with("^^") => {
                self.0.take(2);
                Token::Datatype
            }
            '.' | ';' | ',' | ':' | '-' | '(' | ')' | '[' | ']' | '@' | '~' | '=' | '^' => {
                self.0.take(1);
                Token::Mark(first)
            }
            it if is_start(it) => self.word(),
            other => return Err(self.0.fault(format!("the character {other:?} may not stand here"))),
        };
        Ok(Some(token))
    }

    fn word(&mut self) -> Token {
        let scheme =
            self.0.rest.find(|it: char| !(it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.')));
        if scheme.is_some_and(|at| self.0.rest[at..].starts_with("://")) {
            let is_end = |it: char| {
                it.is_whitespace() || matches!(it, '<' | '>' | '"' | '{' | '}' | '(' | ')' | '[' | ']')
            };
            let end = self.0.rest.find(is_end).unwrap_or(self.0.rest.len());
            let len = self.0.rest[..end].trim_end_matches(['.', ',', ';', ':']).len();
            return Token::Iri(self.0.take(len).to_owned());
        }
        let name = self.name().to_owned();
        if self.0.rest.starts_with(':') && self.0.rest[1..].starts_with(is_part) {
            self.0.take(1);
            return Token::Prefixed(name, self.name().to_owned());
        }
        Token::Identifier(name)
    }

    /// Reads letters, digits and the like; dots only within.
    fn name(&mut self) -> &'t str {
        let end = self.0.rest.find(|it| !is_part(it) && it != '.').unwrap_or(self.0.rest.len());
        let len = self.0.rest[..end].trim_end_matches('.').len();
        self.0.take(len)
    }

    fn text(&mut self) -> Result<String, Error> {
        let quotes = if self.0.rest.starts_with("\"\"\"") { "\"\"\"" } else { "\"" };
        let line = self.0.line;
        self.0.take(quotes.len());
        let mut out = String::new();
        loop {
            let end = self.0.rest.find(['"', '\\']);
            let end = end.ok_or_else(|| self.0.fault_at(line, "a string is not closed"))?;
            out.push_str(self.0.take(end));
            if self.0.rest.starts_with('\\') {
                out.push(self.escape()?);
            } else if self.0.rest.starts_with(quotes) {
                self.0.take(quotes.len());
                return Ok(out);
            } else {
                out.push_str(self.0.take(1));
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let kind = self.0.rest.chars().nth(1);
        let n_digits = match kind {
            Some('u') => 4,
            Some('U') => 6,
            _ => 0,
        };
        let escaped = match kind {
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some(it @ ('"' | '\\')) => Some(it),
            Some('u' | 'U') => self
                .0
                .rest
                .get(2..2 + n_digits)
                .filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
                .and_then(|it| u32::from_str_radix(it, 16).ok())
                .and_then(char::from_u32),
            _ => None,
        };
        let escaped = escaped.ok_or_else(|| {
            let found: String = self.0.rest.chars().take(8).collect();
            self.0.fault(format!(
                "{found:?} begins with no escape; expected \\\" \\\\ \\n \\r \\t \\uXXXX or \\UXXXXXX"
            ))
        })?;
        self.0.take(2 + n_digits);
        Ok(escaped)
    }
}

fn is_start(it: char) -> bool {
    it == '_' || it.is_alphabetic()
}

fn is_part(it: char) -> bool {
    is_start(it)
        || it.is_numeric()
        || it == '-'
        || it == '\u{B7}'
        || matches!(it, '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
