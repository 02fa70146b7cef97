//! Imports of library records: the jobs, their progress, and what went wrong.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::encoded;
use crate::record::{Link, items, text};

/// Maximum number of jobs that the list shows.
const JOBS_MAX: u32 = 50;
/// Maximum number of records of a job that its page shows.
const ENTRIES_MAX: u32 = 100;

/// Final states of jobs.
const OVER: [&str; 4] = ["COMMITTED", "ERROR", "CANCELLED", "DISCARDED"];

/// An import job.
#[derive(Serialize)]
struct Job {
    link: Link,
    profile: String,
    status: String,
    started: String,
    n_done: u64,
    n_all: u64,
    /// 0 to 100, if the number of records is known.
    percent: Option<u64>,
}

fn job(it: &Value) -> Job {
    let id = text(it, "id");
    let name = [text(it, "fileName"), text(it, "hrId"), id.clone()].into_iter().find(|it| !it.is_empty());
    let number = |path: &str| text(it, path).parse::<u64>().unwrap_or(0);
    let (n_done, n_all) = (number("progress/current"), number("progress/total"));
    Job {
        link: Link::to(name.unwrap_or_default(), format!("/site/imports/{}", encoded(&id))),
        profile: text(it, "jobProfileInfo/name"),
        status: text(it, "status"),
        started: text(it, "startedDate").get(..16).unwrap_or_default().replace('T', " "),
        n_done,
        n_all,
        percent: (n_done * 100).checked_div(n_all).map(|it| it.min(100)),
    }
}

/// Converts errors of dialects for pages that only staff may see.
pub(crate) fn for_staff(visitor: &Visitor, error: SiteError) -> SiteError {
    match error {
        SiteError::SignIn if !visitor.caller.is_anonymous() => SiteError::Forbidden,
        other => other,
    }
}

pub(crate) async fn list(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let path = format!("/metadata-provider/jobExecutions?limit={JOBS_MAX}&sortBy=started_date,desc");
    let said = site.read(&visitor, "folio", &path).await.map_err(|it| for_staff(&visitor, it));
    let page = said.and_then(|it| {
        let jobs: Vec<Job> = items(&it, "jobExecutions").iter().map(job).collect();
        let is_over = jobs.iter().all(|it| OVER.contains(&it.status.as_str()));
        let page = json!({ "title_key": "imports", "jobs": jobs, "is_over": is_over });
        match is_over {
            true => site.page(&visitor, StatusCode::OK, "imports.html", page),
            false => site.page_with_script(&visitor, StatusCode::OK, "imports.html", page, "live.js"),
        }
    });
    site.shown(&visitor, page)
}

pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let page = job_page(&site, &visitor, &id).await.map_err(|it| for_staff(&visitor, it));
    site.shown(&visitor, page)
}

async fn job_page(site: &Site, visitor: &Visitor, id: &str) -> Result<Response> {
    let id = encoded(id);
    let it = site.read(visitor, "folio", &format!("/change-manager/jobExecutions/{id}")).await?;
    let path = format!("/metadata-provider/jobLogEntries/{id}?limit={ENTRIES_MAX}");
    let entries = site.read(visitor, "folio", &path).await.unwrap_or(Value::Null);
    let rows: Vec<Vec<Link>> = items(&entries, "entries").iter().map(|it| entry(it, &id)).collect();
    let job = job(&it);
    let is_over = OVER.contains(&job.status.as_str());
    let page = json!({ "title_key": "import", "job": job, "rows": rows, "is_over": is_over });
    if is_over {
        return site.page(visitor, StatusCode::OK, "import.html", page);
    }
    site.page_with_script(visitor, StatusCode::OK, "import.html", page, "live.js")
}

/// Returns a line of the log. Its number links to the record, unless it is about the whole job.
fn entry(it: &Value, job: &str) -> Vec<Link> {
    let at = text(it, "sourceRecordOrder").parse::<u64>().map(|it| (it + 1).to_string()).unwrap_or_default();
    let title = text(it, "sourceRecordTitle");
    let instance = text(it, "relatedInstanceInfo/idList/0");
    let first = items(it, "relatedInstanceInfo/idList").first().and_then(Value::as_str).unwrap_or(&instance);
    let title = if first.is_empty() {
        Link::plain(title)
    } else {
        Link::to(title, format!("/site/title/{}", encoded(first)))
    };
    let status = text(it, "sourceRecordActionStatus");
    let fault =
        [text(it, "error"), text(it, "warning")].into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let record = text(it, "incomingRecordId");
    let of_job =
        Some(text(it, "jobExecutionId")).filter(|it| !it.is_empty()).unwrap_or_else(|| job.to_owned());
    let at = if record.is_empty() || record == of_job {
        Link::plain(at)
    } else {
        Link::to(at, format!("/site/imports/{job}/records/{}", encoded(&record)))
    };
    vec![at, title, Link::plain(status), Link::plain(fault)]
}
