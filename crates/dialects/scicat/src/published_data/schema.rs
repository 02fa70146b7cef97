//! JSON schemas of a site: for the metadata of publications, of files and of datasets, and in the conditions of jobs.
//! `jsonschema` validates; faults are reported in the form of ajv 8, which the frontend shows next to the fields of its
//! form.
//!
//! Schemas without `$schema` are of draft 7, as in ajv; formats are checked, unknown keywords and formats are ignored.
//! No schema is ever fetched.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::{Value, json};

/// Maximum number of reported faults.
const MAX_FAULTS: usize = 100;
/// Maximum number of backtracking steps of a pattern in a schema.
const BACKTRACKS: usize = 100_000;
/// Maximum compiled size of a pattern in a schema, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    source: Value,
}

impl Schema {
    /// Compiles a schema. Errors: a description of what is invalid in it.
    pub(crate) fn compile(source: &Value) -> Result<Self, String> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES);
        let mut options = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_pattern_options(patterns);
        if source.get("$schema").is_none() {
            options = options.with_draft(Draft::Draft7);
        }
        if refers_in_a_circle(source) {
            return Err("a $ref leads back to itself without going into the value".to_owned());
        }
        match options.build(source) {
            Ok(validator) => Ok(Self { validator, source: source.clone() }),
            Err(error) => Err(format!("at {:?}: {error}", error.instance_path().to_string())),
        }
    }

    /// Returns what is invalid in `value`; empty if it satisfies the schema.
    pub(crate) fn faults(&self, value: &Value) -> Vec<Value> {
        let mut faults: Vec<Value> =
            self.validator.iter_errors(value).take(MAX_FAULTS).flat_map(|it| self.of_ajv(&it)).collect();
        faults.truncate(MAX_FAULTS);
        faults
    }

    fn of_ajv(&self, error: &ValidationError<'_>) -> Vec<Value> {
        let schema_path = error.schema_path().to_string();
        let stated = self.source.pointer(&schema_path).cloned().unwrap_or_default();
        let fault = |keyword: &str, params: Value, message: String| {
            json!({
                "instancePath": error.instance_path().to_string(), "schemaPath": format!("#{schema_path}"),
                "keyword": keyword, "params": params, "message": message,
            })
        };
        let one = |params: Value, message: String| vec![fault(error.kind().keyword(), params, message)];
        let limited = |limit: &dyn std::fmt::Display, comparison: &str| {
            one(json!({"comparison": comparison, "limit": stated}), format!("must be {comparison} {limit}"))
        };
        let counted = |limit: u64, what: &str, than: &str| {
            one(json!({"limit": limit}), format!("must NOT have {than} than {limit} {what}"))
        };
        match error.kind() {
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                one(json!({"missingProperty": name}), format!("must have required property '{name}'"))
            }
            Kind::AdditionalProperties { unexpected } => {
                let told = |it: &String| {
                    let message = "must NOT have additional properties".to_owned();
                    fault("additionalProperties", json!({"additionalProperty": it}), message)
                };
                unexpected.iter().map(told).collect()
            }
            Kind::Type { .. } => {
                let names = match &stated {
                    Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                    other => other.as_str().unwrap_or_default().to_owned(),
                };
                one(json!({"type": names}), format!("must be {names}"))
            }
            Kind::Enum { options } => one(
                json!({"allowedValues": **options}),
                "must be equal to one of the allowed values".to_owned(),
            ),
            Kind::Constant { expected_value } => {
                one(json!({"allowedValue": **expected_value}), "must be equal to constant".to_owned())
            }
            Kind::Minimum { limit } => limited(limit, ">="),
            Kind::Maximum { limit } => limited(limit, "<="),
            Kind::ExclusiveMinimum { limit } => limited(limit, ">"),
            Kind::ExclusiveMaximum { limit } => limited(limit, "<"),
            Kind::MinItems { limit } => counted(*limit, "items", "fewer"),
            Kind::MaxItems { limit } => counted(*limit, "items", "more"),
            Kind::MinLength { limit } => counted(*limit, "characters", "fewer"),
            Kind::MaxLength { limit } => counted(*limit, "characters", "more"),
            Kind::MinProperties { limit } => counted(*limit, "properties", "fewer"),
            Kind::MaxProperties { limit } => counted(*limit, "properties", "more"),
            Kind::Pattern { pattern } => {
                one(json!({"pattern": pattern}), format!("must match pattern \"{pattern}\""))
            }
            Kind::Format { format } => {
                one(json!({"format": format}), format!("must match format \"{format}\""))
            }
            Kind::MultipleOf { multiple_of } => {
                one(json!({"multipleOf": multiple_of}), format!("must be multiple of {multiple_of}"))
            }
            Kind::UniqueItems => one(json!({}), "must NOT have duplicate items".to_owned()),
            Kind::AnyOf { .. } => one(json!({}), "must match a schema in anyOf".to_owned()),
            Kind::OneOfMultipleValid { .. } | Kind::OneOfNotValid { .. } => {
                one(json!({}), "must match exactly one schema in oneOf".to_owned())
            }
            Kind::Not { .. } => one(json!({}), "must NOT be valid".to_owned()),
            Kind::FalseSchema => vec![fault("false schema", json!({}), "boolean schema is false".to_owned())],
            _ => one(json!({}), error.to_string()),
        }
    }
}

/// Returns what is invalid in `value`; empty if it satisfies `schema`. An invalid schema is satisfied by no value.
pub(crate) fn check(schema: &Value, value: &Value) -> Vec<Value> {
    match Schema::compile(schema) {
        Ok(schema) => schema.faults(value),
        Err(reason) => vec![json!({
            "instancePath": "", "schemaPath": "#", "keyword": "$schema", "params": {}, "message": reason,
        })],
    }
}

/// Keywords whose subschemas apply to the same value.
const IN_PLACE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref"];

/// Says whether a schema refers to itself without descending into the value, which would never end.
fn refers_in_a_circle(root: &Value) -> bool {
    let mut all = Vec::new();
    each_schema(root, &mut all);
    let mut ended: Vec<*const Value> = Vec::new();
    all.into_iter().any(|it| leads_back(root, it, &mut Vec::new(), &mut ended))
}

/// Collects every value inside that may be a schema.
fn each_schema<'a>(value: &'a Value, all: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            all.push(value);
            map.values().for_each(|it| each_schema(it, all));
        }
        Value::Array(list) => list.iter().for_each(|it| each_schema(it, all)),
        _ => {}
    }
}

fn leads_back<'a>(
    root: &'a Value,
    at: &'a Value,
    way: &mut Vec<*const Value>,
    ended: &mut Vec<*const Value>,
) -> bool {
    let here = std::ptr::from_ref(at);
    if way.contains(&here) {
        return true;
    }
    let Value::Object(map) = at else { return false };
    if ended.contains(&here) {
        return false;
    }
    way.push(here);
    for (keyword, inside) in map.iter().filter(|it| IN_PLACE.contains(&it.0.as_str())) {
        let next: Vec<&Value> = match inside {
            Value::String(reference) if keyword == "$ref" => referred(root, reference).into_iter().collect(),
            Value::Array(list) => list.iter().collect(),
            other => vec![other],
        };
        if next.into_iter().any(|it| leads_back(root, it, way, ended)) {
            return true;
        }
    }
    way.pop();
    ended.push(here);
    false
}

/// Returns the target of a reference within the schema.
fn referred<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
    root.pointer(&decoded)
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
        let circle = [": a $ref leads back to itself without going into the value"];
        assert_eq!(messages(json!({"$ref": "#"}), json!({})), circle);
        assert_eq!(messages(json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}), json!({})), circle);
        let two = json!({"definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"allOf": [{"$ref": "#/definitions/a"}]}}});
        assert_eq!(messages(two, json!({})), circle);
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}}});
        assert_eq!(messages(tree, json!({"left": {"left": 1}})), ["/left/left: must be object"]);
    }

    #[test]
    fn keywords_that_ajv_knows_are_kept() {
        let schema = json!({
            "properties": {
                "mail": {"format": "email"}, "page": {"format": "uri"}, "day": {"format": "date"},
                "other": {"format": "colour"}, "n": {"multipleOf": 5},
            },
            "if": {"required": ["n"]}, "then": {"required": ["mail"]}, "else": {"required": ["day"]},
            "dependencies": {"page": ["mail"]}, "propertyNames": {"maxLength": 5}, "$dataciteRequired": true,
        });
        assert!(messages(schema.clone(), json!({"n": 10, "mail": "a@b.ch", "other": "x"})).is_empty());
        let faults = messages(schema, json!({"n": 3, "page": "no page", "day": "today"}));
        for expected in [
            "/n: must be multiple of 5",
            "/page: must match format \"uri\"",
            "/day: must match format \"date\"",
            ": must have required property 'mail'",
        ] {
            assert!(faults.iter().any(|it| it == expected), "{expected} in {faults:?}");
        }
    }

    #[test]
    fn what_is_no_schema_is_told() {
        for (schema, expected) in [
            (json!({"type": "colour"}), "/type"),
            (json!({"properties": {"a": {"minimum": "1"}}}), "minimum"),
            (json!({"$ref": "https://example.org/schema"}), "example.org"),
            (json!({"pattern": "("}), "pattern"),
        ] {
            let error = Schema::compile(&schema).map(|_| ()).expect_err("no schema");
            assert!(error.contains(expected), "{schema}: {error}");
        }
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
