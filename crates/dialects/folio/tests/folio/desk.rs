//! Several desks at once: one book, one loan, on both engines.

use http::StatusCode;
use pinakes_store::Expr;
use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Number of books requested concurrently.
const N_BOOKS: usize = 8;
/// The patrons who request each book at the same moment.
const PATRONS: [&str; 4] = ["ann", "bob", "ann", "bob"];

const INSTANCE: &str = "00000000-0000-4000-8000-000000000001";
const HOLDINGS: &str = "00000000-0000-4000-8000-000000000002";
const POINT: &str = "3a40852d-49fd-4df2-a1f9-6e2641a6e91f";

async fn made(server: &Server, path: &str, body: &str) -> Result<(), Failure> {
    let (status, _, answer) = server.ask(&format!("admin POST {path}\n{body}")).await?;
    if status == StatusCode::CREATED {
        return Ok(());
    }
    Err(format!("POST {path}: {status} {}", String::from_utf8_lossy(&answer)).into())
}

async fn stock(server: &Server) -> Result<(), Failure> {
    let body = format!(
        r#"{{"id": "{INSTANCE}", "source": "FOLIO", "title": "One copy", "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f"}}"#
    );
    made(server, "/instance-storage/instances", &body).await?;
    let body = format!(
        r#"{{"id": "{HOLDINGS}", "instanceId": "{INSTANCE}", "permanentLocationId": "fcd64ce1-6995-48f0-840e-89ffa2288371", "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264"}}"#
    );
    made(server, "/holdings-storage/holdings", &body).await?;
    for n in 0..N_BOOKS {
        let body = format!(
            r#"{{"holdingsRecordId": "{HOLDINGS}", "barcode": "b{n}", "status": {{"name": "Available"}}, "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892", "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27"}}"#
        );
        made(server, "/item-storage/items", &body).await?;
    }
    for name in ["ann", "bob"] {
        let body = format!(
            r#"{{"username": "{name}", "barcode": "{name}", "active": true, "patronGroup": "3684a786-6671-4268-8ed0-9db82ebca60b", "personal": {{"lastName": "{name}"}}}}"#
        );
        made(server, "/users", &body).await?;
    }
    Ok(())
}

async fn check_out(server: &Server, book: usize, patron: &str) -> Result<(StatusCode, Value), Failure> {
    let request = format!(
        "desk POST /circulation/check-out-by-barcode\n{{\"itemBarcode\": \"b{book}\", \"userBarcode\": \"{patron}\", \"servicePointId\": \"{POINT}\"}}"
    );
    let (status, _, body) = server.ask(&request).await?;
    Ok((status, serde_json::from_slice(&body)?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_book_has_one_loan() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        stock(&server).await?;
        for book in 0..N_BOOKS {
            let [a, b, c, d] = PATRONS.map(|patron| check_out(&server, book, patron));
            let (a, b, c, d) = tokio::join!(a, b, c, d);
            let answers = [a?, b?, c?, d?];
            let n_lent = answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
            assert_eq!(n_lent, 1, "{engine:?}, book {book}: {answers:?}");
            for (status, body) in answers.iter().filter(|(status, _)| *status != StatusCode::CREATED) {
                assert_eq!(*status, StatusCode::UNPROCESSABLE_ENTITY, "{engine:?}: {body}");
                let codes: Vec<&str> = body["errors"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it["code"].as_str())
                    .collect();
                assert!(codes.contains(&"ITEM_HAS_OPEN_LOAN"), "{engine:?}: {body}");
            }
        }
        let tenant = server.tenant("diku")?;
        let loans =
            pinakes_folio::kinds().iter().copied().find(|it| it.name == "folio_loan").ok_or("no kind")?;
        let n_loans = tenant.read_blocking(|view| view.count(loans, &Expr::All))?;
        assert_eq!(n_loans, N_BOOKS as u64, "{engine:?}");
        assert_eq!(tenant.check()?, Vec::<String>::new(), "{engine:?}");
    }
    Ok(())
}
