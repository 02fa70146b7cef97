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
pub(super) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(INDEXED_BYTES));
    let mut is_apart = true;
    for character in text.nfkd().filter(|it| !is_combining_mark(*it)) {
        if character.is_alphanumeric() {
            out.extend(character.to_lowercase());
            is_apart = false;
        } else if !is_apart {
            if INDEXED_BYTES <= out.len() {
                break;
            }
            out.push(' ');
            is_apart = true;
        }
    }
    if is_apart {
        out.pop();
    }
    out
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
