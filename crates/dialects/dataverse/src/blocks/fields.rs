//! The metadata of one version: fields with their values, parsed from and written as Dataverse's JSON.

use serde_json::{Map, Value, json};

use super::definition::FieldType;
use super::registry::Registry;

/// A field with its values; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Index of its type in the registry.
    pub at: usize,
    /// The values.
    pub content: Content,
}

/// The values of a field. Its type says whether there may be more than one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Of a primitive or controlled field.
    Texts(Vec<String>),
    /// Of a compound field: the children of each value.
    Compounds(Vec<Vec<Field>>),
}

impl Content {
    fn is_empty(&self) -> bool {
        match self {
            Self::Texts(list) => list.is_empty(),
            Self::Compounds(list) => list.is_empty(),
        }
    }
}

/// How strictly field JSON is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// `multiple` and `typeClass` must be present and correct: for whole versions.
    Declared,
    /// They may be absent: for changes to single fields, and for stored metadata.
    Lenient,
}

/// The fields of a version, ordered by block and position in the block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<Field>);

impl Fields {
    /// Parses the object `metadataBlocks`. Leaves out empty values, and fields that no block defines.
    ///
    /// Errors: what is wrong, in Dataverse's words after `Error parsing Json: `.
    pub fn read(registry: &Registry, blocks: &Value, reading: Reading) -> Result<Self, String> {
        let blocks = blocks.as_object().ok_or("Invalid JSON object: metadata blocks not found.")?;
        let mut fields = Self::default();
        for block in blocks.values() {
            let list = match block.get("fields") {
                Some(Value::Array(list)) => list.as_slice(),
                Some(_) => return Err("Invalid JSON object: fields should be an array.".to_owned()),
                None => &[],
            };
            for it in list {
                if let Some(field) = read_field(registry, it, reading)? {
                    fields.set(registry, field);
                }
            }
        }
        Ok(fields)
    }

    /// Parses single fields: one field, or an object with a list of them under `fields`.
    ///
    /// Errors: as for [`Fields::read`]; a body that is neither of the two.
    pub fn read_single(registry: &Registry, body: &Value) -> Result<Self, String> {
        let mut fields = Self::default();
        let list = match body.get("fields") {
            Some(Value::Array(list)) => list.as_slice(),
            Some(_) => return Err("fields should be an array.".to_owned()),
            None => std::slice::from_ref(body),
        };
        for it in list {
            let name = it.get("typeName").and_then(Value::as_str);
            if name.is_none_or(|name| registry.place(name).is_none()) {
                return Err(format!("Can't find type '{}'", name.unwrap_or_default()));
            }
            if let Some(field) = read_field(registry, it, Reading::Lenient)? {
                fields.set(registry, field);
            }
        }
        Ok(fields)
    }

    /// Parses stored fields; leaves out what is no longer valid.
    pub fn stored(registry: &Registry, blocks: &Value) -> Self {
        Self::read(registry, blocks, Reading::Lenient).unwrap_or_default()
    }

    /// Returns the field of a type.
    pub fn get(&self, at: usize) -> Option<&Field> {
        self.0.iter().find(|it| it.at == at)
    }

    /// Inserts a field in its position, replacing one of the same type.
    pub fn set(&mut self, registry: &Registry, field: Field) {
        self.remove(field.at);
        let key = |at: usize| (registry.at(at).block, registry.at(at).order, at);
        let place = self.0.partition_point(|it| key(it.at) < key(field.at));
        self.0.insert(place, field);
    }

    /// Removes the field of a type.
    pub fn remove(&mut self, at: usize) {
        self.0.retain(|it| it.at != at);
    }

    /// Returns the object `metadataBlocks`. Blocks without fields are left out, except for `citation`.
    pub fn to_json(&self, registry: &Registry) -> Value {
        let mut blocks = Map::new();
        for (place, block) in registry.blocks().iter().enumerate() {
            let fields: Vec<Value> = self
                .0
                .iter()
                .filter(|it| registry.at(it.at).block == place)
                .map(|it| field_json(registry, it))
                .collect();
            if !fields.is_empty() || block.name == "citation" {
                let json = json!({"displayName": block.display_name, "name": block.name, "fields": fields});
                blocks.insert(block.name.clone(), json);
            }
        }
        Value::Object(blocks)
    }
}

/// Returns a field as JSON.
pub fn field_json(registry: &Registry, field: &Field) -> Value {
    let ty = registry.at(field.at);
    let value = match &field.content {
        Content::Texts(list) => many_or_one(ty, list.iter().map(|it| Value::from(it.as_str())).collect()),
        Content::Compounds(list) => {
            let object = |children: &Vec<Field>| {
                let map = children
                    .iter()
                    .map(|it| (registry.at(it.at).name.clone(), field_json(registry, it)))
                    .collect();
                Value::Object(map)
            };
            many_or_one(ty, list.iter().map(object).collect())
        }
    };
    json!({"typeName": ty.name, "multiple": ty.is_multiple, "typeClass": ty.type_class(), "value": value})
}

fn many_or_one(ty: &FieldType, list: Vec<Value>) -> Value {
    if ty.is_multiple { Value::Array(list) } else { list.into_iter().next().unwrap_or_default() }
}

fn read_field(registry: &Registry, json: &Value, reading: Reading) -> Result<Option<Field>, String> {
    let Some(at) = json.get("typeName").and_then(Value::as_str).and_then(|it| registry.place(it)) else {
        return Ok(None);
    };
    let ty = registry.at(at);
    let name = &ty.name;
    if reading == Reading::Declared {
        if json.get("multiple").and_then(Value::as_bool) != Some(ty.is_multiple) {
            return Err(format!("incorrect multiple   for field {name}"));
        }
        if json.get("typeClass").and_then(Value::as_str) != Some(ty.type_class()) {
            return Err(format!("incorrect  typeClass for field {name}, should be {}.", ty.type_class()));
        }
    }
    let values: Vec<&Value> = match (json.get("value"), ty.is_multiple) {
        (Some(Value::Array(list)), true) => list.iter().collect(),
        (None | Some(Value::Null), _) => Vec::new(),
        (Some(Value::Array(_)), false) => {
            return Err(format!("Invalid value submitted for {name}. It should be a single value."));
        }
        (Some(one), false) => vec![one],
        (Some(_), true) => {
            return Err(format!("Invalid values submitted for {name}. It should be an array of values."));
        }
    };
    let content = if ty.is_compound() {
        let mut list = Vec::new();
        for value in values {
            list.extend(read_compound(registry, ty, at, value, reading)?);
        }
        Content::Compounds(list)
    } else {
        let mut list = Vec::new();
        for value in values {
            list.extend(read_text(ty, value)?);
        }
        Content::Texts(list)
    };
    Ok((!content.is_empty()).then_some(Field { at, content }))
}

fn read_compound(
    registry: &Registry,
    ty: &FieldType,
    at: usize,
    value: &Value,
    reading: Reading,
) -> Result<Option<Vec<Field>>, String> {
    let Some(object) = value.as_object() else {
        return Err(format!(
            "Invalid value submitted for {}. It should be an object of child fields.",
            ty.name
        ));
    };
    let mut children: Vec<Field> = Vec::new();
    for child in object.values() {
        let Some(field) = read_field(registry, child, reading)? else { continue };
        if registry.at(field.at).parent != Some(at) {
            return Err(format!("field {} is not a child of {}", registry.at(field.at).name, ty.name));
        }
        children.retain(|it| it.at != field.at);
        children.push(field);
    }
    children.sort_by_key(|it| (registry.at(it.at).order, it.at));
    Ok((!children.is_empty()).then_some(children))
}

fn read_text(ty: &FieldType, value: &Value) -> Result<Option<String>, String> {
    let text = match value {
        Value::String(text) => clean(text),
        Value::Number(number) => number.to_string(),
        Value::Bool(it) => it.to_string(),
        Value::Null => return Ok(None),
        _ => return Err(format!("Invalid value submitted for {}. It should be a single value.", ty.name)),
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    if !ty.is_controlled {
        return Ok(Some(text));
    }
    match ty.term(text.trim()) {
        Some(term) => Ok(Some(term.value.clone())),
        None => Err(format!("Value '{text}' does not exist in type '{}'", ty.name)),
    }
}

/// Returns text without characters that XML cannot hold, and without trailing white space.
fn clean(text: &str) -> String {
    let is_kept = |it: &char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    let kept: String =
        text.chars().filter(is_kept).filter(|it| !matches!(it, '\u{fffe}' | '\u{ffff}')).collect();
    kept.trim_end().to_owned()
}

/// Stored metadata, read by name: for consumers that do not change it, such as exports and the search.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a>(pub &'a Value);

/// One value of a compound field.
#[derive(Debug, Clone, Copy)]
pub struct Compound<'a>(&'a Map<String, Value>);

impl<'a> Compound<'a> {
    /// Returns the text of a child; the first one if there are several.
    pub fn get(&self, child: &str) -> Option<&'a str> {
        self.all(child).into_iter().next()
    }

    /// Returns the texts of a child.
    pub fn all(&self, child: &str) -> Vec<&'a str> {
        self.0.get(child).map(|it| texts(&it["value"])).unwrap_or_default()
    }

    /// Returns the children in order, as pairs of name and texts.
    pub fn children(&self) -> Vec<(&'a str, Vec<&'a str>)> {
        self.0.iter().map(|(name, it)| (name.as_str(), texts(&it["value"]))).collect()
    }
}

impl<'a> Metadata<'a> {
    /// Returns the fields of a block.
    pub fn block(&self, block: &str) -> &'a [Value] {
        self.0[block]["fields"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns all blocks, as pairs of name and fields.
    pub fn blocks(&self) -> impl Iterator<Item = (&'a str, &'a [Value])> {
        let blocks = self.0.as_object().into_iter().flatten();
        blocks.map(|(name, it)| (name.as_str(), it["fields"].as_array().map_or(&[][..], Vec::as_slice)))
    }

    /// Returns the value of a field, whichever block it is in.
    pub fn value(&self, field: &str) -> Option<&'a Value> {
        let is_it = |it: &&Value| it["typeName"].as_str() == Some(field);
        self.blocks().find_map(|(_, fields)| fields.iter().find(is_it)).map(|it| &it["value"])
    }

    /// Returns the first text of a primitive or controlled field.
    pub fn one(&self, field: &str) -> Option<&'a str> {
        self.many(field).into_iter().next()
    }

    /// Returns the texts of a primitive or controlled field.
    pub fn many(&self, field: &str) -> Vec<&'a str> {
        self.value(field).map(texts).unwrap_or_default()
    }

    /// Returns the values of a compound field.
    pub fn compounds(&self, field: &str) -> Vec<Compound<'a>> {
        match self.value(field) {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_object).map(Compound).collect(),
            Some(Value::Object(map)) => vec![Compound(map)],
            _ => Vec::new(),
        }
    }

    /// Returns the texts of a child across all values of its parent.
    pub fn children(&self, field: &str, child: &str) -> Vec<&'a str> {
        self.compounds(field).iter().flat_map(|it| it.all(child)).collect()
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Value) -> Result<Fields, String> {
        Fields::read(&Registry::shipped(), &json!({"citation": {"fields": json}}), Reading::Declared)
    }

    #[test]
    fn fields_come_back_in_order() {
        let json = json!([
            {"typeName": "subject", "multiple": true, "typeClass": "controlledVocabulary", "value": ["Other", "D8"]},
            {"typeName": "author", "multiple": true, "typeClass": "compound", "value": [
                {"authorAffiliation": {"typeName": "authorAffiliation", "multiple": false, "typeClass": "primitive", "value": ""},
                 "authorName": {"typeName": "authorName", "multiple": false, "typeClass": "primitive", "value": "A\u{c} "}}]},
            {"typeName": "nobody", "multiple": true, "typeClass": "primitive", "value": 1},
            {"typeName": "title", "multiple": false, "typeClass": "primitive", "value": "T"},
        ]);
        let registry = Registry::shipped();
        let fields = read(json).unwrap();
        let shown = fields.to_json(&registry);
        assert_eq!(shown["citation"]["fields"][0]["value"], "T");
        assert_eq!(shown["citation"]["fields"][1]["value"][0]["authorName"]["value"], "A");
        assert_eq!(shown["citation"]["fields"][1]["value"][0].as_object().unwrap().len(), 1);
        assert_eq!(shown["citation"]["fields"][2]["value"], json!(["Other", "Law"]));
        assert_eq!(Fields::stored(&registry, &shown), fields);
        let metadata = Metadata(&shown);
        assert_eq!(metadata.children("author", "authorName"), ["A"]);
        assert_eq!(metadata.one("title"), Some("T"));
    }

    #[test]
    fn faults_are_told_as_dataverse_tells_them() {
        let field = |name: &str, multiple: bool, class: &str, value: Value| {
            read(json!([{"typeName": name, "multiple": multiple, "typeClass": class, "value": value}]))
                .unwrap_err()
        };
        assert_eq!(field("title", true, "primitive", json!("x")), "incorrect multiple   for field title");
        assert_eq!(
            field("author", true, "primitive", json!("x")),
            "incorrect  typeClass for field author, should be compound."
        );
        assert_eq!(
            field("subject", true, "controlledVocabulary", json!(["Spells"])),
            "Value 'Spells' does not exist in type 'subject'"
        );
        assert_eq!(
            field("subject", true, "controlledVocabulary", json!("Other")),
            "Invalid values submitted for subject. It should be an array of values."
        );
        assert_eq!(
            field("title", false, "primitive", json!(["x"])),
            "Invalid value submitted for title. It should be a single value."
        );
        let child =
            json!([{"x": {"typeName": "title", "multiple": false, "typeClass": "primitive", "value": "x"}}]);
        assert_eq!(field("author", true, "compound", child), "field title is not a child of author");
        let registry = Registry::shipped();
        let none = Fields::read(&registry, &json!(null), Reading::Declared);
        assert_eq!(none.unwrap_err(), "Invalid JSON object: metadata blocks not found.");
    }
}
