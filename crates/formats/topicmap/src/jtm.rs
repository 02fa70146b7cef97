//! JTM: topic maps in JSON, versions 1.0 and 1.1.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;
