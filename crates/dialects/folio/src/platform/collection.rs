//! A collection of records that behaves as FOLIO's storage modules do, declared as data.
//!
//! Most FOLIO modules are nothing but this: a base path, a list name, requirements on records, references to other
//! collections, and permissions named by a common scheme. [`Collection`] declares them; `collection/handlers.rs` serves
//! the collection, and `collection/write.rs` contains the rules of writing, which batches, imports and the desk use as
//! well.

mod batch;
mod check;
mod declared;
mod handlers;
mod manner;
pub(crate) mod numbers;
mod write;

pub use batch::batch_routes;
pub(crate) use batch::{write_all, write_batch};
pub(crate) use check::{not_a_uuid, with_or_without};
pub use declared::{
    Collection, Collections, Hooks, Kinds, Locking, Manner, Metadata, Prepare, Reference, Schema, Shown,
    Unique, UnlessAsked, Writer,
};
pub(crate) use declared::{by_kind, by_list};
pub use handlers::{
    Page, answer_list, by_id, condition_of, create, created, expr_of, page_of, parsed, remove,
    remove_by_query, replace, routes, routes_at,
};
pub(crate) use manner::{in_manner, with_exceptions};
pub(crate) use write::moved_in;
pub use write::{Lock, Missing, Stored, delete, insert, made, put};
