//! Source records: MARC records with their snapshots, and what a MARC record may have.

pub(crate) mod marc;
pub(crate) mod source_storage;
pub(crate) mod specifications;
