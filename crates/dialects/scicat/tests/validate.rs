//! Each `tests/data/validate/*.in` names a table and a form and contains a body; the `.out` beside it has the faults
//! as a list of texts, as the tree of v3 datasets and as raw validator objects, or the completed body if there are
//! none.
//!
//! `BLESS=1 cargo test -p pinakes-scicat --test validate` rewrites the answers: read the diff before the commit.

use std::fs;
use std::path::Path;

use pinakes_scicat::validate::{Dto, Form};
use pinakes_scicat::{dto, faults};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const TABLES: &[(&str, &Dto)] = &[
    ("raw", &dto::dataset::RAW),
    ("derived", &dto::dataset::DERIVED),
    ("other", &dto::dataset::OTHER),
    ("lifecycle", &dto::lifecycle::LIFECYCLE),
    ("origdatablock", &dto::origdatablock::ORIG_DATABLOCK),
    ("origdatablock_of_dataset", &dto::origdatablock::ORIG_DATABLOCK_OF_DATASET),
    ("datablock", &dto::datablock::DATABLOCK),
    ("attachment_v3", &dto::attachment::V3),
    ("attachment_v4", &dto::attachment::V4),
    ("sample", &dto::sample::SAMPLE),
    ("proposal", &dto::proposal::PROPOSAL),
    ("instrument", &dto::instrument::INSTRUMENT),
    ("policy", &dto::policy::POLICY),
    ("job_v3", &dto::job::V3_CREATE),
    ("job_v3_patch", &dto::job::V3_UPDATE),
    ("job_v4", &dto::job::V4_CREATE),
    ("job_v4_patch", &dto::job::V4_UPDATE),
    ("published_v3", &dto::published_data::V3),
    ("published_v4", &dto::published_data::V4),
    ("user_settings", &dto::user_settings::USER_SETTINGS),
];

fn table(name: &str) -> &'static Dto {
    TABLES.iter().find(|it| it.0 == name).unwrap_or_else(|| panic!("no table {name:?}")).1
}

fn form(name: &str) -> Form {
    match name {
        "create" => Form::Create,
        "replace" => Form::Replace,
        "update" => Form::Update,
        other => panic!("no form {other:?}"),
    }
}

fn answer(case: &str) -> String {
    let (head, body) = case.split_once('\n').expect("a head line and a body");
    let (name, form_name) = head.split_once(' ').expect("table and form");
    let mut body: Map<String, Value> = serde_json::from_str(body).expect("a JSON object");
    let found = table(name).check(&body, form(form_name));
    if found.is_empty() {
        if form_name == "create" {
            dto::dataset::complete(table(name), &mut body);
        }
        return format!("completed: {}\n", pretty(&Value::Object(body)));
    }
    let texts = json!(faults::texts(&found));
    let raw = faults::raw(&found, &Value::Object(body));
    format!("texts: {}\ntree: {}\nraw: {}\n", pretty(&texts), pretty(&faults::tree(&found)), raw)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a value")
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/validate");
    let mut n_cases = 0;
    for entry in fs::read_dir(folder).expect(folder) {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|it| it == "in") {
            check(&path);
            n_cases += 1;
        }
    }
    assert!(30 <= n_cases, "only {n_cases} cases");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(
                (prop_oneof!["[a-z]{1,4}", Just("unit".to_owned()), Just("value".to_owned())], inner),
                0..6
            )
            .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    /// For any values of the fields: no panic, a text for every fault, and an update is never stricter than a create.
    #[test]
    fn any_body_can_be_checked(index in 0..TABLES.len(), values in prop::collection::vec((any::<usize>(), any_value()), 0..8)) {
        let dto = TABLES[index].1;
        let body: Map<String, Value> = values
            .into_iter()
            .map(|(field, value)| (dto.fields[field % dto.fields.len()].name.to_owned(), value))
            .collect();
        let on_create = dto.check(&body, Form::Create);
        prop_assert_eq!(on_create.is_empty(), faults::texts(&on_create).is_empty());
        let on_replace = dto.check(&body, Form::Replace);
        let on_update = dto.check(&body, Form::Update);
        prop_assert!(faults::texts(&on_update).len() <= faults::texts(&on_replace).len());
        let _ = (faults::tree(&on_create), faults::raw(&on_create, &Value::Object(body)));
    }
}
