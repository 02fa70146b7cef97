//! Which local id has which DOI, and back: three maps, of which the first one that knows an id decides.
//!
//! 1. The table in the graph file, 2. the table `labe.ids`, 3. the catalogue itself: DOIs that documents carry, and those
//!    of the kinds `labe.public_kinds` of other dialects. Ids match byte for byte; DOIs meet in their normal form.

use pinakes_citations::{Doi, Graph};
use pinakes_store::{Kind, Record, StoreError, View};
use serde_json::Value;

use crate::envelope;
use crate::extra_ids::ExtraIds;
use crate::kinds::DOCUMENT;
use crate::settings::CatalogueIds;

/// The scheme under which records of all dialects name their DOI.
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
    /// Normalised.
    pub(crate) doi: String,
    /// As the map spells it.
    pub(crate) spelled: String,
    /// In the graph, if it is there.
    pub(crate) number: Option<u32>,
}

/// A record that has a DOI.
#[derive(Debug, Clone)]
pub(crate) struct Holding {
    pub(crate) kind: &'static Kind,
    pub(crate) id: String,
}

/// Where a record stands among those of one DOI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// In the graph's table, at this place among the ids of its DOI.
    Graph(u32),
    /// In the table beside it, likewise.
    Extra(u32),
    /// By its own word; records of one DOI stand in the order of the store's identifiers.
    Catalogue,
}

impl Holding {
    /// Whether it is a catalogue document, not another dialect's record.
    pub(crate) fn is_document(&self) -> bool {
        self.kind.name == DOCUMENT.name
    }
}

impl IdMaps<'_> {
    /// The DOI of a local id.
    pub(crate) fn doi_of(&self, view: &mut View<'_>, id: &str) -> Result<Option<Mapped>, StoreError> {
        if let Some(mapped) = self.doi_in_tables(id) {
            return Ok(Some(mapped));
        }
        if self.catalogue == CatalogueIds::Use
            && let Some(record) = view.get(&DOCUMENT, id)?
            && let Some((doi, spelled)) = envelope::doi_of(&record.json()?)
        {
            return Ok(Some(self.mapped(doi, spelled)));
        }
        for kind in self.public_kinds {
            if let Some(record) = view.get(kind, id)?
                && let Some((doi, spelled)) = doi_in_record(kind, &record.json()?)
            {
                return Ok(Some(self.mapped(doi, spelled)));
            }
        }
        Ok(None)
    }

    /// Appends the records that have a DOI, in the order of the maps.
    pub(crate) fn holdings_of_number(
        &self,
        view: &mut View<'_>,
        number: u32,
        holdings: &mut Vec<Holding>,
    ) -> Result<(), StoreError> {
        let Some(graph) = self.graph else { return Ok(()) };
        push_graph_ids(graph, number, holdings);
        if !self.asks_by_text() {
            return Ok(());
        }
        let doi = graph.doi(number).unwrap_or_default();
        self.push_by_text(view, &doi, holdings)
    }

    /// The records that have a normalised DOI, in the order of the maps.
    pub(crate) fn holdings_of(&self, view: &mut View<'_>, doi: &str) -> Result<Vec<Holding>, StoreError> {
        let mut holdings = Vec::new();
        if let Some(graph) = self.graph
            && let Some(number) = graph.number_of(doi)
        {
            push_graph_ids(graph, number, &mut holdings);
        }
        self.push_by_text(view, doi, &mut holdings)?;
        Ok(holdings)
    }

    fn asks_by_text(&self) -> bool {
        !self.extra.is_empty() || self.catalogue == CatalogueIds::Use || !self.public_kinds.is_empty()
    }

    /// From the maps behind the graph's.
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
            // A table that knows the id decides, also if it names another DOI.
            if !self.graph_knows(&id) && self.extra.doi_of(&id).is_none() {
                holdings.push(Holding { kind, id });
            }
        }
        Ok(())
    }

    /// The DOI of a local id by the graph's table or the one beside it.
    pub(crate) fn doi_in_tables(&self, id: &str) -> Option<Mapped> {
        if let Some(graph) = self.graph
            && let Some(local) = graph.local_id_number(id.as_bytes())
            && let Some(number) = graph.doi_of_local_id(local)
        {
            let doi = graph.doi(number)?;
            let spelled = graph.spelling(local).map_or_else(|| doi.clone(), str::to_owned);
            return Some(Mapped { doi, spelled, number: Some(number) });
        }
        let entry = self.extra.doi_of(id)?;
        Some(self.mapped(entry.doi.to_string(), entry.spelled.to_string()))
    }

    /// The work of a catalogue document, and where the document stands among those of its DOI; `None` if it is not in the
    /// graph. What [`IdMaps::holdings_of_number`] gives for a number, seen from the document.
    pub(crate) fn work_of(&self, document: &Record) -> Result<Option<(u32, Rank)>, StoreError> {
        let Some(graph) = self.graph else { return Ok(None) };
        if let Some(local) = graph.local_id_number(document.id.as_bytes()) {
            let number = graph.doi_of_local_id(local);
            let place = |number| graph.local_ids(number).position(|it| it == local).unwrap_or(0);
            return Ok(number.map(|number| (number, Rank::Graph(place(number) as u32))));
        }
        if let Some(entry) = self.extra.doi_of(&document.id) {
            let place = self.extra.ids_of(&entry.doi).iter().position(|id| **id == *document.id).unwrap_or(0);
            return Ok(graph.number_of(&entry.doi).map(|number| (number, Rank::Extra(place as u32))));
        }
        if self.catalogue == CatalogueIds::Ignore {
            return Ok(None);
        }
        let doi = envelope::doi_of(&document.json()?);
        Ok(doi.and_then(|(doi, _)| graph.number_of(&doi)).map(|number| (number, Rank::Catalogue)))
    }

    /// The works whose DOIs a record of another dialect names.
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

    /// Whether a work has an id, be there a document or not. For works without a record.
    pub(crate) fn has_id(&self, number: u32) -> bool {
        let Some(graph) = self.graph else { return false };
        if 0 < graph.local_ids(number).len() {
            return true;
        }
        if self.extra.is_empty() {
            return false;
        }
        let doi = graph.doi(number).unwrap_or_default();
        self.extra.ids_of(&doi).iter().any(|id| !self.graph_knows(id))
    }

    fn mapped(&self, doi: String, spelled: String) -> Mapped {
        let number = self.graph.and_then(|graph| graph.number_of(&doi));
        Mapped { doi, spelled, number }
    }

    fn graph_knows(&self, id: &str) -> bool {
        self.graph.is_some_and(|graph| graph.local_id_number(id.as_bytes()).is_some())
    }
}

fn push_graph_ids(graph: &Graph, number: u32, holdings: &mut Vec<Holding>) {
    for local in graph.local_ids(number) {
        let mut id = Vec::new();
        // An id that is not UTF-8 names no record of the store.
        if graph.local_id_into(local, &mut id).is_some()
            && let Ok(id) = String::from_utf8(id)
        {
            holdings.push(Holding { kind: &DOCUMENT, id });
        }
    }
}

/// The texts at a path; a list on the way is entered.
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

/// The DOI that a record of another dialect carries, by its kind's declaration.
fn doi_in_record(kind: &Kind, body: &Value) -> Option<(String, String)> {
    let mut texts = Vec::new();
    for identifier in kind.identifiers.iter().filter(|it| it.scheme == DOI_SCHEME) {
        let steps: Vec<&str> = identifier.path.split('.').collect();
        push_texts(body, &steps, &mut texts);
    }
    let mut dois = texts.into_iter().filter_map(|text| Some((Doi::parse_dirty(text).ok()?, text)));
    dois.next().map(|(doi, text)| (doi.as_str().to_owned(), text.to_owned()))
}
