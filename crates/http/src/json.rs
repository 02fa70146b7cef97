//! JSON of clients: parsed with a depth limit; faults are located by line and column.

use pinakes_store::Limits;
use serde::Deserialize;

/// Deepest nesting that the JSON parser itself accepts.
pub(crate) const PARSER_DEPTH: usize = 127;

/// Why a body is not the JSON that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
pub struct JsonFault {
    /// What is wrong, without the place.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1; 0 at the end of an empty input.
    pub column: usize,
    /// Position in bytes, from 0.
    pub offset: usize,
    /// What kind of fault it is.
    pub category: JsonCategory,
}

/// Kind of a fault in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonCategory {
    /// Not JSON.
    Syntax,
    /// The input ends too early.
    End,
    /// JSON, but of another type than expected.
    Data,
    /// Nested deeper than allowed.
    Depth,
}

/// Parses JSON with a bound on its depth ([`Limits::json_depth`], at most 127).
pub fn parse_json<'t, T: Deserialize<'t>>(text: &'t [u8], limits: &Limits) -> Result<T, JsonFault> {
    if let Some(offset) = too_deep_at(text, limits.json_depth.min(PARSER_DEPTH)) {
        let (line, column) = place(text, offset);
        let message = format!("nested deeper than {} levels", limits.json_depth.min(PARSER_DEPTH));
        return Err(JsonFault { message, line, column, offset, category: JsonCategory::Depth });
    }
    serde_json::from_slice(text).map_err(|error| fault(text, &error))
}

pub(crate) fn fault(text: &[u8], error: &serde_json::Error) -> JsonFault {
    let category = match error.classify() {
        serde_json::error::Category::Eof => JsonCategory::End,
        serde_json::error::Category::Data => JsonCategory::Data,
        _ => JsonCategory::Syntax,
    };
    let (line, column) = (error.line(), error.column());
    let mut message = error.to_string();
    if let Some(at) = message.rfind(" at line ") {
        message.truncate(at);
    }
    JsonFault { message, line, column, offset: offset_of(text, line, column), category }
}

/// Returns the position of the bracket that goes one level too deep. Strings are skipped; invalid JSON is
/// left to the parser.
pub(crate) fn too_deep_at(text: &[u8], limit: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if limit < depth {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(text, at + 1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the position of the quote that ends the string whose text starts at `at`.
pub(crate) fn end_of_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

pub(crate) fn place(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = offset + 1 - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, column)
}

/// Returns the byte position of a place that the parser names; its columns count the bytes read, so the last
/// byte read is the offending one.
pub(crate) fn offset_of(text: &[u8], line: usize, column: usize) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => memchr::memchr_iter(b'\n', text).nth(line - 2).map_or(text.len(), |at| at + 1),
    };
    (start + column.saturating_sub(1)).min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn limits(json_depth: usize) -> Limits {
        Limits { json_depth, ..Limits::default() }
    }

    #[test]
    fn depth_is_bounded_and_strings_do_not_count() {
        let deep = format!("{}{}", "[".repeat(5), "]".repeat(5));
        assert!(parse_json::<Value>(deep.as_bytes(), &limits(5)).is_ok());
        let fault = parse_json::<Value>(deep.as_bytes(), &limits(4)).err();
        assert!(
            fault.is_some_and(|it| it.category == JsonCategory::Depth && it.offset == 4 && it.column == 5)
        );
        let text = br#"{"a\"[[[[": "[[[[{{{\\", "b": [1]}"#;
        assert!(parse_json::<Value>(text, &limits(2)).is_ok());
        let endless = "[".repeat(1 << 20);
        assert!(parse_json::<Value>(endless.as_bytes(), &limits(1_000_000)).is_err());
    }

    #[test]
    fn faults_say_where() {
        let fault = parse_json::<Value>(b"{\n \"a\": 1,\n}", &limits(9)).err();
        let fault = fault.map(|it| (it.line, it.column, it.offset, it.category));
        assert_eq!(fault, Some((3, 1, 11, JsonCategory::Syntax)));
        let fault = parse_json::<Value>(b"", &limits(9)).err();
        assert_eq!(fault.map(|it| (it.offset, it.category)), Some((0, JsonCategory::End)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(text in proptest::collection::vec(any::<u8>(), 0..200), depth in 0usize..200) {
            let _ = parse_json::<Value>(&text, &limits(depth));
        }

        #[test]
        fn json_like_bytes_do_not_panic(text in r#"[\[\]{}",\\:1a \n]{0,60}"#) {
            let _ = parse_json::<Value>(text.as_bytes(), &limits(3));
        }
    }
}
