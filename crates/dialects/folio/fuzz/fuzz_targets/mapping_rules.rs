//! Fuzzes mapping rules as a site stores them, applied to a record: `cargo fuzz run mapping_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: (&str, &[u8])| pinakes_folio::fuzzing::mapping_rules(input.0, input.1));
