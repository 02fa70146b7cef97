//! Exchanges: requests as clients send them, and the answers they get.
//!
//! Each `tests/data/exchange/<resource>/<case>.http` is a run of requests against a server of its own, separated
//! by empty lines; `<case>.out` beside it holds the answers. `BLESS=1 cargo test --test exchange` rewrites the
//! answers: read the diff before the commit.
//!
//! ```text
//! # A comment.
//! user1 POST /api/v3/samples
//! {"ownerGroup": "group1", "sampleName": "Si"}
//!
//! nobody GET /api/v3/samples/{{1.sampleId}}
//! If-None-Match: *
//! ```
//!
//! The first word says who asks (see [`USERS`]); of an answer to `~user1` only the status counts. `{{1.sampleId}}` is a field of the first answer, percent-encoded
//! in paths; `{{user1}}` is the id of that user. Headers follow the first line, the body follows them. The clock
//! begins at 2026-02-01T10:00:00.000Z and goes on by a second before each request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderName, HeaderValue, Method, Uri};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use pinakes_accounts::{Accounts, Clock, Entropy, Secret};
use pinakes_http::{Context, Mount, TenantChoice};
use pinakes_scicat::testing::Testing;
use pinakes_scicat::{KINDS, Settings};
use pinakes_store::{Catalogue, Kind, Limits, Location, Tenant};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Any error of a test.
type Failure = Box<dyn std::error::Error>;

/// Those who ask, with their groups.
const USERS: [(&str, &[&str]); 8] = [
    ("admin", &["admin"]),
    ("user1", &["group1"]),
    ("user2", &["group2"]),
    ("user3", &["group3", "group4"]),
    ("ingestor", &["ingestor"]),
    ("keeper", &["keeper"]),
    ("archiver", &["archiver"]),
    ("remover", &["remover"]),
];

/// 2026-02-01T10:00:00.000Z.
const BEGIN_MS: i64 = 1_769_940_000_000;

/// What a URI must not contain as it is.
const NOT_IN_URI: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'{')
    .add(b'}')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'|');

/// The only function that knows how a server is made and asked.
async fn check(case: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(case)?;
    let server = Server::start().await?;
    let mut answers: Vec<Value> = Vec::new();
    let mut out = String::new();
    for request in requests(&text) {
        let request = server.filled(&request, &answers)?;
        server.clock.advance_ms(1_000);
        writeln!(out, "> {}", request.lines().next().unwrap_or_default())?;
        let body = server.ask(&request, &mut out).await?;
        out.push('\n');
        answers.push(serde_json::from_slice(&body).unwrap_or_default());
    }
    let expected = case.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        return Ok(fs::write(expected, out)?);
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    let line = wanted.lines().zip(out.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| wanted.lines().count().min(out.lines().count()));
    if wanted == out {
        return Ok(());
    }
    Err(format!(
        "{}, line {}:\n  expected {}\n  found    {}",
        expected.display(),
        line + 1,
        wanted.lines().nth(line).unwrap_or("the end"),
        out.lines().nth(line).unwrap_or("the end"),
    )
    .into())
}

/// The requests of a case, without comments.
fn requests(text: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        match (line.trim().is_empty(), list.last_mut()) {
            (true, _) => list.push(String::new()),
            (false, Some(request)) => {
                request.push_str(line);
                request.push('\n');
            }
            (false, None) => {}
        }
    }
    list.retain(|it| !it.is_empty());
    list
}

struct Server {
    /// Removed when the case is over.
    _folder: tempfile::TempDir,
    mount: Mount,
    clock: Clock,
    tokens: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
}

impl Server {
    async fn start() -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let limits = Limits::default();
        let kinds: &'static [&'static Kind] = [pinakes_accounts::KINDS, KINDS].concat().leak();
        let catalogue = Catalogue::open(Location::Folder(folder.path().into()), kinds, limits.clone())?;
        let tenant = catalogue.create_tenant("default", "a facility")?;
        let clock = Clock::fixed(BEGIN_MS);
        let settings = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret for tests alone")?,
            everyone: Vec::new(),
            clock: clock.clone(),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(settings, &limits);
        let (tokens, ids) = users(&accounts, &tenant).await?;
        let context = Context::new(catalogue, accounts, limits, TenantChoice::default());
        let mount = pinakes_scicat::mount(context, site(), Testing::Off);
        Ok(Self { _folder: folder, mount, clock, tokens, ids })
    }

    /// `{{…}}` replaced by what it stands for.
    fn filled(&self, request: &str, answers: &[Value]) -> Result<String, Failure> {
        let (mut filled, mut rest) = (String::new(), request);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("an open {{")?;
            filled.push_str(before);
            let value = match name.split_once('.') {
                Some((index, field)) => {
                    let answer =
                        answers.get(index.parse::<usize>()?.wrapping_sub(1)).ok_or("no such answer")?;
                    let found = answer.pointer(&format!("/{}", field.replace('.', "/")));
                    found.and_then(Value::as_str).ok_or(format!("{name} is no text in {answer}"))?.to_owned()
                }
                None => self.ids.get(name).ok_or(format!("no user {name}"))?.clone(),
            };
            let is_in_path = !filled.contains('\n');
            let encoded = utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string();
            filled.push_str(if is_in_path { &encoded } else { &value });
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Sends a request, writes the answer to `out` and gives its body.
    async fn ask(&self, request: &str, out: &mut String) -> Result<Vec<u8>, Failure> {
        let mut lines = request.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().splitn(3, ' ').collect();
        let [who, method, path] = head.as_slice() else {
            return Err(format!("no request: {request}").into());
        };
        let uri: Uri = utf8_percent_encode(path, NOT_IN_URI).to_string().parse()?;
        let uri = self.mount.path_rules.rewrite(&uri).unwrap_or(uri);
        let mut headers = http::HeaderMap::new();
        let mut body = String::new();
        for line in lines {
            match line.split_once(": ") {
                Some((name, value)) if body.is_empty() && !line.starts_with(['{', '[', '"']) => {
                    headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
                }
                _ => body.push_str(line),
            }
        }
        if let Some(token) = self.tokens.get(who.trim_start_matches('~')) {
            headers.insert(http::header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {token}"))?);
        }
        let mut request =
            Request::builder().method(Method::try_from(*method)?).uri(uri).body(Body::from(body))?;
        request.headers_mut().extend(headers);
        let answer = self.mount.router.clone().oneshot(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let shown = if head[0].starts_with('~') { "…".into() } else { String::from_utf8_lossy(&body) };
        writeln!(out, "{} {shown}", status.as_str())?;
        Ok(body.to_vec())
    }
}

/// The users, each with a token and an id.
async fn users(
    accounts: &Accounts,
    tenant: &Tenant,
) -> Result<(BTreeMap<String, String>, BTreeMap<String, String>), Failure> {
    let (mut tokens, mut ids) = (BTreeMap::new(), BTreeMap::new());
    for (name, groups) in USERS {
        let mut user = accounts.new_user(name);
        user.email = Some(format!("{name}@your.site"));
        user.groups = groups.iter().map(|it| (*it).to_owned()).collect();
        let user = accounts.create(tenant, user, None).await?;
        let claims = [("_id".to_owned(), Value::from(user.id.as_str()))].into_iter().collect();
        tokens.insert(name.to_owned(), accounts.sign_for(tenant.name(), claims, 3_600));
        ids.insert(name.to_owned(), user.id);
    }
    Ok((tokens, ids))
}

/// The settings of a site that uses all of them.
fn site() -> Settings {
    let groups = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    Settings {
        pid_prefix: "PID.pfx".to_owned(),
        doi_prefix: "10.1234".to_owned(),
        delete_groups: groups(&["remover"]),
        create_dataset_privileged_groups: groups(&["ingestor"]),
        create_dataset_with_pid_groups: groups(&["group3"]),
        update_dataset_lifecycle_groups: groups(&["archiver"]),
        proposal_groups: groups(&["keeper"]),
        sample_privileged_groups: groups(&["keeper"]),
        attachment_privileged_groups: groups(&["ingestor"]),
        policy_groups: groups(&["keeper"]),
        create_job_privileged_groups: groups(&["ingestor"]),
        update_job_privileged_groups: groups(&["archiver"]),
        delete_job_groups: groups(&["remover"]),
        proposal_types: groups(&["Beamtime"]),
        frontend_config: r#"{"addDatasetEnabled":true}"#.to_owned(),
        published_data_config: json!({
            "metadataSchema": {
                "type": "object", "required": ["publisher"],
                "properties": {"publicationYear": {"type": "integer"}},
            },
            "uiSchema": {},
        })
        .to_string(),
        ..Settings::default()
    }
}

fn cases() -> Result<Vec<PathBuf>, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/exchange");
    let mut cases = Vec::new();
    for folder in fs::read_dir(root)? {
        for entry in fs::read_dir(folder?.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "http") {
                cases.push(path);
            }
        }
    }
    cases.sort();
    Ok(cases)
}

#[tokio::test]
async fn exchanges() -> Result<(), Failure> {
    let cases = cases()?;
    assert!(!cases.is_empty(), "no cases found: a moved folder would pass silently");
    let mut failures = Vec::new();
    for case in &cases {
        if let Err(failure) = check(case).await {
            failures.push(format!("{}: {failure}", case.display()));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
    Ok(())
}

/// Every operation that the `OpenAPI` document names has a route.
#[tokio::test]
async fn every_documented_operation_is_served() -> Result<(), Failure> {
    let server = Server::start().await?;
    let document = server.mount.openapi.clone();
    let paths = document["paths"].as_object().ok_or("no paths")?;
    let mut n_operations = 0;
    for (path, item) in paths {
        let asked = path.replace(['{', '}'], "");
        for method in item.as_object().into_iter().flat_map(|it| it.keys()) {
            let mut out = String::new();
            let request = format!("nobody {} {asked}\n", method.to_uppercase());
            let body = server.ask(&request, &mut out).await?;
            assert!(!body.starts_with(b"{\"message\":\"Cannot "), "{method} {path} has no route");
            n_operations += 1;
        }
    }
    assert!(200 < n_operations, "{n_operations} operations");
    Ok(())
}
