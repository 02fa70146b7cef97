//! Rows of the index: citations, references and their counts.

use pinakes_citations::{Citation, Graph};

use super::identifiers::{self, Version};
use super::typed::{Column, Row, Type};

/// Columns of a citation.
pub(crate) static CITATION: [Column; 7] = [
    Column::new("oci", Type::Text),
    Column::new("citing", Type::Text),
    Column::new("cited", Type::Text),
    Column::new("creation", Type::Date),
    Column::new("timespan", Type::Span),
    Column::new("journal_sc", Type::Text),
    Column::new("author_sc", Type::Text),
];

/// The column of a count.
pub(crate) static COUNT: [Column; 1] = [Column::new("count", Type::Count)];

/// The columns of the counts of several works.
pub(crate) static COUNTS: [Column; 2] = [Column::new("id", Type::Text), Column::new("count", Type::Count)];

/// Returns the citations of a work.
pub(crate) fn citations(graph: &Graph, version: Version, number: u32) -> impl Iterator<Item = Row> + '_ {
    graph.citation_rows(number).map(move |(citing, said)| row(graph, version, citing, number, &said))
}

/// Returns the references of a work.
pub(crate) fn references(graph: &Graph, version: Version, number: u32) -> impl Iterator<Item = Row> + '_ {
    graph.reference_rows(number).map(move |(cited, said)| row(graph, version, number, cited, &said))
}

/// Returns the row of one citation.
pub(crate) fn row(graph: &Graph, version: Version, citing: u32, cited: u32, said: &Citation) -> Row {
    let work = |number| match version {
        Version::V1 => graph.doi(number).unwrap_or_default(),
        Version::V2 => identifiers::all_of(graph, number),
    };
    vec![
        graph.oci(citing, cited, said).unwrap_or_default(),
        work(citing),
        work(cited),
        said.creation.map(|it| it.to_string()).unwrap_or_default(),
        said.timespan.map(|it| it.to_string()).unwrap_or_default(),
        said.journal_sc.as_str().to_owned(),
        said.author_sc.as_str().to_owned(),
    ]
}
