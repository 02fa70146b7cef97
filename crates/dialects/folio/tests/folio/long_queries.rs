//! Queries with as many conditions as the site allows are answered, and those that would nest too deeply are refused:
//! no query crashes the server.

use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Number of conditions in a query; the site allows a thousand.
const CONDITIONS: usize = 990;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_queries_are_answered_or_refused() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let body = r#"{"scope":"s","key":"w987","value":1}"#;
        let (status, _, answer) = server.ask(&format!("admin POST /settings/entries\n{body}")).await?;
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));

        for joint in ["or", "and", "not"] {
            let titles = chain("title=", joint);
            for path in ["/search/instances", "/instance-storage/instances", "/search/authorities"] {
                let titles =
                    if path.ends_with("authorities") { chain("keyword=", joint) } else { titles.clone() };
                assert_eq!(total(&server, path, &titles).await?, 0, "{path} {joint}");
            }
            let found = total(&server, "/settings/entries", &chain("key==", joint)).await?;
            assert_eq!(found, u64::from(joint == "or"), "{joint}");
        }

        let alternating: String = (0..400).map(|n| format!("key==w{n} {} ", ["and", "or"][n % 2])).collect();
        let (status, headers, answer) =
            server.ask(&format!("admin GET /settings/entries?query={alternating}key==w")).await?;
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!((status.as_u16(), &headers["content-type"]), (400, &"text/plain".parse()?), "{answer}");
        assert!(
            answer.starts_with("CQLParseException: AND, OR and NOT alternate more than 100 deep"),
            "{answer}"
        );
    }
    Ok(())
}

fn chain(condition: &str, joint: &str) -> String {
    let conditions: Vec<String> = (0..CONDITIONS).map(|n| format!("{condition}w{n}")).collect();
    conditions.join(&format!(" {joint} "))
}

/// Returns the number of records that a query finds.
async fn total(server: &Server, path: &str, query: &str) -> Result<u64, Failure> {
    let (status, _, answer) = server.ask(&format!("admin GET {path}?query={query}")).await?;
    let text = String::from_utf8_lossy(&answer);
    assert_eq!(status.as_u16(), 200, "{path}: {text}");
    let list: Value = serde_json::from_str(&text)?;
    let total = list.get("totalRecords").or_else(|| list.pointer("/resultInfo/totalRecords"));
    Ok(total.and_then(Value::as_u64).ok_or_else(|| format!("{path} counts nothing: {text}"))?)
}
