//! A checker for the part of JSON Schema that schemas of metadata use, with faults in the shape of ajv 8, which
//! the frontend shows beside the fields of its form.
//!
//! Known keywords: `type enum const required properties additionalProperties items minItems maxItems uniqueItems
//! minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum allOf anyOf oneOf not $ref` (within
//! the schema). Others are passed over, as ajv passes over annotations. Source: JSON Schema draft 7, sections 6 and 9.

use std::cell::Cell;

use pinakes_store::Pattern;
use serde_json::{Map, Value, json};

/// Deepest nesting of schema and value together; a schema that refers to itself ends there.
const MAX_DEPTH: usize = 64;
/// Most faults that are told.
const MAX_FAULTS: usize = 100;
/// Most schemas that are held against a value: choices within choices multiply.
const MAX_STEPS: u32 = 100_000;

/// What of `value` does not satisfy `schema`; empty when all of it does.
pub(crate) fn check(schema: &Value, value: &Value) -> Vec<Value> {
    let steps_left = Cell::new(MAX_STEPS);
    let mut checker = Checker { root: schema, faults: Vec::new(), steps_left: &steps_left };
    checker.check(schema, value, &At { instance: String::new(), schema: "#".to_owned() }, MAX_DEPTH);
    checker.faults.truncate(MAX_FAULTS);
    checker.faults
}

struct Checker<'a> {
    root: &'a Value,
    faults: Vec<Value>,
    steps_left: &'a Cell<u32>,
}

/// Where the checker is, as JSON pointers.
struct At {
    instance: String,
    schema: String,
}

impl At {
    fn in_schema(&self, step: &str) -> At {
        At { instance: self.instance.clone(), schema: format!("{}/{step}", self.schema) }
    }

    fn at_item(&self, instance: &str, schema: &str) -> At {
        let escaped = instance.replace('~', "~0").replace('/', "~1");
        At { instance: format!("{}/{escaped}", self.instance), schema: format!("{}/{schema}", self.schema) }
    }
}

impl Checker<'_> {
    fn fault(&mut self, at: &At, keyword: &str, params: Value, message: String) {
        self.faults.push(json!({
            "instancePath": at.instance, "schemaPath": format!("{}/{keyword}", at.schema), "keyword": keyword,
            "params": params, "message": message,
        }));
    }

    fn check(&mut self, schema: &Value, value: &Value, at: &At, depth: usize) {
        let rules = match schema {
            Value::Bool(false) => {
                return self.fault(at, "false schema", json!({}), "boolean schema is false".to_owned());
            }
            Value::Object(rules) => rules,
            _ => return,
        };
        let steps_left = self.steps_left.get();
        if depth == 0 || steps_left == 0 || MAX_FAULTS <= self.faults.len() {
            return;
        }
        self.steps_left.set(steps_left - 1);
        if let Some(Value::String(reference)) = rules.get("$ref")
            && let Some(target) = reference.strip_prefix('#').and_then(|it| self.root.pointer(it)).cloned()
        {
            self.check(&target, value, at, depth - 1);
        }
        self.check_type(rules, value, at);
        self.check_choice(rules, value, at);
        match value {
            Value::Object(object) => self.check_object(rules, object, at, depth - 1),
            Value::Array(items) => self.check_list(rules, items, at, depth - 1),
            Value::String(text) => self.check_text(rules, text, at),
            Value::Number(number) => self.check_number(rules, number.as_f64().unwrap_or(f64::NAN), at),
            _ => {}
        }
        self.check_combined(rules, value, at, depth - 1);
    }

    fn check_type(&mut self, rules: &Map<String, Value>, value: &Value, at: &At) {
        let names: Vec<&str> = match rules.get("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        if !names.iter().any(|name| is_of_type(value, name)) {
            let names = names.join(",");
            self.fault(at, "type", json!({"type": names}), format!("must be {names}"));
        }
    }

    fn check_choice(&mut self, rules: &Map<String, Value>, value: &Value, at: &At) {
        if let Some(Value::Array(choices)) = rules.get("enum")
            && !choices.contains(value)
        {
            let message = "must be equal to one of the allowed values".to_owned();
            self.fault(at, "enum", json!({"allowedValues": choices}), message);
        }
        if let Some(constant) = rules.get("const")
            && constant != value
        {
            self.fault(
                at,
                "const",
                json!({"allowedValue": constant}),
                "must be equal to constant".to_owned(),
            );
        }
    }

    fn check_object(
        &mut self,
        rules: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &At,
        depth: usize,
    ) {
        for name in rules.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|it| !object.contains_key(*it)) {
                let message = format!("must have required property '{name}'");
                self.fault(at, "required", json!({"missingProperty": name}), message);
            }
        }
        let properties = rules.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            match properties.and_then(|it| it.get(name)) {
                Some(schema) => {
                    self.check(schema, value, &at.at_item(name, &format!("properties/{name}")), depth);
                }
                None => self.check_additional(rules, name, value, at, depth),
            }
        }
    }

    fn check_additional(
        &mut self,
        rules: &Map<String, Value>,
        name: &str,
        value: &Value,
        at: &At,
        depth: usize,
    ) {
        match rules.get("additionalProperties") {
            Some(Value::Bool(false)) => self.fault(
                at,
                "additionalProperties",
                json!({"additionalProperty": name}),
                "must NOT have additional properties".to_owned(),
            ),
            Some(schema) => self.check(schema, value, &at.at_item(name, "additionalProperties"), depth),
            None => {}
        }
    }

    fn check_list(&mut self, rules: &Map<String, Value>, items: &[Value], at: &At, depth: usize) {
        let n_items = items.len() as u64;
        if let Some(limit) = rules.get("minItems").and_then(Value::as_u64).filter(|it| n_items < *it) {
            let message = format!("must NOT have fewer than {limit} items");
            self.fault(at, "minItems", json!({"limit": limit}), message);
        }
        if let Some(limit) = rules.get("maxItems").and_then(Value::as_u64).filter(|it| *it < n_items) {
            let message = format!("must NOT have more than {limit} items");
            self.fault(at, "maxItems", json!({"limit": limit}), message);
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.check_unique(items, at);
        }
        match rules.get("items") {
            Some(Value::Array(schemas)) => {
                for (index, (schema, item)) in schemas.iter().zip(items).enumerate() {
                    let index = index.to_string();
                    self.check(schema, item, &at.at_item(&index, &format!("items/{index}")), depth);
                }
            }
            Some(schema) => {
                for (index, item) in items.iter().enumerate() {
                    self.check(schema, item, &at.at_item(&index.to_string(), "items"), depth);
                }
            }
            None => {}
        }
    }

    fn check_unique(&mut self, items: &[Value], at: &At) {
        let mut seen = std::collections::HashMap::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(first) = seen.insert(item.to_string(), index) {
                let message =
                    format!("must NOT have duplicate items (items ## {first} and {index} are identical)");
                return self.fault(at, "uniqueItems", json!({"i": index, "j": first}), message);
            }
        }
    }

    fn check_text(&mut self, rules: &Map<String, Value>, text: &str, at: &At) {
        let n_chars = text.chars().count() as u64;
        if let Some(limit) = rules.get("minLength").and_then(Value::as_u64).filter(|it| n_chars < *it) {
            let message = format!("must NOT have fewer than {limit} characters");
            self.fault(at, "minLength", json!({"limit": limit}), message);
        }
        if let Some(limit) = rules.get("maxLength").and_then(Value::as_u64).filter(|it| *it < n_chars) {
            let message = format!("must NOT have more than {limit} characters");
            self.fault(at, "maxLength", json!({"limit": limit}), message);
        }
        if let Some(Value::String(pattern)) = rules.get("pattern")
            && Pattern::new(pattern, "").is_ok_and(|it| !it.is_match(text))
        {
            let message = format!("must match pattern \"{pattern}\"");
            self.fault(at, "pattern", json!({"pattern": pattern}), message);
        }
    }

    fn check_number(&mut self, rules: &Map<String, Value>, number: f64, at: &At) {
        type Holds = fn(f64, f64) -> bool;
        let limits: [(&str, &str, Holds); 4] = [
            ("minimum", ">=", |number, limit| limit <= number),
            ("maximum", "<=", |number, limit| number <= limit),
            ("exclusiveMinimum", ">", |number, limit| limit < number),
            ("exclusiveMaximum", "<", |number, limit| number < limit),
        ];
        for (keyword, comparison, holds) in limits {
            if let Some(stated) = rules.get(keyword)
                && let Some(limit) = stated.as_f64()
                && !holds(number, limit)
            {
                let params = json!({"comparison": comparison, "limit": stated});
                self.fault(at, keyword, params, format!("must be {comparison} {stated}"));
            }
        }
    }

    fn check_combined(&mut self, rules: &Map<String, Value>, value: &Value, at: &At, depth: usize) {
        for (index, schema) in schemas(rules, "allOf").iter().enumerate() {
            self.check(schema, value, &at.in_schema(&format!("allOf/{index}")), depth);
        }
        for keyword in ["anyOf", "oneOf"] {
            let choices = schemas(rules, keyword);
            if choices.is_empty() {
                continue;
            }
            let n_satisfied = choices.iter().filter(|it| self.is_satisfied(it, value, depth)).count();
            if keyword == "anyOf" && n_satisfied == 0 {
                self.fault(at, keyword, json!({}), "must match a schema in anyOf".to_owned());
            } else if keyword == "oneOf" && n_satisfied != 1 {
                self.fault(at, keyword, json!({}), "must match exactly one schema in oneOf".to_owned());
            }
        }
        if let Some(schema) = rules.get("not")
            && self.is_satisfied(schema, value, depth)
        {
            self.fault(at, "not", json!({}), "must NOT be valid".to_owned());
        }
    }

    fn is_satisfied(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut inner = Checker { root: self.root, faults: Vec::new(), steps_left: self.steps_left };
        inner.check(schema, value, &At { instance: String::new(), schema: String::new() }, depth);
        inner.faults.is_empty()
    }
}

fn schemas<'a>(rules: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    rules.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(schema: Value, value: Value) -> Vec<String> {
        let text = |it: &Value| {
            format!(
                "{}: {}",
                it["instancePath"].as_str().unwrap_or("?"),
                it["message"].as_str().unwrap_or("?")
            )
        };
        check(&schema, &value).iter().map(text).collect()
    }

    #[test]
    fn faults_are_worded_as_ajv_words_them() {
        let schema = json!({
            "type": "object", "required": ["creators", "publisher"],
            "properties": {
                "creators": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/person"}},
                "publicationYear": {"type": "integer", "minimum": 1900},
                "resourceType": {"enum": ["raw", "derived"]},
            },
            "definitions": {"person": {"type": "object", "required": ["name"], "properties": {"name": {"minLength": 1}}}},
        });
        assert!(messages(schema.clone(), json!({"creators": [{"name": "A"}], "publisher": {}})).is_empty());
        assert_eq!(
            messages(
                schema,
                json!({"creators": [{}, {"name": ""}], "publicationYear": 1200.5, "resourceType": "x"})
            ),
            [
                ": must have required property 'publisher'",
                "/creators/0: must have required property 'name'",
                "/creators/1/name: must NOT have fewer than 1 characters",
                "/publicationYear: must be integer",
                "/publicationYear: must be >= 1900",
                "/resourceType: must be equal to one of the allowed values",
            ]
        );
    }

    #[test]
    fn combinations_hold() {
        let schema =
            json!({"oneOf": [{"type": "string"}, {"type": "number"}, {"minimum": 5}], "not": {"const": "x"}});
        assert!(messages(schema.clone(), json!(3)).is_empty());
        assert_eq!(messages(schema.clone(), json!(7)), [": must match exactly one schema in oneOf"]);
        assert_eq!(
            messages(json!({"anyOf": [{"type": "null"}, false]}), json!(7)),
            [": must match a schema in anyOf"]
        );
        assert_eq!(messages(json!({"not": {}}), json!(7)), [": must NOT be valid"]);
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        assert!(messages(json!({"$ref": "#"}), json!({})).is_empty());
        let twice = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(messages(twice, json!({})).len() <= MAX_FAULTS);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[a-z#/]{0,6}".prop_map(Value::from),
        ];
        let key = prop_oneof![
            Just("type"),
            Just("required"),
            Just("properties"),
            Just("items"),
            Just("$ref"),
            Just("oneOf"),
            Just("not"),
            Just("pattern"),
            Just("minItems"),
            Just("a"),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((key.clone(), inner), 0..4)
                    .prop_map(|it| it.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_schema_can_be_checked(schema in any_json(), value in any_json()) {
            prop_assert!(check(&schema, &value).len() <= MAX_FAULTS);
        }
    }
}
