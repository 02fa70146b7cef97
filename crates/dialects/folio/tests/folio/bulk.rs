//! Files of authorities, one per line: good lines are stored, bad ones are returned with the reason.

use std::fs;
use std::path::Path;

use http::HeaderMap;
use serde_json::json;

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Lines of every type; the answers are in the files beside it.
const FILE: &str = "tests/data/bulk/authorities.jsonl";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_authorities_are_stored_line_by_line() -> Result<(), Failure> {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let (_, given) =
            server.json("librarian GET /data-import/uploadUrl?filename=authorities.jsonl").await?;
        let [key, upload] = ["key", "uploadId"].map(|it| given[it].as_str().unwrap_or_default().to_owned());
        let whole = fs::read(&input)?;
        // The two parts are split within a line.
        let (first, second) = whole.split_at(100);
        for (number, part) in [(1, first), (2, second)] {
            let path = format!("/data-import/uploadParts/diku/{upload}/{number}");
            let (status, _, _) =
                server.send("nobody", "PUT", &path, HeaderMap::new(), part.to_vec().into()).await?;
            assert_eq!(status.as_u16(), 200);
        }
        let request = json!({"recordsFileName": key});
        let load = format!("librarian POST /authority-storage/authorities/bulk\n{request}");
        // The second time every authority exists and replaces itself.
        for _ in 0..2 {
            let (status, answer) = server.json(&load).await?;
            let expected = json!({
                "errorsNumber": 5,
                "errorRecordsFileName": format!("{key}_failedEntities"),
                "errorsFileName": format!("{key}_errors"),
            });
            assert_eq!((status, answer), (200, expected));
        }
        let (_, list) = server
            .json("reader GET /authority-storage/authorities?query=cql.allRecords=1 sortby naturalId")
            .await?;
        let ids = list["authorities"].as_array().into_iter().flatten().map(|it| it["naturalId"].clone());
        assert_eq!(ids.collect::<Vec<_>>(), ["n1", "n2", "n9"], "{list}");
        for (ending, golden) in [("failedEntities", "authorities.refused"), ("errors", "authorities.out")] {
            let path = format!("librarian GET /data-import/uploadedFiles?key={key}_{ending}");
            let (status, _, bytes) = server.ask(&path).await?;
            let golden = input.with_file_name(golden);
            assert_eq!(status.as_u16(), 200);
            if std::env::var_os("BLESS").is_some() {
                fs::write(&golden, &bytes)?;
            }
            assert_eq!(String::from_utf8(bytes)?, fs::read_to_string(&golden)?, "{}", golden.display());
        }
    }
    Ok(())
}
