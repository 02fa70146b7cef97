//! The FOLIO dialect: MARC import, inventory and circulation, for many tenants.
//!
//! Speaks as FOLIO's gateway and modules do, so that `folioclient`, `folio_data_import` and load scripts are pointed
//! at it unchanged. Most of FOLIO's modules are collections of records and nothing else: they are declared as data
//! ([`platform::collection::Collection`], listed in `modules.rs`). What is covered, and where it differs on purpose,
//! stands in `docs/dialects/folio.md`.
//!
//! The families of modules, the lowest first. A family knows those above it in this table; ARCHITECTURE.md shows which.
//!
//! | folder | what |
//! |---|---|
//! | `platform/` | the gateway: calls, routes, permissions, errors, tenants, settings; collections of records and CQL |
//! | `places.rs`, `vocabularies.rs` | where things are, what they are called |
//! | `users/` | users, logging in, permissions, user import, users' own settings |
//! | `configuration/` | what a site configures: settings, tags, templates, notes |
//! | `source_records/` | MARC records and their snapshots, and what a MARC record may have |
//! | `authorities/` | authorities and the files they come from |
//! | `inventory/` | instances, holdings, items |
//! | `data_import/` | uploads, profiles, mapping, jobs and their logs |
//! | `links/` | links between headings and authorities |
//! | `quick_marc/` | MARC records edited by hand |
//! | `search/` | finding instances and authorities by words, lists to browse |
//! | `circulation/` | check-out and check-in: rules, loans, requests, fees, notices, patron blocks |
//! | `queries/` | asking about records by their fields |
//! | `data_export/`, `bulk_edit/`, `oai/` | records as MARC files, many records changed alike, harvesting |
//! | `timers/` | when what is done from time to time is due |
//! | `moving.rs` | a tenant's records to a file and back |
//! | `modules.rs`, `routes.rs`, `reference.rs`, `chores.rs` | the wiring: every collection, every route, what is there in a new tenant, what timers do |

// By these names the fuzz targets call what they use; they are modules of the tests.
#[cfg(test)]
extern crate pinakes_test_support as libfuzzer_sys;
#[cfg(test)]
extern crate self as pinakes_folio;

pub mod authorities;
mod bulk_edit;
mod chores;
mod circulation;
pub mod configuration;
mod data_export;
pub mod data_import;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
pub mod inventory;
mod links;
mod modules;
pub mod moving;
mod oai;
pub mod places;
pub mod platform;
mod queries;
mod quick_marc;
pub mod reference;
pub mod routes;
mod search;
mod source_records;
pub mod timers;
pub mod users;
pub mod vocabularies;

pub use modules::kinds;
pub use platform::settings::Settings;
pub use routes::mount;
