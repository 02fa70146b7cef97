//! Tests of the dialect through HTTP exchanges, on every available engine.
//!
//! Each `tests/data/exchange/<case>.http` is a sequence of requests to a server of its own, separated by empty lines;
//! `<case>.out` beside it holds the answers. `BLESS=1 cargo test --test conclave` rewrites the answers: read the diff
//! before the commit. The first word names the caller: `editor`, `junior` (an editor who may not see the scope
//! `staff`), `admin`, `reader`, `browser` (the editor, by cookie) or `nobody`. `{{csrf}}` is the token of the browser's
//! forms, `{{N.header}}` a header field of the answer to request N. The clock starts at 2026-02-01T10:00:00Z and
//! advances by a second before each request.

extern crate pinakes_test_support as libfuzzer_sys;

#[path = "../../../../store/tests/support/engine.rs"]
mod engine;
mod fuzz;
mod galleries;
mod hostile;
mod joined;
mod maps;
mod server;
mod signing;
mod templates;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use http::HeaderMap;
use pinakes_test_support::golden;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Header fields of answers that are shown.
const SHOWN: [&str; 8] = [
    "content-type",
    "location",
    "etag",
    "last-modified",
    "cache-control",
    "set-cookie",
    "www-authenticate",
    "x-stale-labels",
];

async fn check(case: &Path, engine: Engine) -> Result<(), Failure> {
    let text = fs::read_to_string(case)?;
    let server = Server::start(engine).await?;
    let mut answers: Vec<HeaderMap> = Vec::new();
    let mut out = String::new();
    for request in text.split("\n\n").map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#')) {
        let mut filled = request.replace("{{csrf}}", &server.csrf());
        for (at, headers) in answers.iter().enumerate() {
            for name in SHOWN {
                let value = headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default();
                filled = filled.replace(&format!("{{{{{}.{name}}}}}", at + 1), value);
            }
        }
        server.clock.advance_ms(1_000);
        let (status, headers, body) = server.ask(&filled).await?;
        writeln!(out, "> {}\n{}", request.lines().next().unwrap_or_default(), status.as_str())?;
        for name in SHOWN {
            for value in headers.get_all(name) {
                let value = value.to_str()?;
                // Sequence numbers differ between engines, and tokens between runs.
                let value = match name {
                    "etag" => "...",
                    "set-cookie" => value.split_once("; ").map_or(value, |it| it.1),
                    _ => value,
                };
                writeln!(out, "{name}: {value}")?;
            }
        }
        writeln!(out, "{}\n", shown(&body).replace(&server.csrf(), "CSRF"))?;
        answers.push(headers);
    }
    // The first engine's answers are what the other must give, too.
    if golden::is_blessing() && engine != Engine::Sqlite {
        return Ok(());
    }
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}

/// Returns a body as text, without the sequence numbers in revision ids, which differ between engines.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut parts = text.split('\u{1F}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("<...>");
        out.push_str(part.trim_start_matches(|it: char| it.is_ascii_digit()));
    }
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges() -> Result<(), Failure> {
    let cases = golden::cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange"), "http");
    for engine in Engine::all() {
        for case in &cases {
            check(case, engine).await.map_err(|error| format!("{}: {error}", engine.name()))?;
        }
    }
    Ok(())
}

/// A topic that very many others point at: pages of the list, of one type, of one role alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pointing_topics_come_in_pages() -> Result<(), Failure> {
    const N_POINTING: usize = 250;
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let mut lines = String::from("{\"op\":\"put-topic\",\"id\":\"hub\"}\n");
        for n in 0..N_POINTING {
            let ty = if n % 2 == 0 { "even" } else { "odd" };
            let role = if n % 10 == 0 { "tenth" } else { "other" };
            writeln!(
                lines,
                "{{\"op\":\"put-topic\",\"id\":\"t{n:03}\",\"associations\":[{{\"id\":\"t{n:03}~1\",\"type\":\"{ty}\",\
                 \"reference\":\"hub\",\"role\":\"{role}\"}}]}}"
            )?;
        }
        let (status, _, body) =
            server.send("editor", "POST", "/topics/v1/default/batch", HeaderMap::new(), lines.into()).await?;
        assert_eq!(status.as_u16(), 200, "{}", String::from_utf8_lossy(&body));
        for (which, n_expected) in
            [("", 250), ("&type=even", 125), ("&role=tenth", 25), ("&type=odd&role=tenth", 0)]
        {
            let (mut n_found, mut after) = (0, String::new());
            for _ in 0..100 {
                let path = format!("/topics/v1/default/pointing?id=hub&view=ids&limit=10{which}{after}");
                let (_, _, body) =
                    server.send("nobody", "GET", &path, HeaderMap::new(), String::new().into()).await?;
                let page: serde_json::Value = serde_json::from_slice(&body)?;
                n_found += page["items"].as_array().map_or(0, Vec::len);
                match page["next"].as_str() {
                    Some(next) => after = format!("&after={next}"),
                    None => break,
                }
            }
            assert_eq!(n_found, n_expected, "{which} {}", engine.name());
        }
    }
    Ok(())
}
