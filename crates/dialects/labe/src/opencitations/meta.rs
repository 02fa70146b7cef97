//! Rows of metadata: what the graph knows of a work (identifiers, date, neighbours), and what the catalogue's
//! document says, if one is held.

use pinakes_citations::Graph;
use pinakes_store::{StoreError, View};
use serde_json::Value;

use super::identifiers;
use super::typed::{Column, Row, Type};
use crate::citation::push_document;
use crate::id_maps::IdMaps;

/// Columns of meta v1.
pub(crate) static META: [Column; 11] = [
    Column::new("id", Type::Text),
    Column::new("title", Type::Text),
    Column::new("author", Type::Text),
    Column::new("pub_date", Type::Date),
    Column::new("issue", Type::Text),
    Column::new("volume", Type::Text),
    Column::new("venue", Type::Text),
    Column::new("type", Type::Text),
    Column::new("page", Type::Text),
    Column::new("publisher", Type::Text),
    Column::new("editor", Type::Text),
];

/// Columns of `metadata` of index v1, which old clients still ask for.
pub(crate) static OLD_METADATA: [Column; 13] = [
    Column::new("doi", Type::Text),
    Column::new("citation_count", Type::Count),
    Column::new("citation", Type::Text),
    Column::new("reference", Type::Text),
    Column::new("author", Type::Text),
    Column::new("year", Type::Date),
    Column::new("title", Type::Text),
    Column::new("source_title", Type::Text),
    Column::new("volume", Type::Text),
    Column::new("issue", Type::Text),
    Column::new("page", Type::Text),
    Column::new("source_id", Type::Text),
    Column::new("oa_link", Type::Text),
];

/// Most neighbours that `metadata` of index v1 lists.
const LISTED_MAX: usize = 10_000;

/// What a catalogue document says of a work, by the fields of `VuFind`'s index.
#[derive(Debug, Default)]
struct Described {
    title: String,
    author: String,
    date: String,
    issue: String,
    volume: String,
    venue: String,
    page: String,
    publisher: String,
}

/// A row of meta v1.
pub(crate) fn meta_row(
    view: &mut View<'_>,
    maps: IdMaps<'_>,
    graph: &Graph,
    number: u32,
) -> Result<Row, StoreError> {
    let it = described(view, maps, number)?;
    let date = graph.date(number).map_or(it.date, |date| date.to_string());
    Ok(vec![
        identifiers::all_of(graph, number),
        it.title,
        it.author,
        date,
        it.issue,
        it.volume,
        it.venue,
        String::new(),
        it.page,
        it.publisher,
        String::new(),
    ])
}

/// A row of `metadata` of index v1.
pub(crate) fn old_row(
    view: &mut View<'_>,
    maps: IdMaps<'_>,
    graph: &Graph,
    number: u32,
) -> Result<Row, StoreError> {
    let it = described(view, maps, number)?;
    let joined = |numbers: &mut dyn Iterator<Item = u32>| {
        let dois: Vec<String> = numbers.take(LISTED_MAX).filter_map(|it| graph.doi(it)).collect();
        dois.join("; ")
    };
    let citations = graph.citations(number);
    Ok(vec![
        graph.doi(number).unwrap_or_default(),
        citations.len().to_string(),
        joined(&mut citations.into_iter()),
        joined(&mut graph.references(number)),
        it.author,
        graph.date(number).map_or(it.date, |date| date.to_string()),
        it.title,
        it.venue,
        it.volume,
        it.issue,
        it.page,
        String::new(),
        String::new(),
    ])
}

/// The first document of a work that is held.
fn described(view: &mut View<'_>, maps: IdMaps<'_>, number: u32) -> Result<Described, StoreError> {
    let mut holdings = Vec::new();
    maps.holdings_of_number(view, number, &mut holdings)?;
    for holding in holdings {
        let mut text = Vec::new();
        if let Some(record) = view.get(holding.kind, &holding.id)?
            && push_document(&holding, &record, &mut text)
            && let Ok(document) = serde_json::from_slice::<Value>(&text)
        {
            return Ok(Described {
                title: first_text(&document, "title"),
                author: all_texts(&document, "author"),
                date: first_text(&document, "publishDate"),
                issue: first_text(&document, "container_issue"),
                volume: first_text(&document, "container_volume"),
                venue: first_text(&document, "container_title"),
                page: first_text(&document, "container_start_page"),
                publisher: first_text(&document, "publisher"),
            });
        }
    }
    Ok(Described::default())
}

fn texts<'a>(document: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    let values = match document.get(name) {
        Some(Value::Array(list)) => list.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => &[],
    };
    values.iter().filter_map(Value::as_str)
}

fn first_text(document: &Value, name: &str) -> String {
    texts(document, name).next().unwrap_or_default().to_owned()
}

fn all_texts(document: &Value, name: &str) -> String {
    texts(document, name).collect::<Vec<_>>().join("; ")
}
