//! The tables of Curlie, the successor of the Open Directory (section 17 of the contract). Each line is tab-separated:
//!
//! - `rdf-X-s.tsv`: number, path without `Top/`, count, description, then columns of geography, which are left out;
//! - `rdf-X-c.tsv`: address, title, description, number of the category.
//!
//! The first column shows which of the two a line belongs to. Categories must be read before their links.

use std::io::BufRead;

use pinakes_topicmap::dmoz;

use super::directory::{link, without_tags};
use crate::error::{ConclaveError, Result};
use crate::import::streaming::Streaming;
use crate::model::{Arc, Metadata, Topic};
use crate::names::{DEFAULT_SCOPE, LABEL};

/// Longest line, in bytes.
const LINE_LEN_MAX_BYTES: usize = 16 << 20;

/// Calls `line` with each line of a text and its number, from 1. Replaces invalid UTF-8.
///
/// Errors: 422 for a line that is too long or cannot be read; the errors of `line`.
pub(super) fn lines(
    mut input: impl BufRead,
    document: &str,
    mut line: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for number in 1_u64.. {
        bytes.clear();
        let mut bounded = std::io::Read::take(&mut input, LINE_LEN_MAX_BYTES as u64 + 1);
        let n_read = bounded.read_until(b'\n', &mut bytes);
        let n_read =
            n_read.map_err(|error| ConclaveError::rule(format!("{document}, line {number}: {error}")))?;
        if n_read == 0 {
            break;
        }
        if n_read > LINE_LEN_MAX_BYTES {
            let detail = format!("{document}, line {number} has more than {LINE_LEN_MAX_BYTES} bytes");
            return Err(ConclaveError::rule(detail));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        if !text.trim().is_empty() {
            line(number, text)?;
        }
    }
    Ok(())
}

pub(super) fn read(input: impl BufRead, reading: &mut Streaming<'_>) -> Result<()> {
    let document = reading.document.to_owned();
    let (mut category, mut n_links) = (0, 0);
    lines(input, &document, |number, text| {
        let wrong = |what: String| ConclaveError::rule(format!("{document}, line {number}: {what}"));
        let cells: Vec<&str> = text.split('\t').collect();
        if let Ok(id) = cells[0].parse::<u64>() {
            let [_, path, rest @ ..] = cells.as_slice() else {
                return Err(wrong("a category has number, path, count and description".to_owned()));
            };
            return structure(id, path.trim(), rest.get(1).copied().unwrap_or_default(), number, reading);
        }
        let [url, title, description, of, ..] = cells.as_slice() else {
            let n_cells = cells.len();
            return Err(wrong(format!(
                "{n_cells} columns; expected a number first, or an address, title, description and category"
            )));
        };
        let of: u64 = of.trim().parse().map_err(|_| wrong(format!("the category {of:?} is no number")))?;
        let path = reading.categories.0.get(&of).ok_or_else(|| {
            wrong(format!("the category {of} is in none of the tables read before; read rdf-*-s.tsv first"))
        })?;
        n_links = if of == category { n_links + 1 } else { 1 };
        category = of;
        if reading.how.n_links_max > 0 && n_links > reading.how.n_links_max {
            return Ok(());
        }
        let mut topic = part(reading.map, path);
        topic.occurrences.push(link("link", (*url).to_owned(), title, description, None));
        reading.put(number, topic)
    })
}

/// Returns a part of a topic, with the label that its path gives.
fn part(map: &str, path: &str) -> Topic {
    let mut topic = Topic::new(map, path);
    topic.set(DEFAULT_SCOPE, LABEL, dmoz::label_of(path));
    topic
}

fn structure(id: u64, path: &str, description: &str, line: u64, reading: &mut Streaming<'_>) -> Result<()> {
    let path = if path.is_empty() || path == "Top" { "Top".to_owned() } else { format!("Top/{path}") };
    let mut topic = part(reading.map, &path);
    topic.set(DEFAULT_SCOPE, "catid", id.to_string());
    let description = without_tags(description);
    if !description.is_empty() {
        topic.set(DEFAULT_SCOPE, "description", description);
    }
    if let Some((above, _)) = path.rsplit_once('/') {
        let mut parent = part(reading.map, above);
        parent.arcs.push(Arc {
            id: format!("{above}~{path}"),
            ty: "category".to_owned(),
            scope: DEFAULT_SCOPE.to_owned(),
            reference: path.clone(),
            role: "narrow".to_owned(),
            metadata: vec![Metadata {
                scope: DEFAULT_SCOPE.to_owned(),
                name: LABEL.to_owned(),
                value: dmoz::label_of(&path),
            }],
        });
        reading.put(line, parent)?;
    }
    reading.categories.0.insert(id, path);
    reading.put(line, topic)
}
