//! Any bytes as MARC-8, and the result encoded and decoded again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_marc::marc8::{decode, encode};

fuzz_target!(|input: &[u8]| {
    let (text, faults) = decode(input);
    assert!(faults.iter().all(|(at, _)| *at <= input.len()));
    let (back, faults) = decode(&encode(&text));
    assert_eq!(back, text);
    assert!(faults.is_empty());
});
