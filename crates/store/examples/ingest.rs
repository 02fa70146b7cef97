//! Measures write and read rates: `cargo run --release -p pinakes-store --example ingest -- sqlite:FOLDER [RECORDS]`.
//!
//! Writes documents of 2 KB in bulk with the indexes built afterwards, documents of 2 KB and of 8 KB one by one from 64
//! callers (each durable when its call returns), then reads records by id. The place is given as for the program's
//! `--database`; rates go to standard output.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use pinakes_store::{
    Catalogue, Column, Document, Facet, Index, Kind, Limits, Location, StoreError, Tenant, Text, Type, Weight,
};
use serde_json::{Map, Value, json};

static DATASET: Kind = Kind {
    id_path: Some("pid"),
    columns: &[
        Column::one("owner", Type::Text),
        Column::one("contact", Type::Text),
        Column::one("location", Type::Text),
        Column::one("folder", Type::Text),
        Column::one("type", Type::Text),
        Column::one("name", Type::Text),
        Column::one("size", Type::Integer),
        Column::one("files", Type::Integer),
        Column::one("quality", Type::Real),
        Column::one("public", Type::Boolean),
        Column::one("made", Type::Instant),
        Column::one("changed", Type::Instant),
        Column::one("begun", Type::Instant),
        Column::one("ended", Type::Instant),
        Column::one("proposal", Type::Text),
        Column::one("sample", Type::Text),
        Column::one("instrument", Type::Text),
        Column::one("license", Type::Text),
        Column::at("release", "version", Type::Text),
        Column::many("keywords", Type::Text),
    ],
    indexes: &[
        Index::on(&["owner"]),
        Index::on(&["location"]),
        Index::on(&["size"]),
        Index::on(&["made"]),
        Index::on(&["class"]),
        Index::on(&["class", "made"]),
    ],
    facets: &[
        Facet::values("type"),
        Facet::values("location"),
        Facet::values("keywords"),
        Facet::days("made"),
    ],
    class_fields: &["ownerGroup", "accessGroups", "public"],
    ..Kind::named("dataset")
};

/// The same with searched text: measures the cost of the index of words.
static SEARCHED: Kind = Kind {
    columns: DATASET.columns,
    indexes: DATASET.indexes,
    facets: DATASET.facets,
    class_fields: DATASET.class_fields,
    text: Text::AllStrings,
    ..Kind::named("searched")
};

static KINDS: &[&Kind] = &[&DATASET, &SEARCHED];
/// Number of concurrent callers.
const CALLERS: u64 = 64;
/// Records per closure of the bulk load.
const CHUNK: u64 = 1_000;

fn body(n: u64, size_bytes: usize) -> Value {
    let day = n % 28 + 1;
    let instant = |hour: u64| format!("2026-{:02}-{day:02}T{:02}:00:00.000Z", n % 12 + 1, hour % 24);
    let mut fields = Map::new();
    let mut number = 0;
    while fields.len() * 44 + 800 < size_bytes {
        fields.insert(format!("field_{number:03}"), json!({"value": n + number, "unit": "mm"}));
        number += 1;
    }
    json!({
        "pid": format!("20.500.12345/{n:032x}"), "owner": format!("owner {}", n % 500), "contact": "a@b.example",
        "location": format!("/site/beamline{}", n % 40), "folder": format!("/data/{n}"),
        "type": if n.is_multiple_of(3) { "raw" } else { "derived" }, "name": format!("scan {n}"), "size": n * 7919 % 1_000_000_007,
        "files": n % 100, "quality": (n % 100) as f64 / 7.0, "public": n.is_multiple_of(5), "made": instant(n), "changed": instant(n + 1),
        "begun": instant(n + 2), "ended": instant(n + 3), "proposal": format!("p{}", n % 3000), "sample": format!("s{}", n % 9000),
        "instrument": format!("i{}", n % 20), "license": "CC-BY-4.0", "version": "1", "keywords": [format!("k{}", n % 60), "beam"],
        "ownerGroup": format!("g{}", n % 50), "accessGroups": [format!("a{}", n % 4)], "fields": fields
    })
}

fn id(n: u64) -> String {
    format!("20.500.12345/{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn report(what: &str, n: u64, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    tracing::info!(
        "{what}: {n} in {seconds:.2} s, {:.0}/s, {:.2} us each",
        n as f64 / seconds,
        seconds * 1e6 / n as f64
    );
}

/// Creates documents on one thread, writes them on the engine's, and builds the indexes afterwards.
fn bulk(tenant: &Tenant, n_records: u64) -> Result<(), StoreError> {
    let begun = Instant::now();
    tenant.write_blocking(|txn| txn.defer_indexes(&DATASET))?;
    let (sender, chunks) = std::sync::mpsc::sync_channel::<Vec<Document>>(2);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for first in (0..n_records).step_by(CHUNK as usize) {
                let numbers = first..(first + CHUNK).min(n_records);
                let made: Result<Vec<_>, _> =
                    numbers.map(|n| Document::new(&DATASET, id(n), &body(n, 2_000))).collect();
                if !made.is_ok_and(|chunk| sender.send(chunk).is_ok()) {
                    return;
                }
            }
        });
        for chunk in chunks {
            tenant.write_blocking(move |txn| txn.insert_documents(&chunk))?;
        }
        Ok::<(), StoreError>(())
    })?;
    report("bulk, records of 2 KB", n_records, begun);
    tenant.make_indexes(&DATASET)?;
    report("bulk, indexes included", n_records, begun);
    Ok(())
}

/// Writes one record per call, from many callers.
async fn one_by_one(
    tenant: &Tenant,
    kind: &'static Kind,
    first: u64,
    n_records: u64,
    size_bytes: usize,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let next = Arc::new(AtomicU64::new(first));
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let (tenant, next) = (tenant.clone(), next.clone());
        callers.push(tokio::spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if first + n_records <= n {
                    return Ok::<(), StoreError>(());
                }
                let document = Document::new(kind, id(n), &body(n, size_bytes))?;
                tenant.write(move |txn| txn.insert_document(&document).map(|_| ())).await?;
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap_or(Err(StoreError::Panicked))?;
    }
    report(&format!("{} by {CALLERS} callers, {} KB", kind.name, size_bytes / 1_000), n_records, begun);
    Ok(())
}

/// Reads by id, from one caller and from many.
async fn reads(tenant: &Tenant, n_records: u64, n_reads: u64, n_callers: u64) -> Result<(), StoreError> {
    let begun = Instant::now();
    let mut callers = Vec::new();
    for caller in 0..n_callers {
        let tenant = tenant.clone();
        callers.push(tokio::spawn(async move {
            for read in 0..n_reads / n_callers {
                let id = id((caller + read * n_callers).wrapping_mul(7_919) % n_records);
                tenant.read(Weight::Point, move |view| view.get(&DATASET, &id)).await?;
            }
            Ok::<(), StoreError>(())
        }));
    }
    for caller in callers {
        caller.await.unwrap_or(Err(StoreError::Panicked))?;
    }
    report(&format!("reads by id, {n_callers} callers"), n_reads, begun);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_target(false).without_time().init();
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().ok_or("give a place, sqlite:FOLDER or postgres://…")?;
    let n_records: u64 = arguments.next().map_or(Ok(200_000), |it| it.parse())?;
    let catalogue = Catalogue::open(place.parse::<Location>()?, KINDS, Limits::default())?;
    let tenant = catalogue.tenant_or_new("ingest")?;
    let loaded = tenant.clone();
    tokio::task::spawn_blocking(move || bulk(&loaded, n_records)).await??;
    reads(&tenant, n_records, n_records, 1).await?;
    reads(&tenant, n_records, n_records, 16).await?;
    one_by_one(&tenant, &DATASET, n_records, n_records / 4, 2_000).await?;
    one_by_one(&tenant, &DATASET, 2 * n_records, n_records / 4, 8_000).await?;
    one_by_one(&tenant, &SEARCHED, 0, n_records / 10, 2_000).await?;
    Ok(())
}
