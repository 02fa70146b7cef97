//! The scanner and the parser must agree on what is JSON: `cargo +nightly fuzz run json_error`.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let is_refused = pinakes_scicat::json_error::parse_error(text).is_some();
    //     Text that the scanner accepts and the parser refuses is nested too deep, holds a number beyond a
    // double, or a lone surrogate.
    if is_refused {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err());
    }
    let _ = pinakes_scicat::json_error::body_error(text);
});
