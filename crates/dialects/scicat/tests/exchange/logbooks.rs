//! Logbooks of a `SciChat` service, for which the test starts a fake server.

use pinakes_scicat::Settings;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::outgoing::Fake;
use crate::server::{Failure, Server, site};

/// Logbooks of the service: the caller's proposal, another's, one that does not exist here, one without
/// messages.
const ALL: &str = r#"200 [{"name":"p1","messages":[{"origin_server_ts":10}]},{"name":"p2","messages":[{"origin_server_ts":30}]},{"name":"p9","messages":[{"origin_server_ts":20}]},{"name":"p0","messages":[]},{"messages":[]}]"#;
const LOGBOOK: &str = r#"200 {"name":"p1","roomId":"r","messages":[{"origin_server_ts":2,"sender":"@b:x"},{"origin_server_ts":1,"sender":"@a:x"}]}"#;

const RECORDS: [&str; 4] = [
    r#"keeper POST /api/v3/proposals
{"proposalId":"p1","email":"a@b.ch","title":"t","ownerGroup":"group1","accessGroups":[]}"#,
    r#"keeper POST /api/v3/proposals
{"proposalId":"p2","email":"a@b.ch","title":"t","ownerGroup":"group2","accessGroups":[]}"#,
    r#"ingestor POST /api/v3/datasets
{"type":"raw","ownerGroup":"group1","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","pid":"PID.pfx/1","proposalId":"p1"}"#,
    r#"ingestor POST /api/v3/datasets
{"type":"raw","ownerGroup":"group1","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","pid":"PID.pfx/2","proposalId":"p1","isPublished":true}"#,
];

/// Starts a server whose logbook service gives these answers.
async fn server(answers: Vec<&'static str>) -> Result<(Server, Fake), Failure> {
    let fake = Fake::http(answers)?;
    let settings = Settings {
        logbook_enabled: true,
        logbook_base_url: format!("http://127.0.0.1:{}/scichatapi", fake.port),
        logbook_username: "reader".to_owned(),
        logbook_password: "hush".into(),
        ..site()
    };
    let server = Server::start(Engine::Sqlite, settings).await?;
    for record in RECORDS {
        let (status, made) = server.json(record).await?;
        assert_eq!(status, 201, "{made}");
    }
    Ok((server, fake))
}

fn names(logbooks: &Value) -> Vec<&str> {
    logbooks.as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect()
}

#[tokio::test]
async fn a_list_shows_what_the_caller_may_read_newest_first() -> Result<(), Failure> {
    for (who, expected) in [
        ("user1", vec!["p9", "p1", "p0"]),
        ("user2", vec!["p2", "p9", "p0"]),
        ("admin", vec!["p2", "p9", "p1", "p0"]),
    ] {
        let (server, fake) = server(vec![r#"200 {"token":"t1"}"#, ALL]).await?;
        let (status, shown) = server.json(&format!("{who} GET /api/v3/logbooks")).await?;
        assert_eq!((status, names(&shown)), (200, expected), "{who}");
        let login = fake.next()?;
        assert!(login.starts_with("POST /scichatapi/Users/login HTTP/1.1\r\n"), "{login}");
        assert!(login.ends_with(r#"{"username":"reader","password":"hush"}"#), "{login}");
        let asked = fake.next()?;
        assert!(asked.starts_with("GET /scichatapi/Logbooks HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("authorization: Bearer t1\r\n"), "{asked}");
    }
    Ok(())
}

#[tokio::test]
async fn one_logbook_is_sorted_and_paged() -> Result<(), Failure> {
    for path in ["logbooks/p1", "datasets/PID.pfx%2F1/logbook"] {
        let (server, fake) = server(vec![r#"200 {"id":"t1"}"#, LOGBOOK]).await?;
        let filters = r#"{"textSearch":"a&b","skip":0,"limit":1,"sortField":"timestamp:asc"}"#;
        let request = format!("user1 GET /api/v3/{path}?filters={}", filters.replace('&', "%26"));
        let (status, shown) = server.json(&request).await?;
        let expected =
            json!({"name": "p1", "roomId": "r", "messages": [{"origin_server_ts": 1, "sender": "@a:x"}]});
        assert_eq!((status, shown), (200, expected), "{path}");
        fake.next()?;
        let asked = fake.next()?;
        assert!(
            asked.starts_with("GET /scichatapi/Logbooks/p1?filter=%7B%22textSearch%22%3A%22a%26b%22%2C"),
            "{asked}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn logbooks_are_shut_to_others() -> Result<(), Failure> {
    // The service is never asked: callers without access are refused first.
    let (server, _fake) = server(Vec::new()).await?;
    for (request, expected) in [
        ("nobody GET /api/v3/logbooks", 403),
        ("nobody GET /api/v3/logbooks/p1", 403),
        ("user2 GET /api/v3/logbooks/p1", 403),
        ("nobody GET /api/v3/datasets/PID.pfx%2F1/logbook", 403),
        ("user2 GET /api/v3/datasets/PID.pfx%2F1/logbook", 403),
        ("nobody GET /api/v3/datasets/PID.pfx%2F2/logbook", 403),
        ("user2 GET /api/v4/datasets/PID.pfx%2F2/logbook", 403),
        ("user1 GET /api/v3/datasets/none/logbook", 404),
        ("user1 GET /api/v3/logbooks/p1?filters=[]", 400),
        ("user1 GET /api/v3/logbooks/p1?filters={", 400),
    ] {
        let (status, said) = server.json(request).await?;
        assert_eq!(status, expected, "{request}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_service_that_fails_is_named_without_secrets() -> Result<(), Failure> {
    for (answers, expected) in [
        (vec!["401 hush is wrong"], 502),
        (vec!["200 {}"], 502),
        (vec![r#"200 {"token":"t1"}"#, "500 hush"], 502),
        (vec![r#"200 {"token":"t1"}"#, "200 no JSON"], 502),
        (vec!["200 no JSON"], 502),
        (vec![r#"200 {"token":"t1"}"#, "404 "], 404),
        // A service that matches names loosely returns the logbook of another proposal.
        (vec![r#"200 {"token":"t1"}"#, r#"200 {"name":"p2","messages":[]}"#], 404),
        (vec![r#"200 {"token":"t1"}"#, r#"200 {"messages":[]}"#], 404),
    ] {
        let shown = format!("{answers:?}");
        let (server, _fake) = server(answers).await?;
        let (status, said) = server.json("user1 GET /api/v3/logbooks/p1").await?;
        assert_eq!(status, expected, "{shown}: {said}");
        assert!(!said.to_string().contains("t1") && !said.to_string().contains("scichatapi"), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_no_longer_taken_is_replaced_once() -> Result<(), Failure> {
    let answers = vec![
        r#"200 {"token":"t1"}"#,
        LOGBOOK,
        "401 ",
        r#"200 {"token":"t2"}"#,
        LOGBOOK,
        "401 ",
        r#"200 {"token":"t3"}"#,
        "401 ",
    ];
    let (server, fake) = server(answers).await?;
    for expected in [200, 200, 502] {
        let (status, said) = server.json("user1 GET /api/v3/logbooks/p1").await?;
        assert_eq!(status, expected, "{said}");
    }
    let seen: Vec<String> = (0..8).map(|_| fake.next()).collect::<Result<_, _>>()?;
    assert!(seen[4].contains("authorization: Bearer t2\r\n"), "{}", seen[4]);
    Ok(())
}
