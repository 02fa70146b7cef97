//! Words for PostgreSQL's text search, split and folded here so that both engines find the same.
//!
//! The embedded engine splits at everything that is neither letter nor digit and removes accents before it stems.
//! PostgreSQL's own parser recognises file names, hosts and numbers with exponents, so it is given words that are
//! already split.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::TextQuery;

/// Maximum length of an indexed folded text in bytes: a `tsvector` holds 1 MB of words and positions.
const INDEXED_BYTES: usize = 256 << 10;

/// Returns the text as blank-separated words in lower case, without accents.
pub(crate) fn folded(text: &str) -> String {
    let mut words = Words { out: String::with_capacity(text.len().min(INDEXED_BYTES)), is_apart: true };
    // Runs of non-ASCII characters are decomposed separately: no accent is attached to a plain letter.
    for run in text.as_bytes().chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        let is_taken = if run.is_ascii() {
            run.iter().all(|byte| words.take(char::from(*byte)))
        } else {
            let run = std::str::from_utf8(run).unwrap_or_default();
            run.nfkd().filter(|it| !is_combining_mark(*it)).all(|it| words.take(it))
        };
        if !is_taken {
            break;
        }
    }
    words.out.truncate(words.out.trim_end_matches(' ').len());
    words.out
}

/// A folded text being built.
struct Words {
    out: String,
    is_apart: bool,
}

impl Words {
    /// Adds a character; returns whether there is room for more words.
    fn take(&mut self, character: char) -> bool {
        if character.is_ascii_alphanumeric() {
            self.out.push(character.to_ascii_lowercase());
        } else if character.is_alphanumeric() {
            self.out.extend(character.to_lowercase());
        } else {
            if !self.is_apart && INDEXED_BYTES <= self.out.len() {
                return false;
            }
            if !self.is_apart {
                self.out.push(' ');
            }
            self.is_apart = true;
            return true;
        }
        self.is_apart = false;
        true
    }
}

/// Returns the query in `to_tsquery`'s syntax; empty when it can find nothing.
pub(crate) fn query(query: &TextQuery) -> String {
    let phrase = |text: &String| {
        let words = folded(text);
        let joined: Vec<&str> = words.split(' ').filter(|it| !it.is_empty()).collect();
        (!joined.is_empty()).then(|| format!("({})", joined.join(" <-> ")))
    };
    let phrases: Vec<String> = query.phrases.iter().filter_map(phrase).collect();
    let words: Vec<String> = query.words.iter().filter_map(phrase).collect();
    let mut text = match (phrases.is_empty(), words.is_empty()) {
        (false, _) => format!("({})", phrases.join(" & ")),
        (true, false) => format!("({})", words.join(" | ")),
        (true, true) => return String::new(),
    };
    for word in query.without.iter().filter_map(phrase) {
        text.push_str(" & !");
        text.push_str(&word);
    }
    text
}
