//! The OpenCitations REST API: index v1 and v2, and those parts of meta v1 that the graph and the catalogue
//! contain.
//!
//! | file | what |
//! |---|---|
//! | `routes.rs` | paths, operations, headers, errors |
//! | `identifiers.rs` | `doi:`, `pmid:`, `omid:br/` in paths |
//! | `index.rs` | rows of citations, references, counts |
//! | `meta.rs` | rows of metadata |
//! | `parameters.rs` | `require`, `filter`, `sort`, `format`, `json`, `page`, `page_size` |
//! | `typed.rs` | how values of a column compare |
//! | `reshape.rs` | the `json` rules |
//! | `write.rs` | rows as JSON or CSV |

mod identifiers;
mod index;
mod meta;
mod parameters;
mod reshape;
mod routes;
mod typed;
mod write;

pub(crate) use routes::routes;
