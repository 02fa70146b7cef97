//! Access rights: for each route the status that each caller gets, according to the contract (sections 2, 3, 7, 8).
//!
//! `tests/data/roles.txt` begins with the callers' names; each further pair of lines is a request and the statuses in
//! the same order. The records that a request names are created anew for every caller: `{dataset}` is the pid of a
//! dataset of group1 that group3 may read, `{public}` that of a published one; [`made`] creates the others likewise.
//! `BLESS=1 cargo test --test exchange roles` rewrites the statuses: compare the differences with the contract.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::engine::Engine;
use crate::server::{Failure, Server, site};

/// The start of a raw dataset; the fields that differ are appended.
const RAW: &str = r#""type":"raw","owner":"o","contactEmail":"a@b.ch","sourceFolder":"/data/1","creationTime":"2020-01-15T08:00:00Z","principalInvestigator":"P I","creationLocation":"/ESS""#;
/// A list of one file.
const FILES: &str = r#""size":1,"dataFileList":[{"path":"a","size":1,"time":"2020-01-15T08:00:00Z"}]"#;

/// Builds requests of the table, each with records of its own.
struct Maker<'a> {
    server: &'a Server,
    n: u32,
}

impl Maker<'_> {
    /// Returns the record that `{name}` stands for, or a piece of a body.
    async fn made(&mut self, name: &str) -> Result<String, Failure> {
        self.n += 1;
        let n = self.n;
        let dataset = |more: &str| {
            format!(
                r#"ingestor POST /api/v3/datasets{}{{{RAW},"ownerGroup":"group1","accessGroups":["group3"]{more}}}"#,
                '\n'
            )
        };
        let (request, field) = match name {
            "n" => return Ok(n.to_string()),
            "raw" => return Ok(RAW.to_owned()),
            "files" => return Ok(FILES.to_owned()),
            "user1" | "user2" => return self.server.filled(&format!("{{{{{name}}}}}"), &[]),
            "dataset" => (dataset(""), "pid"),
            "public" => (dataset(r#","isPublished":true"#), "pid"),
            "block" | "datablock" | "attachment" => {
                let (_, made) = self.server.json(&dataset("")).await?;
                let pid = text(&made, "pid")?;
                match name {
                    "block" => (format!("ingestor POST /api/v3/origdatablocks\n{{\"datasetId\":\"{pid}\",{FILES}}}"), "_id"),
                    "datablock" => (
                        format!(
                            "ingestor POST /api/v3/datablocks\n{{\"datasetId\":\"{pid}\",\"archiveId\":\"a{n}\",\"packedSize\":1,\"version\":\"1\",{FILES}}}"
                        ),
                        "_id",
                    ),
                    _ => (
                        format!(
                            "admin POST /api/v4/attachments\n{{\"caption\":\"c\",\"ownerGroup\":\"group1\",\"accessGroups\":[\"group3\"],\"isPublished\":false,\"thumbnail\":\"data:,\",\"relationships\":[{{\"targetId\":\"{pid}\",\"targetType\":\"dataset\"}}]}}"
                        ),
                        "aid",
                    ),
                }
            }
            "proposal" => (
                format!("admin POST /api/v3/proposals\n{{\"proposalId\":\"p{n}\",\"email\":\"a@b.ch\",\"title\":\"T\",\"ownerGroup\":\"group1\",\"accessGroups\":[\"group3\"]}}"),
                "proposalId",
            ),
            "publicsample" => (
                "admin POST /api/v3/samples\n{\"sampleName\":\"s\",\"ownerGroup\":\"group1\",\"isPublished\":true}".to_owned(),
                "sampleId",
            ),
            "registered" => (
                "user1 POST /api/v3/publisheddata\n{\"creator\":[\"A\"],\"publisher\":\"P\",\"publicationYear\":2020,\"title\":\"t\",\"abstract\":\"x\",\"dataDescription\":\"d\",\"resourceType\":\"raw\",\"pidArray\":[],\"status\":\"registered\"}".to_owned(),
                "doi",
            ),
            "sample" => (
                "admin POST /api/v3/samples\n{\"sampleName\":\"s\",\"ownerGroup\":\"group1\",\"accessGroups\":[\"group3\"]}".to_owned(),
                "sampleId",
            ),
            "instrument" => {
                (format!("admin POST /api/v3/instruments\n{{\"uniqueName\":\"i{n}\",\"name\":\"I\"}}"), "pid")
            }
            "policy" => (format!("admin POST /api/v3/policies\n{{\"ownerGroup\":\"own{n}\",\"manager\":[\"user2\"]}}"), "_id"),
            "job" => {
                let (_, made) = self.server.json(&dataset("")).await?;
                let pid = text(&made, "pid")?;
                (
                    format!(
                        "user1 POST /api/v4/jobs\n{{\"type\":\"archive\",\"ownerGroup\":\"group1\",\"jobParams\":{{\"datasetList\":[{{\"pid\":\"{pid}\",\"files\":[]}}]}}}}"
                    ),
                    "id",
                )
            }
            "publication" => (
                "user1 POST /api/v4/publisheddata\n{\"title\":\"T\",\"abstract\":\"A\",\"datasetPids\":[],\"metadata\":{\"publisher\":{\"name\":\"P\"}}}".to_owned(),
                "doi",
            ),
            other => return Err(format!("nothing is made for {{{other}}}").into()),
        };
        let (status, made) = self.server.json(&request).await?;
        if status != 201 {
            return Err(format!("{request}: {status} {made}").into());
        }
        text(&made, field)
    }

    /// Builds the request of a line for one caller.
    async fn request(&mut self, who: &str, line: &str) -> Result<String, Failure> {
        let mut filled = format!("{who} ");
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("an open {{")?;
            filled.push_str(before);
            let value = self.made(name).await?;
            let is_in_path = !filled.contains(" {");
            let encoded = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
            filled.push_str(if is_in_path { &encoded } else { &value });
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled.replacen(" {", "\n{", 1))
    }
}

fn text(made: &Value, field: &str) -> Result<String, Failure> {
    made[field].as_str().map(str::to_owned).ok_or_else(|| format!("no {field} in {made}").into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles() -> Result<(), Failure> {
    for engine in Engine::all() {
        roles_on(engine).await?;
    }
    Ok(())
}

async fn roles_on(engine: Engine) -> Result<(), Failure> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/roles.txt");
    let table = fs::read_to_string(&path)?;
    let server = Server::start(engine, site()).await?;
    let mut maker = Maker { server: &server, n: 0 };
    let mut callers: Vec<&str> = Vec::new();
    let (mut out, mut n_rows) = (String::new(), 0);
    for line in table.lines() {
        if line.is_empty() || line.starts_with('#') {
            writeln!(out, "{line}")?;
        } else if callers.is_empty() {
            callers = line.split_whitespace().collect();
            writeln!(out, "{line}")?;
        } else if !line.starts_with(' ') {
            writeln!(out, "{line}")?;
            for who in &callers {
                let request = maker.request(who, line).await?;
                write!(out, "  {}", server.json(&request).await?.0)?;
            }
            writeln!(out)?;
            n_rows += 1;
        }
    }
    assert!(60 < n_rows, "{n_rows} rows");
    if std::env::var_os("BLESS").is_some() {
        return Ok(fs::write(path, out)?);
    }
    for (n, (expected, found)) in table.lines().zip(out.lines()).enumerate() {
        let request = table.lines().nth(n.saturating_sub(1)).unwrap_or_default();
        assert_eq!(found, expected, "roles.txt, line {}: {request}", n + 1);
    }
    assert_eq!(out.lines().count(), table.lines().count());
    Ok(())
}
