//! Which jobs a caller may see.

use http::{HeaderMap, StatusCode};
use pinakes_store::{Expr, Record, Value as Condition};
use serde_json::Value;

use crate::app::{Asker, QueryText, Scicat, json_parameter};
use crate::documents::object;
use crate::error::ScicatError;
use crate::filter::{self, Filter};
use crate::fullquery::Search;
use crate::jobs::forms;
use crate::kinds::JOB;
use crate::listing;
use crate::strict;

pub(crate) static SEARCH: Search = Search { kind: &JOB, quantities: "", quantity_key: "" };

pub(crate) fn invalid_id() -> ScicatError {
    ScicatError::short(StatusCode::BAD_REQUEST, "Invalid job id.")
}

/// Says whether the caller may see all jobs: those who may create or change any job may.
pub(crate) fn sees_all(app: &Scicat, asker: &Asker) -> bool {
    let settings = &app.settings;
    let is_in = |groups: &[String]| asker.caller().is_in_any(groups);
    asker.rights.is_admin
        || is_in(&settings.update_job_privileged_groups)
        || is_in(&settings.create_job_privileged_groups)
}

/// Returns the condition on the jobs that the caller may see: their own, and those of their groups.
pub(crate) fn visible(app: &Scicat, asker: &Asker) -> Expr {
    if sees_all(app, asker) {
        return Expr::All;
    }
    let own = Expr::Is("ownerUser".into(), Condition::Text(asker.username()));
    Expr::Or(vec![own, asker.rights.in_own_groups()])
}

/// Returns the filter of a request. v4 may sort by `limits.sort`.
pub(crate) fn filter(query: &QueryText, headers: &HeaderMap) -> Result<Filter, ScicatError> {
    let value = match filter::text("filter", query, headers)? {
        None => Value::Null,
        Some(text) => forms::filter_with_v4_names(json_parameter("filter", text)?),
    };
    let mut filter = filter::from_value(&value, &JOB)?;
    if let Some(sort) = value.get("limits").and_then(|it| it.get("sort")).filter(|it| !it.is_null()) {
        filter.window.order = strict::sort(sort)?;
    }
    Ok(filter)
}

/// Returns a job that the caller may see.
///
/// Errors: 400 in shape E2 if it does not exist, 403 if the caller may not see it.
pub(crate) async fn readable(app: &Scicat, asker: &Asker, id: &str) -> Result<Record, ScicatError> {
    asker.forbid_anonymous()?;
    let (record, class) = listing::with_class(asker, &JOB, id).await?.ok_or_else(invalid_id)?;
    let is_own = crate::documents::text(&object(&record)?, "ownerUser") == asker.username();
    if is_own || sees_all(app, asker) || asker.rights.of_keeper(&[]).may_read(&class) {
        return Ok(record);
    }
    Err(ScicatError::forbidden("Unauthorized to get this job."))
}
