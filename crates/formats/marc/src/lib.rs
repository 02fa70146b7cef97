//! MARC records: ISO 2709, MARCXML, MARC-in-JSON and mnemonic text, with MARC-8.
//!
//! Bytes in, records out, and back. No files, no threads, no async: callers pass slices or anything that is
//! [`std::io::Read`].
//!
//! # Reading
//!
//! Reading is in three steps, each usable alone:
//!
//! 1. **Cut**: [`records`] (over a slice, without copying) or [`Reader`] (over a stream, in bounded memory) find
//!    where each record begins and ends. A [`RawRecord`] is its bytes, its number and its place.
//! 2. **Look**: [`RecordView`] finds the fields of an ISO 2709 record as slices of those bytes.
//! 3. **Decode**: [`parse()`] makes an owned [`Record`] with all text in Unicode, from any of the four formats.
//!    [`json::write_view`] goes from ISO 2709 straight to JSON.
//!
//! ```
//! use pinakes_marc::{Encoding, Format, Reader, parse};
//!
//! let input = b"00050nam a2200037   4500245001200000\x1E10\x1FaA title\x1E\x1D rubbish";
//! let mut reader = Reader::new(&input[..], Format::Iso2709);
//! let mut titles = Vec::new();
//! let mut problems = Vec::new();
//! while let Some(raw) = reader.next_record()? {
//!     let parsed = parse(Format::Iso2709, Encoding::Leader, raw);
//!     titles.extend(parsed.record.iter().filter_map(|it| it.subfield("245", 'a')).map(str::to_owned));
//!     problems.extend(parsed.problems.iter().map(ToString::to_string));
//! }
//! assert_eq!(titles, ["A title"]);
//! assert_eq!(problems[1], "record 2 (byte 51): 7 bytes that are no ISO 2709 record");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A raw record's bytes are those of the input, whatever is wrong with them; to store them beside the parsed
//! record, copy `raw.bytes` before passing `raw` to [`parse()`].
//!
//! A bad record never stops the load. What is wrong is a [`Problem`] with the number of the record, the byte
//! offset in the input, the field and a [`Fault`]; its [`Severity`] says whether everything was read
//! nevertheless ([`Severity::Warning`]), a part was lost ([`Severity::Loss`]) or nothing could be read
//! ([`Severity::Fatal`]). [`validate()`] adds what the rules of MARC 21 say about a record that could be read.
//!
//! # Writing
//!
//! [`iso2709::write`], [`xml::write`], [`json::write`] and [`mnemonic::write`] append one record to a buffer;
//! [`Writer`] writes many to a stream. ISO 2709 computes lengths and directory and refuses what does not fit.
//!
//! # Limits
//!
//! A [`Reader`] holds one record and a chunk of input; records beyond [`RECORD_LEN_MAX_BYTES`] are reported and
//! skipped. A record keeps at most [`PROBLEMS_MAX`] problems. Entry maps other than `4500` are not supported:
//! MARC 21 has no other.

mod cut;
mod edit;
mod encoding;
mod format;
pub mod iso2709;
pub mod json;
mod leader;
pub mod marc8;
pub mod mnemonic;
mod parse;
mod parsed;
mod problem;
mod reader;
mod record;
mod repaired;
mod tag;
mod validate;
mod writer;
pub mod xml;

pub use crate::parse::parse;
pub use cut::{RawRecord, Records, records};
pub use encoding::{Encoding, UnknownEncoding};
pub use format::{Format, SniffError, UnknownFormat, sniff};
pub use iso2709::{FieldView, OutputEncoding, RecordView, SubfieldView, WriteError};
pub use leader::{LEADER_LEN_BYTES, Leader, RecordKind};
pub use parsed::ParsedRecord;
pub use problem::{Fault, PROBLEMS_MAX, Problem, Severity, worst};
pub use reader::{OpenError, RECORD_LEN_MAX_BYTES, Reader};
pub use record::{ControlField, DataField, Field, Record, Subfield};
pub use tag::{Tag, TagError};
pub use validate::validate;
pub use writer::{OutputError, Writer};
