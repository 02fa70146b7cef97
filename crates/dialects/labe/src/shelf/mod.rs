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

/// How many times as long as making a shelf took none is begun.
const REST_TIMES: u32 = 3;

/// Whether a tenant has a shelf. A database sees writes of other servers in another order than their numbers: there a
/// sequence proves nothing.
fn is_wanted(app: &Labe, tenant: &Tenant) -> bool {
    app.parts.settings.shelf == ShelfUse::Keep && tenant.is_embedded()
}

impl Shelf {
    /// Whether it is that of a graph and a snapshot.
    fn is_current(&self, app: &Labe, graph: &Arc<Graph>, view: &mut View<'_>) -> Result<bool, StoreError> {
        Ok(self.base.graph == graph.identity() && self.sequences == make::sequences(app, view)?)
    }
}

impl Slot {
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
}
