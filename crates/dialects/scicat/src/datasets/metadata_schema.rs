//! `scientificMetadataSchema`: a JSON schema on another server against which the metadata of a dataset is validated. It
//! is fetched only from hosts that the site allows, as clients could otherwise choose which URLs this server requests.
//! The meta-schemas of JSON Schema itself are built in and never fetched.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::incoming::METADATA;
use crate::app::Scicat;
use crate::datasets::schemas::Fetched;
use crate::documents::merge_patch;
use crate::outgoing::{self, Outgoing};
use crate::published_data::schema::Schema;

/// The field with the URL.
const SCHEMA: &str = "scientificMetadataSchema";
/// The field that says whether the metadata is valid.
const VALID: &str = "scientificMetadataValid";
/// Maximum size of a schema, in bytes.
const SCHEMA_BYTES: usize = 1 << 20;
/// The meta-schemas that are built in, by their addresses without scheme and fragment.
const META_SCHEMAS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];
/// How long a schema, or its absence, is cached, in milliseconds.
const REMEMBERED_MS: i64 = 600_000;

/// Records in a body that is about to be stored whether `metadata` satisfies the schema that it names; does nothing if
/// it names none.
pub(crate) async fn judge(app: &Scicat, body: &mut Map<String, Value>, metadata: &Value) {
    let Some(url) = body.get(SCHEMA).and_then(Value::as_str).map(str::to_owned) else { return };
    let is_valid = holds(app, &url, metadata).await;
    body.insert(VALID.to_owned(), is_valid.into());
}

/// Does the same for changes of a stored dataset, if they set the schema or the metadata.
pub(crate) async fn judge_changes(
    app: &Scicat,
    changes: &mut Map<String, Value>,
    stored: &Value,
    is_merge: bool,
) {
    if !changes.contains_key(SCHEMA) && !changes.contains_key(METADATA) {
        return;
    }
    let Some(url) = changes.get(SCHEMA).or_else(|| stored.get(SCHEMA)).and_then(Value::as_str) else {
        return;
    };
    let before = stored.get(METADATA).cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let metadata = match changes.get(METADATA) {
        None => before,
        Some(patch) if is_merge => {
            let mut merged = before;
            merge_patch(&mut merged, patch.clone());
            merged
        }
        Some(whole) => whole.clone(),
    };
    let is_valid = holds(app, url, &metadata).await;
    changes.insert(VALID.to_owned(), is_valid.into());
}

/// Says whether metadata satisfies the schema at a URL. It does not if the schema cannot be fetched.
async fn holds(app: &Scicat, url: &str, metadata: &Value) -> bool {
    let schema = schema(app, url).await;
    schema.is_some_and(|it| it.faults(metadata).is_empty())
}

async fn schema(app: &Scicat, url: &str) -> Option<Arc<Schema>> {
    let now_ms = app.context.clock().now_ms();
    let meta_schema = meta_schema(url);
    let allowed = &app.settings.scientific_metadata_schema_hosts;
    if meta_schema.is_none() && !allowed.iter().any(|it| *it == outgoing::server_of(url)) {
        return None;
    }
    if let Some(known) = app.schemas.0.get(url).filter(|it| now_ms - it.at_ms < REMEMBERED_MS) {
        return known.schema;
    }
    let source = match meta_schema {
        Some(built_in) => Ok(built_in),
        None => fetched(app, url).await,
    };
    let compiled = source.and_then(|it| Schema::compile(&it));
    let schema = compiled
        .inspect_err(|error| tracing::warn!(error, "scientificMetadataSchema: no schema could be fetched"))
        .ok()
        .map(Arc::new);
    app.schemas.0.insert(url.to_owned(), Fetched { at_ms: now_ms, schema: schema.clone() });
    schema
}

async fn fetched(app: &Scicat, url: &str) -> Result<Value, String> {
    let timeout = Duration::from_millis(app.settings.outgoing_timeout_ms);
    let bytes = Outgoing::get(url).fetch(timeout, SCHEMA_BYTES).await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Returns a schema that refers to the built-in meta-schema at that address, if there is one.
fn meta_schema(url: &str) -> Option<Value> {
    let (scheme, place) = url.split_once("://")?;
    let place = place.strip_suffix('#').unwrap_or(place);
    if !["http", "https"].contains(&scheme) || !META_SCHEMAS.contains(&place) {
        return None;
    }
    // Later drafts are named with `https`, earlier ones with `http`.
    let scheme = if place.contains("/draft/") { "https" } else { "http" };
    Some(json!({"$schema": format!("{scheme}://{place}"), "$ref": format!("{scheme}://{place}")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_schemas_are_built_in() {
        for place in META_SCHEMAS {
            for url in [format!("http://{place}#"), format!("https://{place}")] {
                let schema = meta_schema(&url).map(|it| Schema::compile(&it).expect(&url)).expect(&url);
                assert!(schema.faults(&json!({"title": "t", "description": "d"})).is_empty(), "{url}");
                assert!(!schema.faults(&json!({"title": false})).is_empty(), "{url}");
            }
        }
        for url in
            ["https://json-schema.org/draft-07/schema/other", "ftp://json-schema.org/draft-07/schema", "x"]
        {
            assert_eq!(meta_schema(url), None);
        }
    }
}
