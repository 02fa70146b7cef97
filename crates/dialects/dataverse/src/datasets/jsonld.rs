//! Metadata as JSON-LD with the URIs of fields: `/api/datasets/{id}/metadata`, and creating datasets from such a body.
//!
//! Terms may be written as full IRIs, with a prefix that `@context` defines, or as a name that it defines. Only inline
//! contexts are used; remote ones are not fetched.

use std::collections::HashMap;

use http::{HeaderValue, StatusCode};
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::blocks::{Fields, Registry, edit};
use crate::datasets::{Dataset, Version, edit as editing, terms};
use crate::envelope;
use crate::error::{Answer, ApiError};
use crate::exports::serve;
use crate::routing::Routes;

/// Namespace of Dataverse's own terms.
const CORE: &str = "https://dataverse.org/schema/core#";
/// Namespace of schema.org.
const SCHEMA: &str = "http://schema.org/";
/// Maximum nesting of a body.
const DEPTH: usize = 8;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/metadata", latest)
        .get("/datasets/{id}/versions/{version}/metadata.jsonld", latest)
        .put("/datasets/{id}/metadata", update)
        .put("/datasets/{id}/metadata/delete", delete)
}

async fn latest(call: Call) -> Answer {
    let registry = call.app.registry(call.db()).await?;
    let (app, asker, site_url) = (call.app.clone(), call.asker.clone(), call.site_url());
    let wanted = crate::datasets::wanted::Wanted::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let hidden = crate::datasets::version::Withdrawn::Hidden;
        let version = crate::datasets::version::find(view, &asker, &dataset, ":latest", hidden)?;
        let map = serve::ore_map(view, &app, &registry, &site_url, &dataset, &version)?;
        let mut json = Map::new();
        for (name, value) in map["ore:describes"].as_object().into_iter().flatten() {
            // Files have routes of their own.
            if name != "ore:aggregates" && name != "schema:hasPart" {
                json.insert(name.clone(), value.clone());
            }
        }
        json.insert("@context".into(), map["@context"].clone());
        Ok(json.into())
    };
    let data = call.db().read(Weight::Scan, read).await?;
    let body = json!({"status": "OK", "data": data}).to_string();
    Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static("application/ld+json"), body))
}

/// The contents of a body.
#[derive(Debug)]
pub(crate) struct Said {
    /// Fields, as single fields.
    pub fields: Fields,
    /// Licence and terms, by their names in versions.
    pub terms: Map<String, Value>,
    /// The type of the dataset.
    pub dataset_type: Option<String>,
}

/// Prefixes and names that a body defines.
struct Context(HashMap<String, String>);

impl Context {
    fn of(body: &Map<String, Value>) -> Self {
        let mut map = HashMap::new();
        let mut take = |object: &Map<String, Value>| {
            for (name, value) in object {
                if let Some(uri) = value.as_str().or_else(|| value["@id"].as_str()) {
                    map.insert(name.clone(), uri.to_owned());
                }
            }
        };
        match body.get("@context") {
            Some(Value::Object(object)) => take(object),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_object).for_each(take),
            _ => {}
        }
        Self(map)
    }

    /// Returns the full IRI of a term.
    fn whole(&self, term: &str) -> String {
        let mut term = term.to_owned();
        for _ in 0..DEPTH {
            if term.starts_with('@') || term.contains("://") {
                break;
            }
            if let Some(uri) = self.0.get(&term) {
                term.clone_from(uri);
            } else if let Some((uri, rest)) =
                term.split_once(':').and_then(|it| Some((self.0.get(it.0)?, it.1)))
            {
                term = format!("{uri}{rest}");
            } else {
                break;
            }
        }
        term
    }
}

/// Returns the texts of a value: one, several, or wrapped in the ways that JSON-LD allows.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Bool(it) => vec![it.to_string()],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(map) => {
            ["@value", "@id", "@list"].iter().filter_map(|it| map.get(*it)).flat_map(texts).collect()
        }
        Value::Null => Vec::new(),
    }
}

/// Returns the URI of a field whose block has no namespace of its own without the site that wrote it:
/// `https://x.org/schema/geospatial#country` is `https://dataverse.org/schema/geospatial/country`.
fn of_any_site(uri: &str) -> String {
    let named = uri.split_once("/schema/").and_then(|it| it.1.split_once('#'));
    match named.filter(|_| !uri.starts_with(CORE)) {
        Some((block, field)) => format!("https://dataverse.org/schema/{block}/{field}"),
        None => uri.to_owned(),
    }
}

/// Returns the fields by their URIs.
fn by_meaning(registry: &Registry) -> HashMap<String, usize> {
    let mut map = HashMap::new();
    for (at, field) in registry.fields().iter().enumerate() {
        let block = registry.block_of(field);
        let uri = match (field.uri.as_str(), block.uri.as_str()) {
            ("", "") => format!("https://dataverse.org/schema/{}/{}", block.name, field.name),
            ("", namespace) => format!("{namespace}{}", field.name),
            (uri, _) => uri.to_owned(),
        };
        // If several fields have the same URI, the first one is the general one.
        let key = match field.parent {
            Some(parent) => format!("{parent} {uri}"),
            None => uri,
        };
        map.entry(key).or_insert(at);
    }
    map
}

/// Parses a body.
///
/// Errors: 400 for a term that is neither a field nor a term of use, and for values that the field cannot have.
pub(crate) fn read(registry: &Registry, body: &Map<String, Value>) -> Result<Said, ApiError> {
    let (context, meanings) = (Context::of(body), by_meaning(registry));
    let bad = |text: String| ApiError::bad_request(format!("Error parsing Json: {text}"));
    let mut list = Vec::new();
    let mut terms = Map::new();
    let mut dataset_type = None;
    for (name, value) in body {
        let uri = context.whole(name);
        if uri.starts_with('@') {
            continue;
        }
        if let Some(at) = meanings.get(&of_any_site(&uri)) {
            list.push(field(registry, &context, &meanings, *at, value));
            continue;
        }
        let text = texts(value).into_iter().next();
        if uri == format!("{SCHEMA}license") {
            if let Some(license) = text.filter(|it| !it.is_empty()) {
                terms.insert("license".into(), license.into());
            }
        } else if uri == format!("{CORE}datasetType") {
            dataset_type = text;
        } else if let Some(name) = uri.strip_prefix(CORE) {
            core_term(&context, name, value, &mut terms);
        } else if !uri.starts_with(SCHEMA) && !uri.starts_with("http://www.openarchives.org/ore/terms/") {
            return Err(bad(format!("Term {name} ({uri}) is not known here.")));
        }
    }
    let fields = Fields::read_single(registry, &json!({ "fields": list })).map_err(bad)?;
    Ok(Said { fields, terms, dataset_type })
}

/// Parses terms of use and of access, on their own or in their group.
fn core_term(context: &Context, name: &str, value: &Value, terms: &mut Map<String, Value>) {
    match name {
        "fileTermsOfAccess" => {
            for (name, value) in value.as_object().into_iter().flatten() {
                if let Some(name) = context.whole(name).strip_prefix(CORE) {
                    core_term(context, name, value, terms);
                }
            }
        }
        "fileRequestAccess" => {
            let is_open = texts(value).first().is_some_and(|it| it == "true");
            terms.insert("fileAccessRequest".into(), is_open.into());
        }
        name if terms::CUSTOM.contains(&name) || terms::ACCESS.contains(&name) => {
            if let Some(text) = texts(value).into_iter().next() {
                terms.insert(name.to_owned(), text.into());
            }
        }
        _ => {}
    }
}

/// Returns a field in the form of single fields.
fn field(
    registry: &Registry,
    context: &Context,
    meanings: &HashMap<String, usize>,
    at: usize,
    value: &Value,
) -> Value {
    let ty = registry.at(at);
    if !ty.is_compound() {
        let list = texts(value);
        return match ty.is_multiple {
            true => json!({"typeName": ty.name, "value": list}),
            false => json!({"typeName": ty.name, "value": list.into_iter().next().unwrap_or_default()}),
        };
    }
    let values: Vec<&Value> = match value {
        Value::Array(list) => list.iter().collect(),
        one => vec![one],
    };
    let compounds: Vec<Value> = values
        .into_iter()
        .filter_map(Value::as_object)
        .map(|map| {
            let children = map.iter().filter_map(|(name, value)| {
                let uri = of_any_site(&context.whole(name));
                let child = *meanings.get(&format!("{at} {uri}"))?;
                Some((registry.at(child).name.clone(), field(registry, context, meanings, child, value)))
            });
            Value::Object(children.collect())
        })
        .collect();
    match ty.is_multiple {
        true => json!({"typeName": ty.name, "value": compounds}),
        false => json!({"typeName": ty.name, "value": compounds.into_iter().next().unwrap_or_default()}),
    }
}

/// Sets the terms that a body states in a version; the others stay.
fn put_terms(
    view: &mut View<'_>,
    version: &mut Version,
    said: &Map<String, Value>,
    replaces: bool,
) -> Result<(), ApiError> {
    if said.is_empty() {
        return Ok(());
    }
    let mut map = Map::new();
    terms::put_json(view, version, &mut map)?;
    if let Some(uri) = map.get("license").and_then(|it| it["uri"].as_str()).map(str::to_owned) {
        map.insert("license".into(), uri.into());
    }
    for (name, value) in said {
        let is_filled = name != "fileAccessRequest" && map.get(name).is_some_and(|it| it != value);
        if is_filled && !replaces {
            let message = format!("Can't change terms without replace=true: {name} has a value already.");
            return Err(ApiError::bad_request(message));
        }
        map.insert(name.clone(), value.clone());
    }
    if said.keys().any(|it| terms::CUSTOM.contains(&it.as_str())) && !said.contains_key("license") {
        map.remove("license");
    }
    terms::read(view, version, &map)
}

/// Refuses to add a value to a single-value field that already has one. Errors: 400.
fn check_appended(registry: &Registry, there: &Fields, said: &Fields) -> Result<(), ApiError> {
    let filled = said.0.iter().find(|it| !registry.at(it.at).is_multiple && there.get(it.at).is_some());
    let Some(field) = filled else { return Ok(()) };
    let name = &registry.at(field.at).name;
    Err(ApiError::bad_request(format!("Can't append to single-value field that already has a value: {name}")))
}

async fn update(mut call: Call) -> Answer {
    let body = call.object().await?;
    let registry = call.app.registry(call.db()).await?;
    let said = read(&registry, &body)?;
    let replaces = call.query.is_true("replace");
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        let mut fields = Fields::stored(&registry, &Value::Object(draft.metadata_blocks.clone()));
        if !replaces {
            check_appended(&registry, &fields, &said.fields)?;
        }
        match replaces {
            true => edit::replace(&registry, &mut fields, said.fields.clone()),
            false => edit::add(&registry, &mut fields, said.fields.clone()),
        }
        put_terms(txn, draft, &said.terms, replaces)?;
        crate::datasets::publish::check_access_terms(txn, dataset, draft)?;
        editing::put_fields(txn, &registry, dataset, draft, &fields)
    };
    envelope::ok(editing::changed(&call, change, editing::rendered).await?)
}

async fn delete(mut call: Call) -> Answer {
    let body = call.object().await?;
    let registry = call.app.registry(call.db()).await?;
    let said = read(&registry, &body)?;
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        let mut fields = Fields::stored(&registry, &Value::Object(draft.metadata_blocks.clone()));
        edit::delete(&registry, &mut fields, &said.fields)
            .map_err(|text| ApiError::bad_request(format!("Delete metadata failed: {text}")))?;
        for (name, value) in &said.terms {
            if draft.terms.get(name) == Some(value) {
                draft.terms.remove(name);
            } else {
                return Err(ApiError::bad_request(format!(
                    "Delete metadata failed: {name}: {value} not found."
                )));
            }
        }
        editing::put_fields(txn, &registry, dataset, draft, &fields)
    };
    envelope::ok(editing::changed(&call, change, editing::rendered).await?)
}

/// Converts a body into that of a new dataset: `{"datasetType": …, "datasetVersion": …}`.
pub(crate) fn new_body(
    registry: &Registry,
    body: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let said = read(registry, body)?;
    let mut version = said.terms;
    version.insert("metadataBlocks".into(), said.fields.to_json(registry));
    let mut new = Map::new();
    new.extend(said.dataset_type.map(|it| ("datasetType".to_owned(), it.into())));
    new.insert("datasetVersion".to_owned(), version.into());
    Ok(new)
}

/// Returns the value of a schema.org term about the dataset as a whole: `version` or `datePublished`.
pub(crate) fn of_schema(body: &Map<String, Value>, term: &str) -> Option<String> {
    let (context, wanted) = (Context::of(body), format!("{SCHEMA}{term}"));
    let found = body.iter().find(|(name, _)| context.whole(name) == wanted)?;
    texts(found.1).into_iter().next()
}

/// Returns whether a request's body is JSON-LD.
pub(crate) fn is_jsonld(call: &Call) -> bool {
    call.header("content-type").is_some_and(|it| it.starts_with("application/ld+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_a_namespace() {
        for (uri, expected) in [
            ("https://x.org/schema/geospatial#country", "https://dataverse.org/schema/geospatial/country"),
            (
                "https://dataverse.org/schema/geospatial/country",
                "https://dataverse.org/schema/geospatial/country",
            ),
            (
                "https://dataverse.org/schema/core#datasetType",
                "https://dataverse.org/schema/core#datasetType",
            ),
            ("http://purl.org/dc/terms/title", "http://purl.org/dc/terms/title"),
        ] {
            assert_eq!(of_any_site(uri), expected);
        }
    }

    #[test]
    fn a_body_is_read_by_meaning() {
        let registry = Registry::shipped();
        let body = json!({
            "@context": {
                "title": "http://purl.org/dc/terms/title",
                "author": "http://purl.org/dc/terms/creator",
                "citation": "https://dataverse.org/schema/citation/",
                "schema": "http://schema.org/",
            },
            "title": "Tides",
            "author": {"citation:authorName": "Gull, Ada"},
            "http://purl.org/dc/terms/subject": ["Other"],
            "schema:version": "DRAFT",
            "https://dataverse.org/schema/core#fileTermsOfAccess": {"https://dataverse.org/schema/core#dataAccessPlace": "Here"},
        });
        let said = read(&registry, body.as_object().unwrap()).unwrap();
        let blocks = said.fields.to_json(&registry);
        let names: Vec<&str> = blocks["citation"]["fields"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["typeName"].as_str())
            .collect();
        assert_eq!(names, ["title", "author", "subject"]);
        assert_eq!(blocks["citation"]["fields"][1]["value"][0]["authorName"]["value"], "Gull, Ada");
        assert_eq!(said.terms["dataAccessPlace"], "Here");
        let wrong = json!({"http://example.org/nothing": "x"});
        assert!(read(&registry, wrong.as_object().unwrap()).unwrap_err().message.contains("not known here"));
    }
}
