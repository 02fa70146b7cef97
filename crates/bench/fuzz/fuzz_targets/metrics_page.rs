//! Any text as a metrics page: no panic, and no more samples than lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_bench::observe::prometheus::parse;

fuzz_target!(|text: &str| {
    assert!(parse(text).len() <= text.lines().count());
});
