//! The labe dialect: who cites a record, whom it cites, and which of those the library holds; and the
//! OpenCitations REST API over the same graph.
//!
//! Speaks as `labed` of `slub/labe` 0.1.46 does, and as the OpenCitations API (index v1 and v2, meta v1). Who cites
//! whom is read from a memory-mapped [`pinakes_citations::Graph`], which is swapped when its file changes; the
//! catalogue's documents are records of the store ([`KINDS`]), filled by [`import`]. What is covered, and where it
//! differs on purpose, stands in `docs/dialects/labe.md`.
//!
//! | file | what |
//! |---|---|
//! | `citation.rs` | the citation document, written as it is found |
//! | `labed.rs` | the routes of `labed` |
//! | `id_maps.rs`, `extra_ids.rs` | which local id has which DOI, and back |
//! | `shelf/` | documents kept ready for answers, beside the store |
//! | `envelope.rs`, `json_text.rs` | a catalogue document as it is stored and sent |
//! | `opencitations/` | the OpenCitations API: rows, parameters, formats |

mod app;
mod citation;
mod doi;
mod envelope;
mod error;
pub mod export;
mod extra_ids;
mod graph_file;
mod holder;
mod id_maps;
pub mod import;
mod isil;
pub mod json_text;
mod kinds;
mod labed;
mod opencitations;
mod path;
mod routes;
mod settings;
mod shelf;
mod statistics;

pub use error::MountError;
pub use kinds::{DOCUMENT, KINDS};
pub use routes::{Reload, mount};
pub use settings::{CatalogueIds, GraphCopy, Settings, ShelfUse};
