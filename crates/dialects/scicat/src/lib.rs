//! The SciCat dialect: datasets of beamlines, API v3 and v4.
//!
//! Behaves like `SciCatProject/backend` 5.1, so that scitacean, pyscicat, scicat-cli, the ingestor and the
//! frontend work with it unchanged. Each resource is one file with its kind, routes, handlers and rules; the
//! rules for bodies are in `dto/`, access rights in `rights.rs`, and the query languages in `filter.rs` (v3),
//! `strict.rs` (v4) and `fullquery.rs` (the frontend's search form).

pub mod app;
mod attachments;
mod auth;
mod blocks;
pub mod check;
pub mod condition;
mod datasets;
pub mod dates;
mod documents;
pub mod dto;
pub mod error;
pub mod export;
pub mod faults;
pub mod filter;
pub mod fullquery;
mod history;
pub mod ids;
pub mod import;
mod instruments;
pub mod jobs;
pub mod json_error;
mod kinds;
pub mod list_splitter;
mod listing;
mod logbooks;
mod openapi;
mod outgoing;
mod policies;
mod precondition;
pub mod projection;
mod proposals;
mod published_data;
mod resource;
mod resources;
pub mod rights;
mod routes;
mod samples;
pub mod scientific;
pub mod settings;
mod site;
pub mod strict;
pub mod testing;
pub mod text_forms;
mod tracking;
mod users;
pub mod validate;

pub use crate::resources::KINDS;
pub use routes::mount;
pub use settings::{Settings, SettingsError};
