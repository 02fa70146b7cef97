//! A tenant's records exported to a file and imported into another tenant: the same records, ids and dates, and no side
//! effect of creating a record happens again.

use pinakes_accounts::Entropy;
use pinakes_folio::moving::{self, MoveParts, Moved};

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

const INSTANCE: &str = r#"{"id": "00000000-0000-4000-8000-000000000001", "source": "FOLIO", "title": "On the Desk", "instanceTypeId": "30fffe0e-e985-4144-b2e2-1e8179bdb41f"}"#;
const HOLDINGS: &str = r#"{"id": "00000000-0000-4000-8000-000000000002", "instanceId": "00000000-0000-4000-8000-000000000001", "permanentLocationId": "fcd64ce1-6995-48f0-840e-89ffa2288371", "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264"}"#;
const ITEM: &str = r#"{"id": "00000000-0000-4000-8000-000000000010", "holdingsRecordId": "00000000-0000-4000-8000-000000000002", "barcode": "b1", "materialTypeId": "1a54b431-2e4f-452d-9cae-9cee66c9a892", "permanentLoanTypeId": "2b94c631-fca9-4892-a730-03ee529ffe27", "status": {"name": "Available"}}"#;
const USER: &str = r#"{"id": "00000000-0000-4000-8000-000000000021", "username": "ann", "barcode": "ann", "active": true, "patronGroup": "3684a786-6671-4268-8ed0-9db82ebca60b", "personal": {"lastName": "Ann"}}"#;
const LOAN: &str = r#"{"itemBarcode": "b1", "userBarcode": "ann", "servicePointId": "3a40852d-49fd-4df2-a1f9-6e2641a6e91f"}"#;
const READ: [&str; 7] = [
    "/instance-storage/instances?query=cql.allRecords=1",
    "/holdings-storage/holdings?query=cql.allRecords=1",
    "/item-storage/items?query=cql.allRecords=1",
    "/users?query=username==ann",
    "/loan-storage/loans?query=cql.allRecords=1",
    "/loan-storage/loan-history?query=cql.allRecords=1",
    "/hrid-settings-storage/hrid-settings",
];

fn moved(server: &Server, input: &[u8], path: Option<&str>) -> Result<Moved, Failure> {
    let parts = MoveParts { settings: site(), clock: server.clock.clone(), entropy: Entropy::seeded(2) };
    let mut input = input;
    Ok(moving::import(&server.tenant("diku")?, &mut input, path, &parts, &mut |_| {})?)
}

async fn check(engine: Engine) -> Result<(), Failure> {
    let server = Server::start(engine).await?;
    for (path, body) in [
        ("/instance-storage/instances", INSTANCE),
        ("/holdings-storage/holdings", HOLDINGS),
        ("/item-storage/items", ITEM),
        ("/users", USER),
        ("/circulation/check-out-by-barcode", LOAN),
    ] {
        server.asked(&format!("admin POST {path}\n{body}"), 201).await?;
    }
    let (mut file, mut n_noted) = (Vec::new(), 0);
    let counts = moving::export(&server.tenant("diku")?, &mut file, |_| n_noted += 1)?;
    assert_eq!(counts.iter().map(|it| it.1).sum::<u64>(), n_noted);
    assert!(!String::from_utf8_lossy(&file).contains("folio_refresh_token"));

    let other = Server::start(engine).await?;
    other.clock.advance_ms(3_600_000);
    let done = moved(&other, &file, None)?;
    assert!(done.left_out.is_empty(), "{:?}", done.left_out);
    assert_eq!(done.n_stored, n_noted);
    for path in READ {
        let request = format!("admin GET {path}");
        assert_eq!(other.asked(&request, 200).await?, server.asked(&request, 200).await?, "{path}");
    }
    // A second import adds nothing.
    assert_eq!(moved(&other, &file, None)?.n_stored, n_noted);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_moves() -> Result<(), Failure> {
    for engine in Engine::all() {
        check(engine).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_interfaces_are_read() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    server.asked("admin GET /groups", 200).await?;
    // Items before their holdings: a record that refers to a later one is tried again.
    let answer = format!(
        r#"{{"items": [{ITEM}], "totalRecords": 1}} {{"holdingsRecords": [{HOLDINGS}], "totalRecords": 1}}
        {{"instances": [{INSTANCE}], "totalRecords": 1}} {{"shoes": []}} {{"path": "/shoes", "record": {{}}}}"#
    );
    let done = moved(&server, answer.as_bytes(), None)?;
    assert_eq!((done.n_stored, done.left_out.len()), (3, 2), "{:?}", done.left_out);
    let done = moved(&server, format!("[{USER}]").as_bytes(), Some("/users"))?;
    assert_eq!(done.n_stored, 1);
    let done = moved(
        &server,
        br#"{"username": "no-group", "patronGroup": "00000000-0000-4000-8000-000000000099"}"#,
        Some("/users"),
    )?;
    assert_eq!((done.n_stored, done.left_out.len()), (0, 1));
    assert!(moved(&server, b"{\"users\": [", None).is_err());
    Ok(())
}
