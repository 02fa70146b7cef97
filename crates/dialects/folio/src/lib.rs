//! The FOLIO dialect: MARC import, inventory and circulation, for many tenants.
//!
//! Speaks as FOLIO's gateway and modules do, so that `folioclient`, `folio_data_import` and load scripts are pointed
//! at it unchanged. Most of FOLIO's modules are collections of records and nothing else: they are declared as data
//! ([`collection::Collection`], listed in `modules.rs`). What is covered, and where it differs on purpose, stands in
//! `docs/dialects/folio.md`.
//!
//! | file | what |
//! |---|---|
//! | `routes.rs`, `permissions.rs` | every route with the permission it needs; who holds which |
//! | `app.rs`, `error.rs`, `json.rs` | what a handler starts from, how it refuses, how JSON is spaced |
//! | `collection/`, `cql/` | collections of records, the query language |
//! | `login.rs`, `users.rs`, `perms.rs`, `tenants.rs` | tokens, users, permissions, tenants |
//! | `inventory/`, `authorities/`, `search.rs` | instances, holdings, items; authorities; finding them by words |
//! | `specifications/` | what a MARC record may have |
//! | `browse/`, `links/`, `oai/` | lists to browse, links between headings and authorities, harvesting |
//! | `places.rs`, `vocabularies.rs`, `records.rs` | where things are, what they are called, what else is kept |
//! | `circulation/` | lending and taking back: rules, due dates, loans, requests, slips |
//! | `fees/`, `patron_blocks.rs` | what patrons owe, and what keeps them from borrowing |
//! | `notices/` | what patrons are told, by mail |
//! | `chores.rs`, `timers/` | what is done from time to time, and when |
//! | `data_export/` | records as MARC files, by lists of ids or by queries |
//! | `bulk_edit/` | many records changed alike, by a list and rules |
//! | `reference.rs` | what is there in a new tenant |

pub mod app;
pub mod authorities;
mod browse;
mod bulk_edit;
mod change_manager;
mod chores;
mod circulation;
mod coerce;
pub mod collection;
pub mod cql;
mod data_export;
pub mod dates;
pub mod error;
mod fees;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod import;
pub mod inventory;
pub mod json;
mod limits;
mod links;
mod login;
mod mapping;
mod metadata_provider;
mod modules;
mod notes;
mod notices;
mod oai;
mod patron_blocks;
pub mod permissions;
mod perms;
pub mod places;
mod profile_pictures;
mod profiles;
mod quick_marc;
pub mod records;
pub mod reference;
pub mod routes;
mod search;
mod setting_entries;
mod settings;
mod source_storage;
mod specifications;
mod tenants;
pub mod timers;
mod uploads;
mod user_import;
mod user_settings;
pub mod users;
pub mod vocabularies;

pub use modules::kinds;
pub use routes::mount;
pub use settings::Settings;
