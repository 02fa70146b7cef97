//! Equality with objects and lists: terms and columns tell which documents may have them, and bodies decide.

use serde_json::Value as Json;

use super::{Bounds, Segment, bytes};
use crate::index::set::Set;
use crate::index::terms::{self, Tag};
use crate::{Path, Result, Value};

/// Maximum number of members or elements of a value that are looked up: more hardly narrow the result.
const LOOKED_UP: usize = 24;

impl Segment<'_> {
    /// Evaluates equality with an object or a list.
    pub(super) fn is_whole(&self, path: &Path, whole: &Json, within: &Set) -> Result<Bounds> {
        let may = self.may_be(path, whole, within)?;
        Ok(self.none_but(may))
    }

    /// Returns the documents that may have a value at a path, or in a list there.
    fn may_be(&self, path: &Path, value: &Json, within: &Set) -> Result<Set> {
        if !terms::is_indexed(self.kind, path) {
            return Ok(Set::full(self.max_doc));
        }
        let at = bytes(path);
        let scalar = match value {
            Json::Object(map) if map.is_empty() => return self.with(&at, Tag::Empty, &[]),
            Json::Object(map) => {
                let objects = self.with(&at, Tag::Object, &[])?;
                let mut may = objects.or(&self.with(&at, Tag::List, &[])?).and(within);
                for (member, value) in map.iter().take(LOOKED_UP) {
                    let path = Path::steps(path.as_steps().iter().chain([member]).cloned());
                    may = self.may_be(&path, value, &may)?.and(&may);
                }
                return Ok(may);
            }
            Json::Array(list) => {
                let n = list.len() as u64;
                let mut may = self.with(&at, Tag::Length, &n.to_be_bytes())?.and(within);
                // The index does not hold the elements of lists in lists.
                for value in list.iter().filter(|it| !it.is_array()).take(LOOKED_UP) {
                    may = self.may_be(path, value, &may)?.and(&may);
                }
                return Ok(may.or(&self.with(&at, Tag::Nested, &[])?));
            }
            Json::Null => return self.with(&at, Tag::Null, &[]),
            Json::Bool(it) => Value::Boolean(*it),
            Json::String(text) => Value::Text(text.clone()),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, Some(real)) => Value::Real(real),
                (None, None) => return Ok(Set::full(self.max_doc)),
            },
        };
        Ok(self.is(path, &scalar, within)?.high().clone())
    }
}
