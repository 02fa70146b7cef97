//! MARC-in-JSON, the shape of pymarc, ruby-marc and the `content` of FOLIO's parsed records:
//!
//! ```json
//! {"leader":"00714cam a2200205 a 4500","fields":[
//!   {"001":"12883376"},
//!   {"245":{"ind1":"1","ind2":"0","subfields":[{"a":"A title /"},{"c":"Ann Example."}]}}]}
//! ```
//!
//! It reads single objects, arrays, objects one after another with or without line ends, and objects that hold
//! the record under `parsedRecord`, `content` or both. It writes one object without line ends.
//!
//! Source: <https://github.com/marc4j/marc4j/wiki/MARC-in-JSON-Description> and the answers of FOLIO's
//! source storage.

mod cut;
mod direct;
mod read;
mod write;

pub(crate) use cut::cut;
pub use direct::write_view;
pub(crate) use read::parse;
pub use write::write;
