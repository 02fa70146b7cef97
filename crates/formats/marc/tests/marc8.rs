//! Compares MARC-8 with another program: pymarc's decoding of every sound MARC-8 record of the corpus
//! (`tests/data/marc8/expected.tsv`, made by `expect.py` beside it), and checks the laws of encoding and
//! decoding.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use common::{corpus, corpus_files, golden};
use pinakes_marc::{Encoding, Field, Format, Record, marc8, parse, records};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

/// Returns all values that are not plain ASCII, a line each, as `expect.py` writes them.
fn decoded_text(record: &Record) -> String {
    let mut text = String::new();
    let mut line = |tag: &str, code: char, value: &str| {
        if !value.is_ascii() {
            writeln!(text, "{tag} {code} {value}").unwrap();
        }
    };
    for field in &record.fields {
        match field {
            Field::Control(field) => line(field.tag.as_str(), '-', &field.value),
            Field::Data(field) => {
                field.subfields.iter().for_each(|it| line(field.tag.as_str(), it.code, &it.value))
            }
        }
    }
    text
}

fn fnv1a(data: &[u8]) -> u64 {
    data.iter()
        .fold(0xCBF2_9CE4_8422_2325, |value, byte| (value ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// The records that pymarc decodes differently are listed in a golden file, `different.txt`; the README beside it
/// says why they differ.
#[test]
fn decodes_as_pymarc_does() {
    let mut expected: BTreeMap<&str, BTreeMap<u64, u64>> = BTreeMap::new();
    for line in include_str!("data/marc8/expected.tsv").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let hash = u64::from_str_radix(cells[2], 16).unwrap();
        expected.entry(cells[0]).or_default().insert(cells[1].parse().unwrap(), hash);
    }
    let (mut n_same, mut different) = (0, String::new());
    for (name, data) in corpus_files() {
        let Some(expected) = expected.get(name.as_str()) else { continue };
        for raw in records(Format::Iso2709, &data) {
            let Some(expected) = expected.get(&raw.number) else { continue };
            let parsed = parse(Format::Iso2709, Encoding::Marc8, raw);
            let text = decoded_text(&parsed.record.unwrap());
            if fnv1a(text.as_bytes()) == *expected {
                n_same += 1;
                continue;
            }
            writeln!(different, "{name} {}", parsed.number).unwrap();
        }
    }
    if corpus().is_none() {
        return;
    }
    golden("marc8/different.txt", &different);
    assert!(1000 < n_same, "{n_same} records were compared");
}

/// Each character of each set, written and read.
#[test]
fn every_character_of_every_set_comes_back() {
    for char in ('\u{A0}'..='\u{FFFF}').filter(|char| !marc8::encode(&char.to_string()).starts_with(b"&#x")) {
        let text: String = std::iter::once(char).nfc().collect();
        let (back, faults) = marc8::decode(&marc8::encode(&text));
        assert_eq!(back, text, "U+{:04X}", u32::from(char));
        assert!(faults.is_empty(), "U+{:04X}: {faults:?}", u32::from(char));
    }
}

#[test]
fn composes_across_letters_that_hold_a_mark() {
    // An ogonek on a letter with horn: the ogonek comes first in canonical order.
    assert_eq!(marc8::decode(b"\xF1\xBD").0, "\u{173}\u{31B}");
}

#[test]
fn reports_faults_with_their_offsets() {
    let check = |bytes: &[u8], text: &str, fault: &str| {
        let (found, faults) = marc8::decode(bytes);
        let faults: Vec<String> = faults.iter().map(|(at, fault)| format!("{at}: {fault}")).collect();
        assert_eq!((found.as_str(), faults.join("; ").as_str()), (text, fault));
    };
    check(b"ab\x1B(Zc", "abc", "2: escape sequence [1B, 28, 5A] designates no known character set");
    check(b"ab\x1B", "ab", "2: escape sequence [1B] designates no known character set");
    check(b"a\xC9b", "a\u{FFFD}b", "1: [C9] is no character of the set 'E'");
    check(b"\x1B$1\x21\x30", "\u{FFFD}", "3: an East Asian character has 2 of its 3 bytes");
    check(b"\x1B$1\x21\x30\x1B(Ba", "\u{FFFD}a", "3: an East Asian character has 2 of its 3 bytes");
    check(b"\x1B$1\x7E\x7E\x7E", "\u{FFFD}", "3: [7E, 7E, 7E] is no character of the set '1'");
    check(b"a\xE2", "a", "2: combining mark U+0301 has no letter after it");
}

proptest! {
    #[test]
    fn any_text_comes_back(text in "\\PC{0,40}|[a-zéüñŁøאבגالعربيةΑβγДжЙ一丁ㄱ가₂²α &#x;0-9\u{300}-\u{36F}]{0,40}") {
        let composed: String = text.nfc().collect();
        let (back, faults) = marc8::decode(&marc8::encode(&text));
        prop_assert_eq!(back, composed);
        prop_assert!(faults.is_empty(), "{:?}", faults);
    }

    #[test]
    fn any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, faults) = marc8::decode(&bytes);
        prop_assert!(faults.iter().all(|(at, _)| *at <= bytes.len()));
    }

    #[test]
    fn any_escapes_are_decoded(bytes in "[\x1B()$,!\\-1234BENQSbgps&#x0-9A-F;a-z]{0,60}") {
        let (_, faults) = marc8::decode(bytes.as_bytes());
        prop_assert!(faults.iter().all(|(at, _)| *at <= bytes.len()));
    }
}
