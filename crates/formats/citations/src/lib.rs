//! Citations: the open citation dumps, DOI rules and the memory-mapped citation graph.
//!
//! From dump to answer:
//!
//! - [`source`] opens a dump, whatever its compression; [`rows`], [`meta`] and [`id_table`] read its lines;
//!   unusable rows become a [`Problem`] with file, line and reason, and are skipped.
//! - [`doi`] normalises DOIs; [`oci`], [`omid`] and [`date`] handle the other fields.
//! - [`mod@build`] sorts everything externally, in bounded memory, into one file.
//! - [`Graph`] opens that file in milliseconds and answers from it.
//! - [`synthetic`] generates dumps of any size with the shape of the real ones, for measuring.
//!
//! Nothing here is async, speaks HTTP or knows SQL.

mod adjacency;
mod bits;
pub mod build;
mod container;
pub mod date;
mod dictionary;
pub mod doi;
mod elias_fano;
mod graph;
pub mod id_table;
mod lines;
pub mod meta;
pub mod oci;
pub mod omid;
mod problem;
pub mod rows;
pub mod source;
mod statement;
mod summary;
pub mod synthetic;
mod varint;

pub use adjacency::Neighbours;
pub use build::{
    BuildError, BuildOptions, CompleteBuild, Leftover, Observer, Progress, Step, build, build_beside,
    is_half_published,
};
pub use container::GraphError;
pub use date::{PartialDate, Timespan};
pub use doi::{Doi, DoiError};
pub use graph::{Citation, Graph, SectionSize};
pub use lines::LINE_LEN_MAX_BYTES;
pub use omid::Omid;
pub use problem::{Problem, Reason};
pub use rows::Statement;
pub use summary::{Counts, Extreme, PaletteEntry, Summary};
