//! The service compared with a simple evaluation of the contract, on random catalogues.

use std::collections::{BTreeMap, BTreeSet};

use pinakes_labe::{CatalogueIds, ShelfUse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

use crate::server::{Content, Failure, Server};

/// Number of DOIs, and the institutions.
const N_DOIS: u8 = 12;
const ISILS: [&str; 3] = ["DE-14", "DE-15", "US-NNC"];

#[derive(Debug, Clone)]
struct Library {
    edges: BTreeSet<(u8, u8)>,
    /// DOI, and institutions of the document if there is one, for the ids 0, 1, …
    records: Vec<(u8, Option<BTreeSet<usize>>)>,
    /// How many of the records are in the graph's table; the others are in the additional table.
    n_in_graph: usize,
}

fn library() -> impl Strategy<Value = Library> {
    let edges = vec((0..N_DOIS, 0..N_DOIS), 0..40);
    let records =
        vec((0..N_DOIS + 2, proptest::option::of(proptest::collection::btree_set(0..3_usize, 0..3))), 1..20);
    (edges, records, 0..20_usize).prop_map(|(edges, records, n_in_graph)| Library {
        edges: edges.into_iter().collect(),
        records,
        n_in_graph,
    })
}

fn doi(number: u8) -> String {
    format!("10.1/d{number:02}")
}

impl Library {
    fn content(&self) -> Content {
        // A graph needs at least one citation, here between other works.
        let mut content = Content { edges: "10.9/x\t10.9/y\n".to_owned(), ..Content::default() };
        for (citing, cited) in &self.edges {
            content.edges.push_str(&format!("{}\t{}\n", doi(*citing), doi(*cited)));
        }
        for (id, (number, institutions)) in self.records.iter().enumerate() {
            let row = format!("r{id}\t{}\n", doi(*number));
            if id < self.n_in_graph {
                content.graph_ids.push_str(&row)
            } else {
                content.extra_ids.push_str(&row)
            }
            if let Some(institutions) = institutions {
                content.documents.push_str(&format!("{}\n", document(id, institutions)));
            }
        }
        content
    }

    /// Returns the expected document of a record; `None` for one without edges.
    fn expected(&self, id: usize, isil: Option<usize>) -> Option<Value> {
        let own = self.records[id].0;
        let citing: BTreeSet<u8> = self.edges.iter().filter(|it| it.0 == own).map(|it| it.1).collect();
        let cited: BTreeSet<u8> = self.edges.iter().filter(|it| it.1 == own).map(|it| it.0).collect();
        if citing.is_empty() && cited.is_empty() {
            return None;
        }
        let only_cited: BTreeSet<u8> = cited.difference(&citing).copied().collect();
        let sides =
            [("citing", citing), ("cited", only_cited)].map(|(name, works)| (name, self.side(&works, isil)));
        let mut document = BTreeMap::from([("id", json!(format!("r{id}"))), ("doi", json!(doi(own)))]);
        let mut unmatched = BTreeMap::new();
        let mut extra = BTreeMap::from([("cached".to_owned(), json!(false))]);
        for (name, (held, rest)) in sides {
            extra.insert(format!("{name}_count"), json!(held.len()));
            extra.insert(format!("unmatched_{name}_count"), json!(rest.len()));
            if !held.is_empty() {
                document.insert(name, json!(held));
            }
            if !rest.is_empty() {
                unmatched.insert(name, rest);
            }
        }
        if let Some(isil) = isil {
            extra.insert("institution".to_owned(), json!(ISILS[isil]));
        }
        document.insert("unmatched", json!(unmatched));
        document.insert("extra", json!(extra));
        Some(json!(document))
    }

    fn side(&self, works: &BTreeSet<u8>, isil: Option<usize>) -> (Vec<Value>, Vec<Value>) {
        let (mut held, mut moved, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
        for work in works {
            let ids = (0..self.records.len()).filter(|id| self.records[*id].0 == *work);
            let ids: Vec<usize> = ids.collect();
            if ids.is_empty() {
                unmatched.push(json!({"doi_str_mv": doi(*work)}));
            }
            for id in ids {
                let Some(institutions) = &self.records[id].1 else { continue };
                let is_held = isil.is_none_or(|isil| institutions.contains(&isil));
                if is_held { &mut held } else { &mut moved }.push(document(id, institutions));
            }
        }
        unmatched.extend(moved);
        (held, unmatched)
    }
}

fn document(id: usize, institutions: &BTreeSet<usize>) -> Value {
    let isils: Vec<&str> = institutions.iter().map(|it| ISILS[*it]).collect();
    json!({"id": format!("r{id}"), "institution": isils})
}

#[test]
fn answers_are_those_of_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config { cases: 12, max_shrink_iters: 200, ..Config::default() });
    let cases = (library(), 0..300_usize, any::<bool>(), any::<bool>());
    let outcome = runner.run(&cases, |(library, inline, uses_catalogue, is_shelved)| {
        let checked = runtime.block_on(check(&library, inline, uses_catalogue, is_shelved));
        checked.map_err(|error| TestCaseError::fail(error.to_string()))
    });
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn a_library_without_citations_has_none() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let records = vec![(0, Some(BTreeSet::from([0]))), (1, None)];
    let library = Library { edges: BTreeSet::new(), records, n_in_graph: 1 };
    for is_shelved in [false, true] {
        let checked = runtime.block_on(check(&library, 0, true, is_shelved));
        assert!(checked.is_ok(), "{checked:?}");
    }
}

async fn check(
    library: &Library,
    inline: usize,
    uses_catalogue: bool,
    is_shelved: bool,
) -> Result<(), Failure> {
    let server = Server::start(&library.content(), |settings| {
        settings.inline_neighbours = inline;
        settings.shelf = if is_shelved { ShelfUse::Keep } else { ShelfUse::None };
        settings.catalogue_ids = if uses_catalogue { CatalogueIds::Use } else { CatalogueIds::Ignore };
    })
    .await?;
    for id in 0..library.records.len() {
        for isil in [None, Some(0), Some(2)] {
            let filter = isil.map_or_else(String::new, |isil| format!("?i={}", ISILS[isil]));
            let path = format!("/id/r{id}{filter}");
            let answer = server.get(&path).await?;
            let Some(expected) = library.expected(id, isil) else {
                assert_eq!((answer.status, answer.body.as_str()), (404, ""), "{path}");
                continue;
            };
            let mut found = answer.json()?;
            if let Some(extra) = found["extra"].as_object_mut() {
                extra.remove("took");
            }
            if found != expected {
                return Err(format!("{path}:\n{found}\n{expected}").into());
            }
        }
    }
    for number in 0..N_DOIS + 2 {
        check_rows(library, &server, number).await?;
    }
    server.stop().await
}

/// Checks rows and counts of the OpenCitations API, also for DOIs without any and for unknown DOIs.
async fn check_rows(library: &Library, server: &Server, number: u8) -> Result<(), Failure> {
    let citing: Vec<String> = library.edges.iter().filter(|it| it.1 == number).map(|it| doi(it.0)).collect();
    let cited: Vec<String> = library.edges.iter().filter(|it| it.0 == number).map(|it| doi(it.1)).collect();
    let sides = [
        ("citations", "citing", "citation-count", citing),
        ("references", "cited", "reference-count", cited),
    ];
    for (operation, column, count, expected) in sides {
        let path = format!("/index/v1/{operation}/{}", doi(number));
        let rows = server.get(&path).await?.json()?;
        let found: Vec<&str> =
            rows.as_array().into_iter().flatten().filter_map(|row| row[column].as_str()).collect();
        let sorted = server.get(&format!("{path}?sort=desc({column})&format=csv")).await?.body;
        let place = if column == "citing" { 1 } else { 2 };
        let backwards: Vec<&str> =
            sorted.lines().skip(1).filter_map(|line| line.split(',').nth(place)).collect();
        let counted = server.get(&format!("/index/v1/{count}/{}", doi(number))).await?.json()?;
        let is_right = found == expected
            && backwards.iter().rev().eq(&found)
            && counted == json!([{"count": expected.len().to_string()}]);
        if !is_right {
            return Err(format!("{path}: {rows}\n{sorted}\n{counted}\nexpected {expected:?}").into());
        }
    }
    Ok(())
}
