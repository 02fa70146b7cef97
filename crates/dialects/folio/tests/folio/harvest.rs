//! A harvest by resumption tokens finds every record once.

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harvest_finds_every_record_once() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let mut made = Vec::new();
        for n in 0..5 {
            let id = format!("00000000-0000-4000-8000-00000000000{n}");
            let body = format!(
                r#"{{"id":"{id}","source":"FOLIO","title":"t","instanceTypeId":"6312d172-f0cf-40f6-b27d-9fa8feaf332f"}}"#
            );
            let (status, _, answer) =
                server.ask(&format!("librarian POST /instance-storage/instances\n{body}")).await?;
            assert_eq!(status, 201, "{}", String::from_utf8_lossy(&answer));
            made.push(id);
        }
        let mut parameters = "metadataPrefix=oai_dc&from=2026-01-01".to_owned();
        let (mut harvested, mut n_pages) = (Vec::new(), 0);
        loop {
            let path = format!("/oai/records?verb=ListIdentifiers&{parameters}");
            let (_, _, answer) = server.ask(&format!("reader GET {path}")).await?;
            let answer = String::from_utf8(answer)?;
            let ids = answer.split("<identifier>oai:localhost:diku/").skip(1);
            harvested.extend(ids.filter_map(|it| it.split('<').next()).map(str::to_owned));
            n_pages += 1;
            assert!(answer.contains("completeListSize=\"5\""), "{answer}");
            match between(&answer, "<resumptionToken", "</resumptionToken>").and_then(|it| it.split_once('>'))
            {
                Some((_, token)) if !token.is_empty() => {
                    let token = token.replace("&amp;", "&").replace('&', "%26").replace('=', "%3D");
                    parameters = format!("resumptionToken={token}");
                }
                _ => break,
            }
        }
        assert_eq!((harvested, n_pages), (made, 3), "{engine:?}");
    }
    Ok(())
}
