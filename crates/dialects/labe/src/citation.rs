//! The citation document of a record. It is written piece by piece while it is read, so that even a hub's document is
//! never in memory as a whole.
//!
//! ```json
//! {"id":"…","doi":"…","citing":[…],"cited":[…],"unmatched":{"citing":[…],"cited":[…]},"extra":{…}}
//! ```
//!
//! `citing` are the documents of works that the record cites, `cited` those of works that cite it; a work that does
//! both is only listed in `citing`. In memory are four bytes for each neighbour, and up to 64 documents. Order: works
//! by DOI, the records of a work in the order of the maps. With a filter, documents that the institution does not hold
//! are moved, unchanged, to the end of `unmatched`.

use std::time::{Duration, Instant};

use pinakes_citations::Graph;
use pinakes_store::{Record, StoreError, View};

use crate::error::LabeError;
use crate::holder::Holder;
use crate::id_maps::{Holding, IdMaps, Mapped};
use crate::json_text;
use crate::kinds::DOCUMENT;
use crate::shelf::places::{HeldLists, Place, Shelf};

/// Number of documents read in one step.
const STEP: usize = 64;
/// Maximum size of the documents for `unmatched` that are kept in memory, in bytes; if there are more, they are read a
/// second time.
const KEPT_BYTES: usize = 1 << 20;

/// Reason why writing stopped.
pub(crate) enum Stop {
    /// The client has gone away.
    Gone,
    /// An error occurred.
    Failed(LabeError),
}

impl From<LabeError> for Stop {
    fn from(error: LabeError) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Receives bytes of the answer.
pub(crate) type Output<'o> = dyn FnMut(&[u8]) -> Result<(), Stop> + 'o;

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The record.
    pub(crate) id: String,
    /// Its DOI in the map's spelling.
    pub(crate) spelled: String,
    /// The number of its DOI in the graph.
    pub(crate) number: u32,
    /// The institution whose holdings count.
    pub(crate) institution: Option<String>,
    /// When the request arrived.
    pub(crate) started: Instant,
}

impl Question {
    /// Creates the question for a mapped id; `None` if its DOI has neither citations nor references.
    pub(crate) fn of(
        graph: &Graph,
        id: &str,
        mapped: Mapped,
        institution: Option<String>,
        started: Instant,
    ) -> Option<Self> {
        let number = mapped.number?;
        let question = Self { id: id.to_owned(), spelled: mapped.spelled, number, institution, started };
        (0 < question.n_neighbours(graph)).then_some(question)
    }

    /// Returns the total number of citations and references.
    pub(crate) fn n_neighbours(&self, graph: &Graph) -> usize {
        graph.references(self.number).len() + graph.citations(self.number).len()
    }
}

/// Times of what was read for an answer, for the statistics.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// Time spent reading documents.
    pub(crate) documents: Duration,
}

/// Writes the document that answers `question`, taking what it can from `shelf`, if there is a current one.
pub(crate) fn write(
    view: &mut View<'_>,
    maps: IdMaps<'_>,
    graph: &Graph,
    question: &Question,
    shelf: Option<&Shelf>,
    out: &mut Output<'_>,
) -> Result<Reads, Stop> {
    let references: Vec<u32> = graph.references(question.number).collect();
    let institution = question.institution.as_deref();
    let holder = institution.map(Holder::new);
    let held = shelf.zip(institution).map(|(shelf, isil)| shelf.held_by(isil));
    let reads = Reads::default();
    let mut writing = Writing { view, maps, graph, question, shelf, references, holder, held, out, reads };
    writing.document()?;
    Ok(writing.reads)
}

struct Writing<'a, 'v, 'o> {
    view: &'a mut View<'v>,
    maps: IdMaps<'a>,
    graph: &'a Graph,
    question: &'a Question,
    shelf: Option<&'a Shelf>,
    /// In ascending order.
    references: Vec<u32>,
    /// The institution's holdings, for documents read from the store.
    holder: Option<Holder<'a>>,
    /// The same, for documents from the shelf.
    held: Option<HeldLists<'a>>,
    out: &'a mut Output<'o>,
    reads: Reads,
}

/// One of the two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Citing,
    Cited,
}

/// State of a side after its documents have been written.
#[derive(Default)]
struct Rest {
    n_matched: u64,
    /// Works without a record.
    unmatched: Vec<u32>,
    moved: Moved,
}

/// Documents that the institution does not hold, joined by commas.
#[derive(Default)]
struct Moved {
    n: u64,
    kept: Vec<u8>,
    is_over: bool,
}

/// Which documents a walk writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Yes,
    No,
}

impl Writing<'_, '_, '_> {
    fn document(&mut self) -> Result<(), Stop> {
        let mut head = String::from("{\"id\":");
        json_text::push_string(&self.question.id, &mut head);
        head.push_str(",\"doi\":");
        json_text::push_string(&self.question.spelled, &mut head);
        (self.out)(head.as_bytes())?;
        let citing = self.matched(Side::Citing)?;
        let cited = self.matched(Side::Cited)?;
        (self.out)(b",\"unmatched\":{")?;
        self.unmatched(Side::Citing, &citing, "")?;
        let has_citing = !citing.unmatched.is_empty() || 0 < citing.moved.n;
        self.unmatched(Side::Cited, &cited, if has_citing { "," } else { "" })?;
        let tail = self.tail(&citing, &cited);
        (self.out)(tail.as_bytes())
    }

    /// Writes the documents of a side, if there are any.
    fn matched(&mut self, side: Side) -> Result<Rest, Stop> {
        let mut rest = Rest::default();
        self.walk(side, Held::Yes, &mut rest)?;
        if 0 < rest.n_matched {
            (self.out)(b"]")?;
        }
        Ok(rest)
    }

    /// Writes the works of a side that have no document, and then the documents that were moved.
    fn unmatched(&mut self, side: Side, rest: &Rest, before: &str) -> Result<(), Stop> {
        if rest.unmatched.is_empty() && rest.moved.n == 0 {
            return Ok(());
        }
        (self.out)(format!("{before}\"{}\":[", name(side)).as_bytes())?;
        let (mut entry, mut doi) = (String::new(), Vec::new());
        for (place, number) in rest.unmatched.iter().enumerate() {
            entry.clear();
            doi.clear();
            entry.push_str(if place == 0 { "{\"doi_str_mv\":" } else { ",{\"doi_str_mv\":" });
            self.graph.doi_into(*number, &mut doi);
            json_text::push_string(str::from_utf8(&doi).unwrap_or_default(), &mut entry);
            entry.push('}');
            (self.out)(entry.as_bytes())?;
        }
        if 0 < rest.moved.n && !rest.unmatched.is_empty() {
            (self.out)(b",")?;
        }
        if rest.moved.is_over {
            self.walk(side, Held::No, &mut Rest::default())?;
        } else {
            (self.out)(&rest.moved.kept)?;
        }
        (self.out)(b"]")
    }

    fn tail(&self, citing: &Rest, cited: &Rest) -> String {
        let n_unmatched = |rest: &Rest| rest.unmatched.len() as u64 + rest.moved.n;
        let mut tail = format!(
            "}},\"extra\":{{\"unmatched_citing_count\":{},\"unmatched_cited_count\":{},\"citing_count\":{},\
             \"cited_count\":{},\"cached\":false,\"took\":{:.9}",
            n_unmatched(citing),
            n_unmatched(cited),
            citing.n_matched,
            cited.n_matched,
            self.question.started.elapsed().as_secs_f64()
        );
        if let Some(isil) = &self.question.institution {
            tail.push_str(",\"institution\":");
            json_text::push_string(isil, &mut tail);
        }
        tail.push_str("}}\n");
        tail
    }

    /// Visits the works of a side and writes the documents that are held, or those that are not.
    fn walk(&mut self, side: Side, held: Held, rest: &mut Rest) -> Result<(), Stop> {
        let mut waiting = Vec::new();
        for number in self.works(side) {
            if let Some(places) = self.shelf.and_then(|shelf| shelf.of_work(number)) {
                self.step(std::mem::take(&mut waiting), side, held, rest)?;
                self.shelved(number, places, side, held, rest)?;
                continue;
            }
            let n_waiting = waiting.len();
            self.maps.holdings_of_number(self.view, number, &mut waiting)?;
            if waiting.len() == n_waiting {
                rest.unmatched.push(number);
            }
            while STEP <= waiting.len() {
                let later = waiting.split_off(STEP);
                self.step(std::mem::replace(&mut waiting, later), side, held, rest)?;
            }
        }
        self.step(waiting, side, held, rest)
    }

    /// Returns the works of a side in ascending order.
    fn works(&self, side: Side) -> Vec<u32> {
        match side {
            Side::Citing => self.references.clone(),
            Side::Cited => {
                let citations = self.graph.citations(self.question.number);
                citations.filter(|it| self.references.binary_search(it).is_err()).collect()
            }
        }
    }

    /// Writes the documents of a work that are on the shelf.
    fn shelved(
        &mut self,
        number: u32,
        places: &[Place],
        side: Side,
        held: Held,
        rest: &mut Rest,
    ) -> Result<(), Stop> {
        let Some(shelf) = self.shelf else { return Ok(()) };
        if places.is_empty() && held == Held::Yes && !self.maps.has_id(number) {
            rest.unmatched.push(number);
        }
        for place in places {
            let text = shelf.text(place);
            // A record without a text only maps an id to a DOI.
            if text.is_empty() {
                continue;
            }
            let is_held = self.held.is_none_or(|lists| lists.has(place));
            self.put(text, is_held, side, held, rest)?;
        }
        Ok(())
    }

    /// Reads and writes the documents of some records, in order.
    fn step(&mut self, records: Vec<Holding>, side: Side, held: Held, rest: &mut Rest) -> Result<(), Stop> {
        if records.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let ids: Vec<String> = records.iter().filter(|it| it.is_document()).map(|it| it.id.clone()).collect();
        let mut documents = self.view.get_many(&DOCUMENT, &ids)?.into_iter();
        self.reads.documents += begun.elapsed();
        for holding in records {
            let document = match holding.is_document() {
                true => documents.next().flatten(),
                false => self.view.get(holding.kind, &holding.id)?,
            };
            if let Some(document) = document {
                self.one(&holding, &document, side, held, rest)?;
            }
        }
        Ok(())
    }

    fn one(
        &mut self,
        holding: &Holding,
        document: &Record,
        side: Side,
        held: Held,
        rest: &mut Rest,
    ) -> Result<(), Stop> {
        let mut text = Vec::new();
        // A record without a text only maps an id to a DOI.
        if !push_document(holding, document, &mut text) {
            return Ok(());
        }
        let is_held = self.is_held(holding, document)?;
        self.put(&text, is_held, side, held, rest)
    }

    /// Writes a document if this walk includes it.
    fn put(
        &mut self,
        text: &[u8],
        is_held: bool,
        side: Side,
        held: Held,
        rest: &mut Rest,
    ) -> Result<(), Stop> {
        if is_held {
            if held == Held::Yes {
                rest.n_matched += 1;
                (self.out)(if rest.n_matched == 1 { before_first(side) } else { b"," })?;
                (self.out)(text)?;
            }
            return Ok(());
        }
        rest.moved.n += 1;
        match held {
            Held::Yes => rest.moved.keep(text),
            Held::No => {
                if 1 < rest.moved.n {
                    (self.out)(b",")?;
                }
                (self.out)(text)?;
            }
        }
        Ok(())
    }

    fn is_held(&mut self, holding: &Holding, document: &Record) -> Result<bool, LabeError> {
        match &mut self.holder {
            None => Ok(true),
            // Records of other dialects name no institution.
            Some(_) if !holding.is_document() => Ok(false),
            Some(holder) => holder.holds(self.view, document),
        }
    }
}

impl Moved {
    fn keep(&mut self, text: &[u8]) {
        if self.is_over || KEPT_BYTES < self.kept.len() + text.len() {
            self.is_over = true;
            self.kept = Vec::new();
            return;
        }
        if !self.kept.is_empty() {
            self.kept.push(b',');
        }
        self.kept.extend_from_slice(text);
    }
}

/// Appends a document as it is sent; returns `false` if the record has none.
pub(crate) fn push_document(holding: &Holding, record: &Record, text: &mut Vec<u8>) -> bool {
    if holding.is_document() {
        return crate::envelope::push_text(&record.body, text);
    }
    let Ok(body) = str::from_utf8(&record.body) else { return false };
    let mut escaped = String::with_capacity(body.len());
    json_text::compact_into(body, &mut escaped);
    text.extend_from_slice(escaped.as_bytes());
    true
}

fn before_first(side: Side) -> &'static [u8] {
    match side {
        Side::Citing => b",\"citing\":[",
        Side::Cited => b",\"cited\":[",
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Citing => "citing",
        Side::Cited => "cited",
    }
}
