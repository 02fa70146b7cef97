//! What administrators set and see, and what others are told: `tests/data/administration.http` is a sequence of
//! requests, `administration.out` beside it holds the answers.
//! `BLESS=1 cargo test --test dataverse administration` rewrites them: read the diff before the commit.
//!
//! The first word is the caller: the superuser `root`, `fiona`, who has a collection `tides` with a dataset
//! (`{{dataset}}`), `gast`, or `-` for nobody. The rest is the body. `{{role}}` is the number of a role of `tides`.

use std::path::Path;

use pinakes_test_support::golden;
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
    let callers = [("root", root.as_str()), ("fiona", fiona.as_str()), ("gast", gast.as_str())];
    let out = server.exchanged(&case, &callers, &[("dataset", dataset), ("role", role)]).await?;
    let out = out.replace(&pid, "PID").replace(pid.trim_start_matches("doi:"), "BARE-PID");
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}
