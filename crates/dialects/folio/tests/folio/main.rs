//! The dialect from outside: exchanges with clients, permissions, the query language.

mod bulk;
mod bulk_edit;
mod cql;
mod data_export;
mod desk;
#[path = "../../../../store/tests/support/engine.rs"]
mod engine;
mod exchange;
mod forgotten;
mod harvest;
mod import;
mod indexed;
mod joins;
mod long_queries;
mod moving;
mod nesting;
mod notices;
mod permissions;
mod server;
mod setting_entries;
