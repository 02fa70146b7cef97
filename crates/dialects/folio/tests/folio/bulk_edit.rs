//! Bulk changes of items: the records found by a list, the results of rules, and the messages for records left
//! unchanged.

use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

const HOLDINGS: &str = "00000000-0000-4000-8000-000000000002";

fn item(n: usize) -> String {
    format!("00000000-0000-4000-8000-0000000001{n:02}")
}

/// Starts a server with some items, whose barcodes are `b0`, `b1`, ….
async fn started(engine: Engine, n_items: usize) -> Result<Server, Failure> {
    let server = Server::start(engine).await?;
    let instance = json!({
        "id": "00000000-0000-4000-8000-000000000001", "source": "FOLIO", "title": "On the Desk",
        "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f",
    });
    server.asked(&format!("admin POST /instance-storage/instances\n{instance}"), 201).await?;
    let holdings = json!({
        "id": HOLDINGS, "instanceId": "00000000-0000-4000-8000-000000000001",
        "permanentLocationId": "fcd64ce1-6995-48f0-840e-89ffa2288371",
        "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264",
    });
    server.asked(&format!("admin POST /holdings-storage/holdings\n{holdings}"), 201).await?;
    for n in 0..n_items {
        let body = json!({
            "id": item(n), "holdingsRecordId": HOLDINGS, "barcode": format!("b{n}"),
            "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892",
            "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27", "status": {"name": "Available"},
        });
        server.asked(&format!("admin POST /item-storage/items\n{body}"), 201).await?;
    }
    Ok(server)
}

/// Creates an operation on the items of a list; returns its id.
async fn uploaded(server: &Server, content_type: &'static str, list: String) -> Result<String, Failure> {
    let path = "/bulk-operations/upload?entityType=ITEM&identifierType=BARCODE";
    let headers =
        HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    let (status, _, body) = server.send("librarian", "POST", path, headers, list.into()).await?;
    let body: Value = serde_json::from_slice(&body)?;
    assert_eq!(status.as_u16(), 200, "{body}");
    Ok(body["id"].as_str().ok_or("no id")?.to_owned())
}

async fn step(server: &Server, id: &str, step: &str, status: u16) -> Result<Value, Failure> {
    let body = json!({"step": step});
    server.asked(&format!("librarian POST /bulk-operations/{id}/start\n{body}"), status).await
}

async fn rule(server: &Server, id: &str, option: &str, updated: &str) -> Result<(), Failure> {
    let rule = json!({"option": option, "actions": [{"type": "REPLACE_WITH", "updated": updated}]});
    let body = json!({"bulkOperationRules": [{"bulkOperationId": id, "rule_details": rule}]});
    server.asked(&format!("librarian POST /bulk-operations/{id}/content-update\n{body}"), 200).await?;
    Ok(())
}

/// Returns the errors: identifier and message, in the order of the list.
async fn errors(server: &Server, id: &str, window: &str) -> Result<(Vec<(String, String)>, Value), Failure> {
    let found = server.asked(&format!("librarian GET /bulk-operations/{id}/errors?{window}"), 200).await?;
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let list = found["errors"].as_array().ok_or("no list")?;
    let told = list.iter().map(|it| (text(&it["parameters"][0]["value"]), text(&it["message"]))).collect();
    Ok((told, found["totalRecords"].clone()))
}

async fn statuses(server: &Server, n_items: usize) -> Result<Vec<String>, Failure> {
    let mut out = Vec::new();
    for n in 0..n_items {
        let found = server.asked(&format!("admin GET /item-storage/items/{}", item(n)), 200).await?;
        out.push(found["status"]["name"].as_str().unwrap_or_default().to_owned());
    }
    Ok(out)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_identifier_is_accounted_for() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = started(engine, 4).await?;
        let list = "\u{feff}b0\r\n\"b1\"\nnowhere\nb1\n\nb2\n";
        let id = uploaded(&server, "text/csv", list.to_owned()).await?;
        let found = step(&server, &id, "UPLOAD", 200).await?;
        assert_eq!(
            ["totalNumOfRecords", "matchedNumOfRecords", "matchedNumOfErrors"].map(|it| found[it].clone()),
            [5, 3, 2],
            "{}: {found}",
            engine.name()
        );
        let lost = [("nowhere", "No match found"), ("b1", "Duplicate entry")];
        let lost = lost.map(|it| (it.0.to_owned(), it.1.to_owned()));
        assert_eq!(errors(&server, &id, "limit=10").await?, (lost.to_vec(), json!(2)));
        assert_eq!(errors(&server, &id, "limit=1&offset=1").await?, (vec![lost[1].clone()], json!(2)));
        rule(&server, &id, "STATUS", "Missing").await?;
        step(&server, &id, "EDIT", 200).await?;
        let other = json!({"items": [{"id": item(2), "volume": "v.2"}]});
        server.asked(&format!("admin PATCH /item-storage/items\n{other}"), 204).await?;
        let found = step(&server, &id, "COMMIT", 200).await?;
        assert_eq!(
            ["committedNumOfRecords", "committedNumOfErrors"].map(|it| found[it].clone()),
            [2, 1],
            "{}: {found}",
            engine.name()
        );
        let (told, _) = errors(&server, &id, "limit=10").await?;
        assert!(told.iter().any(|it| it.0 == "b2" && it.1.contains("not the most recent")), "{told:?}");
        assert_eq!(statuses(&server, 4).await?, ["Missing", "Missing", "Available", "Available"]);
        // A step can be performed only once.
        step(&server, &id, "COMMIT", 400).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_leaves_its_record_and_stops_no_other() -> Result<(), Failure> {
    const N: usize = 30;
    for engine in Engine::all() {
        let server = started(engine, N).await?;
        let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"list.csv\"\r\n\r\n";
        let lines: String = (0..N).map(|n| format!("b{n}\n")).collect();
        let list = format!("{form}{lines}\r\n--x--\r\n");
        let id = uploaded(&server, "multipart/form-data; boundary=x", list).await?;
        step(&server, &id, "UPLOAD", 200).await?;
        rule(&server, &id, "PERMANENT_LOAN_TYPE", "00000000-0000-4000-8000-00000000000f").await?;
        step(&server, &id, "EDIT", 200).await?;
        let found = step(&server, &id, "COMMIT", 200).await?;
        assert_eq!(found["committedNumOfErrors"], N, "{}: {found}", engine.name());
        assert_eq!(found["status"], "COMPLETED_WITH_ERRORS");
        let first = server.asked(&format!("admin GET /item-storage/items/{}", item(0)), 200).await?;
        assert_eq!(
            (&first["_version"], &first["permanentLoanTypeId"]),
            (&json!(1), &json!("2b94c631-fca9-4892-a730-03ee529ffe27"))
        );
        // A cancelled operation writes nothing.
        let id = uploaded(&server, "text/plain", "b0\n".to_owned()).await?;
        step(&server, &id, "UPLOAD", 200).await?;
        rule(&server, &id, "STATUS", "Missing").await?;
        step(&server, &id, "EDIT", 200).await?;
        server.asked(&format!("librarian POST /bulk-operations/{id}/cancel"), 200).await?;
        step(&server, &id, "COMMIT", 400).await?;
        assert_eq!(statuses(&server, 1).await?, ["Available"]);
    }
    Ok(())
}
