//! Measures search times: `cargo run --release -p pinakes-store --example search -- RECORDS [FOLDER]`.
//!
//! Creates that many records shaped like datasets of a facility, writes them, waits for the index, and runs typical
//! queries. Each is run several times; the median and the maximum are printed in milliseconds.

#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pinakes_store::{
    Catalogue, Column, Counts, Direction, Document, End, Expr, Facet, Fields, Index, Kind, Limits, Location,
    Path, Pattern, Query, StoreError, Tenant, Text, TextQuery, Texts, Type, Value, View,
};
use serde_json::{Map, Value as Json, json};

static DATASET: Kind = Kind {
    id_path: Some("pid"),
    columns: &[
        Column::one("type", Type::Text),
        Column::one("ownerGroup", Type::Text),
        Column::one("datasetName", Type::Text),
        Column::one("creationLocation", Type::Text),
        Column::one("creationTime", Type::Instant),
        Column::one("createdAt", Type::Instant),
        Column::one("size", Type::Integer),
        Column::many("keywords", Type::Text),
    ],
    indexes: &[
        Index::on(&["createdAt"]),
        Index::on(&["creationTime"]),
        Index::on(&["class", "createdAt"]),
        Index::on(&["datasetName"]),
        Index::on(&["size"]),
    ],
    facets: &[
        Facet::values("type"),
        Facet::values("keywords"),
        Facet::values("creationLocation"),
        Facet::values("ownerGroup"),
        Facet::days("creationTime"),
        Facet { name: "metadataKeys", path: "scientificMetadata", counts: Counts::Strings(keys) },
    ],
    class_fields: &["ownerGroup"],
    text: Text::AllStrings,
    ..Kind::named("dataset")
};

static KINDS: &[&Kind] = &[&DATASET];

fn keys(fields: &Fields<'_>, into: &mut Texts) {
    fields.iter().for_each(|(name, _)| into.push(name));
}

/// A small random number generator, so that every run has the same records.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn body(n: u64) -> Json {
    let mut draw = Draw(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let word = |n: u64| format!("w{n}");
    let day =
        |n: u64| format!("20{:02}-{:02}-{:02}T08:00:00.000Z", 16 + n / 336 % 10, 1 + n / 28 % 12, 1 + n % 28);
    let words: Vec<String> = (0..20)
        .map(|_| {
            let most = 1 + draw.below(5_000);
            word(draw.below(most))
        })
        .collect();
    let mut scientific = Map::new();
    for n in 0..12 {
        let value = draw.below(1_000_000) as f64 / 1_000.0;
        scientific.insert(
            format!("parameter_{}", n + 12 * draw.below(3)),
            json!({"value": value, "unit": "K", "valueSI": value, "unitSI": "K"}),
        );
    }
    json!({
        "pid": format!("20.500/{n:08}"),
        "type": if draw.below(4) == 0 { "derived" } else { "raw" },
        "ownerGroup": format!("group-{}", draw.below(200)),
        "datasetName": format!("scan_{}_{}", draw.below(1_000_000), word(draw.below(300))),
        "creationLocation": format!("/facility/beamline-{}", draw.below(25)),
        "creationTime": day(draw.below(3_360)),
        "createdAt": format!("2024-01-01T00:{:02}:{:02}.{:03}Z", n / 60_000 % 60, n / 1_000 % 60, n % 1_000),
        "size": draw.below(1_000_000_000),
        "keywords": (0..3).map(|_| word(draw.below(2_000))).collect::<Vec<_>>(),
        "description": words.join(" "),
        "scientificMetadata": scientific,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n_records: u64 = arguments.next().map_or(Ok(100_000), |it| it.parse())?;
    let folder = arguments.next().map(PathBuf::from);
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or_else(|| temporary.path().to_owned());
    let limits = Limits { read_timeout_ms: 600_000, ..Limits::default() };
    let catalogue = Catalogue::open(Location::Folder(folder.clone()), KINDS, limits)?;
    let tenant = catalogue.tenant_or_new("t")?;
    fill(&tenant, n_records)?;
    let began = Instant::now();
    tenant.wait_for_indexes(Duration::from_secs(36_000))?;
    println!(
        "index made in {:.1} s more, {} MB",
        began.elapsed().as_secs_f64(),
        size_of(&folder, "search") >> 20
    );
    ask_all(&tenant, n_records)
}

/// Writes the missing records, in batches like a load.
fn fill(tenant: &Tenant, n_records: u64) -> Result<(), StoreError> {
    let n_there = tenant.read_blocking(|view| view.count(&DATASET, &Expr::All))?;
    let began = Instant::now();
    if n_there == 0 {
        tenant.write_blocking(|txn| txn.defer_indexes(&DATASET))?;
    }
    for from in (n_there..n_records).step_by(1_000) {
        let documents: Vec<Document> = (from..(from + 1_000).min(n_records))
            .map(|n| Document::new(&DATASET, format!("20.500/{n:08}"), &body(n)))
            .collect::<Result<_, _>>()?;
        tenant.load_blocking(move |txn| txn.insert_documents(&documents))?;
    }
    tenant.make_indexes(&DATASET)?;
    let n = n_records.saturating_sub(n_there);
    println!("{n} records written in {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn size_of(folder: &std::path::Path, what: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(Result::ok)
        .map(|it| {
            let path = it.path();
            if path.is_dir() {
                size_of(&path, what)
            } else if path.display().to_string().contains(what) {
                it.metadata().map_or(0, |it| it.len())
            } else {
                0
            }
        })
        .sum()
}

fn ask_all(tenant: &Tenant, n_records: u64) -> Result<(), Box<dyn std::error::Error>> {
    let is = |path: &str, value: &str| Expr::Is(path.into(), value.into());
    let day = |text: &str| Value::Text(text.to_owned());
    let period = |from: &str, to: &str| {
        Expr::Range("creationTime".into(), End::Included(day(from)), End::Excluded(day(to)))
    };
    let word = |text: &str| Expr::Text(TextQuery { words: vec![text.to_owned()], ..TextQuery::default() });
    let two_years = period("2018-01-01", "2020-01-01");
    let warm = || {
        Expr::Range(
            Path::dotted("scientificMetadata.parameter_3.valueSI"),
            End::Included(500.0.into()),
            End::Included(510.0.into()),
        )
    };
    let names = |text: &str| Pattern::new(text, "i").map(|it| Expr::Regex("datasetName".into(), it));
    let three =
        Expr::And(vec![is("ownerGroup", "group-7"), is("type", "raw"), period("2019-03-01", "2019-04-01")]);
    let facets = ["type", "keywords", "creationLocation", "ownerGroup", "creationTime"];
    let newest = |filter: &Expr, skip: u64| {
        Query::filter(filter.clone()).sorted("createdAt", Direction::Descending).window(skip, 25)
    };
    type Ask<'a> = Box<dyn Fn(&mut View<'_>) -> Result<u64, StoreError> + 'a>;
    let page = |filter: Expr, skip: u64| -> Ask<'_> {
        Box::new(move |view| {
            let n = view.count(&DATASET, &filter)?;
            view.find(&DATASET, &newest(&filter, skip))?;
            Ok(n)
        })
    };
    let counted = |filter: Expr, facets: &'static [&'static str]| -> Ask<'_> {
        Box::new(move |view| {
            Ok(view.facets(&DATASET, &filter, facets)?.iter().map(|it| it.len() as u64).sum())
        })
    };
    let facets: &'static [&'static str] = Box::leak(Box::new(facets));
    let cases: Vec<(&str, Ask<'_>)> = vec![
        ("facets, two years", counted(two_years.clone(), facets)),
        ("facets, a word", counted(word("w17"), facets)),
        ("metadata keys, two years", counted(two_years.clone(), &["metadataKeys"])),
        (
            "three conditions, newest 25",
            Box::new(|view| Ok(view.find(&DATASET, &newest(&three, 0))?.len() as u64)),
        ),
        ("three conditions, count and newest 25", page(three.clone(), 0)),
        ("a rare word, count and newest 25", page(word("w4711"), 0)),
        ("a frequent word, count and newest 25", page(word("w1"), 0)),
        ("a nested quantity, count and newest 25", page(warm(), 0)),
        (
            "quantity, type and years, count and newest 25",
            page(Expr::And(vec![warm(), is("type", "raw"), two_years.clone()]), 0),
        ),
        ("a regular expression on names", page(names("_1[0-9]*7_w2.$")?, 0)),
        ("a substring of names", page(names("9_w1")?, 0)),
        ("a deep page of a type", page(is("type", "raw"), n_records * 7 / 10)),
        ("a deep page of a type, by name", {
            let query = Query::filter(is("type", "raw"))
                .sorted("datasetName", Direction::Ascending)
                .window(n_records * 7 / 10, 25);
            Box::new(move |view| Ok(view.find(&DATASET, &query)?.len() as u64))
        }),
    ];
    for (name, ask) in cases {
        let mut times: Vec<f64> = Vec::new();
        let mut n = 0;
        for _ in 0..9 {
            let began = Instant::now();
            n = tenant.read_blocking(|view| ask(view))?;
            times.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        times.sort_by(f64::total_cmp);
        println!("{name:48} {:9.2} median {:9.2} most  ({n})", times[4], times[8]);
    }
    Ok(())
}
