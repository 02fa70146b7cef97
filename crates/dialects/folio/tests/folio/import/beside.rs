//! An import while requests keep writing: its batches end early, and no record is lost or duplicated.

use serde_json::{Value, json};

use super::{AUTHORITIES, authority};
use crate::engine::Engine;
use crate::server::{Failure, Server};

const N_RECORDS: u32 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imports_beside_writers_are_whole() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let file: Vec<String> = (0..N_RECORDS).map(authority).collect();
        let job = server.upload("beside.mrc", file.concat(), AUTHORITIES).await?;
        let write = async {
            for n in 0.. {
                let body = json!({"label": format!("beside {n}")});
                let (status, answer) = server.json(&format!("librarian POST /tags\n{body}")).await?;
                assert_eq!(status, 201, "{answer}");
            }
            Ok::<(), Failure>(())
        };
        let ended = tokio::select! {
            ended = server.ended(&job) => ended?,
            failed = write => return failed,
        };
        assert_eq!((&ended["status"], &ended["progress"]["total"]), (&json!("COMMITTED"), &json!(N_RECORDS)));
        let path = format!(
            "/source-storage/records?recordType=MARC_AUTHORITY&snapshotId={job}&limit=1000&orderBy=order,ASC"
        );
        let (_, list) = server.json(&format!("librarian GET {path}")).await?;
        let orders = list["records"].as_array().into_iter().flatten().map(|it| it["order"].clone());
        assert!(orders.eq((0..N_RECORDS).map(Value::from)), "{} records", list["totalRecords"]);
        let path = format!("/metadata-provider/jobLogEntries/{job}?limit=0");
        let (_, log) = server.json(&format!("librarian GET {path}")).await?;
        assert_eq!(log["totalRecords"], N_RECORDS);
        for (order, first, last) in [("asc", 150, 169), ("desc", 249, 230)] {
            let path = format!("/metadata-provider/jobLogEntries/{job}?offset=150&limit=20&order={order}");
            let (_, log) = server.json(&format!("librarian GET {path}")).await?;
            let entries = log["entries"].as_array().cloned().unwrap_or_default();
            let orders: Vec<&str> =
                entries.iter().filter_map(|it| it["sourceRecordOrder"].as_str()).collect();
            assert_eq!((orders.len(), log["totalRecords"].as_u64()), (20, Some(N_RECORDS.into())), "{log}");
            assert_eq!([orders[0], orders[19]], [first.to_string(), last.to_string()], "{log}");
        }
    }
    Ok(())
}
