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

use pinakes_test_support::{exchange, golden};
use serde_json::Value;

use engine::Engine;
use server::{Failure, Server, site};

/// The only function that knows how to start a server and send requests to it.
async fn check(engine: Engine, case: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(case)?;
    let server = Server::start(engine, site()).await?;
    let mut answers: Vec<Value> = Vec::new();
    let mut out = String::new();
    for request in exchange::requests(&text) {
        let request = server.filled(&request, &answers)?;
        server.clock.advance_ms(1_000);
        writeln!(out, "> {}", request.lines().next().unwrap_or_default())?;
        let body = server.ask(&request, &mut out).await?;
        out.push('\n');
        answers.push(serde_json::from_slice(&body).unwrap_or_default());
    }
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}

fn cases() -> Vec<PathBuf> {
    golden::cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange"), "http")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges() -> Result<(), Failure> {
    let cases = cases();
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
