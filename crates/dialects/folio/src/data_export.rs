//! `/data-export`: exports records as MARC files, by lists of ids or by queries (mod-data-export).
//!
//! | file | what |
//! |---|---|
//! | `profiles.rs` | job and mapping profiles, including FOLIO's defaults |
//! | `deleted.rs` | the records of deleted instances |
//! | `fields.rs` | the fields that mapping profiles can add |
//! | `files.rs` | uploaded lists of ids, and downloads |
//! | `start.rs` | a job before it runs: its number, its profile, who runs it |
//! | `run.rs` | the work of a job: ids to records to a file, with progress counts |
//! | `transform.rs` | what a mapping profile adds to a record |

mod deleted;
mod fields;
mod files;
pub(crate) mod jobs;
mod profiles;
pub(crate) mod run;
mod start;
mod transform;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, StoreError, Txn, View, Weight};
use serde_json::{Value, json};

use crate::data_export::jobs::{JOBS, LOGS, invalid};
use crate::data_export::start::{new_job, profile, run_by};
use crate::platform::app::Call;
use crate::platform::collection::{self, Page};
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};

pub(crate) use files::FILE_DEFINITION;
pub(crate) use profiles::{JOB_PROFILES, MAPPING_PROFILES};

pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get(
            "/data-export/job-executions",
            to("data-export.job-executions.collection.get"),
            |call| async move {
                let page = Page::of(&call)?;
                collection::answer_list(&call, &JOBS, page).await
            },
        )
        .delete("/data-export/job-executions/{id}", to("data-export.job-executions.item.delete"), |call| {
            collection::remove(call, &JOBS)
        })
        .get("/data-export/logs", to("data-export.logs.collection.get"), |call| async move {
            let page = Page::of(&call)?;
            collection::answer_list(&call, &LOGS, page).await
        })
        .post("/data-export/export", to("data-export.export.post"), export)
        .post("/data-export/export-all", to("data-export.export.all.post"), export_all)
        .post("/data-export/export-deleted", to("data-export.export-deleted.post"), deleted::export_deleted)
        .post("/data-export/quick-export", to("data-export.quick.export.post"), quick_export)
        .post("/data-export/expire-jobs", to("data-export.expire-jobs.post"), expire)
        .post("/data-export/clean-up-files", to("data-export.clean-up-files.post"), clean_up)
        .get(
            "/data-export/transformation-fields",
            to("data-export.transformation-fields.collection.get"),
            fields::transformation_fields,
        )
        .get("/data-export/related-users", to("data-export.related-users.collection.get"), related_users)
        .with(files::routes)
}

/// Parses what a profile exports: `INSTANCE`, `HOLDINGS`, `AUTHORITY`.
fn record_type(text: Option<&str>) -> Result<&'static str, FolioError> {
    match text.unwrap_or("INSTANCE").to_ascii_uppercase().as_str() {
        "INSTANCE" | "LINKED_DATA" => Ok("INSTANCE"),
        "HOLDING" | "HOLDINGS" => Ok("HOLDINGS"),
        "AUTHORITY" => Ok("AUTHORITY"),
        other => Err(invalid(
            "idType",
            other,
            format!("{other} is not exported; INSTANCE, HOLDINGS and AUTHORITY are"),
        )),
    }
}

/// Runs the job of an uploaded list of ids: `{fileDefinitionId, jobProfileId, idType?}`.
async fn export(mut call: Call) -> Answer {
    let body = call.object().await?;
    let file = required_text(&body, "fileDefinitionId")?.to_owned();
    let profile_id = required_text(&body, "jobProfileId")?.to_owned();
    let kind = record_type(body.get("idType").and_then(Value::as_str))?;
    let (now_ms, by) = (call.app.now_ms(), run_by(&call));
    let write = move |txn: &mut Txn<'_>| -> Result<(String, run::Wanted, run::How), FolioError> {
        let found = txn.get(&FILE_DEFINITION, &file)?.map(|it| it.json()).transpose()?;
        let missing =
            || invalid("fileDefinitionId", &file, format!("File definition with id {file} not found"));
        let definition = found.ok_or_else(missing)?;
        let profile = profile(txn, Some(&profile_id), kind)?;
        let id = text_at(&definition, "jobExecutionId").unwrap_or_default().to_owned();
        let name = text_at(&definition, "fileName").unwrap_or("export").to_owned();
        if txn.has(&JOBS.kind, &id)? {
            txn.delete(&JOBS.kind, &id)?;
        }
        new_job(txn, &id, &profile, &by, &name, now_ms)?;
        let wanted = match text_at(&definition, "uploadFormat") {
            Some("cql") => run::Wanted::Query(files::text(txn, &file)?),
            _ => run::Wanted::Ids(files::ids(&files::text(txn, &file)?)),
        };
        Ok((id, wanted, run::How::of(txn, &profile)?))
    };
    let (id, wanted, how) = call.db().write(write).await?;
    run::start(&call, id, run::Plan { kind, wanted, how });
    Ok(answer::empty(StatusCode::OK))
}

/// Runs a job for all records of a type: `{idType?, jobProfileId, suppressedFromDiscovery?}`.
async fn export_all(mut call: Call) -> Answer {
    let body = call.object().await?;
    let profile_id = required_text(&body, "jobProfileId")?.to_owned();
    let kind = record_type(body.get("idType").and_then(Value::as_str))?;
    let has_suppressed = body.get("suppressedFromDiscovery").and_then(Value::as_bool).unwrap_or(true);
    let query = if has_suppressed || kind == "AUTHORITY" {
        "cql.allRecords=1"
    } else {
        "cql.allRecords=1 NOT discoverySuppress==true"
    };
    let name = format!("{}-all.csv", kind.to_ascii_lowercase().trim_end_matches('s'));
    let (id, now_ms, by) = (call.app.new_uuid(), call.app.now_ms(), run_by(&call));
    let at = id.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<run::How, FolioError> {
        let profile = profile(txn, Some(&profile_id), kind)?;
        new_job(txn, &at, &profile, &by, &name, now_ms)?;
        run::How::of(txn, &profile)
    };
    let how = call.db().write(write).await?;
    run::start(&call, id, run::Plan { kind, wanted: run::Wanted::Query(query.to_owned()), how });
    Ok(answer::empty(StatusCode::OK))
}

/// Runs a job without an upload: `{type: uuid | cql, uuids, criteria, recordType, jobProfileId?}`.
async fn quick_export(mut call: Call) -> Answer {
    let body = call.object().await?;
    let kind = record_type(body.get("recordType").and_then(Value::as_str))?;
    let wanted =
        match body.get("type").and_then(Value::as_str).unwrap_or("uuid").to_ascii_lowercase().as_str() {
            "cql" => run::Wanted::Query(required_text(&body, "criteria")?.to_owned()),
            "uuid" => {
                let list = body.get("uuids").and_then(Value::as_array).into_iter().flatten();
                let ids: Vec<String> = list.filter_map(Value::as_str).filter_map(parse_uuid).collect();
                if ids.is_empty() {
                    return Err(invalid("uuids", "[]", "uuids must not be empty".to_owned()));
                }
                run::Wanted::Ids(ids)
            }
            other => return Err(invalid("type", other, format!("type is {other:?}, expected uuid or cql"))),
        };
    let asked = body.get("jobProfileId").and_then(Value::as_str).map(str::to_owned);
    let name = body.get("fileName").and_then(Value::as_str).unwrap_or("quick-export").to_owned();
    let (id, now_ms, by) = (call.app.new_uuid(), call.app.now_ms(), run_by(&call));
    let at = id.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(Value, run::How), FolioError> {
        let profile = profile(txn, asked.as_deref(), kind)?;
        let how = run::How::of(txn, &profile)?;
        Ok((new_job(txn, &at, &profile, &by, &name, now_ms)?, how))
    };
    let (job, how) = call.db().write(write).await?;
    run::start(&call, id.clone(), run::Plan { kind, wanted, how });
    Ok(json_answer(StatusCode::OK, &json!({"jobExecutionId": id, "jobExecutionHrId": job.get("hrId")})))
}

/// A job without progress for this long has lost its server.
const EXPIRED_AFTER_MS: i64 = 3_600_000;

/// Ends the jobs whose server is gone.
async fn expire(call: Call) -> Answer {
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), StoreError> {
        let running = Expr::Is("status".into(), "IN_PROGRESS".into());
        for record in txn.find(&JOBS.kind, &Query::filter(running))? {
            let mut job = record.json()?;
            let moved_ms = text_at(&job, "lastUpdatedDate").and_then(dates::parse_ms).unwrap_or(0);
            if moved_ms + EXPIRED_AFTER_MS < now_ms {
                job["status"] = "FAIL".into();
                job["completedDate"] = dates::rmb(now_ms).into();
                txn.put(&JOBS.kind, &record.id, &job)?;
            }
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Removes nothing: files of exports are kept until their job is deleted.
async fn clean_up(_: Call) -> Answer {
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists the users who have run jobs.
async fn related_users(call: Call) -> Answer {
    let read = |view: &mut View<'_>| -> Result<Vec<Value>, StoreError> {
        let mut users = Vec::new();
        for id in view.count_texts(&JOBS.kind, &Expr::All, &"runBy.userId".into())?.n_records.into_keys() {
            let job = view.first(&JOBS.kind, Expr::Is("runBy.userId".into(), id.as_str().into()))?;
            users.extend(job.map(|it| it.json()).transpose()?.map(|mut it| it["runBy"].take()));
        }
        Ok(users)
    };
    let users = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &json!({"totalRecords": users.len(), "relatedUsers": users})))
}
