//! Fuzzes the query parser; a query that parses is evaluated on a document: `cargo fuzz run cql`.
#![no_main]

use pinakes_folio::inventory::instances::INSTANCES;
use pinakes_folio::platform::cql::{self, Bounds, CqlError, Names};
use pinakes_store::matches;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|input: (&str, &str)| {
    let (text, document) = input;
    let bounds = Bounds { length_bytes: 4096, depth: 32, clauses: 100, words: 200 };
    let Ok(query) = cql::parse(text, bounds) else { return };
    let _ = cql::order(&query, &Names::PLAIN);
    let condition =
        cql::meaning::<CqlError>(&query.condition, &INSTANCES.kind, &Names::PLAIN, &mut |_| Ok(None));
    let body: Value = serde_json::from_str(document).unwrap_or_default();
    if let Ok(condition) = condition {
        let _ = matches(&condition, &body);
    }
});
