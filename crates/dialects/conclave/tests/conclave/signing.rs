//! Authentication: name and password in each request, tokens, cookies, and pages without any of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

fn basic(name: &str, password: &str) -> HeaderMap {
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}"));
    let value = HeaderValue::try_from(format!("Basic {pair}")).expect("base 64 is a header");
    HeaderMap::from_iter([(http::header::AUTHORIZATION, value)])
}

const METADATA: &str = "{\"for\":\"a\",\"name\":\"label\",\"value\":\"A\"}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_and_a_password_are_enough() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let path = "/topics/v1/default/topics";
        let body = || "{\"id\":\"a\"}".to_owned().into();
        let (status, headers, _) =
            server.send("nobody", "POST", path, basic("editor", "wrong-2026"), body()).await?;
        assert_eq!(status.as_u16(), 401);
        assert!(headers.contains_key("www-authenticate"), "RFC 9110 asks for a challenge");
        assert!(!headers.contains_key("set-cookie"), "nobody signed in");
        let (status, headers, _) =
            server.send("nobody", "POST", path, basic("editor", "conclave-2026"), body()).await?;
        assert_eq!(status.as_u16(), 201, "{}", engine.name());
        assert!(!headers.contains_key("set-cookie"), "who sends a password each time needs no cookie");
        // The second time the pair is remembered, with the same result; wrong pairs are not remembered.
        let path = "/topics/v1/default/metadata";
        for (name, expected) in [("editor", 200), ("reader", 403), ("nobody-of-this-name", 401)] {
            let pair = basic(name, "conclave-2026");
            for _ in 0..2 {
                let (status, _, _) =
                    server.send("nobody", "PUT", path, pair.clone(), METADATA.to_owned().into()).await?;
                assert_eq!(status.as_u16(), expected, "{name}");
            }
        }
        // A minute later the password is checked again.
        server.clock.advance_ms(61_000);
        let pair = basic("editor", "conclave-2026");
        let (status, _, _) = server.send("nobody", "PUT", path, pair, METADATA.to_owned().into()).await?;
        assert_eq!(status.as_u16(), 200);
        let mut broken = HeaderMap::new();
        broken.insert("authorization", HeaderValue::from_static("Basic ***"));
        let (status, _, _) = server.send("nobody", "PUT", path, broken, METADATA.to_owned().into()).await?;
        assert_eq!(status.as_u16(), 401);
    }
    Ok(())
}

/// Pages for anonymous readers set no cookie, are the same each time, and answer 304 to a known tag.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_needs_no_cookie() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let topic = "{\"metadata\":[{\"name\":\"label\",\"value\":\"A\"}]}".to_owned();
        let path = "/topics/v1/default/topic?id=a";
        let (status, _, _) = server.send("editor", "PUT", path, HeaderMap::new(), topic.into()).await?;
        assert_eq!(status.as_u16(), 201);
        let mut seen: Option<(Vec<u8>, HeaderValue)> = None;
        let mut policy: Option<HeaderValue> = None;
        for _ in 0..3 {
            let (_, headers, body) =
                server.send("nobody", "GET", "/t/default/a", HeaderMap::new(), String::new().into()).await?;
            assert!(!headers.contains_key("set-cookie"));
            policy = headers.get("content-security-policy").cloned();
            let tag = headers.get("etag").cloned().ok_or("a page has a tag")?;
            if let Some(first) = &seen {
                assert_eq!((&first.0, &first.1), (&body, &tag), "the same page each time");
            }
            seen = Some((body, tag));
        }
        let (_, tag) = seen.ok_or("asked three times")?;
        let known = HeaderMap::from_iter([(http::header::IF_NONE_MATCH, tag.clone())]);
        let (status, headers, body) =
            server.send("nobody", "GET", "/t/default/a", known.clone(), String::new().into()).await?;
        assert_eq!((status.as_u16(), body.len()), (304, 0));
        assert_eq!(
            headers.get("content-security-policy"),
            policy.as_ref(),
            "a cache takes the fields of a 304 for the page's"
        );
        // The page for a signed-in user shows their name, so it is a different page.
        let (status, _, _) =
            server.send("browser", "GET", "/t/default/a", known.clone(), String::new().into()).await?;
        assert_eq!(status.as_u16(), 200);
        // A change takes effect at once.
        let body = METADATA.replace("\"A\"", "\"B\"");
        server.send("editor", "PUT", "/topics/v1/default/metadata", HeaderMap::new(), body.into()).await?;
        let (status, _, _) =
            server.send("nobody", "GET", "/t/default/a", known, String::new().into()).await?;
        assert_eq!(status.as_u16(), 200);
    }
    Ok(())
}

/// Lists state where they go on: hidden arcs are never disclosed there, and do not shorten pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_lists_do_not_tell_of_hidden_arcs() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for (at, scope) in
            ["default", "staff", "default", "staff", "staff", "default"].into_iter().enumerate()
        {
            let owner = if scope == "staff" { format!("secret{at}") } else { format!("open{at}") };
            let topic = json!({
                "id": owner, "metadata": [{"name": "label", "value": owner}],
                "associations": [{"id": format!("arc{at}"), "type": format!("t{at}-{scope}"), "role": "r",
                    "scope": scope, "reference": "hub"}],
            });
            let (status, _, body) = server
                .send(
                    "editor",
                    "POST",
                    "/topics/v1/default/topics",
                    HeaderMap::new(),
                    topic.to_string().into(),
                )
                .await?;
            assert_eq!(status.as_u16(), 201, "{}", String::from_utf8_lossy(&body));
        }
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/topics/v1/default/pointing?id=hub&view=ids&limit=1{after}");
            let (status, _, body) =
                server.send("reader", "GET", &path, HeaderMap::new(), String::new().into()).await?;
            assert_eq!(status.as_u16(), 200);
            let page: Value = serde_json::from_slice(&body)?;
            assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
            found.push(page["items"][0]["topic"].as_str().unwrap_or_default().to_owned());
            let Some(next) = page["next"].as_str() else { break };
            let place = String::from_utf8(URL_SAFE_NO_PAD.decode(next)?)?;
            assert!(!place.contains("secret") && !place.contains("staff"), "{place:?}");
            after = format!("&after={next}");
        }
        assert_eq!(found, ["open0", "open2", "open5"], "{}", engine.name());
        // The owner of a hidden association is not disclosed to callers who know its id.
        for path in ["associations?parent=arc1", "association?id=arc1", "metadata?for=arc1"] {
            let path = format!("/topics/v1/default/{path}");
            let (status, _, body) =
                server.send("reader", "GET", &path, HeaderMap::new(), String::new().into()).await?;
            assert_eq!(status.as_u16(), 404, "{path}");
            assert!(!String::from_utf8_lossy(&body).contains("secret"), "{path}");
        }
    }
    Ok(())
}

/// After signing in, the browser is redirected only to pages of this site.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_leads_to_own_pages_alone() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    for (next, expected) in [
        ("/t/default/a", "/t/default/a"),
        ("//elsewhere.example.org", "/conclave/default"),
        ("/%5Celsewhere.example.org", "/conclave/default"),
        ("/%09/elsewhere.example.org", "/conclave/default"),
        ("%09//elsewhere.example.org", "/conclave/default"),
        ("/%0a/elsewhere.example.org", "/conclave/default"),
        ("https://elsewhere.example.org", "/conclave/default"),
    ] {
        let form = format!("username=reader&password=conclave-2026&next={next}");
        let (status, headers, _) =
            server.send("nobody", "POST", "/conclave/sign-in", HeaderMap::new(), form.into()).await?;
        assert_eq!(status.as_u16(), 303, "{next}");
        assert_eq!(headers.get("location").and_then(|it| it.to_str().ok()), Some(expected), "{next}");
    }
    Ok(())
}

/// A site that requires readers to sign in discloses nothing to others on any route.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_site_tells_nothing() -> Result<(), Failure> {
    let closed = |it: pinakes_conclave::Settings| pinakes_conclave::Settings { public: false, ..it };
    let server = Server::start_with(Engine::Sqlite, closed).await?;
    let topic = "{\"id\":\"a\",\"metadata\":[{\"name\":\"label\",\"value\":\"hidden words\"}]}".to_owned();
    server.send("editor", "POST", "/topics/v1/default/topics", HeaderMap::new(), topic.into()).await?;
    for path in [
        "/t/default/a",
        "/t/default/a.json",
        "/t/default/a.xtm",
        "/topics/v1/default/topic?id=a",
        "/topics/v1/default/topics",
        "/topics/v1/default/search?q=hidden",
        "/topics/v1/default/random",
        "/topics/v1/default/stats",
        "/topics/v1/default/export?format=ndjson",
        "/topics/v1/default/pointing?id=a",
        "/topics/v1/default/metadata?for=a",
        "/topics/v1/default/occurrences?for=a",
        "/topics/v1/default/identity?si=x",
        "/topics/v1/default/about?scheme=doi&value=x",
        "/conclave/default",
        "/conclave/default/search?q=hidden",
        "/conclave/default/history?id=a",
        "/conclave/default/edit?id=a",
        "/conclave.cms/public/topic/view.aspx?id=a",
        "/conclave.cms/public/topic/view.aspx/json?id=a",
    ] {
        let (status, _, body) =
            server.send("nobody", "GET", path, HeaderMap::new(), String::new().into()).await?;
        assert_eq!(status.as_u16(), 401, "{path}");
        assert!(!String::from_utf8_lossy(&body).contains("hidden words"), "{path}");
    }
    let (status, _, body) =
        server.send("reader", "GET", "/t/default/a.json", HeaderMap::new(), String::new().into()).await?;
    let topic: Value = serde_json::from_slice(&body)?;
    assert_eq!((status.as_u16(), topic["label"].as_str()), (200, Some("hidden words")));
    let (status, _, _) =
        server.send("nobody", "GET", "/conclave/sign-in", HeaderMap::new(), String::new().into()).await?;
    assert_eq!(status.as_u16(), 200, "signing in is for those who may not read yet");
    Ok(())
}
