//! A collection of records that behaves as FOLIO's storage modules do, declared as data.
//!
//! Most modules of FOLIO are this and nothing else: a base path, a list name, what a record must have, what it refers
//! to, and permissions named by one scheme. [`Collection`] says so; `collection/handlers.rs` serves it,
//! `collection/write.rs` holds the rules of writing, which batches, imports and the desk use as well.

mod batch;
mod check;
mod declared;
mod handlers;
mod manner;
pub(crate) mod numbers;
mod write;

pub use batch::batch_routes;
pub(crate) use batch::{write_all, write_batch};
pub(crate) use check::not_a_uuid;
pub use declared::{
    Collection, Collections, Hooks, Kinds, Locking, Manner, Metadata, Prepare, Reference, Schema, Shown,
    Unique, UnlessAsked, Writer,
};
pub(crate) use declared::{by_kind, by_list};
pub use handlers::{
    Page, answer_list, by_id, condition_of, create, created, expr_of, page_of, parsed, remove,
    remove_by_query, replace, routes, routes_at,
};
pub(crate) use manner::in_manner;
pub(crate) use write::moved_in;
pub use write::{Lock, Missing, Stored, delete, insert, made, put};
