//! Exchanges: requests as clients send them, and the answers they get.
//!
//! Each `tests/data/exchange/<area>/<case>.http` is a run of requests against a server of its own, separated by empty
//! lines; `<case>.out` beside it holds the answers. `BLESS=1 cargo test --test folio exchanges` rewrites the answers:
//! read the diff before the commit. Cases of
//! some areas run on every engine, see [`ON_EVERY_ENGINE`].
//!
//! ```text
//! # A comment.
//! admin POST /groups
//! {"group": "visitors"}
//!
//! nobody GET /groups/{{1.id}}
//! x-okapi-tenant: other
//! ```
//!
//! The first word says who asks (see [`crate::server::USERS`]); of an answer to `~admin` only the status counts, of one to
//! `await admin` only how the job that it shows ended: it is asked again until then; `later 3600` lets an hour pass. `{{1.id}}` is
//! a field of the first answer, `{{1#set-cookie}}` a header field of it, `{{admin}}` the token of that user. The clock
//! begins at 2026-02-01T10:00:00.000Z and goes on by a second before each request. Ids that the server makes, tokens
//! and the like are shown by their number of appearance.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::HeaderMap;
use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Areas whose cases run on every engine there is: making a tenant in a database takes its time.
const ON_EVERY_ENGINE: [&str; 4] = ["inventory", "authorities", "import", "day"];
/// How long a job may take; on a loaded machine much is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Header fields of answers that are shown.
const SHOWN: [&str; 4] = ["content-type", "location", "x-okapi-token", "set-cookie"];

struct Answered {
    headers: HeaderMap,
    body: Value,
}

async fn check(case: &Path, engine: Engine) -> Result<(), Failure> {
    let text = fs::read_to_string(case)?;
    let server = Server::start(engine).await?;
    let mut answers: Vec<Answered> = Vec::new();
    let mut out = String::new();
    let mut names = Names::default();
    for request in requests(&text) {
        let filled = filled(&server, &request, &answers)?;
        let is_quiet = filled.starts_with('~');
        if let Some(seconds) = filled.strip_prefix("later ") {
            server.clock.advance_ms(1_000 * seconds.trim().parse::<i64>()?);
            answers.push(Answered { headers: HeaderMap::new(), body: Value::Null });
            continue;
        }
        if let Some(awaited) = filled.strip_prefix("await ") {
            let body = ended(&server, awaited).await?;
            let [status, failed] = ["status", "errorStatus"].map(|it| body[it].as_str().unwrap_or_default());
            let progress = &body["progress"];
            writeln!(
                out,
                "> {}\n{status} {failed} {} of {}\n",
                request.lines().next().unwrap_or_default(),
                progress["current"],
                progress["total"]
            )?;
            answers.push(Answered { headers: HeaderMap::new(), body });
            continue;
        }
        server.clock.advance_ms(1_000);
        let (status, headers, body) = server.ask(filled.trim_start_matches('~')).await?;
        writeln!(out, "> {}", request.lines().next().unwrap_or_default())?;
        writeln!(out, "{}", status.as_str())?;
        if !is_quiet {
            for name in SHOWN {
                for value in headers.get_all(name) {
                    writeln!(out, "{name}: {}", names.replaced(value.to_str()?))?;
                }
            }
            writeln!(out, "{}", names.replaced(&String::from_utf8_lossy(&body)))?;
        }
        out.push('\n');
        answers.push(Answered { headers, body: serde_json::from_slice(&body).unwrap_or_default() });
    }
    let expected = case.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        return Ok(fs::write(expected, out)?);
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    if wanted == out {
        return Ok(());
    }
    let line = wanted.lines().zip(out.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| wanted.lines().count().min(out.lines().count()));
    Err(format!(
        "{}, line {}:\n  expected {}\n  found    {}",
        expected.display(),
        line + 1,
        wanted.lines().nth(line).unwrap_or("the end"),
        out.lines().nth(line).unwrap_or("the end"),
    )
    .into())
}

/// A job, when it is over. The clock stands still meanwhile, so that its times are the same in every run.
async fn ended(server: &Server, request: &str) -> Result<Value, Failure> {
    let begun = Instant::now();
    loop {
        let (_, _, body) = server.ask(request).await?;
        let body: Value = serde_json::from_slice(&body)?;
        if matches!(body["status"].as_str(), Some("COMMITTED" | "ERROR" | "CANCELLED")) {
            return Ok(body);
        }
        if PATIENCE < begun.elapsed() {
            return Err(format!("the job does not end: {body}").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Random texts of answers and the names they get.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// UUIDs of version 4 that the server made, and long tokens, replaced by `<n>`. Reference data keeps its ids.
    fn replaced(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        let mut rest = text;
        while let Some(begin) = rest.find(is_part) {
            let end = rest[begin..].find(|it| !is_part(it)).map_or(rest.len(), |at| begin + at);
            out.push_str(&rest[..begin]);
            let word = &rest[begin..end];
            // In formatted MARC the code of a subfield stands right before its value.
            let is_behind_code = word.len() == 37 && word.is_char_boundary(1) && self.is_random(&word[1..]);
            let word = if is_behind_code {
                out.push_str(&word[..1]);
                &word[1..]
            } else {
                word
            };
            // Sequence numbers are the engine's own.
            if out.ends_with("after=") || self.is_random(word) {
                let n = self.0.iter().position(|it| it == word).unwrap_or_else(|| {
                    self.0.push(word.to_owned());
                    self.0.len() - 1
                });
                out.push_str(&format!("<{}>", n + 1));
            } else {
                out.push_str(word);
            }
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }

    fn is_random(&self, word: &str) -> bool {
        let is_uuid = word.len() == 36 && uuid::Uuid::parse_str(word).is_ok();
        let is_given = REFERENCE.contains(word) || word.starts_with("00000000-");
        let is_hash = word.len() == 64 && word.bytes().all(|it| it.is_ascii_hexdigit());
        is_uuid && !is_given || is_hash || word.starts_with("eyJ")
    }
}

/// All reference data, whose ids are the same everywhere.
static REFERENCE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|it| fs::read_to_string(it.path()).ok()).collect()
});

/// The requests of a case, without comments.
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

/// `{{…}}` replaced by what it stands for.
fn filled(server: &Server, request: &str, answers: &[Answered]) -> Result<String, Failure> {
    let (mut filled, mut rest) = (String::new(), request);
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or("an open {{")?;
        filled.push_str(before);
        let answer = |index: &str| -> Result<&Answered, Failure> {
            Ok(answers.get(index.parse::<usize>()?.wrapping_sub(1)).ok_or("no such answer")?)
        };
        let value = match (name.split_once('#'), name.split_once('.')) {
            (Some((index, field)), _) => {
                let cookies = answer(index)?.headers.get_all(field).iter();
                let cookies: Vec<&str> =
                    cookies.filter_map(|it| it.to_str().ok()?.split(';').next()).collect();
                cookies.join("; ")
            }
            (None, Some((index, field))) => {
                let found = answer(index)?.body.pointer(&format!("/{}", field.replace('.', "/")));
                let found = found.ok_or_else(|| format!("{name} is not in an answer"))?;
                found.as_str().map_or_else(|| found.to_string(), str::to_owned)
            }
            (None, None) => server.token(name).ok_or(format!("no user {name}"))?.1.clone(),
        };
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
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
    for case in &cases {
        let is_about_records =
            case.components().any(|it| ON_EVERY_ENGINE.iter().any(|name| it.as_os_str() == *name));
        for engine in Engine::all().into_iter().filter(|it| is_about_records || *it == Engine::Sqlite) {
            if let Err(failure) = check(case, engine).await {
                failures.push(format!("{} on {}: {failure}", case.display(), engine.name()));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    Ok(())
}
