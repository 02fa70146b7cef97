//! The forms of a job: stored and shown by v4 as it is, converted to the form of v3 and back.
//!
//! | v3 | v4 |
//! |---|---|
//! | `emailJobInitiator` | `contactEmail` |
//! | `creationTime` | `createdAt` |
//! | `jobStatusMessage` | `statusCode` |
//! | `datasetList`, `executionTime` | members of `jobParams` |

use serde_json::{Map, Value};

use crate::documents::merge_patch;
use crate::documents::normalise_dates;

/// Fields of v3 and the fields in which v4 stores them.
const NAMES: [(&str, &str); 6] = [
    ("id", "_id"),
    ("emailJobInitiator", "contactEmail"),
    ("creationTime", "createdAt"),
    ("jobStatusMessage", "statusCode"),
    ("datasetList", "jobParams.datasetList"),
    ("executionTime", "jobParams.executionTime"),
];

/// Members of `jobParams` that v3 shows at the top level.
const LIFTED: [&str; 2] = ["datasetList", "executionTime"];

/// Returns v4's name for a field of v3, or for a path below it.
fn v4_name(name: &str) -> String {
    let (first, below) = match name.split_once('.') {
        Some((first, below)) => (first, Some(below)),
        None => (name, None),
    };
    match (NAMES.iter().find(|(v3, _)| *v3 == first), below) {
        (Some((_, v4)), Some(below)) => format!("{v4}.{below}"),
        (Some((_, v4)), None) => (*v4).to_owned(),
        (None, _) => name.to_owned(),
    }
}

/// Renames the fields of a condition or a search to v4's names, at any depth.
pub(super) fn with_v4_names(condition: Map<String, Value>) -> Map<String, Value> {
    condition.into_iter().map(|(name, value)| (v4_name(&name), inside(value))).collect()
}

fn inside(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(with_v4_names(map)),
        Value::Array(list) => Value::Array(list.into_iter().map(inside).collect()),
        other => other,
    }
}

/// Renames the fields in the condition and order of a filter to v4's names; the fields that it selects are
/// those of the answer.
pub(super) fn filter_with_v4_names(mut filter: Value) -> Value {
    if let Some(condition) = filter.get_mut("where") {
        *condition = inside(condition.take());
    }
    if let Some(Value::String(order)) = filter.get_mut("limits").and_then(|it| it.get_mut("order")) {
        *order = order.split(',').map(|part| v4_order(part.trim())).collect::<Vec<_>>().join(",");
    }
    filter
}

fn v4_order(part: &str) -> String {
    match part.rsplit_once(':') {
        Some((field, direction)) => format!("{}:{direction}", v4_name(field)),
        None => part.to_owned(),
    }
}

/// Converts a stored job to what v3 shows.
pub(super) fn show_as_v3(job: &mut Map<String, Value>) {
    let mut stored = std::mem::take(job);
    let mut params = match stored.shift_remove("jobParams") {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let lifted = LIFTED.map(|name| params.shift_remove(name));
    for (name, from) in [
        ("_id", "_id"),
        ("id", "_id"),
        ("type", "type"),
        ("emailJobInitiator", "contactEmail"),
        ("creationTime", "createdAt"),
    ] {
        if let Some(value) = stored.get(from) {
            job.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(owner) = stored.get("ownerUser").filter(|it| it.is_string()) {
        params.insert("username".to_owned(), owner.clone());
    }
    job.insert("jobParams".to_owned(), Value::Object(params));
    for (name, from) in [("jobStatusMessage", "statusCode"), ("jobResultObject", "jobResultObject")] {
        if let Some(value) = stored.shift_remove(from) {
            job.insert(name.to_owned(), value);
        }
    }
    for (name, value) in LIFTED.into_iter().zip(lifted) {
        if let Some(value) = value {
            job.insert(name.to_owned(), value);
        }
    }
}

/// Converts a checked body of v3's create to the form of v4.
pub(crate) fn v4_of_create(mut body: Map<String, Value>) -> Map<String, Value> {
    let mut params = match body.shift_remove("jobParams") {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    normalise_dates(&mut body, &["executionTime"]);
    for name in LIFTED {
        if let Some(value) = body.shift_remove(name).filter(|it| !it.is_null()) {
            params.insert(name.to_owned(), value);
        }
    }
    let mut job: Map<String, Value> = body.into_iter().map(|(name, value)| (v4_name(&name), value)).collect();
    job.insert("jobParams".to_owned(), Value::Object(params));
    // v3 has one text for both the code and the message.
    if let Some(status) = job.get("statusCode").filter(|it| it.is_string()).cloned() {
        job.insert("statusMessage".to_owned(), status);
    }
    job
}

/// Converts a checked body of v3's update to the form of v4. v3 has one text for both the code and the
/// message.
pub(super) fn v4_of_update(mut body: Map<String, Value>) -> Map<String, Value> {
    normalise_dates(&mut body, &["executionTime"]);
    if let Some(status) = body.shift_remove("jobStatusMessage") {
        body.insert("statusCode".to_owned(), status.clone());
        body.insert("statusMessage".to_owned(), status);
    }
    body
}

/// Replaces the fields that an update names; a merge patch is merged into `jobResultObject` instead of
/// replacing it.
pub(super) fn apply(job: &mut Map<String, Value>, changes: &Map<String, Value>, is_merge: bool) {
    for (name, value) in changes {
        if is_merge && name == "jobResultObject" {
            merge_patch(job.entry(name.clone()).or_insert(Value::Null), value.clone());
        } else if name != "executionTime" {
            job.insert(name.clone(), value.clone());
        } else if let Some(Value::Object(params)) = job.get_mut("jobParams") {
            params.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_and_orders_get_the_names_of_v4() {
        let filter = json!({
            "where": {"or": [{"emailJobInitiator": "a@b.ch"}, {"datasetList.pid": {"inq": ["x"]}}]},
            "limits": {"order": "creationTime:desc, type:asc", "limit": 5},
            "fields": ["jobStatusMessage"],
        });
        assert_eq!(
            filter_with_v4_names(filter),
            json!({
                "where": {"or": [{"contactEmail": "a@b.ch"}, {"jobParams.datasetList.pid": {"inq": ["x"]}}]},
                "limits": {"order": "createdAt:desc,type:asc", "limit": 5},
                "fields": ["jobStatusMessage"],
            })
        );
    }

    #[test]
    fn a_job_goes_there_and_back() {
        let Value::Object(body) = json!({
            "type": "archive", "emailJobInitiator": "a@b.ch", "jobParams": {"tapeCopies": "one"},
            "datasetList": [{"pid": "p/1", "files": []}],
        }) else {
            unreachable!("an object")
        };
        let mut job = v4_of_create(body.clone());
        assert_eq!(job["contactEmail"], "a@b.ch");
        assert_eq!(job["jobParams"]["datasetList"][0]["pid"], "p/1");
        show_as_v3(&mut job);
        for (name, value) in &body {
            assert_eq!(&job[name], value, "{name}");
        }
    }
}
