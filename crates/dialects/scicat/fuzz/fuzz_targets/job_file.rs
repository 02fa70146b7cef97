//! Parses job configurations of sites: `cargo +nightly fuzz run job_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = pinakes_scicat::jobs::actions::read_file(text);
});
