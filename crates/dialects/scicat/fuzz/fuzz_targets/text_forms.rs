//! Checks any text as a date, an e-mail address and a URL: `cargo +nightly fuzz run text_forms`.
#![no_main]

use pinakes_scicat::{dates, text_forms};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = (text_forms::is_email(text), text_forms::is_iso_date(text), text_forms::is_url(text));
    if let Some(ms) = dates::parse_ms(text) {
        assert_eq!(dates::parse_ms(&dates::format_ms(ms)), Some(ms));
    }
});
