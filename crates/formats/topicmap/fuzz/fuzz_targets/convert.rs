//! Whatever was read can be written, and the output reads back as the same map.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_topicmap::{Format, Limits, Options, TopicMap, read, write};

fn canonical(map: &TopicMap) -> Vec<u8> {
    let mut out = Vec::new();
    write(Format::Cxtm, map, "file:///fuzz", &mut out).unwrap();
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let (_, format) = Format::ALL[usize::from(choice) % Format::ALL.len()];
    let limits = Limits { n_statements_max: 100_000, ..Limits::default() };
    let Ok(reading) = read(format, bytes, Options { limits, ..Options::new("file:///fuzz") }) else { return };
    let mut out = Vec::new();
    write(Format::Jtm, &reading.map, "file:///fuzz", &mut out).unwrap();
    let again = read(Format::Jtm, &out, Options::new("file:///fuzz")).unwrap();
    assert_eq!(canonical(&again.map), canonical(&reading.map));
});
