//! Each `tests/data/scientific/*.in` names an operation and contains metadata; the `.out` beside it has the
//! result.
//!
//! `BLESS=1 cargo test -p pinakes-scicat --test scientific` rewrites the answers: read the diff before the commit.

use std::fs;
use std::path::Path;

use pinakes_scicat::scientific;
use pinakes_store::{Fields, Texts};
use proptest::prelude::*;
use serde_json::{Map, Value};

fn answer(case: &str) -> String {
    let (head, body) = case.split_once('\n').expect("a head line and a body");
    let mut metadata: Map<String, Value> = serde_json::from_str(body).expect("a JSON object");
    let words: Vec<&str> = head.split(' ').collect();
    match words.as_slice() {
        ["enrich"] => scientific::enrich(&mut metadata),
        ["show", key, unit] => scientific::show_in_unit(&mut metadata, key, unit),
        ["keys"] => {
            let mut keys = Texts::default();
            scientific::add_keys(&Fields::of(&metadata), &mut keys);
            return keys.iter().map(|it| format!("{it}\n")).collect();
        }
        other => panic!("nothing to do for {other:?}"),
    }
    let line = |(key, value): (&String, &Value)| format!("{key:?}: {value}\n");
    metadata.iter().map(line).collect()
}

fn check(input: &Path) {
    let found = answer(&fs::read_to_string(input).expect("the case"));
    let output = input.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&output, &found).expect("the answer");
    }
    let expected = fs::read_to_string(&output).unwrap_or_default();
    assert_eq!(found, expected, "{}", input.display());
}

#[test]
fn golden() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scientific");
    let mut n_cases = 0;
    for entry in fs::read_dir(folder).expect(folder) {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|it| it == "in") {
            check(&path);
            n_cases += 1;
        }
    }
    assert!(15 <= n_cases, "only {n_cases} cases");
}

fn any_metadata() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["mm", "celsius", "", "%", "1.5", "é"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop::sample::select(vec!["value", "unit", "valueSI", "unitSI", "v", "u", "a", "b.c"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.prop_map(str::to_owned), inner), 0..6)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Enriching twice gives the same as once; any metadata can be shown in a unit and its keys collected.
    #[test]
    fn enriching_is_idempotent(metadata in any_metadata()) {
        let Value::Object(mut once) = metadata else { return Ok(()) };
        scientific::enrich(&mut once);
        let mut twice = once.clone();
        scientific::enrich(&mut twice);
        prop_assert_eq!(&once, &twice);
        scientific::show_in_unit(&mut twice, "a", "K");
        scientific::add_keys(&Fields::of(&once), &mut Texts::default());
    }
}
