//! An excerpt of the published citations and real catalogue documents, compared with a simple evaluation of the
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use pinakes_test_support::collection;
use serde_json::Value;

use crate::server::{Content, Failure, Server};

/// Number of works that are requested, for each direction.
const N_ASKED: usize = 60;

/// Returns the rows of the excerpt as objects, the first one of each pair.
fn rows(text: &str) -> Result<BTreeMap<(String, String), Value>, Failure> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers()?.clone();
    let mut rows = BTreeMap::new();
    for record in reader.records() {
        let record = record?;
        let object = names.iter().zip(&record).map(|(name, value)| (name.to_owned(), Value::from(value)));
        rows.entry((record[1].to_owned(), record[2].to_owned())).or_insert_with(|| object.collect());
    }
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_dump_come_back() -> Result<(), Failure> {
    let Some(folder) = collection("citations") else { return Ok(()) };
    let edges = fs::read_to_string(folder.join("index-csv/oc-sample-part1.coci.csv"))?;
    let rows = rows(&edges)?;
    let server = Server::start(&Content { edges, ..Content::default() }, |_| {}).await?;
    let citing: BTreeSet<&String> = rows.keys().map(|it| &it.0).collect();
    let cited: BTreeSet<&String> = rows.keys().map(|it| &it.1).collect();
    for doi in citing.into_iter().take(N_ASKED) {
        let expected = rows.iter().filter(|(pair, _)| pair.0 == *doi).map(|(_, row)| row.clone());
        let answer = server.get(&format!("/index/v1/references/{}", escaped(doi))).await?;
        assert_eq!(answer.json()?, expected.collect::<Value>(), "{doi}");
    }
    for doi in cited.into_iter().take(N_ASKED) {
        let expected = rows.iter().filter(|(pair, _)| pair.1 == *doi).map(|(_, row)| row.clone());
        let answer = server.get(&format!("/index/coci/api/v1/citations/{}", escaped(doi))).await?;
        assert_eq!(answer.json()?, expected.collect::<Value>(), "{doi}");
    }
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_come_back_byte_for_byte() -> Result<(), Failure> {
    let Some(folder) = collection("citations") else { return Ok(()) };
    let edges = fs::read_to_string(folder.join("index-csv/oc-sample-part1.coci.csv"))?;
    let rows = rows(&edges)?;
    let documents = fs::read_to_string(folder.join("catalogue/lobid-resources-part1.finc-like.jsonl"))?;
    let cited: BTreeSet<&String> = rows.keys().map(|it| &it.1).collect();
    let mut content = Content { edges, documents: documents.clone(), ..Content::default() };
    let mut held = BTreeMap::new();
    for (line, doi) in documents.lines().zip(cited) {
        let document: Value = serde_json::from_str(line)?;
        let id = document["id"].as_str().ok_or("a document without id")?;
        content.graph_ids.push_str(&format!("{id}\t{doi}\n"));
        held.insert(doi, pinakes_labe::json_text::compact(line.as_bytes())?);
    }
    for (number, (citing, _)) in rows.keys().enumerate() {
        content.extra_ids.push_str(&format!("citing-{number}\t{citing}\n"));
    }
    let server = Server::start(&content, |_| {}).await?;
    for (number, (citing, cited)) in rows.keys().enumerate().filter(|(_, pair)| held.contains_key(&pair.1)) {
        let answer = server.get(&format!("/id/citing-{number}")).await?;
        assert_eq!(answer.json()?["doi"], **citing);
        let body = answer.body;
        assert!(body.contains(&held[cited]), "{citing} {cited}");
    }
    server.stop().await
}

/// Escapes a DOI as a client does in a path.
fn escaped(doi: &str) -> String {
    percent_encoding::utf8_percent_encode(doi, percent_encoding::NON_ALPHANUMERIC).to_string()
}
