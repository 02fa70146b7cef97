//! Administration of the installation: `/api/admin`. `gate.rs` decides who may call it before any of its handlers runs.

pub(crate) mod accounts;
pub(crate) mod checks;
pub(crate) mod index;
pub(crate) mod integrity;
pub(crate) mod misc;
pub(crate) mod storage_sites;
