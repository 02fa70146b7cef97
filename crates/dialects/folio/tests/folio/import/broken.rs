//! Every broken file of the corpus as an upload: each record is imported or reported with its number, its position and
//! the reason, and its bytes are kept.
//!
//! `tests/data/broken.out` contains the result of each file; `BLESS=1` rewrites it: read the diff before the commit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{AUTHORITIES, BIBS, HOLDINGS};
use crate::engine::Engine;
use crate::server::{Failure, Server};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use pinakes_marc::{Encoding, Format, RecordKind, parse, records, sniff};
use pinakes_test_support::collection;

const OUT: &str = "tests/data/broken.out";

/// Returns the profile that fits the first readable record of a file.
fn profile(format: Format, data: &[u8]) -> &'static str {
    let kinds = records(format, data)
        .filter_map(|raw| Some(parse(format, Encoding::Leader, raw).record?.leader.kind()));
    let mut kinds = kinds.filter_map(|kind| match kind {
        RecordKind::Authority => Some(AUTHORITIES),
        RecordKind::Holdings => Some(HOLDINGS),
        RecordKind::Bibliographic => Some(BIBS),
        _ => None,
    });
    kinds.next().unwrap_or(BIBS)
}

impl Server {
    /// Returns the bytes of a job's records, by position.
    async fn kept(&self, job: &str) -> Result<BTreeMap<u64, Vec<u8>>, Failure> {
        let mut kept = BTreeMap::new();
        for kind in ["MARC_BIB", "MARC_AUTHORITY", "MARC_HOLDING"] {
            let path = format!("/source-storage/records?recordType={kind}&snapshotId={job}&limit=1000");
            let (status, list) = self.json(&format!("librarian GET {path}")).await?;
            assert_eq!(status, 200, "{list}");
            for record in list["records"].as_array().into_iter().flatten() {
                let raw = &record["rawRecord"];
                let bytes = match raw["contentBase64"].as_str() {
                    Some(coded) => BASE64_STANDARD.decode(coded)?,
                    None => raw["content"].as_str().unwrap_or_default().as_bytes().to_vec(),
                };
                let order = record["order"].as_u64().ok_or("a record without order")?;
                assert!(kept.insert(order, bytes).is_none(), "two records at {order} in {job}");
            }
        }
        Ok(kept)
    }

    /// Imports a file, checks that nothing of it is lost, and returns the result.
    async fn outcome(&self, name: &str, data: &[u8]) -> Result<String, Failure> {
        let format = sniff(data).unwrap_or(Format::Iso2709);
        let profile = profile(format, data);
        let job = self.upload(name, data.to_vec(), profile).await?;
        let ended = self.ended(&job).await?;
        let (_, log) =
            self.json(&format!("librarian GET /metadata-provider/jobLogEntries/{job}?limit=1000")).await?;
        let told = |name: &'static str| {
            let entries = log["entries"].as_array().into_iter().flatten();
            entries.filter_map(move |it| it[name].as_str().filter(|it| !it.is_empty()))
        };
        let status = ended["status"].as_str().unwrap_or_default();
        let profile = ended["jobProfileInfo"]["name"].as_str().unwrap_or_default();
        let mut out = format!("{name}: {profile}: {status}, {} records", ended["progress"]["total"]);
        if let Some(status) = ended["errorStatus"].as_str() {
            write!(out, ", {status}")?;
        }
        out.push('\n');
        for error in told("error") {
            writeln!(out, "    {error}")?;
        }
        for warning in told("warning") {
            writeln!(out, "    imported, but {warning}")?;
        }
        let (status, _, file) = self.ask(&format!("librarian GET /data-import/uploadedFiles/{job}")).await?;
        assert!(status == 200 && file == data, "{name}: the upload is not what was sent");
        let kept = self.kept(&job).await?;
        if ended["errorStatus"].is_string() {
            assert!(kept.is_empty() && 0 < told("error").count(), "{name}: says why, stores nothing");
            return Ok(out);
        }
        let sent: BTreeMap<u64, Vec<u8>> =
            (0..).zip(records(format, data).map(|it| it.bytes.to_vec())).collect();
        assert!(kept == sent, "{name}: {} records sent, {} kept, or not the same", sent.len(), kept.len());
        assert_eq!(ended["progress"]["total"], sent.len(), "{name}");
        Ok(out)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_broken_file_is_accounted_for() -> Result<(), Failure> {
    let Some(folder) = collection("marc/broken") else { return Ok(()) };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
        if name != "README.md" {
            files.push((name, fs::read(&path)?));
        }
    }
    files.sort();
    assert!(150 < files.len(), "the folder of broken files has {} only", files.len());
    for engine in Engine::all() {
        let server = Server::start(engine).await?;
        let mut out = String::new();
        for (name, data) in &files {
            out.push_str(&server.outcome(name, data).await?);
        }
        assert_eq!(server.tenant("diku")?.check()?, Vec::<String>::new(), "{engine:?}");
        if std::env::var_os("BLESS").is_some() && engine == Engine::Sqlite {
            fs::write(root.join(OUT), &out)?;
        }
        let wanted = fs::read_to_string(root.join(OUT)).unwrap_or_default();
        let difference = wanted.lines().zip(out.lines()).find(|(wanted, found)| wanted != found);
        assert!(wanted == out, "{OUT} differs on {engine:?}: {difference:#?}");
    }
    Ok(())
}
