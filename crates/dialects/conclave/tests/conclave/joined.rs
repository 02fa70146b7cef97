//! Topics and the records of other dialects, joined by identifiers.

use http::HeaderMap;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, PAPER, Server};

async fn get(server: &Server, path: &str) -> Result<(u16, HeaderMap, String), Failure> {
    let (status, headers, body) =
        server.send("nobody", "GET", path, HeaderMap::new(), String::new().into()).await?;
    Ok((status.as_u16(), headers, String::from_utf8(body)?))
}

/// The page of a topic links the records about it, and the API lists the topics about a record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_and_its_records_find_each_other() -> Result<(), Failure> {
    let with_papers = |mut it: pinakes_conclave::Settings| {
        it.records.insert("paper".to_owned(), "/papers/{id}".to_owned());
        it
    };
    for engine in Engine::all() {
        let server = Server::start_with(engine, with_papers).await?;
        let topic = json!({
            "id": "spheres", "metadata": [{"name": "label", "value": "Spheres"}],
            "subject-identifiers": ["https://doi.org/10.5072/Spheres"],
        });
        let path = "/topics/v1/default/topics";
        let (status, _, _) =
            server.send("editor", "POST", path, HeaderMap::new(), topic.to_string().into()).await?;
        assert_eq!(status.as_u16(), 201);
        let (_, before, page) = get(&server, "/t/default/spheres").await?;
        assert!(!page.contains("/papers/"), "{page}");
        // Identifiers are compared by the rules of their scheme: DOIs regardless of case.
        let paper = json!({"doi": "10.5072/spheres", "title": "Warm spheres"});
        server.tenant.write(move |txn| txn.insert(&PAPER, "paper/1 & more", &paper)).await?;
        let (_, after, page) = get(&server, "/t/default/spheres").await?;
        assert!(page.contains("<a href=\"/papers/paper/1%20%26%20more\">paper/1 &amp; more</a>"), "{page}");
        assert_ne!(before.get("etag"), after.get("etag"), "the page is another one");
        for query in [
            "scheme=doi&value=10.5072/SPHERES",
            "iri=https://doi.org/10.5072/spheres",
            "iri=doi:10.5072/spheres",
        ] {
            let (status, _, body) = get(&server, &format!("/topics/v1/default/about?{query}")).await?;
            let answer: Value = serde_json::from_str(&body)?;
            assert_eq!(
                (status, &answer["items"][0]["id"]),
                (200, &json!("spheres")),
                "{query} {}",
                engine.name()
            );
        }
        let (status, _, _) = get(&server, "/topics/v1/default/about?iri=ftp://example.org/x").await?;
        assert_eq!(status, 400, "an IRI of no scheme that records have");
        let (_, _, body) = get(&server, "/topics/v1/default/about?scheme=doi&value=10.5072/none").await?;
        assert_eq!(body, "{\"items\":[]}");
    }
    Ok(())
}

/// The content of one document does not replace that of another, and importing it again changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_maps_become_one() -> Result<(), Failure> {
    let maps = [
        "[oslo = \"Oslo\"] lies-in(oslo : inner, norway : outer)",
        "[oslo = \"Oslo\"] born-in(oslo : place, ibsen : person)",
    ];
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let mut last = Value::Null;
        for map in [maps[0], maps[1], maps[0]] {
            let path = "/topics/v1/default/import?format=ltm&base=file:///a.ltm";
            let (status, _, body) =
                server.send("admin", "POST", path, HeaderMap::new(), map.to_owned().into()).await?;
            assert_eq!(status.as_u16(), 200, "{}", String::from_utf8_lossy(&body));
            let (_, _, body) = get(&server, "/topics/v1/default/topic?id=oslo").await?;
            last = serde_json::from_str(&body)?;
        }
        let mut types: Vec<&str> = Vec::new();
        types.extend(
            last["associations"].as_array().into_iter().flatten().filter_map(|it| it["type"].as_str()),
        );
        assert_eq!(types, ["born-in", "lies-in"], "{last}");
    }
    Ok(())
}
