//! What a site configures, and small collections that several modules share.

pub(crate) mod notes;
pub mod records;
pub(crate) mod setting_entries;
