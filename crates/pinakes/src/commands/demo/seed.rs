//! What the demo keeps beside SciCat's records: a small library, a citation graph, a deposit, a topic map. All of it is made up
//! here, and goes through the interfaces that clients use.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use axum::body::Body;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use pinakes_citations::{BuildOptions, Observer, Problem, Progress, build};
use pinakes_http::{Context, Neighbour, OnBehalf, Question};
use serde_json::{Value, json};

use crate::commands::demo::accounts::ACCOUNTS;

/// Titles of the library, each with one item.
const TITLES: usize = 1000;
/// Records in one request.
const BATCH: usize = 100;
/// Patrons of the library.
const PATRONS: usize = 20;
/// Works of the citation graph.
const WORKS: usize = 60;

// Reference data that is the same in every FOLIO.
const LOCATION: &str = "fcd64ce1-6995-48f0-840e-89ffa2288371";
const MATERIAL_TYPE: &str = "1a54b431-2e4f-452d-9cae-9cee66c9a892";
const LOAN_TYPE: &str = "2b94c631-fca9-4892-a730-03ee529ffe27";
const INSTANCE_TYPE: &str = "30fffe0e-e985-4144-b2e2-1e8179bdb41f";
const HOLDINGS_SOURCE: &str = "f32d531e-df79-46b3-8932-cdd35f7a2264";
const PATRON_GROUP: &str = "3684a786-6671-4268-8ed0-9db82ebca60b";
const PERSONAL_NAME: &str = "2b94c631-fca9-4892-a730-03ee529ffe2a";
const DOI_TYPE: &str = "39554f54-d0bb-4f0a-89a4-e422f6136316";

const ADJECTIVES: [&str; 10] = [
    "applied",
    "modern",
    "experimental",
    "coastal",
    "historical",
    "practical",
    "quantitative",
    "northern",
    "early",
    "urban",
];
const SUBJECTS: [&str; 10] = [
    "crystallography",
    "oceanography",
    "cataloguing",
    "astronomy",
    "botany",
    "metrology",
    "archives",
    "statistics",
    "microscopy",
    "cartography",
];
const FORMS: [&str; 10] = [
    "An introduction to {}",
    "Handbook of {}",
    "Essays on {}",
    "Methods of {}",
    "The history of {}",
    "Problems in {}",
    "A reader in {}",
    "Lectures on {}",
    "Principles of {}",
    "Field notes on {}",
];
const AUTHORS: [&str; 8] = [
    "Sample, Ada",
    "Muster, Emil",
    "Example, Noor",
    "Specimen, Ida",
    "Trial, Jun",
    "Vorlage, Karl",
    "Proto, Mira",
    "Draft, Omar",
];

/// Asks the dialects in the name of the demo's admin.
struct Clerk<'a> {
    neighbours: &'a [Neighbour],
    context: &'a Context,
    tenant: String,
    token: String,
}

impl Clerk<'_> {
    async fn send(&self, dialect: &str, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send_as(&self.token, dialect, method, path, body).await
    }

    /// Errors: the dialect refused; what it said.
    async fn send_as(
        &self,
        token: &str,
        dialect: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Value> {
        let found = self.neighbours.iter().find(|it| it.dialect() == dialect);
        let neighbour = found.with_context(|| format!("the demo does not serve {dialect}"))?;
        let token = Some(token).filter(|it| !it.is_empty());
        let asker = OnBehalf { tenant: &self.tenant, token, headers: &HeaderMap::new() };
        let budget = self.context.catalogue().budget();
        let said = neighbour.ask(method, path, Some(body), asker, budget).await?;
        if !said.status.is_success() {
            let path = path.split('?').next().unwrap_or_default();
            bail!("{dialect} {path}: {} {}", said.status, String::from_utf8_lossy(&said.body));
        }
        Ok(serde_json::from_slice(&said.body).unwrap_or(Value::Null))
    }
}

impl Clerk<'_> {
    /// Adds a file to a dataset, as clients of Dataverse do.
    async fn upload(
        &self,
        token: &str,
        dataset: i64,
        name: &str,
        content_type: &str,
        content: &[u8],
    ) -> anyhow::Result<()> {
        const BOUNDARY: &str = "pinakes-demo-7d1f";
        let found = self.neighbours.iter().find(|it| it.dialect() == "dataverse");
        let neighbour = found.context("the demo does not serve dataverse")?;
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n"
        );
        let form = [head.as_bytes(), content, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
        let of_form = HeaderValue::from_str(&format!("multipart/form-data; boundary={BOUNDARY}"))?;
        let path = format!("/api/datasets/{dataset}/add");
        let headers = vec![(CONTENT_TYPE, of_form)];
        let question = Question { method: Method::POST, path: &path, headers, body: Body::from(form) };
        let asker = OnBehalf { tenant: &self.tenant, token: Some(token), headers: &HeaderMap::new() };
        let answer = neighbour.open(question, asker, self.context.catalogue().budget()).await?;
        if !answer.status().is_success() {
            bail!("dataverse: {name}: {}", answer.status());
        }
        Ok(())
    }
}

/// Fills what the dialects keep beside SciCat. `key` opens Dataverse's paths for its own administrators.
pub(super) async fn fill(neighbours: &[Neighbour], context: &Context, key: &str) -> anyhow::Result<String> {
    let tenant = context.tenants().default.clone();
    let db = context.db_of(&tenant).await.map_err(|it| anyhow::anyhow!("{it}"))?;
    let admin = context.accounts().by_username(db.tenant(), ACCOUNTS[0].name).await?;
    let admin = admin.context("the demo's admin is missing")?;
    let claims = json!({"username": admin.username, "id": admin.id, "_id": admin.id, "sub": admin.username, "user_id": admin.id});
    let claims = claims.as_object().cloned().unwrap_or_default();
    let token = context.accounts().sign_for(&tenant, claims, 600);
    let clerk = Clerk { neighbours, context, tenant, token };
    library(&clerk).await?;
    let n_topics = topics(&clerk).await?;
    deposit(&clerk, key).await?;
    Ok(format!(
        "{TITLES} library titles with items; {PATRONS} patrons; {n_topics} topics; 1 deposit with 2 versions"
    ))
}

/// An id that is the same in every demo.
fn id(kind: u8, n: usize) -> String {
    format!("de300000-000{kind}-4000-8000-{n:012x}")
}

fn title(n: usize) -> String {
    let about = format!("{} {}", ADJECTIVES[n / 10 % 10], SUBJECTS[n % 10]);
    FORMS[n / 100 % 10].replace("{}", &about)
}

async fn library(clerk: &Clerk<'_>) -> anyhow::Result<()> {
    for first in (0..TITLES).step_by(BATCH) {
        let numbers = || first..(first + BATCH).min(TITLES);
        let instances: Vec<Value> = numbers()
            .map(|n| {
                let author = AUTHORS[(n * 3 + n / 10) % AUTHORS.len()];
                let identifiers = if n < WORKS {
                    json!([{"identifierTypeId": DOI_TYPE, "value": doi(n)}])
                } else {
                    json!([])
                };
                json!({
                    "id": id(1, n), "source": "FOLIO", "title": title(n), "instanceTypeId": INSTANCE_TYPE,
                    "contributors": [{"name": author, "contributorNameTypeId": PERSONAL_NAME, "primary": true}],
                    "publication": [{"publisher": "Demo Press", "place": "Alexandria",
                        "dateOfPublication": (1950 + n % 75).to_string()}],
                    "languages": [if n % 3 == 0 { "ger" } else { "eng" }], "identifiers": identifiers,
                    "subjects": [{"value": SUBJECTS[n % 10]}],
                })
            })
            .collect();
        let holdings: Vec<Value> = numbers()
            .map(|n| {
                let shelf = format!("D {} {:03}", n % 10, n / 10);
                json!({
                    "id": id(2, n), "instanceId": id(1, n), "permanentLocationId": LOCATION,
                    "sourceId": HOLDINGS_SOURCE, "callNumber": shelf,
                })
            })
            .collect();
        let items: Vec<Value> = numbers()
            .map(|n| {
                json!({
                    "id": id(3, n), "holdingsRecordId": id(2, n), "barcode": format!("{}", 100_000 + n),
                    "materialTypeId": MATERIAL_TYPE, "permanentLoanTypeId": LOAN_TYPE, "status": {"name": "Available"},
                })
            })
            .collect();
        for (path, name, list) in [
            ("/instance-storage/batch/synchronous", "instances", instances),
            ("/holdings-storage/batch/synchronous", "holdingsRecords", holdings),
            ("/item-storage/batch/synchronous", "items", items),
        ] {
            clerk.send("folio", Method::POST, path, &json!({name: list})).await?;
        }
    }
    for n in 0..PATRONS {
        let user = json!({
            "id": id(4, n), "username": format!("patron{n}"), "barcode": format!("{}", 900_000 + n), "active": true,
            "patronGroup": PATRON_GROUP,
            "personal": {"lastName": "Patron", "firstName": format!("Number {n}"), "preferredContactTypeId": "002"},
        });
        clerk.send("folio", Method::POST, "/users", &user).await?;
    }
    for (n, author) in AUTHORS.iter().enumerate() {
        let record = json!({"id": id(5, n), "personalName": author, "naturalId": format!("demo{n}"), "source": "FOLIO"});
        clerk.send("folio", Method::POST, "/authority-storage/authorities", &record).await?;
    }
    Ok(())
}

async fn topics(clerk: &Clerk<'_>) -> anyhow::Result<usize> {
    let mut n_topics = 0;
    let label = |text: &str| json!({"scope": "default", "name": "label", "value": text});
    let about = |text: &str| json!({"scope": "default", "name": "description", "value": text});
    let arc = |ty: &str, to: &str, role: &str| json!({"type": ty, "scope": "default", "reference": to, "role": role, "label": to});
    let mut put = Vec::new();
    let home: Vec<Value> = SUBJECTS.iter().map(|it| arc("navigation", it, "down")).collect();
    put.push((
        "home".to_owned(),
        json!({
            "metadata": [label("Home"), about("Fields of the demo's records")], "associations": home,
        }),
    ));
    for (n, subject) in SUBJECTS.iter().enumerate() {
        let next = SUBJECTS[(n + 1) % SUBJECTS.len()];
        let arcs = [arc("navigation", "home", "up"), arc("related", next, "field")];
        let text = format!("Books and measurements about {subject}.");
        put.push((
            (*subject).to_owned(),
            json!({
                "metadata": [label(subject), about(&text)], "associations": arcs,
            }),
        ));
    }
    for (id, topic) in put {
        clerk.send("conclave", Method::PUT, &format!("/topics/v1/default/topic?id={id}"), &topic).await?;
        n_topics += 1;
    }
    Ok(n_topics)
}

async fn deposit(clerk: &Clerk<'_>, key: &str) -> anyhow::Result<()> {
    let user = json!({
        "firstName": "Ada", "lastName": "Sample", "userName": "depositor", "email": "depositor@example.org",
    });
    let password = format!("A1{key}");
    let path = format!("/api/builtin-users?password={password}&key={key}&unblock-key={key}");
    let made = clerk.send_as("", "dataverse", Method::POST, &path, &user).await?;
    let token = made["data"]["apiToken"].as_str().unwrap_or_default().to_owned();
    let path = format!("/api/admin/superuser/depositor?unblock-key={key}");
    clerk.send_as("", "dataverse", Method::POST, &path, &Value::Null).await?;
    // Its form has a second block to show.
    let blocks = json!(["citation", "geospatial"]);
    clerk.send_as(&token, "dataverse", Method::POST, "/api/dataverses/root/metadatablocks", &blocks).await?;
    let field = |name: &str, value: &str| json!({"typeName": name, "multiple": false, "typeClass": "primitive", "value": value});
    let compound = |name: &str, child: &str, value: &str| {
        let value = json!([{child: field(child, value)}]);
        json!({"typeName": name, "multiple": true, "typeClass": "compound", "value": value})
    };
    let subject = json!({
        "typeName": "subject", "multiple": true, "typeClass": "controlledVocabulary",
        "value": ["Earth and Environmental Sciences"],
    });
    let fields = json!([
        field("title", "Tide gauge readings of a harbour that is made up"),
        compound("author", "authorName", "Sample, Ada"),
        compound("datasetContact", "datasetContactEmail", "depositor@example.org"),
        compound(
            "dsDescription",
            "dsDescriptionValue",
            "Hourly water levels of one year, in metres, generated."
        ),
        compound("keyword", "keywordValue", "oceanography"),
        subject,
    ]);
    let body = json!({"datasetVersion": {
        "license": {"name": "CC0 1.0", "uri": "http://creativecommons.org/publicdomain/zero/1.0"},
        "metadataBlocks": {"citation": {"displayName": "Citation Metadata", "fields": fields}},
    }});
    let made =
        clerk.send_as(&token, "dataverse", Method::POST, "/api/dataverses/root/datasets", &body).await?;
    let number = made["data"]["id"].as_i64().context("the deposit got no number")?;
    for (name, content_type, content) in deposited() {
        clerk.upload(&token, number, name, content_type, &content).await?;
    }
    let path = format!("/api/datasets/{number}/actions/:publish?type=major");
    clerk.send_as(&token, "dataverse", Method::POST, &path, &Value::Null).await?;
    // A second version, so that there is something to compare.
    let path = format!("/api/datasets/{number}/editMetadata?replace=true");
    let title =
        json!({"fields": [field("title", "Tide gauge readings of a harbour that is made up, corrected")]});
    clerk.send_as(&token, "dataverse", Method::PUT, &path, &title).await?;
    let path = format!("/api/datasets/{number}/actions/:publish?type=minor");
    clerk.send_as(&token, "dataverse", Method::POST, &path, &Value::Null).await?;
    let user = json!({
        "firstName": "Demo", "lastName": "Admin", "emailAddress": "admin@example.org", "termsAccepted": true,
    });
    clerk.send("dataverse", Method::POST, "/api/users/register", &user).await?;
    for (assignee, role) in [("@admin", "admin"), (":authenticated-users", "dsContributor")] {
        let role = json!({"assignee": assignee, "role": role});
        let path = "/api/dataverses/root/assignments";
        clerk.send_as(&token, "dataverse", Method::POST, path, &role).await?;
    }
    Ok(())
}

/// Files of the deposit: name, type, content. A table, a text, and a picture of what the table says.
fn deposited() -> [(&'static str, &'static str, Vec<u8>); 3] {
    let mut table = "hour,level_m,gauge\n".to_owned();
    let mut bars = Vec::new();
    for hour in 0..240_u32 {
        let level = (f64::from(hour) / 12.42 * std::f64::consts::TAU).sin() * 1.8 + 2.5;
        let _ = writeln!(table, "{hour},{level:.2},A{}", hour % 2 + 1);
        bars.push(level);
    }
    let notes =
        "# Readings\n\nOne row an hour. Levels are metres above the chart's zero.\nAll of it is made up.\n";
    [
        ("readings.csv", "text/csv", table.into_bytes()),
        ("README.md", "text/markdown", notes.as_bytes().to_vec()),
        ("levels.png", "image/png", chart(&bars)),
    ]
}

/// A picture of bars as PNG, eight bits of grey.
fn chart(levels: &[f64]) -> Vec<u8> {
    const HEIGHT: usize = 120;
    let (width, zero) = (levels.len() * 2, 0_u8);
    let mut rows = Vec::with_capacity((width + 1) * HEIGHT);
    for row in 0..HEIGHT {
        rows.push(zero); // no filter
        let height = (HEIGHT - row) as f64 / HEIGHT as f64 * 5.0;
        rows.extend(levels.iter().flat_map(|it| [if height <= *it { 90_u8 } else { 245 }; 2]));
    }
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    let _ = zlib.write_all(&rows);
    let zlib = zlib.finish().unwrap_or_default();
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes();
    let head = [&side(width)[..], &side(HEIGHT)[..], &[8, 0, 0, 0, 0][..]].concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in [(b"IHDR", head), (b"IDAT", zlib), (b"IEND", Vec::new())] {
        let named = [&name[..], &content[..]].concat();
        let mut crc = flate2::Crc::new();
        crc.update(&named);
        png.extend(side(content.len()));
        png.extend_from_slice(&named);
        png.extend(crc.sum().to_be_bytes());
    }
    png
}

/// DOI of a work of the citation graph; the first works are also titles of the library.
fn doi(n: usize) -> String {
    format!("10.5555/demo.{n}")
}

/// Makes the citation graph: each work cites earlier ones, and all cite some of the first.
pub(super) fn citations(folder: &Path) -> anyhow::Result<()> {
    let mut edges = String::new();
    for citing in 1..WORKS {
        let mut cited = vec![citing / 2, citing / 3, citing % 7];
        cited.retain(|it| *it < citing);
        cited.sort_unstable();
        cited.dedup();
        for it in cited {
            let _ = writeln!(edges, "{}\t{}", doi(citing), doi(it));
        }
    }
    let path = folder.join("demo-citations.tsv");
    std::fs::write(&path, edges)?;
    build(&BuildOptions::new(vec![path], graph(folder)), &mut Quiet)?;
    Ok(())
}

/// The file of the citation graph.
pub(super) fn graph(folder: &Path) -> std::path::PathBuf {
    folder.join("demo-citations")
}

struct Quiet;

impl Observer for Quiet {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, _: &Problem) {}
}
