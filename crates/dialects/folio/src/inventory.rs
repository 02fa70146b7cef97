//! Inventory: instances, their holdings, their items (section 10 of the contract).
//!
//! | file | what |
//! |---|---|
//! | `instances.rs`, `holdings.rs`, `items.rs` | the three collections and their derived properties |
//! | `relations.rs` | preceding and succeeding titles, instance relationships, bound-with parts |
//! | `hrids.rs`, `shelving.rs` | human-readable ids, shelving order |
//! | `joins.rs`, `kinds.rs` | queries about related records, and how the three collections find each other |
//! | `derived.rs` | properties that items derive from their holdings |
//! | `listed.rs` | their entries in browse lists |
//! | `marc_json.rs` | the MARC record of an instance |
//! | `business.rs` | `/inventory/…`: the same records as staff see them |
//! | `staff_rules.rs` | what staff may not write there |
//! | `moves.rs` | moving holdings and items, marking instances as deleted, bound-withs |
//! | `changes.rs` | partial updates, instances in batches |
//! | `reindex.rs` | jobs that go through all records |
//! | `upkeep.rs` | migrations, settings, instances from a file |
//! | `views.rs` | streams for harvesters and discovery |

pub mod business;
mod call_numbers;
mod changes;
pub(crate) mod derived;
pub(crate) mod harvested;
pub mod holdings;
pub mod hrids;
pub mod instances;
mod isbn;
pub mod items;
pub(crate) mod joins;
pub(crate) mod kinds;
pub(crate) mod listed;
mod marc_json;
mod moves;
pub(crate) mod reindex;
pub mod relations;
pub mod shelving;
mod staff_rules;
pub(crate) mod upkeep;
mod views;

use crate::platform::collection;
use crate::platform::routes::Routes;

/// Adds the routes beyond the collections.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .with(hrids::routes)
        .with(business::routes)
        .with(changes::routes)
        .with(isbn::routes)
        .with(reindex::routes)
        .with(moves::routes)
        .with(upkeep::routes)
        .with(views::routes)
        .with(marc_json::routes)
        .with(|it| collection::batch_routes(it, &instances::INSTANCES, "/instance-storage"))
        .with(|it| collection::batch_routes(it, &holdings::HOLDINGS, "/holdings-storage"))
        .with(|it| collection::batch_routes(it, &items::ITEMS, "/item-storage"))
}
