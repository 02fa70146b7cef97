//! `/metadata-provider`: lists of jobs, and the results for each record (section 4 of the contract).

mod log;

use std::collections::BTreeMap;

use http::StatusCode;
use pinakes_store::{
    Direction, Expr, Order, Pattern, Query, Record, StoreError, Value as Condition, View, Weight,
};
use serde_json::{Map, Value, json};

use crate::data_import::{JOB, Job, children};
use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{QueryText, json_answer};

/// Adds the routes under `/metadata-provider`.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = |name: &'static str| Access::Permission(name.into());
    routes
        .get("/metadata-provider/jobExecutions", to("metadata-provider.jobexecutions.get"), list)
        .get(
            "/metadata-provider/jobExecutions/jobProfiles",
            to("metadata-provider.jobexecutions.get"),
            profiles,
        )
        .get("/metadata-provider/jobExecutions/users", to("metadata-provider.jobexecutions.get"), users)
        .with(log::routes)
}

/// Names by which lists can be sorted, and their fields.
const SORTS: [(&str, &str); 9] = [
    ("completed_date", "completedDate"),
    ("started_date", "startedDate"),
    ("progress_total", "progress.total"),
    ("status", "status"),
    ("hrid", "hrId"),
    ("file_name", "fileName"),
    ("job_profile_name", "jobProfileInfo.name"),
    ("job_user_first_name", "runBy.firstName"),
    ("job_user_last_name", "runBy.lastName"),
];

fn orders(query: &QueryText) -> Result<Vec<Order>, FolioError> {
    let mut orders = Vec::new();
    for text in query.all("sortBy").filter(|it| !it.is_empty()) {
        let (name, direction) = text.split_once(',').unwrap_or((text, "asc"));
        let path = SORTS.iter().find(|(it, _)| *it == name.trim()).map(|(_, path)| *path).ok_or_else(|| {
            let names: Vec<&str> = SORTS.iter().map(|it| it.0).collect();
            FolioError::bad_request(format!("The specified field for sorting job executions is invalid: '{name}'. Valid sortable fields are: {}", names.join(", ")))
        })?;
        let direction = match direction.trim().to_ascii_lowercase().as_str() {
            "asc" | "" => Direction::Ascending,
            "desc" => Direction::Descending,
            other => {
                return Err(FolioError::bad_request(format!(
                    "The specified order for sorting job executions is invalid: '{other}'. Valid orders are: asc, desc"
                )));
            }
        };
        orders.push(Order { path: path.into(), direction });
    }
    if orders.is_empty() {
        orders.push(Order { path: "completedDate".into(), direction: Direction::Ascending });
    }
    Ok(orders)
}

/// Returns the condition for a text in which `*` matches anything, ignoring case.
fn wildcard(path: &str, text: &str) -> Result<Expr, FolioError> {
    let parts: Vec<String> = text.split('*').map(regex_escape).collect();
    let pattern = Pattern::new(&format!("^{}$", parts.join(".*")), "is")?;
    Ok(Expr::Regex(path.into(), pattern))
}

/// Escapes all characters except letters and digits with a backslash.
fn regex_escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_ascii() && !char.is_ascii_alphanumeric() {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

fn filter(query: &QueryText) -> Result<Expr, FolioError> {
    let all_of = |name: &str| -> Vec<Condition> {
        query.all(name).filter(|it| !it.is_empty()).map(Condition::from).collect()
    };
    let mut all = vec![
        Expr::Not(Box::new(Expr::Is("subordinationType".into(), "PARENT_MULTIPLE".into()))),
        Expr::Not(Box::new(Expr::Is("_work.hidden".into(), true.into()))),
    ];
    for (name, path) in
        [("statusAny", "status"), ("uiStatusAny", "uiStatus"), ("profileIdAny", "jobProfileInfo.id")]
    {
        let values = all_of(name);
        if !values.is_empty() {
            all.push(Expr::In(path.into(), values));
        }
    }
    for (name, path) in [
        ("statusNot", "status"),
        ("profileIdNotAny", "jobProfileInfo.id"),
        ("subordinationTypeNotAny", "subordinationType"),
        ("excludeJobProfileName", "jobProfileInfo.name"),
    ] {
        let values = all_of(name);
        if !values.is_empty() {
            all.push(Expr::Not(Box::new(Expr::In(path.into(), values))));
        }
    }
    for text in query.all("fileNameNotAny").filter(|it| !it.is_empty()) {
        all.push(Expr::Not(Box::new(wildcard("fileName", text)?)));
    }
    all.extend(query.get("userId").map(|it| Expr::Is("userId".into(), it.into())));
    let mut any = Vec::new();
    if let Some(text) = query.get("hrId").filter(|it| !it.is_empty()) {
        any.push(match text.parse::<i64>() {
            Ok(number) => Expr::Is("hrId".into(), Condition::Integer(number)),
            Err(_) => Expr::Nothing,
        });
    }
    if let Some(text) = query.get("fileName").filter(|it| !it.is_empty()) {
        any.push(wildcard("fileName", text)?);
    }
    if !any.is_empty() {
        all.push(Expr::Or(any));
    }
    let instant = |name: &str| match query.get(name) {
        None => Ok(pinakes_store::End::Open),
        Some(text) => dates::parse_ms(text)
            .map(|ms| pinakes_store::End::Included(Condition::Instant(ms)))
            .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date"))),
    };
    let (after, before) = (instant("completedAfter")?, instant("completedBefore")?);
    if after != pinakes_store::End::Open || before != pinakes_store::End::Open {
        all.push(Expr::Range("completedDate".into(), after, before));
    }
    Ok(Expr::And(all))
}

async fn list(call: Call) -> Answer {
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let filter = filter(&call.query)?;
    let query = Query { order: orders(&call.query)?, ..Query::filter(filter.clone()) }.window(offset, limit);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let found = if limit == 0 { Vec::new() } else { view.find(&JOB, &query)? };
        let mut list = Vec::with_capacity(found.len());
        for record in found {
            if let Some(job) = Job::of(record.json()?) {
                list.push(with_composite(view, job)?);
            }
        }
        Ok(json!({"jobExecutions": list, "totalRecords": view.count(&JOB, &filter)?}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns a job in the form of an answer; for a composite one with the sums over its children.
pub(crate) fn with_composite(view: &mut View<'_>, mut job: Job) -> Result<Value, StoreError> {
    if job.text("subordinationType") != "COMPOSITE_PARENT" {
        return Ok(job.shown());
    }
    let list = children(view, job.id())?;
    let mut details: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for child in &list {
        let name = match child.text("status") {
            "NEW" => "newState",
            "FILE_UPLOADED" => "fileUploadedState",
            "PARSING_IN_PROGRESS" => "parsingInProgressState",
            "PARSING_FINISHED" => "parsingFinishedState",
            "PROCESSING_IN_PROGRESS" => "processingInProgressState",
            "PROCESSING_FINISHED" => "processingFinishedState",
            "COMMIT_IN_PROGRESS" => "commitInProgressState",
            "COMMITTED" => "committedState",
            "DISCARDED" => "discardedState",
            "CANCELLED" => "cancelledState",
            _ => "errorState",
        };
        let sums = details.entry(name).or_default();
        *sums = (sums.0 + 1, sums.1 + child.total(), sums.2 + child.current());
    }
    let details: Map<String, Value> = details
        .into_iter()
        .map(|(name, (chunks, total, current))| {
            let sums = json!({"chunksCount": chunks, "totalRecordsCount": total, "currentlyProcessedCount": current});
            (name.to_owned(), sums)
        })
        .collect();
    if !list.is_empty() {
        let sum = |of: fn(&Job) -> u64| list.iter().map(of).sum::<u64>();
        job.set_progress(sum(Job::current), sum(Job::total));
        job.set("compositeDetails", Value::Object(details));
    }
    Ok(job.shown())
}

/// Returns the jobs that lists show, one for each combination of values at these paths, ordered by the values.
async fn distinct(call: &Call, paths: &'static [&'static str]) -> Result<Vec<Job>, FolioError> {
    let filter = filter(&QueryText::default())?;
    let read = move |view: &mut View<'_>| -> Result<Vec<Job>, FolioError> {
        let mut jobs = Vec::new();
        for filter in combinations(view, vec![filter.clone()], paths)? {
            let job = view.first(&JOB, filter)?.as_ref().map(Record::json).transpose()?;
            jobs.extend(job.and_then(Job::of));
        }
        Ok(jobs)
    };
    call.db().read(Weight::Scan, read).await
}

/// Returns, for each combination of values at the paths, the condition of the jobs that satisfy one of the conditions
/// and have them.
fn combinations(
    view: &mut View<'_>,
    mut filters: Vec<Expr>,
    paths: &[&str],
) -> Result<Vec<Expr>, StoreError> {
    for path in paths {
        let mut narrower = Vec::new();
        for filter in filters {
            let counts = view.count_texts(&JOB, &filter, &(*path).into())?;
            let none = (counts.n_without != 0).then_some(Condition::Null);
            let values = none.into_iter().chain(counts.n_records.into_keys().map(Condition::Text));
            narrower.extend(values.map(|it| filter.clone().and(Expr::Is((*path).into(), it))));
        }
        filters = narrower;
    }
    Ok(filters)
}

fn page(call: &Call, list: Vec<Value>) -> Result<Vec<Value>, FolioError> {
    let at = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (offset, limit) = (at(call.query.number("offset", 0)?), at(call.query.number("limit", 10)?));
    Ok(list.into_iter().skip(offset).take(limit).collect())
}

async fn profiles(call: Call) -> Answer {
    let jobs =
        distinct(&call, &["jobProfileInfo.id", "jobProfileInfo.name", "jobProfileInfo.dataType"]).await?;
    let list: Vec<Value> = jobs.iter().filter_map(|job| job.0.get("jobProfileInfo").cloned()).collect();
    let total = list.len();
    let list = page(&call, list)?;
    Ok(json_answer(StatusCode::OK, &json!({"jobProfilesInfo": list, "totalRecords": total})))
}

async fn users(call: Call) -> Answer {
    let of = |job: &Job| {
        let run_by = job.0.get("runBy")?;
        Some(json!({
            "userId": job.text("userId"),
            "jobUserFirstName": run_by.get("firstName"),
            "jobUserLastName": run_by.get("lastName"),
        }))
    };
    let jobs = distinct(&call, &["userId", "runBy.firstName", "runBy.lastName"]).await?;
    let list: Vec<Value> = jobs.iter().filter_map(of).collect();
    let total = list.len();
    let list = page(&call, list)?;
    Ok(json_answer(StatusCode::OK, &json!({"jobExecutionUsersInfo": list, "totalRecords": total})))
}
