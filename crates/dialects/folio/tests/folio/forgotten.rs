//! Forgotten passwords: the link that is sent, what its token is good for, and how often.

use crate::engine::Engine;
use crate::server::{Failure, Server};

const ANN: &str = "00000000-0000-4000-8000-000000000021";

/// Starts a server with users: one with a password and an address, one who is inactive, two who share an address.
async fn library() -> Result<Server, Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    for (id, name, mail, active) in [
        (ANN, "ann", "ann@example.org", true),
        ("00000000-0000-4000-8000-000000000022", "bob", "bob@example.org", false),
        ("00000000-0000-4000-8000-000000000023", "cid", "home@example.org", true),
        ("00000000-0000-4000-8000-000000000024", "dot", "home@example.org", true),
    ] {
        let body = format!(
            r#"{{"id": "{id}", "username": "{name}", "active": {active}, "personal": {{"lastName": "L", "email": "{mail}"}}}}"#
        );
        server.asked(&format!("admin POST /users\n{body}"), 201).await?;
    }
    let credentials = format!(r#"{{"userId": "{ANN}", "password": "before-2026"}}"#);
    server.asked(&format!("admin POST /authn/credentials\n{credentials}"), 201).await?;
    Ok(server)
}

/// Asks for a link to set ann's password; returns its token.
async fn token(server: &Server) -> Result<String, Failure> {
    let link = format!("admin POST /bl-users/password-reset/link\n{{\"userId\": \"{ANN}\"}}");
    let answer = server.asked(&link, 200).await?;
    let link = answer["link"].as_str().ok_or("no link")?;
    let (token, tenant) = link.rsplit('/').next().and_then(|it| it.split_once('?')).ok_or("no token")?;
    assert_eq!(tenant, "tenant=diku", "{link}");
    Ok(token.to_owned())
}

fn with(token: &str, path: &str, body: &str) -> String {
    format!("nobody POST {path}\nx-okapi-token: {token}\n{body}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_sets_one_password() -> Result<(), Failure> {
    let server = library().await?;
    let (reset, validate) = ("/bl-users/password-reset/reset", "/bl-users/password-reset/validate");
    let token_1 = token(&server).await?;
    // It is no login, and a login is no link.
    let (status, _, _) = server.ask(&format!("nobody GET /users\nx-okapi-token: {token_1}")).await?;
    assert_eq!(status.as_u16(), 401);
    server.asked(&with("{}", validate, "{}"), 401).await?;
    let admin = server.token("admin").ok_or("no admin")?.1.clone();
    let (status, _, _) = server.ask(&with(&admin, validate, "{}")).await?;
    assert_eq!(status.as_u16(), 401);
    // Only the newest link works.
    let token_2 = token(&server).await?;
    let used = server.asked(&with(&token_1, validate, "{}"), 422).await?;
    assert_eq!(used["errors"][0]["code"], "link.used", "{used}");
    server.asked(&with(&token_2, validate, "{}"), 204).await?;
    let weak = server.asked(&with(&token_2, reset, r#"{"newPassword": "ann"}"#), 422).await?;
    assert_eq!(weak["errors"][0]["code"], "password.length.invalid", "{weak}");
    let good = r#"{"newPassword": "Sail-4-Rome!"}"#;
    server.asked(&with(&token_2, reset, good), 204).await?;
    let used = server.asked(&with(&token_2, reset, good), 422).await?;
    assert_eq!(used["errors"][0]["code"], "link.used", "{used}");
    let login = r#"{"username": "ann", "password": "Sail-4-Rome!"}"#;
    let answer = server.asked(&format!("nobody POST /authn/login\n{login}"), 201).await?;
    // One's own password.
    let own = answer["okapiToken"].as_str().ok_or("no token")?;
    let change = "/bl-users/settings/myprofile/password";
    let body = |old: &str, new: &str| {
        format!(r#"{{"username": "ann", "userId": "{ANN}", "password": "{old}", "newPassword": "{new}"}}"#)
    };
    server.asked(&with(own, change, &body("Sail-4-Rome!", "ann")), 400).await?;
    let (status, _, _) = server.ask(&with(own, change, &body("wrong", "Walk-2-Oslo!"))).await?;
    assert_eq!(status.as_u16(), 401);
    server.asked(&with(own, change, &body("Sail-4-Rome!", "Walk-2-Oslo!")), 204).await?;
    // A link ends after a day.
    let token_3 = token(&server).await?;
    server.clock.advance_ms(25 * 3_600_000);
    let over = server.asked(&with(&token_3, validate, "{}"), 422).await?;
    assert_eq!(over["errors"][0]["code"], "link.expired", "{over}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_forgot_is_told_by_mail() -> Result<(), Failure> {
    let server = library().await?;
    let forgot =
        |what: &str, id: &str| format!("nobody POST /bl-users/forgotten/{what}\n{{\"id\": \"{id}\"}}");
    server.asked(&forgot("username", "ann@example.org"), 204).await?;
    // Nobody can fill a mailbox: the second wish within a minute sends nothing.
    server.asked(&forgot("password", "ann"), 204).await?;
    server.clock.advance_ms(61_000);
    // Without a place where the link leads, none is sent: it must not lead to the host that was asked.
    server.asked(&forgot("password", "ann"), 204).await?;
    let host = r#"{"module": "USERSBL", "configName": "resetPassword", "code": "FOLIO_HOST", "value": "https://library.example.org"}"#;
    server.asked(&format!("admin POST /configurations/entries\n{host}"), 201).await?;
    server.asked(&forgot("password", "ann"), 204).await?;
    let mails = server.asked("admin GET /email?query=to==ann@example.org sortBy date", 200).await?;
    assert_eq!(mails["totalRecords"], 2, "{mails}");
    let text = |n: usize| mails["emailEntity"][n]["body"].as_str().unwrap_or_default();
    assert!(
        text(0).contains("ann") && text(1).contains("https://library.example.org/reset-password/"),
        "{mails}"
    );
    let (status, _, _) = server.ask(&forgot("password", "nobody")).await?;
    assert_eq!(status.as_u16(), 400);
    for (what, id, code) in [
        ("password", "bob", "forgotten.password.found.inactive"),
        ("username", "home@example.org", "forgotten.password.found.multiple.users"),
    ] {
        let refused = server.asked(&forgot(what, id), 422).await?;
        assert_eq!(refused["errors"][0]["code"], code, "{refused}");
    }
    server.asked("librarian POST /bl-users/password-reset/link\n{}", 403).await?;
    let link =
        "admin POST /bl-users/password-reset/link\n{\"userId\": \"00000000-0000-4000-8000-000000000029\"}";
    let missing = server.asked(link, 422).await?;
    assert_eq!(missing["errors"][0]["code"], "user.not-found", "{missing}");
    Ok(())
}
