//! Tables of metadata blocks: `cargo fuzz run deposit_blocks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| pinakes_dataverse::fuzzing::blocks(text));
