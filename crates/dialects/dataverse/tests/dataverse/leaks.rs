//! What must not be seen: collections that are kept from all but a few, withdrawn versions, authors behind an anonymous preview.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_collection_is_there_for_nobody_else() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, named) = (server.user("fiona").await?, server.user("named").await?);
    let (stranger, boss) = (server.user("stranger").await?, server.user("boss").await?);
    let made = server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "tides.txt", b"high low", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    server.publish(&fiona, "tides", dataset).await?;
    let paths = [
        "/api/dataverses/tides".to_owned(),
        format!("/api/datasets/{dataset}"),
        format!("/api/datasets/:persistentId?persistentId={pid}"),
        format!("/api/datasets/{dataset}/versions/1.0"),
        format!("/api/datasets/{dataset}/versions/1.0/files"),
        format!("/api/datasets/export?exporter=ddi&persistentId={pid}"),
        format!("/api/files/{file}"),
        format!("/api/access/datafile/{file}"),
    ];
    for path in &paths {
        assert_eq!(server.get(&stranger, path).await?.status, StatusCode::OK, "{path}");
    }
    let keep =
        server.send(&boss, "PUT", "/api/dataverses/tides/locallyFairRoleAssignees/@named", "", Body::empty());
    assert_eq!(keep.await?.status, StatusCode::OK);
    for path in &paths {
        assert_eq!(server.get(&named, path).await?.status, StatusCode::OK, "{path}");
        for (who, key) in [("a guest", ""), ("a stranger", stranger.as_str())] {
            assert_eq!(server.get(key, path).await?.status, StatusCode::NOT_FOUND, "{who}: {path}");
        }
    }
    let count = async |key: &str| -> Result<i64, Failure> {
        let search = "/api/search?q=*&show_facets=true&show_type_counts=true";
        let json = server.get(key, search).await?.json();
        let facets = json["data"]["facets"][0].as_object().map_or(0, serde_json::Map::len);
        let n = json["data"]["total_count"].as_i64().unwrap_or(-1);
        assert_eq!(facets == 0, n == 0, "{json}");
        Ok(n)
    };
    assert_eq!((count("").await?, count(&stranger).await?, count(&named).await?), (0, 0, 3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_version_is_for_editors() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, stranger) = (server.user("fiona").await?, server.user("stranger").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    server.upload(&fiona, &add, "tides.txt", b"high low", &json!({})).await?;
    server.publish(&fiona, "tides", dataset).await?;
    let withdraw = format!("/api/datasets/{dataset}/versions/1.0/deaccession");
    let body = json!({"deaccessionReason": "Wrong gauge."});
    let got = server.json(&fiona, "POST", &withdraw, &body).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    for version in ["1.0", ":latest", ":latest-published"] {
        let path = format!("/api/datasets/{dataset}/versions/{version}/files?includeDeaccessioned=true");
        assert_eq!(server.get(&fiona, &path).await?.status, StatusCode::OK, "{version}");
        for key in ["", stranger.as_str()] {
            assert_eq!(server.get(key, &path).await?.status, StatusCode::NOT_FOUND, "{version}");
        }
    }
    let shown = server.get(&stranger, &format!("/api/datasets/{dataset}")).await?.json();
    assert!(shown["data"]["latestVersion"].is_null(), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anonymous_preview_names_no_author() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let setting = "/api/admin/settings/:AnonymizedFieldTypeNames";
    server.send("", "PUT", setting, "", "author, datasetContact").await?;
    let path = format!("/api/datasets/{dataset}/previewUrl?anonymizedAccess=true");
    let got = server.send(&fiona, "POST", &path, "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let token = got.json()["data"]["token"].as_str().unwrap_or_default().to_owned();
    let version = server.get(&token, &format!("/api/datasets/{dataset}/versions/:draft")).await?;
    assert_eq!(version.status, StatusCode::OK, "{}", version.text());
    for path in [
        format!("/api/datasets/{dataset}/versions/:draft"),
        format!("/api/datasets/{dataset}/versions/:draft/citation"),
        format!("/api/datasets/{dataset}/versions/:draft/citation/BibTeX"),
        format!("/api/datasets/{dataset}/versions/:draft/metadata"),
        format!("/api/datasets/{dataset}/metadata"),
        format!("/api/datasets/{dataset}"),
        format!("/api/datasets/export?exporter=schema.org&version=:draft&persistentId={pid}"),
    ] {
        let got = server.get(&token, &path).await?;
        assert!(!got.text().contains("Finch"), "{path}: {}", got.text());
    }
    Ok(())
}
