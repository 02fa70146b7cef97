//! Where the fields of a record are: by the directory where it is right, by the terminators where it is not.

use memchr::{memchr, memchr_iter};

use super::{ENTRY_LEN_BYTES, FIELD_TERMINATOR, RECORD_TERMINATOR};
use crate::leader::{LEADER_LEN_BYTES, digits};
use crate::problem::{Fault, excerpt};
use crate::tag::Tag;

/// A field's place in its record, without the terminator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) tag: Tag,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// All fields of a record in the order of the directory, and what is wrong with its structure. Faults come
/// with their offset in the record and the tag where there is one.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) spans: Vec<Span>,
    pub(super) faults: Vec<(usize, Option<Tag>, Fault)>,
}

/// Finds the fields of a record.
pub(super) fn lay_out(bytes: &[u8]) -> Layout {
    let mut layout = Layout::default();
    match stated_base(bytes) {
        Some(base) if layout.by_directory(bytes, base) => {}
        Some(base) => layout.by_terminators(bytes, &bytes[LEADER_LEN_BYTES..base - 1], base),
        None => layout.without_base(bytes),
    }
    layout
}

/// The leader's base address, if a directory of whole entries ends there.
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

impl Layout {
    /// Walks the directory. `false` when an entry does not fit; nothing is kept then.
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
            self.faults.push((base, None, Fault::UnnamedBytes { named: n_named, found: data.len() }));
        }
        if has_bad_tag {
            self.report_tags(directory);
        }
        true
    }

    /// A directory that does not end where the leader says.
    fn without_base(&mut self, bytes: &[u8]) {
        let from = bytes.len().min(LEADER_LEN_BYTES);
        let Some(end) = memchr(FIELD_TERMINATOR, &bytes[from..]).map(|at| from + at) else {
            self.faults.push((from, None, Fault::NoDirectory));
            return;
        };
        let stated = excerpt(bytes.get(12..17).unwrap_or_default());
        self.faults.push((12, None, Fault::WrongBaseAddress { stated, found: end + 1 }));
        self.by_terminators(bytes, directory_before(bytes, end), end + 1);
    }

    /// Names the fields between terminators by the directory's tags.
    fn by_terminators(&mut self, bytes: &[u8], directory: &[u8], base: usize) {
        let (entries, odd) = directory.as_chunks::<ENTRY_LEN_BYTES>();
        if !odd.is_empty() {
            self.faults.push((LEADER_LEN_BYTES, None, Fault::OddDirectory { len: directory.len() }));
        }
        let data = &bytes[base..data_end(bytes).max(base)];
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
            self.faults.push((base + last.end, tag, Fault::UnendedField));
        }
    }

    /// Reports how many entries do not fit, with the first of them.
    fn report_entries(&mut self, entries: &[[u8; ENTRY_LEN_BYTES]], data: &[u8]) {
        let mut bad = entries.iter().enumerate().filter(|(_, entry)| field_of(entry, data).is_none());
        if let Some((first, entry)) = bad.next() {
            let n_bad = 1 + bad.count();
            let fault = Fault::WrongDirectory {
                n_bad,
                n_entries: entries.len(),
                first: first + 1,
                entry: excerpt(entry),
            };
            self.faults.push((LEADER_LEN_BYTES + first * ENTRY_LEN_BYTES, Some(tag_of(entry)), fault));
        }
    }

    fn report_missing(&mut self, entries: &[[u8; ENTRY_LEN_BYTES]], names: &[Option<usize>]) {
        let mut is_named = vec![false; entries.len()];
        names.iter().flatten().for_each(|entry| is_named[*entry] = true);
        for (number, entry) in entries.iter().enumerate().filter(|(number, _)| !is_named[*number]) {
            let at = LEADER_LEN_BYTES + number * ENTRY_LEN_BYTES;
            self.faults.push((at, Some(tag_of(entry)), Fault::MissingField { entry: number + 1 }));
        }
    }

    fn report_unnamed(&mut self, fields: &[Piece], names: &[Option<usize>], base: usize) {
        for (field, name) in fields.iter().zip(names) {
            if name.is_none() {
                let len = field.end - field.start;
                self.faults.push((base + field.start, None, Fault::UnnamedField { len }));
            }
        }
    }

    fn report_tags(&mut self, entries: &[[u8; ENTRY_LEN_BYTES]]) {
        for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| !has_good_tag(entry)) {
            let at = LEADER_LEN_BYTES + number * ENTRY_LEN_BYTES;
            self.faults.push((at, Some(tag_of(entry)), Fault::BadTag { found: excerpt(&entry[..3]) }));
        }
    }
}

fn tag_of(entry: &[u8; ENTRY_LEN_BYTES]) -> Tag {
    let [a, b, c, ..] = *entry;
    Tag::new(&[a, b, c])
}

fn has_good_tag(entry: &[u8; ENTRY_LEN_BYTES]) -> bool {
    let [a, b, c, ..] = *entry;
    Tag::is_valid_bytes(&[a, b, c])
}

/// Stated length and start of a field in the data.
fn stated_field(entry: &[u8; ENTRY_LEN_BYTES]) -> Option<(usize, usize)> {
    Some((digits(&entry[3..7])?, digits(&entry[7..12])?))
}

/// Start and end (behind the terminator) of the field in the data, if one begins and ends there.
fn field_of(entry: &[u8; ENTRY_LEN_BYTES], data: &[u8]) -> Option<(usize, usize)> {
    let (len, start) = stated_field(entry)?;
    let end = start + len;
    let begins = start == 0 || data.get(start - 1) == Some(&FIELD_TERMINATOR);
    let ends = len != 0 && data.get(end - 1) == Some(&FIELD_TERMINATOR);
    (begins && ends).then_some((start, end))
}

/// The directory that ends at `end`: from byte 24 or, where the leader has lost or gained bytes, as far back
/// as whole entries of digits go.
fn directory_before(bytes: &[u8], end: usize) -> &[u8] {
    let usual = &bytes[LEADER_LEN_BYTES.min(end)..end];
    if usual.len().is_multiple_of(ENTRY_LEN_BYTES) {
        return usual;
    }
    let aligned = &bytes[end % ENTRY_LEN_BYTES..end];
    let n_good = aligned
        .as_chunks::<ENTRY_LEN_BYTES>()
        .0
        .iter()
        .rev()
        .take_while(|entry| stated_field(entry).is_some() && entry[..3].iter().all(u8::is_ascii_alphanumeric))
        .count();
    if n_good * ENTRY_LEN_BYTES + ENTRY_LEN_BYTES <= usual.len() {
        return usual;
    }
    &bytes[end - n_good * ENTRY_LEN_BYTES..end]
}

/// Bytes between two terminators, relative to the data.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    is_ended: bool,
}

fn split(data: &[u8]) -> Vec<Piece> {
    let mut start = 0;
    let mut pieces = Vec::new();
    for end in memchr_iter(FIELD_TERMINATOR, data) {
        pieces.push(Piece { start, end, is_ended: true });
        start = end + 1;
    }
    if start < data.len() {
        pieces.push(Piece { start, end: data.len(), is_ended: false });
    }
    pieces
}

/// Most terminators inside of fields that are looked for in one record.
const INNER_TERMINATORS_MAX: usize = 64;

/// Puts together the pieces of fields that have terminators inside: where there are more pieces than entries and
/// the stated lengths say which belong together, so that none is left.
fn join(entries: &[[u8; ENTRY_LEN_BYTES]], pieces: &[Piece]) -> Option<Vec<Piece>> {
    let mut n_surplus = pieces.len().checked_sub(entries.len())?;
    if !(1..=INNER_TERMINATORS_MAX).contains(&n_surplus) {
        return None;
    }
    let mut fields = Vec::with_capacity(entries.len());
    let mut at = 0;
    for entry in entry_order(entries) {
        let (stated, _) = stated_field(&entries[entry])?;
        let start = pieces.get(at)?.start;
        let n_inner = (0..=n_surplus)
            .find(|n_inner| pieces.get(at + n_inner).is_some_and(|last| last.end + 1 - start == stated))
            .unwrap_or(0);
        fields.push(Piece { start, ..pieces[at + n_inner] });
        at += n_inner + 1;
        n_surplus -= n_inner;
    }
    (at == pieces.len()).then_some(fields)
}

/// For each field the number of its directory entry, if it has one.
///
/// With as many fields as entries they belong together in the order of the entries' starts: lengths go wrong more
/// often than the order. With other numbers, exact entries keep their fields and the rest is dealt out in order.
fn name_fields(entries: &[[u8; ENTRY_LEN_BYTES]], fields: &[Piece]) -> Vec<Option<usize>> {
    let order = entry_order(entries);
    if entries.len() == fields.len() {
        return order.into_iter().map(Some).collect();
    }
    let mut names = vec![None; fields.len()];
    let mut left = Vec::new();
    for entry in order {
        let exact = stated_field(&entries[entry]).and_then(|(len, start)| {
            let field = fields.binary_search_by_key(&start, |field| field.start).ok()?;
            (fields[field].end + 1 == start + len).then_some(field)
        });
        match exact {
            Some(field) if names[field].is_none() => names[field] = Some(entry),
            _ => left.push(entry),
        }
    }
    let mut left = left.into_iter();
    for name in names.iter_mut().filter(|name| name.is_none()) {
        *name = left.next();
    }
    names
}

/// Entries by their starts, if those are all different numbers that have not run over five digits; else as
/// the directory has them.
fn entry_order(entries: &[[u8; ENTRY_LEN_BYTES]]) -> Vec<usize> {
    let starts: Option<Vec<(usize, usize)>> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| stated_field(entry).map(|(_, start)| (start, number)))
        .collect();
    let as_they_stand = || (0..entries.len()).collect();
    let Some(mut starts) = starts else { return as_they_stand() };
    let n_bytes: usize = entries.iter().filter_map(stated_field).map(|(len, _)| len).sum();
    starts.sort_unstable();
    if super::RECORD_LEN_MAX_BYTES <= n_bytes || starts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return as_they_stand();
    }
    starts.into_iter().map(|(_, number)| number).collect()
}

/// The named fields in the order of the directory.
fn spans(
    entries: &[[u8; ENTRY_LEN_BYTES]],
    fields: &[Piece],
    names: &[Option<usize>],
    base: usize,
) -> Vec<Span> {
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
