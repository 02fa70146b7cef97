//! Any arguments may be sent, and any token: `cargo +nightly fuzz run harvest`.
#![no_main]

#[path = "../../tests/repository/mod.rs"]
mod repository;

use pinakes_oai_pmh::{Granularity, Site, TokenForm, answer};
use quick_xml::events::Event;
use repository::Shelf;

/// Checks that a document is well formed, and tells the error that it should.
fn check(document: &str, has_error: bool) {
    let mut reader = quick_xml::Reader::from_str(document);
    let (mut depth, mut n_errors) = (0_usize, 0);
    loop {
        match reader.read_event().expect("well formed") {
            Event::Start(element) => {
                for attribute in element.attributes() {
                    attribute.expect("a sound attribute");
                }
                depth += 1;
                n_errors += usize::from(depth == 2 && element.name().as_ref() == "error");
            }
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!((depth, n_errors == 1), (0, has_error), "{document}");
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let given: Vec<(&str, &str)> =
        text.split('\n').map(|it| it.split_once('=').unwrap_or((it, ""))).collect();
    for tokens in [TokenForm::Plain, TokenForm::Packed] {
        let site = Site {
            base_url: "https://example.org/oai".to_owned(),
            now_ms: 1_769_940_000_000,
            granularity: Granularity::Second,
            declaration: "",
            tokens,
            n_records: 2,
            n_headers: 3,
        };
        // Only the shelf itself fails, at a record of its own.
        if let Ok(answer) = answer(&site, &mut Shelf { n_sets: 2 }, &given) {
            check(&answer.xml, answer.code.is_some());
        }
    }
});
