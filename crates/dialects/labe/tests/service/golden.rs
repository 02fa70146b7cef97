//! Each `tests/data/<area>/<case>.in` is a list of request lines, each followed by headers after ` | `; the `.out`
//! beside it has the answers. `BLESS=1` rewrites them: read the difference before the commit.

use std::fs;
use std::path::{Path, PathBuf};

use pinakes_labe::ShelfUse;
use pinakes_test_support::golden;

use crate::server::{Content, Failure, Server};

/// Headers that are compared.
const HEADERS: [&str; 7] = [
    "content-type",
    "location",
    "allow",
    "x-content-type-options",
    "link",
    "access-control-allow-origin",
    "access-control-allow-credentials",
];

/// Precedes the time in an answer.
const OWN_TOOK: &str = "\"cached\":false,\"took\":";

fn content() -> Result<Content, Failure> {
    let read = |name: &str| fs::read_to_string(folder().join("content").join(name));
    Ok(Content {
        edges: read("edges.csv")?,
        graph_ids: read("graph-ids.tsv")?,
        extra_ids: read("extra-ids.tsv")?,
        documents: read("documents.ndjson")?,
        works: read("works.csv")?,
    })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_as_recorded() -> Result<(), Failure> {
    let server = Server::start(&content()?, |_| {}).await?;
    check_all(&server).await?;
    server.stop().await
}

/// Answers are the same when everything is streamed by a reading thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streamed_answers_are_the_same() -> Result<(), Failure> {
    let server = Server::start(&content()?, |settings| settings.inline_neighbours = 0).await?;
    check_all(&server).await?;
    server.stop().await
}

/// Answers are the same when every document is read from the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_the_shelf_are_the_same() -> Result<(), Failure> {
    let server = Server::start(&content()?, |settings| settings.shelf = ShelfUse::None).await?;
    check_all(&server).await?;
    server.stop().await
}

async fn check_all(server: &Server) -> Result<(), Failure> {
    for area in ["labed", "opencitations"] {
        for case in golden::cases(&folder().join(area), "in") {
            check(server, &case).await?;
        }
    }
    Ok(())
}

async fn check(server: &Server, path: &Path) -> Result<(), Failure> {
    let mut told = String::new();
    for line in fs::read_to_string(path)?.lines().filter(|it| !it.is_empty() && !it.starts_with('#')) {
        let (request, headers) = line.split_once(" | ").unwrap_or((line, ""));
        let headers: Vec<&str> = headers.split(" | ").filter(|it| !it.is_empty()).collect();
        let answer = server.ask(request, &headers).await?;
        told.push_str(&format!("> {line}\n< {}\n", answer.status));
        for name in HEADERS {
            if let Some(value) = answer.header(name) {
                told.push_str(&format!("< {name}: {value}\n"));
            }
        }
        told.push_str(&without_changing(&answer.body));
        told.push_str("\n\n");
    }
    Ok(golden::compare(&path.with_extension("out"), &told)?)
}

/// Replaces times and process numbers by 0.
fn without_changing(body: &str) -> String {
    let process = format!("process {}", std::process::id());
    let version = concat!("pinakes ", env!("CARGO_PKG_VERSION"));
    let body = body.replace('\r', "\\r").replace(&process, "process 0").replace(version, "pinakes 0");
    // Documents may have a field of that name; the answer's own follows `cached`.
    let Some((before, rest)) = body.rsplit_once(OWN_TOOK) else { return body };
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    format!("{before}{OWN_TOOK}0{}", &rest[end..])
}
