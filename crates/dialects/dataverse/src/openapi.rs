//! OpenAPI 3 description of the API: `/openapi`, generated from the table of routes.

use std::sync::OnceLock;

use http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;

/// Every route's method and path, as `routes.rs` lists them.
type Table = fn() -> Vec<(Method, String)>;
/// Returns whether a path of the table is not below `/api`.
type IsElsewhere = fn(&str) -> bool;

/// Adds the route that describes the routes of a table.
pub(crate) fn routes(routes: Routes, table: Table, is_elsewhere: IsElsewhere) -> Routes {
    routes.elsewhere(Method::GET, "/openapi", move |call| show(call, table, is_elsewhere))
}

/// Format of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

impl Format {
    /// Returns the format that a header or parameter names; `None` if it leaves the choice open.
    fn of_header(accept: &str) -> Option<Self> {
        match accept {
            it if it.contains("json") => Some(Self::Json),
            it if it.contains("yaml") => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Answers with the description in the format of the header or the parameter, by default YAML.
///
/// Errors: 400 for another format, and if header and parameter contradict each other.
async fn show(call: Call, table: Table, is_elsewhere: IsElsewhere) -> Answer {
    let accept = call.header("accept").unwrap_or_default();
    let by_header = Format::of_header(accept);
    let by_parameter = match call.query.filled("format") {
        None => None,
        Some(it) if it.eq_ignore_ascii_case("json") => Some(Format::Json),
        Some(it) if it.eq_ignore_ascii_case("yaml") => Some(Format::Yaml),
        Some(it) => {
            return Err(ApiError::bad_request(format!(
                "Invalid format {it}, currently supported formats are YAML and JSON."
            )));
        }
    };
    let format = match (by_header, by_parameter) {
        (Some(header), Some(parameter)) if header != parameter => {
            let asked = call.query.get("format").unwrap_or_default();
            return Err(ApiError::bad_request(format!(
                "Unaligned parameters on Headers [{accept}] and Request [{asked}]"
            )));
        }
        (header, parameter) => parameter.or(header).unwrap_or(Format::Yaml),
    };
    // JSON is valid YAML (YAML 1.2, section 1.3).
    let content_type = match format {
        Format::Json => HeaderValue::from_static("application/json"),
        Format::Yaml => HeaderValue::from_static("application/yaml"),
    };
    let description = DESCRIPTION.get_or_init(|| description(table, is_elsewhere).to_string());
    Ok(pinakes_http::answer::bytes(StatusCode::OK, content_type, description.clone()))
}

/// The description as text.
static DESCRIPTION: OnceLock<String> = OnceLock::new();

fn description(table: Table, is_elsewhere: IsElsewhere) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for (method, path) in table() {
        let below_api = path == "/api" || is_elsewhere(&path);
        let path = if below_api { path } else { format!("/api{path}") };
        let path = path.replace("{*", "{");
        let operation = operation(&method, &path);
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Dataverse API",
            "description": "Collections, datasets, files and publication.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Dataverse-key"}},
            "schemas": {"Envelope": {
                "type": "object",
                "required": ["status"],
                "properties": {
                    "status": {"type": "string", "enum": ["OK", "ERROR"]},
                    "message": {},
                    "data": {},
                },
            }},
        },
    })
}

fn operation(method: &Method, path: &str) -> Value {
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != "api").collect();
    let names: Vec<&str> = segments.iter().filter_map(|it| it.strip_prefix('{')?.strip_suffix('}')).collect();
    let parameters: Vec<Value> = names
        .iter()
        .map(|it| json!({"name": it, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    // `:isRoot` and `isRoot` are different paths.
    let letter = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    let words: Vec<String> =
        segments.iter().map(|it| it.trim_matches(['{', '}']).chars().map(letter).collect()).collect();
    json!({
        "operationId": format!("{}_{}", method.as_str().to_lowercase(), words.join("_")),
        "tags": [segments.first().copied().unwrap_or("api")],
        "parameters": parameters,
        "responses": {"default": {
            "description": "An answer in the envelope, or what the path is for.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Envelope"}}},
        }},
    })
}
