//! Expired tokens are refused on every route; with invalid ones the caller is anonymous.

use serde_json::json;

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

/// Longer than the lifetime of a token.
const TOO_LATE_MS: i64 = 3_601_000;

#[tokio::test]
async fn an_expired_token_is_refused_everywhere() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite, site()).await?;
    assert_eq!(server.json("user1 GET /api/v3/auth/whoami\n").await?.1["username"], "user1");
    server.clock.advance_ms(TOO_LATE_MS);
    let expected = json!({"message": "SESSION_EXPIRED", "error": "Unauthorized", "statusCode": 401});
    for asked in [
        "GET /api/v3/auth/whoami\n",
        "GET /api/v3/datasets\n",
        "GET /api/v4/datasets/public\n",
        "POST /api/v3/datasets\n{}",
        "POST /api/v3/auth/login\n{\"username\":\"user1\",\"password\":\"x\"}",
        "GET /api/v3/users/my/self\n",
    ] {
        assert_eq!(server.json(&format!("user1 {asked}")).await?, (401, expected.clone()), "{asked}");
    }
    let (status, _) = server.json("nobody GET /api/v3/datasets\n").await?;
    assert_eq!(status, 200);
    let forged = "nobody GET /api/v3/auth/whoami\nAuthorization: Bearer a.b.c\n";
    assert_eq!(server.json(forged).await?, (200, json!(null)));
    Ok(())
}
