//! Parses arbitrary bytes as a file of functional accounts: every entry is accepted or reported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_accounts::functional;

fuzz_target!(|bytes: &[u8]| {
    let _ = functional::parse(bytes);
});
