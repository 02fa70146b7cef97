//! Users: `tests/data/users.http` is a sequence of requests, `users.out` beside it holds the answers.
//! `BLESS=1 cargo test --test dataverse users` rewrites them: read the diff before the commit.
//!
//! The first word is the caller: the superuser `root`, or `fiona`, `gast` or `greta`. A second line may say what the caller
//! accepts; the rest is the body. `{{gast}}` is the number of that user, `{{file}}` that of a file of `fiona`.

use std::path::Path;

use axum::body::Body;
use pinakes_test_support::golden;
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn administrators_see_what_users_left_behind() -> Result<(), Failure> {
    let server = Server::start()?;
    let mut keys = vec![("root", server.superuser("root").await?)];
    for name in ["fiona", "gast", "greta"] {
        keys.push((name, server.user(name).await?));
    }
    let callers: Vec<(&str, &str)> = keys.iter().map(|it| (it.0, it.1.as_str())).collect();
    let key_of = |name: &str| callers.iter().find(|it| it.0 == name).map_or("", |it| it.1);
    let (dataset, pid) = server.dataset(key_of("fiona"), "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(key_of("fiona"), &add, "a.txt", b"high", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().ok_or("no number of a file")?;
    server.json(key_of("fiona"), "PUT", &format!("/api/files/{file}/restrict"), &json!(true)).await?;
    server.publish(key_of("fiona"), "tides", dataset).await?;
    server.get(key_of("fiona"), &format!("/api/access/datafile/{file}")).await?;
    let group = json!({"aliasInOwner": "staff", "displayName": "Harbour, \"west\""});
    server.json(key_of("fiona"), "POST", "/api/dataverses/tides/groups", &group).await?;
    let member = "/api/dataverses/tides/groups/staff/roleAssignees/@fiona";
    let got = server.send(key_of("fiona"), "PUT", member, "", Body::empty()).await?;
    assert!(got.status.is_success(), "{}", got.text());
    // Somebody else only adds a file.
    let role = json!({"assignee": "@greta", "role": "curator"});
    server.json(key_of("fiona"), "POST", "/api/dataverses/tides/assignments", &role).await?;
    let got = server.upload(key_of("greta"), &add, "b.txt", b"low", &json!({})).await?;
    assert!(got.status.is_success(), "{}", got.text());
    let gast = server.get(key_of("gast"), "/api/users/:me").await?.json();
    let gast = gast["data"]["id"].as_i64().ok_or("no number of a user")?;

    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/users.http");
    let out = server.exchanged(&case, &callers, &[("gast", gast), ("file", file)]).await?;
    Ok(golden::compare(&case.with_extension("out"), &out.replace(&pid, "PID"))?)
}
