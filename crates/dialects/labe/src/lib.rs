//! The labe dialect: which works cite a record, which works it cites, and which of them the library holds; and the
//! OpenCitations REST API over the same graph.
//!
//! Behaves like `labed` of `slub/labe` 0.1.46, and like the OpenCitations API (index v1 and v2, meta v1). Citations
//! are read from a memory-mapped [`pinakes_citations::Graph`], which is replaced when its file changes; the
//! catalogue's documents are records of the store ([`KINDS`]), loaded by [`import`]. `docs/dialects/labe.md`
//! describes what is covered, and the intended differences.
//!
//! | file | what |
//! |---|---|
//! | `citation.rs` | the citation document, written while it is read |
//! | `labed.rs` | the routes of `labed` |
//! | `id_maps.rs`, `extra_ids.rs` | mapping of local ids to DOIs, and back |
//! | `shelf/` | documents prepared for answers, outside the store |
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
