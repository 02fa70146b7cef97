//! JSON as `labed` sends stored documents: no white space outside strings, and `<`, `>`, `&`, U+2028 and U+2029
//! as escapes; everything else is unchanged, including digits of numbers, duplicate keys and other escapes.
//!
//! This is done once when a document is loaded; reading only copies bytes.

use serde_json::value::RawValue;

/// Compacts and escapes a JSON text.
///
/// # Errors
/// The text is not one JSON value.
pub fn compact(text: &[u8]) -> Result<String, serde_json::Error> {
    let value: &RawValue = serde_json::from_slice(text)?;
    let mut compacted = String::with_capacity(value.get().len());
    compact_into(value.get(), &mut compacted);
    Ok(compacted)
}

/// Appends a text that is known to be JSON to `out`, compacted and escaped.
pub fn compact_into(json: &str, out: &mut String) {
    let (mut is_string, mut is_escaped) = (false, false);
    for letter in json.chars() {
        if !is_string {
            match letter {
                ' ' | '\t' | '\n' | '\r' => continue,
                '"' => is_string = true,
                _ => {}
            }
            out.push(letter);
            continue;
        }
        match letter {
            '"' if !is_escaped => is_string = false,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(escape(letter));
                is_escaped = false;
                continue;
            }
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        out.push(letter);
    }
}

/// Appends a string as JSON, escaped in the same way.
pub fn push_string(text: &str, out: &mut String) {
    let is_plain =
        |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    compact_into(&serde_json::Value::from(text).to_string(), out);
}

fn escape(letter: char) -> &'static str {
    match letter {
        '<' => "\\u003c",
        '>' => "\\u003e",
        '&' => "\\u0026",
        '\u{2028}' => "\\u2028",
        _ => "\\u2029",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_white_space_and_five_characters_change() {
        for (text, expected) in [
            ("{ \"a\" : [ 1.0 , 12345678901234567890 ] }\n", r#"{"a":[1.0,12345678901234567890]}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
            (r#"["\/ \u00e9 é \" < ' \\"]"#, r#"["\/ \u00e9 é \" \u003c ' \\"]"#),
            ("[\"<b>&\u{2028}\u{2029}\"]", r#"["\u003cb\u003e\u0026\u2028\u2029"]"#),
        ] {
            assert_eq!(compact(text.as_bytes()).unwrap_or_default(), expected, "{text}");
        }
        assert!(compact(b"{").is_err());
        assert!(compact(b"{} {}").is_err());
        assert!(compact(b"\"\xff\"").is_err());
    }

    proptest! {
        #[test]
        fn the_value_stays(text in "\\PC{0,40}", number in any::<f64>()) {
            let value = serde_json::json!({"a": [text, number], "<&>": {"b": null}});
            let pretty = serde_json::to_vec_pretty(&value).unwrap_or_default();
            let compacted = compact(&pretty).unwrap_or_default();
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&compacted).ok(), Some(value));
            prop_assert_eq!(compact(compacted.as_bytes()).ok(), Some(compacted.clone()));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = compact(&bytes);
        }
    }
}
