//! What must stay closed: limits on what a request may ask for, and attempts to bypass the access rights.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

const DATASET: &str = r#""type":"raw","ownerGroup":"group1","accessGroups":["group3"],"owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","proposalId":"p","sampleId":"s""#;

async fn with_dataset(engine: Engine) -> Result<Server, Failure> {
    let server = Server::start(engine, site()).await?;
    let made =
        server.json(&format!("ingestor POST /api/v3/datasets\n{{{DATASET},\"pid\":\"PID.pfx/1\"}}")).await?;
    assert_eq!(made.0, 201, "{}", made.1);
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn included_records_are_those_that_the_caller_may_read() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = with_dataset(engine).await?;
        let proposal = r#"{"proposalId":"p","email":"a@b.ch","title":"secret","ownerGroup":"group2"}"#;
        assert_eq!(server.json(&format!("admin POST /api/v3/proposals\n{proposal}")).await?.0, 201);
        let sample = r#"{"sampleId":"s","sampleName":"secret","ownerGroup":"group2"}"#;
        assert_eq!(server.json(&format!("admin POST /api/v3/samples\n{sample}")).await?.0, 201);
        for (who, n_proposals, n_samples) in
            [("user1", 0, 0), ("user3", 0, 0), ("admin", 1, 1), ("archiver", 0, 0)]
        {
            for path in ["/api/v3/datasets", "/api/v3/datasets/findOne", "/api/v4/datasets"] {
                let scope = r#"{"where":{"ownerGroup":"group2"}}"#;
                let filter = format!(
                    r#"{{"include":[{{"relation":"proposals","scope":{scope}}},{{"relation":"samples","scope":{scope}}}]}}"#
                );
                let (status, answer) = server.json(&format!("{who} GET {path}?filter={filter}")).await?;
                let row = if answer.is_array() { answer[0].clone() } else { answer };
                assert_eq!(status, 200, "{who} {path}: {row}");
                let n = |name: &str| row[name].as_array().map(Vec::len);
                assert_eq!(
                    (n("proposals"), n("samples")),
                    (Some(n_proposals), Some(n_samples)),
                    "{who} {path}"
                );
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_changes_at_once_one_is_refused() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = with_dataset(engine).await?;
        let (_, before) = server.json("user1 GET /api/v4/datasets/PID.pfx%2F1").await?;
        let since = before["updatedAt"].as_str().ok_or("no date")?;
        let change = |text: &str| {
            format!(
                "user1 PATCH /api/v4/datasets/PID.pfx%2F1\nIf-Unmodified-Since: {since}\n{{\"description\":\"{text}\"}}"
            )
        };
        assert_eq!(server.json(&change("first")).await?.0, 200, "within the millisecond of the creation");
        let (status, refused) = server.json(&change("second")).await?;
        assert_eq!(status, 412, "{refused}");
        server.clock.advance_ms(1);
        assert_eq!(server.json(&change("third")).await?.0, 412);
        let (_, after) = server.json("user1 GET /api/v4/datasets/PID.pfx%2F1").await?;
        assert_eq!(after["description"], "first");
    }
    Ok(())
}

/// A request that asks for too much gets a client error, whoever sends it; none of these is a server error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_bounded() -> Result<(), Failure> {
    let many = |n: usize, one: Value| Value::Array(vec![one; n]);
    let fields = |n: usize| (0..n).map(|it| (format!("f{it}"), json!(1))).collect::<serde_json::Map<_, _>>();
    for engine in Engine::all() {
        let server = with_dataset(engine).await?;
        for (path, parameter, value, expected) in [
            ("datasets", "filter", json!({"where": {"or": many(501, json!({"pid": "x"}))}}), 400),
            ("datasets", "filter", json!({"where": {"or": many(500, json!({"pid": "x"}))}}), 200),
            ("datasets", "filter", json!({"where": {"and": many(501, json!({"size": {"gt": 1}}))}}), 400),
            ("datasets", "filter", json!({"where": fields(501)}), 400),
            ("datasets", "filter", json!({"where": {"or": many(33, json!({"owner": {"like": "a"}}))}}), 400),
            ("datasets", "filter", json!({"where": {"or": many(32, json!({"owner": {"like": "a"}}))}}), 200),
            (
                "datasets",
                "filter",
                json!({"where": {"owner": {"$in": many(33, json!({"$regex": "a"}))}}}),
                400,
            ),
            ("datasets", "filter", json!({"include": many(33, json!("samples"))}), 400),
            ("datasets", "filter", json!({"limits": {"order": vec!["size:asc"; 17].join(",")}}), 400),
            ("datasets/fullquery", "fields", json!({"text": "a ".repeat(101)}), 400),
            ("datasets/fullquery", "fields", json!({"text": "a ".repeat(100)}), 200),
            ("datasets/fullquery", "fields", json!({"text": "-a ".repeat(100)}), 200),
            ("datasets/fullquery", "fields", json!({"text": "\"a b\" ".repeat(50)}), 200),
            ("datasets/fullquery", "fields", json!({"mode": {"$or": many(501, json!({"pid": "x"}))}}), 400),
            (
                "datasets/fullquery",
                "fields",
                json!({"scientific": many(12, json!({"lhs": "a", "relation": "CONTAINS_STRING", "rhs": "x"}))}),
                400,
            ),
            ("datasets/fullfacet", "facets", many(65, json!("type")), 400),
            (
                "origdatablocks/fullquery/files",
                "fields",
                json!({"dataFileList.path": {"$in": many(33, json!({"$regex": "a"}))}}),
                400,
            ),
        ] {
            let request = format!("nobody GET /api/v3/{path}?{parameter}={value}");
            let (status, answer) = server.json(&request).await?;
            let shown: String = request.chars().take(120).collect();
            assert_eq!(status, expected, "{shown}: {answer}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_does_not_repeat_the_body_for_each_fault() -> Result<(), Failure> {
    let server = with_dataset(Engine::Sqlite).await?;
    let body: serde_json::Map<String, Value> = (0..4_000).map(|it| (format!("k{it}"), json!(it))).collect();
    let body = Value::Object(body).to_string();
    for path in
        ["v3/origdatablocks", "v4/origdatablocks", "v3/datasets/PID.pfx%2F1/origdatablocks", "v4/attachments"]
    {
        let mut out = String::new();
        let answer = server.ask(&format!("admin POST /api/{path}/isValid\n{body}"), &mut out).await?;
        assert!(answer.len() < 3 << 20, "{path}: {} bytes for {}", answer.len(), body.len());
        assert_eq!(serde_json::from_slice::<Value>(&answer)?["valid"], false, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn users_are_not_spelled_out() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite, site()).await?;
    for (condition, expected) in [
        (json!({"profile.email": "user2@your.site"}), json!(true)),
        (json!({"profile.email": {"$eq": "nobody@your.site"}}), json!(false)),
    ] {
        let request =
            format!("user1 GET /api/v3/useridentities/isValidEmail?filter={}", json!({"where": condition}));
        assert_eq!(server.json(&request).await?, (200, expected));
    }
    for condition in [
        json!({}),
        json!({"profile.email": {"$regex": "^u"}}),
        json!({"profile.email": {"like": "u"}}),
        json!({"profile.email": {"$gt": "u"}}),
        json!({"profile.username": "user2"}),
        json!({"profile.email": "user2@your.site", "userId": "1"}),
        json!({"or": [{"profile.email": "user2@your.site"}]}),
    ] {
        let request =
            format!("user1 GET /api/v3/useridentities/isValidEmail?filter={}", json!({"where": condition}));
        assert_eq!(server.json(&request).await?.0, 400, "{condition}");
        let request =
            format!("user1 GET /api/v3/useridentities/findOne?filter={}", json!({"where": {"userId": "x"}}));
        assert_eq!(server.json(&request).await?.0, 403);
    }
    Ok(())
}

#[tokio::test]
async fn sizes_of_blocks_are_numbers_of_bytes() -> Result<(), Failure> {
    let server = with_dataset(Engine::Sqlite).await?;
    for (block, file, expected) in [
        ("1", "1", 201),
        ("0", "0", 201),
        ("-5", "1", 400),
        ("1e300", "1", 400),
        ("1", "-1", 400),
        ("1", "1e300", 400),
        ("9007199254740991", "1", 201),
        ("9007199254740993", "1", 400),
    ] {
        let files = format!(r#"[{{"path":"a","size":{file},"time":"2020-01-15T08:00:00Z"}}]"#);
        let body = format!(r#"{{"datasetId":"PID.pfx/1","size":{block},"dataFileList":{files}}}"#);
        let (status, answer) = server.json(&format!("user1 POST /api/v3/origdatablocks\n{body}")).await?;
        assert_eq!(status, expected, "{block} {file}: {answer}");
    }
    Ok(())
}

/// Merging puts a value below a path: a result that would be nested too deep to be parsed again is refused, and a
/// user's settings stay intact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_can_be_read_back_whatever_is_merged() -> Result<(), Failure> {
    let path = (0..32).map(|it| it.to_string()).collect::<Vec<_>>().join(".");
    for engine in Engine::all() {
        let server = Server::start(engine, site()).await?;
        let (_, me) = server.json("user1 GET /api/v3/users/my/self").await?;
        let settings = format!("/api/v3/users/{}/settings", me["id"].as_str().ok_or("no id")?);
        // The settings, externalSettings and 31 objects enclose the value: 67 levels of 100 are left.
        for (n_levels, expected) in [(67, 200), (68, 400), (97, 400), (1, 200)] {
            let value = format!("{}1{}", "[".repeat(n_levels), "]".repeat(n_levels));
            let merge = format!("user1 PATCH {settings}/external\n{{\"{path}\":{value}}}");
            let (status, answer) = server.json(&merge).await?;
            assert_eq!(status, expected, "{n_levels}: {answer}");
            for request in [
                format!("user1 GET {settings}"),
                format!("user1 PATCH {settings}\n{{\"jobCount\":{n_levels}}}"),
                format!("user1 PATCH {settings}/external\n{{\"x\":1}}"),
            ] {
                let (status, answer) = server.json(&request).await?;
                assert_eq!(status, 200, "{n_levels}: {request}: {answer}");
            }
        }
        assert_eq!(server.json(&format!("user1 DELETE {settings}")).await?.0, 200);
    }
    Ok(())
}

/// A list of files whose request is aborted leaves nothing behind, no matter how much of it arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_request_that_is_given_up_go_away() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = with_dataset(engine).await?;
        let file = br#"{"path":"a-file-with-a-name-of-some-length","size":1,"time":"2020-01-15T08:00:00Z"},"#;
        let head = br#"{"datasetId":"PID.pfx/1","size":1,"dataFileList":["#;
        let piece = Bytes::from(file.repeat(10_000));
        let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
        let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
            let piece: Bytes = receiver.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(piece), receiver))
        });
        let body = Body::from_stream(pieces);
        let request = Request::builder()
            .method("POST")
            .uri("/api/v3/origdatablocks")
            .header("authorization", format!("Bearer {}", server.token("user1")))
            .body(body)?;
        let answer = tokio::spawn(server.mount.router.clone().oneshot(request));
        sender.send(Bytes::from_static(head)).await?;
        let is_staged = async || server.n_staged().await.map(|n| 0 < n);
        while !is_staged().await? {
            sender.send(piece.clone()).await?;
        }
        answer.abort();
        assert!(answer.await.is_err(), "it was given up");
        // It is swept in the background: by now the sweep is in the writer's queue, or will be soon.
        while is_staged().await? {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
