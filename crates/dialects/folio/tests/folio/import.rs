//! Imports end to end over HTTP: records in chunks, files, split files; matches and updates; broken records.

mod beside;
mod broken;
mod files;
mod matching;

use std::time::{Duration, Instant};

use axum::body::Body;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Timeout of a job, in seconds; generous, because a loaded machine is slow.
const PATIENCE_S: u64 = 120;
const AUTHORITIES: &str = "6eefa4c6-bbf7-4845-ad82-de7fc5abd0e3";
const BIBS: &str = "e34d7b92-9b83-11eb-a8b3-0242ac130003";
const HOLDINGS: &str = "80898dee-449f-44dd-9c8e-37d5eb469b1d";

/// Builds an ISO 2709 record with these fields: tag and text, in which `$` starts a subfield.
fn record(kind: char, fields: &[(&str, &str)]) -> String {
    let (mut directory, mut data) = (String::new(), String::new());
    for (tag, text) in fields {
        let text = if tag.starts_with("00") {
            (*text).to_owned()
        } else {
            format!("  {}", text.replace('$', "\u{1f}"))
        };
        directory.push_str(&format!("{tag}{:04}{:05}", text.len() + 1, data.len()));
        data.push_str(&format!("{text}\u{1e}"));
    }
    let base = 24 + directory.len() + 1;
    let level = if kind == 'z' { "n  " } else { " a " };
    let second = if kind == 'z' { ' ' } else { 'm' };
    format!(
        "{:05}n{kind}{second} a22{base:05}{level}4500{directory}\u{1e}{data}\u{1d}",
        base + data.len() + 1
    )
}

fn authority(n: u32) -> String {
    let number = format!("n{n:08}");
    record(
        'z',
        &[("001", &number), ("010", &format!("$an  {n:08} ")), ("100", &format!("$aExample {n},$d1835-"))],
    )
}

impl Server {
    pub(crate) async fn json(&self, request: &str) -> Result<(u16, Value), Failure> {
        let (status, _, body) = self.ask(request).await?;
        Ok((
            status.as_u16(),
            serde_json::from_slice(&body)
                .unwrap_or(Value::String(String::from_utf8_lossy(&body).into_owned())),
        ))
    }

    /// Creates a job for chunks with a profile.
    async fn job(&self, profile: &str) -> Result<String, Failure> {
        let (status, me) = self.json("librarian GET /bl-users/_self").await?;
        assert_eq!(status, 200, "{me}");
        let user = me["user"]["id"].as_str().unwrap_or_default();
        let body = json!({"sourceType": "ONLINE", "userId": user, "files": []});
        let (status, made) =
            self.json(&format!("librarian POST /change-manager/jobExecutions\n{body}")).await?;
        assert_eq!(status, 201, "{made}");
        let id = made["parentJobExecutionId"].as_str().unwrap_or_default().to_owned();
        let body = json!({"id": profile, "name": "x", "dataType": "MARC"});
        let path = format!("/change-manager/jobExecutions/{id}/jobProfile");
        let (status, job) = self.json(&format!("librarian PUT {path}\n{body}")).await?;
        assert_eq!(status, 200, "{job}");
        assert!(job["hrId"].is_u64() && job["jobProfileSnapshotWrapper"].is_object(), "{job}");
        Ok(id)
    }

    async fn send_records(
        &self,
        job: &str,
        records: &[String],
        is_last: bool,
        total: usize,
    ) -> Result<u16, Failure> {
        let list: Vec<Value> =
            records.iter().enumerate().map(|(at, it)| json!({"record": it, "order": at})).collect();
        let body = json!({"id": uuid::Uuid::new_v4().to_string(), "initialRecords": list, "recordsMetadata":
            {"last": is_last, "counter": records.len(), "total": total, "contentType": "MARC_RAW"}});
        let (status, answer) =
            self.json(&format!("librarian POST /change-manager/jobExecutions/{job}/records\n{body}")).await?;
        assert!(status == 204 || status == 400, "{answer}");
        Ok(status)
    }

    /// Waits until a job is finished.
    async fn ended(&self, job: &str) -> Result<Value, Failure> {
        let end = Instant::now() + Duration::from_secs(PATIENCE_S);
        loop {
            let (status, body) =
                self.json(&format!("librarian GET /change-manager/jobExecutions/{job}")).await?;
            assert_eq!(status, 200, "{body}");
            if matches!(body["status"].as_str(), Some("COMMITTED" | "ERROR" | "CANCELLED")) {
                return Ok(body);
            }
            if end < Instant::now() {
                return Err(format!("the job does not end: {body}").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Uploads a file by one POST and runs a profile on it; returns the job.
    async fn upload(&self, name: &str, content: impl Into<Body>, profile: &str) -> Result<String, Failure> {
        let body = json!({"fileDefinitions": [{"name": name, "size": 1, "uiKey": "k"}]});
        let (status, made) =
            self.json(&format!("librarian POST /data-import/uploadDefinitions\n{body}")).await?;
        assert_eq!(status, 201, "{made}");
        let (id, file) = (made["id"].as_str().unwrap_or_default(), &made["fileDefinitions"][0]);
        let path =
            format!("/data-import/uploadDefinitions/{id}/files/{}", file["id"].as_str().unwrap_or_default());
        let (status, _, loaded) =
            self.send("librarian", "POST", &path, HeaderMap::new(), content.into()).await?;
        let loaded: Value = serde_json::from_slice(&loaded)?;
        assert_eq!((status.as_u16(), loaded["status"].as_str()), (200, Some("LOADED")), "{loaded}");
        let body = json!({"uploadDefinition": {"id": id}, "jobProfileInfo": {"id": profile, "name": "x", "dataType": "MARC"}});
        let path = format!("/data-import/uploadDefinitions/{id}/processFiles?defaultMapping=false");
        let (status, answer) = self.json(&format!("librarian POST {path}\n{body}")).await?;
        assert_eq!(status, 204, "{answer}");
        Ok(file["jobExecutionId"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_become_authorities() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let job = server.job(AUTHORITIES).await?;
    let (status, answer) = server
        .json(&format!(
            "librarian PUT /change-manager/jobExecutions/{job}/jobProfile\n{}",
            json!({"id": AUTHORITIES})
        ))
        .await?;
    assert_eq!(status, 400, "{answer}");
    let records: Vec<String> = (1..=5).map(authority).collect();
    assert_eq!(server.send_records(&job, &records, false, 5).await?, 204);
    assert_eq!(server.send_records(&job, &[], true, 5).await?, 204);
    let ended = server.ended(&job).await?;
    assert_eq!(
        (ended["status"].as_str(), ended["uiStatus"].as_str()),
        (Some("COMMITTED"), Some("RUNNING_COMPLETE"))
    );
    assert_eq!((&ended["progress"]["current"], &ended["progress"]["total"]), (&json!(5), &json!(5)));

    let (_, list) = server.json(&format!("librarian GET /source-storage/records?recordType=MARC_AUTHORITY&snapshotId={job}&orderBy=order,ASC&limit=10")).await?;
    assert_eq!(list["totalRecords"], 5, "{list}");
    let first = &list["records"][0];
    assert_eq!(first["rawRecord"]["content"], json!(authority(1)));
    assert_eq!(first["externalIdsHolder"]["authorityHrid"], "n00000001");
    let fields = first["parsedRecord"]["content"]["fields"].as_array().cloned().unwrap_or_default();
    let last = fields.last().cloned().unwrap_or_default();
    assert_eq!(last["999"]["subfields"][0]["i"], first["externalIdsHolder"]["authorityId"], "{last}");
    assert_eq!(last["999"]["subfields"][1]["s"], first["matchedId"]);
    assert!(!fields.iter().any(|it| it.get("035").is_some()), "only a profile with a match adds 035");

    let (_, summary) = server.json(&format!("librarian GET /metadata-provider/jobSummary/{job}")).await?;
    assert_eq!(summary["authoritySummary"]["totalCreatedEntities"], 5, "{summary}");
    let (_, entries) = server.json(&format!("librarian GET /metadata-provider/jobLogEntries/{job}")).await?;
    assert_eq!(entries["totalRecords"], 5);
    assert_eq!(entries["entries"][0]["sourceRecordTitle"], "Example 1, 1835-");
    assert_eq!(entries["entries"][0]["sourceRecordOrder"], "0");
    assert_eq!(entries["entries"][0]["relatedAuthorityInfo"]["actionStatus"], "CREATED");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_counts_once_and_missing_records_fail() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let job = server.job(AUTHORITIES).await?;
    let body = json!({"id": "0c8a3f2e-6a0f-4d51-9c3a-0d7c2d2e1f00", "initialRecords": [{"record": authority(1), "order": 0}],
        "recordsMetadata": {"last": false, "counter": 1, "total": 3, "contentType": "MARC_RAW"}});
    let request = format!("librarian POST /change-manager/jobExecutions/{job}/records\n{body}");
    assert_eq!(server.json(&request).await?.0, 204);
    let (status, text) = server.json(&request).await?;
    let wanted = format!(
        "Source chunk with 0c8a3f2e-6a0f-4d51-9c3a-0d7c2d2e1f00 id for {job} jobExecution is already exists"
    );
    assert_eq!((status, text), (400, json!(wanted)));
    assert_eq!(server.send_records(&job, &[authority(2).replace('n', "")], true, 3).await?, 204);
    let ended = server.ended(&job).await?;
    assert_eq!(ended["status"], "ERROR", "{ended}");
    let (_, entries) =
        server.json(&format!("librarian GET /metadata-provider/jobLogEntries/{job}?errorsOnly=true")).await?;
    let errors: Vec<&str> =
        entries["entries"].as_array().into_iter().flatten().filter_map(|it| it["error"].as_str()).collect();
    assert!(errors.iter().any(|it| it.contains("record announced but never sent")), "{errors:?}");
    Ok(())
}

/// Creates the published profile: matches on 010 $a and creates what is missing.
async fn matching_profile(server: &Server) -> Result<String, Failure> {
    let expression = json!({"dataValueType": "VALUE_FROM_RECORD", "fields": [{"label": "field", "value": "010"},
        {"label": "indicator1", "value": " "}, {"label": "indicator2", "value": " "}, {"label": "recordSubfield", "value": "a"}]});
    let body = json!({"profile": {"name": "010 $a", "incomingRecordType": "MARC_AUTHORITY", "existingRecordType": "MARC_AUTHORITY",
        "matchDetails": [{"incomingRecordType": "MARC_AUTHORITY", "existingRecordType": "MARC_AUTHORITY",
        "matchCriterion": "EXACTLY_MATCHES", "incomingMatchExpression": expression, "existingMatchExpression": expression}]}});
    let (status, made) =
        server.json(&format!("librarian POST /data-import-profiles/matchProfiles\n{body}")).await?;
    assert_eq!(status, 201, "{made}");
    let body = json!({"profile": {"name": "new authorities", "dataType": "MARC"}, "addedRelations": [
        {"masterProfileId": null, "masterProfileType": "JOB_PROFILE", "detailProfileId": made["id"], "detailProfileType": "MATCH_PROFILE", "order": 0},
        {"masterProfileId": made["id"], "masterProfileType": "MATCH_PROFILE", "detailProfileId": "7915c72e-c6af-4962-969d-403c7238b051",
         "detailProfileType": "ACTION_PROFILE", "order": 0, "reactTo": "NON_MATCH"}]});
    let (status, made) =
        server.json(&format!("librarian POST /data-import-profiles/jobProfiles\n{body}")).await?;
    assert_eq!(status, 201, "{made}");
    let (status, again) =
        server.json(&format!("librarian POST /data-import-profiles/jobProfiles\n{body}")).await?;
    assert_eq!(
        (status, again["errors"][0]["message"].as_str()),
        (422, Some("Job profile 'new authorities' already exists"))
    );
    Ok(made["id"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_match_decides_and_sees_the_records_before() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let profile = matching_profile(&server).await?;
    // The third record repeats the first: duplicates are recognised within one file as well as across two.
    let file = [authority(1), authority(2), authority(1)].concat();
    for (n, created) in [(1, 2), (2, 0)] {
        let job = server.upload(&format!("{n}.mrc"), file.clone(), &profile).await?;
        let ended = server.ended(&job).await?;
        assert_eq!(ended["status"], "COMMITTED", "{ended}");
        let (_, summary) = server.json(&format!("librarian GET /metadata-provider/jobSummary/{job}")).await?;
        let found = summary["authoritySummary"]["totalCreatedEntities"].as_u64().unwrap_or(0);
        assert_eq!(found, created, "{summary}");
        assert_eq!(summary["sourceRecordSummary"]["totalDiscardedEntities"], 3 - created);
    }
    let (_, list) =
        server.json("librarian GET /source-storage/records?recordType=MARC_AUTHORITY&limit=10").await?;
    assert_eq!(list["totalRecords"], 2);
    let text = list["records"][0]["parsedRecord"]["formattedContent"].as_str().unwrap_or_default();
    assert!(text.contains("035    $an00000001\n"), "{text}");
    let (_, journal) = server
        .json(&format!(
            "librarian GET /metadata-provider/journalRecords/{}",
            list["records"][0]["snapshotId"].as_str().unwrap_or_default()
        ))
        .await?;
    let of_first: Vec<(&str, &str)> = journal["journalRecords"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| it["sourceRecordOrder"] == 0)
        .filter_map(|it| Some((it["actionType"].as_str()?, it["entityType"].as_str()?)))
        .collect();
    assert_eq!(
        of_first,
        [
            ("PARSE", "MARC_AUTHORITY"),
            ("NON_MATCH", "MARC_AUTHORITY"),
            ("CREATE", "AUTHORITY"),
            ("CREATE", "MARC_AUTHORITY")
        ]
    );
    let body = json!({"recordType": "MARC_AUTHORITY", "filters": [{"values": ["n  00000002 "], "field": "010", "indicator1": "", "indicator2": "", "subfield": "a"}]});
    let (_, found) = server.json(&format!("librarian POST /source-storage/records/matching\n{body}")).await?;
    assert_eq!(found["totalRecords"], 1, "{found}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn split_files_run_as_children() -> Result<(), Failure> {
    let server = Server::start(Engine::Sqlite).await?;
    let body = json!({"fileDefinitions": [{"name": "big.mrc", "size": 1, "uiKey": "k"}]});
    let (_, made) = server.json(&format!("librarian POST /data-import/uploadDefinitions\n{body}")).await?;
    let (id, file) = (
        made["id"].as_str().unwrap_or_default().to_owned(),
        made["fileDefinitions"][0]["id"].as_str().unwrap_or_default().to_owned(),
    );
    let (_, first) = server.json("librarian GET /data-import/uploadUrl?filename=big.mrc").await?;
    let (upload, key) =
        (first["uploadId"].as_str().unwrap_or_default(), first["key"].as_str().unwrap_or_default());
    let (_, second) = server
        .json(&format!(
            "librarian GET /data-import/uploadUrl/subsequent?key={key}&uploadId={upload}&partNumber=2"
        ))
        .await?;
    let whole: String = (1..=1_203).map(authority).collect();
    // The two parts are split within a record.
    let parts = whole.split_at(100_001);
    let mut tags = Vec::new();
    for (url, part) in [(&first["url"], parts.0), (&second["url"], parts.1)] {
        let path =
            url.as_str().unwrap_or_default().split_once("/data-import").map_or("", |it| it.1).to_owned();
        let (status, headers, _) = server.ask(&format!("nobody PUT /data-import{path}\n{part}")).await?;
        assert_eq!(status.as_u16(), 200);
        tags.push(headers.get("etag").and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned());
    }
    let (status, _, _) = server
        .ask("nobody PUT /data-import/uploadParts/diku/00000000-0000-4000-8000-000000000000/1\nx")
        .await?;
    assert_eq!(status.as_u16(), 403);
    let body = json!({"uploadId": upload, "key": key, "tags": tags});
    let path = format!("/data-import/uploadDefinitions/{id}/files/{file}/assembleStorageFile");
    assert_eq!(server.json(&format!("librarian POST {path}\n{body}")).await?.0, 204);
    let body = json!({"uploadDefinition": {"id": id}, "jobProfileInfo": {"id": AUTHORITIES, "name": "x", "dataType": "MARC"}});
    assert_eq!(
        server
            .json(&format!("librarian POST /data-import/uploadDefinitions/{id}/processFiles\n{body}"))
            .await?
            .0,
        204
    );
    let (_, list) = server.json("librarian GET /metadata-provider/jobExecutions?sortBy=started_date,desc&subordinationTypeNotAny=COMPOSITE_CHILD&subordinationTypeNotAny=PARENT_SINGLE").await?;
    assert_eq!(list["totalRecords"], 1, "{list}");
    let parent = &list["jobExecutions"][0];
    assert_eq!(parent["sourcePath"], json!(key));
    let parent = parent["id"].as_str().unwrap_or_default().to_owned();
    let ended = server.ended(&parent).await?;
    assert_eq!(
        (ended["status"].as_str(), &ended["progress"]["total"]),
        (Some("COMMITTED"), &json!(1_203)),
        "{ended}"
    );
    let (_, children) =
        server.json(&format!("librarian GET /change-manager/jobExecutions/{parent}/children")).await?;
    let totals: Vec<&Value> = children["jobExecutions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["progress"]["current"])
        .collect();
    assert_eq!(totals, [&json!(1_000), &json!(203)]);
    let (_, list) =
        server.json("librarian GET /source-storage/records?recordType=MARC_AUTHORITY&limit=0").await?;
    assert_eq!(list["totalRecords"], 1_203);
    Ok(())
}

/// The extended mode: subdivisions joined by `--`, related headings by their `$w`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_in_the_extended_mode() -> Result<(), Failure> {
    let settings = pinakes_folio::Settings { authority_extended: true, ..crate::server::site() };
    let server = Server::start_with(Engine::Sqlite, pinakes_store::Limits::default(), settings).await?;
    let file = record(
        'z',
        &[
            ("001", "sh1"),
            ("010", "$ash 1"),
            ("150", "$aDesks$xHistory$y19th century"),
            ("550", "$wg$aFurniture$xHistory"),
            ("550", "$wh$aReading desks"),
            ("551", "$aParis"),
        ],
    );
    let job = server.upload("extended.mrc", file, AUTHORITIES).await?;
    let ended = server.ended(&job).await?;
    assert_eq!(ended["status"], "COMMITTED", "{ended}");
    let (_, list) = server.json("librarian GET /authority-storage/authorities").await?;
    let found = &list["authorities"][0];
    assert_eq!(found["topicalTerm"], "Desks--History--19th century", "{found}");
    assert_eq!(found["saftTopicalTerm"], json!(["Furniture--History", "Reading desks"]), "{found}");
    let related = |heading: &str| json!([{"headingRef": heading, "headingType": "topicalTerm"}]);
    assert_eq!(found["saftBroaderTerm"], related("Furniture--History"), "{found}");
    assert_eq!(found["saftNarrowerTerm"], related("Reading desks"), "{found}");
    assert_eq!(found["saftGeographicName"], json!(["Paris"]), "{found}");
    Ok(())
}
