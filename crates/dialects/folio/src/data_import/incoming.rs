//! An incoming record: its bytes, and what could be read of them.

use bytes::Bytes;
use pinakes_marc::{Encoding, Fault, Format, ParsedRecord, Problem, RawRecord, Record, RecordKind, Severity};

/// The encoding of a chunk's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding<'a> {
    /// ISO 2709, MARCXML, MARC-in-JSON or mnemonic text.
    Marc(Format),
    /// A content type that this server cannot read, e.g. `EDIFACT_RAW`.
    Other(&'a str),
}

/// Maximum number of a record's faults that the log lists individually.
const TOLD_MAX: usize = 5;

/// A record as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// Position in the job, from 0.
    pub(crate) order: u64,
    /// Its location in error messages: `record 3 (byte 1024)`.
    pub(crate) place: String,
    /// Byte offset in its file.
    pub(crate) offset: u64,
    /// Its exact bytes.
    pub(crate) raw: Bytes,
    /// The parsed record; `Err` is the reason why it could not be parsed.
    pub(crate) record: Result<Record, String>,
    /// Faults that did not prevent reading.
    pub(crate) warnings: Vec<String>,
}

impl Incoming {
    /// Parses one record cut out of a file.
    pub(crate) fn read(format: Format, raw: RawRecord<'_>, order: u64) -> Self {
        let bytes = Bytes::copy_from_slice(raw.bytes);
        let parsed = pinakes_marc::parse(format, Encoding::Leader, raw);
        Self::of(parsed, bytes, order)
    }

    /// Parses a record that was sent on its own. `order` is its position in the job, from 0.
    pub(crate) fn sent(coding: Coding<'_>, bytes: Bytes, order: u64) -> Self {
        let format = match coding {
            Coding::Marc(format) => format,
            Coding::Other(content_type) => {
                let place = format!("record {} (byte 0)", order + 1);
                let message = format!(
                    "{place}: records of the type {content_type:?} are not imported, those of MARC_RAW, MARC_JSON and \
                     MARC_XML are"
                );
                return Self {
                    order,
                    place,
                    offset: 0,
                    raw: bytes,
                    record: Err(message),
                    warnings: Vec::new(),
                };
            }
        };
        let mut cut = pinakes_marc::records(format, &bytes);
        let mut raw = cut.next().unwrap_or_else(|| RawRecord::alone(&bytes));
        raw.number = order + 1;
        raw.problems.iter_mut().for_each(|it| it.record = order + 1);
        let parsed = pinakes_marc::parse(format, Encoding::Leader, raw);
        Self::of(parsed, bytes.clone(), order)
    }

    fn of(parsed: ParsedRecord, raw: Bytes, order: u64) -> Self {
        let offset = parsed.offset;
        let place = format!("record {} (byte {offset})", parsed.number);
        let texts = |least: Severity| -> Vec<String> {
            parsed.problems.iter().filter(|it| least <= it.severity()).map(ToString::to_string).collect()
        };
        // A truncated record parses as a shorter one, which nobody intended.
        let is_cut_off = parsed.problems.iter().any(|it| matches!(it.fault, Fault::CutOff { .. }));
        let is_lost = is_cut_off || parsed.record.is_none() || parsed.severity() == Some(Severity::Fatal);
        let record = match parsed.record {
            Some(record) if !is_lost && record.fields.is_empty() => {
                Err(format!("{place}: no fields could be read"))
            }
            Some(record) if !is_lost => match record.leader.kind() {
                RecordKind::Bibliographic | RecordKind::Authority | RecordKind::Holdings => Ok(record),
                _ => Err(format!(
                    "{place}: leader position 06 is {:?}, which is no type of record that is imported. \
                     Error during analyze leader line for determining record type",
                    record.leader.at(6)
                )),
            },
            _ => {
                let is_reason = |it: &&Problem| {
                    Severity::Fatal <= it.severity() || matches!(it.fault, Fault::CutOff { .. })
                };
                let reasons: Vec<String> =
                    parsed.problems.iter().filter(is_reason).map(ToString::to_string).collect();
                let reasons = if reasons.is_empty() { texts(Severity::Warning) } else { reasons };
                Err(match reasons.is_empty() {
                    true => format!("{place}: it could not be read"),
                    false => reasons.join("; "),
                })
            }
        };
        let warnings = texts(Severity::Loss);
        Self { order, place, offset, raw, record, warnings }
    }

    /// Summarises what was lost or repaired: the first faults, and the number of further ones.
    pub(crate) fn told_losses(&self) -> String {
        let mut told = self.warnings.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join("; ");
        if TOLD_MAX < self.warnings.len() {
            told.push_str(&format!("; and {} more", self.warnings.len() - TOLD_MAX));
        }
        told
    }

    /// Returns the bytes as text; invalid UTF-8 is replaced.
    pub(crate) fn raw_text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Checks whether the text represents the bytes exactly.
    pub(crate) fn is_text_exact(&self) -> bool {
        std::str::from_utf8(&self.raw).is_ok()
    }
}
