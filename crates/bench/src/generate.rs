//! Deterministic data: the same seed and number give the same bytes on every machine and in every
//! version, so that two measurements load the same catalogue.

pub mod citations;
pub mod datasets;
pub mod files;
pub mod instances;
pub mod library;
pub mod marc;
pub mod random;
pub mod topics;
pub mod users;
pub mod words;
