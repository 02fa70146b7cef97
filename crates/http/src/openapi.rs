//! The merged `OpenAPI` document of all served dialects.

use serde_json::{Map, Value, json};

/// Merges documents: paths, tags and components of all; if two dialects use the same name for a component,
/// the later one's is prefixed with the dialect's name, also in references to it.
pub(crate) fn merged(documents: &[(&'static str, &Value)]) -> Value {
    let (mut paths, mut components, mut tags) = (own_paths(), Map::new(), Vec::new());
    for (dialect, document) in documents {
        let mut document = (*document).clone();
        for (section, name) in clashes(&components, &document) {
            rename(&mut document, &section, &name, &format!("{dialect}_{name}"));
        }
        extend(&mut paths, document.get("paths"));
        if let Some(Value::Object(sections)) = document.get("components") {
            for (section, entries) in sections {
                let target = components.entry(section).or_insert_with(|| json!({}));
                if let Value::Object(target) = target {
                    extend(target, Some(entries));
                }
            }
        }
        tags.extend(document.get("tags").and_then(Value::as_array).into_iter().flatten().cloned());
    }
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pinakes", "version": env!("CARGO_PKG_VERSION")},
        "tags": tags,
        "paths": paths,
        "components": components,
    })
}

fn extend(target: &mut Map<String, Value>, more: Option<&Value>) {
    if let Some(Value::Object(more)) = more {
        target.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// Returns section and name of the components of `document` that are in `components` with different content.
fn clashes(components: &Map<String, Value>, document: &Value) -> Vec<(String, String)> {
    let Some(Value::Object(sections)) = document.get("components") else { return Vec::new() };
    let named = sections.iter().flat_map(|(section, entries)| {
        entries.as_object().into_iter().flatten().map(move |(name, value)| (section, name, value))
    });
    let taken = |section: &str, name: &str| components.get(section).and_then(|it| it.get(name));
    let clashing = named.filter(|(section, name, value)| taken(section, name).is_some_and(|it| it != *value));
    clashing.map(|(section, name, _)| (section.clone(), name.clone())).collect()
}

fn rename(document: &mut Value, section: &str, name: &str, to: &str) {
    if let Some(Value::Object(entries)) = document.pointer_mut(&format!("/components/{section}"))
        && let Some(value) = entries.remove(name)
    {
        entries.insert(to.to_owned(), value);
    }
    let (from, to) = (format!("#/components/{section}/{name}"), format!("#/components/{section}/{to}"));
    point_elsewhere(document, &from, &to);
}

fn point_elsewhere(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "$ref" && text == from => to.clone_into(text),
                    other => point_elsewhere(other, from, to),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|it| point_elsewhere(it, from, to)),
        _ => {}
    }
}

/// Returns the routes of the shell itself.
fn own_paths() -> Map<String, Value> {
    let route = |summary: &str, more: Value| {
        let mut responses = json!({"200": {"description": "OK"}});
        if let (Value::Object(responses), Value::Object(more)) = (&mut responses, more) {
            responses.extend(more);
        }
        json!({"get": {"tags": ["server"], "summary": summary, "responses": responses}})
    };
    let not_ready = json!({"503": {"description": "Not ready; the body says why"}});
    Map::from_iter([
        ("/health/live".into(), route("Whether the process answers", json!({}))),
        ("/health/ready".into(), route("Whether requests can be served", not_ready)),
        ("/metrics".into(), route("Metrics in Prometheus' text format", json!({}))),
        ("/openapi.json".into(), route("This document", json!({}))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_one_name_are_kept_apart() {
        let document = |path: &str, ty: &str| {
            let schema = json!({"$ref": "#/components/schemas/User"});
            json!({"paths": {path: {"get": {"schema": schema}}}, "components": {"schemas": {"User": {"type": ty}}}})
        };
        let (a, b, c) = (document("/a", "object"), document("/b", "string"), document("/c", "object"));
        let merged = merged(&[("first", &a), ("second", &b), ("third", &c)]);
        let at = |pointer: &str| merged.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
        assert_eq!(at("/components/schemas/User/type"), "object");
        assert_eq!(at("/components/schemas/second_User/type"), "string");
        assert_eq!(at("/paths/~1b/get/schema/$ref"), "#/components/schemas/second_User");
        assert_eq!(at("/paths/~1c/get/schema/$ref"), "#/components/schemas/User");
        assert!(merged.pointer("/paths/~1health~1live").is_some());
    }
}
