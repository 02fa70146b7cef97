//! Texts of circulation rules, and the policies that they decide on: `cargo fuzz run circulation_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pinakes_folio::fuzzing::circulation_rules(text));
