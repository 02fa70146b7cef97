//! A server for tests.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use pinakes_accounts::{Accounts, Clock, Entropy, Secret};
use pinakes_blobs::Blobs;
use pinakes_dataverse::moving::MoveParts;
use pinakes_dataverse::{AdminAccess, Settings};
use pinakes_http::{Context, Mount, Neighbour, OnBehalf, TenantChoice};
use pinakes_store::{Catalogue, Kind, Limits, Location, Tenant};
use pinakes_test_support::exchange;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Any error of a test.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// 2026-02-01T10:00:00.000Z.
const BEGIN_MS: i64 = 1_769_940_000_000;
/// The unblock key of admins, because the test requests have no client address.
const UNBLOCK: &str = "unblocked";

pub(crate) struct Server {
    _folder: tempfile::TempDir,
    mount: Mount,
    context: Context,
}

/// What is said of a dataset.
pub(crate) struct Described<'a> {
    pub(crate) title: &'a str,
    pub(crate) author: &'a str,
    pub(crate) description: &'a str,
}

impl Default for Described<'_> {
    fn default() -> Self {
        Self { title: "Tide gauge readings", author: "Finch, Fiona", description: "Hourly." }
    }
}

/// An answer.
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns the location of the tenant: in a folder, or in the cluster that `PINAKES_TEST_POSTGRES` names if
/// `PINAKES_TEST_ENGINE` is `postgresql`.
fn location(folder: &tempfile::TempDir) -> Result<Location, Failure> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if std::env::var("PINAKES_TEST_ENGINE").as_deref() != Ok("postgresql") {
        return Ok(Location::Folder(folder.path().to_owned()));
    }
    let url = std::env::var("PINAKES_TEST_POSTGRES")?;
    let mark = if url.contains('?') { '&' } else { '?' };
    let started = std::time::UNIX_EPOCH.elapsed()?.as_millis();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(Location::Postgres(format!("{url}{mark}catalogue=d{}-{started}-{n}", std::process::id())))
}

fn settings() -> Settings {
    Settings {
        builtin_users_key: "burrito".to_owned(),
        open_deposit: true,
        admin_access: AdminAccess::Key,
        admin_unblock_key: UNBLOCK.to_owned(),
        oai_records: 1,
        ..Settings::default()
    }
}

impl Server {
    pub(crate) fn start() -> Result<Self, Failure> {
        Self::start_with(settings())
    }

    /// Starts a server whose uploads do not wait for their tables.
    pub(crate) fn start_without_patience() -> Result<Self, Failure> {
        Self::start_with(Settings { ingest_wait_s: 0, ..settings() })
    }

    fn start_with(settings: Settings) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let kinds: &'static [&'static Kind] =
            [pinakes_accounts::KINDS, pinakes_dataverse::kinds()].concat().leak();
        let limits = Limits::default();
        let catalogue = Catalogue::open(location(&folder)?, kinds, limits.clone())?;
        catalogue.create_tenant("pinakes", "a repository")?;
        let of_accounts = pinakes_accounts::Settings {
            secret: Secret::from_text("a secret for tests alone")?,
            everyone: Vec::new(),
            clock: Clock::fixed(BEGIN_MS),
            entropy: Entropy::seeded(1),
        };
        let accounts = Accounts::new(of_accounts, &limits);
        let tenants = TenantChoice { default: "pinakes".to_owned(), ..TenantChoice::default() };
        let context = Context::new(catalogue, accounts, limits, tenants).with_blobs(Blobs::in_memory());
        let mount = pinakes_dataverse::mount(context.clone(), settings);
        Ok(Self { _folder: folder, mount, context })
    }

    /// Returns what an export or import needs, and the tenant.
    pub(crate) fn parts(&self) -> Result<(MoveParts, Tenant), Failure> {
        let parts = MoveParts { context: self.context.clone(), settings: settings() };
        Ok((parts, self.context.catalogue().tenant("pinakes")?))
    }

    /// Creates an account of the server, without a user of Dataverse. Returns a web token for it.
    pub(crate) async fn account(&self, name: &str) -> Result<String, Failure> {
        let db = self.context.db_of("pinakes").await.map_err(|error| error.to_string())?;
        let accounts = self.context.accounts();
        let user = accounts.create(db.tenant(), accounts.new_user(name), None).await?;
        let claims = json!({"username": user.username, "_id": user.id, "id": user.id, "sub": user.username});
        Ok(accounts.sign_for("pinakes", claims.as_object().cloned().unwrap_or_default(), 600))
    }

    /// Sends a request as another part of the server does, with the web token of an account.
    pub(crate) async fn inside(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Got, Failure> {
        let headers = HeaderMap::new();
        let asker = OnBehalf { tenant: "pinakes", token: Some(token), headers: &headers };
        let budget = self.context.catalogue().budget();
        let said = Neighbour::of(&self.mount).ask(method, path, body, asker, budget).await?;
        Ok(Got { status: said.status, headers: HeaderMap::new(), body: said.body.to_vec() })
    }

    /// Sends a request; `key` is an API token, empty for a guest.
    pub(crate) async fn send(
        &self,
        key: &str,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Body>,
    ) -> Result<Got, Failure> {
        let mut request = Request::builder().method(method).uri(path).header("host", "data.example.org");
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        if !key.is_empty() {
            request = request.header("x-dataverse-key", key);
        }
        self.answered(request.header("x-dataverse-unblock-key", UNBLOCK).body(body.into())?).await
    }

    /// Sends the requests of a file. Returns the answers, each with the request's first line, status and media type.
    ///
    /// The first word of a request is one of `callers`, which have API tokens, or `-` for nobody. A second line may say
    /// what the caller accepts; the rest is the body. `values` replace `{{name}}`.
    pub(crate) async fn exchanged(
        &self,
        case: &Path,
        callers: &[(&str, &str)],
        values: &[(&str, i64)],
    ) -> Result<String, Failure> {
        let mut out = String::new();
        for text in exchange::requests(&std::fs::read_to_string(case)?) {
            let filled = exchange::filled::<String>(&text, |_, name| {
                let value = values.iter().find(|it| it.0 == name).ok_or("stands for nothing");
                value.map(|it| it.1.to_string()).map_err(|fault| format!("{name} {fault}"))
            })?;
            let (head, mut body) = filled.split_once('\n').unwrap_or((&filled, ""));
            let [who, method, path] = head.split(' ').collect::<Vec<_>>()[..] else {
                return Err(format!("no request: {head}").into());
            };
            let mut request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", "data.example.org")
                .header("content-type", "application/json")
                .header("x-dataverse-unblock-key", UNBLOCK);
            if who != "-" {
                let key = callers.iter().find(|it| it.0 == who).ok_or(format!("no caller {who}"))?.1;
                request = request.header("x-dataverse-key", key);
            }
            if let Some((accept, rest)) = body.strip_prefix("Accept: ").and_then(|it| it.split_once('\n')) {
                request = request.header("accept", accept);
                body = rest;
            }
            let got = self.answered(request.body(Body::from(body.trim_end().to_owned()))?).await?;
            let media_type =
                got.headers.get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
            let line = text.lines().next().ok_or("an empty request")?;
            writeln!(out, "> {line}\n{} {media_type}", got.status.as_str())?;
            writeln!(out, "{}\n", got.text().trim_end())?;
        }
        Ok(out)
    }

    pub(crate) async fn answered(&self, request: Request) -> Result<Got, Failure> {
        let response = self.mount.router.clone().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        Ok(Got { status: parts.status, headers: parts.headers, body })
    }

    pub(crate) async fn json(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Got, Failure> {
        self.send(key, method, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn get(&self, key: &str, path: &str) -> Result<Got, Failure> {
        self.send(key, "GET", path, "", Body::empty()).await
    }

    /// Sends a guest's request with `Accept`.
    pub(crate) async fn accepting(&self, accept: &str, path: &str) -> Result<Got, Failure> {
        let request =
            Request::builder().uri(path).header("host", "data.example.org").header("accept", accept);
        self.answered(request.body(Body::empty())?).await
    }

    /// Creates an account. Returns its API token.
    pub(crate) async fn user(&self, name: &str) -> Result<String, Failure> {
        let body = json!({
            "firstName": name, "lastName": "Doe", "userName": name, "email": format!("{name}@example.org"),
        });
        let path = format!("/api/builtin-users?password={name}-secret1&key=burrito");
        let got = self.json("", "POST", &path, &body).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok(got.json()["data"]["apiToken"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates a superuser. Returns its API token.
    pub(crate) async fn superuser(&self, name: &str) -> Result<String, Failure> {
        let key = self.user(name).await?;
        let got = self.send("", "PUT", &format!("/api/admin/superuser/{name}"), "", "true").await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok(key)
    }

    /// Listens for HTTP until the end of the test. Returns the address.
    pub(crate) async fn listen(&self) -> Result<std::net::SocketAddr, Failure> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = self.mount.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(address)
    }

    /// Creates a collection and a dataset in it. Returns (alias, number and identifier of the dataset).
    pub(crate) async fn dataset(&self, key: &str, alias: &str) -> Result<(i64, String), Failure> {
        let body =
            json!({"name": alias, "alias": alias, "dataverseContacts": [{"contactEmail": "a@example.org"}]});
        let got = self.json(key, "POST", "/api/dataverses/root", &body).await?;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
        self.described(key, alias, &Described::default()).await
    }

    /// Creates a dataset. Returns its number and identifier.
    pub(crate) async fn described(
        &self,
        key: &str,
        alias: &str,
        described: &Described<'_>,
    ) -> Result<(i64, String), Failure> {
        let field = |name: &str, value: Value| {
            let class =
                if value.is_array() && name == "subject" { "controlledVocabulary" } else { "primitive" };
            json!({"typeName": name, "multiple": value.is_array(), "typeClass": class, "value": value})
        };
        let compound = |name: &str, child: &str, value: &str| json!({"typeName": name, "multiple": true, "typeClass": "compound", "value": [{child: field(child, json!(value))}]});
        let fields = json!([
            field("title", json!(described.title)),
            compound("author", "authorName", described.author),
            compound("datasetContact", "datasetContactEmail", "a@example.org"),
            compound("dsDescription", "dsDescriptionValue", described.description),
            field("subject", json!(["Other"])),
        ]);
        let body = json!({"datasetVersion": {
            "license": {"name": "CC0 1.0", "uri": "http://creativecommons.org/publicdomain/zero/1.0"},
            "metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": fields}},
        }});
        let got = self.json(key, "POST", &format!("/api/dataverses/{alias}/datasets"), &body).await?;
        assert_eq!(got.status, StatusCode::CREATED, "{}", got.text());
        let data = &got.json()["data"];
        let pid = data["persistentId"].as_str().unwrap_or_default().to_owned();
        Ok((data["id"].as_i64().unwrap_or_default(), pid))
    }

    /// Uploads a file.
    pub(crate) async fn upload(
        &self,
        key: &str,
        path: &str,
        name: &str,
        bytes: &[u8],
        described: &Value,
    ) -> Result<Got, Failure> {
        self.form(key, "POST", path, name, bytes, described).await
    }

    /// Sends a form with a file.
    pub(crate) async fn form(
        &self,
        key: &str,
        method: &str,
        path: &str,
        name: &str,
        bytes: &[u8],
        described: &Value,
    ) -> Result<Got, Failure> {
        let mut form = Vec::new();
        let head = format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        form.extend(head.as_bytes());
        form.extend(bytes);
        form.extend(
            format!("\r\n--xyz\r\nContent-Disposition: form-data; name=\"jsonData\"\r\n\r\n{described}\r\n--xyz--\r\n").as_bytes(),
        );
        self.send(key, method, path, "multipart/form-data; boundary=xyz", form).await
    }

    pub(crate) async fn publish(&self, key: &str, alias: &str, dataset: i64) -> Result<(), Failure> {
        self.send(key, "POST", &format!("/api/dataverses/{alias}/actions/:publish"), "", Body::empty())
            .await?;
        let path = format!("/api/datasets/{dataset}/actions/:publish?type=major");
        let got = self.send(key, "POST", &path, "", Body::empty()).await?;
        assert_eq!(got.status, StatusCode::OK, "{}", got.text());
        Ok(())
    }
}
