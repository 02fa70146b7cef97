//! Where the fields of a record are: by the directory if it is right, by the terminators if it is not.

use memchr::memchr;

use super::salvage::{Piece, directory_before, join, name_fields, split};
use super::{ENTRY_LEN_BYTES, FIELD_TERMINATOR, RECORD_TERMINATOR};
use crate::iso2709::directory::{Entry, has_good_tag, stated_field, tag_of};
use crate::leader::{LEADER_LEN_BYTES, digits};
use crate::problem::{Fault, Report, excerpt};
use crate::tag::Tag;

/// A field's place in its record, without the terminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) tag: Tag,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The fields of a record in the order of the directory, while they are being found.
struct Layout<'a> {
    spans: Vec<Span>,
    report: &'a mut Report,
}

/// Finds the fields of a record and reports what is wrong with its structure.
pub(super) fn lay_out(bytes: &[u8], report: &mut Report) -> Vec<Span> {
    let mut layout = Layout { spans: Vec::new(), report };
    match stated_base(bytes) {
        Some(base) if layout.by_directory(bytes, base) => {}
        Some(base) => {
            let directory = bytes[LEADER_LEN_BYTES..base - 1].as_chunks().0;
            layout.by_terminators(directory, data(bytes, base), base);
        }
        None => layout.without_base(bytes),
    }
    layout.spans
}

/// Returns the leader's base address, if a directory of whole entries ends there.
fn stated_base(bytes: &[u8]) -> Option<usize> {
    let base = digits(bytes.get(12..17)?)?;
    let directory_len = base.checked_sub(LEADER_LEN_BYTES + 1)?;
    let is_right =
        directory_len.is_multiple_of(ENTRY_LEN_BYTES) && bytes.get(base - 1) == Some(&FIELD_TERMINATOR);
    is_right.then_some(base)
}

/// End of the data: the record terminator or, where it is missing, the end of the bytes.
fn data_end(bytes: &[u8]) -> usize {
    match bytes {
        [.., RECORD_TERMINATOR] => bytes.len() - 1,
        _ => bytes.len(),
    }
}

/// Returns the fields: the bytes between the base address and the end of the data.
fn data(bytes: &[u8], base: usize) -> &[u8] {
    &bytes[base..data_end(bytes).max(base)]
}

impl Layout<'_> {
    /// Walks the directory. `false` if an entry does not fit; nothing is kept then.
    fn by_directory(&mut self, bytes: &[u8], base: usize) -> bool {
        let directory = bytes[LEADER_LEN_BYTES..base - 1].as_chunks::<ENTRY_LEN_BYTES>().0;
        let Some(data) = bytes.get(base..data_end(bytes)) else { return false };
        let mut n_named = 0;
        let mut has_bad_tag = false;
        self.spans.reserve_exact(directory.len());
        for entry in directory {
            let Some((start, end)) = field_of(entry, data) else {
                self.spans.clear();
                return false;
            };
            n_named += end - start;
            has_bad_tag |= !has_good_tag(entry);
            self.spans.push(Span { tag: tag_of(entry), start: base + start, end: base + end - 1 });
        }
        if n_named != data.len() {
            self.report.add(base, None, Fault::UnnamedBytes { named: n_named, found: data.len() });
        }
        if has_bad_tag {
            self.report_tags(directory);
        }
        true
    }

    /// Handles a directory that does not end where the leader says.
    fn without_base(&mut self, bytes: &[u8]) {
        let from = bytes.len().min(LEADER_LEN_BYTES);
        let Some(end) = memchr(FIELD_TERMINATOR, &bytes[from..]).map(|at| from + at) else {
            self.report.add(from, None, Fault::NoDirectory);
            return;
        };
        let stated = bytes.get(12..17).unwrap_or_default();
        if digits(stated) != Some(end + 1) {
            let fault = Fault::WrongBaseAddress { stated: excerpt(stated), found: end + 1 };
            self.report.add(12, None, fault);
        }
        let data = data(bytes, end + 1);
        let (directory, fault) = directory_before(bytes, end, split(data).len());
        if let Some(fault) = fault {
            self.report.add(LEADER_LEN_BYTES, None, fault);
        }
        self.by_terminators(&directory, data, end + 1);
    }

    /// Names the fields between terminators by the directory's tags.
    fn by_terminators(&mut self, entries: &[Entry], data: &[u8], base: usize) {
        let pieces = split(data);
        let fields = join(entries, &pieces).unwrap_or(pieces);
        self.report_entries(entries, data);
        let names = name_fields(entries, &fields);
        self.report_missing(entries, &names);
        self.spans = spans(entries, &fields, &names, base);
        self.report_unnamed(&fields, &names, base);
        self.report_tags(entries);
        if let Some(last) = fields.last().filter(|last| !last.is_ended) {
            let tag = self.spans.iter().find(|span| span.end == base + last.end).map(|span| span.tag);
            self.report.add(base + last.end, tag, Fault::UnendedField);
        }
    }

    /// Reports how many entries do not fit, with the first of them.
    fn report_entries(&mut self, entries: &[Entry], data: &[u8]) {
        let mut bad = entries.iter().enumerate().filter(|(_, entry)| field_of(entry, data).is_none());
        if let Some((first, entry)) = bad.next() {
            let n_bad = 1 + bad.count();
            let fault = Fault::WrongDirectory {
                n_bad,
                n_entries: entries.len(),
                first: first + 1,
                entry: excerpt(entry),
            };
            self.report.add(LEADER_LEN_BYTES + first * ENTRY_LEN_BYTES, Some(tag_of(entry)), fault);
        }
    }

    fn report_missing(&mut self, entries: &[Entry], names: &[Option<usize>]) {
        let mut is_named = vec![false; entries.len()];
        names.iter().flatten().for_each(|entry| is_named[*entry] = true);
        for (number, entry) in entries.iter().enumerate().filter(|(number, _)| !is_named[*number]) {
            let at = LEADER_LEN_BYTES + number * ENTRY_LEN_BYTES;
            self.report.add(at, Some(tag_of(entry)), Fault::MissingField { entry: number + 1 });
        }
    }

    fn report_unnamed(&mut self, fields: &[Piece], names: &[Option<usize>], base: usize) {
        for (field, name) in fields.iter().zip(names) {
            if name.is_none() {
                let len = field.end - field.start;
                self.report.add(base + field.start, None, Fault::UnnamedField { len });
            }
        }
    }

    fn report_tags(&mut self, entries: &[Entry]) {
        for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| !has_good_tag(entry)) {
            let at = LEADER_LEN_BYTES + number * ENTRY_LEN_BYTES;
            self.report.add(at, Some(tag_of(entry)), Fault::BadTag { found: excerpt(&entry[..3]) });
        }
    }
}

/// Returns start and end (after the terminator) of the field in the data, if one begins and ends there.
fn field_of(entry: &Entry, data: &[u8]) -> Option<(usize, usize)> {
    let (len, start) = stated_field(entry)?;
    let end = start + len;
    let begins = start == 0 || data.get(start - 1) == Some(&FIELD_TERMINATOR);
    let ends = len != 0 && data.get(end - 1) == Some(&FIELD_TERMINATOR);
    (begins && ends).then_some((start, end))
}

/// Returns the named fields in the order of the directory.
fn spans(entries: &[Entry], fields: &[Piece], names: &[Option<usize>], base: usize) -> Vec<Span> {
    let mut named: Vec<(usize, Span)> = fields
        .iter()
        .zip(names)
        .filter_map(|(field, name)| {
            let entry = (*name)?;
            let tag = tag_of(entries.get(entry)?);
            Some((entry, Span { tag, start: base + field.start, end: base + field.end }))
        })
        .collect();
    named.sort_unstable_by_key(|(entry, _)| *entry);
    named.into_iter().map(|(_, span)| span).collect()
}
