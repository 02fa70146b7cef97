//! Running the installation: `/api/admin`. Who may call it is decided in `gate.rs`, before any of its handlers is reached.

pub(crate) mod accounts;
mod checks;
mod index;
mod integrity;
pub(crate) mod misc;
pub(crate) mod storage_sites;

use crate::routing::Routes;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(accounts::routes)
        .with(misc::routes)
        .with(index::routes)
        .with(integrity::routes)
        .with(checks::routes)
        .with(storage_sites::routes)
}
