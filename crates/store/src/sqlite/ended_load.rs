//! A bulk load whose process ends between the two transactions that end the load.

use rusqlite::Connection;
use serde_json::json;

use super::create;
use super::opened::open;
use crate::{Column, Expr, Facet, FacetCount, Index, Kind, StoreError, Type};

static THING: Kind = Kind {
    columns: &[Column::one("name", Type::Text)],
    indexes: &[Index::on(&["name"])],
    facets: &[Facet::values("name")],
    ..Kind::named("thing")
};
static KINDS: &[&Kind] = &[&THING];

#[test]
fn the_next_opening_makes_the_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sqlite");
    create(&path).unwrap();
    let loading = open(&path, KINDS).unwrap();
    let load = |txn: &mut crate::Txn<'_>| {
        assert!(txn.defer_indexes(&THING)?);
        ["a", "b", "a"]
            .iter()
            .zip(1..)
            .try_for_each(|(name, n)| txn.insert(&THING, &n.to_string(), &json!({"name": name})).map(drop))
    };
    loading.load_blocking(load).unwrap();
    loading.write_blocking(|txn| txn.end_load(&THING)).unwrap();
    drop(loading);
    let has_index = || {
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = 'i_thing_name'";
        Connection::open(&path).unwrap().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 1
    };
    assert!(!has_index());
    let opened = open(&path, KINDS).unwrap();
    assert!(has_index());
    let counted = opened.read_blocking(|view| {
        let n = view.count(&THING, &Expr::Is("name".into(), "a".into()))?;
        Ok::<_, StoreError>((n, view.facets(&THING, &Expr::All, &["name"])?))
    });
    let count = |value: &str, n_records| FacetCount { value: value.to_owned(), n_records };
    let (n, facets) = counted.unwrap();
    assert_eq!(n, 2);
    let mut names = facets.concat();
    names.sort_by(|it, other| it.value.cmp(&other.value));
    assert_eq!(names, [count("a", 2), count("b", 1)]);
    assert_eq!(opened.check().unwrap(), Vec::<String>::new());
}
