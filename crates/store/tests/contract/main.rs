//! The store's guarantees, tested on every engine: the embedded one in a temporary folder, and PostgreSQL when
//! `PINAKES_TEST_POSTGRES` names a cluster.

mod bulk;
mod copies;
mod crash;
mod damage;
mod distinct;
#[path = "../support/engine.rs"]
mod engine;
mod engines;
mod folded;
mod formats;
mod joins;
mod kinds;
mod law;
mod leases;
mod lists;
mod long_texts;
mod member_search;
mod members;
mod outages;
mod patience;
mod positions;
mod queries;
mod ranked;
mod records;
mod redeclare;
mod remade;
mod search;
mod search_bounds;
mod search_index;
mod sums;
mod tenants;
mod whole_lists;
mod wire;
mod writes;
