//! Builds a shelf from the catalogue and a graph, and applies changes to it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use pinakes_citations::Graph;
use pinakes_store::{Class, Expr, Kind, Query, Record, StoreError, Tenant, View};
use serde_json::Value;

use super::texts::{Texts, Writer};
use crate::app::Labe;
use crate::citation::push_document;
use crate::id_maps::{Holding, IdMaps, Rank, Standing};
use crate::kinds::DOCUMENT;
use crate::shelf::places::{Base, Place, Shelf};

/// Number of records read in one step; a snapshot is held no longer than that.
const STEP_RECORDS: u64 = 2_000;
/// Maximum number of changed records that are applied to a shelf; if there are more, a new one is built.
const CHANGES_MAX: u32 = 20_000;
/// Percentage of a shelf's works that may become doubtful before a new one is built.
const DOUBTFUL_PER_CENT: usize = 10;
/// Number of doubtful works that is always acceptable.
const DOUBTFUL_FEW: usize = 1_000;

/// Reason why there is no shelf.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of texts cannot be written.
    #[error(
        "{folder}: {error}; is there room, and may the server write there? Another folder: labe.shelf_folder"
    )]
    Io {
        /// Its folder.
        folder: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// There are more documents than can be numbered.
    #[error("the catalogue has more than {} documents of works in the graph", u32::MAX)]
    TooMany,
}

/// Returns the sequence of each kind that counts.
pub(super) fn sequences(app: &Labe, view: &mut View<'_>) -> Result<Vec<u64>, StoreError> {
    kinds(app).map(|kind| view.kind_sequence(kind)).collect()
}

fn kinds(app: &Labe) -> impl Iterator<Item = &'static Kind> + '_ {
    std::iter::once(&DOCUMENT).chain(app.parts.public_kinds().iter().copied())
}

/// Returns a current shelf: the old one with the changes applied, or a new one.
pub(super) fn renewed(
    app: &Labe,
    tenant: &Tenant,
    graph: &Arc<Graph>,
    old: Option<&Shelf>,
) -> Result<Shelf, MakeError> {
    if let Some(old) = old.filter(|it| it.base.graph == graph.identity())
        && let Some(shelf) = followed(app, tenant, graph, old)?
    {
        return Ok(shelf);
    }
    let begun = Instant::now();
    let sequences = tenant.read_blocking(|view| sequences(app, view))?;
    let made = Making::new(app, tenant, graph)?.run()?;
    let shelf = Shelf { base: Arc::new(made.0), doubtful: made.1, sequences };
    tracing::info!(
        tenant = tenant.name(),
        n_documents = shelf.base.places.len(),
        n_doubtful = shelf.doubtful.len(),
        took_ms = begun.elapsed().as_millis(),
        "the shelf of documents is made"
    );
    // Changes made meanwhile may or may not have been read: their works become doubtful.
    Ok(followed(app, tenant, graph, &shelf)?.unwrap_or(shelf))
}

/// Applies the changes since the shelf was built; `None` if there are too many.
fn followed(app: &Labe, tenant: &Tenant, graph: &Graph, shelf: &Shelf) -> Result<Option<Shelf>, StoreError> {
    let maps = app.parts.maps(Some(graph));
    let seen = shelf.sequences.iter().copied().max().unwrap_or(0);
    tenant.read_blocking(|view| {
        let sequences = sequences(app, view)?;
        let changes = view.changes(seen, CHANGES_MAX)?;
        if CHANGES_MAX as usize <= changes.len() {
            return Ok(None);
        }
        let mut doubtful = shelf.doubtful.clone();
        let mut gone = HashSet::new();
        for change in changes {
            let Some(kind) = kinds(app).find(|kind| kind.name == change.kind) else { continue };
            gone.insert(hash_of(&change.id));
            if let Some(record) = view.get(kind, &change.id)? {
                doubtful.extend(works(maps, kind, &record)?);
            }
        }
        if !gone.is_empty() {
            let of_work = shelf.base.starts.windows(2);
            for (number, bounds) in (0..).zip(of_work) {
                let places = &shelf.base.places[bounds[0] as usize..bounds[1] as usize];
                if places.iter().any(|place| gone.contains(&place.id_hash)) {
                    doubtful.insert(number);
                }
            }
        }
        let doubtful_max = DOUBTFUL_FEW.max(shelf.base.places.len() / 100 * DOUBTFUL_PER_CENT);
        // A new shelf would not reduce the number of works that were doubtful from the start.
        if doubtful_max + shelf.base.n_doubtful < doubtful.len() {
            return Ok(None);
        }
        Ok(Some(Shelf { base: shelf.base.clone(), doubtful, sequences }))
    })
}

/// Returns the works to which a record may belong.
fn works(maps: IdMaps<'_>, kind: &'static Kind, record: &Record) -> Result<Vec<u32>, StoreError> {
    if kind.name == DOCUMENT.name {
        return Ok(maps.work_of(record)?.map(|(number, _)| number).into_iter().collect());
    }
    maps.works_of_public(kind, record)
}

fn hash_of(id: &str) -> u32 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id) as u32
}

/// A document that has been written, before they are sorted.
struct Written {
    number: u32,
    standing: Standing,
    place: Place,
}

struct Making<'a> {
    app: &'a Labe,
    tenant: &'a Tenant,
    graph: &'a Arc<Graph>,
    texts: Writer,
    written: Vec<Written>,
    doubtful: HashSet<u32>,
    lists: Lists,
}

impl<'a> Making<'a> {
    fn new(app: &'a Labe, tenant: &'a Tenant, graph: &'a Arc<Graph>) -> Result<Self, MakeError> {
        let texts = Writer::create_in(&app.parts.settings.shelf_folder()).map_err(|error| io(app, error))?;
        let (written, doubtful, lists) = (Vec::new(), HashSet::new(), Lists::default());
        Ok(Self { app, tenant, graph, texts, written, doubtful, lists })
    }

    fn run(mut self) -> Result<(Base, HashSet<u32>), MakeError> {
        for kind in kinds(self.app) {
            self.read(kind)?;
        }
        self.written.sort_unstable_by_key(|it| (it.number, it.standing));
        let groups = self.written.chunk_by(|a, b| a.number == b.number);
        // The order of records that are in no table is only known to the store.
        let unplain = groups
            .filter(|group| 1 < group.len() && group.iter().any(|it| it.standing.rank == Rank::Catalogue));
        self.doubtful.extend(unplain.map(|group| group[0].number));
        u32::try_from(self.written.len()).map_err(|_| MakeError::TooMany)?;
        let n_dois = usize::try_from(self.graph.n_dois()).unwrap_or(usize::MAX);
        let mut starts = Vec::with_capacity(n_dois.saturating_add(1));
        let mut next = 0;
        for number in 0..=n_dois {
            while self.written.get(next).is_some_and(|it| (it.number as usize) < number) {
                next += 1;
            }
            starts.push(next as u32);
        }
        let places = self.written.iter().map(|it| it.place).collect();
        let texts: Texts = self.texts.finish().map_err(|error| io(self.app, error))?;
        let base = Base {
            graph: self.graph.identity(),
            texts,
            starts,
            places,
            held: self.lists.held,
            n_doubtful: self.doubtful.len(),
        };
        Ok((base, self.doubtful))
    }

    fn read(&mut self, kind: &'static Kind) -> Result<(), MakeError> {
        let mut query = Query { limit: Some(STEP_RECORDS), ..Query::filter(Expr::All) };
        loop {
            let mut records = Vec::new();
            self.tenant.clone().read_blocking(|view| -> Result<(), MakeError> {
                records.clear();
                view.for_each(kind, &query, |record| {
                    records.push(record);
                    ControlFlow::Continue(())
                })?;
                records.iter().try_for_each(|record| self.one(view, kind, record))
            })?;
            match records.last() {
                Some(last) if records.len() as u64 == STEP_RECORDS => query.after = Some(last.cursor()),
                _ => return Ok(()),
            }
        }
    }

    fn one(&mut self, view: &mut View<'_>, kind: &'static Kind, record: &Record) -> Result<(), MakeError> {
        let maps = self.app.parts.maps(Some(self.graph));
        if kind.name != DOCUMENT.name {
            self.doubtful.extend(maps.works_of_public(kind, record)?);
            return Ok(());
        }
        let Some((number, standing)) = maps.work_of(record)? else { return Ok(()) };
        let is_neighbour = 0 < self.graph.references(number).len() || 0 < self.graph.citations(number).len();
        if !is_neighbour {
            return Ok(());
        }
        let Some(holders) = self.lists.number_of(view, record.class)? else {
            self.doubtful.insert(number);
            return Ok(());
        };
        let mut text = Vec::new();
        let holding = Holding { kind, id: String::new() };
        push_document(&holding, record, &mut text);
        let start = self.texts.push(&text).map_err(|error| io(self.app, error))?;
        let len = u32::try_from(text.len()).map_err(|_| MakeError::TooMany)?;
        let place = Place { start, len, holders, id_hash: hash_of(&record.id) };
        self.written.push(Written { number, standing, place });
        Ok(())
    }
}

fn io(app: &Labe, error: std::io::Error) -> MakeError {
    MakeError::Io { folder: app.parts.settings.shelf_folder().display().to_string(), error }
}

/// The numbered lists of institutions, and which of them each institution is in.
#[derive(Default)]
struct Lists {
    numbers: HashMap<Class, Option<u32>>,
    n: u32,
    held: HashMap<String, Vec<bool>>,
}

impl Lists {
    /// Returns the number of a class's list; `None` if the list is invalid.
    fn number_of(&mut self, view: &mut View<'_>, class: Class) -> Result<Option<u32>, StoreError> {
        if let Some(number) = self.numbers.get(&class) {
            return Ok(*number);
        }
        let fields = view.class(&DOCUMENT, class)?;
        let number = match fields.get("institution") {
            None | Some(Value::Null) => Some(self.add(&[])),
            Some(Value::Array(list)) if list.iter().all(|it| it.is_string() || it.is_null()) => {
                Some(self.add(list))
            }
            Some(_) => None,
        };
        self.numbers.insert(class, number);
        Ok(number)
    }

    fn add(&mut self, list: &[Value]) -> u32 {
        let number = self.n;
        self.n += 1;
        for isil in list.iter().filter_map(Value::as_str) {
            let held = self.held.entry(isil.to_owned()).or_default();
            held.resize(number as usize + 1, false);
            held[number as usize] = true;
        }
        number
    }
}
