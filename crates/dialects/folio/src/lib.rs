//! The FOLIO dialect: MARC import, inventory and circulation, for many tenants.
//!
//! Behaves like FOLIO's gateway and modules, so that `folioclient`, `folio_data_import` and load scripts work with it
//! unchanged. Most of FOLIO's modules are just collections of records: they are declared as data
//! ([`platform::collection::Collection`], listed in `modules.rs`). What is covered, and where it differs on purpose, is
//! described in `docs/dialects/folio.md`.
//!
//! The families of modules, the lowest first. A family uses only those above it in this table; ARCHITECTURE.md shows
//! which.
//!
//! | folder | what |
//! |---|---|
//! | `platform/` | the gateway: calls, routes, permissions, errors, tenants, settings; collections of records and CQL |
//! | `places.rs`, `vocabularies.rs` | locations, and vocabularies |
//! | `users/` | users, login, permissions, user import, users' own settings |
//! | `configuration/` | site configuration: settings, tags, templates, notes |
//! | `source_records/` | MARC records and their snapshots, and the specifications of MARC records |
//! | `authorities/` | authorities and their source files |
//! | `inventory/` | instances, holdings, items |
//! | `data_import/` | uploads, profiles, mapping, jobs and their logs |
//! | `links/` | links between headings and authorities |
//! | `quick_marc/` | MARC records edited by hand |
//! | `search/` | searching instances and authorities by words, browse lists |
//! | `circulation/` | check-out and check-in: rules, loans, requests, fees, notices, patron blocks |
//! | `queries/` | queries on records by their fields |
//! | `data_export/`, `bulk_edit/`, `oai/` | records as MARC files, bulk changes, harvesting |
//! | `timers/` | when recurring work is due |
//! | `moving.rs` | a tenant's records to a file and back |
//! | `modules.rs`, `routes.rs`, `reference.rs`, `chores.rs` | the wiring: all collections, all routes, the initial data of a tenant, what timers run |

// The fuzz targets use these crate names; here they are compiled as modules of the tests.
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
