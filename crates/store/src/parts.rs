//! The parts of a body that a condition or an order looks at: to parse no more of it takes a fraction of the time.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use crate::{Expr, Path};

/// Parts of a body, as a tree of members. Lists have no level of their own: a part of a list is that part of each
/// element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Whether the value is wanted with all that is in it.
    is_whole: bool,
    members: Vec<(String, Parts)>,
}

impl Parts {
    /// Returns what parses a whole body.
    pub(crate) fn whole() -> Self {
        Self { is_whole: true, members: Vec::new() }
    }

    /// Returns the parts that decide a condition.
    pub(crate) fn of(condition: &Expr) -> Self {
        let mut parts = Self::default();
        parts.add_condition(condition);
        parts
    }

    /// Adds the values at paths.
    pub(crate) fn with<'p>(mut self, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        paths.into_iter().for_each(|it| self.add(it));
        self
    }

    fn add_condition(&mut self, condition: &Expr) {
        match condition {
            Expr::And(list) | Expr::Or(list) => list.iter().for_each(|it| self.add_condition(it)),
            Expr::Not(it) => self.add_condition(it),
            other => other.path().into_iter().for_each(|it| self.add(it)),
        }
    }

    fn add(&mut self, path: &Path) {
        let mut at = self;
        // A number may be a position in a list: from there on, all is wanted.
        for step in path.as_steps().iter().take_while(|it| Path::position(it).is_none()) {
            let place = at.members.iter().position(|it| it.0 == *step).unwrap_or_else(|| {
                at.members.push((step.clone(), Self::default()));
                at.members.len() - 1
            });
            at = &mut at.members[place].1;
        }
        at.is_whole = true;
    }

    /// Parses these parts of a body.
    ///
    /// Errors: the body is not JSON.
    pub(crate) fn parse(&self, body: &[u8]) -> serde_json::Result<Json> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let value = self.deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for &Parts {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        if self.is_whole {
            serde::Deserialize::deserialize(deserializer)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for &Parts {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut map = Map::new();
        while let Some(member) = members.next_key_seed(Member(self))? {
            match member {
                Some((name, parts)) => {
                    map.insert(name.clone(), members.next_value_seed(parts)?);
                }
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Json::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            list.push(element);
        }
        Ok(Json::Array(list))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::from(value))
    }
}

/// Finds a member by its name; `None` for one that is not wanted.
struct Member<'p>(&'p Parts);

impl<'p, 'de> DeserializeSeed<'de> for Member<'p> {
    type Value = Option<&'p (String, Parts)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Member<'p> {
    type Value = Option<&'p (String, Parts)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.members.iter().find(|it| it.0 == name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{End, Value};

    #[track_caller]
    fn check(paths: &[&str], body: &Json, expected: &Json) {
        let conditions = paths.iter().map(|it| Expr::Exists((*it).into()));
        let parts = Parts::of(&Expr::Not(Box::new(Expr::And(conditions.collect()))));
        assert_eq!(parts.parse(body.to_string().as_bytes()).expect("JSON"), *expected);
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let body = json!({
            "a": {"b": {"c": 1, "d": [1.5, null]}, "e": "\u{e9}\n"},
            "l": [{"x": 1, "y": 2}, [{"x": 3, "y": 4}], "text", true, null, -1, 18_446_744_073_709_551_615_u64],
            "t": "text",
        });
        check(&[], &body, &json!({}));
        check(&["t"], &body, &json!({"t": "text"}));
        check(&["a.b.d", "a.e"], &body, &json!({"a": {"b": {"d": [1.5, null]}, "e": "\u{e9}\n"}}));
        check(&["a.b.c.f", "a.b.d"], &body, &json!({"a": {"b": {"c": 1, "d": [1.5, null]}}}));
        check(&["a.b", "a.b.c"], &body, &json!({"a": {"b": {"c": 1, "d": [1.5, null]}}}));
        let xs = json!([{"x": 1}, [{"x": 3}], "text", true, null, -1, 18_446_744_073_709_551_615_u64]);
        check(&["l.x"], &body, &json!({"l": xs}));
        check(&["l.0.x", "nothing"], &body, &json!({"l": body["l"]}));
        check(&["0"], &body, &body);
    }

    #[test]
    fn paths_add_parts() {
        let range = Expr::Range("a.b.c".into(), End::Included(Value::from(1_i64)), End::Open);
        let parts = Parts::of(&range).with(&[Path::from("t")]);
        let body = json!({"a": {"b": {"c": 1, "d": 2}}, "t": "text", "u": 1});
        let expected = json!({"a": {"b": {"c": 1}}, "t": "text"});
        assert_eq!(parts.parse(body.to_string().as_bytes()).expect("JSON"), expected);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let parts = Parts::of(&Expr::Exists("a".into()));
        for text in ["{\"b\": tru}", "{\"a\": 1} x", "{\"a\": 1", ""] {
            parts.parse(text.as_bytes()).expect_err(text);
        }
    }
}
