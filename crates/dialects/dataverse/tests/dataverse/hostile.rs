//! Bad input is refused as a whole, and concurrent requests are serialised.

use axum::body::Body;
use http::StatusCode;
use pinakes_test_support::collection;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// Returns invalid datasets of the original's tests, if they are available.
fn wrong_datasets() -> Result<Vec<(String, String)>, Failure> {
    let Some(folder) = collection("dataverse") else { return Ok(Vec::new()) };
    let names = ["api-dataset-bad-missingInitialVersion.json", "search-datasetMissingReqFields.json"];
    let read =
        |name: &str| Ok((name.to_owned(), std::fs::read_to_string(folder.join("datasets").join(name))?));
    names.into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_datasets_are_refused_and_leave_nothing() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    server.dataset(&fiona, "tides").await?;
    let title = json!({"typeName": "title", "multiple": false, "typeClass": "primitive", "value": "Alone"});
    let with =
        |fields: Value| json!({"datasetVersion": {"metadataBlocks": {"citation": {"fields": fields}}}});
    let multiple =
        json!([{"typeName": "title", "multiple": true, "typeClass": "primitive", "value": ["a", "b"]}]);
    let subject = json!([title, {"typeName": "subject", "multiple": true, "typeClass": "controlledVocabulary", "value": ["Alchemy"]}]);
    let made = [
        ("nothing", String::new()),
        ("no JSON", "{\"datasetVersion\": ".to_owned()),
        ("a list", "[]".to_owned()),
        ("no version", "{}".to_owned()),
        ("a version that is a text", json!({"datasetVersion": "1.0"}).to_string()),
        ("a title alone", with(json!([title])).to_string()),
        ("two titles", with(multiple).to_string()),
        ("an unknown subject", with(subject).to_string()),
        ("deep nesting", format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))),
    ];
    let made = made.map(|(name, body)| (name.to_owned(), body));
    for (name, body) in made.into_iter().chain(wrong_datasets()?) {
        let got =
            server.send(&fiona, "POST", "/api/dataverses/tides/datasets", "application/json", body).await?;
        assert!(got.status.is_client_error(), "{name}: {} {}", got.status, got.text());
        let json = got.json();
        assert_eq!(json["status"], "ERROR", "{name}: {json}");
        assert!(json["message"].as_str().is_some_and(|it| !it.is_empty()), "{name}: {json}");
    }
    let contents = server.get(&fiona, "/api/dataverses/tides/contents").await?.json();
    assert_eq!(contents["data"].as_array().map(Vec::len), Some(1), "{contents}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_published_twice_at_once_has_one_version() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.send(&fiona, "POST", "/api/dataverses/tides/actions/:publish", "", Body::empty()).await?;
    let path = format!("/api/datasets/{dataset}/actions/:publish?type=major");
    let publish = || server.send(&fiona, "POST", &path, "", Body::empty());
    let (a, b, c, d) = tokio::join!(publish(), publish(), publish(), publish());
    let got = [a?, b?, c?, d?];
    let n_done = got.iter().filter(|it| it.status == StatusCode::OK).count();
    let said: Vec<String> = got.iter().map(|it| format!("{} {}", it.status, it.text())).collect();
    assert_eq!(n_done, 1, "{said:#?}");
    assert!(got.iter().all(|it| it.status == StatusCode::OK || it.status.is_client_error()), "{said:#?}");
    let versions = server.get(&fiona, &format!("/api/datasets/{dataset}/versions")).await?.json();
    assert_eq!(versions["data"].as_array().map(Vec::len), Some(1), "{versions}");
    assert_eq!(versions["data"][0]["versionNumber"], 1, "{versions}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_editors_of_a_draft_lose_nothing() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, gustav) = (server.user("fiona").await?, server.user("gustav").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let body = json!({"assignee": "@gustav", "role": "contributor"});
    let assign = format!("/api/datasets/{dataset}/assignments");
    let got = server.json(&fiona, "POST", &assign, &body).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(&fiona, "tides", dataset).await?;
    // None of the concurrent uploads finds a draft: one creates it, and all files end up in it.
    let add = format!("/api/datasets/{dataset}/add");
    let described = json!({});
    let upload = |key: &'static str, bytes: &'static [u8]| {
        let key = if key == "fiona" { fiona.clone() } else { gustav.clone() };
        let (server, add, described) = (&server, &add, &described);
        async move { server.upload(&key, add, "same.txt", bytes, described).await }
    };
    let (a, b, c, d) = tokio::join!(
        upload("fiona", b"1"),
        upload("gustav", b"2"),
        upload("fiona", b"3"),
        upload("gustav", b"4")
    );
    for got in [a?, b?, c?, d?] {
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    }
    let list = server.get(&fiona, &format!("/api/datasets/{dataset}/versions/:draft/files")).await?.json();
    let mut labels: Vec<&str> =
        list["data"].as_array().into_iter().flatten().filter_map(|it| it["label"].as_str()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["same-1.txt", "same-2.txt", "same-3.txt", "same.txt"], "{list}");
    let versions = server.get(&fiona, &format!("/api/datasets/{dataset}/versions")).await?.json();
    assert_eq!(versions["data"].as_array().map(Vec::len), Some(2), "{versions}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_leads_out_of_a_dataset() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    for (at, directory) in
        ["../../etc", "a/../../b", "/..", "a\\..\\b", "..", "a/./b"].into_iter().enumerate()
    {
        let bytes = at.to_string();
        let described = json!({"directoryLabel": directory});
        let got = server.upload(&fiona, &add, "x.txt", bytes.as_bytes(), &described).await?;
        let kept = got.json()["data"]["files"][0]["directoryLabel"].as_str().unwrap_or_default().to_owned();
        assert!(kept.split(['/', '\\']).all(|it| it != ".."), "{directory}: {}", got.text());
        assert!(got.status == StatusCode::OK || got.status.is_client_error(), "{directory}: {}", got.text());
    }
    for name in ["../../evil.txt", "..", "a/../../evil.txt"] {
        let got = server.upload(&fiona, &add, name, b"evil", &json!({})).await?;
        let kept = got.json()["data"]["files"][0]["label"].as_str().unwrap_or_default().to_owned();
        assert!(!kept.contains('/') && kept != "..", "{name}: {}", got.text());
    }
    Ok(())
}

/// A body that is neither `true` nor `false` leaves a restricted file restricted.
#[tokio::test(flavor = "multi_thread")]
async fn only_false_makes_a_file_public() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "a.txt", b"high low", &json!({"restrict": "true"})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let path = format!("/api/files/{file}");
    for (body, status, is_restricted) in [
        ("", StatusCode::BAD_REQUEST, true),
        ("no", StatusCode::BAD_REQUEST, true),
        ("0", StatusCode::BAD_REQUEST, true),
        ("{\"restrict\": \"false\"}", StatusCode::BAD_REQUEST, true),
        ("FALSE", StatusCode::OK, false),
        ("true", StatusCode::OK, true),
    ] {
        let got = server.send(&fiona, "PUT", &format!("{path}/restrict"), "", body).await?;
        assert_eq!(got.status, status, "{body:?}: {}", got.text());
        let shown = server.get(&fiona, &path).await?.json();
        assert_eq!(shown["data"]["restricted"], is_restricted, "{body:?}: {shown}");
    }
    Ok(())
}
