//! Atom entries of SWORD: `cargo fuzz run deposit_entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pinakes_dataverse::fuzzing::entry(bytes));
