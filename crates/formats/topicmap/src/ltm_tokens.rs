//! The words of LTM.

use std::collections::HashSet;
use std::fmt;

use crate::error::{Error, Place};

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

/// The words with their lines. In lenient reading a colon after a name that is no declared prefix stands alone, as in
/// files from before version 1.3.
pub(crate) fn tokens(text: &str, document: &str, is_strict: bool) -> Result<Vec<(Token, u64)>, Error> {
    let mut lexer = Lexer { rest: text, line: 1, document };
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

struct Lexer<'t> {
    rest: &'t str,
    line: u64,
    document: &'t str,
}

impl<'t> Lexer<'t> {
    fn fault(&self, reason: impl Into<String>) -> Error {
        Place::new(self.document, self.line).fault(reason)
    }

    /// Moves on by `len` bytes and gives them.
    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.bytes().filter(|&it| it == b'\n').count() as u64;
        self.rest = rest;
        taken
    }

    fn skip(&mut self) -> Result<(), Error> {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            self.take(space);
            if !self.rest.starts_with("/*") {
                return Ok(());
            }
            let end = self.rest.find("*/").ok_or_else(|| self.fault("a comment /* is not closed"))?;
            self.take(end + 2);
        }
    }

    fn token(&mut self) -> Result<Option<(Token, u64)>, Error> {
        self.skip()?;
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            '"' => Token::Text(self.text()?),
            '[' if self.rest.starts_with("[[") => Token::Data(self.data()?),
            '#' => {
                self.take(1);
                Token::Directive(self.name().to_owned())
            }
            '[' | ']' | '(' | ')' | '{' | '}' | ':' | ';' | ',' | '=' | '/' | '~' | '@' | '%' => {
                self.take(1);
                Token::Mark(first)
            }
            it if is_name_start(it) => {
                let name = self.name().to_owned();
                let is_prefix = self.rest.starts_with(':') && self.rest[1..].starts_with(is_name_start);
                if is_prefix {
                    self.take(1);
                    Token::Prefixed(name, self.name().to_owned())
                } else {
                    Token::Name(name)
                }
            }
            other => return Err(self.fault(format!("the character {other:?} may not stand here"))),
        };
        Ok(Some((token, line)))
    }

    fn name(&mut self) -> &'t str {
        let end = self.rest.find(|it| !is_name_part(it)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn text(&mut self) -> Result<String, Error> {
        let mut out = String::new();
        let mut from = 1;
        loop {
            let end = self.rest[from..].find('"').ok_or_else(|| self.fault("a string is not closed"))? + from;
            out.push_str(&self.rest[from..end]);
            if self.rest[end + 1..].starts_with('"') {
                out.push('"');
                from = end + 2;
            } else {
                self.take(end + 1);
                return Ok(unescape(&out));
            }
        }
    }

    fn data(&mut self) -> Result<String, Error> {
        let mut end = self.rest[2..].find("]]").ok_or_else(|| self.fault("a text [[ is not closed"))? + 2;
        // Of more than two brackets the last two close.
        while self.rest[end + 2..].starts_with(']') {
            end += 1;
        }
        let text = unescape(&self.rest[2..end]);
        self.take(end + 2);
        Ok(text)
    }
}

/// `\u` with four to six hexadecimal digits.
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
