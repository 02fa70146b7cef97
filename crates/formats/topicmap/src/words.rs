//! Shared by LTM and CTM, the notations written for people: splitting text into tokens, and reading tokens one by one.

use std::fmt;

use crate::error::{Error, Place};

/// The rest of a text, and the line it begins on.
pub(crate) struct Scanner<'t> {
    pub(crate) rest: &'t str,
    pub(crate) line: u64,
    document: &'t str,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str, document: &'t str) -> Scanner<'t> {
        Scanner { rest: text, line: 1, document }
    }

    pub(crate) fn fault(&self, reason: impl Into<String>) -> Error {
        self.fault_at(self.line, reason)
    }

    pub(crate) fn fault_at(&self, line: u64, reason: impl Into<String>) -> Error {
        Place::new(self.document, line).fault(reason)
    }

    /// Advances by `len` bytes and returns them.
    pub(crate) fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.bytes().filter(|&it| it == b'\n').count() as u64;
        self.rest = rest;
        taken
    }

    /// Skips white space.
    pub(crate) fn skip_space(&mut self) {
        self.take(self.rest.len() - self.rest.trim_start().len());
    }
}

/// A token of a notation.
pub(crate) trait Word: fmt::Display + Clone {
    /// Returns whether it is this punctuation mark.
    fn is_mark(&self, mark: char) -> bool;
}

/// The tokens of a document, each with its line, and the reading position.
pub(crate) struct Words<W> {
    document: String,
    all: Vec<(W, u64)>,
    pub(crate) at: usize,
}

impl<W: Word> Words<W> {
    pub(crate) fn new(document: &str, all: Vec<(W, u64)>) -> Words<W> {
        Words { document: document.to_owned(), all, at: 0 }
    }

    /// Returns the place of the next token, or of the last one at the end.
    pub(crate) fn place(&self) -> Place {
        self.place_of(self.at)
    }

    /// Returns the place of the token read last.
    pub(crate) fn place_before(&self) -> Place {
        self.place_of(self.at.saturating_sub(1))
    }

    fn place_of(&self, at: usize) -> Place {
        let at = at.min(self.all.len().saturating_sub(1));
        Place::new(&self.document, self.all.get(at).map_or(1, |it| it.1))
    }

    pub(crate) fn fault(&self, reason: impl Into<String>) -> Error {
        self.place().fault(reason)
    }

    /// Makes the error for an unexpected next token.
    pub(crate) fn unexpected(&self, expected: &str) -> Error {
        match self.peek() {
            Some(it) => self.fault(format!("found {it}; expected {expected}")),
            None => self.fault(format!("the document ends; expected {expected}")),
        }
    }

    pub(crate) fn peek(&self) -> Option<&W> {
        self.all.get(self.at).map(|it| &it.0)
    }

    pub(crate) fn next(&mut self) -> Option<W> {
        let word = self.peek().cloned();
        self.at += 1;
        word
    }

    /// Returns whether the token `offset` places after the next one is this mark.
    pub(crate) fn is_mark(&self, offset: usize, mark: char) -> bool {
        self.all.get(self.at + offset).is_some_and(|it| it.0.is_mark(mark))
    }

    /// Reads the mark if it comes next.
    pub(crate) fn takes(&mut self, mark: char) -> bool {
        let is_it = self.is_mark(0, mark);
        if is_it {
            self.at += 1;
        }
        is_it
    }

    pub(crate) fn expect(&mut self, mark: char) -> Result<(), Error> {
        if self.takes(mark) { Ok(()) } else { Err(self.unexpected(&format!("{mark:?}"))) }
    }
}
