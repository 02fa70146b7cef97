//! The forms of published data: stored and shown by v4 as it is, converted to the form of v3 and back.
//!
//! | v3 | v4 |
//! |---|---|
//! | `pidArray` | `datasetPids` |
//! | `creator: ["N"]` | `metadata.creators: [{"name":"N"}]` |
//! | `authors: ["N"]` | `metadata.contributors: [{"name":"N"}]` |
//! | `publisher: "P"` | `metadata.publisher: {"name":"P"}` |
//! | `status: "pending_registration"` | `status: "private"`, `"public"` |
//! | the rest except title and abstract | `metadata`, under the same name |

use http::StatusCode;
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use super::status;
use crate::datasets::forms::Api;
use crate::error::{Answer, ScicatError};
use crate::published_data::forms;

/// The status in v3 of publications that are not registered.
const PENDING: &str = "pending_registration";

/// Fields that both versions have at the top level.
const SHARED: [&str; 3] = ["title", "abstract", "doi"];

/// Fields of v3 that v4 stores in `metadata` under the same name.
const KEPT: [&str; 11] = [
    "affiliation",
    "publicationYear",
    "url",
    "dataDescription",
    "resourceType",
    "numberOfFiles",
    "sizeOfArchive",
    "scicatUser",
    "thumbnail",
    "relatedPublications",
    "downloadLink",
];

/// Lists of names in v3 that are lists of objects in `metadata`.
const NAMED: [(&str, &str); 2] = [("creator", "creators"), ("authors", "contributors")];

/// Converts a checked body of v3 to the form of v4. Missing fields stay missing.
pub(crate) fn v4_of(body: Map<String, Value>) -> Map<String, Value> {
    let (mut publication, mut metadata) = (Map::new(), Map::new());
    for (name, value) in body {
        match name.as_str() {
            "pidArray" => {
                publication.insert("datasetPids".to_owned(), value);
            }
            "publisher" => {
                metadata.insert(name, json!({"name": value}));
            }
            it if SHARED.contains(&it) || it == "status" || it == "registeredTime" => {
                publication.insert(name, value);
            }
            it => match NAMED.iter().find(|(v3, _)| *v3 == it) {
                Some((_, v4)) => {
                    metadata.insert((*v4).to_owned(), named_objects(&value));
                }
                None => {
                    metadata.insert(name, value);
                }
            },
        }
    }
    publication.insert("metadata".to_owned(), Value::Object(metadata));
    publication
}

fn named_objects(names: &Value) -> Value {
    names.as_array().into_iter().flatten().map(|it| json!({"name": it})).collect()
}

/// Returns the names in `[{"name":"N"}]`; plain texts are taken as they are.
fn names(objects: &Value) -> Value {
    let name = |it: &Value| it.get("name").filter(|it| it.is_string()).unwrap_or(it).clone();
    objects.as_array().into_iter().flatten().map(name).collect()
}

/// Converts stored published data to what v3 shows.
pub(super) fn show_as_v3(publication: &mut Map<String, Value>) {
    let mut stored = std::mem::take(publication);
    let metadata = match stored.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            publication.insert(name.to_owned(), value);
        }
    };
    for name in ["doi", "_id"] {
        put(name, stored.shift_remove(name));
    }
    put("creator", metadata.get("creators").map(names));
    put("publisher", metadata.get("publisher").map(|it| it.get("name").unwrap_or(it).clone()));
    for name in ["title", "abstract"] {
        put(name, stored.shift_remove(name));
    }
    for name in KEPT {
        put(name, metadata.get(name).cloned());
    }
    put("pidArray", stored.shift_remove("datasetPids"));
    put("authors", metadata.get("contributors").map(names));
    put("status", stored.shift_remove("status").map(|it| v3_status(&it)));
    stored.into_iter().for_each(|(name, value)| put(&name, Some(value)));
}

fn v3_status(status: &Value) -> Value {
    match status.as_str() {
        Some(status::REGISTERED | status::AMENDED) => status::REGISTERED.into(),
        _ => PENDING.into(),
    }
}

/// Renames the fields in the condition and order of a v3 filter to v4's names.
pub(super) fn filter_with_v4_names(mut filter: Value) -> Value {
    if let Some(Value::Object(condition)) = filter.get_mut("where") {
        *condition = with_v4_names(std::mem::take(condition));
    }
    if let Some(Value::String(order)) = filter.get_mut("limits").and_then(|it| it.get_mut("order")) {
        let part = |it: &str| match it.trim().rsplit_once(':') {
            Some((field, direction)) => format!("{}:{direction}", v4_path(field)),
            None => it.to_owned(),
        };
        *order = order.split(',').map(part).collect::<Vec<_>>().join(",");
    }
    filter
}

pub(super) fn with_v4_names(condition: Map<String, Value>) -> Map<String, Value> {
    let part = |(name, value): (String, Value)| match value {
        Value::Array(list) if ["and", "or", "$and", "$or", "$nor"].contains(&name.as_str()) => {
            let inside = |it: Value| match it {
                Value::Object(map) => Value::Object(with_v4_names(map)),
                other => other,
            };
            (name, Value::Array(list.into_iter().map(inside).collect()))
        }
        value if name == "status" => (name, v4_status(value)),
        value => (v4_path(&name), value),
    };
    condition.into_iter().map(part).collect()
}

/// Converts a status of v3: pending is private or public in v4; registered may also be amended there.
fn v4_status(value: Value) -> Value {
    match value.as_str() {
        Some(PENDING) => json!({"$in": [status::PRIVATE, status::PUBLIC]}),
        Some(status::REGISTERED) => json!({"$in": [status::REGISTERED, status::AMENDED]}),
        _ => value,
    }
}

fn v4_path(name: &str) -> String {
    match name {
        "pidArray" => "datasetPids".to_owned(),
        "creator" => "metadata.creators.name".to_owned(),
        "authors" => "metadata.contributors.name".to_owned(),
        "publisher" => "metadata.publisher.name".to_owned(),
        name if KEPT.contains(&name) => format!("metadata.{name}"),
        name => name.to_owned(),
    }
}

/// Replaces the fields that a change names. v4 replaces `metadata` as a whole, v3 only its own fields in it.
pub(super) fn apply(publication: &mut Map<String, Value>, changes: &Map<String, Value>, api: Api) {
    for (name, value) in changes {
        match (publication.get_mut(name), value) {
            (Some(Value::Object(before)), Value::Object(after)) if name == "metadata" && api == Api::V3 => {
                before.extend(after.clone());
            }
            _ => {
                publication.insert(name.clone(), value.clone());
            }
        }
    }
}

pub(crate) fn parsed(stored: &bytes::Bytes) -> Result<Map<String, Value>, ScicatError> {
    let parsed = serde_json::from_slice(stored);
    parsed.map_err(|error| pinakes_store::StoreError::Damaged(error.to_string()).into())
}

pub(crate) fn shown(stored: &bytes::Bytes, api: Api) -> Answer {
    if api == Api::V4 {
        return Ok(answer::stored_json(StatusCode::OK, stored.clone()));
    }
    let mut publication = parsed(stored)?;
    forms::show_as_v3(&mut publication);
    Ok(answer::json(StatusCode::OK, &publication))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v3_goes_there_and_back() {
        let Value::Object(body) = json!({
            "creator": ["A", "B"], "publisher": "P", "publicationYear": 2020, "title": "T", "abstract": "x",
            "dataDescription": "d", "resourceType": "raw", "pidArray": ["p/1"], "authors": ["C"], "url": "u",
        }) else {
            unreachable!("an object")
        };
        let mut publication = v4_of(body.clone());
        assert_eq!(publication["metadata"]["creators"], json!([{"name": "A"}, {"name": "B"}]));
        assert_eq!(publication["datasetPids"], json!(["p/1"]));
        publication.insert("status".to_owned(), status::PUBLIC.into());
        show_as_v3(&mut publication);
        for (name, value) in &body {
            assert_eq!(&publication[name], value, "{name}");
        }
        assert_eq!(publication["status"], PENDING);
    }

    #[test]
    fn conditions_get_the_names_of_v4() {
        let filter = json!({
            "where": {"or": [{"creator": "A"}, {"status": "pending_registration"}], "title": {"like": "x"}},
            "limits": {"order": "publicationYear:desc"},
        });
        assert_eq!(
            filter_with_v4_names(filter),
            json!({
                "where": {
                    "or": [{"metadata.creators.name": "A"}, {"status": {"$in": ["private", "public"]}}],
                    "title": {"like": "x"},
                },
                "limits": {"order": "metadata.publicationYear:desc"},
            })
        );
    }
}
