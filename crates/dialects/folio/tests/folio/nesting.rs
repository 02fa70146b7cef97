//! Values nested as deeply as a body may be are stored, returned and listed.

use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Maximum nesting of a body, minus the object around the value.
const DEEPEST: usize = 99;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_keep_what_is_nested_deep() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for depth in [1, 96, 97, DEEPEST] {
            let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let id = format!("00000000-0000-4000-8000-0000000000{depth:02}");
            let body = format!(r#"{{"id":"{id}","scope":"s","key":"k{depth}","value":{value}}}"#);
            let (status, _, answer) = server.ask(&format!("admin POST /settings/entries\n{body}")).await?;
            assert_eq!(status.as_u16(), 204, "{depth}: {}", String::from_utf8_lossy(&answer));
            let (status, _, answer) = server.ask(&format!("admin GET /settings/entries/{id}")).await?;
            let answer = String::from_utf8(answer)?;
            assert_eq!(status.as_u16(), 200, "{depth}: {answer}");
            assert!(answer.replace(' ', "").contains(&value), "{depth}: {answer}");
            let (status, _, answer) =
                server.ask(&format!("admin PUT /settings/entries/{id}\n{body}")).await?;
            assert_eq!(status.as_u16(), 204, "{depth}: {}", String::from_utf8_lossy(&answer));
            let (status, _, answer) =
                server.ask(&format!("admin GET /settings/entries?query=key==k{depth}")).await?;
            assert_eq!(status.as_u16(), 200, "{depth}: {}", String::from_utf8_lossy(&answer));
            let list: Value = serde_json::from_slice(&answer)?;
            assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{depth}");
        }
        let value = format!("{}1{}", "[".repeat(DEEPEST + 1), "]".repeat(DEEPEST + 1));
        let body = format!(r#"{{"scope":"s","key":"deeper","value":{value}}}"#);
        let (status, _, answer) = server.ask(&format!("admin POST /settings/entries\n{body}")).await?;
        assert_eq!(status.as_u16(), 400, "{}", String::from_utf8_lossy(&answer));
        assert!(String::from_utf8_lossy(&answer).contains("nested deeper than 100 levels"));
    }
    Ok(())
}
