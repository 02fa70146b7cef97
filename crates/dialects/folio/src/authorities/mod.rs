//! Authorities, and the files they come from.

pub mod authority;
mod bulk;
pub mod headings;
mod settings;
pub mod source_files;
