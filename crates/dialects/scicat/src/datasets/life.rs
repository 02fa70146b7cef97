//! The lifecycle that every dataset has.

use serde_json::{Map, Value};

use crate::app::Scicat;
use crate::dates;

/// Dates of a lifecycle.
pub(crate) const DATES: [&str; 4] =
    ["dateOfDiskPurging", "archiveRetentionTime", "dateOfPublishing", "publishedOn"];

/// Fills in the missing fields of a dataset's `datasetlifecycle`.
pub(crate) fn complete(app: &Scicat, dataset: &mut Map<String, Value>) {
    let given = match dataset.shift_remove("datasetlifecycle") {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let now_ms = app.context.clock().now_ms();
    let later = |years: i64| Value::from(dates::format_ms(dates::years_later(now_ms, years)));
    let mut lifecycle = Map::with_capacity(given.len() + 12);
    for (name, value) in [
        ("archivable", Value::Bool(true)),
        ("retrievable", Value::Bool(false)),
        ("publishable", Value::Bool(false)),
        ("dateOfDiskPurging", later(app.settings.policy_retention_shift)),
        ("archiveRetentionTime", later(app.settings.policy_retention_shift)),
        ("dateOfPublishing", later(app.settings.policy_publication_shift)),
        ("publishedOn", later(0)),
        ("isOnCentralDisk", Value::Bool(true)),
        ("archiveStatusMessage", "datasetCreated".into()),
        ("retrieveStatusMessage", "".into()),
        ("retrieveIntegrityCheck", Value::Bool(false)),
        ("_id", app.new_object_id().into()),
    ] {
        lifecycle.insert(name.to_owned(), value);
    }
    merge(&mut lifecycle, given);
    dataset.insert("datasetlifecycle".to_owned(), Value::Object(lifecycle));
}

pub(crate) fn merge(lifecycle: &mut Map<String, Value>, changes: Map<String, Value>) {
    for (name, value) in changes {
        let value = match value {
            Value::String(text) if DATES.contains(&name.as_str()) => {
                dates::normalise(&text).unwrap_or(text).into()
            }
            other => other,
        };
        lifecycle.insert(name, value);
    }
}
