//! Maintenance by administrators: missing bytes, checksums, archival status.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_audited_and_their_checksums_renewed() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.user("boss").await?);
    server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let add = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &add, "a.txt", b"high low", &json!({})).await?.json();
    let file = got["data"]["files"][0]["dataFile"]["id"].as_i64().unwrap_or_default();
    let audit = format!("/api/admin/datafiles/auditFiles?datasetIdentifierList={pid},none/such");
    assert_eq!(server.get(&fiona, &audit).await?.status, StatusCode::FORBIDDEN);
    let found = server.get(&boss, &audit).await?.json();
    assert_eq!(found["data"]["datasetsChecked"], 1, "{found}");
    assert_eq!(found["data"]["datasets"], json!([]), "{found}");
    let failures = json!([{"datasetIdentifier": "none/such", "reason": "Not Found"}]);
    assert_eq!(found["data"]["failures"], failures, "{found}");
    let wrong = server.get(&boss, "/api/admin/datafiles/auditFiles?firstId=9&lastId=1").await?;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.text());
    let validate = format!("/api/admin/validateDataFileHashValue/{file}");
    let compute = |name: &str| format!("/api/admin/computeDataFileHashValue/{file}/algorithm/{name}");
    for (key, path, status) in [
        ("", validate.clone(), StatusCode::UNAUTHORIZED),
        (fiona.as_str(), validate.clone(), StatusCode::UNAUTHORIZED),
        (fiona.as_str(), compute("SHA-256"), StatusCode::UNAUTHORIZED),
        (boss.as_str(), compute("CRC"), StatusCode::BAD_REQUEST),
        (boss.as_str(), "/api/admin/validateDataFileHashValue/999999".to_owned(), StatusCode::BAD_REQUEST),
        (boss.as_str(), validate.clone(), StatusCode::OK),
        (boss.as_str(), compute("SHA-256"), StatusCode::OK),
        (boss.as_str(), validate, StatusCode::OK),
    ] {
        let got = server.send(key, "POST", &path, "", Body::empty()).await?;
        assert_eq!(got.status, status, "{path}: {}", got.text());
    }
    let shown = server.get(&fiona, &format!("/api/files/{file}")).await?.json();
    let sum = "37565ed97d405b5cb755d42b24a5733847e1d3103cba31b7e138dc1729596808";
    let checksum = &shown["data"]["dataFile"]["checksum"];
    assert_eq!(checksum["type"], "SHA-256", "{shown}");
    assert_eq!(checksum["value"], sum, "{shown}");
    let cited = server.get(&fiona, &format!("/api/access/datafile/{file}/citation/BibTeX")).await?;
    assert!(cited.text().contains("a.txt"), "{}", cited.text());
    let hidden = server.get("", &format!("/api/access/datafile/{file}/citation/BibTeX")).await?;
    assert!(hidden.status.is_client_error() && !hidden.text().contains("Finch"), "{}", hidden.text());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_says_whether_it_was_archived() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.user("boss").await?);
    server.send("", "PUT", "/api/admin/superuser/boss", "", "true").await?;
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.publish(&fiona, "tides", dataset).await?;
    let path = format!("/api/datasets/{dataset}/1.0/archivalStatus");
    let pending = json!({"status": "pending", "message": "almost there"});
    assert_eq!(server.get(&boss, &path).await?.status, StatusCode::NOT_FOUND);
    assert_eq!(server.json(&fiona, "PUT", &path, &pending).await?.status, StatusCode::FORBIDDEN);
    for wrong in [json!({"status": "pending"}), json!({"status": "lost", "message": "?"})] {
        assert_eq!(
            server.json(&boss, "PUT", &path, &wrong).await?.status,
            StatusCode::BAD_REQUEST,
            "{wrong}"
        );
    }
    assert_eq!(server.json(&boss, "PUT", &path, &pending).await?.status, StatusCode::OK);
    assert_eq!(server.get(&boss, &path).await?.json()["data"], pending);
    assert_eq!(server.get(&fiona, &path).await?.status, StatusCode::FORBIDDEN);
    let gone = server.send(&boss, "DELETE", &path, "", Body::empty()).await?;
    assert_eq!(gone.status, StatusCode::OK, "{}", gone.text());
    assert_eq!(server.get(&boss, &path).await?.status, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_the_storage_sites_is_primary() -> Result<(), Failure> {
    let server = Server::start()?;
    let path = "/api/admin/storageSites";
    assert_eq!(server.get("", path).await?.status, StatusCode::NOT_FOUND);
    let site = |name: &str, primary: bool| {
        json!({"hostname": format!("{name}.example.edu"), "name": name, "primaryStorage": primary,
            "transferProtocols": "rsync,posix"})
    };
    let first = server.json("", "POST", path, &site("east", true)).await?;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text());
    let mut expected = site("east", true);
    let east = first.json()["data"]["id"].as_i64().unwrap_or_default();
    expected["id"] = json!(east);
    assert_eq!(first.json()["data"], expected);
    let mut wrong = site("west", false);
    wrong["transferProtocols"] = json!("pigeon");
    for wrong in [site("west", true), wrong, json!({"name": "west"})] {
        let got = server.json("", "POST", path, &wrong).await?;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let second = server.json("", "POST", path, &site("west", false)).await?.json();
    let west = second["data"]["id"].as_i64().unwrap_or_default();
    let primary = |id: i64| format!("{path}/{id}/primaryStorage");
    for (id, body, status) in [
        (west, "junk", StatusCode::BAD_REQUEST),
        (west, "true", StatusCode::BAD_REQUEST),
        (999_999, "true", StatusCode::NOT_FOUND),
        (east, "false", StatusCode::OK),
        (west, "true", StatusCode::OK),
    ] {
        let got = server.send("", "PUT", &primary(id), "", body).await?;
        assert_eq!(got.status, status, "{id} {body}: {}", got.text());
    }
    let shown = server.get("", &format!("{path}/{west}")).await?.json();
    assert_eq!(shown["data"]["primaryStorage"], true, "{shown}");
    assert_eq!(server.get("", path).await?.json()["data"].as_array().map(Vec::len), Some(2));
    let one = format!("{path}/{east}");
    for status in [StatusCode::OK, StatusCode::NOT_FOUND] {
        assert_eq!(server.send("", "DELETE", &one, "", Body::empty()).await?.status, status);
    }
    assert_eq!(server.get("", &one).await?.status, StatusCode::NOT_FOUND);
    Ok(())
}
