//! The HTTP API below `/topics/v1` (section 10 of the contract). Ids contain slashes, so they are sent as parameters.

mod arcs;
mod batch;
mod exchange;
mod finding;
mod members;
mod neighbours;
mod pointing;
pub(crate) mod position;
mod topics;

use axum::Router;

use crate::app::Conclave;

pub(crate) use exchange::written;
pub(crate) use finding::Search;
pub(crate) use neighbours::{Which, navigation_view, pointing_page};

pub(crate) fn routes() -> Router<Conclave> {
    Router::new()
        .merge(topics::routes())
        .merge(finding::routes())
        .merge(members::routes())
        .merge(arcs::routes())
        .merge(neighbours::routes())
        .merge(pointing::routes())
        .merge(batch::routes())
        .merge(exchange::routes())
}
