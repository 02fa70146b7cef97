//! The `OpenAPI` document of what is served, from which client programs are generated (`/explorer-json`), and a page on
//! which its operations can be tried (`/explorer`).
//!
//! `openapi/operations.txt` names each operation, its parameters and the schema of its body; the schemas are made of the same
//! tables that check the bodies. A test asks the router for every operation of the list.

use axum::Router;
use axum::routing::get;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::Scicat;
use crate::dto;
use crate::validate::{Dto, Field, Form, Nested, Presence, Rule};

/// `METHOD path [schema] [?parameter,parameter]`, one a line.
const OPERATIONS: &str = include_str!("openapi/operations.txt");

/// Ends of paths whose `POST` answers 200: it makes nothing.
const AS_READS: [&str; 7] =
    ["isValid", "logout", "register", "resync", "publish", "amend", "appendToArrayField"];

/// The page, which makes itself from the document.
const EXPLORER: &str = include_str!("openapi/explorer.html");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// Parameters that may come more than once, or whose value is JSON, with what to say of them.
const PARAMETERS: [(&str, &str); 8] = [
    ("filter", "JSON: {\"where\":{},\"fields\":[],\"include\":[],\"limits\":{}}"),
    ("filters", "JSON, as filter elsewhere"),
    ("fields", "JSON: conditions by field"),
    ("limits", "JSON: {\"skip\":0,\"limit\":25,\"order\":\"createdAt:desc\"}"),
    ("facets", "JSON: a list of fields to count"),
    ("include", "a relation; may be repeated"),
    ("data", "JSON: a list of values"),
    ("datasetFields", "JSON: a list of fields to show"),
];

/// Schemas of bodies by name.
static SCHEMAS: [(&str, &Dto); 37] = [
    ("RawDataset", &dto::dataset::RAW),
    ("DerivedDataset", &dto::dataset::DERIVED),
    ("Dataset", &dto::dataset::OTHER),
    ("PartialRawDataset", &dto::dataset::RAW),
    ("PartialDerivedDataset", &dto::dataset::DERIVED),
    ("PartialDataset", &dto::dataset::OTHER),
    ("Lifecycle", &dto::lifecycle::LIFECYCLE),
    ("OrigDatablock", &dto::origdatablock::ORIG_DATABLOCK),
    ("OrigDatablockOfDataset", &dto::origdatablock::ORIG_DATABLOCK_OF_DATASET),
    ("PartialOrigDatablock", &dto::origdatablock::ORIG_DATABLOCK),
    ("Datablock", &dto::datablock::DATABLOCK),
    ("DatablockOfDataset", &dto::datablock::DATABLOCK_OF_DATASET),
    ("PartialDatablock", &dto::datablock::DATABLOCK),
    ("Attachment", &dto::attachment::V4),
    ("PartialAttachment", &dto::attachment::V4),
    ("AttachmentV3", &dto::attachment::V3),
    ("PartialAttachmentV3", &dto::attachment::V3),
    ("Proposal", &dto::proposal::PROPOSAL),
    ("PartialProposal", &dto::proposal::PROPOSAL),
    ("Sample", &dto::sample::SAMPLE),
    ("PartialSample", &dto::sample::SAMPLE),
    ("Instrument", &dto::instrument::INSTRUMENT),
    ("PartialInstrument", &dto::instrument::INSTRUMENT),
    ("Policy", &dto::policy::POLICY),
    ("PartialPolicy", &dto::policy::POLICY),
    ("JobV3", &dto::job::V3_CREATE),
    ("Job", &dto::job::V4_CREATE),
    ("JobV3Update", &dto::job::V3_UPDATE),
    ("JobUpdate", &dto::job::V4_UPDATE),
    ("PublishedDataV3", &dto::published_data::V3),
    ("PublishedData", &dto::published_data::V4),
    ("PartialPublishedDataV3", &dto::published_data::V3),
    ("PartialPublishedData", &dto::published_data::V4),
    ("UserSettings", &dto::user_settings::USER_SETTINGS),
    ("Login", &dto::account::LOGIN),
    ("NewPassword", &dto::account::NEW_PASSWORD),
    ("TokenLife", &dto::account::TOKEN_LIFE),
];

/// Schemas that are no table: one of several, or free in form.
fn other_schemas() -> [(&'static str, Value); 5] {
    let one_of = |prefix: &str| {
        let names = ["RawDataset", "DerivedDataset", "Dataset"];
        let refs = names.map(|it| json!({"$ref": format!("#/components/schemas/{prefix}{it}")}));
        json!({"oneOf": refs})
    };
    let object = json!({"type": "object"});
    let policies = json!({
        "type": "object", "required": ["ownerGroupList", "data"],
        "properties": {
            "ownerGroupList": {"type": "string"},
            "data": {"$ref": "#/components/schemas/PartialPolicy"},
        },
    });
    [
        ("DatasetV3", one_of("")),
        ("PartialDatasetV3", one_of("Partial")),
        ("PolicyUpdate", policies),
        ("RuntimeConfig", json!({"type": "object", "required": ["data"], "properties": {"data": object}})),
        ("Anything", object),
    ]
}

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/explorer-json", get(async || answer::json(StatusCode::OK, &document())))
        .route("/explorer", get(async || answer::bytes(StatusCode::OK, HTML, EXPLORER)))
}

/// The whole document.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for line in OPERATIONS.lines() {
        let mut words = line.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else { continue };
        let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        let (queries, bodies): (Vec<&str>, Vec<&str>) = words.partition(|it| it.starts_with('?'));
        let names = queries.iter().flat_map(|it| it.trim_start_matches('?').split(',')).collect::<Vec<_>>();
        item[method.to_lowercase()] = operation(method, path, bodies.first().copied(), &names);
    }
    let tables = SCHEMAS.iter().map(|(name, dto)| (*name, schema(name, dto)));
    let schemas: Map<String, Value> =
        tables.chain(other_schemas()).map(|(name, schema)| (name.to_owned(), schema)).collect();
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

fn operation(method: &str, path: &str, body: Option<&str>, query: &[&str]) -> Value {
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let names = segments.iter().skip(1).map(|it| it.trim_matches(['{', '}']));
    let id: String = std::iter::once(method.to_lowercase()).chain(names.map(capitalised)).collect();
    let parameters: Vec<Value> = segments
        .iter()
        .filter(|it| it.starts_with('{'))
        .map(|it| json!({"name": it.trim_matches(['{', '}']), "in": "path", "required": true, "schema": {"type": "string"}}))
        .chain(query.iter().map(|it| query_parameter(it)))
        .collect();
    let is_done = |it: &&str| AS_READS.contains(it);
    let success = if method == "POST" && !segments.last().is_some_and(is_done) { "201" } else { "200" };
    let mut operation = json!({
        "operationId": id,
        "tags": [segments.get(2).copied().unwrap_or_default()],
        "parameters": parameters,
        "responses": {success: {"description": "done"}},
        "security": [{}, {"bearer": []}],
    });
    if let Some(name) = body {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    operation
}

fn query_parameter(name: &str) -> Value {
    let mut parameter = json!({"name": name, "in": "query", "required": false, "schema": {"type": "string"}});
    if let Some((_, about)) = PARAMETERS.iter().find(|(it, _)| *it == name) {
        parameter["description"] = json!(about);
    }
    if name == "include" {
        parameter["schema"] = json!({"type": "array", "items": {"type": "string"}});
    }
    parameter
}

/// `isValid` becomes `IsValid`, so that operation ids read as one word.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn schema(name: &str, dto: &Dto) -> Value {
    let form = if name.starts_with("Partial") { Form::Update } else { Form::Create };
    let known = || dto.fields.iter().filter(|it| it.is_known_to(form));
    let properties: Map<String, Value> = known().map(|it| (it.name.to_owned(), property(it))).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let required: Vec<&str> =
        known().filter(|it| it.presence == Presence::Required).map(|it| it.name).collect();
    if !required.is_empty() && form == Form::Create {
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
        Rule::Url | Rule::UrlOfAnyProtocol => json!({"type": "string", "format": "uri"}),
        Rule::Object => json!({"type": "object"}),
        Rule::List => json!({"type": "array", "items": {}}),
        Rule::Enum(choices) | Rule::OneOf(choices) => json!({"type": "string", "enum": choices}),
        Rule::NotEmpty | Rule::ListNotEmpty | Rule::NotNegative | Rule::Countable => return None,
    })
}
