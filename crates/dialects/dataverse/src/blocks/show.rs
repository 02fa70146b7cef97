//! Metadata blocks and their fields in the JSON of the interface.

use serde_json::{Map, Value, json};

use super::definition::{Block, FieldType};
use super::registry::Registry;
use super::validate::Levels;

/// Options for the display of a block.
#[derive(Debug, Clone, Copy, Default)]
pub struct Showing<'a> {
    /// Whether its fields are included.
    pub with_fields: bool,
    /// Only fields in the form of a new dataset, and required fields.
    pub only_on_create: bool,
    /// Field levels of the collection for which the block is shown.
    pub levels: Option<&'a Levels>,
}

/// Returns a block as JSON.
pub fn block_json(registry: &Registry, block: &Block, showing: Showing<'_>) -> Value {
    let mut json = json!({
        "id": block.id,
        "name": block.name,
        "displayName": block.display_name,
        "displayOnCreate": is_on_create(registry, block, showing.levels),
    });
    if showing.with_fields {
        let fields = block.fields.iter().map(|at| registry.at(*at)).filter(|field| {
            let is_shown = !showing.only_on_create || is_field_on_create(field, showing.levels);
            field.parent.is_none() && is_shown && showing.levels.is_none_or(|it| it.is_included(field))
        });
        let map: Map<String, Value> =
            fields.map(|it| (it.name.clone(), field_type_json(registry, it, showing.levels))).collect();
        json["fields"] = map.into();
    }
    json
}

/// Returns whether a block has a field that is in the form of a new dataset.
pub fn is_on_create(registry: &Registry, block: &Block, levels: Option<&Levels>) -> bool {
    block.fields.iter().any(|at| is_field_on_create(registry.at(*at), levels))
}

fn is_field_on_create(field: &FieldType, levels: Option<&Levels>) -> bool {
    match levels {
        Some(levels) => {
            levels.is_included(field) && (levels.is_on_create(field) || levels.is_required(field))
        }
        None => field.is_on_create,
    }
}

/// Returns a field as JSON.
pub fn field_type_json(registry: &Registry, field: &FieldType, levels: Option<&Levels>) -> Value {
    let is_required = levels.map_or(field.is_required, |it| it.is_required(field));
    let is_on_create = levels.map_or(field.is_on_create, |it| it.is_on_create(field));
    let mut json = json!({
        "name": field.name,
        "displayName": registry.display_name(field),
        "displayOnCreate": is_on_create,
        "title": field.title,
        "type": field.kind.name(),
        "typeClass": field.type_class(),
        "watermark": field.watermark,
        "description": field.description,
        "multiple": field.is_multiple,
        "isControlledVocabulary": field.is_controlled,
        "isAdvancedSearchFieldType": field.is_searchable,
        "displayFormat": field.display_format,
        "displayOrder": field.order,
        "isRequired": is_required,
    });
    if !field.uri.is_empty() {
        json["termURI"] = field.uri.as_str().into();
    }
    if field.is_controlled {
        let values: Vec<&str> = field.vocabulary.iter().map(|it| it.value.as_str()).collect();
        json["controlledVocabularyValues"] = values.into();
    }
    if field.is_compound() {
        let children: Map<String, Value> = field
            .children
            .iter()
            .map(|at| registry.at(*at))
            .filter(|it| levels.is_none_or(|levels| levels.is_included(it)))
            .map(|it| (it.name.clone(), field_type_json(registry, it, levels)))
            .collect();
        json["childFields"] = children.into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_citation_block() {
        let registry = Registry::shipped();
        let block = registry.block("citation").unwrap();
        let n_fields = |only_on_create| {
            let showing = Showing { with_fields: true, only_on_create, levels: None };
            block_json(&registry, block, showing)["fields"].as_object().unwrap().len()
        };
        assert_eq!((n_fields(false), n_fields(true)), (35, 10));
        let on_create = |name: &str| is_on_create(&registry, registry.block(name).unwrap(), None);
        assert!(on_create("citation") && !on_create("geospatial"));
        let showing = Showing { with_fields: true, ..Showing::default() };
        let json = block_json(&registry, block, showing);
        assert_eq!(json["fields"]["publication"]["childFields"].as_object().unwrap().len(), 5);
        assert_eq!(json["fields"]["subject"]["controlledVocabularyValues"][0], "Agricultural Sciences");
    }
}
