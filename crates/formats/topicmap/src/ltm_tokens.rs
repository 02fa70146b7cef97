//! The tokens of LTM.

use std::collections::HashSet;
use std::fmt;

use crate::error::Error;
use crate::words::{Scanner, Word};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Name(String),
    /// `prefix:local`, without space between.
    Prefixed(String, String),
    /// In quotes.
    Text(String),
    /// In `[[ ]]`.
    Data(String),
    /// `#NAME`.
    Directive(String),
    Mark(char),
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => out.write_str(name),
            Token::Prefixed(prefix, local) => write!(out, "{prefix}:{local}"),
            Token::Text(text) => write!(out, "{text:?}"),
            Token::Data(_) => out.write_str("[[ ]]"),
            Token::Directive(name) => write!(out, "#{name}"),
            Token::Mark(mark) => write!(out, "{mark:?}"),
        }
    }
}

impl Word for Token {
    fn is_mark(&self, mark: char) -> bool {
        matches!(self, Token::Mark(it) if *it == mark)
    }
}

/// Returns the tokens with their lines. In lenient reading a colon after a name that is not a declared prefix is a
/// separate token, as in files from before version 1.3.
pub(crate) fn tokens(text: &str, document: &str, is_strict: bool) -> Result<Vec<(Token, u64)>, Error> {
    let mut lexer = Lexer(Scanner::new(text, document));
    let mut out = Vec::new();
    while let Some(token) = lexer.token()? {
        out.push(token);
    }
    if is_strict {
        return Ok(out);
    }
    let is_declaration = |it: &Token| matches!(it, Token::Directive(name) if name == "PREFIX");
    let prefixes: HashSet<String> = out
        .windows(2)
        .filter(|it| is_declaration(&it[0].0))
        .filter_map(|it| if let Token::Name(name) = &it[1].0 { Some(name.clone()) } else { None })
        .collect();
    let apart = |(token, line)| match token {
        Token::Prefixed(prefix, local) if !prefixes.contains(&prefix) => {
            vec![(Token::Name(prefix), line), (Token::Mark(':'), line), (Token::Name(local), line)]
        }
        token => vec![(token, line)],
    };
    Ok(out.into_iter().flat_map(apart).collect())
}

/// Splits the text into tokens.
struct Lexer<'t>(Scanner<'t>);

impl<'t> Lexer<'t> {
    fn skip(&mut self) -> Result<(), Error> {
        loop {
            self.0.skip_space();
            if !self.0.rest.starts_with("/*") {
                return Ok(());
            }
            let end = self.0.rest.find("*/").ok_or_else(|| self.0.fault("a comment /* is not closed"))?;
            self.0.take(end + 2);
        }
    }

    fn token(&mut self) -> Result<Option<(Token, u64)>, Error> {
        self.skip()?;
        let line = self.0.line;
        let Some(first) = self.0.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '"' => Token::Text(self.text()?),
            '[' if self.0.rest.starts_with("[[") => Token::Data(self.data()?),
            '#' => {
                self.0.take(1);
                Token::Directive(self.name().to_owned())
            }
            '[' | ']' | '(' | ')' | '{' | '}' | ':' | ';' | ',' | '=' | '/' | '~' | '@' | '%' => {
                self.0.take(1);
                Token::Mark(first)
            }
            it if is_name_start(it) => {
                let name = self.name().to_owned();
                let is_prefix = self.0.rest.starts_with(':') && self.0.rest[1..].starts_with(is_name_start);
                if is_prefix {
                    self.0.take(1);
                    Token::Prefixed(name, self.name().to_owned())
                } else {
                    Token::Name(name)
                }
            }
            other => return Err(self.0.fault(format!("the character {other:?} may not stand here"))),
        };
        Ok(Some((token, line)))
    }

    fn name(&mut self) -> &'t str {
        let end = self.0.rest.find(|it| !is_name_part(it)).unwrap_or(self.0.rest.len());
        self.0.take(end)
    }

    fn text(&mut self) -> Result<String, Error> {
        let mut out = String::new();
        let mut from = 1;
        loop {
            let end =
                self.0.rest[from..].find('"').ok_or_else(|| self.0.fault("a string is not closed"))? + from;
            out.push_str(&self.0.rest[from..end]);
            if self.0.rest[end + 1..].starts_with('"') {
                out.push('"');
                from = end + 2;
            } else {
                self.0.take(end + 1);
                return Ok(unescape(&out));
            }
        }
    }

    fn data(&mut self) -> Result<String, Error> {
        let mut end = self.0.rest[2..].find("]]").ok_or_else(|| self.0.fault("a text [[ is not closed"))? + 2;
        // Of more than two brackets the last two close.
        while self.0.rest[end + 2..].starts_with(']') {
            end += 1;
        }
        let text = unescape(&self.0.rest[2..end]);
        self.0.take(end + 2);
        Ok(text)
    }
}

/// Decodes `\u` with four to six hexadecimal digits.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        let digits = rest[at + 2..].bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        let number = || u32::from_str_radix(&rest[at + 2..at + 2 + digits], 16).ok();
        match number().filter(|_| digits >= 4).and_then(char::from_u32) {
            Some(it) => {
                out.push_str(&rest[..at]);
                out.push(it);
                rest = &rest[at + 2 + digits..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_name_start(it: char) -> bool {
    it.is_ascii_alphabetic() || it == '_'
}

fn is_name_part(it: char) -> bool {
    is_name_start(it) || it.is_ascii_digit() || it == '-' || it == '.'
}
