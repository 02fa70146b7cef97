//! The original's answers for the same data: `tests/data/recorded`, see the README there.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::server::{Answer, Content, Failure, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_catalogues_get_the_originals_answers() -> Result<(), Failure> {
    check("made", 1_314).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edge_cases_get_the_originals_answers() -> Result<(), Failure> {
    check("edge", 48).await
}

fn unpacked(name: &str) -> Result<String, Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded").join(format!("{name}.gz"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}

async fn check(case: &str, n_answers: usize) -> Result<(), Failure> {
    let content = Content {
        edges: unpacked(&format!("{case}-doi_doi.tsv"))?,
        graph_ids: unpacked(&format!("{case}-id_doi.tsv"))?,
        documents: unpacked(&format!("{case}-docs.ndj"))?,
        ..Content::default()
    };
    let server = Server::start(&content, |_| {}).await?;
    let mut n_checked = 0;
    for line in unpacked(&format!("{case}-answers.jsonl"))?.lines() {
        let wanted: Value = serde_json::from_str(line)?;
        let path = wanted["path"].as_str().unwrap_or_default();
        let found = told(path, &server.get(path).await?)?;
        assert_eq!(canonical(&found), canonical(&wanted), "{path}");
        n_checked += 1;
    }
    server.stop().await?;
    assert_eq!(n_checked, n_answers);
    Ok(())
}

/// Returns the parts of an answer that are compared.
fn told(path: &str, answer: &Answer) -> Result<Value, Failure> {
    let mut told = json!({"path": path, "status": answer.status});
    if let Some(location) = answer.header("location") {
        told["location"] = location.into();
    }
    if 400 <= answer.status {
        let content_type = answer.header("content-type").unwrap_or_default();
        told["ctype"] = content_type.split(';').next().unwrap_or_default().into();
        told["body"] = answer.body.chars().take(200).collect::<String>().into();
    }
    if answer.status != 200 || !path.starts_with("/id/") {
        return Ok(told);
    }
    let body = answer.json()?;
    let keys = |value: &Value| -> Vec<String> {
        let mut keys: Vec<String> = value.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect();
        keys.sort_unstable();
        keys
    };
    told["id"] = body["id"].clone();
    told["doi"] = body["doi"].clone();
    let extra = &body["extra"];
    let mut counts = Map::new();
    for name in
        ["citing_count", "cited_count", "unmatched_citing_count", "unmatched_cited_count", "institution"]
    {
        counts.extend(extra.get(name).map(|it| (name.to_owned(), it.clone())));
    }
    told["counts"] = counts.into();
    for (name, list) in [
        ("citing", &body["citing"]),
        ("cited", &body["cited"]),
        ("unmatched.citing", &body["unmatched"]["citing"]),
        ("unmatched.cited", &body["unmatched"]["cited"]),
    ] {
        let Some(list) = list.as_array().filter(|it| !it.is_empty()) else { continue };
        let mut entries: Vec<String> = list.iter().map(canonical).collect();
        entries.sort_unstable();
        let digest = Sha256::digest(entries.join("\n").as_bytes());
        let digest: String = digest.iter().take(8).map(|it| format!("{it:02x}")).collect();
        told[name] = json!([list.len(), digest]);
    }
    told["keys"] =
        keys(&body).into_iter().chain(keys(extra).iter().map(|it| format!("extra.{it}"))).collect();
    Ok(told)
}

/// Formats JSON with sorted keys and without blanks.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|it| it.0);
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}:{}", json!(key), canonical(value))).collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
