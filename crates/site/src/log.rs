//! The latest lines of the log, for the operators' page. A limited number of them is kept in memory; secrets are
//! removed before.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use pinakes_http::is_secret_name;
use serde::Serialize;

/// Maximum number of lines that are kept.
const LINES_MAX: usize = 500;
/// Maximum length of a line, in bytes; longer ones are cut.
const LINE_BYTES_MAX: usize = 2_000;
/// Ways to sign in that precede a secret, in lower case.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Time in milliseconds since 1970.
    pub at_ms: i64,
    /// `ERROR`, `WARN` or `INFO`.
    pub level: &'static str,
    /// The part of the program that wrote it.
    pub target: String,
    /// The message, with its values.
    pub text: String,
}

/// The latest lines. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub struct RecentLog(Arc<Mutex<VecDeque<Line>>>);

impl RecentLog {
    /// Adds a line and drops the oldest one if there are too many.
    pub fn add(&self, line: Line) {
        let text = blotted(&cut(line.text));
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if LINES_MAX <= lines.len() {
            lines.pop_front();
        }
        lines.push_back(Line { text, ..line });
    }

    /// Returns the lines of the levels that `wanted` accepts, newest first.
    pub fn latest(&self, wanted: impl Fn(&str) -> bool) -> Vec<Line> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().rev().filter(|it| wanted(it.level)).cloned().collect()
    }
}

/// Returns a text of at most [`LINE_BYTES_MAX`] bytes.
fn cut(mut text: String) -> String {
    if LINE_BYTES_MAX < text.len() {
        let end = (0..=LINE_BYTES_MAX).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the text without anything that looks like a secret: names and passwords in addresses, and values after words
/// such as `password`.
fn blotted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_secret_next = false;
    for (at, word) in text.split(' ').enumerate() {
        if 0 < at {
            out.push(' ');
        }
        let lower = word.to_lowercase();
        let is_name = |it: &str| {
            let name = it.trim_matches(|it: char| !it.is_alphanumeric() && it != '_');
            is_secret_name(name) || SCHEMES.contains(&name)
        };
        match word.find(['=', ':']).filter(|it| is_name(lower.get(..*it).unwrap_or_default())) {
            Some(at) if at + 1 < word.len() && !word[at..].starts_with("://") => {
                let _ = write!(out, "{}***", &word[..=at]);
                // `Authorization: Bearer x`: the scheme is not secret, but what follows is.
                is_secret_next = is_name(lower.get(at + 1..).unwrap_or_default());
            }
            Some(_) => {
                out.push_str(word);
                is_secret_next = true;
            }
            None if is_secret_next && !word.is_empty() => {
                let is_scheme = is_name(&lower);
                out.push_str(if is_scheme { word } else { "***" });
                is_secret_next = is_scheme;
            }
            None => {
                out.push_str(&without_credentials(word));
                is_secret_next = SCHEMES.contains(&lower.as_str());
            }
        }
    }
    out
}

/// Returns `https://name:password@host` without name and password.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest.get(..end).and_then(|it| it.rfind('@')) {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blotted_out() {
        for (text, expected) in [
            ("postgres://ada:pw@db1/pinakes failed", "postgres://***@db1/pinakes failed"),
            ("cannot sign in password=hunter2 user=ada", "cannot sign in password=*** user=ada"),
            ("refused Authorization: Bearer abc.def of ada", "refused Authorization: Bearer *** of ada"),
            ("header=\"x\" token: abc", "header=\"x\" token: ***"),
            ("\"api_key\":\"abc\" rest", "\"api_key\":*** rest"),
            ("Basic YWRh sent", "Basic *** sent"),
            ("client_secret=abc code=404", "client_secret=*** code=404"),
            ("a token was removed", "a token was removed"),
            ("see https://example.org/a@b", "see https://example.org/a@b"),
        ] {
            assert_eq!(blotted(text), expected);
        }
    }

    #[test]
    fn the_oldest_lines_make_room_and_long_ones_are_cut() {
        let log = RecentLog::default();
        for at_ms in 0..2_000 {
            let level = if at_ms % 2 == 0 { "INFO" } else { "WARN" };
            log.add(Line { at_ms, level, target: "a".to_owned(), text: "ä".repeat(3_000) });
        }
        let lines = log.latest(|_| true);
        assert_eq!((lines.len(), lines[0].at_ms, lines[499].at_ms), (500, 1_999, 1_500));
        assert!(lines.iter().all(|it| it.text.len() <= LINE_BYTES_MAX + '…'.len_utf8()));
        assert_eq!(log.latest(|it| it == "WARN").len(), 250);
    }
}
