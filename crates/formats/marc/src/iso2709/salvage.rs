//! Finds fields if the directory is wrong: which bytes are the directory, what is between the terminators, and
//! which entry names which field.

use memchr::memchr_iter;

use super::{ENTRY_LEN_BYTES, FIELD_TERMINATOR, RECORD_LEN_MAX_BYTES};
use crate::iso2709::directory::{Entry, stated_field};
use crate::leader::LEADER_LEN_BYTES;
use crate::problem::Fault;

/// Returns the directory that ends at `end`, and what is wrong with it: from byte 24 or, if the leader has
/// lost or gained bytes, as far back as whole entries of digits go.
pub(super) fn directory_before(bytes: &[u8], end: usize, n_fields: usize) -> (Vec<Entry>, Option<Fault>) {
    let usual = &bytes[LEADER_LEN_BYTES.min(end)..end];
    let (entries, odd) = usual.as_chunks();
    if odd.is_empty() {
        return (entries.to_vec(), None);
    }
    if let Some(entries) = overgrown(usual, n_fields) {
        return (entries, Some(Fault::OvergrownDirectory));
    }
    let aligned: &[Entry] = bytes[end % ENTRY_LEN_BYTES..end].as_chunks().0;
    let is_good =
        |entry: &&Entry| stated_field(entry).is_some() && entry[..3].iter().all(u8::is_ascii_alphanumeric);
    let n_good = aligned.iter().rev().take_while(is_good).count();
    if n_good * ENTRY_LEN_BYTES + ENTRY_LEN_BYTES <= usual.len() {
        return (entries.to_vec(), Some(Fault::OddDirectory { len: usual.len() }));
    }
    (aligned[aligned.len() - n_good..].to_vec(), None)
}

/// Reads a directory whose later entries have six digits for the start, as some programs write records beyond
/// 99,999 bytes. The number of such entries follows from the number of fields; the sixth digit is cut off.
fn overgrown(directory: &[u8], n_fields: usize) -> Option<Vec<Entry>> {
    let n_long = directory.len().checked_sub(n_fields * ENTRY_LEN_BYTES)?;
    let n_short = n_fields.checked_sub(n_long)?;
    let (short, long) = directory.split_at(n_short * ENTRY_LEN_BYTES);
    let mut entries: Vec<Entry> = short.as_chunks().0.to_vec();
    for long in long.as_chunks::<{ ENTRY_LEN_BYTES + 1 }>().0 {
        let mut entry = [0; ENTRY_LEN_BYTES];
        entry[..7].copy_from_slice(&long[..7]);
        entry[7..].copy_from_slice(&long[8..]);
        entries.push(entry);
    }
    entries.iter().all(|entry| stated_field(entry).is_some()).then_some(entries)
}

/// Bytes between two terminators, relative to the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_ended: bool,
}

/// Returns all pieces of the data.
pub(super) fn split(data: &[u8]) -> Vec<Piece> {
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

/// Maximum number of terminators inside of fields that are looked for in one record.
const INNER_TERMINATORS_MAX: usize = 32;
/// Maximum number of entries of a record in which they are looked for: the work grows with the product.
const JOINED_ENTRIES_MAX: usize = 1_000;

/// Joins the pieces of fields that have terminators inside, if there are more pieces than entries.
///
/// Of all ways to distribute the pieces in order, it takes the one with the least total deviation from the stated
/// lengths; it counts only if each joined field is within a quarter of its stated length. Lengths need not be
/// exact, because such records often were converted to another encoding later.
pub(super) fn join(entries: &[Entry], pieces: &[Piece]) -> Option<Vec<Piece>> {
    let n_surplus = pieces.len().checked_sub(entries.len())?;
    if !(1..=INNER_TERMINATORS_MAX).contains(&n_surplus) || JOINED_ENTRIES_MAX < entries.len() {
        return None;
    }
    let stated: Option<Vec<usize>> =
        entry_order(entries).into_iter().map(|entry| Some(stated_field(&entries[entry])?.0)).collect();
    let stated = stated?;
    let mut at = 0;
    let mut fields = Vec::with_capacity(entries.len());
    for (n_inner, stated) in inner_terminators(&stated, pieces, n_surplus).into_iter().zip(stated) {
        let field = joined(pieces, at, n_inner);
        if n_inner != 0 && stated < 4 * deviation(&field, stated) {
            return None;
        }
        fields.push(field);
        at += n_inner + 1;
    }
    (at == pieces.len()).then_some(fields)
}

fn joined(pieces: &[Piece], at: usize, n_inner: usize) -> Piece {
    Piece { start: pieces[at].start, ..pieces[at + n_inner] }
}

fn deviation(field: &Piece, stated: usize) -> usize {
    (field.end + 1 - field.start).abs_diff(stated)
}

/// Returns for each field the number of terminators inside, by dynamic programming over the fields and the
/// terminators used so far.
fn inner_terminators(stated: &[usize], pieces: &[Piece], n_surplus: usize) -> Vec<usize> {
    const UNREACHED: usize = usize::MAX / 2;
    let mut costs = vec![UNREACHED; n_surplus + 1];
    costs[0] = 0;
    let mut choices = Vec::with_capacity(stated.len());
    for (number, stated) in stated.iter().enumerate() {
        let best = |n_used: usize| {
            (0..=n_used)
                .map(|n_inner| {
                    let n_before = n_used - n_inner;
                    let field = joined(pieces, number + n_before, n_inner);
                    (costs[n_before] + deviation(&field, *stated), n_inner)
                })
                .min()
                .unwrap_or((UNREACHED, 0))
        };
        let (next, chosen): (Vec<usize>, Vec<usize>) = (0..=n_surplus).map(best).unzip();
        costs = next;
        choices.push(chosen);
    }
    let mut n_used = n_surplus;
    let mut n_inner: Vec<usize> = choices
        .iter()
        .rev()
        .map(|chosen| {
            let n_inner = chosen[n_used];
            n_used -= n_inner;
            n_inner
        })
        .collect();
    n_inner.reverse();
    n_inner
}

/// Returns for each field the number of its directory entry, if it has one.
///
/// With as many fields as entries they are matched in the order of the entries' starts: lengths are wrong more
/// often than the order. Otherwise, exact entries keep their fields and the rest is distributed in order.
pub(super) fn name_fields(entries: &[Entry], fields: &[Piece]) -> Vec<Option<usize>> {
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

/// Orders entries by their starts, if those are all different numbers that have not overflowed five digits;
/// otherwise as in the directory.
fn entry_order(entries: &[Entry]) -> Vec<usize> {
    let starts: Option<Vec<(usize, usize)>> = entries
        .iter()
        .enumerate()
        .map(|(number, entry)| stated_field(entry).map(|(_, start)| (start, number)))
        .collect();
    let as_they_stand = || (0..entries.len()).collect();
    let Some(mut starts) = starts else { return as_they_stand() };
    let n_bytes: usize = entries.iter().filter_map(stated_field).map(|(len, _)| len).sum();
    starts.sort_unstable();
    if RECORD_LEN_MAX_BYTES <= n_bytes || starts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return as_they_stand();
    }
    starts.into_iter().map(|(_, number)| number).collect()
}
