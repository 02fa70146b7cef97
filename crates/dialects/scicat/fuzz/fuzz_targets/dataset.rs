//! Takes any object as a dataset: checks it, completes it, computes its SI values: `cargo +nightly fuzz run
//! dataset`.
#![no_main]

use pinakes_scicat::validate::Form;
use pinakes_scicat::{dto, faults, scientific};
use serde_json::{Map, Value};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(mut body) = serde_json::from_str::<Map<String, Value>>(text) else { return };
    for table in [&dto::dataset::RAW, &dto::dataset::DERIVED, &dto::dataset::OTHER] {
        let found = table.check(&body, Form::Create);
        assert_eq!(found.is_empty(), faults::texts(&found).is_empty());
    }
    dto::dataset::complete(&dto::dataset::RAW, &mut body);
    scientific::enrich(&mut body);
});
