//! The shelf never changes an answer: two servers with the same content, one with a shelf and one without, give the
//! same answers while documents are added, changed and removed.

use std::fs;

use pinakes_labe::{CatalogueIds, DOCUMENT, ShelfUse};
use pinakes_store::StoreError;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::server::{Content, Failure, Server, THING, load, untimed};

const N_DOIS: u8 = 6;
const N_IDS: u8 = 6;

/// A change of the catalogue. Ids below 3 have their DOI from the graph's table, 3 has it from the additional one.
#[derive(Debug, Clone)]
enum Change {
    Put {
        id: u8,
        doi: Option<u8>,
        isils: Option<Vec<u8>>,
    },
    Delete {
        id: u8,
    },
    /// A record of another dialect.
    Thing {
        id: u8,
        doi: u8,
    },
}

fn change() -> impl Strategy<Value = Change> {
    let put = (0..N_IDS, proptest::option::of(0..N_DOIS), proptest::option::of(vec(0..3_u8, 0..3)));
    prop_oneof![
        4 => put.prop_map(|(id, doi, isils)| Change::Put { id, doi, isils }),
        2 => (0..N_IDS).prop_map(|id| Change::Delete { id }),
        1 => (0..2_u8, 0..N_DOIS).prop_map(|(id, doi)| Change::Thing { id, doi }),
    ]
}

fn apply(server: &Server, change: &Change, turn: usize) -> Result<(), Failure> {
    let tenant = server.catalogue.tenant("default")?;
    match change {
        Change::Put { id, doi, isils } => {
            let mut document = serde_json::json!({"id": format!("r{id}"), "turn": turn, "title": "<&>"});
            if let Some(doi) = doi {
                document["doi_str_mv"] = serde_json::json!([format!("10.1/D{doi}")]);
            }
            if let Some(isils) = isils {
                let isils: Vec<String> = isils.iter().map(|it| format!("DE-{it}")).collect();
                document["institution"] = serde_json::json!(isils);
            }
            let path = server.folder.path().join("change");
            fs::write(&path, document.to_string())?;
            load(&server.catalogue, &path)?;
        }
        Change::Delete { id } => {
            let id = format!("r{id}");
            tenant.write_blocking(move |txn| -> Result<(), StoreError> {
                txn.delete(&DOCUMENT, &id).map(|_| ())
            })?;
        }
        Change::Thing { id, doi } => {
            let (id, body) =
                (format!("t{id}"), serde_json::json!({"about": {"doi": format!("doi:10.1/D{doi}")}}));
            tenant.write_blocking(move |txn| -> Result<(), StoreError> {
                txn.delete(&THING, &id)?;
                txn.insert(&THING, &id, &body).map(|_| ())
            })?;
        }
    }
    Ok(())
}

#[test]
fn answers_follow_every_change() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config { cases: 8, max_shrink_iters: 60, ..Config::default() });
    let cases = (vec((0..N_DOIS, 0..N_DOIS), 0..16), vec(change(), 1..10), any::<bool>(), any::<bool>());
    let outcome = runner.run(&cases, |(edges, changes, is_streamed, has_public)| {
        let checked = runtime.block_on(check(&edges, &changes, is_streamed, has_public));
        checked.map_err(|error| TestCaseError::fail(error.to_string()))
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

async fn check(
    edges: &[(u8, u8)],
    changes: &[Change],
    is_streamed: bool,
    has_public: bool,
) -> Result<(), Failure> {
    // A graph needs at least one citation, here between other works.
    let strangers = ("10.9/x".to_owned(), "10.9/y".to_owned());
    let named = |(citing, cited): &(u8, u8)| (format!("10.1/d{citing}"), format!("10.1/d{cited}"));
    let all = edges.iter().map(named).chain([strangers]);
    let content = Content {
        edges: all.map(|(citing, cited)| format!("{citing}\t{cited}\n")).collect(),
        graph_ids: "r0\t10.1/d0\nr1\t10.1/d1\nr2\t10.1/d1\n".to_owned(),
        extra_ids: "r3\t10.1/d1\n".to_owned(),
        ..Content::default()
    };
    let start = async |shelf| {
        Server::start(&content, |settings| {
            settings.shelf = shelf;
            settings.catalogue_ids = CatalogueIds::Use;
            settings.inline_neighbours = if is_streamed { 0 } else { 256 };
            settings.public_kinds = if has_public { vec!["toy_thing".to_owned()] } else { Vec::new() };
        })
        .await
    };
    let (with, without) = (start(ShelfUse::Keep).await?, start(ShelfUse::None).await?);
    for (turn, change) in changes.iter().enumerate() {
        apply(&with, change, turn)?;
        apply(&without, change, turn)?;
        for id in ["r0", "r1", "r2", "r3", "r4", "r5", "t0", "t1"] {
            for filter in ["", "?i=DE-1"] {
                let path = format!("/id/{id}{filter}");
                let (found, expected) = (with.get(&path).await?, without.get(&path).await?);
                if found.status != expected.status || untimed(&found.body) != untimed(&expected.body) {
                    return Err(format!("after {turn}, {path}:\n{}\n{}", found.body, expected.body).into());
                }
            }
        }
    }
    with.stop().await?;
    without.stop().await
}
