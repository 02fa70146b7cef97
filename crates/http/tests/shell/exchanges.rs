//! Recorded exchanges: each `tests/data/exchange/*.in` sent over a socket must give the `.out` beside it.
//!
//! In a `.in` file lines of the head end in a plain newline, `{{repeat X 100}}` stands for a hundred X and
//! `{{hex 1f8b}}` for these two bytes.
//! `BLESS=1 cargo test -p pinakes-http exchanges` rewrites the answers: read the diff before the commit.

use std::fs;
use std::path::Path;

use crate::common::{Failure, Outcome, Server};
use pinakes_store::Limits;
use pinakes_test_support::golden;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn golden() -> Outcome {
    let limits = Limits { body_bytes: 1000, header_bytes: 10_000, json_depth: 8, ..Limits::default() };
    let server = Server::start(limits).await?;
    let cases = golden::cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange"), "in");
    for case in cases {
        check(&server, &case).await?;
    }
    Ok(())
}

async fn check(server: &Server, case: &Path) -> Outcome {
    let answer = readable(&server.exchange(&request(&fs::read_to_string(case)?)?).await?);
    Ok(golden::compare(&case.with_extension("out"), &answer)?)
}

/// Returns the bytes that a `.in` file stands for.
fn request(text: &str) -> Result<Vec<u8>, Failure> {
    let (head, body) = text.split_once("\n\n").ok_or("no empty line after the head")?;
    let text = format!(
        "{}\r\n\r\n{}",
        head.replace('\n', "\r\n"),
        body.trim_end_matches('\n').replace("\\r\\n", "\r\n")
    );
    let mut bytes = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("{{") {
        let (made, after) = after.split_once("}}").ok_or("no end of {{")?;
        bytes.extend_from_slice(before.as_bytes());
        match made.split(' ').collect::<Vec<_>>()[..] {
            ["repeat", what, n] => bytes.extend_from_slice(what.repeat(n.parse()?).as_bytes()),
            ["hex", digits] => {
                for at in (0..digits.len()).step_by(2) {
                    bytes.push(u8::from_str_radix(&digits[at..at + 2], 16)?);
                }
            }
            _ => return Err(format!("{{{{{made}}}}} stands for nothing").into()),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Returns the answer without parts that differ from run to run: the date, times, and compressed bytes.
fn readable(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut out = String::new();
    for line in head.lines() {
        match line.split_once(": ") {
            Some(("date", _)) => continue,
            Some(("server-timing", stages)) => {
                let names = stages.split(", ").filter_map(|it| it.split_once(';')).map(|(name, _)| name);
                out.push_str(&format!("server-timing: {}\n", names.collect::<Vec<_>>().join(" ")));
            }
            Some(("x-request-id", id)) if !id.starts_with("given") => out.push_str("x-request-id: ours\n"),
            Some(("content-length", _)) if head.contains("content-encoding") => {
                out.push_str("content-length: some\n")
            }
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out.push('\n');
    out.push_str(if head.contains("content-encoding") { "(compressed)" } else { body });
    out.push('\n');
    out
}
