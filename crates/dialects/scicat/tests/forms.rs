//! Dates, e-mail addresses and URLs: accepted as by class-validator 0.15 (validator.js 13.15), parsed as by Node
//! 22. `tests/data/forms/` and `tests/data/dates/` were created by the scripts beside them.

use pinakes_scicat::dates;
use pinakes_scicat::text_forms::{is_email, is_iso_date, is_url};
use proptest::prelude::*;

#[test]
fn forms_are_those_of_the_validator() {
    let mut faults = Vec::new();
    for line in include_str!("data/forms/forms.out").lines() {
        let (form, text, expected): (String, String, bool) = serde_json::from_str(line).expect(line);
        let found = match form.as_str() {
            "date" => is_iso_date(&text),
            "email" => is_email(&text),
            "url" => is_url(&text),
            other => panic!("no such form: {other}"),
        };
        if found != expected {
            faults.push(format!("{form} {text:?}: found {found}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn dates_are_read_as_javascript_reads_them() {
    let mut faults = Vec::new();
    for line in include_str!("data/dates/dates.out").lines() {
        let (text, expected): (String, Option<String>) = serde_json::from_str(line).expect(line);
        let found = dates::normalise(&text);
        if found != expected {
            faults.push(format!("{text:?}: found {found:?}, expected {expected:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// ISO 8601 forms that a field accepts but JavaScript cannot parse are parsed here rather than refused.
#[test]
fn more_iso_forms_are_read() {
    assert_eq!(dates::normalise("2020-01-15T08:00:00,5Z").as_deref(), Some("2020-01-15T08:00:00.500Z"));
    assert_eq!(dates::normalise("2020-01-15T08:00:00+01").as_deref(), Some("2020-01-15T07:00:00.000Z"));
}

#[test]
fn http_dates_are_written() {
    assert_eq!(dates::format_http(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(dates::format_http(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
}

proptest! {
    #[test]
    fn what_is_written_can_be_read(ms in -8_640_000_000_000_000_i64..=8_640_000_000_000_000) {
        let text = dates::format_ms(ms);
        prop_assert_eq!(dates::parse_ms(&text), Some(ms), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "[-+0-9TZW:., /a-z@\"\\\\\\[\\]#?]{0,40}|.*") {
        let _ = (is_iso_date(&text), is_email(&text), is_url(&text), dates::parse_ms(&text));
    }
}
