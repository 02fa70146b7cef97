//! The history of changes, on sites that track them.

use pinakes_scicat::Settings;
use serde_json::json;

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

const DATASET: &str = r#"{"type":"raw","ownerGroup":"group1","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","pid":"PID.pfx/1","scientificMetadata":{"a":{"b":1,"c":2}}}"#;

fn tracked(strategy: &str) -> Settings {
    let trackables = ["Dataset", "Proposal"].map(str::to_owned).to_vec();
    let readers = vec!["group4".to_owned()];
    Settings {
        trackables,
        trackable_strategy: strategy.to_owned(),
        history_access_proposal_groups: readers,
        ..site()
    }
}

/// Starts a server on which a dataset was created, changed twice, and its lifecycle changed once.
async fn changed(engine: Engine, strategy: &str) -> Result<Server, Failure> {
    let server = Server::start(engine, tracked(strategy)).await?;
    for (request, status) in [
        (format!("ingestor POST /api/v3/datasets\n{DATASET}"), 201),
        ("admin PATCH /api/v3/datasets/PID.pfx%2F1\n{\"description\":\"d\",\"scientificMetadata\":{\"a\":{\"b\":1,\"c\":3}}}".to_owned(), 200),
        ("admin PATCH /api/v3/datasets/PID.pfx%2F1\n{\"description\":\"d\"}".to_owned(), 200),
        ("archiver PATCH /api/v3/datasets/PID.pfx%2F1/datasetlifecycle\n{\"retrievable\":true}".to_owned(), 200),
    ] {
        server.clock.advance_ms(1_000);
        assert_eq!(server.json(&request).await?.0, status, "{request}");
    }
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_shows_its_changes() -> Result<(), Failure> {
    for engine in Engine::all() {
        for strategy in ["document", "delta"] {
            let server = changed(engine, strategy).await?;
            let (_, dataset) = server.json("admin GET /api/v3/datasets/PID.pfx%2F1").await?;
            let history = dataset["history"].as_array().ok_or("no history")?;
            assert_eq!(history.len(), 2, "a change that changes nothing leaves no entry: {history:?}");
            let (before, after) = match strategy {
                "delta" => (json!({"a": {"c": 2}}), json!({"a": {"c": 3}})),
                _ => (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}})),
            };
            assert_eq!(
                history[0],
                json!({
                    "_id": "", "updatedAt": "2026-02-01T10:00:02.000Z", "updatedBy": "admin",
                    "scientificMetadata": {"previousValue": before, "currentValue": after},
                    "description": {"currentValue": "d"},
                }),
                "{strategy}"
            );
            assert_eq!(history[1]["updatedBy"], "archiver");
            let lifecycle = &history[1]["datasetlifecycle"];
            assert_eq!(lifecycle["currentValue"]["retrievable"], true);
            assert_eq!(lifecycle["previousValue"]["retrievable"], false);
            let filter = r#"admin GET /api/v3/datasets/PID.pfx%2F1?filter={"fields":{"pid":1}}"#;
            let (_, chosen) = server.json(filter).await?;
            assert_eq!(chosen["history"], dataset["history"]);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_are_listed_for_those_who_may() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = changed(engine, "delta").await?;
        server.clock.advance_ms(1_000);
        let proposal = r#"{"proposalId":"p","email":"a@b.ch","title":"T","ownerGroup":"group1"}"#;
        assert_eq!(server.json(&format!("keeper POST /api/v3/proposals\n{proposal}")).await?.0, 201);
        assert_eq!(server.json("keeper PATCH /api/v3/proposals/p\n{\"title\":\"U\"}").await?.0, 200);
        assert_eq!(server.json("remover DELETE /api/v3/datasets/PID.pfx%2F1").await?.0, 200);
        let (_, page) = server.json("admin GET /api/v3/history?limit=1&skip=1").await?;
        assert_eq!(
            (&page["count"], &page["totalCount"], &page["skip"], &page["limit"]),
            (&json!(1), &json!(4), &json!(1), &json!(1))
        );
        let (_, deleted) = server.json(r#"admin GET /api/v3/history?filter={"operation":"delete"}"#).await?;
        assert_eq!(deleted["items"][0]["user"], "remover");
        assert_eq!(deleted["items"][0]["before"]["pid"], "PID.pfx/1");
        let (_, own) = server.json("user3 GET /api/v3/history").await?;
        assert_eq!(
            own["items"],
            json!([{
                "subsystem": "Proposal", "documentId": "p", "before": {"title": "T"}, "after": {"title": "U"},
                // Later than the proposal itself, although created within the same millisecond.
                "operation": "update", "user": "keeper", "timestamp": "2026-02-01T10:00:05.001Z",
            }])
        );
        assert_eq!(server.json("user3 GET /api/v3/history/collection/dataset").await?.1["totalCount"], 0);
        assert_eq!(server.json("admin GET /api/v3/history/collection/dataset").await?.1["totalCount"], 3);
        assert_eq!(server.json("admin GET /api/v3/history/count").await?.1, json!({"count": 4}));
        for request in ["user1 GET /api/v3/history", "nobody GET /api/v3/history/count"] {
            assert_eq!(server.json(request).await?.0, 403, "{request}");
        }
    }
    Ok(())
}
