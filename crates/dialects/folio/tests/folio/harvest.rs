//! A harvest by resumption tokens finds every record once.

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Returns the text between two others.
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

/// A change of holdings or an item moves the datestamp of the instance, which is listed once, at its newest change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_holdings_and_items_is_one_of_the_record() -> Result<(), Failure> {
    const DAY_MS: i64 = 86_400_000;
    let server = Server::start(Engine::Sqlite).await?;
    let ask = async |request: String, expected: u16| -> Result<String, Failure> {
        let (status, _, answer) = server.ask(&request).await?;
        let answer = String::from_utf8(answer)?;
        assert_eq!(status.as_u16(), expected, "{request}: {answer}");
        Ok(answer)
    };
    let [instance, other, holdings, item] =
        [1, 2, 3, 4].map(|n| format!("00000000-0000-4000-8000-00000000000{n}"));
    for id in [&instance, &other] {
        let body = format!(
            r#"{{"id":"{id}","source":"FOLIO","title":"t","instanceTypeId":"6312d172-f0cf-40f6-b27d-9fa8feaf332f"}}"#
        );
        ask(format!("librarian POST /instance-storage/instances\n{body}"), 201).await?;
    }
    let harvested = async |window: &str| -> Result<Vec<String>, Failure> {
        let (mut listed, mut parameters) = (Vec::new(), format!("metadataPrefix=oai_dc&{window}"));
        loop {
            let answer =
                ask(format!("reader GET /oai/records?verb=ListIdentifiers&{parameters}"), 200).await?;
            listed.extend(answer.split("<header>").skip(1).map(|header| {
                let id = between(header, "diku/", "<").unwrap_or_default();
                let date = between(header, "<datestamp>", "T").unwrap_or_default();
                format!("{} {date}", id.chars().last().unwrap_or_default())
            }));
            let token = between(&answer, "<resumptionToken", "</resumptionToken>");
            match token.and_then(|it| it.split_once('>')) {
                Some((_, token)) if !token.is_empty() => {
                    let token = token.replace("&amp;", "&").replace('&', "%26").replace('=', "%3D");
                    parameters = format!("resumptionToken={token}");
                }
                _ => return Ok(listed),
            }
        }
    };
    assert_eq!(harvested("until=2026-02-01").await?, ["1 2026-02-01", "2 2026-02-01"]);
    server.clock.advance_ms(DAY_MS);
    let body = format!(
        r#"{{"id":"{holdings}","instanceId":"{instance}","permanentLocationId":"fcd64ce1-6995-48f0-840e-89ffa2288371","sourceId":"f32d531e-df79-46b3-8932-cdd35f7a2264"}}"#
    );
    ask(format!("librarian POST /holdings-storage/holdings\n{body}"), 201).await?;
    assert_eq!(harvested("until=2026-02-01").await?, ["2 2026-02-01"]);
    assert_eq!(harvested("from=2026-02-02").await?, ["1 2026-02-02"]);
    assert_eq!(harvested("from=2026-02-01").await?, ["2 2026-02-01", "1 2026-02-02"]);
    server.clock.advance_ms(DAY_MS);
    let body = format!(
        r#"{{"id":"{item}","holdingsRecordId":"{holdings}","materialTypeId":"1a54b431-2e4f-452d-9cae-9cee66c9a892","permanentLoanTypeId":"2b94c631-fca9-4892-a730-03ee529ffe27","status":{{"name":"Available"}}}}"#
    );
    ask(format!("librarian POST /item-storage/items\n{body}"), 201).await?;
    assert_eq!(harvested("from=2026-02-03").await?, ["1 2026-02-03"]);
    server.clock.advance_ms(DAY_MS);
    ask(format!("librarian DELETE /item-storage/items/{item}"), 204).await?;
    assert_eq!(harvested("from=2026-02-02").await?, ["1 2026-02-04"]);
    assert_eq!(harvested("").await?, ["1 2026-02-04", "2 2026-02-01"]);
    // Now the instance itself has changed last.
    server.clock.advance_ms(DAY_MS);
    let current = ask(format!("librarian GET /instance-storage/instances/{instance}"), 200).await?;
    ask(format!("librarian PUT /instance-storage/instances/{instance}\n{current}"), 204).await?;
    assert_eq!(harvested("from=2026-02-02").await?, ["1 2026-02-05"]);
    let answer = ask(
        "reader GET /oai/records?verb=ListIdentifiers&metadataPrefix=oai_dc&from=2026-02-04&until=2026-02-04"
            .to_owned(),
        200,
    )
    .await?;
    assert!(answer.contains("noRecordsMatch"), "{answer}");
    Ok(())
}
