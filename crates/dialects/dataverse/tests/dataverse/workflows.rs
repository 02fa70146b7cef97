//! Workflows before and after the publication.

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Failure, Server};

const ADMIN: &str = "/api/admin/workflows";

fn step(step_type: &str, parameters: &Value) -> Value {
    json!({"provider": ":internal", "stepType": step_type, "parameters": parameters})
}

/// Creates a workflow that a trigger starts. Returns its number.
async fn workflow(server: &Server, trigger: &str, steps: &Value) -> Result<i64, Failure> {
    let got = server.json("", "POST", ADMIN, &json!({"name": "w", "steps": steps})).await?;
    assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
    assert_eq!(got.json()["data"]["steps"].as_array().map(Vec::len), steps.as_array().map(Vec::len));
    let id = got.json()["data"]["id"].as_i64().unwrap_or_default();
    let got = server.send("", "PUT", &format!("{ADMIN}/default/{trigger}"), "", id.to_string()).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(id)
}

/// Returns a dataset's locks, state and version, as one text.
async fn state(server: &Server, key: &str, dataset: i64) -> Result<String, Failure> {
    let locks = server.get(key, &format!("/api/datasets/{dataset}/locks")).await?.json();
    let lock = locks["data"][0]["lockType"].as_str().unwrap_or("free").to_owned();
    let version = server.get(key, &format!("/api/datasets/{dataset}/versions/:latest")).await?.json();
    let state = version["data"]["versionState"].as_str().unwrap_or("?").to_owned();
    Ok(format!("{lock} {state} {}", version["data"]["versionNumber"]))
}

/// Returns the id of the only waiting workflow.
async fn pending(server: &Server) -> Result<String, Failure> {
    let got = server.get("", &format!("{ADMIN}/pending")).await?.json();
    assert_eq!(got["data"].as_array().map(Vec::len), Some(1), "{got}");
    Ok(got["data"][0]["id"].as_str().unwrap_or_default().to_owned())
}

/// Returns the newest notification of a user.
async fn notice(server: &Server, key: &str) -> Result<String, Failure> {
    let got = server.get(key, "/api/notifications/all").await?.json();
    Ok(got["data"][0]["type"].as_str().unwrap_or_default().to_owned())
}

async fn publish(server: &Server, key: &str, dataset: i64) -> Result<(StatusCode, Value), Failure> {
    let path = format!("/api/datasets/{dataset}/actions/:publish?type=major");
    let got = server.send(key, "POST", &path, "", Body::empty()).await?;
    Ok((got.status, got.json()))
}

async fn resume(server: &Server, key: &str, id: &str, word: &'static str) -> Result<StatusCode, Failure> {
    Ok(server.send(key, "POST", &format!("/api/workflows/{id}"), "", word).await?.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_kept_and_chosen() -> Result<(), Failure> {
    let server = Server::start()?;
    for (body, told) in [
        ("{".to_owned(), "Can't parse Json"),
        (json!({"steps": []}).to_string(), "\\\"name\\\""),
        (json!({"name": "w"}).to_string(), "\\\"steps\\\""),
        (json!({"name": "w", "steps": [step("archiver", &json!({}))]}).to_string(), "archiver"),
    ] {
        let got = server.send("", "POST", ADMIN, "application/json", body.clone()).await?;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(got.text().contains(told), "{body}: {}", got.text());
    }
    let id = workflow(&server, "PostPublishDataset", &json!([step("log", &json!({"message": "x"}))])).await?;
    for (method, path, body, status, told) in [
        ("GET", String::new(), "", 200, format!("\"id\":{id}")),
        ("GET", format!("/{id}"), "", 200, "\"stepType\":\"log\"".to_owned()),
        ("GET", "/9999".to_owned(), "", 404, "Can't find workflow with id 9999".to_owned()),
        ("GET", "/x".to_owned(), "", 400, "workflow identifier has to be numeric.".to_owned()),
        ("GET", "/default".to_owned(), "", 200, format!("\"id\":{id}")),
        ("GET", "/default/PostPublishDataset".to_owned(), "", 200, format!("\"id\":{id}")),
        ("GET", "/default/PrePublishDataset".to_owned(), "", 404, "no default workflow".to_owned()),
        ("GET", "/default/Never".to_owned(), "", 400, "Unknown trigger type 'Never'".to_owned()),
        ("PUT", "/default/PrePublishDataset".to_owned(), "9999", 404, "9999".to_owned()),
        ("PUT", "/default/PrePublishDataset".to_owned(), "x", 400, "numeric".to_owned()),
        ("DELETE", format!("/{id}"), "", 403, "PostPublishDataset".to_owned()),
        ("DELETE", "/default/PostPublishDataset".to_owned(), "", 200, "unset".to_owned()),
        ("GET", "/default".to_owned(), "", 200, "\"PostPublishDataset\":null".to_owned()),
        ("DELETE", format!("/{id}"), "", 200, format!("Workflow {id} deleted")),
        ("DELETE", format!("/{id}"), "", 404, "Can't find workflow".to_owned()),
        ("GET", "/pending".to_owned(), "", 200, "\"data\":[]".to_owned()),
    ] {
        let got = server.send("", method, &format!("{ADMIN}{path}"), "", body).await?;
        assert_eq!(got.status.as_u16(), status, "{method} {path}: {}", got.text());
        assert!(got.text().contains(&told), "{method} {path}: {}", got.text());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_waits_for_the_workflow_before_it() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.send(&fiona, "POST", "/api/dataverses/tides/actions/:publish", "", Body::empty()).await?;
    let steps = json!([step("log", &json!({"a": "b"})), step("pause", &json!({}))]);
    workflow(&server, "PrePublishDataset", &steps).await?;
    let (status, said) = publish(&server, &fiona, dataset).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{said}");
    assert_eq!(said["status"], "WORKFLOW_IN_PROGRESS", "{said}");
    assert_eq!(state(&server, &fiona, dataset).await?, "Workflow DRAFT null");
    assert_eq!(publish(&server, &fiona, dataset).await?.0, StatusCode::FORBIDDEN);
    let first = pending(&server).await?;
    assert_eq!(resume(&server, &fiona, &first, "OK").await?, StatusCode::UNAUTHORIZED);
    assert_eq!(resume(&server, &boss, "none", "OK").await?, StatusCode::NOT_FOUND);
    assert_eq!(resume(&server, &boss, &first, "fail").await?, StatusCode::ACCEPTED);
    assert_eq!(state(&server, &fiona, dataset).await?, "free DRAFT null");
    assert_eq!(notice(&server, &fiona).await?, "WORKFLOW_FAILURE");
    assert_eq!(resume(&server, &boss, &first, "OK").await?, StatusCode::NOT_FOUND);
    publish(&server, &fiona, dataset).await?;
    assert_eq!(resume(&server, &boss, &pending(&server).await?, "OK").await?, StatusCode::ACCEPTED);
    assert_eq!(state(&server, &fiona, dataset).await?, "free RELEASED 1");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_published_any_more_ends_its_workflow() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.send(&fiona, "POST", "/api/dataverses/tides/actions/:publish", "", Body::empty()).await?;
    workflow(&server, "PrePublishDataset", &json!([step("pause", &json!({}))])).await?;
    publish(&server, &fiona, dataset).await?;
    let id = pending(&server).await?;
    server.send("", "POST", "/api/admin/authenticatedUsers/fiona/deactivate", "", Body::empty()).await?;
    assert_eq!(resume(&server, &boss, &id, "OK").await?, StatusCode::ACCEPTED);
    assert_eq!(state(&server, &boss, dataset).await?, "free DRAFT null");
    let got = server.get("", &format!("{ADMIN}/pending")).await?.json();
    assert_eq!(got["data"], json!([]), "{got}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn other_programs_are_asked() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, boss) = (server.user("fiona").await?, server.superuser("boss").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    server.send(&fiona, "POST", "/api/dataverses/tides/actions/:publish", "", Body::empty()).await?;
    let other = Server::start()?;
    let at = other.listen().await?;
    let ask = |path: &str| {
        let url = format!("http://{at}{path}?id=${{invocationId}}&of=${{dataset.globalId}}");
        json!([step("http/sr", &json!({"url": url, "expectedResponse": "OK.*"}))])
    };
    // A failed request ends the workflow at once.
    let refused = workflow(&server, "PrePublishDataset", &ask("/api/nothing")).await?;
    let (status, said) = publish(&server, &fiona, dataset).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{said}");
    assert_eq!(said["data"]["locks"], json!([]), "{said}");
    assert_eq!(state(&server, &fiona, dataset).await?, "free DRAFT null");
    server.send("", "DELETE", &format!("{ADMIN}/default/PrePublishDataset"), "", Body::empty()).await?;
    server.send("", "DELETE", &format!("{ADMIN}/{refused}"), "", Body::empty()).await?;
    // After the publication, the dataset is released, and locked until the response arrives.
    workflow(&server, "PostPublishDataset", &ask("/api/info/version")).await?;
    let (status, said) = publish(&server, &fiona, dataset).await?;
    assert_eq!((status, &said["status"]), (StatusCode::OK, &json!("OK")), "{said}");
    assert_eq!(state(&server, &fiona, dataset).await?, "Workflow RELEASED 1");
    let id = pending(&server).await?;
    assert_eq!(resume(&server, &boss, &id, "what?").await?, StatusCode::ACCEPTED);
    assert_eq!(state(&server, &fiona, dataset).await?, "free RELEASED 1");
    assert_eq!(notice(&server, &fiona).await?, "WORKFLOW_FAILURE");
    Ok(())
}
