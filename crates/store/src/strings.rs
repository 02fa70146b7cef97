//! Extraction of the distinct strings of a JSON document, with and without parsing it into a tree.

use std::collections::HashSet;

use memchr::memchr2;

use crate::Tree;
use crate::marks::{MarkHasher, half_mark};

/// Strings seen before, by half their marks.
type Seen = HashSet<u64, MarkHasher>;

/// Returns the strings of `json`, a stored body, at any depth, one per line; keys do not count as strings. Repeated
/// strings are left out: scientific metadata repeats its units hundreds of times, and repetition makes no difference to
/// a search.
///
/// Errors: a string is unterminated or not valid JSON.
pub(crate) fn unique_strings(json: &[u8]) -> serde_json::Result<String> {
    let mut text = String::with_capacity(json.len() / 4);
    let mut seen = Seen::with_capacity_and_hasher(json.len() / 64, MarkHasher::default());
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'"', &json[at..]) {
        let from = at + open;
        let Some((end, is_escaped)) = end_of_string(json, from + 1) else {
            // Not a stored body: the parser reports what is wrong with it.
            return serde_json::from_slice::<serde::de::IgnoredAny>(json).map(|_| text);
        };
        at = end;
        let is_key = json[end..].iter().find(|it| !it.is_ascii_whitespace()) == Some(&b':');
        let literal = &json[from..end];
        if is_key || !seen.insert(half_mark(literal)) {
            continue;
        }
        if is_escaped {
            text.push_str(&serde_json::from_slice::<String>(literal)?);
        } else {
            text.push_str(&String::from_utf8_lossy(&literal[1..literal.len() - 1]));
        }
        text.push('\n');
    }
    Ok(text)
}

/// As [`unique_strings`], of a body that is parsed already.
pub(crate) fn unique_texts(body: &Tree<'_>) -> String {
    let (mut seen, mut text) = (Seen::default(), String::new());
    add_texts(body, &mut seen, &mut text);
    text
}

fn add_texts(tree: &Tree<'_>, seen: &mut Seen, text: &mut String) {
    match tree {
        Tree::Text(it) if seen.insert(half_mark(&**it)) => {
            text.push_str(it);
            text.push('\n');
        }
        Tree::List(items) => items.iter().for_each(|it| add_texts(it, seen, text)),
        Tree::Object(fields) => fields.iter().for_each(|it| add_texts(it.1, seen, text)),
        _ => {}
    }
}

/// Returns where the string whose content begins at `from` ends, and whether it contains an escape.
fn end_of_string(json: &[u8], from: usize) -> Option<(usize, bool)> {
    let (mut at, mut is_escaped) = (from, false);
    loop {
        let found = at + memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[found] == b'"' {
            return Some((found + 1, is_escaped));
        }
        is_escaped = true;
        at = found + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::{unique_strings, unique_texts};

    #[test]
    fn takes_values_of_any_depth_once_and_no_keys() {
        let json = br#"{"k":"a","n":[1,2.5,null,true,{"u" : "mm","v":{"u":"mm","x":"\u00e9\\"}}],"b":"a","q\"":"\""}"#;
        for (json, strings) in [(&json[..], "a\nmm\n\u{e9}\\\n\"\n"), (b"{}", "")] {
            assert_eq!(unique_strings(json).unwrap(), strings);
            assert_eq!(unique_texts(&serde_json::from_slice(json).unwrap()), strings);
        }
    }

    #[test]
    fn says_what_is_no_json() {
        for json in [&b"{\"a\":\"b"[..], b"[\"a\\", b"[\"\\x\"]"] {
            assert!(unique_strings(json).is_err(), "{}", String::from_utf8_lossy(json));
        }
    }
}
