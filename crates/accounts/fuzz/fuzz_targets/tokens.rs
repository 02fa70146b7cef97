//! Arbitrary text is never accepted as a token, and never causes a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_accounts::jwt::{Verified, verify};

fuzz_target!(|text: &str| {
    assert!(matches!(verify(b"a key that nobody guesses", text, 0), Verified::Invalid(_)));
});
