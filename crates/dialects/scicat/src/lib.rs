//! The `SciCat` dialect: datasets of beamlines, API v3 and v4.

pub mod dates;
pub mod dto;
pub mod faults;
pub mod ids;
pub mod json_error;
pub mod scientific;
pub mod text_forms;
pub mod validate;
