//! Entries of a directory, as they are in the record.

use crate::iso2709::ENTRY_LEN_BYTES;
use crate::leader::digits;
use crate::tag::Tag;

/// The twelve bytes of a directory entry.
pub(crate) type Entry = [u8; ENTRY_LEN_BYTES];

pub(crate) fn tag_of(entry: &Entry) -> Tag {
    let [a, b, c, ..] = *entry;
    Tag::new(&[a, b, c])
}

pub(crate) fn has_good_tag(entry: &Entry) -> bool {
    let [a, b, c, ..] = *entry;
    Tag::is_valid_bytes(&[a, b, c])
}

/// Stated length and start of a field in the data.
pub(crate) fn stated_field(entry: &Entry) -> Option<(usize, usize)> {
    Some((digits(&entry[3..7])?, digits(&entry[7..12])?))
}
