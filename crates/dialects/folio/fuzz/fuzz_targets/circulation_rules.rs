//! Fuzzes the parser of circulation rules, and the choice of policies by them: `cargo fuzz run circulation_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pinakes_folio::fuzzing::circulation_rules(text));
