//! Running the installation: `/api/admin`. Who may call it is decided in `gate.rs`, before any of its handlers is reached.

pub(crate) mod accounts;
pub(crate) mod checks;
pub(crate) mod index;
pub(crate) mod integrity;
pub(crate) mod misc;
pub(crate) mod storage_sites;
