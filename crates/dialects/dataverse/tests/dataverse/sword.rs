//! SWORD: `tests/data/sword.http` is a sequence of requests, `sword.out` beside it holds the answers.
//! `BLESS=1 cargo test --test dataverse sword` rewrites them: read the diff before the commit.
//!
//! The first word is the caller, `fiona` or `gast` with a token, `guest` without one. With `@below` the dialect is mounted
//! below `/data`, behind a proxy that speaks HTTPS; with `~` only the status is recorded. Lines after the first are
//! headers, then a body: an Atom entry, or `zip` with the entries of an archive, each as `NAME=TEXT`. `{{dataset}}` is
//! the identifier of the dataset that was made last, `{{file}}` the number of the last file in a statement.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use pinakes_http::MountedAt;
use pinakes_test_support::{exchange, golden};
use serde_json::json;

use crate::server::{Failure, Server};

/// Returns what stands between two texts for the first time.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    Some(text.split_once(begin)?.1.split_once(end)?.0)
}

/// Returns an archive with these entries.
fn archive(entries: &str) -> Result<Vec<u8>, Failure> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries.split_whitespace() {
        match entry.split_once('=') {
            Some((name, text)) => {
                zip.start_file(name, zip::write::SimpleFileOptions::default())?;
                zip.write_all(text.as_bytes())?;
            }
            None => zip.add_directory(entry, zip::write::SimpleFileOptions::default())?,
        }
    }
    Ok(zip.finish()?.into_inner())
}

/// Makes the request of a case.
fn request(text: &str, tokens: &[(&str, String)]) -> Result<Request, Failure> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let [who, method, path] = head.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("no request: {head}").into());
    };
    let mut request = Request::builder().method(method).uri(path).header("host", "data.example.org");
    let (name, place) =
        who.trim_start_matches('~').split_once('@').unwrap_or((who.trim_start_matches('~'), ""));
    if place == "below" {
        request = request.header("x-forwarded-proto", "https").extension(MountedAt("/data".into()));
    }
    if name != "guest" {
        let token = tokens.iter().find(|it| it.0 == name).map_or("nobody's", |it| it.1.as_str());
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("{token}:"));
        request = request.header("authorization", format!("Basic {basic}"));
    }
    let mut body = Vec::new();
    for line in lines {
        if let Some(entries) = line.strip_prefix("zip") {
            body = archive(entries)?;
        } else if body.is_empty() && !line.starts_with('<') {
            let (name, value) = line.split_once(": ").ok_or_else(|| format!("no header: {line}"))?;
            request = request.header(name, value);
        } else {
            body.extend(line.bytes());
        }
    }
    Ok(request.body(Body::from(body))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_deposit_and_publish() -> Result<(), Failure> {
    let server = Server::start()?;
    let tokens = [("fiona", server.user("fiona").await?), ("gast", server.user("gast").await?)];
    let tides =
        json!({"name": "Tides", "alias": "tides", "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    let made = server.json(&tokens[0].1, "POST", "/api/dataverses/root", &tides).await?;
    assert!(made.status.is_success(), "{}", made.text());
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sword.http");
    let (mut out, mut dataset, mut file) = (String::new(), String::new(), String::new());
    for text in exchange::requests(&std::fs::read_to_string(&case)?) {
        let filled: String = exchange::filled::<String>(&text, |_, name| match name {
            "dataset" => Ok(dataset.clone()),
            "file" => Ok(file.clone()),
            other => Err(format!("{other} stands for nothing")),
        })?;
        let got = server.answered(request(&filled, &tokens)?).await?;
        let shown = got.text();
        if let Some(pid) = between(&shown, "/edit/study/doi:", "<") {
            dataset = format!("doi:{pid}");
        }
        if let Some(number) = between(&shown, "/edit-media/file/", "/") {
            number.clone_into(&mut file);
        }
        writeln!(out, "> {}\n{}", text.lines().next().unwrap_or_default(), got.status.as_str())?;
        if !text.starts_with('~') {
            for name in ["content-type", "location", "www-authenticate"] {
                if let Some(value) = got.headers.get(name) {
                    writeln!(out, "{name}: {}", value.to_str()?)?;
                }
            }
            writeln!(out, "{shown}")?;
        }
        out.push('\n');
    }
    let bare = dataset.trim_start_matches("doi:");
    out = out.replace(bare, "PID").replace(&format!("/file/{file}/"), "/file/FILE/");
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}
