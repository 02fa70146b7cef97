//! The life of a deposit over HTTP, in one process.

mod files;
mod leaks;
mod server;
mod upkeep;
