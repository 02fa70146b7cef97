//! Files that do not contain valid records: of the wrong type, empty, truncated, compressed, endless garbage.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use pinakes_store::Limits;
use serde_json::{Value, json};

use super::{AUTHORITIES, BIBS, authority};
use crate::engine::Engine;
use crate::server::{Failure, Server, site};

/// Size of one piece of garbage, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Streams meaningless bytes, generated while they are read, so that they are never in memory as a whole.
fn garbage(n_pieces: usize) -> Body {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let pieces = (0..n_pieces).map(move |_| {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        while piece.len() < PIECE_BYTES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            piece.extend_from_slice(&state.to_le_bytes());
        }
        Ok::<_, Infallible>(Bytes::from(piece))
    });
    Body::from_stream(futures_util::stream::iter(pieces))
}

async fn log(server: &Server, job: &str) -> Result<String, Failure> {
    let path = format!("/metadata-provider/jobLogEntries/{job}?errorsOnly=true");
    let (status, log) = server.json(&format!("librarian GET {path}")).await?;
    assert_eq!(status, 200, "{log}");
    Ok(log["entries"][0]["error"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_none_end_their_job() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        for (name, content, reason) in [
            ("empty.mrc", "", "the input is empty"),
            ("words.mrc", "This is no file of records.", "none of ISO 2709"),
            ("packed.mrc", "PK\u{3}\u{4}rest", "packed (zip); unpack it first"),
            ("gzip.mrc", "\u{1f}\u{8b}\u{8}", "none of ISO 2709"),
            ("page.mrc", "<html><body>records</body></html>", "no record was found"),
        ] {
            let job = server.upload(name, content, AUTHORITIES).await?;
            let ended = server.ended(&job).await?;
            assert_eq!(
                (ended["status"].as_str(), ended["errorStatus"].as_str()),
                (Some("ERROR"), Some("FILE_PROCESSING_ERROR")),
                "{name}: {ended}"
            );
            assert_eq!(ended["progress"]["total"], 0);
            let told = log(&server, &job).await?;
            assert!(
                told.contains("File is empty or content is invalid!") && told.contains(reason),
                "{name}: {told}"
            );
            let (_, summary) =
                server.json(&format!("librarian GET /metadata-provider/jobSummary/{job}")).await?;
            assert_eq!(summary["totalErrors"], 1, "{name}: {summary}");
        }
        let body = json!({"fileDefinitions": [{"name": "a.zip"}]});
        let (status, refused) =
            server.json(&format!("librarian POST /data-import/uploadDefinitions\n{body}")).await?;
        assert_eq!(status, 422, "{refused}");
        // Records of another type than the profile's.
        let job = server.upload("wrong.mrc", authority(1), BIBS).await?;
        let ended = server.ended(&job).await?;
        assert_eq!(ended["status"], "ERROR", "{ended}");
        assert_eq!(
            log(&server, &job).await?,
            "Chosen job profile 'Default - Create instance and SRS MARC Bib' does not support 'MARC_AUTHORITY' record type"
        );
        let path = format!("/source-storage/records?recordType=MARC_AUTHORITY&snapshotId={job}");
        let (_, list) = server.json(&format!("librarian GET {path}")).await?;
        assert_eq!(list["totalRecords"], 0);
        // A truncated file: the first record is imported, the second kept with its reason.
        let whole = [authority(7), authority(8)].concat();
        let job = server.upload("cut.mrc", whole[..whole.len() - 60].to_owned(), AUTHORITIES).await?;
        let ended = server.ended(&job).await?;
        assert_eq!((&ended["status"], &ended["progress"]["total"]), (&json!("ERROR"), &json!(2)), "{ended}");
        let told = log(&server, &job).await?;
        let begin = format!("record 2 (byte {}): the input ends inside the record", authority(7).len());
        assert!(told.starts_with(&begin), "{told}");
        let job = server.upload("none.mrc", authority(9), "00000000-0000-4000-8000-000000000000").await?;
        let ended = server.ended(&job).await?;
        assert_eq!(ended["errorStatus"], "PROFILE_SNAPSHOT_CREATING_ERROR");
        assert_eq!(
            log(&server, &job).await?,
            "Job profile with id '00000000-0000-4000-8000-000000000000' was not found"
        );
    }
    Ok(())
}

/// Garbage is received as a stream and refused by its first bytes; 16 MiB stand in for a gigabyte, because debug builds
/// are slow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_refused() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let job = server.upload("garbage.mrc", garbage(64), AUTHORITIES).await?;
        let ended = server.ended(&job).await?;
        assert_eq!(ended["errorStatus"], "FILE_PROCESSING_ERROR", "{ended}");
        assert_eq!(ended["progress"]["total"], 0);
    }
    Ok(())
}

/// Garbage after good records: the records are imported, and after a number of pieces of garbage the file is abandoned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_behind_records_ends_the_job() -> Result<(), Failure> {
    let settings = pinakes_folio::Settings { import_unreadable_records: 40, ..site() };
    let server = Server::start_with(Engine::Sqlite, Limits::default(), settings).await?;
    let good: String = (1..=50).map(authority).collect();
    let bad = "\u{1d}00123 is no record\u{1d}".repeat(400);
    let job = server.upload("half.mrc", good + &bad, AUTHORITIES).await?;
    let ended = server.ended(&job).await?;
    assert_eq!(ended["errorStatus"], "FILE_PROCESSING_ERROR", "{ended}");
    let told = log(&server, &job).await?;
    assert!(told.contains("records in a row could not be read"), "{told}");
    let (_, list) = server.json("librarian GET /authority-storage/authorities?limit=0").await?;
    assert_eq!(list["totalRecords"], 50);
    Ok(())
}

/// An upload beyond the limit is refused while it is received, and nothing of it is kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_beyond_the_bound_is_refused() -> Result<(), Failure> {
    let limits = Limits { stream_body_bytes: 1 << 20, ..Limits::default() };
    for engine in Engine::all() {
        let server = Server::start_with(engine, limits.clone(), site()).await?;
        let body = json!({"fileDefinitions": [{"name": "big.mrc"}]});
        let (_, made) =
            server.json(&format!("librarian POST /data-import/uploadDefinitions\n{body}")).await?;
        let id = made["id"].as_str().unwrap_or_default();
        let file = made["fileDefinitions"][0]["id"].as_str().unwrap_or_default();
        let path = format!("/data-import/uploadDefinitions/{id}");
        let (status, headers, answer) = server
            .send("librarian", "POST", &format!("{path}/files/{file}"), HeaderMap::new(), garbage(64))
            .await?;
        let told = String::from_utf8_lossy(&answer);
        assert_eq!(status, 413, "{told}");
        assert_eq!(headers.get("content-type").and_then(|it| it.to_str().ok()), Some("text/plain"));
        assert!(told.contains("1048576"), "{told}");
        let (_, shown) = server.json(&format!("librarian GET {path}")).await?;
        assert_eq!(shown["fileDefinitions"][0]["status"], "ERROR", "{shown}");
        // The file can be uploaded again.
        let small = Body::from(authority(1));
        let (status, _, answer) = server
            .send("librarian", "POST", &format!("{path}/files/{file}"), HeaderMap::new(), small)
            .await?;
        let shown: Value = serde_json::from_slice(&answer)?;
        assert_eq!((status.as_u16(), &shown["status"]), (200, &json!("LOADED")), "{shown}");
        assert_eq!(server.tenant("diku")?.check()?, Vec::<String>::new(), "{engine:?}");
    }
    Ok(())
}
