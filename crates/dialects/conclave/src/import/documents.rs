//! Topic documents, one per line, as `export?format=ndjson` writes them.

use std::io::BufRead;

use serde_json::Value;

use super::curlie::lines;
use crate::document;
use crate::error::{ConclaveError, Result};
use crate::import::streaming::Streaming;

pub(super) fn read(input: impl BufRead, reading: &mut Streaming<'_>) -> Result<()> {
    let document = reading.document.to_owned();
    lines(input, &document, |number, text| {
        let wrong = |what: String| ConclaveError::rule(format!("{document}, line {number}: {what}"));
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let (reason, column) = (error.to_string(), error.column());
            // The parser sees a single line, so the line number in its message is always 1: leave it out.
            let reason = reason.split(" at line ").next().unwrap_or_default();
            wrong(format!("column {column}: no JSON: {reason}"))
        })?;
        let id = value.get("id").and_then(Value::as_str).ok_or_else(|| wrong("id is missing".to_owned()))?;
        // Arcs without an id get one that is the same when the line is imported again.
        let mut n_arcs = 0;
        let mut new_id = || {
            n_arcs += 1;
            format!("{id}~{n_arcs}")
        };
        let topic = document::read_topic(&value, reading.map, id, &mut new_id);
        reading.put(number, topic.map_err(|error| wrong(error.detail()))?)
    })
}
