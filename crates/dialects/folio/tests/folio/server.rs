//! A server for tests, with the same clock, ids and users in every run.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pinakes_accounts::{Accounts, Clock, Entropy, Password, Secret};
use pinakes_folio::Settings;
use pinakes_http::{Context, Mount, TenantChoice};
use pinakes_store::{Catalogue, Kind, Limits, Tenant};
use serde_json::Value;

use crate::engine::Engine;

/// Any error of a test.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// The users of the tenant `diku`, with the groups that stand for their roles.
pub(crate) const USERS: [(&str, &[&str]); 5] = [
    ("admin", &["admin"]),
    ("librarian", &["librarian"]),
    ("desk", &["desk"]),
    ("reader", &["reader"]),
    ("stranger", &[]),
];
/// The admin of the default tenant.
pub(crate) const KEEPER: &str = "keeper";
/// The users with a password.
const LOGGING_IN: [&str; 2] = ["admin", "librarian"];
/// Their password.
const PASSWORD: &str = "folio-2026";

/// 2026-02-01T10:00:00.000Z.
const BEGIN_MS: i64 = 1_769_940_000_000;

/// Characters that must be encoded in a URI.
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

pub(crate) struct Server {
    /// Deletes the folder at the end of the test.
    _folder: tempfile::TempDir,
    catalogue: Catalogue,
    pub(crate) mount: Mount,
    pub(crate) clock: Clock,
    tokens: BTreeMap<String, (String, String)>,
}

impl Server {
    /// Starts a server with the tenants `pinakes` (the default) and `diku`.
    pub(crate) async fn start(engine: Engine) -> Result<Self, Failure> {
        Self::start_with(engine, Limits::default(), site()).await
    }

    /// Starts it with limits and settings given by the test.
    pub(crate) async fn start_with(
        engine: Engine,
        limits: Limits,
        settings: Settings,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let location = engine.location(&folder)?;
        let kinds: &'static [&'static Kind] =
            [pinakes_accounts::KINDS, pinakes_folio::kinds()].concat().leak();
        let catalogue = Catalogue::open(location, kinds, limits.clone())?;
        let first = catalogue.create_tenant("pinakes", "keeps the others")?;
        let tenant = catalogue.create_tenant("diku", "a library")?;
        let clock = Clock::fixed(BEGIN_MS);
        let of_accounts = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret for tests alone")?,
            everyone: Vec::new(),
            clock: clock.clone(),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(of_accounts, &limits);
        let mut tokens = BTreeMap::new();
        for (name, groups) in USERS {
            tokens.insert(
                name.to_owned(),
                (tenant.name().to_owned(), add(&accounts, &tenant, name, groups).await?),
            );
        }
        let token = add(&accounts, &first, KEEPER, &["admin"]).await?;
        tokens.insert(KEEPER.to_owned(), (first.name().to_owned(), token));
        let tenants = TenantChoice { default: "pinakes".to_owned(), ..TenantChoice::default() };
        let context = Context::new(catalogue.clone(), accounts, limits, tenants);
        let mount = pinakes_folio::mount(context, settings);
        Ok(Self { _folder: folder, catalogue, mount, clock, tokens })
    }

    /// Returns the data of a tenant.
    pub(crate) fn tenant(&self, name: &str) -> Result<Tenant, Failure> {
        Ok(self.catalogue.tenant(name)?)
    }

    /// Returns the tenant and the token of a user.
    pub(crate) fn token(&self, who: &str) -> Option<&(String, String)> {
        self.tokens.get(who)
    }

    /// Sends a request as the user in its first word; header lines follow the first line, then the body.
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
                Some((name, value)) if body.is_empty() && !line.starts_with(['{', '[', '"']) => {
                    headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
                }
                _ => {
                    if !body.is_empty() {
                        body.push('\n');
                    }
                    body.push_str(line);
                }
            }
        }
        self.send(who, method, path, headers, body.into()).await
    }

    /// Sends a request and returns the JSON of the answer, null if there is none.
    ///
    /// Panics: the answer has another status.
    pub(crate) async fn asked(&self, request: &str, status: u16) -> Result<Value, Failure> {
        let (found, _, body) = self.ask(request).await?;
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(found.as_u16(), status, "{request}: {text}");
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Sends arbitrary bytes as `who`.
    pub(crate) async fn send(
        &self,
        who: &str,
        method: &str,
        path: &str,
        mut headers: HeaderMap,
        body: Body,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), Failure> {
        let uri: Uri = utf8_percent_encode(path, NOT_IN_URI).to_string().parse()?;
        let uri = self.mount.path_rules.rewrite(&uri).unwrap_or(uri);
        let (tenant, token) = self.tokens.get(who).cloned().unwrap_or(("diku".to_owned(), String::new()));
        headers.entry("x-okapi-tenant").or_insert(HeaderValue::try_from(tenant)?);
        if !token.is_empty() {
            headers.insert("x-okapi-token", HeaderValue::try_from(token)?);
        }
        let mut request = Request::builder().method(Method::try_from(method)?).uri(uri).body(body)?;
        request.headers_mut().extend(headers);
        let answer = self.mount.answer(request, self.catalogue.budget()).await;
        let (parts, body) = answer.into_parts();
        Ok((parts.status, parts.headers, body.collect().await?.to_bytes().to_vec()))
    }
}

/// Settings with low limits, so that tests reach them.
pub(crate) fn site() -> Settings {
    Settings {
        batch_records: 3,
        oai_page_records: 2,
        cql_depth: 8,
        sample_locations: true,
        ..Settings::default()
    }
}

/// Creates a user with a long-lived token, and a password if the user logs in.
async fn add(accounts: &Accounts, tenant: &Tenant, name: &str, groups: &[&str]) -> Result<String, Failure> {
    let mut user = accounts.new_user(name);
    user.groups = groups.iter().map(|it| (*it).to_owned()).collect();
    // Hashing is slow; most users only use a token.
    let password = LOGGING_IN.contains(&name).then(|| Password::new(PASSWORD)).transpose()?;
    let user = accounts.create(tenant, user, password).await?;
    let claims = [
        ("user_id".to_owned(), Value::from(user.uuid.to_string())),
        ("tenant".to_owned(), Value::from(tenant.name())),
    ];
    Ok(accounts.sign(tenant.name(), &claims.into_iter().collect()))
}
