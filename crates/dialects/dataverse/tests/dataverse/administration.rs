//! What administrators set and see, and what others are told: `tests/data/administration.http` is a sequence of
//! requests, `administration.out` beside it holds the answers.
//! `BLESS=1 cargo test --test dataverse administration` rewrites them: read the diff before the commit.
//!
//! The first word is the caller: the superuser `root`, `fiona`, who has a collection `tides` with a dataset
//! (`{{dataset}}`), `gast`, or `-` for nobody. The rest is the body. `{{role}}` is the number of a role of `tides`.

use std::fmt::Write as _;
use std::path::Path;

use pinakes_test_support::{exchange, golden};
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn administration_says_what_it_does_and_refuses() -> Result<(), Failure> {
    let server = Server::start()?;
    let root = server.superuser("root").await?;
    let (fiona, gast) = (server.user("fiona").await?, server.user("gast").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let role = json!({"alias": "reader", "name": "Reader", "permissions": ["ViewUnpublishedDataset"]});
    let role = server.json(&fiona, "POST", "/api/roles?dvo=tides", &role).await?.json();
    let role = role["data"]["id"].as_i64().ok_or("no number of a role")?;

    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/administration.http");
    let mut out = String::new();
    for text in exchange::requests(&std::fs::read_to_string(&case)?) {
        let filled = exchange::filled::<String>(&text, |_, name| match name {
            "dataset" => Ok(dataset.to_string()),
            "role" => Ok(role.to_string()),
            other => Err(format!("{other} stands for nothing")),
        })?;
        let (head, body) = filled.split_once('\n').unwrap_or((&filled, ""));
        let [who, method, path] = head.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("no request: {head}").into());
        };
        let key = match who {
            "root" => &root,
            "fiona" => &fiona,
            "gast" => &gast,
            _ => "",
        };
        let got = server.send(key, method, path, "application/json", body.trim_end().to_owned()).await?;
        let media_type = got.headers.get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
        writeln!(out, "> {}\n{} {media_type}", text.lines().next().unwrap_or_default(), got.status.as_str())?;
        let shown = got.text().replace(&pid, "PID").replace(pid.trim_start_matches("doi:"), "BARE-PID");
        writeln!(out, "{}\n", shown.trim_end())?;
    }
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}
