//! Every line of `tests/data/*.tsv` must come out as mathjs computed it, to the last bit.
//!
//! The files are made by `tests/data/vectors.mjs`; each field is JSON, `"-"` twice stands for a refusal.

use serde_json::Value;

/// Returns the fields of each line.
fn lines(file: &str) -> Vec<Vec<Value>> {
    let read = |field: &str| serde_json::from_str(field).expect(field);
    file.lines().map(|line| line.split('\t').map(read).collect()).collect()
}

fn text(field: &Value) -> &str {
    field.as_str().expect("a text")
}

/// Compares a result with the two fields that mathjs gave.
fn check(case: &str, found: Option<(f64, String)>, expected: &[Value]) -> Result<(), String> {
    let wanted = expected[0].as_f64().map(|value| (value, text(&expected[1]).to_owned()));
    let is_same = match (&found, &wanted) {
        (None, None) => true,
        (Some(a), Some(b)) => a.0 == b.0 && a.1 == b.1,
        _ => false,
    };
    if is_same { Ok(()) } else { Err(format!("{case}: found {found:?}, expected {wanted:?}")) }
}

fn assert_all(results: Vec<Result<(), String>>, n_least: usize) {
    let faults: Vec<&String> = results.iter().filter_map(|it| it.as_ref().err()).collect();
    assert!(faults.is_empty(), "{} of {}:\n{faults:#?}", faults.len(), results.len());
    assert!(n_least <= results.len(), "only {} lines", results.len());
}

#[test]
fn values_in_si_are_those_of_mathjs() {
    let results = lines(include_str!("data/si.tsv")).into_iter().map(|line| {
        let (value, unit) = (line[0].as_f64().expect("a number"), text(&line[1]));
        let found = pinakes_units::to_si(value, unit).filter(|it| it.0.is_finite());
        check(&format!("{value} {unit:?}"), found, &line[2..])
    });
    assert_all(results.collect(), 1000);
}

#[test]
fn conversions_are_those_of_mathjs() {
    let results = lines(include_str!("data/convert.tsv")).into_iter().map(|line| {
        let (value, from, to) = (line[0].as_f64().expect("a number"), text(&line[1]), text(&line[2]));
        let found = pinakes_units::convert(value, from, to).map(|result| {
            let unit = pinakes_units::unit(to).expect("it was converted to");
            (result, unit.text().to_owned())
        });
        check(&format!("{value} {from:?} in {to:?}"), found, &line[3..])
    });
    assert_all(results.collect(), 150);
}
