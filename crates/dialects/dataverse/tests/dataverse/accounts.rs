//! Accounts of the server in this dialect: usable from inside the server, never from outside.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Failure, Server};

#[tokio::test(flavor = "multi_thread")]
async fn an_account_gets_a_user_of_its_own_from_inside_alone() -> Result<(), Failure> {
    let server = Server::start()?;
    let admin = server.user("admin").await?;
    let (_, pid) = server.dataset(&admin, "one").await?;
    let draft = format!("/api/datasets/:persistentId?persistentId={pid}");
    let token = server.account("ada").await?;
    let me = async |token: &str| server.inside(token, Method::GET, "/api/users/:me", None).await;

    // Without a user, the account is treated as a guest.
    assert_eq!(me(&token).await?.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.inside(&token, Method::GET, &draft, None).await?.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.inside(&token, Method::GET, "/api/info/version", None).await?.status, StatusCode::OK);

    let mut body = json!({"firstName": "Ada", "lastName": "Sample", "emailAddress": "ada@example.org"});
    let register = async |token: &str, body: &Value| {
        server.inside(token, Method::POST, "/api/users/register", Some(body)).await
    };
    assert_eq!(register(&token, &body).await?.status, StatusCode::BAD_REQUEST, "the terms are not accepted");
    body["termsAccepted"] = true.into();
    let made = register(&token, &body).await?;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    assert_eq!(me(&token).await?.json()["data"]["identifier"], "@ada");
    assert_eq!(register(&token, &body).await?.status, StatusCode::BAD_REQUEST, "there is one already");

    // From outside, the same token is invalid, wherever it is sent.
    let outside = server.get(&token, "/api/users/:me").await?;
    assert_eq!(outside.status, StatusCode::UNAUTHORIZED);
    let outside = server.json(&token, "POST", "/api/users/register", &body).await?;
    assert_eq!(outside.status, StatusCode::UNAUTHORIZED, "{}", outside.text());
    let guest = server.json("", "POST", "/api/users/register", &body).await?;
    assert_eq!(guest.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", guest.text());

    // A name that Dataverse already has is not taken over; an invalid token is refused.
    let other = server.account("Admin").await?;
    let taken = register(&other, &json!({"emailAddress": "b@example.org", "termsAccepted": true})).await?;
    assert_eq!(taken.status, StatusCode::BAD_REQUEST, "{}", taken.text());
    assert_eq!(me("a.b.c").await?.status, StatusCode::UNAUTHORIZED);

    // A user who is deactivated in Dataverse is refused here.
    let path = "/api/admin/authenticatedUsers/ada/deactivate";
    let shut = server.json(&admin, "POST", path, &json!({})).await?;
    assert_eq!(shut.status, StatusCode::OK, "{}", shut.text());
    assert_eq!(me(&token).await?.status, StatusCode::UNAUTHORIZED);
    Ok(())
}
