//! The `OpenAPI` document of the routes, from which client programs are generated (`/explorer-json`), and a page on
//! which its operations can be tried (`/explorer`).
//!
//! `openapi/operations.txt` names each operation, its parameters, its body and its answer; [`schemas`] builds the
//! schemas. One test requests every listed operation from the router, another validates the answers of the recorded
//! exchanges against the document.

mod schemas;

use axum::Router;
use axum::routing::get;
use http::{HeaderValue, StatusCode};
use pinakes_http::answer;
use serde_json::{Map, Value, json};

use crate::app::Scicat;
use crate::resource::Resource;

/// The operations; the first lines of the file describe its syntax.
const OPERATIONS: &str = include_str!("openapi/operations.txt");

/// The page, which builds itself from the document, and its assets: pages contain no inline style or script.
const EXPLORER: &str = include_str!("openapi/explorer.html");
const STYLE: &str = include_str!("openapi/explorer.css");
const SCRIPT: &str = include_str!("openapi/explorer.js");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const JAVASCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");

/// Parameters that may occur more than once, or whose value is JSON, with their descriptions.
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

/// The routes of the document and the page.
pub(crate) static RESOURCE: Resource = Resource::of_routes(routes);

pub(crate) fn routes() -> Router<Scicat> {
    Router::new()
        .route("/explorer-json", get(async || answer::json(StatusCode::OK, &document())))
        .route("/explorer", get(async || answer::bytes(StatusCode::OK, HTML, EXPLORER)))
        .route("/explorer-json/page.css", get(async || answer::bytes(StatusCode::OK, CSS, STYLE)))
        .route("/explorer-json/page.js", get(async || answer::bytes(StatusCode::OK, JAVASCRIPT, SCRIPT)))
}

/// One line of the list.
#[derive(Debug, Default)]
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    id: &'a str,
    tag: &'a str,
    /// Status of success; 201 for a `POST` unless the list says otherwise.
    status: &'a str,
    body: Option<&'a str>,
    /// A trailing `!` marks a required parameter.
    query: Vec<&'a str>,
    answer: Option<&'a str>,
}

fn operations() -> impl Iterator<Item = Operation<'static>> {
    let mut tag = "";
    OPERATIONS.lines().filter_map(move |line| {
        if let Some(heading) = line.strip_prefix('#') {
            tag = heading.trim();
            return None;
        }
        let (asked, answer) = line.split_once(" -> ").map_or((line, None), |(a, b)| (a, Some(b)));
        let mut words = asked.split(' ');
        let (method, path, id) = (words.next()?, words.next()?, words.next()?);
        let status = if method == "POST" { "201" } else { "200" };
        let mut operation = Operation { method, path, id, tag, status, answer, ..Operation::default() };
        for word in words {
            if let Some(names) = word.strip_prefix('?') {
                operation.query.extend(names.split(','));
            } else if let Some(status) = word.strip_prefix(':') {
                operation.status = status;
            } else {
                operation.body = Some(word);
            }
        }
        Some(operation)
    })
}

/// Returns the words of all paths, whose case is ignored.
pub(crate) fn path_words() -> impl Iterator<Item = String> {
    let described = operations().flat_map(|it| it.path.split('/'));
    let words = described.chain(["explorer", "explorer-json", "testing"]);
    words.filter(|it| !it.is_empty() && !it.starts_with('{')).map(str::to_ascii_lowercase)
}

/// Returns the whole document.
pub(crate) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        let item = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        item[operation.method.to_lowercase()] = described(&operation);
    }
    json!({
        "openapi": "3.0.3",
        "info": {"title": "SciCat dialect of Pinakes", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    })
}

fn described(operation: &Operation<'_>) -> Value {
    let segments: Vec<&str> = operation.path.split('/').collect();
    let in_path = segments.iter().filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        in_path.map(|it| json!({"name": it, "in": "path", "required": true, "schema": {"type": "string"}}));
    let parameters: Vec<Value> =
        in_path.chain(operation.query.iter().map(|it| query_parameter(it))).collect();
    let mut response = json!({"description": if operation.status == "201" { "made" } else { "done" }});
    if let Some(answer) = operation.answer {
        response["content"] = json!({"application/json": {"schema": schemas::of(answer)}});
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "parameters": parameters,
        "responses": {operation.status: response},
        "security": [{}, {"bearer": []}],
    });
    if let Some(body) = operation.body {
        described["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schemas::of(body)}}});
    }
    described
}

fn query_parameter(written: &str) -> Value {
    let name = written.trim_end_matches('!');
    let mut parameter =
        json!({"name": name, "in": "query", "required": name != written, "schema": {"type": "string"}});
    if let Some((_, about)) = PARAMETERS.iter().find(|(it, _)| *it == name) {
        parameter["description"] = json!(about);
    }
    if name == "include" {
        parameter["schema"] = json!({"type": "array", "items": {"type": "string"}});
    }
    parameter
}
