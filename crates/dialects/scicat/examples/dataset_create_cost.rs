//! Measures what a dataset with 100 quantities costs before it is stored: the checks of its body and its SI values.
//!
//! `cargo run --release -p pinakes-scicat --example dataset_create_cost` prints microseconds of CPU per document
//! (Linux). The cost of copying the parsed document, which each round does, is measured separately and subtracted.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use pinakes_scicat::dto::dataset;
use pinakes_scicat::scientific;
use pinakes_scicat::validate::Form;
use serde_json::{Map, Value, json};

const N_QUANTITIES: usize = 100;
const N_ROUNDS: u32 = 20_000;
const UNITS: [&str; 10] =
    ["mm", "celsius", "keV", "mbar", "mm/s", "deg", "Å", "counts", "kg m^2 / s^2", "GHz"];

fn document() -> Map<String, Value> {
    let metadata: Map<String, Value> = (0..N_QUANTITIES)
        .map(|index| {
            let quantity = json!({"value": 1.25 * index as f64, "unit": UNITS[index % UNITS.len()]});
            (format!("field_{index}"), quantity)
        })
        .collect();
    let body = json!({
        "type": "raw", "ownerGroup": "group1", "accessGroups": ["group3"], "owner": "Lab 4", "contactEmail": "a@b.ch",
        "sourceFolder": "/data/2020/run7/", "creationTime": "2020-01-15T08:00:00Z", "principalInvestigator": "P I",
        "creationLocation": "/ESS/DREAM", "proposalId": "20170267", "keywords": ["a", "b"],
        "techniques": [{"pid": "t1", "name": "SANS"}], "scientificMetadata": metadata,
    });
    match body {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Checks and completes `body`, as creating a dataset does.
fn prepare(body: &mut Map<String, Value>) {
    assert!(dataset::RAW.check(body, Form::Create).is_empty(), "the example is a good dataset");
    dataset::complete(&dataset::RAW, body);
    if let Some(Value::Object(metadata)) = body.get_mut("scientificMetadata") {
        scientific::enrich(metadata);
    }
}

/// Returns the CPU time per round, which other programs on the machine do not affect.
fn time_per_round(mut round: impl FnMut()) -> std::io::Result<Duration> {
    let start = cpu_time()?;
    for _ in 0..N_ROUNDS {
        round();
    }
    Ok((cpu_time()? - start) / N_ROUNDS)
}

/// Returns the CPU time of this process so far, as Linux counts it.
fn cpu_time() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|it| it.parse().ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| std::io::Error::other("no run time in /proc/self/schedstat"))
}

fn main() -> std::io::Result<()> {
    let document = document();
    let copying = time_per_round(|| {
        black_box(document.clone());
    })?;
    let all = time_per_round(|| {
        let mut body = document.clone();
        prepare(&mut body);
        black_box(&body);
    })?;
    let checking = time_per_round(|| {
        black_box(dataset::RAW.check(&document, Form::Create));
    })?;
    let micros = |it: Duration| it.as_nanos() as f64 / 1000.0;
    writeln!(
        std::io::stdout(),
        "{N_QUANTITIES} quantities: check {:.1} us, check + complete + SI values {:.1} us (copy of {:.1} us taken off)",
        micros(checking),
        micros(all.saturating_sub(copying)),
        micros(copying),
    )
}
