//! Groups by rule: membership in mail-domain groups.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn only_confirmed_addresses_are_in_the_group_of_their_domain() -> Result<(), Failure> {
    let server = Server::start()?;
    let (fiona, guest) = (server.user("fiona").await?, server.user("gast").await?);
    server.dataset(&fiona, "tides").await?;
    let groups = "/api/admin/groups/domain";
    for (body, status) in [
        (json!({"alias": "a b", "name": "n", "domains": ["example.org"]}), StatusCode::BAD_REQUEST),
        (json!({"alias": "a", "name": "n", "domains": []}), StatusCode::BAD_REQUEST),
        (json!({"alias": "a", "name": "n", "domains": ["not a domain"]}), StatusCode::BAD_REQUEST),
        (json!({"alias": "a", "name": "n", "domains": ["("], "regex": true}), StatusCode::BAD_REQUEST),
        (json!({"alias": "house", "name": "Our house", "domains": ["Example.ORG"]}), StatusCode::CREATED),
        (json!({"alias": "house", "name": "again", "domains": ["example.org"]}), StatusCode::CONFLICT),
        (
            json!({"alias": "any", "name": "n", "domains": ["[a-z]+\\.org"], "regex": true}),
            StatusCode::CREATED,
        ),
        (json!({"alias": "part", "name": "n", "domains": ["example"], "regex": true}), StatusCode::CREATED),
    ] {
        let got = server.json("", "POST", groups, &body).await?;
        assert_eq!(got.status, status, "{body}: {}", got.text());
    }
    let collection = "/api/dataverses/tides";
    let sees =
        async |key: &str| Ok::<_, Failure>(server.get(key, collection).await?.status == StatusCode::OK);
    for group in ["house", "any", "part"] {
        let assign = json!({"assignee": format!("&mail/{group}"), "role": "member"});
        let got = server.json(&fiona, "POST", &format!("{collection}/assignments"), &assign).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    }
    // The address of a new account is unconfirmed: it may be anybody's.
    assert!(!sees(&guest).await?, "not confirmed");
    confirm(&server, &guest).await?;
    for group in ["house", "any"] {
        assert!(sees(&guest).await?, "before {group} goes");
        let got = server.send("", "DELETE", &format!("{groups}/{group}"), "", Body::empty()).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    }
    // A pattern must match the whole domain.
    assert!(!sees(&guest).await?, "only part is left");
    server.send("", "DELETE", &format!("{groups}/part"), "", Body::empty()).await?;
    let got = server.get("", groups).await?.json();
    assert_eq!(got["data"], json!([]), "{got}");
    Ok(())
}

/// Confirms the address of an account by the link in the mail.
async fn confirm(server: &Server, key: &str) -> Result<(), Failure> {
    let me = server.get(key, "/api/users/:me").await?.json();
    let path = format!("/api/admin/confirmEmail/{}", me["data"]["id"]);
    let token = server.get("", &path).await?.json();
    let token = token["data"]["token"].as_str().unwrap_or_default();
    let got = server.get("", &format!("/confirmemail.xhtml?token={token}")).await?;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    Ok(())
}
