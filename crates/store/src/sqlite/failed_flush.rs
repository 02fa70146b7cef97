//! A failed flush as seen by all writers.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::json;
use tokio::sync::Semaphore;

use super::{Sqlite, create};
use crate::budget::Budget;
use crate::classes::Classes;
use crate::remake::Remakes;
use crate::session::Flavour;
use crate::statements::Statements;
use crate::tenant::{Engine, Inner};
use crate::view::Shared;
use crate::{Column, Facet, Index, Kind, Limits, StoreError, Tenant, Text, Type};

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text)],
    indexes: &[Index::unique(&["name"])],
    facets: &[Facet::values("name")],
    text: Text::AllStrings,
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

/// Opens a file as a tenant of these kinds.
pub(super) fn tenant(path: &Path, kinds: &'static [&'static Kind]) -> Result<Tenant, StoreError> {
    let shared = Arc::new(Shared {
        kinds,
        statements: Statements::of(Flavour::Sqlite, kinds),
        classes: Classes::new(),
        side: None,
        indexes: OnceLock::new(),
        remakes: Remakes::default(),
        declared: std::sync::atomic::AtomicI64::new(0),
        limits: Limits::default(),
        budget: Budget::new(1 << 30),
    });
    let engine = Engine::Sqlite(Sqlite::open(path, shared)?);
    let places = || Arc::new(Semaphore::new(4));
    let (scans, points, parking) = (places(), places(), places());
    let (name, remaker) = ("t".into(), OnceLock::new());
    Ok(Tenant(Arc::new(Inner { name, engine, scans, points, parking, read_timeout_ms: 60_000, remaker })))
}

/// After a failed flush nothing is written: not by writers, the text index or the keeper of the log, and not on
/// closing.
#[test]
fn a_flush_that_failed_ends_all_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    create(&path).unwrap();
    let tenant = tenant(&path, KINDS).unwrap();
    let write = |n: usize| {
        tenant.write_blocking(move |txn| txn.insert(&THING, &n.to_string(), &json!({"name": n.to_string()})))
    };
    write(1).unwrap();
    let Engine::Sqlite(engine) = &tenant.0.engine else { panic!("no file") };
    engine.queue.flushed(0, Some("the disk is gone"));
    assert_eq!(tenant.failure().as_deref(), Some("the disk is gone"));
    let held = engine.queue.hold();
    let log = format!("{}-wal", path.display());
    let before = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    drop(held);
    for n in 2..5 {
        let refused = write(n).unwrap_err();
        assert!(matches!(&refused, StoreError::Halted(it) if it == "the disk is gone"), "{refused}");
    }
    // Reads continue, except those that need the text index to be up to date.
    assert!(tenant.read_blocking(|view| view.has(&THING, "1")).unwrap());
    drop(tenant);
    assert_eq!((fs::read(&path).unwrap(), fs::read(&log).unwrap()), before);
}
