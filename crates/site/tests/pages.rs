//! The pages tested against fake dialects: the requests to them, on whose behalf, and what is shown.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use pinakes_accounts::{Accounts, Clock, Entropy, Password, Secret, Settings};
use pinakes_http::entrance::TENANT_HEADER;
use pinakes_http::{Context, Entrance, Mount, Neighbour, TenantChoice};
use pinakes_store::{Catalogue, Kind, Limits, Location};
use serde_json::json;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

static KINDS: &[&Kind] = &[&pinakes_accounts::USER, &pinakes_accounts::TOKEN, pinakes_site::KINDS[0]];

/// A site with a fake SciCat, FOLIO, Dataverse and labe.
struct House {
    /// Deleted at the end of the test.
    _folder: tempfile::TempDir,
    catalogue: Catalogue,
    mount: Mount,
    /// How many blocks Dataverse has described.
    n_described: Arc<AtomicUsize>,
}

/// The answer of a page.
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

fn is_signed_in(headers: &HeaderMap) -> bool {
    headers.contains_key("authorization")
}

/// Returns a dataset that everybody sees, or one for signed-in users.
async fn dataset(Path(pid): Path<String>, headers: HeaderMap) -> Response {
    match pid.as_str() {
        "open" => axum::Json(json!({
            "pid": "open", "datasetName": "<b>silica</b>", "description": "</script><script>alert(1)</script>",
            "owner": "Sample, Ada", "creationTime": "2026-01-02T00:00:00Z", "isPublished": true,
            "scientificMetadata": {"T": {"value": 60, "unit": "C"}},
        }))
        .into_response(),
        "closed" if is_signed_in(&headers) => {
            axum::Json(json!({"pid": "closed", "datasetName": "a secret"})).into_response()
        }
        _ => StatusCode::FORBIDDEN.into_response(),
    }
}

/// Lists what the caller may see.
async fn datasets(headers: HeaderMap) -> Response {
    let mut found = vec![json!({"pid": "open", "datasetName": "<b>silica</b>"})];
    if is_signed_in(&headers) {
        found.push(json!({"pid": "closed", "datasetName": "a secret"}));
    }
    axum::Json(found).into_response()
}

async fn check_out(headers: HeaderMap, body: String) -> Response {
    if !is_signed_in(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if body.contains("\"broken\"") {
        let refused = json!({"errors": [{"message": "No item with barcode broken could be found"}]});
        return (StatusCode::UNPROCESSABLE_ENTITY, axum::Json(refused)).into_response();
    }
    axum::Json(json!({"item": {"title": "A Book"}, "dueDate": "2026-02-01T23:59:59.000+00:00"}))
        .into_response()
}

async fn service_points(headers: HeaderMap) -> Response {
    match is_signed_in(&headers) {
        true => axum::Json(json!({"servicepoints": [{"id": "1", "name": "Desk"}]})).into_response(),
        false => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Answers like Dataverse, which refuses tokens that are not its own.
async fn deposit(headers: HeaderMap, request: Request) -> Response {
    if is_signed_in(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let query = request.uri().query().unwrap_or_default();
    if !query.contains("10.5072%2FFK2%2FA") {
        return StatusCode::NOT_FOUND.into_response();
    }
    if request.uri().path().ends_with("/files") {
        let is_bounded = query.contains("&limit=") && request.uri().path().contains("/versions/1.0/");
        let file = json!({"label": "a.csv", "dataFile": {"id": 7, "filesize": 5, "contentType": "text/csv"}});
        let n_files = if is_bounded { 9000 } else { 0 };
        return axum::Json(json!({"status": "OK", "totalCount": n_files, "data": [file]})).into_response();
    }
    if !query.contains("excludeFiles=true") {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let citation = json!([
        {"typeName": "title", "value": "A deposit"},
        {"typeName": "author", "typeClass": "compound", "value": [
            {"authorName": {"typeName": "authorName", "value": "Sample, Ada"},
             "authorAffiliation": {"typeName": "authorAffiliation", "value": "<i>Lab</i>"}},
            {"authorName": {"typeName": "authorName", "value": "Sample, Bo"}},
        ]},
        {"typeName": "language", "typeClass": "controlledVocabulary", "value": ["Latin", "Greek"]},
    ]);
    let geospatial = json!([
        {"typeName": "geographicCoverage", "value": [{"country": {"typeName": "country", "value": "Austria"}}]},
    ]);
    let own = json!([{"typeName": "ownField", "value": "of a block that nobody describes"}]);
    let blocks = json!({
        "citation": {"name": "citation", "displayName": "Citation Metadata", "fields": citation},
        "geospatial": {"name": "geospatial", "displayName": "Geospatial Metadata", "fields": geospatial},
        "own": {"name": "own", "displayName": "Our own", "fields": own},
        "astrophysics": {"name": "astrophysics", "displayName": "Stars", "fields": []},
    });
    let version = json!({
        "versionState": "RELEASED", "versionNumber": 1, "versionMinorNumber": 0, "metadataBlocks": blocks,
    });
    axum::Json(json!({"status": "OK", "data": {"latestVersion": version}})).into_response()
}

/// Describes the blocks of the deposit, except for the last, and counts the descriptions. Only that of citation has a tag.
async fn metadata_block(Path(name): Path<String>, headers: HeaderMap, n_described: &AtomicUsize) -> Response {
    if headers.get("if-none-match").is_some_and(|it| it == "W/\"1\"") {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let field = |name: &str, title: &str, more: serde_json::Value| {
        let mut it = json!({"name": name, "title": title, "type": "TEXT", "isAdvancedSearchFieldType": true});
        if let (Some(map), serde_json::Value::Object(more)) = (it.as_object_mut(), more) {
            map.extend(more);
        }
        it
    };
    let fields = match name.as_str() {
        "citation" => json!({
            "title": field("title", "Title", json!({})),
            "author": field("author", "Author", json!({"type": "NONE", "childFields": {
                "authorName": field("authorName", "Name", json!({})),
                "authorAffiliation": field("authorAffiliation", "Affiliation", json!({"isAdvancedSearchFieldType": false})),
            }})),
            "language": field("language", "Language", json!({
                "isControlledVocabulary": true, "controlledVocabularyValues": ["Latin", "Greek"],
            })),
        }),
        "geospatial" => json!({
            "geographicCoverage": field("geographicCoverage", "Geographic Coverage", json!({
                "childFields": {"country": field("country", "Country / Nation", json!({}))},
            })),
        }),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    if is_signed_in(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    n_described.fetch_add(1, Ordering::Relaxed);
    let mut answer =
        axum::Json(json!({"status": "OK", "data": {"name": name, "fields": fields}})).into_response();
    if name == "citation" {
        answer.headers_mut().insert("etag", HeaderValue::from_static("W/\"1\""));
    }
    answer
}

fn house() -> Outcome<House> {
    let folder = tempfile::tempdir()?;
    let limits = Limits::default();
    let catalogue = Catalogue::open(Location::Folder(folder.path().into()), KINDS, limits.clone())?;
    let (clock, entropy) = (Clock::System, Entropy::System);
    let secret = Secret::load_or_create(folder.path(), &entropy)?;
    let accounts = Accounts::new(Settings { secret, everyone: Vec::new(), clock, entropy }, &limits);
    let runtime = runtime()?;
    for tenant in ["default", "other"] {
        let tenant = catalogue.tenant_or_new(tenant)?;
        for (name, group) in [("ada", "readers"), ("root", "admin")] {
            let mut user = accounts.new_user(name);
            user.groups = vec![group.to_owned()];
            runtime.block_on(accounts.create(&tenant, user, Some(Password::new("a good one")?)))?;
        }
    }
    let scicat = Router::new()
        .route("/api/v3/datasets/{pid}", get(dataset))
        .route("/api/v3/datasets/fullquery", get(datasets))
        .fallback(|| async { StatusCode::NOT_FOUND });
    let folio = Router::new()
        .route("/circulation/check-out-by-barcode", post(check_out))
        .route("/service-points", get(service_points))
        .fallback(|| async { StatusCode::UNAUTHORIZED });
    let n_described = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&n_described);
    let describe = move |name: Path<String>, headers: HeaderMap| {
        let counted = Arc::clone(&counted);
        async move { metadata_block(name, headers, &counted).await }
    };
    let dataverse = Router::new()
        .route("/api/datasets/{*rest}", get(deposit))
        .route("/api/metadatablocks/{name}", get(describe))
        .fallback(|| async { StatusCode::NOT_FOUND });
    let labe = Router::new()
        .route("/", any(|| async { "labe's text" }))
        .route("/index/v2/{operation}/{*id}", get(|| async { axum::Json(json!([{"count": "0"}])) }));
    let unsigned = Entrance { tokens: &[], tenant_headers: &[TENANT_HEADER] };
    let neighbours = [
        Mount::new("scicat", &["/api/v3"], scicat),
        Mount::new("folio", &["/circulation"], folio),
        Mount::new("dataverse", &["/api"], dataverse),
        Mount { entrance: unsigned, ..Mount::new("labe", &["/"], labe) },
    ];
    let neighbours = neighbours.iter().map(Neighbour::of).collect();
    let context = Context::new(catalogue.clone(), accounts, limits, TenantChoice::default());
    let effective = vec![pinakes_site::Setting {
        key: "server.listen".into(),
        value: "\"127.0.0.1:3000\"".into(),
        origin: "default".into(),
    }];
    let settings = pinakes_site::Settings { name: "Test & Site".into(), effective, ..Default::default() };
    let mount = pinakes_site::mount(context, settings, neighbours)?;
    Ok(House { _folder: folder, catalogue, mount, n_described })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

impl House {
    fn ask(&self, method: Method, path: &str, headers: &[(&'static str, &str)], body: &str) -> Outcome<Page> {
        let mut request = Request::builder().method(method).uri(path).header("host", "site.example.org");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned()))?;
        runtime()?.block_on(async {
            let answer = self.mount.answer(request, self.catalogue.budget()).await;
            let (parts, body) = answer.into_parts();
            let bytes = axum::body::to_bytes(body, 1 << 20).await?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Page { status: parts.status, headers: parts.headers, text })
        })
    }

    fn get(&self, path: &str, headers: &[(&'static str, &str)]) -> Outcome<Page> {
        let page = [headers, &[("accept", "text/html")]].concat();
        self.ask(Method::GET, path, &page, "")
    }

    /// Signs in and returns the cookie.
    fn sign_in(&self, name: &str, tenant: &str) -> Outcome<String> {
        let form = format!("username={name}&password=a+good+one&next=/site/desk");
        let said = self.ask(Method::POST, "/site/sign-in", &[(TENANT_HEADER, tenant)], &form)?;
        assert_eq!((said.status, said.header("location")), (StatusCode::SEE_OTHER, "/site/desk".to_owned()));
        let cookie = said.header("set-cookie");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        Ok(cookie.split(';').next().unwrap_or_default().to_owned())
    }
}

impl Page {
    fn header(&self, name: &str) -> String {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
    }

    fn csrf(&self) -> Outcome<&str> {
        let (_, rest) = self.text.split_once("name=\"_csrf\" value=\"").ok_or("no form")?;
        Ok(rest.split('"').next().unwrap_or_default())
    }
}

#[test]
fn the_front_page_is_for_people_and_labes_text_for_programs() -> Outcome {
    let house = house()?;
    let page = house.get("/", &[])?;
    assert_eq!(
        (page.status, page.header("content-type").as_str()),
        (StatusCode::OK, "text/html; charset=utf-8")
    );
    assert!(page.text.contains("<h1>Test &amp; Site</h1>"), "{}", page.text);
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    assert!(!policy.contains("script-src") && !page.text.contains("<script"), "{}", page.text);
    for (method, accept) in [(Method::GET, "*/*"), (Method::GET, "text/plain"), (Method::POST, "text/html")] {
        let said = house.ask(method, "/", &[("accept", accept)], "")?;
        assert_eq!(said.text, "labe's text");
    }
    Ok(())
}

#[test]
fn pages_speak_the_language_that_is_wished_or_chosen() -> Outcome {
    let house = house()?;
    for (headers, expected) in [
        (&[][..], "en"),
        (&[("accept-language", "de-AT, en;q=0.5")], "de"),
        (&[("accept-language", "de"), ("cookie", "pinakes_language=en")], "en"),
    ] {
        let page = house.get("/", headers)?;
        assert!(page.text.contains(&format!("<html lang=\"{expected}\">")), "{headers:?}");
    }
    let chosen = house.get("/site/language?to=de&next=/site/search", &[])?;
    assert!(chosen.header("set-cookie").starts_with("pinakes_language=de; "));
    assert_eq!(chosen.header("location"), "/site/search");
    Ok(())
}

#[test]
fn what_a_dialect_refuses_is_not_shown() -> Outcome {
    let house = house()?;
    assert_eq!(house.get("/site/dataset/closed", &[])?.status, StatusCode::NOT_FOUND);
    assert!(!house.get("/site/search?q=a", &[])?.text.contains("a secret"));
    let ada = house.sign_in("ada", "default")?;
    assert!(house.get("/site/dataset/closed", &[("cookie", &ada)])?.text.contains("<h1>a secret</h1>"));
    assert!(house.get("/site/search?q=a", &[("cookie", &ada)])?.text.contains("a secret"));
    // A session of one tenant is anonymous in another.
    let elsewhere = [("cookie", ada.as_str()), (TENANT_HEADER, "other")];
    assert_eq!(house.get("/site/dataset/closed", &elsewhere)?.status, StatusCode::NOT_FOUND);
    assert_eq!(
        house.get("/site/dataset/closed", &[("cookie", "pinakes=x.y.z")])?.status,
        StatusCode::NOT_FOUND
    );
    Ok(())
}

#[test]
fn what_records_say_is_text() -> Outcome {
    let house = house()?;
    let page = house.get("/site/dataset/open", &[])?;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text.contains("&lt;b&gt;silica&lt;&#x2f;b&gt;")
            || page.text.contains("&lt;b&gt;silica&lt;/b&gt;")
    );
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    assert!(page.text.contains("<meta name=\"citation_author\" content=\"Sample, Ada\">"), "{}", page.text);
    assert!(page.text.contains("name=T&amp;value=60&amp;unit=C"), "{}", page.text);
    Ok(())
}

#[test]
fn a_doi_leads_to_its_record_also_for_those_whose_token_the_dialect_refuses() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada", "default")?;
    for headers in [&[][..], &[("cookie", ada.as_str())]] {
        let found = house.get("/site/doi/10.5072/FK2/A", headers)?;
        assert_eq!(found.header("location"), "/site/deposit/doi%3A10.5072/FK2/A", "{}", found.text);
        assert!(house.get("/site/deposit/doi:10.5072/FK2/A", headers)?.text.contains("<h1>A deposit</h1>"));
        assert_eq!(house.get("/site/doi/10.5072/none", headers)?.status, StatusCode::NOT_FOUND);
    }
    Ok(())
}

#[test]
fn a_deposit_is_shown_with_all_its_blocks_in_their_order() -> Outcome {
    let house = house()?;
    let page = house.get("/site/deposit/doi:10.5072/FK2/A", &[])?;
    let expected = [
        "<h1>A deposit</h1>",
        "<h2 id=\"block-citation\">Citation Metadata</h2>",
        "<dt>Author</dt>",
        "<small>Name</small> <a href=\"/site/search?q=authorName%3A%22Sample%2C%20Ada%22&amp;in=deposits\">Sample, Ada</a> · ",
        "<small>Affiliation</small> &lt;i&gt;Lab",
        "<small>Name</small> <a href=\"/site/search?q=authorName%3A%22Sample%2C%20Bo%22&amp;in=deposits\">Sample, Bo</a></dd>",
        "<dt>Language</dt>",
        "q=language%3A%22Latin%22&amp;in=deposits\">Latin</a></dd>",
        "q=language%3A%22Greek%22&amp;in=deposits\">Greek</a></dd>",
        "<h2 id=\"block-geospatial\">Geospatial Metadata</h2>",
        "<dt>Geographic Coverage</dt>",
        "<small>Country / Nation</small> <a href=\"/site/search?q=country%3A%22Austria%22&amp;in=deposits\">Austria</a></dd>",
        "<h2 id=\"block-own\">Our own</h2>",
        "<dt>ownField</dt><dd class=\"text\">of a block that nobody describes</dd>",
    ];
    // HTML may have its slashes escaped.
    let text = page.text.replace("&#x2f;", "/");
    let mut rest = text.as_str();
    for it in expected {
        rest = rest.split_once(it).ok_or_else(|| format!("{it} is not at its place: {text}"))?.1;
    }
    assert!(text.contains("a.csv") && text.contains("9000"), "{text}");
    assert!(!text.contains("Stars") && !text.contains("<dt>Title</dt>"), "{text}");
    // The description of citation is the same as before, and is not sent again; that of geospatial has no tag.
    assert_eq!(house.n_described.load(Ordering::Relaxed), 2);
    assert_eq!(house.get("/site/deposit/doi:10.5072/FK2/A", &[])?.text.replace("&#x2f;", "/"), text);
    assert_eq!(house.n_described.load(Ordering::Relaxed), 3);
    Ok(())
}

#[test]
fn forms_must_be_of_the_session() -> Outcome {
    let house = house()?;
    assert_eq!(house.get("/site/desk", &[])?.status, StatusCode::UNAUTHORIZED);
    let ada = house.sign_in("ada", "default")?;
    let desk = house.get("/site/desk", &[("cookie", &ada)])?;
    assert_eq!(desk.status, StatusCode::OK, "{}", desk.text);
    let csrf = desk.csrf()?.to_owned();
    let own = format!("_csrf={csrf}&action=out&item=1&patron=2&point=1");
    let post = |form: &str, headers: &[(&'static str, &str)]| {
        let headers = [headers, &[("cookie", ada.as_str())]].concat();
        house.ask(Method::POST, "/site/desk", &headers, form)
    };
    let done = post(&own, &[("sec-fetch-site", "same-origin")])?;
    assert!(done.text.contains("A Book – due 2026-02-01 23:59"), "{}", done.text);
    assert!(post(&own.replace("item=1", "item=broken"), &[])?.text.contains("barcode broken could be found"));
    for (form, headers) in [
        ("action=out&item=1&patron=2&point=1", &[][..]),
        ("_csrf=0123&action=out", &[]),
        (&own, &[("sec-fetch-site", "cross-site")]),
        (&own, &[("origin", "https://elsewhere.example.org")]),
    ] {
        assert_eq!(post(form, headers)?.status, StatusCode::FORBIDDEN, "{form} {headers:?}");
    }
    let other = house.sign_in("root", "default")?;
    let stolen = house.ask(Method::POST, "/site/desk", &[("cookie", &other)], &own)?;
    assert_eq!(stolen.status, StatusCode::FORBIDDEN);
    let foreign = [("sec-fetch-site", "cross-site")];
    let form = "username=ada&password=a+good+one";
    assert_eq!(house.ask(Method::POST, "/site/sign-in", &foreign, form)?.status, StatusCode::FORBIDDEN);
    Ok(())
}

#[test]
fn operators_are_of_the_default_tenant() -> Outcome {
    let house = house()?;
    assert_eq!(house.get("/site/operators", &[])?.status, StatusCode::UNAUTHORIZED);
    for (name, tenant, expected) in [
        ("ada", "default", StatusCode::FORBIDDEN),
        ("root", "other", StatusCode::FORBIDDEN),
        ("root", "default", StatusCode::OK),
    ] {
        let cookie = house.sign_in(name, tenant)?;
        let page = house.get("/site/operators", &[("cookie", &cookie), (TENANT_HEADER, tenant)])?;
        assert_eq!(page.status, expected, "{name} of {tenant}");
        let is_told = page.text.contains("server.listen") || page.text.contains("<td>other</td>");
        assert_eq!(is_told, expected == StatusCode::OK, "{name} of {tenant}");
    }
    Ok(())
}

#[test]
fn a_wrong_password_signs_nobody_in() -> Outcome {
    let house = house()?;
    let said = house.ask(
        Method::POST,
        "/site/sign-in",
        &[],
        "username=ada&password=wrong&next=//evil.example.org",
    )?;
    assert_eq!((said.status, said.header("set-cookie").as_str()), (StatusCode::UNAUTHORIZED, ""));
    assert!(
        said.text.contains("name=\"next\" value=\"&#x2f;\"")
            || said.text.contains("name=\"next\" value=\"/\"")
    );
    Ok(())
}
