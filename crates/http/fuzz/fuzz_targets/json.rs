//! Bodies as JSON: a refusal names a place within the text, accepted bodies are not too deep.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinakes_http::body::parse_json;
use pinakes_store::Limits;
use serde_json::Value;

const DEPTH: usize = 8;

fuzz_target!(|text: &[u8]| {
    match parse_json::<Value>(text, &Limits { json_depth: DEPTH, ..Limits::default() }) {
        Ok(value) => assert!(depth(&value) <= DEPTH),
        Err(fault) => assert!(fault.offset <= text.len()),
    }
});

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
