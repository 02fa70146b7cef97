//! Malformed JSON must be reported as Node 22 reports it: `tests/data/json_error/`.

use pinakes_scicat::json_error::{body_error, parse_error};
use proptest::prelude::*;

#[test]
fn messages_are_those_of_node_22() {
    let mut n_cases = 0;
    for line in include_str!("data/json_error/parse.out").lines() {
        let (text, expected): (String, Option<String>) = serde_json::from_str(line).expect(line);
        assert_eq!(parse_error(&text), expected, "{text:?}");
        n_cases += 1;
    }
    assert!(100 < n_cases, "only {n_cases} cases");
}

#[test]
fn a_body_must_be_an_object_or_a_list() {
    let cases = [
        ("{}", None),
        (" [1]", None),
        ("{", Some("Expected property name or '}' in JSON at position 1 (line 1 column 2)")),
        ("", Some("Unexpected end of JSON input")),
        ("  ", Some("Unexpected end of JSON input")),
        ("1", Some("Unexpected token '1', \"1\" is not valid JSON")),
        ("\"a\"", Some("Unexpected token '\"', \"\"a\"\" is not valid JSON")),
        (" null", Some("Unexpected token 'n', \" null\" is not valid JSON")),
        ("a=1&b=2", Some("Unexpected token 'a', \"a=1&b=2\" is not valid JSON")),
    ];
    for (text, expected) in cases {
        assert_eq!(body_error(text).as_deref(), expected, "{text:?}");
    }
}

fn near_json() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ":", ",", "\"a\"", "\"", "\\", "1", "-", ".5", "e", "true", "nul", "null", " ",
        "\n", "\r", "\\u00e9", "\u{1}", "é", "😀",
    ]);
    prop_oneof![prop::collection::vec(piece, 0..20).prop_map(|it| it.concat()), any::<String>()]
}

proptest! {
    /// The scanner and the parser agree on what is JSON (except for numbers beyond a double, which JavaScript
    /// accepts).
    #[test]
    fn only_what_is_no_json_has_an_error(text in near_json()) {
        let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        prop_assert_eq!(parse_error(&text).is_none(), is_json, "{:?}", text);
        body_error(&text);
    }
}
