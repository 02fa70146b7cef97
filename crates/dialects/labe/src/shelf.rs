//! The shelf: documents of works that can be neighbours, ready to be sent, in the order in which answers need them.
//!
//! An answer contains the documents of dozens to tens of thousands of works from all over the catalogue. In the store,
//! each needs two searches in a tree; on the shelf it is a number, a position and a copy. The shelf is built from the
//! catalogue and the graph on a separate thread at the start, and whenever an answer finds no current one, in an
//! unnamed file that is memory-mapped. It takes 24 bytes of memory per document and 4 per DOI. It only saves work and
//! never changes an answer:
//!
//! - An answer uses it only if it was built with the same graph, and if the sequences of its kinds equal those of the
//!   answer's own snapshot. Until there is a current one, answers come from the store.
//! - After changes of a few records their works are *doubtful*: not taken from the shelf, but read from the store one
//!   by one. When there are many of them, a new shelf is built.
//! - Also doubtful are works whose records' order cannot be determined from the tables of ids, works of records of
//!   other dialects, and documents whose institutions are invalid.
//!
//! | file | what |
//! |---|---|
//! | `make.rs` | building a shelf, and applying changes |
//! | `texts.rs` | the file of texts |

mod make;
pub(crate) mod places;
pub(crate) mod slots;
mod texts;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use pinakes_citations::Graph;
use pinakes_store::{StoreError, Tenant, View};

use crate::app::Labe;
use crate::settings::ShelfUse;
use crate::shelf::places::Shelf;
use crate::shelf::slots::{Shelves, Slot};

/// After a shelf was built, the next one is started no earlier than this multiple of the time that it took.
const REST_TIMES: u32 = 3;

/// Says whether a tenant has a shelf. In a database, writes of other servers become visible in an order different from
/// their numbers, so there a sequence proves nothing.
fn is_wanted(app: &Labe, tenant: &Tenant) -> bool {
    app.parts.settings.shelf == ShelfUse::Keep && tenant.is_embedded()
}

impl Shelf {
    /// Says whether the shelf belongs to a graph and a snapshot.
    fn is_current(&self, app: &Labe, graph: &Arc<Graph>, view: &mut View<'_>) -> Result<bool, StoreError> {
        Ok(self.base.graph == graph.identity() && self.sequences == make::sequences(app, view)?)
    }
}

impl Slot {
    /// Builds a shelf or applies changes; a failure is logged, and the store continues to answer.
    fn renew(&self, app: &Labe, tenant: &Tenant, graph: &Arc<Graph>) {
        let made = make::renewed(app, tenant, graph, self.get().as_deref());
        match &made {
            Ok(_) | Err(make::MakeError::Store(StoreError::Closed)) => {}
            Err(error) => {
                tracing::warn!(tenant = tenant.name(), %error, "the shelf cannot be built; answers come from the store");
            }
        }
        *self.shelf.lock().unwrap_or_else(PoisonError::into_inner) = made.ok().map(Arc::new);
    }
}

impl Shelves {
    /// Returns the shelf for an answer from `view` if there is a current one; otherwise starts to build one.
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

    /// Starts to build the default tenant's shelf before its first request arrives.
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
            tracing::warn!(%error, "no thread could be started for the shelf; answers come from the store");
        }
    }
}
