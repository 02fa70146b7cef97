//! Metadata of versions as JSON and JSON-LD: `cargo fuzz run deposit_metadata`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinakes_dataverse::fuzzing::metadata(bytes));
