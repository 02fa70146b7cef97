//! Any text as a URL: no panic, and only loopback gets through. Texts with letters in the host are skipped:
//! resolving names would leave the machine.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_bench::target::{Reach, Target};

fuzz_target!(|text: &str| {
    let host = text.strip_prefix("http://").unwrap_or_default();
    if host.chars().any(char::is_alphabetic) {
        return;
    }
    if let Ok(target) = Target::parse(text, Reach::LoopbackOnly) {
        assert!(target.address.ip().to_canonical().is_loopback());
    }
});
