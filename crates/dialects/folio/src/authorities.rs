//! Authorities and their source files.

pub mod authority;
pub(crate) mod bulk;
pub mod headings;
pub(crate) mod listed;
pub(crate) mod routes;
mod settings;
pub mod source_files;
