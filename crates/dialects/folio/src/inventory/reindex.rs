//! Jobs that go through all records and publish each, to rebuild an index or to feed another program. The index here
//! never lags behind and no other program listens, so a job is finished when it starts, and reports the number of
//! records.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Value, json};

use super::instances::INSTANCES;
use crate::authorities::authority::AUTHORITIES;
use crate::platform::app::Call;
use crate::platform::collection::Collection;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Jobs of all types.
pub(crate) static JOB: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("resourceName", Type::Text), Column::one("submittedDate", Type::Instant)],
    ..Kind::named("folio_reindex_job")
};

/// A type of job.
#[derive(Debug)]
pub(crate) struct Sort {
    /// `resourceName` of the jobs.
    name: &'static str,
    records: &'static Collection,
    /// Name of the list of jobs.
    list: &'static str,
    begun: StatusCode,
}

/// Jobs that rebuild the index of instances.
pub(crate) static INSTANCES_JOB: Sort =
    Sort { name: "Instance", records: &INSTANCES, list: "reindexJobs", begun: StatusCode::OK };
/// Jobs that rebuild the index of authorities.
pub(crate) static AUTHORITIES_JOB: Sort =
    Sort { name: "Authority", records: &AUTHORITIES, list: "reindexJobs", begun: StatusCode::OK };
/// Jobs that publish all instances.
static ITERATION: Sort =
    Sort { name: "Iteration", records: &INSTANCES, list: "iterationJobs", begun: StatusCode::CREATED };

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let sorts = [
        ("/instance-storage/reindex", &INSTANCES_JOB, "inventory-storage.instance.reindex"),
        ("/authority-storage/reindex", &AUTHORITIES_JOB, "authority-storage.authority.reindex"),
        ("/instance-storage/instances/iteration", &ITERATION, "inventory-storage.instance.iteration"),
    ];
    sorts.into_iter().fold(routes, |routes, (path, sort, permission)| {
        let to = |end: &str| Access::owned(format!("{permission}.{end}"));
        let job = format!("{path}/{{id}}");
        let routes = routes
            .post(path, to("post"), move |call| begin(call, sort))
            .get(&job, to("item.get"), move |call| show(call, sort))
            .delete(&job, to("item.delete"), move |call| cancel(call, sort));
        match sort.name {
            "Iteration" => routes,
            _ => routes.get(path, to("collection.get"), move |call| list(call, sort)),
        }
    })
}

/// Starts a job and returns it.
async fn begin(mut call: Call, sort: &'static Sort) -> Answer {
    // The job's parameters are accepted and stored; few clients send any.
    let parameters = match call.bytes().await? {
        bytes if bytes.is_empty() => Value::Null,
        bytes => serde_json::from_slice(&bytes)
            .map_err(|error| FolioError::bad_request(format!("Json content error: {error}")))?,
    };
    begin_with(call, sort, parameters).await
}

/// Starts a job with these parameters and returns it.
pub(crate) async fn begin_with(call: Call, sort: &'static Sort, parameters: Value) -> Answer {
    let (id, now_ms) = (call.app.new_uuid(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let n = txn.count(&sort.records.kind, &Expr::All)?;
        let mut job = json!({
            "id": id, "published": n, "submittedDate": dates::rmb(now_ms), "jobStatus": "Ids published",
            "resourceName": sort.name,
        });
        if sort.name == ITERATION.name {
            job["jobStatus"] = "Completed".into();
            job["messagesPublished"] = n.into();
            job["jobParams"] = parameters.clone();
        }
        txn.insert(&JOB, &id, &job)?;
        Ok(job)
    };
    Ok(json_answer(sort.begun, &call.db().write(write).await?))
}

async fn list(call: Call, sort: &'static Sort) -> Answer {
    let (skip, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let query = Query::filter(Expr::Is("resourceName".into(), sort.name.into()))
            .sorted("submittedDate", pinakes_store::Direction::Descending);
        let query = Query { skip, limit: Some(limit), ..query };
        let found: Result<Vec<Value>, _> =
            view.find(&JOB, &query)?.iter().map(pinakes_store::Record::json).collect();
        let total = view.count(&JOB, &query.filter)?;
        Ok(json!({sort.list: found?, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn show(call: Call, sort: &'static Sort) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let job = view.get(&JOB, &id)?.map(|it| it.json()).transpose()?;
        Ok(job.filter(|it| it["resourceName"] == sort.name))
    };
    let found = call.db().read(Weight::Point, read).await?;
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(|| FolioError::not_found("Not found"))?))
}

/// Accepts the request to cancel a job; a finished job cannot be stopped.
async fn cancel(call: Call, sort: &'static Sort) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<bool, FolioError> {
        let job = view.get(&JOB, &id)?.map(|it| it.json()).transpose()?;
        Ok(job.is_some_and(|it| it["resourceName"] == sort.name))
    };
    if !call.db().read(Weight::Point, read).await? {
        return Err(FolioError::not_found("Not found"));
    }
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
