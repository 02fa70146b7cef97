//! JSON values that borrow their texts from the input, for what is only traversed once: as [`Value`]s, a quantity of
//! scientific metadata needs a dozen allocations.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree<'t> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(Cow<'t, str>),
    /// An array.
    List(Vec<Tree<'t>>),
    /// An object.
    Object(Fields<'t>),
}

/// A JSON object: its members in order, with unique names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fields<'t>(Vec<(Cow<'t, str>, Tree<'t>)>);

/// Initial capacity for members: those of a quantity with its SI values.
const ROOM: usize = 4;
/// Number of members up to which duplicates are found by comparing every pair.
const FEW: usize = 16;

impl<'t> Fields<'t> {
    /// Borrows the members of `map`.
    pub fn of(map: &'t Map<String, Value>) -> Self {
        Self(map.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), Tree::of(value))).collect())
    }

    /// Returns the members as values.
    pub fn into_map(self) -> Map<String, Value> {
        self.0.into_iter().map(|(name, value)| (name.into_owned(), value.into())).collect()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Tree<'t>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the value of a member.
    pub(crate) fn get(&self, name: &str) -> Option<&Tree<'t>> {
        self.0.iter().find(|it| it.0 == name).map(|it| &it.1)
    }

    /// Iterates over the values in order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Tree<'t>> {
        self.0.iter_mut().map(|it| &mut it.1)
    }

    /// Sets a member: replaces the one of that name, or appends it.
    pub fn set(&mut self, name: &'static str, value: Tree<'t>) {
        match self.0.iter_mut().find(|it| it.0 == name) {
            Some(member) => member.1 = value,
            None => self.0.push((Cow::Borrowed(name), value)),
        }
    }

    /// Removes a member.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|it| it.0 != name);
    }

    /// Returns those members as values of which the name is wanted.
    pub(crate) fn to_map_of(&self, is_wanted: impl Fn(&str) -> bool) -> Map<String, Value> {
        let wanted = self.iter().filter(|it| is_wanted(it.0));
        wanted.map(|(name, value)| (name.to_owned(), value.to_value())).collect()
    }

    /// Removes duplicate names: the last value wins, at the position of the first.
    fn without_doubles(members: Vec<(Cow<'t, str>, Tree<'t>)>) -> Self {
        let has_doubles = if members.len() <= FEW {
            members.iter().enumerate().any(|(at, it)| members[..at].iter().any(|before| before.0 == it.0))
        } else {
            let mut seen = HashSet::with_capacity(members.len());
            !members.iter().all(|it| seen.insert(&*it.0))
        };
        if !has_doubles {
            return Self(members);
        }
        let mut map = Map::new();
        for (name, value) in members {
            map.insert(name.into_owned(), value.into());
        }
        let owned = |(name, value)| (Cow::Owned(name), Tree::owned(value));
        Self(map.into_iter().map(owned).collect())
    }
}

impl<'t> Tree<'t> {
    /// Borrows a value.
    pub fn of(value: &'t Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Boolean(*it),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::List(items.iter().map(Tree::of).collect()),
            Value::Object(map) => Self::Object(Fields::of(map)),
        }
    }

    fn owned(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Boolean(it),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(Cow::Owned(text)),
            Value::Array(items) => Self::List(items.into_iter().map(Tree::owned).collect()),
            Value::Object(map) => {
                let owned = |(name, value)| (Cow::Owned(name), Tree::owned(value));
                Self::Object(Fields(map.into_iter().map(owned).collect()))
            }
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(it) => Value::Bool(*it),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone().into_owned()),
            Self::List(items) => Value::Array(items.iter().map(Tree::to_value).collect()),
            Self::Object(fields) => Value::Object(fields.to_map_of(|_| true)),
        }
    }

    /// Returns the string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the object, if it is one.
    pub fn as_object_mut(&mut self) -> Option<&mut Fields<'t>> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }
}

impl From<Tree<'_>> for Value {
    fn from(tree: Tree<'_>) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Boolean(it) => Self::Bool(it),
            Tree::Number(number) => Self::Number(number),
            Tree::Text(text) => Self::String(text.into_owned()),
            Tree::List(items) => Self::Array(items.into_iter().map(Value::from).collect()),
            Tree::Object(fields) => Self::Object(fields.into_map()),
        }
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(it) => serializer.serialize_bool(*it),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => fields.serialize(serializer),
        }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(&**name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// The name of a member, borrowed unless it contains an escape.
#[derive(Debug)]
pub struct Name<'t>(pub Cow<'t, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AnyName).map(Self)
    }
}

struct AnyName;

impl<'de> Visitor<'de> for AnyName {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Self::Value, E> {
        Ok(Tree::Boolean(it))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Tree::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(number).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(ROOM);
        while let Some(Name(name)) = members.next_key()? {
            fields.push((name, members.next_value()?));
        }
        Ok(Tree::Object(Fields::without_doubles(fields)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same_as_value(json: &str) {
        let value: Result<Value, _> = serde_json::from_str(json);
        let tree: Result<Tree<'_>, _> = serde_json::from_str(json);
        match (value, tree) {
            (Ok(value), Ok(tree)) => {
                assert_eq!(serde_json::to_string(&tree).unwrap(), value.to_string(), "{json}");
                assert_eq!(tree.to_value(), value, "{json}");
                assert_eq!(Value::from(tree), value, "{json}");
                assert_eq!(serde_json::to_string(&Tree::of(&value)).unwrap(), value.to_string());
            }
            (value, tree) => {
                let message = |it: serde_json::Error| it.to_string();
                assert_eq!(tree.err().map(message), value.err().map(message), "{json}");
            }
        }
    }

    #[test]
    fn reads_and_writes_what_values_do() {
        let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 30)).collect();
        for json in [
            r#"{"a":{"value":1.50,"unit":"mm"},"b":[1,-2,3e400,1e-400,18446744073709551615,18446744073709551616]}"#,
            r#"{"a":1,"b":2,"a":{"x":1,"x":[2]},"\u0062":"\ud83d\ude00\"\\\u0000é"}"#,
            r#"[null,true,false,{},[],"",0,-0.0,1.0,12345678901234567890123]"#,
            r#"{"a":}"#,
            r#"{"a":"\ud800"}"#,
            "{\"a\":\"\u{1}\"}",
            &format!("{{{}}}", many.join(",")),
        ] {
            same_as_value(json);
        }
    }

    proptest! {
        #[test]
        fn reads_json_like_text_as_values_do(json in r#"[{}\[\],:"\\u0a19.e\- ]{0,40}"#) {
            same_as_value(&json);
        }
    }
}
