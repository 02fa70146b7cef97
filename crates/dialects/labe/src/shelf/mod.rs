//! The shelf: documents of works that can be neighbours, as they are sent, in the order in which answers need them.
//!
//! An answer takes the documents of dozens to ten thousands of works from all over the catalogue. Asked of the store, each
//! costs two searches in a tree; from the shelf it is a number, a place and a copy. The shelf is made from the catalogue and the graph on
//! a thread of its own at the start, and when an answer finds none that is current, in a nameless file that is mapped, and holds in memory 24
//! bytes a document and 4 a DOI. It can only spare work, never change an answer:
//!
//! - An answer uses it only if the graph is the one it was made with, and the sequences of the kinds it was made from are
//!   those of the answer's own snapshot. Until a current one is there, answers come from the store.
//! - After changes of a few records the works of these are *doubtful*: not on the shelf, asked of the store one by one.
//!   When they become many, a new shelf is made.
//! - Doubtful too are works whose records' order is not plain from the tables of ids, works of records of other dialects, and
//!   documents whose institutions cannot be read.
//!
//! | file | what |
//! |---|---|
//! | `make.rs` | making a shelf, and following changes |
//! | `texts.rs` | the file of texts |

mod make;
mod texts;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pinakes_citations::Graph;
use pinakes_store::{StoreError, Tenant, View};

use crate::app::Labe;
use crate::settings::ShelfUse;
use texts::Texts;

/// How many times as long as making a shelf took none is begun.
const REST_TIMES: u32 = 3;
/// Longest such pause.
const REST_MAX: Duration = Duration::from_secs(60);

/// Where a document lies, and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    start: u64,
    len: u32,
    /// Its list of institutions.
    holders: u32,
    /// Of the record's id, to find it again when it changes.
    id_hash: u32,
}

/// Documents by the number of their work.
struct Base {
    /// The identity of its graph.
    graph: u64,
    texts: Texts,
    /// Where the places of a DOI begin, one more than there are DOIs.
    starts: Vec<u32>,
    places: Vec<Place>,
    /// For each institution the lists that it is in.
    held: HashMap<String, Vec<bool>>,
    /// Works that were doubtful when it was made.
    n_doubtful: usize,
}

/// A shelf as it was at a moment of the catalogue.
pub(crate) struct Shelf {
    base: Arc<Base>,
    /// Works that are not to be taken from here.
    doubtful: HashSet<u32>,
    /// The sequence of each kind that it was made from.
    sequences: Vec<u64>,
}

impl Shelf {
    /// The documents of a work, in the order of the maps; `None` if the store must be asked.
    pub(crate) fn of_work(&self, number: u32) -> Option<&[Place]> {
        if !self.doubtful.is_empty() && self.doubtful.contains(&number) {
            return None;
        }
        let number = number as usize;
        let (start, end) = (*self.base.starts.get(number)?, *self.base.starts.get(number + 1)?);
        self.base.places.get(start as usize..end as usize)
    }

    /// A document as it is sent; empty for a record without one.
    pub(crate) fn text(&self, place: &Place) -> &[u8] {
        self.base.texts.at(place.start, place.len)
    }

    /// What an institution holds.
    pub(crate) fn held_by(&self, isil: &str) -> HeldLists<'_> {
        HeldLists(self.base.held.get(isil).map_or(&[], Vec::as_slice))
    }

    /// Whether it is that of a graph and a snapshot.
    fn is_current(&self, app: &Labe, graph: &Arc<Graph>, view: &mut View<'_>) -> Result<bool, StoreError> {
        Ok(self.base.graph == graph.identity() && self.sequences == make::sequences(app, view)?)
    }
}

/// What an institution holds, by lists of institutions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldLists<'s>(&'s [bool]);

impl HeldLists<'_> {
    /// Whether a document is held.
    pub(crate) fn has(self, place: &Place) -> bool {
        self.0.get(place.holders as usize).copied().unwrap_or(false)
    }
}

/// Whether a tenant has a shelf. A database sees writes of other servers in another order than their numbers: there a
/// sequence proves nothing.
fn is_wanted(app: &Labe, tenant: &Tenant) -> bool {
    app.parts.settings.shelf == ShelfUse::Keep && tenant.is_embedded()
}

/// The shelves of all tenants.
#[derive(Default)]
pub(crate) struct Shelves {
    by_tenant: RwLock<HashMap<String, Arc<Slot>>>,
}

/// The shelf of a tenant, and who makes the next one.
#[derive(Default)]
struct Slot {
    shelf: Mutex<Option<Arc<Shelf>>>,
    is_being_made: AtomicBool,
    /// The next one is not begun before: while records change all the time, answers come from the store rather than that
    /// shelves take a core.
    rests_until: Mutex<Option<Instant>>,
}

impl Slot {
    fn get(&self) -> Option<Arc<Shelf>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_resting(&self) -> bool {
        let until = *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn rest(&self, pause: Duration) {
        let until = Instant::now().checked_add(pause.min(REST_MAX));
        *self.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Makes or follows; on failure the log is told, and the store goes on to answer.
    fn renew(&self, app: &Labe, tenant: &Tenant, graph: &Arc<Graph>) {
        let made = make::renewed(app, tenant, graph, self.get().as_deref());
        match &made {
            Ok(_) | Err(make::MakeError::Store(StoreError::Closed)) => {}
            Err(error) => {
                tracing::warn!(tenant = tenant.name(), %error, "the shelf cannot be made; the store answers alone");
            }
        }
        *self.shelf.lock().unwrap_or_else(PoisonError::into_inner) = made.ok().map(Arc::new);
    }
}

impl Shelves {
    /// The shelf for an answer from `view`, if there is a current one; else one is begun.
    pub(crate) fn current(
        &self,
        app: &Labe,
        tenant: &Tenant,
        graph: &Arc<Graph>,
        view: &mut View<'_>,
    ) -> Result<Option<Arc<Shelf>>, StoreError> {
        if !is_wanted(app, tenant) {
            return Ok(None);
        }
        let slot = self.slot(tenant.name());
        if let Some(shelf) = slot.get()
            && shelf.is_current(app, graph, view)?
        {
            return Ok(Some(shelf));
        }
        let is_outdated = slot.get().is_some_and(|shelf| shelf.base.graph != graph.identity());
        if (slot.is_resting() && !is_outdated) || slot.is_being_made.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        if app.parts.settings.shelf_first {
            slot.renew(app, tenant, graph);
            slot.is_being_made.store(false, Ordering::Release);
            let shelf = slot.get();
            let is_current = match &shelf {
                Some(shelf) => shelf.is_current(app, graph, view)?,
                None => false,
            };
            return Ok(shelf.filter(|_| is_current));
        }
        self.begin(app, tenant, graph, &slot);
        Ok(None)
    }

    /// Begins the shelf of the tenant that requests are for unless they name another, before the first one comes.
    pub(crate) fn prepare(&self, app: &Labe) {
        let default = app.context.catalogue().tenant(&app.context.tenants().default);
        let (Some(graph), Ok(tenant)) = (app.graph(), default) else { return };
        if !is_wanted(app, &tenant) || app.parts.settings.shelf_first {
            return;
        }
        let slot = self.slot(tenant.name());
        if !slot.is_being_made.swap(true, Ordering::AcqRel) {
            self.begin(app, &tenant, &graph, &slot);
        }
    }

    fn begin(&self, app: &Labe, tenant: &Tenant, graph: &Arc<Graph>, slot: &Arc<Slot>) {
        let (app, tenant, graph, mine) = (app.clone(), tenant.clone(), graph.clone(), slot.clone());
        let started = std::thread::Builder::new().name("labe-shelf".to_owned()).spawn(move || {
            let begun = Instant::now();
            mine.renew(&app, &tenant, &graph);
            mine.rest(begun.elapsed() * REST_TIMES);
            mine.is_being_made.store(false, Ordering::Release);
        });
        if let Err(error) = started {
            slot.is_being_made.store(false, Ordering::Release);
            tracing::warn!(%error, "no thread for the shelf; the store answers alone");
        }
    }

    fn slot(&self, tenant: &str) -> Arc<Slot> {
        if let Some(slot) = self.by_tenant.read().unwrap_or_else(PoisonError::into_inner).get(tenant) {
            return slot.clone();
        }
        let mut by_tenant = self.by_tenant.write().unwrap_or_else(PoisonError::into_inner);
        by_tenant.entry(tenant.to_owned()).or_default().clone()
    }
}
