//! Source records: MARC records with their snapshots, and the specifications of MARC records.

pub(crate) mod marc;
pub(crate) mod source_storage;
pub(crate) mod specifications;
