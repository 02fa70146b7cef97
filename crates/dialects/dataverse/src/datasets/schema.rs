//! The JSON schema of a collection's datasets, and validation of a body against it.

use pinakes_store::View;
use serde_json::{Map, Value, json};

use super::values;
use crate::blocks::Registry;
use crate::blocks::fields::Fields;
use crate::blocks::{Levels, validate, validation_message};
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
pub(crate) fn fault(registry: &Registry, levels: &Levels, body: &Map<String, Value>) -> Option<String> {
    let Some(version) = body.get("datasetVersion") else {
        return Some("#: required key [datasetVersion] not found".to_owned());
    };
    let Some(blocks) = version.get("metadataBlocks") else {
        return Some("#/datasetVersion: required key [metadataBlocks] not found".to_owned());
    };
    for (name, block) in blocks.as_object()? {
        let at = format!("#/datasetVersion/metadataBlocks/{name}");
        let Some(fields) = block.get("fields").and_then(Value::as_array) else {
            return Some(format!("{at}: required key [fields] not found"));
        };
        for (place, field) in fields.iter().enumerate() {
            for key in ["typeName", "typeClass", "multiple"] {
                if field.get(key).is_none() {
                    return Some(format!("{at}/fields/{place}: required key [{key}] not found"));
                }
            }
        }
    }
    let of_values = body.iter().find_map(|(key, value)| values::fault(registry, levels, key, value));
    let of_types = || {
        blocks.as_object()?.iter().find_map(|(name, block)| {
            block.get("fields")?.as_array()?.iter().find_map(|it| field_fault(registry, name, it))
        })
    };
    of_values.or_else(of_types)
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
