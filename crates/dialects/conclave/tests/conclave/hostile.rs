//! Malicious or broken input: it must be refused with its place and reason, and leave nothing half done.

use std::fmt::Write as _;

use http::HeaderMap;
use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

async fn import(server: &Server, query: &str, body: impl Into<Vec<u8>>) -> Result<(u16, Value), Failure> {
    let path = format!("/topics/v1/default/import?{query}");
    let body: Vec<u8> = body.into();
    let (status, _, body) = server.send("admin", "POST", &path, HeaderMap::new(), body.into()).await?;
    Ok((status.as_u16(), serde_json::from_slice(&body)?))
}

async fn n_topics(server: &Server) -> Result<u64, Failure> {
    let path = "/topics/v1/default/stats";
    let (_, _, body) = server.send("nobody", "GET", path, HeaderMap::new(), String::new().into()).await?;
    let body: Value = serde_json::from_slice(&body)?;
    body["topics"].as_u64().ok_or_else(|| "stats tells no number".into())
}

/// Expanding entities, files of the server, foreign addresses, endless nesting, broken encodings, two topics that
/// cannot be one, truncated dumps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_documents_are_refused_with_their_place() -> Result<(), Failure> {
    let mut bomb = String::from("<!DOCTYPE topicMap [<!ENTITY a0 \"aaaaaaaaaa\">");
    for n in 1..12 {
        let inner = format!("&a{};", n - 1).repeat(10);
        write!(bomb, "<!ENTITY a{n} \"{inner}\">")?;
    }
    bomb.push_str("]><topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.0\"><topic id=\"a\"><name><value>&a11;</value></name></topic></topicMap>");
    let outside = "<!DOCTYPE topicMap [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><topicMap \
                   xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.0\"/>";
    let elsewhere = "<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.0\">\n<mergeMap \
                     href=\"http://127.0.0.1:1/x.xtm\"/></topicMap>";
    let deep = format!("{{\"version\":\"1.1\",\"item_type\":\"topicmap\",\"topics\":{}", "[".repeat(100_000));
    let conflict = "<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.1\"><topic id=\"r\"/>\n<topic \
                    id=\"a\"><name><reifier><topicRef href=\"#r\"/></reifier><value>A</value></name><name><reifier><topicRef \
                    href=\"#r\"/></reifier><value>B</value></name></topic></topicMap>";
    let cut = "<RDF xmlns:r=\"http://www.w3.org/TR/RDF/\" xmlns=\"http://dmoz.org/rdf/\">\n<Topic r:id=\"Top/A\">\n\
               </Topic>\n<Topic r:id=\"Top/B\">\n<catid>1";
    // A dump read as one of the other kind would lose its relations, or its links.
    let categories = "<RDF xmlns:r=\"http://www.w3.org/TR/RDF/\" xmlns=\"http://dmoz.org/rdf/\">\n<Topic r:id=\"Top\">\n\
                      <narrow r:resource=\"Top/A\"/>\n</Topic>\n</RDF>";
    let links = "<RDF xmlns:r=\"http://www.w3.org/TR/RDF/\" xmlns=\"http://dmoz.org/rdf/\">\n<ExternalPage \
                 about=\"http://a/\">\n<topic>Top/A</topic></ExternalPage>\n</RDF>";
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("format=dmoz-content&base=s.u8", categories.into(), "dmoz-structure"),
        ("format=dmoz-structure&base=c.u8", links.into(), "dmoz-content"),
        ("format=xtm", bomb.into(), "line 1"),
        ("format=xtm", outside.into(), "line 1"),
        ("format=xtm", elsewhere.into(), "line 2"),
        ("format=jtm", deep.into(), "urn:conclave:import:default"),
        ("format=xtm&strict=1", conflict.into(), "reif"),
        ("format=dmoz-structure&base=cut.rdf.u8", cut.into(), "cut.rdf.u8, line"),
        ("format=xtm", b"<topicMap \xFF\xFE\xFA".to_vec(), "line 1"),
        ("format=ndjson&base=n", b"{\"id\":\"a\"}\n{\"id\":\n".to_vec(), "n, line 2"),
        ("format=curlie&base=c", b"7\tArts\t1\tx\nhttp://a/\tA\tB\t9\n".to_vec(), "c, line 2"),
    ];
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for (query, body, expected) in &cases {
            let (status, answer) = import(&server, query, body.clone()).await?;
            let detail = answer["detail"].as_str().unwrap_or_default();
            assert!(matches!(status, 400 | 422), "{query}: {status} {answer}");
            assert!(detail.contains(expected), "{query}: {detail}");
            assert!(!detail.contains("root:"), "no file of the server is told: {detail}");
            assert_eq!(n_topics(&server).await?, 0, "{query}: nothing is half imported");
        }
        // A small body that decompresses to a very large one.
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..300 {
            std::io::Write::write_all(&mut packed, &vec![b' '; 1 << 20])?;
        }
        let (status, answer) = import(&server, "format=ndjson", packed.finish()?).await?;
        assert_eq!(status, 400, "{answer}");
    }
    Ok(())
}

/// Documents that merge each other are read only once each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circle_of_documents_ends() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let part = |name: &str, other: &str| {
        format!(
            "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}.xtm\"\r\n\r\n<topicMap \
             xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.0\"><mergeMap href=\"{other}.xtm\"/><topic id=\"{name}\">\
             <subjectIdentifier href=\"http://example.org/{name}\"/></topic></topicMap>\r\n"
        )
    };
    let body = format!("{}{}{}--x--\r\n", part("a", "b"), part("b", "c"), part("c", "a"));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "multipart/form-data; boundary=x".parse()?);
    let path = "/topics/v1/default/import?format=xtm&base=file:///bundle/a.xtm";
    let (status, _, answer) = server.send("admin", "POST", path, headers, body.into()).await?;
    assert_eq!(status.as_u16(), 200, "{}", String::from_utf8_lossy(&answer));
    assert_eq!(n_topics(&server).await?, 3);
    Ok(())
}

/// Labels, ids, scopes and texts with script injections: no page may contain a script.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_script_on_any_page() -> Result<(), Failure> {
    const EVIL: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>";
    let server = Server::start(Engine::Sqlite).await?;
    let topic = serde_json::json!({
        "metadata": [
            {"name": "label", "value": EVIL}, {"name": "description", "value": EVIL}, {"name": EVIL, "value": EVIL},
        ],
        "associations": [{"id": EVIL, "type": EVIL, "role": EVIL, "reference": EVIL, "label": EVIL}],
        "occurrences": [
            {"role": "wiki", "behaviour": "markdown", "string-data": EVIL},
            {"role": "wiki", "behaviour": "wiki", "string-data": EVIL},
            {"role": "wiki", "behaviour": "html", "string-data": EVIL},
            {"role": EVIL, "behaviour": "url", "reference": "javascript:alert(1)"},
            {"role": EVIL, "behaviour": "image", "reference": EVIL},
            {"role": EVIL, "behaviour": "topic", "reference": EVIL},
            {"role": "link", "behaviour": "url", "reference": "http://example.org/\"onclick=x",
             "string-data": format!("{{\"title\":{}}}", serde_json::json!(EVIL))},
        ],
    });
    let id = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    let path = format!("/topics/v1/default/topic?id={id}");
    let (status, _, body) =
        server.send("editor", "PUT", &path, HeaderMap::new(), topic.to_string().into()).await?;
    assert_eq!(status.as_u16(), 201, "{}", String::from_utf8_lossy(&body));
    for path in [
        format!("/t/default/{id}"),
        format!("/conclave/default/edit?id={id}"),
        format!("/conclave/default/history?id={id}"),
        format!("/conclave/default/create?id=new{id}"),
        format!("/conclave/default/pointing?id={id}"),
        format!("/conclave/default/search?q={id}"),
        "/conclave/default/search?q=alert".to_owned(),
        format!("/conclave/sign-in?next={id}"),
        format!("/t/default/missing{id}"),
        format!("/conclave.cms/public/topic/view.aspx?id={id}"),
        format!("/conclave.cms/x/{id}/y.aspx"),
        format!("/conclave/{}/search", id.replace('/', "%2F")),
    ] {
        let (_, headers, body) =
            server.send("browser", "GET", &path, HeaderMap::new(), String::new().into()).await?;
        let page = String::from_utf8(body)?;
        assert!(page.starts_with("<!doctype html>"), "{path}: {page}");
        let lower = page.to_lowercase();
        assert_eq!(lower.matches("<script").count(), 1, "the site's own alone: {path}\n{page}");
        assert!(!lower.contains("<img src=x"), "{path}\n{page}");
        assert!(!lower.contains("href=\"javascript"), "{path}\n{page}");
        let policy =
            headers.get("content-security-policy").and_then(|it| it.to_str().ok()).unwrap_or_default();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
    }
    Ok(())
}

/// A topic with very many arcs of its own, in several parts: its page and its lists stay short and fast to page
/// through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_with_very_many_arcs_is_bounded() -> Result<(), Failure> {
    const N_ARCS: usize = 6_000;
    let part = |from: usize, to: usize| {
        let arcs: Vec<Value> = (from..to)
            .map(|n| {
                serde_json::json!({"id": format!("hub~{n}"), "type": "of", "role": format!("r{}", n % 3),
                    "reference": format!("t{n:06}")})
            })
            .collect();
        format!("{}\n", serde_json::json!({"id": "hub", "associations": arcs}))
    };
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for body in [part(0, N_ARCS / 2), part(N_ARCS / 2, N_ARCS), part(0, 10)] {
            let (status, answer) = import(&server, "format=ndjson", body).await?;
            assert_eq!(status, 200, "{answer}");
        }
        let get = async |path: &str| {
            let (status, _, body) =
                server.send("editor", "GET", path, HeaderMap::new(), String::new().into()).await?;
            assert_eq!(status.as_u16(), 200, "{path}");
            Ok::<_, Failure>(body)
        };
        for path in ["/t/default/hub", "/conclave/default/edit?id=hub"] {
            let page = get(path).await?;
            assert!(page.len() < 300_000, "{path} has {} bytes", page.len());
        }
        let (mut n_found, mut after) = (0, String::new());
        while n_found <= N_ARCS {
            let path = format!("/topics/v1/default/associations?parent=hub&limit=1000{after}");
            let list: Value = serde_json::from_slice(&get(&path).await?)?;
            let n_items = list["items"].as_array().map_or(0, Vec::len);
            assert!(n_items <= 1_000);
            n_found += n_items;
            match list["next"].as_str() {
                Some(next) => after = format!("&after={}", next.replace('%', "%25").replace('&', "%26")),
                None => break,
            }
        }
        assert_eq!(n_found, N_ARCS, "each arc once, {}", engine.name());
    }
    Ok(())
}

/// Associations with so many roles that their arcs would exhaust the memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn associations_of_very_many_roles_are_refused() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let roles: Vec<String> = (0..5_000).map(|n| format!("p{n} : role")).collect();
    for query in ["format=ltm", "format=ltm&dry=1"] {
        let (status, answer) = import(&server, query, format!("of({})", roles.join(", "))).await?;
        assert_eq!(status, 422, "{answer}");
        assert!(answer["detail"].as_str().is_some_and(|it| it.contains("25000000 arcs")), "{answer}");
    }
    assert_eq!(n_topics(&server).await?, 0);
    Ok(())
}

/// A map truncated at any point is refused with its line, and nothing of it is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maps_that_are_cut_short_leave_nothing() -> Result<(), Failure> {
    let xtm = "<topicMap xmlns=\"http://www.topicmaps.org/xtm/\" version=\"2.1\">\n<topic id=\"a\"><subjectIdentifier \
               href=\"http://example.org/a\"/>\n<name><value>A</value></name></topic>\n<topic id=\"b\"><subjectIdentifier \
               href=\"http://example.org/b\"/></topic>\n</topicMap>";
    let jtm = "{\"version\":\"1.1\",\"item_type\":\"topicmap\",\n\"topics\":[{\"item_identifiers\":[\"#a\"],\n\"names\":\
               [{\"value\":\"A\"}]}]}";
    let server = Server::start(Engine::Sqlite).await?;
    let before = n_topics(&server).await?;
    for (format, text) in [("xtm", xtm), ("jtm", jtm)] {
        for at in (1..text.len()).step_by(7) {
            let (status, answer) = import(&server, &format!("format={format}&strict=1"), &text[..at]).await?;
            assert!(matches!(status, 400 | 422), "{format} cut at {at}: {status} {answer}");
            assert!(answer["detail"].as_str().is_some_and(|it| it.contains("line ")), "{answer}");
        }
    }
    assert_eq!(n_topics(&server).await?, before);
    Ok(())
}
