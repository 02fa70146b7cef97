//! The server under test, and its users.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderName, HeaderValue, Method, Uri};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use pinakes_accounts::{Accounts, Clock, Entropy, Secret};
use pinakes_http::{AskedUri, Context, Mount, TenantChoice};
use pinakes_scicat::testing::Testing;
use pinakes_scicat::{KINDS, Settings};
use pinakes_store::{Catalogue, Kind, Limits, Tenant};
use pinakes_test_support::exchange;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::engine::Engine;

/// Any error of a test.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// The callers and their groups.
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

/// Characters that a URI must not contain unescaped.
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

/// A server of its own for a test.
pub(crate) struct Server {
    /// Deleted at the end of the case.
    _folder: tempfile::TempDir,
    pub(crate) mount: Mount,
    pub(crate) clock: Clock,
    pub(crate) tenant: Tenant,
    tokens: BTreeMap<String, String>,
    ids: BTreeMap<String, String>,
}

impl Server {
    pub(crate) async fn start(engine: Engine, settings: Settings) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let limits = Limits::default();
        let kinds: &'static [&'static Kind] = [pinakes_accounts::KINDS, &KINDS].concat().leak();
        let catalogue = Catalogue::open(engine.location(&folder)?, kinds, limits.clone())?;
        let tenant = catalogue.create_tenant("default", "a facility")?;
        let clock = Clock::fixed(BEGIN_MS);
        let account_settings = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret for tests alone")?,
            everyone: Vec::new(),
            clock: clock.clone(),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(account_settings, &limits);
        let (tokens, ids) = users(&accounts, &tenant).await?;
        let context = Context::new(catalogue, accounts, limits, TenantChoice::default());
        let mount = pinakes_scicat::mount(context, settings, Testing::Off);
        Ok(Self { _folder: folder, mount, clock, tenant, tokens, ids })
    }

    /// Replaces each `{{…}}` by its value.
    pub(crate) fn filled(&self, request: &str, answers: &[Value]) -> Result<String, Failure> {
        exchange::filled(request, |before, name| {
            let value = match name.split_once('.') {
                Some((number, field)) => {
                    let answer = exchange::numbered(answers, number)?;
                    let found = answer.pointer(&format!("/{}", field.replace('.', "/")));
                    found.and_then(Value::as_str).ok_or(format!("{name} is no text in {answer}"))?.to_owned()
                }
                None => self.ids.get(name).ok_or(format!("no user {name}"))?.clone(),
            };
            let is_in_path = !before.contains('\n');
            Ok(if is_in_path { utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string() } else { value })
        })
    }

    /// Returns the number of file lists that belong to no block.
    pub(crate) async fn n_staged(&self) -> Result<u64, Failure> {
        let counted = self.tenant.read(pinakes_store::Weight::Point, |view| view.n_staged_lists()).await;
        counted.map_err(|error: pinakes_store::StoreError| error.into())
    }

    /// Returns the token of a user.
    pub(crate) fn token(&self, who: &str) -> &str {
        self.tokens.get(who).map_or("", String::as_str)
    }

    /// Sends a request, writes the answer to `out` and returns its body.
    pub(crate) async fn ask(&self, request: &str, out: &mut String) -> Result<Vec<u8>, Failure> {
        let mut lines = request.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().splitn(3, ' ').collect();
        let [who, method, path] = head.as_slice() else {
            return Err(format!("no request: {request}").into());
        };
        let uri: Uri = utf8_percent_encode(path, NOT_IN_URI).to_string().parse()?;
        let asked = AskedUri(uri.clone());
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
        request.extensions_mut().insert(asked);
        let answer = self.mount.router.clone().oneshot(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        let shown = if head[0].starts_with('~') { "…".into() } else { String::from_utf8_lossy(&body) };
        writeln!(out, "{} {shown}", status.as_str())?;
        Ok(body.to_vec())
    }
}

impl Server {
    /// Sends a request and returns the status and the body, as JSON if it is JSON.
    pub(crate) async fn json(&self, request: &str) -> Result<(u16, Value), Failure> {
        let mut out = String::new();
        let body = self.ask(request, &mut out).await?;
        let status = out.split(' ').next().unwrap_or_default().parse()?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

/// Creates the users, each with a token and an id.
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

/// Returns the settings of a site that uses all of them.
pub(crate) fn site() -> Settings {
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
