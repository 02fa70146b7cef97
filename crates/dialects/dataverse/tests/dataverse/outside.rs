//! Routes outside of the API: its description, the site map, pages and logos of collections.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_is_described_in_two_formats() -> Result<(), Failure> {
    let server = Server::start()?;
    let content_type = |got: &crate::server::Got| {
        got.headers.get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
    };
    for (path, accept, status, kind) in [
        ("/openapi", "", StatusCode::OK, "application/yaml"),
        ("/openapi", "application/json", StatusCode::OK, "application/json"),
        ("/openapi?format=json", "", StatusCode::OK, "application/json"),
        ("/openapi?format=JSON", "application/json", StatusCode::OK, "application/json"),
        ("/openapi?format=yaml", "text/x-yaml", StatusCode::OK, "application/yaml"),
        ("/openapi?format=yaml", "application/json", StatusCode::BAD_REQUEST, "application/json"),
        ("/openapi?format=xml", "", StatusCode::BAD_REQUEST, "application/json"),
    ] {
        let got = server.accepting(accept, path).await?;
        assert_eq!((got.status, content_type(&got).as_str()), (status, kind), "{path} {accept}");
    }
    let described = server.get("", "/openapi?format=json").await?.json();
    assert_eq!(described["openapi"], "3.0.3");
    let paths = described["paths"].as_object().map(|it| it.len()).unwrap_or_default();
    assert!(300 < paths, "{paths} paths");
    let shown = &described["paths"]["/api/datasets/{id}"]["get"];
    assert_eq!(shown["parameters"][0]["name"], "id", "{shown}");
    assert!(described["paths"]["/oai"]["get"].is_object());
    let mut seen = std::collections::BTreeSet::new();
    for operation in described["paths"].as_object().into_iter().flat_map(|it| it.values()) {
        for it in operation.as_object().into_iter().flat_map(|it| it.values()) {
            assert!(seen.insert(it["operationId"].as_str().unwrap_or_default().to_owned()), "{it}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crawlers_find_what_is_published_and_nothing_else() -> Result<(), Failure> {
    let server = Server::start()?;
    let fiona = server.user("fiona").await?;
    let (dataset, pid) = server.dataset(&fiona, "tides").await?;
    let (_, hidden) = server.dataset(&fiona, "secret").await?;
    for path in ["/dataverse/tides", "/dataverse/none"] {
        let got = server.get("", path).await?;
        assert!(got.status.is_client_error(), "{path}: {}", got.text());
    }
    assert!(!server.get("", "/sitemap.xml").await?.text().contains("<url>"));
    server.publish(&fiona, "tides", dataset).await?;
    let map = server.get("", "/sitemap.xml").await?;
    assert_eq!(map.status, StatusCode::OK);
    let map = map.text();
    assert!(map.contains(&format!("/dataset.xhtml?persistentId={pid}</loc><lastmod>2026-02-01<")), "{map}");
    assert!(map.contains("/dataverse/tides</loc>"), "{map}");
    assert!(!map.contains(&hidden) && !map.contains("secret"), "{map}");
    assert_eq!(server.get("", "/sitemap/1.xml").await?.text(), map);
    assert_eq!(server.get("", "/sitemap/x.xml").await?.status, StatusCode::NOT_FOUND);
    let page = server.get("", "/dataverse/tides").await?;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text().contains("Tide gauge readings</a>"), "{}", page.text());
    let root = server.get("", "/dataverse/root").await?.text();
    assert!(root.contains("/dataverse/tides\"") && !root.contains("secret"), "{root}");
    let own = server.get(&fiona, "/dataverse/secret").await?.text();
    assert!(own.contains(&hidden), "{own}");
    Ok(())
}

/// A red PNG of 2 by 2 pixels.
pub(crate) const PNG: &[u8] = &[
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 2, 8, 2, 0, 0, 0, 253,
    212, 154, 115, 0, 0, 0, 16, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 68, 12, 16, 10, 0, 31, 238,
    3, 253, 139, 95, 20, 212, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_has_a_picture() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, other) = (server.user("fiona").await?, server.user("other").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let logo = "/api/dataverses/tides/logo";
    let put = async |key: &str, bytes: &[u8]| server.form(key, "PUT", logo, "l.png", bytes, &json!({})).await;
    assert_eq!(put(&other, PNG).await?.status, StatusCode::UNAUTHORIZED);
    assert_eq!(put(&fiona, b"no picture").await?.status, StatusCode::FORBIDDEN);
    assert_eq!(server.get(&fiona, logo).await?.status, StatusCode::NOT_FOUND);
    let set = put(&fiona, PNG).await?;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    let address = set.json()["data"]["logo"].as_str().unwrap_or_default().to_owned();
    let path = address.strip_prefix("http://data.example.org").unwrap_or_default().to_owned();
    assert!(server.get("", &path).await?.status.is_client_error(), "the collection is not published");
    server.publish(&fiona, "tides", dataset).await?;
    let shown = server.get("", &path).await?;
    assert_eq!((shown.status, &shown.body[1..4]), (StatusCode::OK, &b"PNG"[..]), "{path}");
    let found = server.get("", "/api/search?q=tides&type=dataverse").await?.json();
    assert_eq!(found["data"]["items"][0]["image_url"], address.as_str(), "{found}");
    let remove = async |key: &str| server.send(key, "DELETE", logo, "", Body::empty()).await;
    assert_eq!(remove(&other).await?.status, StatusCode::UNAUTHORIZED);
    assert_eq!(remove(&fiona).await?.status, StatusCode::OK);
    assert_eq!(remove(&fiona).await?.status, StatusCode::NOT_FOUND);
    let found = server.get("", "/api/search?q=tides&type=dataverse").await?.json();
    assert_eq!(found["data"]["items"][0]["image_url"], Value::Null, "{found}");
    Ok(())
}
