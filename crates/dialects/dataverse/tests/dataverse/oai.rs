//! OAI-PMH: `tests/data/oai.http` is a sequence of requests, `oai.out` beside it holds the answers.
//! `BLESS=1 cargo test --test dataverse oai` rewrites them: read the diff before the commit.
//!
//! The first word is the caller, `root` or a guest; with `~` only the status is recorded. There are two published
//! datasets, `{{first}}` and `{{second}}`; `{{token}}` is the resumption token of the answer before.

use std::fmt::Write as _;
use std::path::Path;

use pinakes_test_support::{exchange, golden};

use crate::server::{Failure, Server};

/// Returns the resumption token of an answer.
fn token(answer: &str) -> Option<&str> {
    let (_, rest) = answer.split_once("<resumptionToken")?;
    Some(rest.split_once('>')?.1.split_once('<')?.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn harvesters_get_what_the_standard_says() -> Result<(), Failure> {
    let server = Server::start()?;
    let (root, fiona) = (server.superuser("root").await?, server.user("fiona").await?);
    let mut pids = Vec::new();
    for alias in ["tides", "waves"] {
        let (dataset, pid) = server.dataset(&fiona, alias).await?;
        server.publish(&fiona, alias, dataset).await?;
        pids.push(pid);
    }
    // Lists are in the order in which the datasets were first published.
    let bare = |pid: &str| pid.trim_start_matches("doi:").to_owned();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oai.http");
    let (mut out, mut before, mut tokens) = (String::new(), String::new(), Vec::new());
    for request in exchange::requests(&std::fs::read_to_string(&case)?) {
        let filled: String = exchange::filled::<String>(&request, |_, name| match name {
            "first" => Ok(pids[0].clone()),
            "second" => Ok(pids[1].clone()),
            "token" => token(&before).map(str::to_owned).ok_or_else(|| format!("no token in {before}")),
            other => Err(format!("{other} stands for nothing")),
        })?;
        let (head, body) = filled.split_once('\n').unwrap_or((&filled, ""));
        let [who, method, path] = head.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("no request: {head}").into());
        };
        let key = if who.ends_with("root") { root.as_str() } else { "" };
        let media_type =
            if body.starts_with('{') { "application/json" } else { "application/x-www-form-urlencoded" };
        let got = server.send(key, method, path, media_type, body.trim_end().to_owned()).await?;
        let mut shown = got.text();
        for (pid, name) in pids.iter().zip(["FIRST", "SECOND"]) {
            shown = shown.replace(&bare(pid), name);
        }
        // The next request repeats it.
        tokens.extend(token(&shown).filter(|it| !it.is_empty()).map(str::to_owned));
        for token in &tokens {
            shown = shown.replace(token, "TOKEN");
        }
        writeln!(out, "> {}\n{}", request.lines().next().unwrap_or_default(), got.status.as_str())?;
        if !who.starts_with('~') {
            let media_type = got.headers.get("content-type").and_then(|it| it.to_str().ok());
            writeln!(out, "content-type: {}\n{}", media_type.unwrap_or_default(), shown)?;
        }
        out.push('\n');
        before = got.text();
    }
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}

/// Returns the identifiers on all pages of a list, one record on each.
async fn harvested(server: &Server, verb: &str, arguments: &str) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut path = format!("/oai?verb={verb}&metadataPrefix=oai_dc{arguments}");
    loop {
        let page = server.get("", &path).await?.text();
        let identifiers = page.split("<identifier>").skip(1).filter_map(|it| it.split_once("</identifier>"));
        found.extend(identifiers.map(|it| it.0.to_owned()));
        match token(&page).filter(|it| !it.is_empty()) {
            Some(token) => path = format!("/oai?verb={verb}&resumptionToken={token}"),
            None => return Ok(found),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_is_on_one_page() -> Result<(), Failure> {
    let server = Server::start()?;
    let (root, fiona) = (server.superuser("root").await?, server.user("fiona").await?);
    let mut pids = Vec::new();
    for alias in ["tides", "waves", "winds", "currents"] {
        let (dataset, pid) = server.dataset(&fiona, alias).await?;
        server.publish(&fiona, alias, dataset).await?;
        pids.push(pid);
    }
    // A draft is no record.
    server.dataset(&fiona, "drafts").await?;
    let set = serde_json::json!({"name": "all", "definition": "title:tide"});
    let got = server.json(&root, "POST", "/api/harvest/server/oaisets/add", &set).await?;
    assert_eq!(got.status, http::StatusCode::CREATED, "{}", got.text());
    let got = server.send(&root, "PUT", "/api/harvest/server/oaisets/all/export", "", "").await?;
    assert_eq!(got.status, http::StatusCode::OK, "{}", got.text());
    for (arguments, expected) in [
        ("", &pids[..]),
        ("&from=2026-02-01", &pids[..]),
        ("&until=2026-01-31", &[]),
        ("&set=all", &pids[..]),
        ("&set=all&from=2026-02-01&until=2026-02-01", &pids[..]),
        ("&set=all&from=2026-02-02", &[]),
    ] {
        for verb in ["ListIdentifiers", "ListRecords"] {
            assert_eq!(harvested(&server, verb, arguments).await?, expected, "{verb} {arguments}");
        }
    }
    Ok(())
}
