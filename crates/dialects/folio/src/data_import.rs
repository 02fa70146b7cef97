//! Imports of MARC records: jobs, the walk through a profile's tree, and the runner (sections 2 to 6 of the contract).
//!
//! `incoming.rs` reads a record and `tree.rs` a profile; `engine.rs` walks the tree, `matching.rs` matches,
//! `actions.rs` stores; `work.rs` and `runner.rs` process batches this way until a job is finished. The routes are in
//! `change_manager.rs`, `uploads.rs` and `metadata_provider.rs`.

mod actions;
pub(crate) mod change_manager;
mod command;
pub(crate) mod copycat;
pub(crate) mod criteria;
mod edited;
mod engine;
mod fields;
mod files;
pub(crate) mod hits;
pub(crate) mod imports;
mod incoming;
mod job;
mod journal;
pub(crate) mod mapping;
mod matching;
pub(crate) mod metadata_provider;
mod modify;
mod pace;
pub(crate) mod preview;
pub(crate) mod profiles;
mod runner;
mod setup;
pub(crate) mod tree;
pub(crate) mod uploads;
pub(crate) mod walk;
mod work;

use pinakes_store::Kind;

pub use crate::data_import::imports::Imports;
pub use command::{FileImport, ImportProgress, RecordFault, import_file};
pub(crate) use edited::{described, follow, instance_by};
pub(crate) use engine::Protection;
pub(crate) use files::{FILE_PART, StoredFile, receive, store as store_file};
pub(crate) use job::{CHUNK, JOB, Job, NewJob, STATUSES, children, forget_files};
pub(crate) use journal::JOURNAL;
pub(crate) use setup::reference;

/// The kinds of this module.
pub(crate) static KINDS: [&Kind; 4] = [&JOB, &CHUNK, &JOURNAL, &FILE_PART];
