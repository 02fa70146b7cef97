//! The files of a version: `tests/data/file_lists.http` is a sequence of requests, `file_lists.out` beside it holds the
//! answers, which this server gave and which were compared with section 4.3 of the contract.
//! `BLESS=1 cargo test --test dataverse file_lists` rewrites them: read the diff before the commit.
//!
//! `{{dataset}}` has a file of each access, `{{closed}}` only a restricted one, which `greta` may download, `{{empty}}` none.

use std::path::Path;

use axum::body::Body;
use http::StatusCode;
use pinakes_test_support::golden;
use serde_json::{Value, json};

use crate::server::{Described, Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_version_are_listed_and_counted() -> Result<(), Failure> {
    let server = Server::start()?;
    let root = server.superuser("root").await?;
    let (fiona, greta, gast) =
        (server.user("fiona").await?, server.user("greta").await?, server.user("gast").await?);
    let setting = "/api/admin/settings/:MaxEmbargoDurationInMonths";
    server.send(&root, "PUT", setting, "", Body::from("-1")).await?;

    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let upload = async |dataset: i64, name: &str, bytes: &[u8], described: Value| -> Result<i64, Failure> {
        let path = format!("/api/datasets/{dataset}/add");
        let got = server.upload(&fiona, &path, name, bytes, &described).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok(got.json()["data"]["files"][0]["dataFile"]["id"].as_i64().ok_or("no number of a file")?)
    };
    let raw = json!({"directoryLabel": "raw", "description": "L'ÉTÉ", "categories": ["Data", "Été"]});
    let open = upload(dataset, "a.txt", b"high water", raw).await?;
    let deep = json!({"directoryLabel": "raw/2026", "categories": ["Data"]});
    let table = upload(dataset, "B.csv", b"name,pounds\nMidnight,15\nTiger,17\n", deep).await?;
    server
        .json(&fiona, "POST", &format!("/api/files/{table}/metadata"), &json!({"dataFileTags": ["Survey"]}))
        .await?;
    let code = json!({"restrict": true, "categories": ["Code"]});
    upload(dataset, "c.py", b"print('low')", code).await?;
    let waiting = upload(dataset, "d.txt", b"slack", json!({"description": "summer (June)"})).await?;
    let both = upload(dataset, "e.txt", b"ebb and flow", json!({"restrict": true})).await?;
    let embargo = json!({"dateAvailable": "2027-01-01", "reason": "", "fileIds": [waiting, both]});
    let path = format!("/api/datasets/{dataset}/files/actions/:set-embargo");
    let got = server.json(&root, "POST", &path, &embargo).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(&fiona, "tides", dataset).await?;
    server.get("", &format!("/api/access/datafile/{open}")).await?;
    server.send(&fiona, "DELETE", &format!("/api/files/{open}"), "", Body::empty()).await?;
    upload(dataset, "f.txt", b"neap", json!({"categories": ["Neap"]})).await?;

    let (closed, pid_of_closed) = server.described(&fiona, "tides", &Described::default()).await?;
    let secret = upload(closed, "secret.txt", b"spring", json!({"restrict": true})).await?;
    server.publish(&fiona, "tides", closed).await?;
    let grant = format!("/api/access/datafile/{secret}/grantAccess/@greta");
    let got = server.send(&fiona, "PUT", &grant, "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let (empty, pid_of_empty) = server.described(&fiona, "tides", &Described::default()).await?;
    server.publish(&fiona, "tides", empty).await?;

    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/file_lists.http");
    let callers = [
        ("root", root.as_str()),
        ("fiona", fiona.as_str()),
        ("greta", greta.as_str()),
        ("gast", gast.as_str()),
    ];
    let values = [("dataset", dataset), ("closed", closed), ("empty", empty)];
    let mut out = server.exchanged(&case, &callers, &values).await?;
    for pid in [pid, pid_of_closed, pid_of_empty] {
        out = out.replace(pid.trim_start_matches("doi:"), "PID");
    }
    Ok(golden::compare(&case.with_extension("out"), &out)?)
}
