//! The fuzz targets of this crate on mutated inputs with a fixed seed; `just fuzz` runs them for longer.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../fuzz/fuzz_targets/functional.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod functional;
#[path = "../fuzz/fuzz_targets/tokens.rs"]
#[allow(unused_attributes, reason = "`no_main` is for the fuzzer's build")]
mod tokens;

#[test]
fn functional_survives() {
    functional::survives([
        r#"[{"username":"admin","password":"p","email":"a@b.ch","role":"admin","global":false},{"account":"x"}]"#,
    ]);
}

#[test]
fn tokens_survives() {
    tokens::survives([
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ.c2lnbmF0dXJl",
        "e30.e30.",
    ]);
}
