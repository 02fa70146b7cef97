//! Exports: by ids, by a query, by an uploaded list; as MARC and as JSON; failures are listed in the log.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::server::{Failure, Server};

/// Timeout of an export; generous, because a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);
const MISSING: &str = "00000000-0000-4000-8000-00000000000f";
const ONE: &str = "00000000-0000-4000-8000-000000000001";
const TWO: &str = "00000000-0000-4000-8000-000000000002";

async fn started(engine: Engine) -> Result<Server, Failure> {
    let server = Server::start(engine).await?;
    for (id, title) in [(ONE, "First title"), (TWO, "Second title")] {
        let body = json!({
            "id": id, "source": "FOLIO", "title": title, "instanceTypeId": "6312d172-f0cf-40f6-b27d-9fa8feaf332f",
            "subjects": [{"value": "A subject"}],
        });
        server.asked(&format!("librarian POST /instance-storage/instances\n{body}"), 201).await?;
    }
    let holdings = json!({
        "instanceId": ONE, "permanentLocationId": "fcd64ce1-6995-48f0-840e-89ffa2288371",
        "sourceId": "f32d531e-df79-46b3-8932-cdd35f7a2264", "callNumber": "QA 1",
    });
    server.asked(&format!("librarian POST /holdings-storage/holdings\n{holdings}"), 201).await?;
    Ok(server)
}

/// Waits until a job is finished and returns it.
async fn ended(server: &Server, id: &str) -> Result<Value, Failure> {
    let begun = Instant::now();
    loop {
        let list =
            server.asked(&format!("librarian GET /data-export/job-executions?query=id=={id}"), 200).await?;
        let job = list["jobExecutions"][0].clone();
        if !matches!(job["status"].as_str(), Some("NEW" | "IN_PROGRESS")) {
            return Ok(job);
        }
        if PATIENCE < begun.elapsed() {
            return Err(format!("the export does not end: {job}").into());
        }
        tokio::task::yield_now().await;
    }
}

/// Returns the file of a job.
async fn file_of(server: &Server, job: &Value) -> Result<String, Failure> {
    let [id, file] =
        [&job["id"], &job["exportedFiles"][0]["fileId"]].map(|it| it.as_str().unwrap_or_default());
    let link =
        server.asked(&format!("librarian GET /data-export/job-executions/{id}/download/{file}"), 200).await?;
    let link = link["link"].as_str().unwrap_or_default();
    let path = link.find("/data-export").map(|at| &link[at..]).ok_or("no link")?;
    let (status, _, bytes) = server.ask(&format!("librarian GET {path}")).await?;
    assert_eq!(status.as_u16(), 200);
    Ok(String::from_utf8(bytes)?)
}

async fn quick(server: &Server, body: &Value) -> Result<Value, Failure> {
    let made = server.asked(&format!("librarian POST /data-export/quick-export\n{body}"), 200).await?;
    ended(server, made["jobExecutionId"].as_str().unwrap_or_default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_exported_by_ids_and_by_query() -> Result<(), Failure> {
    for engine in Engine::all() {
        let server = started(engine).await?;
        let job =
            quick(&server, &json!({"type": "uuid", "uuids": [ONE, MISSING, TWO], "recordType": "INSTANCE"}))
                .await?;
        assert_eq!(job["status"], "COMPLETED_WITH_ERRORS");
        assert_eq!(
            (&job["progress"]["exported"], &job["progress"]["failed"], &job["progress"]["total"]),
            (&json!(2), &json!(1), &json!(3))
        );
        assert_eq!(job["exportedFiles"][0]["fileName"], "quick-export-1.mrc");
        let marc = file_of(&server, &job).await?;
        let records: Vec<&str> = marc.split_terminator('\u{1d}').collect();
        assert_eq!(records.len(), 2, "{marc}");
        assert!(
            records[0].contains("\u{1f}aFirst title\u{1e}")
                && records[1].contains("\u{1f}aSecond title\u{1e}")
        );
        assert_eq!(records[0].get(..5), Some(format!("{:05}", records[0].len() + 1).as_str()), "its length");
        let path =
            format!("/data-export/logs?query=jobExecutionId=={}", job["id"].as_str().unwrap_or_default());
        let log = server.asked(&format!("librarian GET {path}"), 200).await?;
        assert_eq!(log["errorLogs"][0]["errorMessageCode"], "error.instance.notFound");
        assert_eq!(log["errorLogs"][0]["errorMessageValues"], json!([MISSING]));
        let job = quick(&server, &json!({"type": "cql", "criteria": "title==\"Second title\""})).await?;
        assert_eq!((&job["status"], &job["progress"]["exported"]), (&json!("COMPLETED"), &json!(1)));
        assert!(file_of(&server, &job).await?.contains("Second title"));
        let users = server.asked("librarian GET /data-export/related-users", 200).await?;
        assert_eq!(users["totalRecords"], 1);
        server.asked("reader POST /data-export/quick-export\n{}", 403).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_uploaded_list_is_exported_as_its_profiles_say() -> Result<(), Failure> {
    let server = started(Engine::Sqlite).await?;
    let profile = async |mapping: Value| -> Result<String, Failure> {
        let made =
            server.asked(&format!("librarian POST /data-export/mapping-profiles\n{mapping}"), 201).await?;
        let job = json!({"name": format!("job of {}", mapping["name"]), "mappingProfileId": made["id"]});
        let made = server.asked(&format!("librarian POST /data-export/job-profiles\n{job}"), 201).await?;
        Ok(made["id"].as_str().unwrap_or_default().to_owned())
    };
    let added = [
        json!({"fieldId": "holdings.callnumber", "path": "$.holdings[*].callNumber", "recordType": "HOLDINGS", "transformation": "952ff$h", "enabled": true}),
        json!({"fieldId": "holdings.permanentlocation.name", "path": "$.holdings[*].permanentLocationId", "recordType": "HOLDINGS", "transformation": "952ff$a", "enabled": true}),
        json!({"fieldId": "holdings.permanentlocation.code", "path": "$.holdings[*].permanentLocationId", "recordType": "HOLDINGS", "transformation": "952ff$b", "enabled": true}),
        json!({"fieldId": "holdings.permanentlocation.library.name", "path": "$.holdings[*].permanentLocationId", "recordType": "HOLDINGS", "transformation": "952ff$c", "enabled": true}),
    ];
    let with_holdings = profile(json!({
        "name": "with holdings", "recordTypes": ["SRS", "HOLDINGS"], "outputFormat": "MARC", "transformations": added,
    }))
    .await?;
    let as_json =
        profile(json!({"name": "as JSON", "recordTypes": ["INSTANCE"], "outputFormat": "JSON"})).await?;
    let export = async |job_profile: &str| -> Result<Value, Failure> {
        let definition = json!({"fileName": "ids.csv", "uploadFormat": "csv"});
        let made =
            server.asked(&format!("librarian POST /data-export/file-definitions\n{definition}"), 201).await?;
        let [id, job] = [&made["id"], &made["jobExecutionId"]].map(|it| it.as_str().unwrap_or_default());
        let upload = format!("librarian POST /data-export/file-definitions/{id}/upload\n\"{ONE}\"");
        assert_eq!(server.asked(&upload, 200).await?["status"], "COMPLETED");
        let body = json!({"fileDefinitionId": id, "jobProfileId": job_profile, "idType": "instance"});
        server.asked(&format!("librarian POST /data-export/export\n{body}"), 200).await?;
        ended(&server, job).await
    };
    let job = export(&with_holdings).await?;
    assert_eq!(job["status"], "COMPLETED", "{job}");
    let marc = file_of(&server, &job).await?;
    assert!(
        marc.contains("ff\u{1f}hQA 1\u{1f}aMain Library\u{1f}bKU/CC/DI/M\u{1f}cDatalogisk Institut"),
        "{marc}"
    );
    let job = export(&as_json).await?;
    assert_eq!(job["exportedFiles"][0]["fileName"], "ids-2.json");
    let record: Value = serde_json::from_str(&file_of(&server, &job).await?)?;
    assert_eq!((&record["id"], &record["title"]), (&json!(ONE), &json!("First title")));
    let path = format!("/data-export/job-executions/{}", job["id"].as_str().unwrap_or_default());
    server.asked(&format!("librarian DELETE {path}"), 204).await?;
    server.asked("librarian POST /data-export/file-definitions\n{\"fileName\": \"ids.txt\"}", 422).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_ids_come_as_jobs_of_the_search() -> Result<(), Failure> {
    let server = started(Engine::Sqlite).await?;
    for (entity, query, n) in
        [("INSTANCE", "title all \"title\"", 2), ("HOLDINGS", "callNumber==\"QA 1\"", 1)]
    {
        let body = json!({"entityType": entity, "query": query});
        let made = server.asked(&format!("librarian POST /search/resources/jobs\n{body}"), 200).await?;
        let id = made["id"].as_str().unwrap_or_default();
        let job = server.asked(&format!("reader GET /search/resources/jobs/{id}"), 200).await?;
        assert_eq!((&job["status"], &job["query"]), (&json!("COMPLETED"), &json!(query)));
        let ids = server.asked(&format!("reader GET /search/resources/jobs/{id}/ids"), 200).await?;
        assert_eq!((&ids["totalRecords"], ids["ids"].as_array().map(Vec::len)), (&json!(n), Some(n)));
    }
    server.asked("librarian POST /search/resources/jobs\n{\"query\": \"nothing==1\"}", 400).await?;
    server.asked(&format!("reader GET /search/resources/jobs/{MISSING}"), 404).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_deleted_instances_are_exported() -> Result<(), Failure> {
    let server = started(Engine::Sqlite).await?;
    let export = async |days: &str| -> Result<Value, Failure> {
        let made = server.asked(&format!("librarian POST /data-export/export-deleted\n{days}"), 200).await?;
        ended(&server, made["jobExecutionId"].as_str().unwrap_or_default()).await
    };
    assert_eq!(export("{}").await?["progress"]["total"], 0);
    let snapshot = json!({"jobExecutionId": ONE, "status": "PARSING_IN_PROGRESS"});
    server.asked(&format!("librarian POST /source-storage/snapshots\n{snapshot}"), 201).await?;
    let record = json!({
        "id": ONE, "matchedId": ONE, "snapshotId": ONE, "recordType": "MARC_BIB", "rawRecord": {"content": "x"},
        "parsedRecord": {"content": {"leader": "00000nam a2200000 a 4500", "fields": [
            {"001": "in00000000001"}, {"005": "20260201100000.0"},
            {"245": {"ind1": "0", "ind2": "0", "subfields": [{"a": "Gone title"}]}}]}},
        "externalIdsHolder": {"instanceId": MISSING, "instanceHrid": "in00000000001"},
    });
    server.asked(&format!("librarian POST /source-storage/records\n{record}"), 201).await?;
    server.asked(&format!("librarian DELETE /source-storage/records/{ONE}"), 204).await?;
    let job = export(r#"{"from": "2026-02-01", "to": "2026-02-01"}"#).await?;
    assert_eq!((&job["status"], &job["progress"]["exported"]), (&json!("COMPLETED"), &json!(1)), "{job}");
    let marc = file_of(&server, &job).await?;
    assert!(marc.contains("Gone title") && marc[5..].starts_with('d'), "{marc}");
    assert_eq!(export(r#"{"from": "2026-02-02"}"#).await?["progress"]["total"], 0);
    server.asked("librarian POST /data-export/export-deleted\n{\"from\": \"soon\"}", 400).await?;
    Ok(())
}
