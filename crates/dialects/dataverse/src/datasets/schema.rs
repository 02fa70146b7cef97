//! The JSON schema of a collection's datasets, and validation of a body against it.

use pinakes_store::View;
use serde_json::{Map, Value, json};

use super::values;
use crate::blocks::fields::Fields;
use crate::blocks::{Block, Levels, Registry, validate, validation_message};
use crate::collections::{Collection, structure};
use crate::error::ApiError;

/// Returns the schema.
pub(crate) fn of(
    view: &mut View<'_>,
    registry: &Registry,
    collection: &Collection,
) -> Result<Value, ApiError> {
    let (places, levels) = structure::rules_of(view, registry, collection)?;
    let mut blocks = Map::new();
    let mut required_blocks: Vec<String> = Vec::new();
    for place in places {
        let Some(block) = registry.blocks().get(place) else { continue };
        let top = block.fields.iter().map(|at| registry.at(*at)).filter(|it| it.parent.is_none());
        let required = top.filter(|it| levels.is_required(it));
        let contains: Vec<Value> = required
            .map(|it| json!({"contains": {"properties": {"typeName": {"const": it.name}}}}))
            .collect();
        let mut fields = json!({"type": "array", "items": {"$ref": "#/$defs/field"}});
        if !contains.is_empty() {
            fields["minItems"] = contains.len().into();
            fields["allOf"] = contains.into();
            required_blocks.push(block.name.clone());
        }
        blocks.insert(
            block.name.clone(),
            json!({"type": "object", "properties": {"fields": fields}, "required": ["fields"]}),
        );
    }
    Ok(json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$defs": {
            "field": {
                "type": "object",
                "required": ["typeClass", "multiple", "typeName"],
                "properties": {
                    "value": {"anyOf": [{"type": "array"}, {"type": "string"}, {"$ref": "#/$defs/field"}]},
                    "typeClass": {"type": "string"},
                    "multiple": {"type": "boolean"},
                    "typeName": {"type": "string"},
                    "displayOnCreate": {"type": "boolean"},
                },
            },
        },
        "type": "object",
        "properties": {
            "datasetVersion": {
                "type": "object",
                "properties": {
                    "license": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "uri": {"type": "string", "format": "uri"}},
                        "required": ["name", "uri"],
                    },
                    "metadataBlocks": {
                        "type": "object",
                        "properties": blocks,
                        "required": required_blocks,
                    },
                },
                "required": ["metadataBlocks"],
            },
        },
        "required": ["datasetVersion"],
    }))
}

/// Returns the first violation of the schema in a body, in the words of the original's validator.
pub(crate) fn fault(
    registry: &Registry,
    (places, levels): &(Vec<usize>, Levels),
    body: &Map<String, Value>,
) -> Option<String> {
    let blocks = match blocks_of(body) {
        Ok(blocks) => blocks,
        Err(fault) => return Some(fault),
    };
    let is_required = |it: &&Block| {
        it.fields.iter().map(|at| registry.at(*at)).any(|it| it.parent.is_none() && levels.is_required(it))
    };
    let named = places.iter().filter_map(|it| registry.blocks().get(*it)).filter(is_required);
    let lacking = named.map(|it| it.name.as_str()).find(|it| !blocks.contains_key(*it));
    let of_schema = || match lacking {
        Some(name) => Some(format!("{BLOCKS}: required key [{name}] not found")),
        None => blocks.iter().find_map(|(name, block)| block_fault(name, block).err()),
    };
    let of_values = || body.iter().find_map(|(key, value)| values::fault(registry, levels, key, value));
    let of_types = || {
        blocks.iter().find_map(|(name, block)| {
            block.get("fields")?.as_array()?.iter().find_map(|it| field_fault(registry, name, it))
        })
    };
    of_schema().or_else(of_values).or_else(of_types)
}

/// Where the blocks are in a body, as the validator names the place.
const BLOCKS: &str = "#/datasetVersion/metadataBlocks";

/// Returns the blocks of a body. Errors: the violation that prevents it.
fn blocks_of(body: &Map<String, Value>) -> Result<&Map<String, Value>, String> {
    let at = "#/datasetVersion";
    let version = object(at, required(body, "#", "datasetVersion")?)?;
    if let Some(license) = version.get("license") {
        let at = format!("{at}/license");
        let license = object(&at, license)?;
        for key in ["name", "uri"] {
            expect(&format!("{at}/{key}"), required(license, &at, key)?, "String", Value::is_string)?;
        }
    }
    object(BLOCKS, required(version, at, "metadataBlocks")?)
}

fn block_fault(name: &str, block: &Value) -> Result<(), String> {
    let at = format!("{BLOCKS}/{name}");
    let (block, place) = (object(&at, block)?, format!("{at}/fields"));
    let fields = required(block, &at, "fields")?;
    expect(&place, fields, "JSONArray", Value::is_array)?;
    for (n, field) in fields.as_array().into_iter().flatten().enumerate() {
        let at = format!("{place}/{n}");
        let field = object(&at, field)?;
        for key in ["typeClass", "multiple", "typeName"] {
            let (value, at) = (required(field, &at, key)?, format!("{at}/{key}"));
            match key {
                "multiple" => expect(&at, value, "Boolean", Value::is_boolean)?,
                _ => expect(&at, value, "String", Value::is_string)?,
            }
        }
    }
    Ok(())
}

fn required<'v>(map: &'v Map<String, Value>, at: &str, key: &str) -> Result<&'v Value, String> {
    map.get(key).ok_or_else(|| format!("{at}: required key [{key}] not found"))
}

fn object<'v>(at: &str, value: &'v Value) -> Result<&'v Map<String, Value>, String> {
    value.as_object().ok_or_else(|| unexpected(at, value, "JSONObject"))
}

fn expect(at: &str, value: &Value, ty: &str, is_it: fn(&Value) -> bool) -> Result<(), String> {
    if is_it(value) { Ok(()) } else { Err(unexpected(at, value, ty)) }
}

fn unexpected(at: &str, value: &Value, expected: &str) -> String {
    let found = match value {
        Value::Null => "Null",
        Value::Bool(_) => "Boolean",
        Value::Number(it) if it.is_f64() => "BigDecimal",
        Value::Number(_) => "Integer",
        Value::String(_) => "String",
        Value::Array(_) => "JSONArray",
        Value::Object(_) => "JSONObject",
    };
    format!("{at}: expected type: {expected}, found: {found}")
}

fn field_fault(registry: &Registry, block: &str, field: &Value) -> Option<String> {
    let name = field["typeName"].as_str().unwrap_or_default();
    let Some(ty) = registry.field(name) else {
        return Some(format!("Invalid field {name} in block {block}: no such type"));
    };
    if field["multiple"].as_bool() != Some(ty.is_multiple) {
        return Some(format!("incorrect multiple   for field {name}"));
    }
    if field["typeClass"].as_str() != Some(ty.type_class()) {
        return Some(format!("incorrect  typeClass for field {name}, should be {}", ty.type_class()));
    }
    None
}

/// Checks for missing and invalid metadata. Errors: 403 `Validation Failed: …`.
pub(crate) fn check_fields(
    view: &mut View<'_>,
    registry: &Registry,
    collection: &Collection,
    fields: &Fields,
) -> Result<(), ApiError> {
    let (blocks, levels): (Vec<usize>, Levels) = structure::rules_of(view, registry, collection)?;
    let faults = validate(registry, fields, &levels, &blocks);
    if faults.is_empty() { Ok(()) } else { Err(ApiError::forbidden(validation_message(&faults))) }
}
