//! Which jobs a site accepts, and from whom: the types in its settings, with SciCat's keywords for callers
//! (`#datasetOwner`, `@group`, …).

use std::sync::Arc;

use http::StatusCode;
use pinakes_store::{Expr, Path, Record, View, matches};
use serde_json::{Map, Value, json};

use crate::condition::plain;
use crate::datasets::forms::Api;
use crate::documents::{object, text};
use crate::error::ScicatError;
use crate::jobs::actions::JobType;
use crate::kinds::DATASET;
use crate::rights::Rights;
use crate::settings::Settings;

/// Maximum number of datasets of one job.
const MAX_DATASETS: usize = 100_000;

/// Returns the job type of that name.
///
/// Errors: 400 in shape E2 for a type that the site does not have.
pub(super) fn job_type<'a>(settings: &'a Settings, name: &str) -> Result<&'a JobType, ScicatError> {
    let known = settings.job_types.iter().find(|it| it.name == name);
    known.ok_or_else(|| ScicatError::short(StatusCode::BAD_REQUEST, format!("Invalid job type: {name}")))
}

/// Returns the datasets of a job, each with its selected files; an empty list means all files.
///
/// Errors: 422 in shape E2 for a value that is not a list, or whose items name no dataset.
pub(super) fn list(job: &Map<String, Value>) -> Result<Vec<(String, Vec<String>)>, ScicatError> {
    let list = match job.get("jobParams").and_then(|it| it.get("datasetList")) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_DATASETS => list,
        Some(Value::Array(list)) => {
            let n = list.len();
            return Err(malformed(&format!(
                "datasetList names {n} datasets; a job takes {MAX_DATASETS} at most, send several jobs"
            )));
        }
        Some(_) => return Err(malformed("datasetList must be an array")),
    };
    list.iter().enumerate().map(|(index, item)| item_of(index, item)).collect()
}

fn item_of(index: usize, item: &Value) -> Result<(String, Vec<String>), ScicatError> {
    let pid = match item.get("pid") {
        Some(Value::String(pid)) if pid.is_empty() => {
            return Err(malformed(&format!("datasetList.{index}.pid should not be empty")));
        }
        Some(Value::String(pid)) => pid.clone(),
        _ => return Err(malformed(&format!("datasetList.{index}.pid must be a string"))),
    };
    let files = match item.get("files") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(files)) if files.iter().all(Value::is_string) => {
            files.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::Array(_)) => {
            return Err(malformed(&format!("each value in datasetList.{index}.files must be a string")));
        }
        Some(_) => return Err(malformed(&format!("datasetList.{index}.files must be an array"))),
    };
    Ok((pid, files))
}

fn malformed(fault: &str) -> ScicatError {
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let body = json!({"status": status.as_u16(), "message": "Invalid dataset list.", "error": fault});
    ScicatError::Said { status, body }
}

/// Returns the pids of a job's datasets. Errors: as for [`list`].
pub(super) fn pids(job: &Map<String, Value>) -> Result<Vec<String>, ScicatError> {
    Ok(list(job)?.into_iter().map(|it| it.0).collect())
}

/// Refuses a job without datasets if its type needs some, or if it names an empty list of them. In v3 all jobs need
/// datasets.
pub(super) fn require_datasets(
    job_type: &JobType,
    job: &Map<String, Value>,
    pids: &[String],
    api: Api,
) -> Result<(), ScicatError> {
    let names_list = job.get("jobParams").is_some_and(|it| it.get("datasetList").is_some());
    let needs_list =
        api == Api::V3 || job_type.create_auth.starts_with("#dataset") || !job_type.require.is_empty();
    if pids.is_empty() && (names_list || needs_list) {
        let message = "List of passed datasets is empty.";
        return Err(ScicatError::with(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    Ok(())
}

/// A dataset of a job, with the fields that decide who may see it.
pub(super) struct Dataset {
    pub(super) class: Arc<Value>,
    /// Its body, if conditions of the type need it.
    body: Option<Value>,
}

impl Dataset {
    pub(super) fn is_published(&self) -> bool {
        self.class.get("isPublished") == Some(&Value::Bool(true))
    }

    pub(super) fn owner_group(&self) -> Option<&str> {
        self.class.get("ownerGroup").and_then(Value::as_str)
    }

    /// Returns the groups that own it or may read it.
    pub(super) fn groups(&self) -> Vec<String> {
        groups_of(&self.class)
    }
}

/// Returns the datasets of a job. Errors: 422 that names the missing ones.
pub(super) fn datasets(
    view: &mut View<'_>,
    pids: &[String],
    job_type: &JobType,
) -> Result<Vec<Dataset>, ScicatError> {
    let (mut datasets, mut missing) = (Vec::with_capacity(pids.len()), Vec::new());
    for pid in pids {
        let Some(record) = view.get(&DATASET, pid)? else {
            missing.push(pid.as_str());
            continue;
        };
        let class = view.class(&DATASET, record.class)?;
        let body = if job_type.require.is_empty() { None } else { Some(body_of(&record)?) };
        datasets.push(Dataset { class, body });
    }
    if missing.is_empty() {
        return Ok(datasets);
    }
    let message = format!("Datasets with pid {} do not exist.", missing.join(","));
    Err(ScicatError::with(StatusCode::UNPROCESSABLE_ENTITY, message))
}

/// Refuses datasets that do not satisfy the conditions of the job's type.
pub(super) fn require_conditions(job_type: &JobType, datasets: &[Dataset]) -> Result<(), ScicatError> {
    for body in datasets.iter().filter_map(|it| it.body.as_ref()) {
        let is_met =
            |(path, value): &(&String, &Value)| matches(&Expr::Is(Path::dotted(path), plain(value)), body);
        if let Some((path, _)) = job_type.require.iter().find(|it| !is_met(it)) {
            let message = format!("Invalid request. Invalid value for '{path}'");
            return Err(ScicatError::short(StatusCode::BAD_REQUEST, message));
        }
    }
    Ok(())
}

/// Refuses a caller who may not change the job.
pub(super) fn may_update(
    settings: &Settings,
    rights: &Rights,
    job: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let rights = rights.of_keeper(&settings.update_job_privileged_groups);
    let caller = rights.caller();
    let (user, group) = (text(job, "ownerUser"), text(job, "ownerGroup"));
    let is_owner = caller.username().is_some_and(|name| name == user);
    let is_member = !group.is_empty() && caller.is_in(group);
    // Jobs of a type that the site no longer has may only be changed by those who may change any job.
    let update_auth = job_type(settings, text(job, "type")).map_or("#jobAdmin", |it| it.update_auth.as_str());
    let is_of_type = match update_auth {
        // Anonymous callers may only change jobs without an owner.
        "#all" => !caller.is_anonymous() || user.is_empty() && group.is_empty(),
        "#authenticated" => !caller.is_anonymous(),
        "#jobOwnerUser" => is_owner,
        "#jobOwnerGroup" => is_owner || is_member,
        other => is_named(other, &rights),
    };
    // Callers who may create jobs for anyone may change only their own.
    let is_creator = caller.is_in_any(&settings.create_job_privileged_groups);
    let is_allowed = rights.is_admin || is_of_type && (!is_creator || is_owner || is_member);
    if is_allowed { Ok(()) } else { Err(ScicatError::forbidden("Unauthorized to update this job.")) }
}

/// Says whether `@group` or a user's name applies to the caller. Other keywords with `#` apply to nobody.
pub(super) fn is_named(auth: &str, rights: &Rights) -> bool {
    match auth.strip_prefix('@') {
        Some(group) => rights.caller().is_in(group),
        None => !auth.starts_with('#') && rights.caller().username() == Some(auth),
    }
}

/// Returns the owner group and the access groups in the values of class fields.
pub(crate) fn groups_of(class: &Value) -> Vec<String> {
    let owner = class.get("ownerGroup").and_then(Value::as_str).map(str::to_owned);
    let others = class.get("accessGroups").and_then(Value::as_array).into_iter().flatten();
    owner.into_iter().chain(others.filter_map(Value::as_str).map(str::to_owned)).collect()
}

/// Returns the body of a dataset on which a type's conditions are evaluated.
pub(crate) fn body_of(record: &Record) -> Result<Value, ScicatError> {
    Ok(Value::Object(object(record)?))
}
