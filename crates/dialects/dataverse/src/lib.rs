//! The Dataverse dialect: collections, datasets with versions, deposited files, and publication.
//!
//! Implements the API of Dataverse 6.11, so that pyDataverse, dvuploader, easyDataverse, the JavaScript client and
//! scripts work unchanged. `docs/dialects/dataverse.md` lists what is covered and where the behaviour differs on
//! purpose.
//!
//! | file | what |
//! |---|---|
//! | `routes.rs`, `routing.rs`, `admission.rs`, `gate.rs` | every route and how they are written down, how a request comes in, who may administer |
//! | `app.rs`, `asker.rs`, `credentials.rs` | what a handler starts from, who asks, how that is found out |
//! | `error.rs`, `envelope.rs` | refusals and answers in Dataverse's envelope |
//! | `grants.rs`, `permissions.rs` | what is granted to whom, who may do what |
//! | `collections.rs`, `datasets.rs`, `files/mod.rs` | what is kept; what is done with it lies in the files below, `wanted.rs` and `visibility.rs` say who sees it |
//! | `changes.rs`, `search/index.rs` | what follows from a change |
//! | `ids.rs` | numbers of objects |
//! | `bootstrap.rs` | what is there in a new tenant |
//! | `blocks/` | metadata blocks: definitions, values, what is missing or wrong |
//! | `moving/` | collections with all that lies in them, to a folder and back |
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
