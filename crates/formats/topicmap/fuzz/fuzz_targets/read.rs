//! No reader panics or runs without bounds, whatever the bytes; the first byte chooses the format and the
//! strictness.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_topicmap::{Format, Limits, Options, read};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let (_, format) = Format::ALL[usize::from(choice) % Format::ALL.len()];
    let limits = Limits { n_statements_max: 100_000, ..Limits::default() };
    let options = Options { is_strict: choice & 0x80 == 0, limits, ..Options::new("file:///fuzz") };
    let _ = read(format, bytes, options);
});
