//! Bodies of new datasets: scientific metadata stays text until it is stored, the rest is parsed into values.

use std::fmt;

use pinakes_store::{Document, Fields, Name, Part, Result, StoreError, Texts, Tree};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::kinds::DATASET;
use crate::scientific;

/// The member that holds scientific metadata.
pub(crate) const METADATA: &str = "scientificMetadata";

/// The body of a dataset that is to be created.
pub(crate) struct Incoming<'b> {
    /// Everything except the metadata, whose position is held by `{}`.
    pub(crate) rest: Map<String, Value>,
    /// The metadata if it is an object; any other value stays in `rest`.
    pub(crate) metadata: Option<Fields<'b>>,
}

impl<'b> Incoming<'b> {
    /// Returns the whole body as values.
    pub(crate) fn into_map(mut self) -> Map<String, Value> {
        if let Some(metadata) = self.metadata {
            self.rest.insert(METADATA.to_owned(), metadata.into_map().into());
        }
        self.rest
    }

    fn set_metadata(&mut self, metadata: Tree<'b>) {
        let (metadata, place) = match metadata {
            Tree::Object(fields) => (Some(fields), Value::Object(Map::new())),
            other => (None, other.into()),
        };
        self.metadata = metadata;
        self.rest.insert(METADATA.to_owned(), place);
    }
}

impl<'de> Deserialize<'de> for Incoming<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Incoming<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> std::result::Result<Self::Value, A::Error> {
        let mut body = Incoming { rest: Map::with_capacity(ROOM), metadata: None };
        while let Some(Name(name)) = members.next_key()? {
            if name == METADATA {
                body.set_metadata(members.next_value()?);
            } else {
                body.rest.insert(name.into_owned(), members.next_value()?);
            }
        }
        Ok(body)
    }
}

/// Initial capacity for members.
const ROOM: usize = 48;

/// Builds a dataset's document. `metadata`, with its SI values, fills the position that `body` reserves.
///
/// Errors: as for [`Document::new`].
pub(crate) fn document(pid: &str, body: &Value, metadata: Option<&Part>) -> Result<Document> {
    match metadata {
        Some(part) => Document::with_part(&DATASET, pid, body, part),
        None => Document::new(&DATASET, pid, body),
    }
}

/// Returns metadata as it is stored: quantities with their SI values.
///
/// Errors: the metadata cannot be written as JSON.
pub(crate) fn part(mut metadata: Fields<'_>) -> Result<Part> {
    scientific::enrich_fields(&mut metadata);
    let mut strings = Texts::default();
    scientific::add_keys(&metadata, &mut strings);
    let json = to_raw_value(&metadata).map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(Part { name: METADATA, json, strings })
}
