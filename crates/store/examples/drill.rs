//! Writes and records what was acknowledged, then checks that all of it is there: the tool of `tests/drills`.
//!
//! `drill write PLACE NAME SECONDS` writes from 16 threads and prints a line for each acknowledged record;
//! `drill verify PLACE` reads such lines from standard input, looks for each record, and checks the tenant.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pinakes_store::{Catalogue, Column, Facet, Index, Kind, Limits, Location, StoreError, Tenant, Type};
use serde_json::json;

static EVENT: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::one("n", Type::Integer)],
    indexes: &[Index::on(&["name"])],
    facets: &[Facet::values("name")],
    ..Kind::named("event")
};
static COUNTER: Kind = Kind::named("counter");
static KINDS: &[&Kind] = &[&EVENT, &COUNTER];
const THREADS: u64 = 16;

/// A record and its writer's count of records, in one transaction.
fn write_one(tenant: &Tenant, writer: &str, n: u64) -> Result<(), StoreError> {
    let writer = writer.to_owned();
    tenant.write_blocking(move |txn| {
        txn.insert(&EVENT, &format!("{writer}/{n}"), &json!({"name": writer, "n": n}))?;
        let seen = match txn.get(&COUNTER, &writer)? {
            Some(record) => record.json()?["n"].as_u64().unwrap_or(0),
            None => 0,
        };
        txn.put(&COUNTER, &writer, &json!({"n": seen + 1})).map(|_| ())
    })
}

fn write(tenant: &Tenant, name: &str, for_seconds: u64) {
    let until = Instant::now() + Duration::from_secs(for_seconds);
    let (n_kept, n_refused, longest_ms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (n_kept, n_refused, longest_ms) = (&n_kept, &n_refused, &longest_ms);
            scope.spawn(move || {
                let writer = format!("{name}-{thread}");
                let mut n = 0;
                while Instant::now() < until {
                    let begun = Instant::now();
                    match write_one(tenant, &writer, n) {
                        Ok(()) => {
                            let mut out = std::io::stdout().lock();
                            if writeln!(out, "ack {writer}/{n}").and_then(|()| out.flush()).is_err() {
                                return;
                            }
                            n_kept.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            tracing::warn!(%error, writer, n, "refused");
                            n_refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    longest_ms.fetch_max(took_ms, Ordering::Relaxed);
                    n += 1;
                }
            });
        }
    });
    tracing::info!(
        acknowledged = n_kept.into_inner(),
        refused = n_refused.into_inner(),
        longest_ms = longest_ms.into_inner(),
        "written"
    );
}

fn verify(tenant: &Tenant) -> Result<(), Box<dyn std::error::Error>> {
    let (mut n, mut lost) = (0, Vec::new());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some(id) = line.strip_prefix("ack ") else { continue };
        n += 1;
        if !tenant.read_blocking(|view| view.has(&EVENT, id))? {
            lost.push(id.to_owned());
        }
    }
    let mut findings = tenant.check()?;
    for counter in tenant
        .read_blocking(|view| view.find(&COUNTER, &pinakes_store::Query::filter(pinakes_store::Expr::All)))?
    {
        let of_writer = pinakes_store::Expr::Is("name".into(), counter.id.as_str().into());
        let n_there = tenant.read_blocking(|view| view.count(&EVENT, &of_writer))?;
        let counted = counter.json()?["n"].as_u64();
        if counted != Some(n_there) {
            findings.push(format!("{}: {n_there} records, {counted:?} counted", counter.id));
        }
    }
    tracing::info!(acknowledged = n, lost = lost.len(), findings = findings.len(), "verified");
    if n == 0 || !lost.is_empty() || !findings.is_empty() {
        return Err(format!("{n} acknowledged, lost {lost:?}, found {findings:?}").into());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_ansi(false).init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, place, ..] = arguments.as_slice() else { return Err("drill write|verify PLACE".into()) };
    let catalogue = Catalogue::open(place.parse::<Location>()?, KINDS, Limits::default())?;
    let tenant = catalogue.tenant_or_new("drill")?;
    match (what.as_str(), arguments.get(2), arguments.get(3)) {
        ("write", Some(name), Some(seconds)) => write(&tenant, name, seconds.parse()?),
        ("verify", ..) => verify(&tenant)?,
        _ => return Err("drill write PLACE NAME SECONDS, or drill verify PLACE".into()),
    }
    Ok(())
}
