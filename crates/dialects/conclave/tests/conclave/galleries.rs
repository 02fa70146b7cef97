//! Galleries: the files of a folder in place of an occurrence.

use std::collections::BTreeMap;

use http::{HeaderMap, StatusCode};
use pinakes_conclave::Settings;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

async fn get(
    server: &Server,
    who: &str,
    path: &str,
    headers: HeaderMap,
) -> Result<(StatusCode, HeaderMap, Vec<u8>), Failure> {
    server.send(who, "GET", path, headers, String::new().into()).await
}

/// A gallery is shown on the page and by the API; its files are served to those who may read the scope; a new file
/// changes the page of the topic and its tag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_folder_are_shown_and_served() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let open = folder.path().join("default/default/pictures/one");
    let closed = folder.path().join("default/staff/pictures");
    for (place, name) in [(&open, "a.png"), (&closed, "b.svg")] {
        std::fs::create_dir_all(place)?;
        std::fs::write(place.join(name), "picture")?;
    }
    let galleries = folder.path().to_owned();
    let scopes = BTreeMap::from([("staff".to_owned(), "staff".to_owned())]);
    let server = Server::start_with(Engine::Sqlite, |it| Settings { galleries, scopes, ..it }).await?;
    let occurrence = |scope: &str, reference: &str| json!({"scope": scope, "role": "pictures", "behaviour": "gallery", "reference": reference});
    let topic = json!({
        "id": "a",
        "occurrences": [occurrence("default", "pictures/one"), occurrence("staff", "pictures"), occurrence("default", "../staff/pictures")],
    });
    let path = "/topics/v1/default/topics";
    server.send("editor", "POST", path, HeaderMap::new(), topic.to_string().into()).await?;

    let (_, headers, html) = get(&server, "nobody", "/t/default/a", HeaderMap::new()).await?;
    let html = String::from_utf8(html)?;
    let address = "/conclave/default/gallery/default/pictures/one/a.png";
    assert!(html.contains(&format!("<img src=\"{address}\" alt=\"a.png\"")), "{html}");
    assert!(!html.contains("b.svg"), "{html}");

    let (_, _, body) =
        get(&server, "editor", "/topics/v1/default/topic?id=a&resolve", HeaderMap::new()).await?;
    let body: Value = serde_json::from_slice(&body)?;
    let files: Vec<&Value> = body["occurrences"]
        .as_array()
        .ok_or("occurrences")?
        .iter()
        .filter_map(|it| it["resolved-model"]["files"].as_array())
        .flatten()
        .collect();
    let about = |it: &Value| json!([it["name"], it["size"], it["type"], it["href"]]);
    let listed: Vec<Value> = files.into_iter().map(about).collect();
    assert_eq!(
        Value::Array(listed),
        json!([
            ["a.png", 7, "image/png", address],
            ["b.svg", 7, "image/svg+xml", "/conclave/default/gallery/staff/pictures/b.svg"],
        ])
    );

    let (status, served, body) = get(&server, "nobody", address, HeaderMap::new()).await?;
    assert_eq!((status, body.as_slice()), (StatusCode::OK, b"picture".as_slice()));
    assert_eq!(served["content-security-policy"], "default-src 'none'; sandbox");
    let known = HeaderMap::from_iter([(http::header::IF_NONE_MATCH, served["etag"].clone())]);
    assert_eq!(get(&server, "nobody", address, known).await?.0, StatusCode::NOT_MODIFIED);
    let hidden = "/conclave/default/gallery/staff/pictures/b.svg";
    for (who, path, expected) in [
        ("editor", hidden, StatusCode::OK),
        ("nobody", hidden, StatusCode::NOT_FOUND),
        ("nobody", "/conclave/default/gallery/default/pictures/one/none.png", StatusCode::NOT_FOUND),
        ("nobody", "/conclave/default/gallery/default/..%2Fstaff/pictures/b.svg", StatusCode::NOT_FOUND),
        ("nobody", "/conclave/default/gallery/default%2F..%2Fstaff/pictures/b.svg", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(get(&server, who, path, HeaderMap::new()).await?.0, expected, "{who} {path}");
    }

    std::fs::write(open.join("new.png"), "another")?;
    let known = HeaderMap::from_iter([(http::header::IF_NONE_MATCH, headers["etag"].clone())]);
    let (status, _, html) = get(&server, "nobody", "/t/default/a", known).await?;
    assert_eq!(status, StatusCode::OK);
    assert!(String::from_utf8(html)?.contains("new.png"));
    Ok(())
}
