//! Which fields of a document are shown.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::error::ScicatError;

/// The fields that an answer shows; `_id` is always included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// All fields.
    Everything,
    /// Only these dotted paths.
    Only(Vec<String>),
    /// All except these dotted paths.
    Without(Vec<String>),
}

impl Projection {
    /// Parses `["pid","size"]`, `{"pid":1}` or `{"owner":false}`. Errors: 400 in shape E4 for another type.
    pub fn parse(fields: &Value) -> Result<Self, ScicatError> {
        match fields {
            Value::Null => Ok(Self::Everything),
            Value::Array(list) if list.is_empty() => Ok(Self::Everything),
            Value::Array(list) => {
                let names: Option<Vec<String>> =
                    list.iter().map(|it| it.as_str().map(str::to_owned)).collect();
                names.map(Self::Only).ok_or_else(wrong_type)
            }
            Value::Object(map) if map.is_empty() => Ok(Self::Everything),
            Value::Object(map) => Self::of_object(map),
            _ => Err(wrong_type()),
        }
    }

    fn of_object(map: &Map<String, Value>) -> Result<Self, ScicatError> {
        let (mut shown, mut hidden) = (Vec::new(), Vec::new());
        for (name, choice) in map {
            match choice {
                Value::Bool(true) => shown.push(name.clone()),
                Value::Bool(false) => hidden.push(name.clone()),
                Value::Number(number) if number.as_f64() == Some(0.0) => hidden.push(name.clone()),
                Value::Number(_) => shown.push(name.clone()),
                _ => return Err(wrong_type()),
            }
        }
        Ok(if shown.is_empty() { Self::Without(hidden) } else { Self::Only(shown) })
    }

    /// Says whether every field is shown, so that stored bytes can be sent as they are.
    pub fn is_everything(&self) -> bool {
        *self == Self::Everything
    }

    /// Says whether the field is shown.
    pub fn shows(&self, name: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(names) => names.iter().any(|it| it == name || it.split('.').next() == Some(name)),
            Self::Without(names) => !names.iter().any(|it| it == name),
        }
    }

    /// Says whether only parts of the field are shown: paths below it are selected or left out, but not the field
    /// itself.
    pub fn divides(&self, name: &str) -> bool {
        let is_below = |it: &String| it.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        match self {
            Self::Everything => false,
            Self::Only(names) => names.iter().any(is_below) && !names.iter().any(|it| it == name),
            Self::Without(names) => names.iter().any(is_below),
        }
    }

    /// Returns the projection that applies inside a field.
    pub fn below(&self, field: &str) -> Self {
        let inside = |names: &[String]| -> Vec<String> {
            let below = names.iter().filter_map(|it| it.strip_prefix(field)?.strip_prefix('.'));
            below.map(str::to_owned).collect()
        };
        match self {
            Self::Only(names) if !inside(names).is_empty() => Self::Only(inside(names)),
            Self::Without(names) if !inside(names).is_empty() => Self::Without(inside(names)),
            _ => Self::Everything,
        }
    }

    /// Removes the fields that are not shown.
    pub fn apply(&self, document: &mut Map<String, Value>) {
        match self {
            Self::Everything => {}
            Self::Only(names) => {
                let mut kept = Map::new();
                for (name, value) in std::mem::take(document) {
                    if name == "_id" || names.contains(&name) {
                        kept.insert(name, value);
                    } else if let Some(part) = part_of(&name, value, names) {
                        kept.insert(name, part);
                    }
                }
                *document = kept;
            }
            Self::Without(names) => {
                for name in names {
                    remove(document, name);
                }
            }
        }
    }
}

/// Returns the part of a field that is selected by dotted names below it.
fn part_of(name: &str, value: Value, names: &[String]) -> Option<Value> {
    let below: Vec<String> =
        names.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix('.')).map(str::to_owned).collect();
    if below.is_empty() {
        return None;
    }
    let keep = |mut map: Map<String, Value>| {
        map.retain(|key, _| below.iter().any(|it| it == key || it.split('.').next() == Some(key)));
        let parts = map.into_iter().filter_map(|(key, value)| {
            if below.contains(&key) {
                Some((key, value))
            } else {
                part_of(&key, value, &below).map(|it| (key, it))
            }
        });
        Value::Object(parts.collect())
    };
    match value {
        Value::Object(map) => Some(keep(map)),
        Value::Array(list) => {
            let maps =
                list.into_iter().filter_map(|it| if let Value::Object(map) = it { Some(map) } else { None });
            Some(Value::Array(maps.map(keep).collect()))
        }
        _ => None,
    }
}

fn remove(document: &mut Map<String, Value>, name: &str) {
    match name.split_once('.') {
        None => {
            document.shift_remove(name);
        }
        Some((first, rest)) => match document.get_mut(first) {
            Some(Value::Object(map)) => remove(map, rest),
            Some(Value::Array(list)) => {
                list.iter_mut().filter_map(Value::as_object_mut).for_each(|map| remove(map, rest));
            }
            _ => {}
        },
    }
}

fn wrong_type() -> ScicatError {
    ScicatError::text(StatusCode::BAD_REQUEST, "Fields must be an array or a valid projection object")
}
