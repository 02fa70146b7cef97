//! `dataverse-deposit`: the life of a deposit in five calls, as the published `JMeter` plan sends them: a collection is
//! created, a dataset in it, a file is uploaded, and both are deleted. A hundred users begin one after the other and do
//! this ten times each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use clap::Args;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::scicat::single;
use super::token::token_header;
use super::{CommonArgs, Scale, seconds};
use crate::client::{Answer, Request};
use crate::error::BenchError;
use crate::generate::random::hash;
use crate::load::{Group, Load, Loops, Script, Step, User, Work};
use crate::published;
use crate::result::StepKind;
use crate::runner::{Finished, Runner};
use crate::stop::Stop;
use crate::target::Target;
use crate::verdict::thousands;

/// The calls, by their place in [`Script::flows`].
const CREATE_COLLECTION: usize = 0;
const CREATE_DATASET: usize = 1;
const UPLOAD: usize = 2;
const DELETE_DATASET: usize = 3;
const DELETE_COLLECTION: usize = 4;
const FLOWS: [&str; 5] = [
    "create a collection",
    "create a dataset",
    "upload a file",
    "delete the dataset",
    "delete the collection",
];
/// Separates the parts of an upload; files of random bytes do not contain it.
const BOUNDARY: &str = "pinakes-bench-8d1f0c54b2a94e63";
const KEY: HeaderName = HeaderName::from_static("x-dataverse-key");
/// Larger files are uploaded by fewer users, once each: the client holds a file in memory for each of them.
const LARGE_BYTES: usize = 10_000_000;
const LARGE_USERS: usize = 8;

/// Options of the scenario.
#[derive(Clone, Debug, Args)]
pub struct DataverseDepositArgs {
    /// Server, scale and report.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Environment variable with the API token of a user who may create collections.
    #[arg(long, value_name = "NAME")]
    pub token_env: String,
    /// Alias of the collection under which the run makes its own.
    #[arg(long, default_value = "root")]
    pub parent: String,
    /// Users. Default: 100, or 8 with files above 10 MB.
    #[arg(long)]
    pub users: Option<usize>,
    /// How often each user makes a deposit. Default: 10, with files above 10 MB once.
    #[arg(long)]
    pub loops: Option<u64>,
    /// Time over which the users begin, in seconds.
    #[arg(long, default_value_t = 1.0)]
    pub ramp_up_s: f64,
    /// Sizes of the uploaded file, in bytes. Default: by scale, 1000, or 1000,1000000,100000000.
    #[arg(long, value_delimiter = ',')]
    pub file_bytes: Vec<usize>,
}

impl DataverseDepositArgs {
    fn file_bytes(&self) -> Vec<usize> {
        match (self.file_bytes.is_empty(), self.common.scale) {
            (false, _) => self.file_bytes.clone(),
            (true, Scale::Quick) => vec![1000],
            (true, Scale::Seed | Scale::Full) => vec![1000, 1_000_000, 100_000_000],
        }
    }

    fn users(&self, file_bytes: usize) -> usize {
        self.users.unwrap_or(if file_bytes > LARGE_BYTES { LARGE_USERS } else { 100 }).max(1)
    }

    fn loops(&self, file_bytes: usize) -> u64 {
        self.loops.unwrap_or(if file_bytes > LARGE_BYTES { 1 } else { 10 }).max(1)
    }
}

/// Runs the scenario and writes its report.
pub async fn run(args: &DataverseDepositArgs, stop: &Stop) -> Result<Finished, BenchError> {
    let headers = headers(&args.token_env)?;
    let ramp_up = seconds("--ramp-up-s", args.ramp_up_s)?;
    let title = "Dataverse: collection, dataset, upload and two deletions";
    let mut runner = args.common.begin("dataverse-deposit", title, stop).await?;
    let deposits = Deposits {
        target: Arc::clone(&runner.target),
        tag: format!("bench{:08x}", hash(args.common.seed, u64::from(std::process::id())) >> 32),
        headers,
        parent: args.parent.clone(),
        left: Arc::default(),
    };
    let outcome = run_on(args, &mut runner, &deposits, ramp_up).await;
    let n_left = deposits.clean().await;
    if n_left > 0 {
        runner.note(format!(
            "{n_left} collections could not be removed; their aliases begin with {}",
            deposits.tag
        ));
    }
    Ok(runner.finish(outcome))
}

async fn run_on(
    args: &DataverseDepositArgs,
    runner: &mut Runner,
    deposits: &Deposits,
    ramp_up: Duration,
) -> Result<(), BenchError> {
    deposits.try_one().await?;
    for file_bytes in args.file_bytes() {
        let (n_users, n_loops) = (args.users(file_bytes), args.loops(file_bytes));
        let size = format!("files of {} bytes", thousands(file_bytes as u64));
        let plan =
            step(runner, format!("{n_users} users, {n_loops} deposits each, {size}"), n_users, file_bytes);
        let load = Load::Closed { ramp_up, loops: Loops::PerUser(n_loops), think: Duration::ZERO };
        let script = deposits.script(file_bytes, args.common.seed);
        let plan =
            Step { warmup: Duration::ZERO, groups: vec![group(n_users, load, script.clone())], ..plan };
        let published = (n_users == 100 && n_loops == 10).then(published::dataverse_deposit);
        runner.measure(&plan, StepKind::Closed, published).await?;
        // The plan is over in seconds, most of them its beginning. The same users for as long as a step takes:
        let steady = step(runner, format!("{n_users} users, steadily, {size}"), n_users, file_bytes);
        let steady = Step { groups: vec![group(n_users, Load::closed(Loops::UntilEnd), script)], ..steady };
        runner.measure(&steady, StepKind::Closed, None).await?;
        deposits.clean().await;
    }
    Ok(())
}

fn step(runner: &Runner, name: String, n_users: usize, file_bytes: usize) -> Step {
    let how = if name.contains("steadily") { "steady" } else { "plan" };
    let labels = [("users", n_users.to_string()), ("bytes", file_bytes.to_string()), ("how", how.to_owned())];
    Step {
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        name,
        warmup: runner.timing.warmup,
        measured: runner.timing.measured,
        groups: Vec::new(),
    }
}

fn group(connections: usize, load: Load, script: Script) -> Group {
    Group { name: String::new(), load, connections, work: Work::Script(script) }
}

/// Returns headers with the token of an environment variable.
fn headers(name: &str) -> Result<HeaderMap, BenchError> {
    Ok(HeaderMap::from_iter([(KEY, token_header(name, "")?)]))
}

/// Makes deposits and remembers those not deleted yet.
#[derive(Clone)]
struct Deposits {
    target: Arc<Target>,
    /// Prefix of the aliases of this run's collections.
    tag: String,
    headers: HeaderMap,
    parent: String,
    /// Aliases of collections, each with the number of its dataset once that is known.
    left: Arc<Mutex<BTreeMap<String, Option<u64>>>>,
}

/// Headers of the types of requests, shared by all of them.
struct Headers {
    bare: Arc<HeaderMap>,
    json: Arc<HeaderMap>,
    upload: Arc<HeaderMap>,
}

impl Deposits {
    fn all_headers(&self) -> Headers {
        let with_type = |value: String| {
            let mut headers = self.headers.clone();
            headers.extend(HeaderValue::try_from(value).map(|it| (CONTENT_TYPE, it)));
            Arc::new(headers)
        };
        Headers {
            bare: Arc::new(self.headers.clone()),
            json: with_type("application/json".to_owned()),
            upload: with_type(format!("multipart/form-data; boundary={BOUNDARY}")),
        }
    }

    /// Makes one collection, so that a wrong address, token or parent is reported before anything is
    /// measured.
    async fn try_one(&self) -> Result<(), BenchError> {
        let (alias, headers) = (format!("{}first", self.tag), self.all_headers());
        self.note(&alias, None);
        let answer = single(&self.target, &self.create_collection(&headers, &alias)).await?;
        let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
        match said.as_ref().and_then(|it| it["status"].as_str()) {
            Some("OK") if answer.is_success() => Ok(()),
            Some(_) => Err(BenchError::Preparation {
                what: format!("a collection in {:?}", self.parent),
                done: 0,
                wanted: 1,
                reason: answer.excerpt(),
            }),
            None => Err(BenchError::OtherDialect {
                url: self.target.url("/api/dataverses"),
                expected: "Dataverse (JSON with a status)".to_owned(),
                found: answer.excerpt(),
            }),
        }
    }

    /// Deletes leftovers of interrupted passes. Returns how many collections remain.
    async fn clean(&self) -> usize {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        let headers = self.all_headers();
        let mut n_left = 0;
        for (alias, dataset) in left {
            if let Some(id) = dataset {
                // If it remains, so does its collection, which is counted.
                let _gone = single(&self.target, &self.delete(&headers, &dataset_path(id))).await;
            }
            let answer = single(&self.target, &self.delete(&headers, &collection_path(&alias))).await;
            n_left += usize::from(!answer.is_ok_and(|it| it.is_success() || it.status == 404));
        }
        n_left
    }

    fn note(&self, alias: &str, dataset: Option<u64>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.insert(alias.to_owned(), dataset);
    }

    fn forget(&self, alias: &str) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(alias);
    }

    fn script(&self, file_bytes: usize, seed: u64) -> Script {
        let contents: Vec<u8> = (0..file_bytes.div_ceil(8) as u64)
            .flat_map(|n| hash(seed, n).to_le_bytes())
            .take(file_bytes)
            .collect();
        let (deposits, headers, contents) = (self.clone(), Arc::new(self.all_headers()), Arc::new(contents));
        let step = hash(seed, file_bytes as u64) & 0xffff;
        // Users and passes of the second step count from 0 again; aliases must not be reused.
        let n_passes = Arc::new(AtomicU64::new(0));
        Script {
            flows: FLOWS.iter().map(|it| (*it).to_owned()).collect(),
            body: Arc::new(move |user, _| {
                let n = n_passes.fetch_add(1, Ordering::Relaxed);
                let (deposits, headers, contents) =
                    (deposits.clone(), Arc::clone(&headers), Arc::clone(&contents));
                Box::pin(async move {
                    let alias = format!("{}x{step:04x}x{n}", deposits.tag);
                    deposits.pass(user, &headers, &alias, &contents).await
                })
            }),
        }
    }

    async fn pass(&self, user: &mut User, headers: &Headers, alias: &str, contents: &[u8]) -> Result<(), ()> {
        self.note(alias, None);
        user.send(CREATE_COLLECTION, self.create_collection(headers, alias)).await?;
        let path = self.target.path(&format!("/api/dataverses/{alias}/datasets"));
        let made = user.send(CREATE_DATASET, Request::post(path, &headers.json, dataset(alias))).await?;
        let id = number_of(&made).ok_or(())?;
        self.note(alias, Some(id));
        let path = self.target.path(&format!("/api/datasets/{id}/add"));
        user.send(UPLOAD, Request::post(path, &headers.upload, upload(alias, contents))).await?;
        user.send(DELETE_DATASET, self.delete(headers, &dataset_path(id))).await?;
        user.send(DELETE_COLLECTION, self.delete(headers, &collection_path(alias))).await?;
        self.forget(alias);
        Ok(())
    }

    fn create_collection(&self, headers: &Headers, alias: &str) -> Request {
        let body = json!({
            "name": format!("Collection {alias}"),
            "alias": alias,
            "dataverseContacts": [{"contactEmail": "load@example.org"}],
            "affiliation": "Load Test",
            "description": "Made by a load test.",
            "dataverseType": "LABORATORY",
        });
        let path = self.target.path(&format!("/api/dataverses/{}", self.parent));
        Request::post(path, &headers.json, body.to_string().into())
    }

    fn delete(&self, headers: &Headers, path: &str) -> Request {
        Request { method: Method::DELETE, ..Request::get(self.target.path(path), &headers.bare) }
    }
}

fn dataset_path(id: u64) -> String {
    format!("/api/datasets/{id}")
}

fn collection_path(alias: &str) -> String {
    format!("/api/dataverses/{alias}")
}

/// Returns the number of the object that an answer says was created.
fn number_of(answer: &Answer) -> Option<u64> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    body["data"]["id"].as_u64()
}

/// Returns the smallest dataset that Dataverse accepts: title, author, contact, description, subject.
fn dataset(alias: &str) -> Bytes {
    let one = |name: &str, value: &str| {
        (
            name.to_owned(),
            json!({"typeName": name, "typeClass": "primitive", "multiple": false, "value": value}),
        )
    };
    let compound = |name: &str, parts: Vec<(String, Value)>| {
        let value: serde_json::Map<String, Value> = parts.into_iter().collect();
        json!({"typeName": name, "typeClass": "compound", "multiple": true, "value": [value]})
    };
    let fields = json!([
        one("title", &format!("Measurements of {alias}")).1,
        compound("author", vec![one("authorName", "Hypatia"), one("authorAffiliation", "Mouseion")]),
        compound(
            "datasetContact",
            vec![one("datasetContactName", "Hypatia"), one("datasetContactEmail", "load@example.org")]
        ),
        compound("dsDescription", vec![one("dsDescriptionValue", "Made by a load test.")]),
        {"typeName": "subject", "typeClass": "controlledVocabulary", "multiple": true, "value": ["Physics"]},
    ]);
    let blocks = json!({"citation": {"displayName": "Citation Metadata", "fields": fields}});
    json!({"datasetVersion": {"metadataBlocks": blocks}}).to_string().into()
}

/// Returns a form with the file and its description; no two files of a run begin alike.
fn upload(alias: &str, contents: &[u8]) -> Bytes {
    let described =
        json!({"description": "Made by a load test.", "categories": ["Data"], "restrict": "false"});
    let mut body = BytesMut::with_capacity(contents.len() + 1024);
    body.put_slice(
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"jsonData\"\r\n\r\n{described}\r\n\
             --{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{alias}.bin\"\r\n\
             content-type: application/octet-stream\r\n\r\n"
        )
        .as_bytes(),
    );
    let begin = body.len();
    body.put_slice(contents);
    let n_own = alias.len().min(contents.len());
    body[begin..begin + n_own].copy_from_slice(&alias.as_bytes()[alias.len() - n_own..]);
    body.put_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body.freeze()
}
