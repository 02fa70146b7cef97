//! Reads any bytes as a file of documents: lines, texts and records: `cargo +nightly fuzz run documents`.
#![no_main]

use pinakes_labe::import::{Reader, prepare};
use pinakes_labe::json_text;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut reader = Reader::new(bytes);
    while let Ok(Some((_, line))) = reader.next_line() {
        let Some(line) = line else { continue };
        let _ = prepare(line);
        if let Ok(compacted) = json_text::compact(line) {
            let before = serde_json::from_slice::<Value>(line).ok();
            assert_eq!(serde_json::from_str::<Value>(&compacted).ok(), before);
            assert_eq!(json_text::compact(compacted.as_bytes()).ok().as_deref(), Some(compacted.as_str()));
        }
    }
});
