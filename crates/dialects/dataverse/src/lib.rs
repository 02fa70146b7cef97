//! The Dataverse dialect: collections, datasets with versions, deposited files, and publication.
//!
//! Implements the API of Dataverse 6.11, so that pyDataverse, dvuploader, easyDataverse, the JavaScript client and
//! scripts work unchanged. `docs/dialects/dataverse.md` lists what is covered and where the behaviour differs on
//! purpose.
//!
//! | file | what |
//! |---|---|
//! | `routes.rs`, `routing.rs`, `admission.rs`, `gate.rs` | routes and their registration, admission of requests, access for administrators |
//! | `app.rs`, `asker.rs`, `credentials.rs` | what a handler starts from, the caller, authentication |
//! | `error.rs`, `envelope.rs` | errors and answers in Dataverse's envelope |
//! | `grants.rs`, `permissions.rs` | stored grants, authorisation |
//! | `collections.rs`, `datasets.rs`, `files.rs` | records; operations on them are in the folders of the same names, visibility in `wanted.rs` and `visibility.rs` |
//! | `changes.rs`, `search/index.rs` | updates of the search index after a change |
//! | `ids.rs` | numbers of objects |
//! | `bootstrap.rs` | initialisation of a new tenant |
//! | `blocks/` | metadata blocks: definitions, values, validation |
//! | `moving/` | export of collections with all their contents to a folder, and import |
//! | `exports/` | DDI, DataCite, Dublin Core, schema.org, OAI-ORE, Croissant |

// The fuzz targets are compiled as modules of the tests, and refer to their dependencies by these names.
#[cfg(test)]
extern crate pinakes_test_support as libfuzzer_sys;
#[cfg(test)]
extern crate self as pinakes_dataverse;

mod access;
mod admin;
mod admission;
mod amounts;
pub mod app;
mod asker;
mod assignments;
mod batch;
pub mod blocks;
mod bootstrap;
mod changes;
mod citation;
mod clock;
mod collections;
mod credentials;
mod cross_origin;
mod csv;
mod dataset_types;
mod datasets;
mod downloads;
mod envelope;
mod error;
pub mod exports;
mod featured;
mod feedback;
mod files;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod gate;
mod grants;
mod groups;
mod guestbooks;
mod harvest;
mod ids;
mod inbox;
mod info;
mod kinds;
mod licenses;
mod links;
mod metrics;
pub mod moving;
mod mydata;
mod name;
mod notifications;
mod oai;
mod openapi;
mod permissions;
mod pids;
mod query;
mod registry;
mod reviews;
mod roles;
mod routes;
mod routing;
mod saved_searches;
mod search;
mod settings;
mod signing;
mod signposting;
mod site;
mod site_settings;
mod sitemap;
mod stored;
mod sword;
mod templates;
mod thumbnails;
mod tokens;
mod tools;
mod transfers;
mod usage;
mod users;
mod vocabulary;
mod workflows;
mod xml_tree;

pub use kinds::kinds;
pub use routes::{mount, table};
pub use settings::{AdminAccess, Settings};
