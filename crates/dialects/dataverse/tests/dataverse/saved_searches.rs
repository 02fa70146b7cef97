//! Saved searches create links on behalf of the users who saved them.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_saved_search_finds_is_shown_in_its_collection() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, other) = (server.user("fiona").await?, server.user("other").await?);
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let (_, draft) = server.dataset(&fiona, "drafts").await?;
    server.publish(&fiona, "tides", dataset).await?;
    server.dataset(&fiona, "shelf").await?;
    let number = async |key: &str, path: &str| {
        Ok::<_, Failure>(server.get(key, path).await?.json()["data"]["id"].clone())
    };
    let shelf = number(&fiona, "/api/dataverses/shelf").await?;
    let searches = "/api/admin/savedsearches";
    let save = async |body: Value| server.json("", "POST", searches, &body).await;
    let bad = save(json!({"query": "title:(", "definitionPointId": shelf, "creatorId": 1})).await?;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST, "{}", bad.text());
    let mut ids = Vec::new();
    for key in [&other, &fiona] {
        let creator = number(key, "/api/users/:me").await?;
        let body = json!({"query": "gauge", "filterQueries": ["subject_ss:Other"], "definitionPointId": shelf, "creatorId": creator});
        let saved = save(body).await?;
        assert_eq!(saved.status, StatusCode::OK, "{}", saved.text());
        ids.push(saved.json()["data"]["id"].clone());
    }
    let make = async |which: &str| {
        let path = format!("{searches}/makelinks/{which}");
        Ok::<_, Failure>(server.send("", "PUT", &path, "", Body::empty()).await?.json()["data"].clone())
    };
    let shown = async || {
        let found = server.get("", "/api/search?q=*&subtree=shelf&type=dataset").await?.json();
        Ok::<_, Failure>(found["data"]["items"].clone())
    };
    // A saved search of a user who may not link there creates no links.
    let made = make(&ids[0].to_string()).await?;
    assert_eq!(made["hits by saved search"][0]["hits"], json!([]), "{made}");
    server.send(&fiona, "POST", "/api/dataverses/shelf/actions/:publish", "", Body::empty()).await?;
    assert_eq!(shown().await?, json!([]));
    let made = make("all").await?;
    let hits = &made["hits by saved search"][1]["hits"];
    assert_eq!(*hits, json!([{"id": dataset, "linked": true}]), "{made}");
    let items = shown().await?;
    assert_eq!(items[0]["global_id"], pid.as_str(), "{items}");
    assert!(!items.to_string().contains(&draft), "{items}");
    let again = make("all").await?;
    assert_eq!(again["hits by saved search"][1]["hits"], json!([]), "{again}");
    let gone = server.send(&fiona, "DELETE", &format!("{searches}/{}", ids[1]), "", Body::empty()).await?;
    assert_eq!(gone.status, StatusCode::OK, "{}", gone.text());
    Ok(())
}
