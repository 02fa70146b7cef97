//! Harvesting from another provider: here from another test server, over HTTP.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

/// Waits until a client's run has ended. Returns the client.
async fn run(server: &Server, key: &str, name: &str) -> Result<Value, Failure> {
    let path = format!("/api/harvest/clients/{name}");
    let got = server.send(key, "POST", &format!("{path}/run"), "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::ACCEPTED, "{}", got.text());
    for _ in 0..200 {
        let client = server.get(key, &path).await?.json()["data"].clone();
        if client["status"] == "inActive" {
            return Ok(client);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err("the run does not end".into())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_become_datasets_and_go_away_again() -> Result<(), Failure> {
    let (provider, server) = (Server::start()?, Server::start()?);
    let fiona = provider.user("fiona").await?;
    let (dataset, pid) = provider.dataset(&fiona, "tides").await?;
    provider.publish(&fiona, "tides", dataset).await?;
    let address = provider.listen().await?;
    let admin = provider.superuser("root").await?;
    let set = json!({"name": "all", "definition": "title:tide"});
    let got = provider.json(&admin, "POST", "/api/harvest/server/oaisets/add", &set).await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    provider.send(&admin, "PUT", "/api/harvest/server/oaisets/all/export", "", Body::empty()).await?;

    let admin = server.superuser("root").await?;
    let body =
        json!({"name": "near", "alias": "near", "dataverseContacts": [{"contactEmail": "a@example.org"}]});
    server.json(&admin, "POST", "/api/dataverses/root", &body).await?;
    server.send(&admin, "POST", "/api/dataverses/near/actions/:publish", "", Body::empty()).await?;
    for (format, body, status) in [
        ("oai_dc", json!({}), StatusCode::BAD_REQUEST),
        ("oai_dc", json!({"dataverseAlias": "none"}), StatusCode::BAD_REQUEST),
        ("marc", json!({"dataverseAlias": "near"}), StatusCode::BAD_REQUEST),
        (
            "oai_dc",
            json!({"dataverseAlias": "near", "set": "all", "customHeaders": "x-key: of the provider"}),
            StatusCode::CREATED,
        ),
        ("oai_dc", json!({"dataverseAlias": "near"}), StatusCode::BAD_REQUEST),
    ] {
        let mut body = body;
        body["harvestUrl"] = format!("http://{address}/oai").into();
        body["metadataFormat"] = format.into();
        let got = server.json(&admin, "POST", "/api/harvest/clients/other", &body).await?;
        assert_eq!(got.status, status, "{body}: {}", got.text());
    }
    let somebody = server.user("somebody").await?;
    let got = server.json(&somebody, "POST", "/api/harvest/clients/mine", &json!({})).await?;
    assert_eq!(got.status, StatusCode::FORBIDDEN, "{}", got.text());

    // A key of the provider is not shown to everybody.
    for (key, headers) in
        [(admin.as_str(), json!("x-key: of the provider")), (&somebody, json!(null)), ("", json!(null))]
    {
        let shown = server.get(key, "/api/harvest/clients/other").await?.json();
        assert_eq!(shown["data"]["customHeaders"], headers, "{shown}");
        let listed = server.get(key, "/api/harvest/clients").await?.json();
        assert_eq!(listed["data"]["harvestingClients"][0]["customHeaders"], headers, "{listed}");
    }

    let client = run(&server, &admin, "other").await?;
    assert_eq!(client["lastResult"], "SUCCESS", "{client}");
    assert_eq!(client["lastDatasetsHarvested"], 1, "{client}");
    let found = server.get("", "/api/search?q=isHarvested:true&type=dataset").await?.json();
    assert_eq!(found["data"]["total_count"], 1, "{found}");
    assert_eq!(found["data"]["items"][0]["global_id"], json!(pid), "{found}");
    let shown = server.get("", &format!("/api/datasets/:persistentId?persistentId={pid}")).await?;
    assert_eq!(shown.json()["data"]["latestVersion"]["versionState"], "RELEASED", "{}", shown.text());
    let title = json!({"fields": [{"typeName": "title", "value": "mine"}]});
    let path = format!("/api/datasets/:persistentId/editMetadata?persistentId={pid}&replace=true");
    let got = server.json(&admin, "PUT", &path, &title).await?;
    assert_eq!(got.status, StatusCode::FORBIDDEN, "{}", got.text());
    for (location, n) in [("local", 0), ("remote", 1), ("all", 1)] {
        let path = format!("/api/info/metrics/datasets?dataLocation={location}");
        assert_eq!(server.get("", &path).await?.json()["data"]["count"], n, "{location}");
    }

    // The same record in another format gives the same dataset.
    let native = json!({"metadataFormat": "dataverse_json"});
    server.json(&admin, "PUT", "/api/harvest/clients/other", &native).await?;
    let client = run(&server, &admin, "other").await?;
    assert_eq!(client["lastDatasetsFailed"], 0, "{client}");
    let found = server.get("", "/api/search?q=isHarvested:true&type=dataset").await?.json();
    assert_eq!(found["data"]["total_count"], 1, "{found}");

    let got = server.send(&admin, "DELETE", "/api/harvest/clients/other", "", Body::empty()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let found = server.get("", "/api/search?q=*&type=dataset").await?.json();
    assert_eq!(found["data"]["total_count"], 0, "{found}");
    let got = server.get("", "/api/harvest/clients/other").await?;
    assert_eq!(got.status, StatusCode::NOT_FOUND, "{}", got.text());
    Ok(())
}
