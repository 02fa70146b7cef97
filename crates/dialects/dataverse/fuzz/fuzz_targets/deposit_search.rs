//! The parameter `q` of a search: `cargo fuzz run deposit_search`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pinakes_dataverse::fuzzing::search(text));
