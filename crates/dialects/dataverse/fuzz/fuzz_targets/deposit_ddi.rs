//! Codebooks of DDI: `cargo fuzz run deposit_ddi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinakes_dataverse::fuzzing::codebook(bytes));
