//! Blocks within datasets: files are included whole, in part or not at all, as requested.

use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

const DATASET: &str = r#"{"type":"raw","ownerGroup":"group1","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS","pid":"PID.pfx/1"}"#;
/// More files than a chunk holds.
const N_FILES: usize = 1_000;

async fn with_files(engine: Engine) -> Result<Server, Failure> {
    let server = Server::start(engine, site()).await?;
    assert_eq!(server.json(&format!("ingestor POST /api/v3/datasets\n{DATASET}")).await?.0, 201);
    let files: Vec<Value> = (0..N_FILES)
        .map(|it| json!({"path": format!("{it}.nxs"), "size": it, "time": "2020-01-15T08:00:00Z"}))
        .collect();
    for size in [1, 2] {
        let block = json!({"datasetId": "PID.pfx/1", "size": size, "dataFileList": files});
        assert_eq!(server.json(&format!("user1 POST /api/v3/origdatablocks\n{block}")).await?.0, 201);
    }
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn included_files_are_shown_as_asked() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = with_files(engine).await?;
        for path in ["datasets/PID.pfx%2F1?filter=", "datasets/findOne?filter=", "datasets?filter="] {
            let asked = |scope: &str| {
                format!(
                    r#"user1 GET /api/v3/{path}{{"include":[{{"relation":"origdatablocks","scope":{scope}}}],"fields":["pid"]}}"#
                )
            };
            let first = |answer: Value| if answer.is_array() { answer[0].clone() } else { answer };
            let whole = first(server.json(&asked("{}")).await?.1);
            assert_eq!(whole["pid"], "PID.pfx/1", "{path}");
            let blocks = whole["origdatablocks"].as_array().ok_or("no blocks")?;
            assert_eq!(blocks.len(), 2, "{path}");
            for block in blocks {
                let files = block["dataFileList"].as_array().ok_or("no files")?;
                assert_eq!(files.len(), N_FILES);
                assert!(
                    files
                        .iter()
                        .enumerate()
                        .all(|(n, it)| it["path"] == format!("{n}.nxs") && it["_id"].is_string())
                );
            }
            let parts = first(server.json(&asked(r#"{"fields":["size","dataFileList.path"]}"#)).await?.1);
            let block = &parts["origdatablocks"][1];
            let files = block["dataFileList"].as_array().ok_or("no files")?;
            assert_eq!((block["size"].as_i64(), files.len()), (Some(2), N_FILES));
            assert_eq!(files[N_FILES - 1], json!({"path": format!("{}.nxs", N_FILES - 1)}));
            let without = first(server.json(&asked(r#"{"fields":{"dataFileList":false}}"#)).await?.1);
            assert_eq!(without["origdatablocks"][0].get("dataFileList"), None);
            let only =
                first(server.json(&asked(r#"{"fields":["dataFileList"],"limits":{"limit":1}}"#)).await?.1);
            let blocks = only["origdatablocks"].as_array().ok_or("no blocks")?;
            assert_eq!((blocks.len(), blocks[0].get("size")), (1, None));
            assert_eq!(blocks[0]["dataFileList"].as_array().map(Vec::len), Some(N_FILES));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_are_listed_in_parts() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = with_files(engine).await?;
        let filter = r#"user1 GET /api/v3/origdatablocks?filter={"fields":["dataFileList.size"]}"#;
        let (_, blocks) = server.json(filter).await?;
        assert_eq!(blocks[1]["dataFileList"][N_FILES - 1], json!({"size": N_FILES - 1}));
        let (_, dataset) = server
            .json("user1 GET /api/v4/datasets/PID.pfx%2F1?include=origdatablocks&include=samples")
            .await?;
        assert_eq!(dataset["origdatablocks"][0]["dataFileList"].as_array().map(Vec::len), Some(N_FILES));
        assert_eq!(dataset["samples"], json!([]));
        let (_, stranger) = server.json("user2 GET /api/v3/datasets/PID.pfx%2F1").await?;
        assert_eq!(stranger["statusCode"], 403);
    }
    Ok(())
}

/// More blocks than are read in the first steps, and than kinds without an index have.
const N_BLOCKS: usize = 600;

/// Returns the paths of the files of a block.
fn paths_of(block: usize) -> Vec<String> {
    (0..1 + block % 2).map(|it| format!("run {block}/scan – {it} (raw).nxs")).collect()
}

fn sorted(paths: &[String]) -> Vec<String> {
    let mut paths = paths.to_vec();
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_many_blocks_are_paged_and_counted() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = Server::start(engine, site()).await?;
        assert_eq!(server.json(&format!("ingestor POST /api/v3/datasets\n{DATASET}")).await?.0, 201);
        for block in 0..N_BLOCKS {
            let files: Vec<Value> = paths_of(block)
                .iter()
                .map(|it| json!({"path": it, "size": 1, "time": "2020-01-15T08:00:00Z"}))
                .collect();
            let body = json!({"datasetId": "PID.pfx/1", "size": block, "dataFileList": files});
            let (status, answer) = server.json(&format!("user1 POST /api/v3/origdatablocks\n{body}")).await?;
            assert_eq!(status, 201, "{block}: {answer}");
        }
        let all: Vec<String> = (0..N_BLOCKS).flat_map(paths_of).collect();
        let with = |text: &str| all.iter().filter(|it| it.contains(text)).cloned().collect::<Vec<String>>();
        let (odd, seventeen) = (with("– 1 ("), with("run 17"));
        for is_indexed in [false, true] {
            if is_indexed {
                assert!(server.tenant.wait_for_indexes(Duration::from_secs(120))?, "the index follows");
            }
            for (fields, order, expected) in [
                ("{}", "", all.clone()),
                (r#"{"text":"– 1 (RAW)"}"#, "", odd.clone()),
                (r#"{"text":"RUN 17"}"#, "", seventeen.clone()),
                (r#"{"size":1}"#, "", paths_of(1)),
                (r#"{"text":"RUN 17"}"#, "dataFileList.path:desc", sorted(&seventeen)),
                ("{}", "dataFileList.path:desc", sorted(&all)),
            ] {
                for (skip, limit) in
                    [(0, 25), (95, 25), (190, 300), (expected.len() - 1, 25), (expected.len(), 5)]
                {
                    let window = format!(r#"{{"skip":{skip},"limit":{limit},"order":"{order}"}}"#);
                    let path =
                        format!("/api/v3/origdatablocks/fullquery/files?fields={fields}&limits={window}");
                    let (status, rows) = server.json(&format!("user1 GET {path}")).await?;
                    let shown: Vec<&str> = rows
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|it| it["dataFileList"]["path"].as_str())
                        .collect();
                    let wanted: Vec<&str> =
                        expected.iter().skip(skip).take(limit).map(String::as_str).collect();
                    assert_eq!((status, shown), (200, wanted), "{path}");
                }
                let path = format!("/api/v3/origdatablocks/fullfacet/files?fields={fields}");
                let (_, counted) = server.json(&format!("user1 GET {path}")).await?;
                assert_eq!(counted, json!([{"all": [{"totalSets": expected.len()}]}]), "{path}");
            }
            // Blocks with such a file come in the order asked for, too.
            let query = r#"fields={"text":"RUN 17"}&limits={"skip":1,"limit":4,"order":"size:desc"}"#;
            let (_, blocks) =
                server.json(&format!("user1 GET /api/v3/origdatablocks/fullquery?{query}")).await?;
            let sizes: Vec<&Value> = blocks.as_array().into_iter().flatten().map(|it| &it["size"]).collect();
            assert_eq!(sizes, [178, 177, 176, 175], "{query}");
        }
    }
    Ok(())
}
