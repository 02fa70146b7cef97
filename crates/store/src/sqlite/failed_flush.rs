//! A failed flush as seen by all writers.

use std::fs;

use serde_json::json;

use super::create;
use super::opened::open;
use crate::tenant::Engine;
use crate::{Column, Facet, Index, Kind, StoreError, Text, Type};

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text)],
    indexes: &[Index::unique(&["name"])],
    facets: &[Facet::values("name")],
    text: Text::AllStrings,
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

/// After a failed flush nothing is written: not by writers, the text index or the keeper of the log, and not on
/// closing.
#[test]
fn a_flush_that_failed_ends_all_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    create(&path).unwrap();
    let tenant = open(&path, KINDS).unwrap();
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
