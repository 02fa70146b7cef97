//! A server for tests: clock, ids and users are the same in every run.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use pinakes_accounts::{Accounts, Clock, Entropy, NewToken, Password, Secret};
use pinakes_conclave::Settings;
use pinakes_http::{Context, Mount, TenantChoice};
use pinakes_store::{Catalogue, Identifier, Kind, Limits, Tenant};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tower::ServiceExt as _;

use crate::engine::Engine;

/// Any error of a test.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Users with their groups.
const USERS: [(&str, &[&str]); 4] =
    [("editor", &["editors", "staff"]), ("junior", &["editors"]), ("admin", &["admin"]), ("reader", &[])];
/// Their password.
const PASSWORD: &str = "conclave-2026";
/// 2026-02-01T10:00:00.000Z.
const BEGIN_MS: i64 = 1_769_940_000_000;

/// A record of another dialect, identified by its DOI.
pub(crate) static PAPER: Kind =
    Kind { identifiers: &[Identifier { scheme: "doi", path: "doi" }], ..Kind::named("paper") };

pub(crate) struct Server {
    /// Removed when the test is over.
    _folder: tempfile::TempDir,
    mount: Mount,
    pub(crate) clock: Clock,
    pub(crate) tenant: Tenant,
    tokens: BTreeMap<String, String>,
    session: String,
}

impl Server {
    pub(crate) async fn start(engine: Engine) -> Result<Self, Failure> {
        Self::start_with(engine, |it| it).await
    }

    /// Starts a server with other settings.
    pub(crate) async fn start_with(
        engine: Engine,
        change: impl FnOnce(Settings) -> Settings,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let kinds: &'static [&'static Kind] =
            [pinakes_accounts::KINDS, pinakes_conclave::KINDS, &[&PAPER]].concat().leak();
        let limits = Limits::default();
        let location = engine.location(&folder)?;
        let bounds = limits.clone();
        // Opening the store blocks.
        let opened = tokio::task::spawn_blocking(move || {
            let catalogue = Catalogue::open(location, kinds, bounds)?;
            let tenant = catalogue.create_tenant("default", "for tests")?;
            Ok::<_, pinakes_store::StoreError>((catalogue, tenant))
        });
        let (catalogue, tenant) = opened.await??;
        let clock = Clock::fixed(BEGIN_MS);
        let of_accounts = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret for tests alone")?,
            everyone: Vec::new(),
            clock: clock.clone(),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(of_accounts, &limits);
        let (mut tokens, mut session) = (BTreeMap::new(), String::new());
        for (name, groups) in USERS {
            let mut user = accounts.new_user(name);
            user.groups = groups.iter().map(|&it| it.to_owned()).collect();
            let user = accounts.create(&tenant, user, Some(Password::new(PASSWORD)?)).await?;
            let new = NewToken {
                user: user.id.clone(),
                name: "test".to_owned(),
                groups: None,
                expires_at_ms: None,
            };
            let (text, _) = accounts.create_token(&tenant, new).await?;
            tokens.insert(name.to_owned(), text.reveal().to_owned());
            if name == "editor" {
                let claims = json!({"username": user.username, "_id": user.id, "id": user.id});
                let claims = claims.as_object().cloned().unwrap_or_default();
                session = accounts.sign_for("default", claims, 86_400);
            }
        }
        let context = Context::new(catalogue, accounts, limits, TenantChoice::default());
        let settings = Settings {
            editor_groups: vec!["editors".to_owned()],
            scopes: BTreeMap::from([("staff".to_owned(), "staff".to_owned())]),
            ..Settings::default()
        };
        let settings = change(settings);
        let mount = pinakes_conclave::mount(context, settings)?;
        Ok(Self { _folder: folder, mount, clock, tenant, tokens, session })
    }

    /// Returns the token of the browser's forms, computed as in the dialect.
    pub(crate) fn csrf(&self) -> String {
        let digest = Sha256::digest(format!("conclave form {}", self.session));
        digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
    }

    /// Sends a request: caller, method and path; header lines; then the body.
    pub(crate) async fn ask(&self, request: &str) -> Result<(StatusCode, HeaderMap, Vec<u8>), Failure> {
        let mut lines = request.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().splitn(3, ' ').collect();
        let [who, method, path] = head.as_slice() else {
            return Err(format!("no request: {request}").into());
        };
        let mut headers = HeaderMap::new();
        let mut body = String::new();
        for line in lines {
            match line.split_once(": ") {
                Some((name, value)) if body.is_empty() && is_header(name) => {
                    headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
                }
                _ => {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
        self.send(who, method, path, headers, body.trim_end().to_owned().into()).await
    }

    /// Sends raw bytes as `who`.
    pub(crate) async fn send(
        &self,
        who: &str,
        method: &str,
        path: &str,
        mut headers: HeaderMap,
        body: Body,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), Failure> {
        if let Some(token) = self.tokens.get(who) {
            headers.insert("authorization", HeaderValue::try_from(format!("Bearer {token}"))?);
        }
        if who == "browser" {
            headers.insert("cookie", HeaderValue::try_from(format!("ConclaveCookie={}", self.session))?);
        }
        let mut request = Request::builder().method(Method::try_from(method)?).uri(path).body(body)?;
        *request.headers_mut() = headers;
        let (parts, body) = self.mount.router.clone().oneshot(request).await?.into_parts();
        Ok((parts.status, parts.headers, body.collect().await?.to_bytes().to_vec()))
    }
}

/// Returns whether a line that begins with this name is a header field rather than the body.
fn is_header(name: &str) -> bool {
    name.bytes().all(|it| it.is_ascii_lowercase() || it == b'-')
}
