//! The mapping of local ids to DOIs, and back: three maps, of which the first one that contains an id decides.
//!
//! 1. The table in the graph file, 2. the table `labe.ids`, 3. the catalogue itself: DOIs in documents, and in records of
//!    the kinds `labe.public_kinds` of other dialects. Ids are compared byte by byte, DOIs in their normalised form.

use pinakes_citations::{Doi, Graph};
use pinakes_store::{Kind, Record, StoreError, View};
use serde_json::Value;

use crate::doi::exact_of;
use crate::envelope;
use crate::extra_ids::ExtraIds;
use crate::kinds::DOCUMENT;
use crate::settings::CatalogueIds;

/// The scheme under which records of all dialects declare their DOI.
const DOI_SCHEME: &str = "doi";

/// The maps of one request.
#[derive(Clone, Copy)]
pub(crate) struct IdMaps<'a> {
    pub(crate) graph: Option<&'a Graph>,
    pub(crate) extra: &'a ExtraIds,
    pub(crate) catalogue: CatalogueIds,
    pub(crate) public_kinds: &'a [&'static Kind],
}

/// The DOI of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// In the map's spelling.
    pub(crate) spelled: String,
    /// Its work in the graph, if it is in the graph.
    pub(crate) number: Option<u32>,
}

/// A record that has a DOI.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) kind: &'static Kind,
    pub(crate) id: String,
}

/// The position of a record among those with the same DOI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// In the graph's table, at this position among the ids of its DOI.
    Graph(u32),
    /// In the additional table, at this position among the ids of its DOI.
    Extra(u32),
    /// By its own DOI; records with the same DOI come in the order of the store's identifiers.
    Catalogue,
}

/// The position of a record among those of all DOIs of a work: records with its first DOI come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    /// 0 for the work's first DOI, otherwise the position of the other DOI, from 1.
    doi: u32,
    pub(crate) rank: Rank,
}

impl Holding {
    /// Says whether it is a catalogue document rather than a record of another dialect.
    pub(crate) fn is_document(&self) -> bool {
        self.kind.name == DOCUMENT.name
    }
}

impl IdMaps<'_> {
    /// Returns the DOI of a local id.
    pub(crate) fn doi_of(&self, view: &mut View<'_>, id: &str) -> Result<Option<Mapped>, StoreError> {
        if let Some(mapped) = self.doi_in_tables(id) {
            return Ok(Some(mapped));
        }
        if self.catalogue == CatalogueIds::Use
            && let Some(record) = view.get(&DOCUMENT, id)?
            && let Some((doi, spelled)) = envelope::doi_of(&record.json()?)
        {
            return Ok(Some(self.mapped(&doi, spelled)));
        }
        for kind in self.public_kinds {
            if let Some(record) = view.get(kind, id)?
                && let Some((doi, spelled)) = doi_in_record(kind, &record.json()?)
            {
                return Ok(Some(self.mapped(&doi, spelled)));
            }
        }
        Ok(None)
    }

    /// Appends the records that have a work's DOIs, in the order of the maps.
    pub(crate) fn holdings_of_number(
        &self,
        view: &mut View<'_>,
        number: u32,
        holdings: &mut Vec<Holding>,
    ) -> Result<(), StoreError> {
        let Some(graph) = self.graph else { return Ok(()) };
        push_graph_ids(graph, number, holdings);
        if self.asks_by_text() {
            let doi = graph.doi(number).unwrap_or_default();
            self.push_by_text(view, &doi, holdings)?;
        }
        for doi in graph.other_dois(number) {
            if let Some(own) = graph.own_number_of(&doi) {
                push_graph_ids(graph, own, holdings);
            }
            if self.asks_by_text() {
                self.push_by_text(view, &doi, holdings)?;
            }
        }
        Ok(())
    }

    /// Returns the records that have a normalised DOI, in the order of the maps.
    pub(crate) fn holdings_of(&self, view: &mut View<'_>, doi: &str) -> Result<Vec<Holding>, StoreError> {
        let mut holdings = Vec::new();
        if let Some(graph) = self.graph
            && let Some(number) = graph.own_number_of(doi)
        {
            push_graph_ids(graph, number, &mut holdings);
        }
        self.push_by_text(view, doi, &mut holdings)?;
        Ok(holdings)
    }

    fn asks_by_text(&self) -> bool {
        !self.extra.is_empty() || self.catalogue == CatalogueIds::Use || !self.public_kinds.is_empty()
    }

    /// Appends the records that the maps after the graph's give.
    fn push_by_text(
        &self,
        view: &mut View<'_>,
        doi: &str,
        holdings: &mut Vec<Holding>,
    ) -> Result<(), StoreError> {
        let ids = self.extra.ids_of(doi).iter().filter(|id| !self.graph_knows(id));
        holdings.extend(ids.map(|id| Holding { kind: &DOCUMENT, id: id.to_string() }));
        if self.catalogue == CatalogueIds::Ignore && self.public_kinds.is_empty() {
            return Ok(());
        }
        for (kind, id) in view.by_identifier(DOI_SCHEME, doi)? {
            let is_own = self.catalogue == CatalogueIds::Use && kind == DOCUMENT.name;
            let found = self.public_kinds.iter().copied().find(|it| it.name == kind);
            let Some(kind) = found.or(is_own.then_some(&DOCUMENT)) else { continue };
            // A table that contains the id decides, even if it names another DOI.
            if !self.graph_knows(&id) && self.extra.doi_of(&id).is_none() {
                holdings.push(Holding { kind, id });
            }
        }
        Ok(())
    }

    /// Returns the DOI of a local id from the graph's table or the additional one.
    pub(crate) fn doi_in_tables(&self, id: &str) -> Option<Mapped> {
        if let Some(graph) = self.graph
            && let Some(local) = graph.local_id_number(id.as_bytes())
            && let Some(number) = graph.doi_of_local_id(local)
        {
            let doi = graph.doi(number)?;
            let spelled = graph.spelling(local).map_or_else(|| doi.clone(), str::to_owned);
            let number = self.number_of(&doi, &spelled);
            return Some(Mapped { spelled, number });
        }
        let entry = self.extra.doi_of(id)?;
        Some(self.mapped(&entry.doi, entry.spelled.to_string()))
    }

    /// Returns the work of a catalogue document, and the document's position among those of the work; `None` if it is
    /// not in the graph. This is the inverse of [`IdMaps::holdings_of_number`].
    pub(crate) fn work_of(&self, document: &Record) -> Result<Option<(u32, Standing)>, StoreError> {
        let Some(graph) = self.graph else { return Ok(None) };
        if let Some(local) = graph.local_id_number(document.id.as_bytes()) {
            let Some(number) = graph.doi_of_local_id(local) else { return Ok(None) };
            let place = graph.local_ids(number).position(|it| it == local).unwrap_or(0);
            let rank = Rank::Graph(u32::try_from(place).unwrap_or(u32::MAX));
            let doi = graph.doi(number).unwrap_or_default();
            return Ok(Some(standing(graph, graph.work_of(number), &doi, rank)));
        }
        if let Some(entry) = self.extra.doi_of(&document.id) {
            let doi = exact_of(&entry.spelled).filter(|it| graph.own_number_of(it).is_some());
            let doi = doi.unwrap_or_else(|| entry.doi.to_string());
            let place = self.extra.ids_of(&doi).iter().position(|id| **id == *document.id).unwrap_or(0);
            let rank = Rank::Extra(u32::try_from(place).unwrap_or(u32::MAX));
            return Ok(graph.number_of(&doi).map(|number| standing(graph, number, &doi, rank)));
        }
        if self.catalogue == CatalogueIds::Ignore {
            return Ok(None);
        }
        let Some((doi, spelled)) = envelope::doi_of(&document.json()?) else { return Ok(None) };
        let doi = exact_of(&spelled).filter(|it| graph.own_number_of(it).is_some()).unwrap_or(doi);
        Ok(graph.number_of(&doi).map(|number| standing(graph, number, &doi, Rank::Catalogue)))
    }

    /// Returns the works whose DOIs a record of another dialect names.
    pub(crate) fn works_of_public(
        &self,
        kind: &'static Kind,
        record: &Record,
    ) -> Result<Vec<u32>, StoreError> {
        let Some(graph) = self.graph else { return Ok(Vec::new()) };
        let body = record.json()?;
        let paths = kind.identifiers.iter().filter(|it| it.scheme == DOI_SCHEME);
        let mut texts = Vec::new();
        for identifier in paths {
            let steps: Vec<&str> = identifier.path.split('.').collect();
            push_texts(&body, &steps, &mut texts);
        }
        let dois = texts.into_iter().filter_map(|text| Doi::parse_dirty(text).ok());
        Ok(dois.filter_map(|doi| graph.number_of(doi.as_str())).collect())
    }

    /// Says whether a work without a record has an id, whether or not there is a document.
    pub(crate) fn has_id(&self, number: u32) -> bool {
        let Some(graph) = self.graph else { return false };
        let has_own = |number| 0 < graph.local_ids(number).len();
        let is_in_extra = |doi: &str| self.extra.ids_of(doi).iter().any(|id| !self.graph_knows(id));
        if has_own(number) {
            return true;
        }
        if !self.extra.is_empty() && is_in_extra(&graph.doi(number).unwrap_or_default()) {
            return true;
        }
        let others = graph.other_dois(number);
        others.iter().any(|doi| graph.own_number_of(doi).is_some_and(has_own) || is_in_extra(doi))
    }

    fn mapped(&self, doi: &str, spelled: String) -> Mapped {
        let number = self.number_of(doi, &spelled);
        Mapped { spelled, number }
    }

    /// Returns the work of a DOI: of the DOI as it is spelt, with trailing punctuation, if that has neighbours in the
    /// graph; otherwise of the trimmed DOI.
    fn number_of(&self, doi: &str, spelled: &str) -> Option<u32> {
        let graph = self.graph?;
        let exact = exact_of(spelled).filter(|it| it != doi);
        let exact = exact.and_then(|it| graph.number_of(&it)).filter(|it| graph.has_neighbours(*it));
        exact.or_else(|| graph.number_of(doi))
    }

    fn graph_knows(&self, id: &str) -> bool {
        self.graph.is_some_and(|graph| graph.local_id_number(id.as_bytes()).is_some())
    }
}

/// Returns a work, and the position of a record with its DOI `doi`.
fn standing(graph: &Graph, number: u32, doi: &str, rank: Rank) -> (u32, Standing) {
    let others = graph.other_dois(number);
    let place = others.iter().position(|it| it == doi).map_or(0, |place| place + 1);
    (number, Standing { doi: u32::try_from(place).unwrap_or(u32::MAX), rank })
}

fn push_graph_ids(graph: &Graph, number: u32, holdings: &mut Vec<Holding>) {
    for local in graph.local_ids(number) {
        let mut id = Vec::new();
        // An id that is not UTF-8 cannot be that of a record in the store.
        if graph.local_id_into(local, &mut id).is_some()
            && let Ok(id) = String::from_utf8(id)
        {
            holdings.push(Holding { kind: &DOCUMENT, id });
        }
    }
}

/// Collects the texts at a path, descending into lists.
fn push_texts<'b>(body: &'b Value, steps: &[&str], texts: &mut Vec<&'b str>) {
    match (body, steps) {
        (Value::Array(list), _) => list.iter().for_each(|it| push_texts(it, steps, texts)),
        (Value::String(text), []) => texts.push(text),
        (Value::Object(map), [first, rest @ ..]) => {
            if let Some(value) = map.get(*first) {
                push_texts(value, rest, texts);
            }
        }
        _ => {}
    }
}

/// Returns the DOI of a record of another dialect, according to its kind's declaration.
fn doi_in_record(kind: &Kind, body: &Value) -> Option<(String, String)> {
    let mut texts = Vec::new();
    for identifier in kind.identifiers.iter().filter(|it| it.scheme == DOI_SCHEME) {
        let steps: Vec<&str> = identifier.path.split('.').collect();
        push_texts(body, &steps, &mut texts);
    }
    let mut dois = texts.into_iter().filter_map(|text| Some((Doi::parse_dirty(text).ok()?, text)));
    dois.next().map(|(doi, text)| (doi.as_str().to_owned(), text.to_owned()))
}
