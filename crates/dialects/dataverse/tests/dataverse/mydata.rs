//! What a user has a role on: `/api/mydata/retrieve`.

use http::StatusCode;
use serde_json::{Value, json};

use crate::server::{Described, Failure, Server};

const TYPES: &str = "dvobject_types=Dataverse&dvobject_types=Dataset&dvobject_types=DataFile";

/// Returns what was found with these parameters.
async fn found(server: &Server, key: &str, parameters: &str) -> Result<Value, Failure> {
    let got = server.get(key, &format!("/api/mydata/retrieve?{parameters}")).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let json = got.json();
    assert_eq!(json["success"], true, "{json}");
    Ok(json["data"].clone())
}

fn names(data: &Value) -> Vec<&str> {
    data["items"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_lead_to_collections_datasets_and_files() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, rob) = (server.user("fiona").await?, server.user("rob").await?);
    let (dataset, _) = server.dataset(&fiona, "tides").await?;
    let path = format!("/api/datasets/{dataset}/add");
    let got = server.upload(&fiona, &path, "notes.txt", b"high water", &json!({})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    server.publish(&fiona, "tides", dataset).await?;
    let title = "Wave heights";
    server.described(&fiona, "tides", &Described { title, ..Described::default() }).await?;

    // The creator of a collection administers it: role 1. Creators of datasets contribute to them: role 6.
    let all = found(&server, &fiona, &format!("{TYPES}&role_ids=1")).await?;
    assert_eq!(all["total_count"], 4, "{all}");
    assert_eq!(
        all["dvobject_counts"],
        json!({"dataverses_count": 1, "datasets_count": 2, "files_count": 1}),
        "{all}"
    );
    assert_eq!(
        all["pubstatus_counts"],
        json!({"published_count": 3, "unpublished_count": 1, "draft_count": 1}),
        "{all}"
    );
    let file = all["items"].as_array().into_iter().flatten().find(|it| it["type"] == "file");
    let file = file.ok_or_else(|| all.to_string())?;
    assert_eq!((&file["name"], &file["is_published"]), (&json!("notes.txt"), &json!(true)), "{file}");
    let own = found(&server, &fiona, &format!("{TYPES}&role_ids=6")).await?;
    assert_eq!(own["dvobject_counts"]["dataverses_count"], 0, "{own}");
    assert_eq!(own["total_count"], 3, "{own}");

    // Narrowed by type, status, words and page.
    let drafts = found(&server, &fiona, &format!("{TYPES}&role_ids=1&published_states=Draft")).await?;
    assert_eq!(names(&drafts), [title]);
    let files = found(&server, &fiona, "dvobject_types=DataFile&role_ids=1").await?;
    assert_eq!(names(&files), ["notes.txt"]);
    let waves = found(&server, &fiona, &format!("{TYPES}&role_ids=1&mydata_search_term=heights")).await?;
    assert_eq!(names(&waves), [title]);
    let second = found(&server, &fiona, &format!("{TYPES}&role_ids=1&per_page=3&selected_page=2")).await?;
    assert_eq!((names(&second).len(), &second["pagination"]["pageCount"]), (1, &json!(2)), "{second}");

    // Nobody has more than was assigned to them.
    let none = found(&server, &rob, &format!("{TYPES}&role_ids=1&role_ids=6")).await?;
    assert_eq!((&none["total_count"], names(&none)), (&json!(0), vec![]), "{none}");
    let path = format!("/api/datasets/{dataset}/assignments");
    let got = server.json(&fiona, "POST", &path, &json!({"assignee": "@rob", "role": "member"})).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    let some = found(&server, &rob, &format!("{TYPES}&role_ids=8")).await?;
    assert_eq!(some["total_count"], 2, "{some}");
    Ok(())
}
