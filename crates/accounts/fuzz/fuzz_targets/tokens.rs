//! Arbitrary text is never a token of ours, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_accounts::jwt::{Verified, verify};

fuzz_target!(|text: &str| {
    assert!(matches!(verify(b"a key that nobody guesses", text, 0), Verified::Invalid(_)));
});
