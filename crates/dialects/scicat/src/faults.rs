//! Validation faults of a body, and the shapes in which they are sent.
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

/// The faults of one property, or of the properties inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The property's name, or the index in a list.
    pub property: Cow<'static, str>,
    /// The faults inside it.
    pub children: Vec<Fault>,
    /// The violated constraints, each with its text.
    pub constraints: Vec<(&'static str, String)>,
}

/// The constraint of an unknown property.
const UNKNOWN: &str = "whitelistValidation";

impl Fault {
    /// Creates a fault without a reason yet.
    pub fn new(property: impl Into<Cow<'static, str>>) -> Fault {
        Fault { property: property.into(), children: Vec::new(), constraints: Vec::new() }
    }

    /// Creates the fault of a property that the body must not have.
    pub fn unknown_property(name: &str) -> Fault {
        let text = format!("property {name} should not exist");
        Fault { constraints: vec![(UNKNOWN, text)], ..Fault::new(name.to_owned()) }
    }

    /// Creates a fault with one reason, for rules that a table cannot express.
    pub fn with_constraint(property: &'static str, constraint: &'static str, text: String) -> Fault {
        Fault { constraints: vec![(constraint, text)], ..Fault::new(property) }
    }

    /// Says whether the property is unknown.
    pub fn is_unknown_property(&self) -> bool {
        self.constraints.first().is_some_and(|it| it.0 == UNKNOWN)
    }

    /// Says whether no constraint was violated.
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

    fn raw(&self, target: &Value, shows_target: bool, budget: &mut Budget) -> Value {
        let value = member(target, &self.property);
        let mut object = Map::new();
        if shows_target {
            object.insert("target".to_owned(), target.clone());
        }
        if let Some(value) = value
            && budget.takes(1, value)
        {
            object.insert("value".to_owned(), value.clone());
        }
        object.insert("property".to_owned(), json!(self.property));
        if !self.is_unknown_property() {
            let inside = value.unwrap_or(&Value::Null);
            object.insert("children".to_owned(), raw_within(&self.children, inside, budget));
        }
        if !self.constraints.is_empty() {
            object.insert("constraints".to_owned(), self.constraints_value());
        }
        Value::Object(object)
    }

    /// Collects the texts of the faults below `self`, whose own path is `path`.
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

/// Returns `[{"property":…,"children":[…],"constraints":{…}}]`; as text this is the `message` of an E2 answer.
pub fn tree(faults: &[Fault]) -> Value {
    faults.iter().map(Fault::tree).collect()
}

/// Returns `[{"target":…,"value":…,"property":…,"children":[…],"constraints":{…}}]`, with the object that contains each
/// property.
///
/// The original repeats that object for each fault, which is quadratic in size for a body with many faults. Here
/// `target` and `value` are left out once they would take more than [`REPEATED_BYTES`].
pub fn raw(faults: &[Fault], body: &Value) -> Value {
    raw_within(faults, body, &mut Budget { left_bytes: REPEATED_BYTES })
}

/// Maximum number of bytes of the body that the faults of an answer repeat.
pub const REPEATED_BYTES: usize = 1 << 20;

/// How much of the body may still be repeated.
struct Budget {
    left_bytes: usize,
}

impl Budget {
    /// Says whether a value may be repeated `n` times, and subtracts its bytes if so.
    fn takes(&mut self, n: usize, value: &Value) -> bool {
        if n == 0 || self.left_bytes == 0 {
            return false;
        }
        let mut counted = Counted { left_bytes: self.left_bytes / n };
        if serde_json::to_writer(&mut counted, value).is_err() {
            return false;
        }
        self.left_bytes -= n * (self.left_bytes / n - counted.left_bytes);
        true
    }
}

/// A writer that counts bytes up to a limit and discards them.
struct Counted {
    left_bytes: usize,
}

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left_bytes = self.left_bytes.checked_sub(bytes.len());
        self.left_bytes = left_bytes.ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn raw_within(faults: &[Fault], target: &Value, budget: &mut Budget) -> Value {
    let shows_target = budget.takes(faults.len(), target);
    faults.iter().map(|fault| fault.raw(target, shows_target, budget)).collect()
}

/// Returns one text per violated constraint, prefixed with the path for nested properties (`dataFileList.0.path must be
/// a string`): the `message` of an E1 answer.
///
/// For a property with nested faults only those are listed, as `NestJS` does.
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

/// Joins [`texts`] with `; `: the `error` of a v3 dataset's `isValid`.
pub fn joined(faults: &[Fault]) -> String {
    texts(faults).join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few faults get the original's shape; for many, repetition is bounded.
    #[test]
    fn bodies_are_repeated_up_to_a_bound() {
        let body = json!({"a": 1, "b": 2});
        let few = raw(&[Fault::unknown_property("a"), Fault::unknown_property("b")], &body);
        assert_eq!(few[1]["target"], body);
        assert_eq!(few[1]["value"], 2);
        let many: Map<String, Value> = (0..5_000).map(|it| (format!("k{it}"), json!(it))).collect();
        let faults: Vec<Fault> = many.keys().map(|it| Fault::unknown_property(it)).collect();
        let told = raw(&faults, &Value::Object(many));
        assert_eq!(told.as_array().map(Vec::len), Some(5_000));
        assert!(told.to_string().len() < 2 * REPEATED_BYTES, "{}", told.to_string().len());
    }
}
