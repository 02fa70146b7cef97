//! MARCXML: a `record` element with `leader`, `controlfield` and `datafield` elements, alone, in a `collection`
//! or inside anything else, such as an OAI-PMH answer. Elements are recognised by their local names, so files
//! without the namespace are read like those with it.
//!
//! The cutter finds records by their tags alone, and the XML parser sees one record at a time: a file that is
//! not well-formed in one place is read everywhere else, with memory for one record.
//!
//! Texts are UTF-8 or, where the XML declaration says so, ISO 8859-1.
//!
//! Source: MARC 21 XML schema, <http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd>.

mod cut;
mod read;
mod write;

pub(crate) use cut::cut;
pub(crate) use read::parse;
pub use write::{COLLECTION_END, COLLECTION_START, write};
