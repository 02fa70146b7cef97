//! Parses filters of v3 and v4 and the fields of fullquery, and evaluates the result: `cargo +nightly fuzz run
//! filters`.
#![no_main]

use pinakes_accounts::Caller;
use pinakes_scicat::app::QueryText;
use pinakes_scicat::fullquery::{self, Search};
use pinakes_scicat::rights::Rights;
use pinakes_scicat::{KINDS, Settings, filter, strict};
use pinakes_store::matches;
use serde_json::{Map, Value};

libfuzzer_sys::fuzz_target!(|input: (&str, &str)| {
    let (text, document) = input;
    let kind = KINDS[0];
    let body: Value = serde_json::from_str(document).unwrap_or_default();
    if let Ok(filter) = filter::parse(Some(text), kind) {
        let _ = matches(&filter.condition, &body);
    }
    let query = QueryText::parse(&format!("filter={text}"));
    if let Ok(filter) = strict::parse(&query, kind, &["pid", "size", "scientificMetadata"]) {
        let _ = matches(&filter.condition, &body);
    }
    let search = Search { kind, quantities: "scientificMetadata", quantity_key: "scientific" };
    let rights = Rights::of(Caller::anonymous(), &Settings::default());
    if let Ok(fields) = serde_json::from_str::<Map<String, Value>>(text)
        && let Ok(found) = fullquery::parse(&fields, &search, &rights)
    {
        let _ = matches(&found.condition, &body);
    }
});
