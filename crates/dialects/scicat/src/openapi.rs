//! The `OpenAPI` document of what is served, from which client programs are generated (`/explorer-json`).
//!
//! `openapi/operations.txt` names each operation and the schema of its body; the schemas are made of the same
//! tables that check the bodies. A test asks the router for every operation of the list.

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::Scicat;
use crate::dto;
use crate::validate::{Dto, Field, Nested, Presence, Rule};

/// `METHOD path [schema]`, one a line.
const OPERATIONS: &str = include_str!("openapi/operations.txt");

/// Schemas of bodies by name.
static SCHEMAS: [(&str, &Dto); 19] = [
    ("RawDataset", &dto::dataset::RAW),
    ("DerivedDataset", &dto::dataset::DERIVED),
    ("Dataset", &dto::dataset::OTHER),
    ("PartialDataset", &dto::dataset::OTHER),
    ("Lifecycle", &dto::lifecycle::LIFECYCLE),
    ("OrigDatablock", &dto::origdatablock::ORIG_DATABLOCK),
    ("OrigDatablockOfDataset", &dto::origdatablock::ORIG_DATABLOCK_OF_DATASET),
    ("Datablock", &dto::datablock::DATABLOCK),
    ("DatablockOfDataset", &dto::datablock::DATABLOCK_OF_DATASET),
    ("Attachment", &dto::attachment::V4),
    ("AttachmentV3", &dto::attachment::V3),
    ("Proposal", &dto::proposal::PROPOSAL),
    ("Sample", &dto::sample::SAMPLE),
    ("Instrument", &dto::instrument::INSTRUMENT),
    ("Policy", &dto::policy::POLICY),
    ("JobV3", &dto::job::V3_CREATE),
    ("Job", &dto::job::V4_CREATE),
    ("PublishedDataV3", &dto::published_data::V3),
    ("PublishedData", &dto::published_data::V4),
];

pub(crate) fn routes() -> Router<Scicat> {
    Router::new().route("/explorer-json", get(async || answer::json(StatusCode::OK, &document())))
}

/// The whole document.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for line in OPERATIONS.lines() {
        let mut words = line.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else { continue };
        let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        item[method.to_lowercase()] = operation(method, path, words.next());
    }
    let schemas: Map<String, Value> =
        SCHEMAS.iter().map(|(name, dto)| ((*name).to_owned(), schema(name, dto))).collect();
    json!({
        "openapi": "3.0.3",
        "info": {"title": "SciCat dialect of Pinakes", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    })
}

fn operation(method: &str, path: &str, body: Option<&str>) -> Value {
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let names = segments.iter().skip(1).map(|it| it.trim_matches(['{', '}']));
    let id: String = std::iter::once(method.to_lowercase()).chain(names.map(capitalised)).collect();
    let parameters: Vec<Value> = segments
        .iter()
        .filter(|it| it.starts_with('{'))
        .map(|it| json!({"name": it.trim_matches(['{', '}']), "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let success =
        if method == "POST" && body.is_some() && !path.ends_with("isValid") { "201" } else { "200" };
    let mut operation = json!({
        "operationId": id,
        "tags": [segments.get(2).copied().unwrap_or_default()],
        "parameters": parameters,
        "responses": {success: {"description": "as section and version of the API say"}},
        "security": [{}, {"bearer": []}],
    });
    if let Some(name) = body {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// `isValid` becomes `IsValid`, so that operation ids read as one word.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn schema(name: &str, dto: &Dto) -> Value {
    let properties: Map<String, Value> =
        dto.fields.iter().map(|it| (it.name.to_owned(), property(it))).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let required: Vec<&str> =
        dto.fields.iter().filter(|it| it.presence == Presence::Required).map(|it| it.name).collect();
    if !required.is_empty() && !name.starts_with("Partial") {
        schema["required"] = json!(required);
    }
    schema
}

fn property(field: &Field) -> Value {
    match field.nested {
        Some(Nested::Each(dto)) => return json!({"type": "array", "items": schema("", dto)}),
        Some(Nested::One(dto)) => return schema("", dto),
        None => {}
    }
    field.rules.iter().find_map(|it| type_of(*it)).unwrap_or_else(|| json!({}))
}

/// What a rule says of a value's type; `None` when it says something else.
fn type_of(rule: Rule) -> Option<Value> {
    Some(match rule {
        Rule::Text | Rule::EmailList => json!({"type": "string"}),
        Rule::EachText => json!({"type": "array", "items": {"type": "string"}}),
        Rule::Integer => json!({"type": "integer"}),
        Rule::Number => json!({"type": "number"}),
        Rule::Boolean => json!({"type": "boolean"}),
        Rule::Date => json!({"type": "string", "format": "date-time"}),
        Rule::Email => json!({"type": "string", "format": "email"}),
        Rule::Url => json!({"type": "string", "format": "uri"}),
        Rule::Object => json!({"type": "object"}),
        Rule::List => json!({"type": "array", "items": {}}),
        Rule::Enum(choices) | Rule::OneOf(choices) => json!({"type": "string", "enum": choices}),
        Rule::NotEmpty | Rule::ListNotEmpty => return None,
    })
}
