//! The life of a deposit over HTTP, in one process.

mod files;
mod headers;
mod hostile;
mod leaks;
mod server;
mod upkeep;
