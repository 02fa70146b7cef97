//! Rows of metadata: what the graph contains about a work (identifiers, date, neighbours), and what the catalogue's
//! document contains, if the work is held.

use std::collections::{BTreeSet, HashSet};

use pinakes_citations::{Doi, Graph};
use pinakes_store::{StoreError, View};
use serde_json::{Map, Value};

use super::identifiers;
use super::typed::{Column, Row, Type};
use crate::app::Labe;
use crate::citation::push_document;
use crate::envelope::{issn, texts, work_ids};
use crate::id_maps::{Holding, IdMaps};
use crate::kinds::{DOCUMENT, ISSN_SCHEME, WORK_SCHEME};

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

/// Columns of `metadata` of index v1, which old clients still request.
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

/// Maximum number of neighbours that `metadata` of index v1 lists.
const LISTED_MAX: usize = 10_000;

/// What a catalogue document says about a work, in the fields of `VuFind`'s index and those of the Meta dump.
#[derive(Debug, Default)]
struct Described {
    more_ids: Vec<String>,
    title: String,
    author: String,
    date: String,
    issue: String,
    volume: String,
    venue: String,
    issns: Vec<String>,
    kind: String,
    page: String,
    publisher: String,
    editor: String,
}

/// Returns a row of meta v1.
pub(crate) fn meta_row(
    view: &mut View<'_>,
    maps: IdMaps<'_>,
    graph: &Graph,
    number: u32,
) -> Result<Row, StoreError> {
    let it = described(view, maps, number)?;
    let date = graph.date(number).map_or_else(|| it.date.clone(), |date| date.to_string());
    let ids = [&[identifiers::all_of(graph, number)], it.more_ids.as_slice()].concat().join(" ");
    Ok(it.into_row(ids, date))
}

/// Returns a row of `metadata` of index v1.
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
        old_persons(&it.author),
        graph.date(number).map_or(it.date, |date| date.to_string()),
        it.title,
        it.venue,
        it.volume,
        it.issue,
        it.page,
        it.issns.join("; "),
        String::new(),
    ])
}

/// Returns the works of the documents that contain an identifier, in ascending order; at most `works_max` documents are
/// read.
pub(crate) fn named_by(
    view: &mut View<'_>,
    app: &Labe,
    graph: &Graph,
    scheme: &str,
    value: &str,
    works_max: usize,
) -> Result<BTreeSet<u32>, StoreError> {
    let maps = app.parts.maps(Some(graph));
    let mut works = BTreeSet::new();
    let named = view.by_identifier(scheme, value)?;
    for (_, id) in named.into_iter().filter(|(kind, _)| kind == DOCUMENT.name).take(works_max) {
        works.extend(maps.doi_of(view, &id)?.and_then(|it| it.number));
    }
    Ok(works)
}

/// Returns rows of meta v1 for an identifier that only documents contain: those of their works, or, for works that are
/// in no dump, those of the documents themselves.
pub(crate) fn rows_of_documents(
    view: &mut View<'_>,
    maps: IdMaps<'_>,
    graph: Option<&Graph>,
    id: &str,
    works_max: usize,
) -> Result<Vec<Row>, StoreError> {
    let (mut rows, mut works) = (Vec::new(), BTreeSet::new());
    let named = view.by_identifier(WORK_SCHEME, id)?;
    for (_, id) in named.into_iter().filter(|(kind, _)| kind == DOCUMENT.name).take(works_max) {
        let mapped = maps.doi_of(view, &id)?;
        if let (Some(graph), Some(number)) = (graph, mapped.as_ref().and_then(|it| it.number)) {
            if works.insert(number) {
                rows.push(meta_row(view, maps, graph, number)?);
            }
            continue;
        }
        let Some(it) = document_of(view, &Holding { kind: &DOCUMENT, id })? else { continue };
        let doi = mapped.and_then(|it| Doi::parse_dirty(&it.spelled).ok()).map(|it| format!("doi:{it}"));
        let ids: Vec<String> = doi.into_iter().chain(it.more_ids.iter().cloned()).collect();
        let date = it.date.clone();
        rows.push(it.into_row(ids.join(" "), date));
    }
    Ok(rows)
}

/// Returns how many different works cite the documents that have an ISSN.
pub(crate) fn n_citing_venue(
    view: &mut View<'_>,
    app: &Labe,
    graph: &Graph,
    issn: &str,
) -> Result<usize, StoreError> {
    let works = named_by(view, app, graph, ISSN_SCHEME, issn, app.parts.settings.rows)?;
    let citing: HashSet<u32> = works.into_iter().flat_map(|work| graph.citations(work)).collect();
    Ok(citing.len())
}

/// Returns the description from the first document of a work that is held.
fn described(view: &mut View<'_>, maps: IdMaps<'_>, number: u32) -> Result<Described, StoreError> {
    let mut holdings = Vec::new();
    maps.holdings_of_number(view, number, &mut holdings)?;
    for holding in holdings {
        if let Some(found) = document_of(view, &holding)? {
            return Ok(found);
        }
    }
    Ok(Described::default())
}

fn document_of(view: &mut View<'_>, holding: &Holding) -> Result<Option<Described>, StoreError> {
    let mut text = Vec::new();
    if let Some(record) = view.get(holding.kind, &holding.id)?
        && push_document(holding, &record, &mut text)
        && let Ok(Value::Object(document)) = serde_json::from_slice::<Value>(&text)
    {
        return Ok(Some(Described::of(&document)));
    }
    Ok(None)
}

impl Described {
    /// Returns the row of meta v1.
    fn into_row(self, ids: String, date: String) -> Row {
        vec![
            ids,
            self.title,
            self.author,
            date,
            self.issue,
            self.volume,
            with_ids(self.venue, &self.issns),
            self.kind,
            self.page,
            self.publisher,
            self.editor,
        ]
    }

    fn of(document: &Map<String, Value>) -> Self {
        let first = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| texts(document, name).next());
            found.next().unwrap_or_default().to_owned()
        };
        let all = |name| texts(document, name).collect::<Vec<_>>().join("; ");
        let page = match (first(&["container_start_page"]), first(&["container_end_page"])) {
            (start, end) if !start.is_empty() && !end.is_empty() => format!("{start}-{end}"),
            (start, _) if !start.is_empty() => start,
            _ => first(&["page"]),
        };
        Self {
            more_ids: work_ids(document),
            title: first(&["title"]),
            author: all("author"),
            date: first(&["publishDate", "pub_date"]),
            issue: first(&["container_issue", "issue"]),
            volume: first(&["container_volume", "volume"]),
            venue: first(&["container_title", "venue"]),
            issns: texts(document, "issn").filter_map(issn).map(|it| format!("issn:{it}")).collect(),
            kind: kind(document),
            page,
            publisher: first(&["publisher"]),
            editor: editors(document),
        }
    }
}

/// Formats persons as index v1 did: `Family, Given, ORCID; …`.
fn old_persons(persons: &str) -> String {
    let one = |person: &str| {
        let Some((name, rest)) = person.split_once(" [") else { return person.to_owned() };
        let orcid = rest.trim_end_matches(']').split(' ').find_map(|id| id.strip_prefix("orcid:"));
        orcid.map_or_else(|| name.to_owned(), |orcid| format!("{name}, {orcid}"))
    };
    persons.split("; ").map(one).collect::<Vec<_>>().join("; ")
}

/// Formats the venue as OpenCitations does: `Title [issn:…]`. One that already has identifiers stays unchanged.
fn with_ids(venue: String, ids: &[String]) -> String {
    if venue.is_empty() || ids.is_empty() || venue.ends_with(']') {
        return venue;
    }
    format!("{venue} [{}]", ids.join(" "))
}

/// Returns the type of work in OpenCitations' vocabulary: the one in the document, or else the one that corresponds to
/// its formats.
fn kind(document: &Map<String, Value>) -> String {
    if let Some(said) = texts(document, "type").next() {
        return said.to_owned();
    }
    let word = texts(document, "format").find_map(|format| {
        let format = format.to_lowercase().replace("electronic", "").replace([' ', '-', '_'], "");
        FORMATS.iter().find(|(name, _)| *name == format).map(|(_, word)| *word)
    });
    word.unwrap_or_default().to_owned()
}

/// Formats of `VuFind`'s index, without "electronic", spaces and case, and the corresponding types of OpenCitations.
const FORMATS: [(&str, &str); 20] = [
    ("article", "journal article"),
    ("journalarticle", "journal article"),
    ("book", "book"),
    ("ebook", "book"),
    ("monograph", "monograph"),
    ("bookcomponentpart", "book chapter"),
    ("bookchapter", "book chapter"),
    ("bookpart", "book chapter"),
    ("journal", "journal"),
    ("ejournal", "journal"),
    ("serial", "journal"),
    ("thesis", "dissertation"),
    ("dissertation", "dissertation"),
    ("conferencearticle", "proceedings article"),
    ("proceedingarticle", "proceedings article"),
    ("proceeding", "proceedings"),
    ("conferenceproceedings", "proceedings"),
    ("researchdata", "dataset"),
    ("report", "report"),
    ("preprint", "preprint"),
];

/// Returns the editors: from a field of their own, or else those of the additional persons whose role is editor.
fn editors(document: &Map<String, Value>) -> String {
    let own: Vec<&str> = texts(document, "editor").collect();
    if !own.is_empty() {
        return own.join("; ");
    }
    let is_editor =
        |role: &str| matches!(role.to_lowercase().trim_end_matches('.'), "edt" | "editor" | "ed" | "hrsg");
    let persons = texts(document, "author2").zip(texts(document, "author2_role"));
    let editors: Vec<&str> = persons.filter(|(_, role)| is_editor(role)).map(|(name, _)| name).collect();
    editors.join("; ")
}
