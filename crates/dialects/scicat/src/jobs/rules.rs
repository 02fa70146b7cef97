//! Which jobs a site takes, and from whom: the types of its settings, with the words SciCat has for callers
//! (`#datasetOwner`, `@group`, …).

use http::StatusCode;
use pinakes_store::{Expr, Path, View, matches};
use serde_json::{Map, Value};

use super::actions::Action;
use crate::app::Asker;
use crate::condition::plain;
use crate::datasets::{Api, DATASET};
use crate::error::ScicatError;
use crate::resource::text;
use crate::rights::Rights;
use crate::settings::{JobType, Settings};

/// Most datasets of one job.
const MAX_DATASETS: usize = 100_000;

/// The type of that name.
///
/// Errors: 400 in shape E2 for a type that the site does not have.
pub(super) fn job_type<'a>(settings: &'a Settings, name: &str) -> Result<&'a JobType, ScicatError> {
    let known = settings.job_types.iter().find(|it| it.name == name);
    known.ok_or_else(|| ScicatError::short(StatusCode::BAD_REQUEST, format!("Invalid job type: {name}")))
}

/// The pids of a job's datasets.
///
/// Errors: 400 for a list whose items name no dataset.
pub(super) fn pids(job: &Map<String, Value>) -> Result<Vec<String>, ScicatError> {
    let list = match job.get("jobParams").and_then(|it| it.get("datasetList")) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MAX_DATASETS => list,
        Some(Value::Array(list)) => {
            let n = list.len();
            return Err(ScicatError::bad_request(format!(
                "datasetList names {n} datasets; a job takes {MAX_DATASETS} at most, send several jobs"
            )));
        }
        Some(_) => return Err(ScicatError::bad_request("datasetList must be an array")),
    };
    let pid = |(index, item): (usize, &Value)| match item.get("pid") {
        Some(Value::String(pid)) => Ok(pid.clone()),
        _ => Err(ScicatError::bad_request(format!("datasetList.{index}.pid must be a string"))),
    };
    list.iter().enumerate().map(pid).collect()
}

/// Refuses a job without datasets whose type needs some, or that names an empty list of them.
pub(super) fn require_datasets(
    job_type: &JobType,
    job: &Map<String, Value>,
    pids: &[String],
) -> Result<(), ScicatError> {
    let names_list = job.get("jobParams").is_some_and(|it| it.get("datasetList").is_some());
    let is_judged = job_type.create_actions.iter().any(Action::judges_datasets);
    let needs_list =
        job_type.create_auth.starts_with("#dataset") || !job_type.require.is_empty() || is_judged;
    if pids.is_empty() && (names_list || needs_list) {
        let message = "List of passed datasets is empty.";
        return Err(ScicatError::with(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    Ok(())
}

/// What the datasets of a job have in common.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    are_published: bool,
    are_readable: bool,
    are_owned: bool,
    /// Owner group of the first.
    owner_group: Option<String>,
    /// The first condition of the job's type that one of them does not meet.
    unmet: Option<String>,
}

/// Looks at the datasets of a job. Errors: 422 that names those that are not there.
pub(super) fn facts(
    view: &mut View<'_>,
    pids: &[String],
    rights: &Rights,
    job_type: &JobType,
) -> Result<Facts, ScicatError> {
    let mut facts =
        Facts { are_published: true, are_readable: true, are_owned: true, owner_group: None, unmet: None };
    let mut missing = Vec::new();
    for pid in pids {
        let Some(record) = view.get(&DATASET, pid)? else {
            missing.push(pid.as_str());
            continue;
        };
        let class = view.class(&DATASET, record.class)?;
        facts.are_published &= class.get("isPublished") == Some(&Value::Bool(true));
        facts.are_readable &= rights.may_read(&class);
        facts.are_owned &= rights.owns(&class);
        if facts.owner_group.is_none() {
            facts.owner_group = class.get("ownerGroup").and_then(Value::as_str).map(str::to_owned);
        }
        if facts.unmet.is_none() && !job_type.require.is_empty() {
            let body = record.json()?;
            let is_met = |(path, value): &(&String, &Value)| {
                matches(&Expr::Is(Path::dotted(path), plain(value)), &body)
            };
            facts.unmet = job_type.require.iter().find(|it| !is_met(it)).map(|(path, _)| path.clone());
        }
    }
    if missing.is_empty() {
        return Ok(facts);
    }
    let message = format!("Datasets with pid {} do not exist.", missing.join(", "));
    Err(ScicatError::with(StatusCode::UNPROCESSABLE_ENTITY, message))
}

impl Facts {
    /// Refuses datasets that do not meet the conditions of the job's type.
    pub(super) fn require_conditions(&self) -> Result<(), ScicatError> {
        match &self.unmet {
            None => Ok(()),
            Some(path) => Err(ScicatError::short(
                StatusCode::BAD_REQUEST,
                format!("Invalid request. Invalid value for '{path}'"),
            )),
        }
    }
}

/// Refuses owners of a job that the caller may not name: only the privileged name others than themselves.
pub(super) fn require_own(
    settings: &Settings,
    asker: &Asker,
    job: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let caller = asker.caller();
    let (user, group) = (text(job, "ownerUser"), text(job, "ownerGroup"));
    if asker.rights.of_keeper(&settings.create_job_privileged_groups).is_admin {
        return Ok(());
    }
    let refused = |message: &str| Err(ScicatError::short(StatusCode::BAD_REQUEST, message));
    if caller.is_anonymous() && !(user.is_empty() && group.is_empty()) {
        return refused("Invalid new job. Unauthenticated user cannot initiate a job owned by another user.");
    }
    if !user.is_empty() && caller.username() != Some(user) {
        return refused("Invalid new job. User owning the job should match user logged in.");
    }
    if !group.is_empty() && !caller.is_in(group) {
        return refused("Invalid new job. User needs to belong to job owner group.");
    }
    Ok(())
}

/// Refuses whoever may not create the job.
pub(super) fn may_create(
    settings: &Settings,
    asker: &Asker,
    job_type: &JobType,
    facts: &Facts,
) -> Result<(), ScicatError> {
    let rights = asker.rights.of_keeper(&settings.create_job_privileged_groups);
    if rights.is_admin {
        return Ok(());
    }
    let caller = asker.caller();
    let is_allowed = match job_type.create_auth.as_str() {
        "#all" => true,
        "#authenticated" => !caller.is_anonymous(),
        "#datasetPublic" => facts.are_published,
        "#datasetAccess" => facts.are_readable,
        "#datasetOwner" => !caller.is_anonymous() && facts.are_owned,
        other => is_named(other, &rights),
    };
    if is_allowed {
        return Ok(());
    }
    Err(ScicatError::forbidden("Unauthorized to create this job."))
}

/// Refuses whoever may not change the job.
pub(super) fn may_update(
    settings: &Settings,
    rights: &Rights,
    job: &Map<String, Value>,
) -> Result<(), ScicatError> {
    let rights = rights.of_keeper(&settings.update_job_privileged_groups);
    let caller = rights.caller();
    let is_owner = caller.username().is_some_and(|name| name == text(job, "ownerUser"));
    let is_member = caller.is_in(text(job, "ownerGroup"));
    // A type that the site has no longer leaves its jobs to those who may change any.
    let update_auth = job_type(settings, text(job, "type")).map_or("#jobAdmin", |it| it.update_auth.as_str());
    let is_allowed = rights.is_admin
        || match update_auth {
            "#all" | "#authenticated" => !caller.is_anonymous(),
            "#jobOwnerUser" => is_owner,
            "#jobOwnerGroup" => is_owner || is_member,
            other => is_named(other, &rights),
        };
    if is_allowed { Ok(()) } else { Err(ScicatError::forbidden("Unauthorized to update this job.")) }
}

/// `@group`, or a user's name. Other words with `#` name nobody.
fn is_named(auth: &str, rights: &Rights) -> bool {
    match auth.strip_prefix('@') {
        Some(group) => rights.caller().is_in(group),
        None => !auth.starts_with('#') && rights.caller().username() == Some(auth),
    }
}

/// Names the owners of a new job: the caller, and the group of the datasets where it is the caller's. v3 also
/// notes the group among the job's parameters.
pub(super) fn own(asker: &Asker, job: &mut Map<String, Value>, facts: &Facts, api: Api) {
    if let Some(name) = asker.caller().username() {
        job.entry("ownerUser").or_insert_with(|| name.into());
    }
    let group = facts.owner_group.as_deref().filter(|it| asker.rights.is_admin || asker.caller().is_in(it));
    if let Some(group) = group {
        job.entry("ownerGroup").or_insert_with(|| group.into());
    }
    let group = job.get("ownerGroup").cloned();
    if let (Api::V3, Some(group), Some(Value::Object(params))) = (api, group, job.get_mut("jobParams")) {
        params.entry("ownerGroup").or_insert(group);
    }
}
