//! The dialect from outside: exchanges with clients, permissions, the query language.

mod cql;
mod exchange;
mod import;
mod permissions;
mod server;
