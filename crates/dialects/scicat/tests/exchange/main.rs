//! Exchanges: requests as clients send them, and the answers they get.
//!
//! Each `tests/data/exchange/<resource>/<case>.http` is a series of requests to a server of its own, separated by empty
//! lines; `<case>.out` beside it contains the answers. `BLESS=1 cargo test --test exchange` rewrites the answers: read
//! the diff before the commit. Both engines must give the same answers.
//!
//! ```text
//! # A comment.
//! user1 POST /api/v3/samples
//! {"ownerGroup": "group1", "sampleName": "Si"}
//!
//! nobody GET /api/v3/samples/{{1.sampleId}}
//! If-None-Match: *
//! ```
//!
//! The first word names the caller (see [`USERS`]); for an answer to `~user1` only the status is compared.
//! `{{1.sampleId}}` is a field of the first answer, percent-encoded in paths; `{{user1}}` is the id of that user.
//! Headers follow the first line, and the body follows them. The clock starts at 2026-02-01T10:00:00.000Z and advances
//! by a second before each request.

mod document;
#[path = "../../../../store/tests/support/engine.rs"]
mod engine;
mod files;
mod history;
mod logbooks;
mod outgoing;
mod roles;
mod server;
mod sessions;
mod shut;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use engine::Engine;
use server::{Failure, Server, site};

/// The only function that knows how to start a server and send requests to it.
async fn check(engine: Engine, case: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(case)?;
    let server = Server::start(engine, site()).await?;
    let mut answers: Vec<Value> = Vec::new();
    let mut out = String::new();
    for request in requests(&text) {
        let request = server.filled(&request, &answers)?;
        server.clock.advance_ms(1_000);
        writeln!(out, "> {}", request.lines().next().unwrap_or_default())?;
        let body = server.ask(&request, &mut out).await?;
        out.push('\n');
        answers.push(serde_json::from_slice(&body).unwrap_or_default());
    }
    let expected = case.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        return Ok(fs::write(expected, out)?);
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    let line = wanted.lines().zip(out.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| wanted.lines().count().min(out.lines().count()));
    if wanted == out {
        return Ok(());
    }
    Err(format!(
        "{}, line {}:\n  expected {}\n  found    {}",
        expected.display(),
        line + 1,
        wanted.lines().nth(line).unwrap_or("the end"),
        out.lines().nth(line).unwrap_or("the end"),
    )
    .into())
}

/// Returns the requests of a case, without comments.
fn requests(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        match (line.trim().is_empty(), list.last_mut()) {
            (true, _) => list.push(String::new()),
            (false, Some(request)) => {
                request.push_str(line);
                request.push('\n');
            }
            (false, None) => {}
        }
    }
    list.retain(|it| !it.is_empty());
    list
}

fn cases() -> Result<Vec<PathBuf>, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange");
    let mut cases = Vec::new();
    for folder in fs::read_dir(root)? {
        for entry in fs::read_dir(folder?.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "http") {
                cases.push(path);
            }
        }
    }
    cases.sort();
    Ok(cases)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges() -> Result<(), Failure> {
    let cases = cases()?;
    assert!(!cases.is_empty(), "no cases found: a moved folder would pass silently");
    let mut failures = Vec::new();
    for engine in Engine::all() {
        for case in &cases {
            if let Err(failure) = check(engine, case).await {
                failures.push(format!("{} on {}: {failure}", case.display(), engine.name()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    Ok(())
}
