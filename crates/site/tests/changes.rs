//! Pages that change something, tested against a fake Dataverse: deposits, previews, tokens, accounts.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode};
use pinakes_accounts::{Accounts, Clock, Entropy, Password, Resolved, Secret, Settings};
use pinakes_http::{Context, Inside, Mount, Neighbour, TenantChoice};
use pinakes_store::{Catalogue, Kind, Limits, Location};
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

static KINDS: &[&Kind] = &[&pinakes_accounts::USER, &pinakes_accounts::TOKEN, pinakes_site::KINDS[0]];

/// Requests to the fake Dataverse: method, path with query, body.
type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

struct House {
    /// Deleted at the end of the test.
    _folder: tempfile::TempDir,
    catalogue: Catalogue,
    accounts: Accounts,
    mount: Mount,
    asked: Asked,
}

struct Page {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

/// Answers like Dataverse as far as the pages need it: ada is a user, root is not; `doi:10.1/A` is a draft of
/// ada's.
async fn dataverse(asked: Asked, request: Request) -> Response {
    let is_inside = request.extensions().get::<Inside>().is_some();
    let (parts, body) = request.into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, 1 << 20).await.unwrap_or_default()).into_owned();
    let path = parts.uri.path_and_query().map_or("", |it| it.as_str()).to_owned();
    if let Ok(mut list) = asked.lock() {
        list.push((parts.method.to_string(), path.clone(), body.clone()));
    }
    let is_known = is_inside && parts.headers.contains_key("authorization");
    let ok = |data: Value| axum::Json(json!({"status": "OK", "data": data})).into_response();
    let route = path.split('?').next().unwrap_or_default();
    match (parts.method.as_str(), route) {
        ("GET", "/api/users/:me") if is_known => {
            ok(json!({"identifier": "@ada", "displayName": "Ada", "email": "ada@example.org"}))
        }
        ("GET", "/api/users/:me") => StatusCode::UNAUTHORIZED.into_response(),
        ("GET", "/api/users/ada/allowedCollections/AddDataset") => {
            ok(json!({"items": [{"name": "Root", "alias": "root"}]}))
        }
        ("GET", "/api/dataverses/root/metadatablocks") => ok(blocks()),
        ("GET", "/api/datasets/:persistentId/versions/:latest") => ok(version()),
        ("PUT", "/api/datasets/:persistentId/versions/:draft") if body.contains("east") => {
            let message = "Validation Failed: Date of coverage east  is not a valid date. \"yyyy\" is a supported format. \
                (Invalid value:east), Coverage Country is required if you choose to enter a value in any of the optional \
                Coverage fields. (Invalid value:), Something else. (Invalid value:).";
            (StatusCode::FORBIDDEN, axum::Json(json!({"message": message}))).into_response()
        }
        ("PUT", "/api/datasets/:persistentId/versions/:draft") => ok(json!({})),
        ("GET", "/api/licenses") => ok(json!([{"name": "CC0 1.0", "active": true, "isDefault": true}])),
        ("POST", "/api/dataverses/root/datasets") if body.contains("refuse") => {
            let message = json!({"status": "ERROR", "message": "Validation <failed>"});
            (StatusCode::BAD_REQUEST, axum::Json(message)).into_response()
        }
        ("POST", "/api/dataverses/root/datasets") => ok(json!({"persistentId": "doi:10.1/A"})),
        ("POST", "/api/datasets/:persistentId/add") if body.contains("\r\n\r\nbad") => {
            (StatusCode::BAD_REQUEST, axum::Json(json!({"message": "a file of that name"}))).into_response()
        }
        ("POST", "/api/datasets/:persistentId/add") => ok(json!({"files": []})),
        ("GET", "/api/datasets/:persistentId/userPermissions") => {
            ok(json!({"canEditDataset": is_known, "canPublishDataset": false, "canDeleteDatasetDraft": true}))
        }
        ("GET", "/api/datasets/:persistentId/locks") => ok(json!([])),
        ("GET", "/api/datasets/:persistentId") => ok(json!({"latestVersion": {"versionState": "DRAFT"}})),
        ("GET", "/api/datasets/:persistentId/versions/:draft/files") => {
            axum::Json(json!({"status": "OK", "totalCount": 0, "data": []})).into_response()
        }
        ("POST", "/api/datasets/:persistentId/submitForReview") => ok(json!({})),
        ("GET", "/api/files/1") => {
            ok(json!({"label": "a.html", "dataFile": {"contentType": "text/html", "filesize": 30}}))
        }
        ("GET", "/api/access/datafile/1") if parts.headers.contains_key("range") => {
            (StatusCode::PARTIAL_CONTENT, "<script>alert(1)</script>").into_response()
        }
        ("GET", "/api/files/2") => {
            ok(json!({"label": "a.png", "dataFile": {"contentType": "image/png", "filesize": 4}}))
        }
        ("GET", "/api/access/datafile/2") => ([("content-type", "text/html")], "\u{89}PNG").into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the blocks of the collection: citation, and a second one with a field of each type.
fn blocks() -> Value {
    let field = |name: &str, title: &str, kind: &str, is_multiple: bool| json!({"name": name, "title": title, "displayName": title, "type": kind, "multiple": is_multiple});
    let with = |mut it: Value, more: Value| {
        if let (Some(map), Value::Object(more)) = (it.as_object_mut(), more) {
            map.extend(more);
        }
        it
    };
    let main = |it: Value, order: u32| {
        with(it, json!({"isRequired": true, "displayOnCreate": true, "displayOrder": order}))
    };
    let author = json!({"authorName": main(with(field("authorName", "Name", "TEXT", false), json!({"displayName": "Author Name"})), 1)});
    let contact = json!({
        "datasetContactName": field("datasetContactName", "Name", "TEXT", false),
        "datasetContactEmail": main(field("datasetContactEmail", "E-mail", "EMAIL", false), 1),
    });
    let choices = |list: Value| json!({"isControlledVocabulary": true, "controlledVocabularyValues": list});
    let coverage = json!({
        "country": with(with(field("country", "Country", "TEXT", false), choices(json!(["Norway", "Peru"]))), json!({"displayName": "Coverage Country"})),
        "from": with(field("from", "Date", "DATE", false), json!({"displayName": "Date of coverage", "displayOrder": 1})),
    });
    let languages: Vec<String> = (0..501).map(|it| format!("language {it}")).collect();
    let many: Vec<String> = (0..30).map(|it| format!("sort {it}")).collect();
    json!([
        {"name": "citation", "displayName": "Citation Metadata", "fields": {
            "title": main(field("title", "Title", "TEXT", false), 0),
            "author": main(with(field("author", "Author", "NONE", true), json!({"childFields": author})), 1),
            "datasetContact": main(with(field("datasetContact", "Point of Contact", "NONE", true), json!({"childFields": contact})), 2),
            "subject": main(with(field("subject", "Subject", "TEXT", true), choices(json!(["Other", "Physics"]))), 3),
            "series": field("series", "Series", "TEXTBOX", true),
        }},
        {"name": "geo", "displayName": "Geo <Metadata>", "fields": {
            "coverage": with(field("coverage", "Coverage", "NONE", true), json!({"childFields": coverage})),
            "unit": with(field("unit", "Unit", "TEXT", true), json!({"watermark": "e.g. village", "displayOrder": 1})),
            "sort": with(with(field("sort", "Sort", "TEXT", true), choices(json!(many))), json!({"displayOrder": 2})),
            "depth": with(field("depth", "Depth", "FLOAT", false), json!({"displayOrder": 3})),
            "page": with(field("page", "Page", "URL", false), json!({"displayOrder": 4})),
            "language": with(with(field("language", "Language", "TEXT", true), choices(json!(languages))), json!({"displayOrder": 5})),
        }},
    ])
}

/// Returns a version with content that the form does not show, in a separate block and in a field of a shown
/// block.
fn version() -> Value {
    let part = |name: &str, value: &str| json!({"typeName": name, "multiple": false, "typeClass": "primitive", "value": value});
    json!({
        "lastUpdateTime": "2026-01-01T00:00:00Z", "versionState": "DRAFT", "license": {"name": "CC0 1.0"}, "datasetType": "dataset",
        "isPartOf": {"identifier": "root"}, "metadataBlocks": {
            "citation": {"displayName": "Citation Metadata", "fields": [part("title", "Tides")]},
            "geo": {"displayName": "Geo", "fields": [
                {"typeName": "coverage", "multiple": true, "typeClass": "compound", "value": [
                    {"country": part("country", "Atlantis"), "hidden": part("hidden", "kept")}]},
                {"typeName": "sort", "multiple": true, "typeClass": "controlledVocabulary", "value": ["sort 7"]},
            ]},
            "other": {"displayName": "Other", "fields": [part("x", "kept too")]},
        },
    })
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn house() -> Outcome<House> {
    let folder = tempfile::tempdir()?;
    let limits = Limits::default();
    let catalogue = Catalogue::open(Location::Folder(folder.path().into()), KINDS, limits.clone())?;
    let (clock, entropy) = (Clock::System, Entropy::System);
    let secret = Secret::load_or_create(folder.path(), &entropy)?;
    let accounts = Accounts::new(Settings { secret, everyone: Vec::new(), clock, entropy }, &limits);
    let tenant = catalogue.tenant_or_new("default")?;
    for (name, group) in [("ada", "readers"), ("root", "admin")] {
        let mut user = accounts.new_user(name);
        user.groups = vec![group.to_owned()];
        runtime()?.block_on(accounts.create(&tenant, user, Some(Password::new("a good one")?)))?;
    }
    let asked = Asked::default();
    let heard = Arc::clone(&asked);
    let router = Router::new().fallback(move |request: Request| dataverse(Arc::clone(&heard), request));
    let neighbours = vec![Neighbour::of(&Mount::new("dataverse", &["/api"], router))];
    let context = Context::new(catalogue.clone(), accounts.clone(), limits, TenantChoice::default());
    let mount = pinakes_site::mount(context, pinakes_site::Settings::default(), neighbours)?;
    Ok(House { _folder: folder, catalogue, accounts, mount, asked })
}

impl House {
    fn ask(&self, method: Method, path: &str, cookie: &str, kind: &str, body: &str) -> Outcome<Page> {
        let request = Request::builder().method(method).uri(path).header("host", "site.example.org");
        let request = request.header("cookie", cookie).header("content-type", kind);
        let request = request.body(Body::from(body.to_owned()))?;
        runtime()?.block_on(async {
            let (parts, body) = self.mount.answer(request, self.catalogue.budget()).await.into_parts();
            let text = String::from_utf8_lossy(&to_bytes(body, 1 << 20).await?).replace("&#x2f;", "/");
            Ok(Page { status: parts.status, headers: parts.headers, text })
        })
    }

    fn get(&self, path: &str, cookie: &str) -> Outcome<Page> {
        self.ask(Method::GET, path, cookie, "", "")
    }

    fn post(&self, path: &str, cookie: &str, form: &str) -> Outcome<Page> {
        self.ask(Method::POST, path, cookie, "application/x-www-form-urlencoded", form)
    }

    fn sign_in(&self, name: &str) -> Outcome<String> {
        let said = self.post("/site/sign-in", "", &format!("username={name}&password=a+good+one"))?;
        assert_eq!(said.status, StatusCode::SEE_OTHER, "{}", said.text);
        Ok(said.header("set-cookie").split(';').next().unwrap_or_default().to_owned())
    }

    /// Returns the token of the forms on a page.
    fn csrf(&self, path: &str, cookie: &str) -> Outcome<String> {
        let page = self.get(path, cookie)?;
        let found = page.text.split_once("name=\"_csrf\" value=\"").and_then(|it| it.1.split('"').next());
        Ok(found.ok_or("no form")?.to_owned())
    }

    /// Returns the last request to Dataverse with a method.
    fn heard(&self, method: &str) -> Option<(String, String)> {
        let list = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().rev().find(|it| it.0 == method).map(|it| (it.1.clone(), it.2.clone()))
    }
}

impl Page {
    fn header(&self, name: &str) -> String {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
    }
}

const WHOLE: &str = "collection=root&title/rows=1&title/0=Tides&author/rows=1&author/0/authorName=Sample&datasetContact/rows=1\
    &datasetContact/0/datasetContactEmail=a%40example.org&subject/rows=1&subject/0=Physics&license=CC0+1.0";

#[test]
fn a_deposit_is_made_of_what_the_form_says() -> Outcome {
    let house = house()?;
    assert_eq!(house.get("/site/deposits/new", "")?.status, StatusCode::UNAUTHORIZED);
    let ada = house.sign_in("ada")?;
    let form = house.get("/site/deposits/new", &ada)?;
    assert!(
        form.text.contains("value=\"ada@example.org\"") && form.text.contains("Physics"),
        "{}",
        form.text
    );
    for csrf in ["", "_csrf=0.1&"] {
        let refused = house.post("/site/deposits/new", &ada, &format!("{csrf}{WHOLE}"))?;
        assert_eq!((refused.status, house.heard("POST")), (StatusCode::FORBIDDEN, None));
    }
    let csrf = format!("_csrf={}&", house.csrf("/site/deposits/new", &ada)?);
    let lost =
        house.post("/site/deposits/new", &ada, &format!("{csrf}{}", WHOLE.replace("=root", "=lost")))?;
    assert_eq!((lost.status, house.heard("POST")), (StatusCode::UNPROCESSABLE_ENTITY, None));
    assert!(lost.text.contains("No collection is chosen.") && lost.text.contains("value=\"Tides\""));
    let more = house.post("/site/deposits/new", &ada, &format!("{csrf}{WHOLE}&more=author"))?;
    assert!(more.text.contains("name=\"author/3/authorName\"") && house.heard("POST").is_none());
    assert!(
        !more.text.contains("name=\"datasetContact/1/"),
        "only the field that was asked for gets more rows"
    );
    let made = house.post("/site/deposits/new", &ada, &format!("{csrf}{WHOLE}"))?;
    assert_eq!(made.header("location"), "/site/deposits/files/doi%3A10.1/A", "{}", made.text);
    let (path, body) = house.heard("POST").ok_or("nothing was asked")?;
    assert_eq!(path, "/api/dataverses/root/datasets");
    let said: Value = serde_json::from_str(&body)?;
    assert_eq!(said["datasetVersion"]["license"]["name"], "CC0 1.0");
    assert!(body.contains("\"typeName\":\"title\"") && body.contains("\"Tides\""), "{body}");
    let refused =
        house.post("/site/deposits/new", &ada, &format!("{csrf}{}", WHOLE.replace("Tides", "refuse")))?;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Validation &lt;failed&gt;"), "{}", refused.text);
    Ok(())
}

#[test]
fn other_blocks_are_changed_and_their_faults_stand_by_their_fields() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let path = "/site/deposits/edit/doi:10.1/A";
    let form = house.get(path, &ada)?;
    for part in [
        "Geo &lt;Metadata&gt;",
        "<option lang=\"en\" selected>Atlantis</option>",
        "value=\"sort 7\" checked",
        "name=\"coverage/1/from\"",
        "inputmode=\"decimal\"",
        "inputmode=\"url\"",
        "placeholder=\"e.g. village\"",
        "<textarea name=\"series/0\"",
        "<details open>",
        "<textarea name=\"language/0\"",
    ] {
        assert!(form.text.contains(part), "{part} is not in {}", form.text);
    }
    let csrf = format!("_csrf={}&since=2026-01-01T00%3A00%3A00Z&", house.csrf(path, &ada)?);
    let sent = "title/rows=1&title/0=Tides&coverage/rows=3&coverage/0/country=Atlantis&coverage/0/from=\
        &coverage/1/country=&coverage/1/from=2026&coverage/2/country=&coverage/2/from=&unit/rows=2&unit/0=village&unit/1=\
        &sort/rows=1&sort/0=sort+7&sort/0=sort+9&depth/rows=1&depth/0=12.5&page/rows=1&page/0=&language/rows=1&language/0=language+3%0D%0Alanguage+500";
    let saved = house.post(path, &ada, &format!("{csrf}{sent}"))?;
    assert_eq!(saved.header("location"), "/site/deposits/files/doi%3A10.1/A", "{}", saved.text);
    let (asked, body) = house.heard("PUT").ok_or("nothing was asked")?;
    assert!(asked.ends_with("&sourceLastUpdateTime=2026-01-01T00%3A00%3A00Z"), "{asked}");
    let (said, before): (Value, Value) = (serde_json::from_str(&body)?, version());
    let geo = |name: &str| {
        let list = said["metadataBlocks"]["geo"]["fields"].as_array().cloned().unwrap_or_default();
        list.into_iter().find(|it| it["typeName"] == name).unwrap_or_default()
    };
    assert_eq!(geo("coverage")["value"][0], before["metadataBlocks"]["geo"]["fields"][0]["value"][0]);
    assert_eq!(geo("coverage")["value"][1]["from"]["value"], "2026");
    assert_eq!(geo("coverage")["value"].as_array().map(Vec::len), Some(2));
    assert_eq!((&geo("unit")["value"], &geo("depth")["value"]), (&json!(["village"]), &json!("12.5")));
    assert_eq!((&geo("sort")["value"], geo("page")), (&json!(["sort 7", "sort 9"]), Value::Null));
    assert_eq!(said["metadataBlocks"]["other"], before["metadataBlocks"]["other"]);
    assert_eq!(geo("language")["value"], json!(["language 3", "language 500"]));
    assert_eq!(said["isPartOf"], Value::Null);
    let refused =
        house.post(path, &ada, &format!("{csrf}{}", sent.replace("2026&coverage/2", "east&coverage/2")))?;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in [
        "id=\"fault-coverage/1/from\">That is no date",
        "id=\"fault-coverage/1/country\">This must be said.",
        "aria-describedby=\"fault-coverage/1/from\"",
        "href=\"#fault-coverage/1/from\">Coverage, Date</a>",
        "<p class=\"alert\" role=\"alert\">Something else.</p>",
        "value=\"east\"",
        "value=\"village\"",
        "value=\"12.5\"",
        "value=\"sort 9\" checked",
    ] {
        assert!(refused.text.contains(part), "{part} is not in {}", refused.text);
    }
    assert!(!refused.text.contains("fault-coverage/0/"), "only the row at fault is marked");
    let bad = sent.replace("title/0=Tides", "title/0=&more=unit");
    let more = house.post(path, &ada, &format!("{csrf}{bad}"))?;
    assert!(
        more.text.contains("name=\"unit/4\"")
            && more.text.contains("name=\"coverage/1/from\" value=\"2026\"")
    );
    Ok(())
}

fn form(csrf: &str, files: &[(&str, &str)]) -> String {
    let field = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let mut form = if csrf.is_empty() { String::new() } else { field("_csrf", csrf) };
    form += &field("folder", "data");
    for (name, content) in files {
        form += &format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: text/csv\r\n\r\n{content}\r\n"
        );
    }
    form + "--b--\r\n"
}

#[test]
fn files_go_on_to_dataverse_one_by_one() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let path = "/site/deposits/files/doi:10.1/A";
    let kind = "multipart/form-data; boundary=b";
    let two = [("a.csv", "1,2"), ("b.csv", "3")];
    for csrf in ["", "0.1"] {
        let refused = house.ask(Method::POST, path, &ada, kind, &form(csrf, &two))?;
        assert_eq!((refused.status, house.heard("POST")), (StatusCode::FORBIDDEN, None));
    }
    let csrf = house.csrf(path, &ada)?;
    let taken = house.ask(Method::POST, path, &ada, kind, &form(&csrf, &two))?;
    assert_eq!(taken.header("location"), "/site/deposits/files/doi%3A10.1/A", "{}", taken.text);
    let (asked, body) = house.heard("POST").ok_or("nothing was asked")?;
    assert_eq!(asked, "/api/datasets/:persistentId/add?persistentId=doi%3A10.1%2FA");
    assert!(body.contains("filename=\"b.csv\"\r\nContent-Type: text/csv\r\n\r\n3\r\n"), "{body}");
    assert!(body.contains(r#"{"directoryLabel":"data"}"#), "{body}");
    let n_asked =
        |house: &House| house.asked.lock().map_or(0, |it| it.iter().filter(|it| it.0 == "POST").count());
    assert_eq!(n_asked(&house), 2);
    let half =
        house.ask(Method::POST, path, &ada, kind, &form(&csrf, &[("c.csv", "bad"), ("d.csv", "4")]))?;
    assert_eq!((half.status, n_asked(&house)), (StatusCode::UNPROCESSABLE_ENTITY, 4));
    assert!(half.text.contains("c.csv") && half.text.contains("a file of that name"), "{}", half.text);
    let act = "/site/deposits/act/doi:10.1/A";
    assert_eq!(house.post(act, &ada, "action=submit")?.status, StatusCode::FORBIDDEN);
    let kept = house.post(act, &ada, &format!("_csrf={csrf}&action=discard"))?;
    assert_eq!((kept.status, house.heard("DELETE")), (StatusCode::UNPROCESSABLE_ENTITY, None));
    let submitted = house.post(act, &ada, &format!("_csrf={csrf}&action=submit"))?;
    assert_eq!(submitted.status, StatusCode::SEE_OTHER, "{}", submitted.text);
    Ok(())
}

#[test]
fn previews_run_nothing() -> Outcome {
    let house = house()?;
    let text = house.get("/site/preview/1", "")?;
    assert!(text.text.contains("&lt;script&gt;alert(1)") && !text.text.contains("<script"), "{}", text.text);
    assert_eq!(house.get("/site/preview/1/content", "")?.status, StatusCode::NOT_FOUND);
    let picture = house.get("/site/preview/2/content", "")?;
    assert_eq!(picture.header("content-type"), "image/png");
    assert_eq!(picture.header("x-content-type-options"), "nosniff");
    assert_eq!(picture.header("content-security-policy"), "default-src 'none'; frame-ancestors 'self'");
    assert_eq!(house.get("/site/preview/3", "")?.status, StatusCode::NOT_FOUND);
    Ok(())
}

#[test]
fn tokens_are_shown_once_and_taken_back() -> Outcome {
    let house = house()?;
    assert_eq!(house.get("/site/account", "")?.status, StatusCode::UNAUTHORIZED);
    let ada = house.sign_in("ada")?;
    let csrf = house.csrf("/site/account", &ada)?;
    let made = house.post("/site/account", &ada, &format!("_csrf={csrf}&action=token&name=robot&days=1"))?;
    let token = made.text.split_once("<code>pnk_").and_then(|it| it.1.split('<').next()).ok_or("no token")?;
    let token = format!("pnk_{token}");
    let tenant = house.catalogue.tenant("default")?;
    let resolve = || Ok::<_, Box<dyn Error>>(runtime()?.block_on(house.accounts.resolve(&tenant, &token))?);
    assert!(matches!(resolve()?, Resolved::Caller(it) if it.username() == Some("ada")));
    // An API token is not a session, as it may have fewer rights than its user.
    assert_eq!(house.get("/site/account", &format!("pinakes={token}"))?.status, StatusCode::UNAUTHORIZED);
    let page = house.get("/site/account", &ada)?;
    assert!(page.text.contains("robot") && !page.text.contains(&token));
    let again = house.post("/site/account", &ada, &format!("_csrf={csrf}&action=token&name=robot&days=1"))?;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    let id = page.text.split_once("name=\"token\" value=\"").and_then(|it| it.1.split('"').next());
    let remove = format!("action=remove-token&token={}", id.ok_or("no token listed")?);
    // root cannot remove another user's token.
    let root = house.sign_in("root")?;
    let foreign = format!("_csrf={}&{remove}", house.csrf("/site/account", &root)?);
    assert_eq!(house.post("/site/account", &root, &foreign)?.status, StatusCode::NOT_FOUND);
    assert_eq!(house.post("/site/account", &ada, &format!("_csrf={csrf}&{remove}"))?.status, StatusCode::OK);
    assert!(matches!(resolve()?, Resolved::Invalid));
    for (form, expected) in [
        ("old=wrong&new=another+one&again=another+one", StatusCode::UNPROCESSABLE_ENTITY),
        ("old=a+good+one&new=short&again=short", StatusCode::UNPROCESSABLE_ENTITY),
        ("old=a+good+one&new=another+one&again=other+one", StatusCode::UNPROCESSABLE_ENTITY),
        ("old=a+good+one&new=another+one&again=another+one", StatusCode::OK),
    ] {
        let said = house.post("/site/account", &ada, &format!("_csrf={csrf}&action=password&{form}"))?;
        assert_eq!(said.status, expected, "{form}");
    }
    Ok(())
}

#[test]
fn accounts_are_managed_by_their_managers_alone() -> Outcome {
    let house = house()?;
    let (ada, root) = (house.sign_in("ada")?, house.sign_in("root")?);
    for (cookie, expected) in
        [("", StatusCode::UNAUTHORIZED), (&ada, StatusCode::FORBIDDEN), (&root, StatusCode::OK)]
    {
        assert_eq!(house.get("/site/users", cookie)?.status, expected);
    }
    let new = "username=bo&groups=readers%2C+p1&password=a+good+one";
    let of_ada = format!("_csrf={}&{new}", house.csrf("/site/account", &ada)?);
    assert_eq!(house.post("/site/users", &ada, &of_ada)?.status, StatusCode::FORBIDDEN);
    assert_eq!(house.post("/site/users", &root, new)?.status, StatusCode::FORBIDDEN);
    let csrf = house.csrf("/site/users", &root)?;
    let made = house.post("/site/users", &root, &format!("_csrf={csrf}&{new}"))?;
    let page = made.header("location");
    assert!(house.get(&page, &root)?.text.contains("readers\np1"), "{page}");
    let bo = house.sign_in("bo")?;
    let shut = format!("_csrf={csrf}&action=save&groups=p1");
    assert_eq!(house.post(&page, &ada, &shut)?.status, StatusCode::FORBIDDEN);
    assert_eq!(house.post(&page, &root, &shut)?.status, StatusCode::OK);
    assert_eq!(house.get("/site/account", &bo)?.status, StatusCode::UNAUTHORIZED, "bo is shut out");
    let list = house.get("/site/users?q=root", &root)?;
    let own =
        list.text.split_once("href=\"/site/users/").and_then(|it| it.1.split('"').next()).ok_or("no root")?;
    let own = format!("/site/users/{own}");
    for form in ["action=save&groups=admin", "action=save&active=yes&groups=readers"] {
        let said = house.post(&own, &root, &format!("_csrf={csrf}&{form}"))?;
        assert_eq!(said.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    assert_eq!(
        house.post("/site/users", &root, &format!("_csrf={csrf}&{new}"))?.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    Ok(())
}
