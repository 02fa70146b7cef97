//! Any text may be a unit: `cargo +nightly fuzz run unit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Some((_, si_text)) = pinakes_units::to_si(1.0, text) {
        assert_eq!(pinakes_units::to_si(1.0, &si_text), Some((1.0, si_text)));
    }
});
