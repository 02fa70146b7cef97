//! ISO 2709, the exchange format of MARC records.
//!
//! A record is a leader of 24 bytes, a directory of twelve bytes for each field (tag, length, start), a field
//! terminator, the fields each with its terminator, and a record terminator. All lengths are decimal digits and
//! count bytes, which is the most frequent error in real records: after an edit, or where a program counted
//! characters. So a length is trusted if there is a terminator at its end; otherwise only the terminators are.
//!
//! Source: MARC 21 Specifications for Record Structure (Library of Congress); ISO 2709:2008.

mod cut;
mod decode;
mod directory;
mod layout;
mod salvage;
pub(crate) mod shape;
mod view;
mod write;

pub(crate) use cut::cut;
pub(crate) use decode::decode;
pub use view::{FieldView, RecordView, SubfieldView, Subfields};
pub use write::{OutputEncoding, WriteError, write};

/// Ends every field and the directory.
pub const FIELD_TERMINATOR: u8 = 0x1E;
/// Ends every record.
pub const RECORD_TERMINATOR: u8 = 0x1D;
/// Begins every subfield.
pub const SUBFIELD_DELIMITER: u8 = 0x1F;

/// Bytes of a directory entry: tag (3), length (4), start (5).
const ENTRY_LEN_BYTES: usize = 12;
/// Shortest record: a leader, the directory's terminator and the record's.
const RECORD_LEN_MIN_BYTES: usize = 26;
/// Longest record that five digits can state.
pub const RECORD_LEN_MAX_BYTES: usize = 99_999;
/// Longest field that four digits can state.
pub const FIELD_LEN_MAX_BYTES: usize = 9_999;
