//! Site configuration, and small collections that several modules share.

pub(crate) mod acquisitions;
pub(crate) mod notes;
pub mod records;
pub(crate) mod setting_entries;
