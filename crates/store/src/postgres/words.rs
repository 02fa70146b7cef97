//! Words for PostgreSQL's text search, cut and folded here so that both engines find the same.
//!
//! The embedded engine cuts at everything that is neither letter nor digit and takes accents away before it
//! stems. PostgreSQL's own parser knows file names, hosts and numbers with exponents; it is given words apart.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::TextQuery;

/// Longest folded text that is indexed, in bytes: a `tsvector` holds 1 MB of words and places.
const INDEXED_BYTES: usize = 256 << 10;

/// The text as words in lower case, without accents, apart by blanks.
pub(crate) fn folded(text: &str) -> String {
    let mut words = Words { out: String::with_capacity(text.len().min(INDEXED_BYTES)), is_apart: true };
    // What is not ASCII decomposes by itself: no accent goes over to a plain letter.
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

/// A folded text in the making.
struct Words {
    out: String,
    is_apart: bool,
}

impl Words {
    /// Tells whether there is room for more words.
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

/// The query in `to_tsquery`'s language; empty when it can find nothing.
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
