//! The faults of a body, and the shapes in which they are answered.
//!
//! | shape | where |
//! |---|---|
//! | [`tree`] as text | v3 datasets (E2: JSON inside the JSON's `message`) |
//! | [`texts`] | everything else (E1: `message` is a list), `isValid` of v3 datasets ([`joined`]) |
//! | [`raw`] | `isValid` of origdatablocks |
//!
//! Source: `ValidationError` of class-validator 0.15 and the exception factory of `NestJS`'s `ValidationPipe`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// What is wrong with one property, or with the properties inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The property's name, or the index in a list.
    pub property: Cow<'static, str>,
    /// The faults inside it.
    pub children: Vec<Fault>,
    /// The constraints it broke, each with its text.
    pub constraints: Vec<(&'static str, String)>,
}

/// The constraint of an unknown property.
const UNKNOWN: &str = "whitelistValidation";

impl Fault {
    /// A fault without a reason yet.
    pub fn new(property: impl Into<Cow<'static, str>>) -> Fault {
        Fault { property: property.into(), children: Vec::new(), constraints: Vec::new() }
    }

    /// The fault of a property that the body must not have.
    pub fn unknown_property(name: &str) -> Fault {
        let text = format!("property {name} should not exist");
        Fault { constraints: vec![(UNKNOWN, text)], ..Fault::new(name.to_owned()) }
    }

    /// A fault with one reason, for rules that a table cannot hold.
    pub fn with_constraint(property: &'static str, constraint: &'static str, text: String) -> Fault {
        Fault { constraints: vec![(constraint, text)], ..Fault::new(property) }
    }

    /// Whether the fault is that the property is unknown.
    pub fn is_unknown_property(&self) -> bool {
        self.constraints.first().is_some_and(|it| it.0 == UNKNOWN)
    }

    /// Whether no reason was found.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty() && self.constraints.is_empty()
    }

    fn constraints_value(&self) -> Value {
        self.constraints.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect()
    }

    fn tree(&self) -> Value {
        let mut object = Map::new();
        object.insert("property".to_owned(), json!(self.property));
        if !self.is_unknown_property() {
            object.insert("children".to_owned(), tree(&self.children));
        }
        if !self.constraints.is_empty() {
            object.insert("constraints".to_owned(), self.constraints_value());
        }
        Value::Object(object)
    }

    fn raw(&self, target: &Value) -> Value {
        let value = member(target, &self.property);
        let mut object = Map::new();
        object.insert("target".to_owned(), target.clone());
        if let Some(value) = value {
            object.insert("value".to_owned(), value.clone());
        }
        object.insert("property".to_owned(), json!(self.property));
        if !self.is_unknown_property() {
            let inside = value.unwrap_or(&Value::Null);
            object.insert("children".to_owned(), raw(&self.children, inside));
        }
        if !self.constraints.is_empty() {
            object.insert("constraints".to_owned(), self.constraints_value());
        }
        Value::Object(object)
    }

    /// Texts of what lies below `self`; `path` is that of `self`.
    fn texts_below(&self, path: &str, texts: &mut Vec<String>) {
        for child in &self.children {
            if !child.children.is_empty() {
                child.texts_below(&format!("{path}.{}", child.property), texts);
            }
            texts.extend(child.constraints.iter().map(|(_, text)| format!("{path}.{text}")));
        }
    }
}

fn member<'a>(target: &'a Value, property: &str) -> Option<&'a Value> {
    match target {
        Value::Array(items) => items.get(property.parse::<usize>().ok()?),
        Value::Object(object) => object.get(property),
        _ => None,
    }
}

/// `[{"property":…,"children":[…],"constraints":{…}}]`; as text it is the `message` of an E2 answer.
pub fn tree(faults: &[Fault]) -> Value {
    faults.iter().map(Fault::tree).collect()
}

/// `[{"target":…,"value":…,"property":…,"children":[…],"constraints":{…}}]`, with the object around each property.
pub fn raw(faults: &[Fault], body: &Value) -> Value {
    faults.iter().map(|fault| fault.raw(body)).collect()
}

/// One text per broken constraint, those of nested properties with the path before them
/// (`dataFileList.0.path must be a string`): the `message` of an E1 answer.
///
/// A property with faults inside gives those alone, as `NestJS` does.
pub fn texts(faults: &[Fault]) -> Vec<String> {
    let mut texts = Vec::new();
    for fault in faults {
        if fault.children.is_empty() {
            texts.extend(fault.constraints.iter().map(|it| it.1.clone()));
        } else {
            fault.texts_below(&fault.property, &mut texts);
        }
    }
    texts
}

/// [`texts`] joined by `; `: the `error` of a v3 dataset's `isValid`.
pub fn joined(faults: &[Fault]) -> String {
    texts(faults).join("; ")
}
