//! Editors and uploads over dialects that are made up here: what is asked of them, under which condition, and what is shown.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode};
use pinakes_accounts::{Accounts, Clock, Entropy, Password, Secret, Settings};
use pinakes_http::{Context, Mount, Neighbour, TenantChoice};
use pinakes_site::{Line, RecentLog};
use pinakes_store::{Catalogue, Kind, Limits, Location};
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

static KINDS: &[&Kind] = &[&pinakes_accounts::USER, &pinakes_accounts::TOKEN, pinakes_site::KINDS[0]];

/// A request that a made-up dialect was sent.
#[derive(Debug, Clone)]
struct Heard {
    method: Method,
    path: String,
    condition: String,
    body: String,
}

/// What the made-up dialects hold, and what they were sent.
#[derive(Debug, Default)]
struct World {
    heard: Vec<Heard>,
    /// When the dataset was changed, the tag of the topic, when the profile was changed.
    version: u32,
}

type Shared = Arc<Mutex<World>>;

struct House {
    /// Removed when the test is over.
    _folder: tempfile::TempDir,
    catalogue: Catalogue,
    mount: Mount,
    world: Shared,
    log: RecentLog,
}

struct Page {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, axum::Json(body.clone())).into_response()
}

fn ok(body: &Value) -> Response {
    answer(StatusCode::OK, body)
}

/// All dialects: they differ by their paths.
async fn dialect(world: Shared, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = String::from_utf8_lossy(&to_bytes(body, 1 << 22).await.unwrap_or_default()).into_owned();
    let path = parts.uri.path_and_query().map_or("", |it| it.as_str()).to_owned();
    let said =
        |name: &str| parts.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned();
    let condition = [said("if-match"), said("if-none-match"), said("if-unmodified-since")].concat();
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    world.heard.push(Heard {
        method: parts.method.clone(),
        path: path.clone(),
        condition: condition.clone(),
        body: body.clone(),
    });
    let version = world.version;
    let day = format!("2026-01-0{}T00:00:00.000Z", version + 1);
    let is_known = parts.headers.contains_key("authorization");
    match (parts.method.as_str(), path.split('?').next().unwrap_or_default()) {
        ("GET", "/api/v3/datasets/open") => ok(&json!({
            "pid": "open", "datasetName": "run <1>", "ownerGroup": "readers", "updatedAt": day, "keywords": ["a"],
            "scientificMetadata": {"T": {"value": 60, "unit": "C"}, "list": [1, 2]},
        })),
        ("PATCH", "/api/v3/datasets/open") if !is_known => StatusCode::FORBIDDEN.into_response(),
        ("PATCH", "/api/v3/datasets/open") if condition != day => {
            StatusCode::PRECONDITION_FAILED.into_response()
        }
        ("PATCH", "/api/v3/datasets/open") if body.contains("no mail") => {
            answer(StatusCode::BAD_REQUEST, &json!({"message": ["contactEmail must be an email"]}))
        }
        ("PATCH", "/api/v3/datasets/open") if body.contains("race") => {
            world.version += 1;
            StatusCode::PRECONDITION_FAILED.into_response()
        }
        ("PATCH", "/api/v3/datasets/open") => ok(&json!({})),
        ("GET", "/topics/v1/default/topic") if path.contains("Tide") => {
            let label = json!([{"scope": "default", "name": "label", "value": "Tide"}]);
            let topic = json!({"id": "Tide", "metadata": label, "associations": [], "occurrences": []});
            ([("etag", format!("\"{version}\""))], axum::Json(topic)).into_response()
        }
        ("PUT", "/topics/v1/default/topic") if condition == "*" => answer(StatusCode::CREATED, &json!({})),
        ("PUT", "/topics/v1/default/topic") if condition == format!("\"{version}\"") => ok(&json!({})),
        ("PUT", "/topics/v1/default/topic") => StatusCode::PRECONDITION_FAILED.into_response(),
        ("GET", "/data-import-profiles/mappingProfiles/1") => ok(&json!({
            "id": "1", "name": "Items", "existingRecordType": "ITEM", "metadata": {"updatedDate": day},
            "mappingDetails": {"mappingFields": [{"name": "barcode", "path": "item.barcode", "value": "945$b"}]},
        })),
        ("GET", "/data-import-profiles/mappingProfiles/3") => ok(&json!({
            "id": "3", "name": "Changes", "existingRecordType": "MARC_BIBLIOGRAPHIC", "metadata": {"updatedDate": day},
            "mappingDetails": {"mappingFields": [], "marcMappingOption": "MODIFY", "marcMappingDetails": [
                {"order": 0, "action": "DELETE", "field": {"field": "035", "indicator1": "*", "indicator2": "*",
                    "subfields": [{"subfield": "*"}]}}]},
        })),
        ("PUT", "/data-import-profiles/mappingProfiles/3") => ok(&json!({"id": "3"})),
        ("POST", "/mapping-preview") if body.contains("nothing") => {
            (StatusCode::NOT_FOUND, "No source record has the id \"nothing\"").into_response()
        }
        ("POST", "/mapping-preview") => ok(&json!({
            "record": {"title": "Tides", "marc": "LEADER x\n245 10 $aTides"}, "marcAfter": null, "faults": ["no location"],
            "fields": [{"path": "item.barcode", "value": "945$c", "made": [{"barcode": "c1"}], "faults": []}],
            "made": [{"barcode": "c1"}],
        })),
        ("PUT", "/data-import-profiles/mappingProfiles/1") if condition != format!("\"{day}\"") => {
            StatusCode::CONFLICT.into_response()
        }
        ("PUT", "/data-import-profiles/mappingProfiles/1") => ok(&json!({"id": "1"})),
        ("POST", "/data-import-profiles/mappingProfiles") => answer(StatusCode::CREATED, &json!({"id": "2"})),
        ("GET", "/metadata-provider/jobLogEntries/1/records/2") => {
            ok(&json!({"sourceRecordOrder": "4", "error": "field 245: wrong", "sourceRecordTitle": "Tides"}))
        }
        ("GET", "/source-storage/records/2") => {
            ok(&json!({"rawRecord": {"content": "=LDR  00000nam a2200000   4500\n=245  10$aTides <b>\n"}}))
        }
        ("GET", "/api/datasets/:persistentId/userPermissions") => {
            ok(&json!({"data": {"canEditDataset": is_known && path.contains("mine")}}))
        }
        ("POST", "/api/datasets/:persistentId/add") if body.contains("refuse.csv") => {
            answer(StatusCode::BAD_REQUEST, &json!({"message": "a file of that name"}))
        }
        ("POST", "/api/datasets/:persistentId/add") => ok(&json!({"data": {}})),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
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
    for (name, group) in [("ada", "readers"), ("bo", "others"), ("root", "admin")] {
        let mut user = accounts.new_user(name);
        user.groups = vec![group.to_owned()];
        runtime()?.block_on(accounts.create(&tenant, user, Some(Password::new("a good one")?)))?;
    }
    let world = Shared::default();
    let neighbours = ["scicat", "dataverse", "folio", "conclave"].map(|name| {
        let heard = Arc::clone(&world);
        let router = Router::new().fallback(move |request: Request| dialect(Arc::clone(&heard), request));
        Neighbour::of(&Mount::new(name, &["/"], router))
    });
    let context = Context::new(catalogue.clone(), accounts, limits, TenantChoice::default());
    let log = RecentLog::default();
    let settings = pinakes_site::Settings { log: log.clone(), ..pinakes_site::Settings::default() };
    let mount = pinakes_site::mount(context, settings, neighbours.into())?;
    Ok(House { _folder: folder, catalogue, mount, world, log })
}

impl House {
    fn send(&self, method: Method, path: &str, cookie: &str, token: &str, body: &[u8]) -> Outcome<Page> {
        let request = Request::builder().method(method).uri(path).header("host", "site.example.org");
        let request = request.header("cookie", cookie).header("x-csrf-token", token);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let request = request.header("content-length", body.len()).body(Body::from(body.to_vec()))?;
        runtime()?.block_on(async {
            let (parts, body) = self.mount.answer(request, self.catalogue.budget()).await.into_parts();
            let text = String::from_utf8_lossy(&to_bytes(body, 1 << 20).await?).replace("&#x2f;", "/");
            Ok(Page { status: parts.status, headers: parts.headers, text })
        })
    }

    fn get(&self, path: &str, cookie: &str) -> Outcome<Page> {
        self.send(Method::GET, path, cookie, "", b"")
    }

    fn post(&self, path: &str, cookie: &str, form: &str) -> Outcome<Page> {
        self.send(Method::POST, path, cookie, "", form.as_bytes())
    }

    fn sign_in(&self, name: &str) -> Outcome<String> {
        let said = self.post("/site/sign-in", "", &format!("username={name}&password=a+good+one"))?;
        assert_eq!(said.status, StatusCode::SEE_OTHER, "{}", said.text);
        Ok(said.header("set-cookie").split(';').next().unwrap_or_default().to_owned())
    }

    /// The token of the forms of a session.
    fn csrf(&self, cookie: &str) -> Outcome<String> {
        let page = self.get("/site/account", cookie)?;
        let found = page.text.split_once("name=\"_csrf\" value=\"").and_then(|it| it.1.split('"').next());
        Ok(found.ok_or("no form")?.to_owned())
    }

    /// The last thing that a dialect was sent by a method.
    fn heard(&self, method: &Method) -> Option<Heard> {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.heard.iter().rev().find(|it| it.method == *method).cloned()
    }

    fn somebody_else_saves(&self) {
        self.world.lock().unwrap_or_else(PoisonError::into_inner).version += 1;
    }
}

impl Page {
    fn header(&self, name: &str) -> String {
        self.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
    }

    /// The value of a field of the page's form.
    fn field(&self, name: &str) -> String {
        let value =
            self.text.split_once(&format!("name=\"{name}\" value=\"")).and_then(|it| it.1.split('"').next());
        value.unwrap_or("(none)").replace("&quot;", "\"")
    }
}

const DATASET: &str =
    "datasetName=run+%3C1%3E&keywords=a&row.0.was=T&row.0.name=T&row.0.value=61&row.0.unit=C";

#[test]
fn metadata_are_saved_as_they_were_read_or_not_at_all() -> Outcome {
    let house = house()?;
    let path = "/site/edit/dataset/open";
    assert_eq!(house.get(path, "")?.status, StatusCode::UNAUTHORIZED);
    let ada = house.sign_in("ada")?;
    let form = house.get(path, &ada)?;
    assert!(form.text.contains("run &lt;1&gt;") && form.field("row.0.value") == "60", "{}", form.text);
    let since = form.field("since");
    assert_eq!(since, "2026-01-01T00:00:00.000Z");
    assert_eq!(house.post(path, &ada, DATASET)?.status, StatusCode::FORBIDDEN, "without a token");
    let start = format!("_csrf={}&since={since}&{DATASET}", house.csrf(&ada)?);
    let saved = house.post(path, &ada, &start)?;
    assert_eq!(
        (saved.status, saved.header("location")),
        (StatusCode::SEE_OTHER, "/site/dataset/open".to_owned())
    );
    let sent = house.heard(&Method::PATCH).ok_or("nothing was sent")?;
    assert_eq!(sent.condition, since);
    let body: Value = serde_json::from_str(&sent.body)?;
    assert_eq!(body, json!({"scientificMetadata": {"T": {"value": 61, "unit": "C"}, "list": [1, 2]}}));
    // What is wrong stands by its field, and what was typed stays.
    let wrong = house.post(path, &ada, &format!("{start}&contactEmail=no+mail"))?;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("id=\"fault-contactEmail\">contactEmail must be an email"), "{}", wrong.text);
    assert!(wrong.field("row.0.value") == "61" && wrong.text.contains("value=\"no mail\""));
    let more = house.post(path, &ada, &format!("{start}&more=row"))?;
    assert!(more.text.contains("name=\"row.4.name\"") && more.field("since") == since, "{}", more.text);
    // Somebody else saved: nothing is sent, what is kept now is told, and a second attempt goes onto that.
    house.somebody_else_saves();
    let late = house.post(path, &ada, &start)?;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(
        late.text.contains("Somebody else has saved") && late.text.contains("Kept now: 60 C"),
        "{}",
        late.text
    );
    assert_eq!(
        (late.field("since").as_str(), late.field("row.0.value").as_str()),
        ("2026-01-02T00:00:00.000Z", "61")
    );
    let again = start.replace(&since, "2026-01-02T00:00:00.000Z");
    assert_eq!(house.post(path, &ada, &again)?.status, StatusCode::SEE_OTHER);
    // The same where the other one comes between reading and saving.
    let race = house.post(path, &ada, &format!("{again}&comment=race"))?;
    assert_eq!(
        (race.status, race.field("since").as_str()),
        (StatusCode::CONFLICT, "2026-01-03T00:00:00.000Z")
    );
    Ok(())
}

#[test]
fn the_way_to_the_editor_is_shown_to_those_whose_dataset_it_is() -> Outcome {
    let house = house()?;
    for (name, is_shown) in [("ada", true), ("bo", false), ("root", true)] {
        let cookie = house.sign_in(name)?;
        let page = house.get("/site/dataset/open", &cookie)?;
        assert_eq!(page.text.contains("/site/edit/dataset/open"), is_shown, "{name}");
    }
    assert!(!house.get("/site/dataset/open", "")?.text.contains("/site/edit/"));
    Ok(())
}

#[test]
fn topics_are_written_as_they_were_read() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let path = "/site/edit/topic/default/Tide";
    assert_eq!(house.get(path, "")?.status, StatusCode::UNAUTHORIZED);
    assert_eq!(house.get("/site/edit/topic/other/Tide", &ada)?.status, StatusCode::NOT_FOUND);
    let form = house.get(path, &ada)?;
    assert_eq!((form.field("since").as_str(), form.field("metadata.0.value").as_str()), ("\"0\"", "Tide"));
    let csrf = house.csrf(&ada)?;
    let row = "metadata.0.was=default%1Flabel&metadata.0.name=label&metadata.0.value=Tides&metadata.0.scope=default";
    let start = format!("_csrf={csrf}&since=%220%22&{row}");
    let saved = house.post(path, &ada, &start)?;
    assert_eq!(
        (saved.status, saved.header("location")),
        (StatusCode::SEE_OTHER, "/t/default/Tide".to_owned())
    );
    let sent = house.heard(&Method::PUT).ok_or("nothing was sent")?;
    let body: Value = serde_json::from_str(&sent.body)?;
    assert_eq!((sent.condition.as_str(), &body["metadata"][0]["value"]), ("\"0\"", &json!("Tides")));
    let half = house.post(path, &ada, &format!("{start}&occurrence.0.role=note&occurrence.0.behaviour="))?;
    assert_eq!(half.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(half.text.contains("id=\"fault-occurrence.0.role\""), "{}", half.text);
    house.somebody_else_saves();
    let late = house.post(path, &ada, &start)?;
    assert_eq!((late.status, late.field("since").as_str()), (StatusCode::CONFLICT, "\"1\""));
    assert!(
        late.field("metadata.0.value") == "Tides" && late.text.contains("/t/default/Tide"),
        "{}",
        late.text
    );
    // A new one is made only where there is none.
    let new = house.get("/site/edit/topic/default/Sea/Wave", &ada)?;
    assert_eq!((new.field("since").as_str(), new.field("metadata.0.value").as_str()), ("", "Wave"));
    let made = house.post("/site/edit/topic/default/Sea/Wave", &ada, &start.replace("%220%22", ""))?;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
    assert_eq!(house.heard(&Method::PUT).map(|it| it.condition), Some("*".to_owned()));
    let to = house.get("/site/topics?map=default&id=Sea/Wave", &ada)?;
    assert_eq!(to.header("location"), "/site/edit/topic/default/Sea/Wave");
    Ok(())
}

#[test]
fn a_mapping_profile_is_tried_before_it_is_saved() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let path = "/site/mapping/1";
    let form = house.get(path, &ada)?;
    assert_eq!(form.field("field.0.value"), "945$b", "{}", form.text);
    let field = "field.0.at=/mappingDetails/mappingFields/0&field.0.path=item.barcode&field.0.value=945%24c";
    let start =
        format!("_csrf={}&since={}&name=Items&entity=ITEM&{field}", house.csrf(&ada)?, form.field("since"));
    let tried = house.post(path, &ada, &format!("{start}&action=preview&record=it1"))?;
    assert_eq!(tried.status, StatusCode::OK);
    for expected in ["no location", "245 10 $aTides", "&quot;barcode&quot;: &quot;c1&quot;"] {
        assert!(tried.text.contains(expected), "{expected}: {}", tried.text);
    }
    let asked: Value = serde_json::from_str(&house.heard(&Method::POST).ok_or("nothing was sent")?.body)?;
    assert_eq!(asked["record"], "it1");
    assert_eq!(asked["profile"]["mappingDetails"]["mappingFields"][0]["value"], "945$c");
    assert!(house.heard(&Method::PUT).is_none(), "a preview saves nothing");
    let missing = house.post(path, &ada, &format!("{start}&action=preview&record=nothing"))?;
    assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        missing.text.contains("id=\"record-fault\">No source record")
            && missing.field("field.0.value") == "945$c"
    );
    let saved = house.post(path, &ada, &format!("{start}&action=save"))?;
    assert_eq!(saved.header("location"), path, "{}", saved.text);
    assert_eq!(
        house.heard(&Method::PUT).map(|it| it.condition),
        Some("\"2026-01-01T00:00:00.000Z\"".to_owned())
    );
    let copied = house.post(path, &ada, &format!("{start}&action=copy"))?;
    assert_eq!(copied.header("location"), "/site/mapping/2");
    let sent: Value = serde_json::from_str(&house.heard(&Method::POST).ok_or("nothing was sent")?.body)?;
    assert!(sent["profile"].get("id").is_none() && sent["profile"].get("metadata").is_none());
    let nameless =
        house.post(path, &ada, &format!("{}&action=save", start.replace("name=Items", "name=")))?;
    assert!(nameless.text.contains("id=\"fault-name\""), "{}", nameless.text);
    house.somebody_else_saves();
    assert_eq!(house.post(path, &ada, &format!("{start}&action=save"))?.status, StatusCode::CONFLICT);
    Ok(())
}

#[test]
fn changes_of_marc_fields_are_tried_and_saved() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let path = "/site/mapping/3";
    let form = house.get(path, &ada)?;
    assert_eq!(
        (form.field("marc.0.tag"), form.field("marc.0.ind1")),
        ("035".to_owned(), "*".to_owned()),
        "{}",
        form.text
    );
    assert!(
        form.text.contains("<option selected>DELETE</option>") && form.text.contains("name=\"marc.1.tag\"")
    );
    let start = format!(
        "_csrf={}&since={}&name=Changes&entity=MARC_BIBLIOGRAPHIC&marc.0.at=0/0&marc.0.action=DELETE&marc.0.tag=035&marc.0.ind1=*\
         &marc.0.ind2=*&marc.0.code=*&marc.1.tag=245&marc.1.action=EDIT&marc.1.ind1=*&marc.1.ind2=*&marc.1.code=a",
        house.csrf(&ada)?,
        form.field("since")
    );
    let half = house.post(path, &ada, &format!("{start}&action=save"))?;
    assert_eq!((half.status, house.heard(&Method::PUT).is_none()), (StatusCode::UNPROCESSABLE_ENTITY, true));
    assert!(half.text.contains("id=\"fault-marc.1\">Choose what is done with the subfield"), "{}", half.text);
    assert_eq!(half.field("marc.1.tag"), "245", "what was typed stays");
    let whole = format!("{start}&marc.1.subaction=REPLACE&marc.1.find=old+&marc.1.replace=new+");
    let more = house.post(path, &ada, &format!("{whole}&action=more-marc"))?;
    assert!(
        more.text.contains("name=\"marc.5.tag\"") && more.field("marc.1.find") == "old ",
        "{}",
        more.text
    );
    let tried = house.post(path, &ada, &format!("{whole}&action=preview&record=it1"))?;
    assert_eq!(tried.status, StatusCode::OK, "{}", tried.text);
    let asked: Value = serde_json::from_str(&house.heard(&Method::POST).ok_or("nothing was sent")?.body)?;
    let list = &asked["profile"]["mappingDetails"]["marcMappingDetails"];
    assert_eq!(list[0]["field"]["field"], "035");
    let part =
        json!([{"subfield": "a", "subaction": "REPLACE", "data": {"find": "old ", "replaceWith": "new "}}]);
    assert_eq!((&list[1]["order"], &list[1]["field"]["subfields"]), (&json!(1), &part));
    let saved = house.post(path, &ada, &format!("{whole}&action=save"))?;
    assert_eq!(saved.header("location"), path, "{}", saved.text);
    let wrong = whole.replace("entity=MARC_BIBLIOGRAPHIC", "entity=ITEM");
    let elsewhere = house.post(path, &ada, &format!("{wrong}&action=save"))?;
    assert!(elsewhere.text.contains("Only profiles of the types MARC_"), "{}", elsewhere.text);
    Ok(())
}

#[test]
fn the_record_of_an_error_is_shown_with_its_place() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let page = house.get("/site/imports/1/records/2", &ada)?;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("field 245: wrong") && page.text.contains("Tides &lt;b&gt;"), "{}", page.text);
    assert_eq!(page.text.matches("class=\"marked\"").count(), 1);
    Ok(())
}

/// Begins an upload; gives its address, where it goes on, and the bytes of a piece.
fn begin(house: &House, cookie: &str, csrf: &str, file: &str) -> Outcome<(StatusCode, Value)> {
    let form = format!("_csrf={csrf}&pid=mine&modified=1&type=text/csv&folder=data&{file}");
    let said = house.post("/site/uploads", cookie, &form)?;
    Ok((said.status, serde_json::from_str(&said.text)?))
}

#[test]
fn an_upload_goes_on_where_it_broke_off() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let csrf = house.csrf(&ada)?;
    for (form, expected) in [
        ("_csrf=0.1&pid=mine&name=a.csv&size=1".to_owned(), StatusCode::FORBIDDEN),
        (format!("_csrf={csrf}&pid=other&name=a.csv&size=1"), StatusCode::FORBIDDEN),
        (format!("_csrf={csrf}&pid=mine&name=&size=1"), StatusCode::UNPROCESSABLE_ENTITY),
        (
            format!("_csrf={csrf}&pid=mine&name=a.csv&size=99999999999999999"),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
    ] {
        let said = house.post("/site/uploads", &ada, &form)?;
        assert_eq!(said.status, expected, "{form}");
        assert!(serde_json::from_str::<Value>(&said.text)?["reason"].is_string(), "{}", said.text);
    }
    let (status, upload) = begin(&house, &ada, &csrf, "name=a.csv&size=10")?;
    assert_eq!((status, &upload["at"]), (StatusCode::CREATED, &json!(0)));
    let address = upload["address"].as_str().ok_or("no address")?.to_owned();
    let put = |cookie: &str, token: &str, at: u64, bytes: &[u8]| {
        house.send(Method::PUT, &format!("{address}?at={at}"), cookie, token, bytes)
    };
    assert_eq!(put(&ada, "", 0, b"01234")?.status, StatusCode::FORBIDDEN, "without a token");
    let (bo, first) = (house.sign_in("bo")?, put(&ada, &csrf, 0, b"01234")?);
    assert_eq!((first.status, first.text.as_str()), (StatusCode::OK, r#"{"at":5}"#));
    assert_eq!(put(&bo, &house.csrf(&bo)?, 5, b"56789")?.status, StatusCode::NOT_FOUND, "another's");
    let twice = put(&ada, &csrf, 0, b"01234")?;
    assert_eq!((twice.status, twice.text.as_str()), (StatusCode::CONFLICT, r#"{"at":5}"#));
    assert_eq!(
        put(&ada, &csrf, 5, b"5678901")?.status,
        StatusCode::PAYLOAD_TOO_LARGE,
        "more than the file has"
    );
    let finish = |token: &str| house.send(Method::POST, &address, &ada, token, b"");
    assert_eq!(finish(&csrf)?.status, StatusCode::CONFLICT, "a half file");
    // The page was left: the same file is found again.
    let (status, again) = begin(&house, &ada, &csrf, "name=a.csv&size=10")?;
    assert_eq!((status, &again["at"], &again["address"]), (StatusCode::OK, &json!(5), &upload["address"]));
    assert_eq!(put(&ada, &csrf, 5, b"56789")?.text, r#"{"at":10}"#);
    assert!(house.heard(&Method::POST).is_none_or(|it| !it.path.contains("/add")));
    let done = finish(&csrf)?;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text);
    let sent = house.heard(&Method::POST).ok_or("nothing was sent")?;
    assert_eq!(sent.path, "/api/datasets/:persistentId/add?persistentId=mine");
    assert!(
        sent.body.contains("filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n0123456789\r\n"),
        "{}",
        sent.body
    );
    assert!(sent.body.contains(r#"{"directoryLabel":"data"}"#), "{}", sent.body);
    assert_eq!(finish(&csrf)?.status, StatusCode::NOT_FOUND, "it is over");
    Ok(())
}

#[test]
fn what_dataverse_refuses_is_told_and_can_be_given_up() -> Outcome {
    let house = house()?;
    let ada = house.sign_in("ada")?;
    let csrf = house.csrf(&ada)?;
    let (_, upload) = begin(&house, &ada, &csrf, "name=refuse.csv&size=0")?;
    let address = upload["address"].as_str().ok_or("no address")?.to_owned();
    for _ in 0..2 {
        let refused = house.send(Method::POST, &address, &ada, &csrf, b"")?;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(refused.text, r#"{"reason":"a file of that name"}"#);
    }
    assert_eq!(house.send(Method::DELETE, &address, &ada, "", b"")?.status, StatusCode::FORBIDDEN);
    assert_eq!(house.send(Method::DELETE, &address, &ada, &csrf, b"")?.status, StatusCode::NO_CONTENT);
    assert_eq!(house.send(Method::POST, &address, &ada, &csrf, b"")?.status, StatusCode::NOT_FOUND);
    let n_most = (0..101).find(|at| {
        let begun = begin(&house, &ada, &csrf, &format!("name={at}.csv&size=1"));
        begun.is_ok_and(|it| it.0 == StatusCode::UNPROCESSABLE_ENTITY)
    });
    assert_eq!(n_most, Some(100), "uploads under way have a bound");
    Ok(())
}

#[test]
fn the_log_is_for_operators_and_holds_no_secret() -> Outcome {
    let house = house()?;
    for level in ["INFO", "WARN"] {
        let text = format!("<{level}> postgres://ada:hunter2@db/pinakes");
        house.log.add(Line { at_ms: 1_000, level, target: "pinakes".to_owned(), text });
    }
    let (ada, root) = (house.sign_in("ada")?, house.sign_in("root")?);
    assert_eq!(house.get("/site/operators", &ada)?.status, StatusCode::FORBIDDEN);
    let page = house.get("/site/operators", &root)?;
    assert!(page.text.contains("&lt;INFO&gt; postgres://***@db/pinakes"), "{}", page.text);
    assert!(!page.text.contains("hunter2") && page.text.contains("1970-01-01T00:00:01Z"));
    let warnings = house.get("/site/operators?level=WARN", &root)?;
    assert!(warnings.text.contains("&lt;WARN&gt;") && !warnings.text.contains("&lt;INFO&gt;"));
    Ok(())
}

#[test]
fn a_script_is_let_in_by_its_page_alone() -> Outcome {
    let house = house()?;
    let page = house.get("/site/search", "")?;
    assert!(!page.header("content-security-policy").contains("script-src") && !page.text.contains("<script"));
    for name in ["upload.js", "live.js"] {
        let script = house.get(&format!("/site/assets/{name}"), "")?;
        assert_eq!(
            (script.status, script.header("content-type").as_str()),
            (StatusCode::OK, "text/javascript; charset=utf-8")
        );
    }
    assert_eq!(house.get("/site/assets/other.js", "")?.status, StatusCode::NOT_FOUND);
    Ok(())
}
