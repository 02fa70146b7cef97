//! The terms of entries of browsable lists. The entries with the same traits are together, sort as they do in the list,
//! and can be read back from their terms.

use sha2::{Digest as _, Sha256};

use super::terms;
use crate::ListEntry;

/// Columns of the hashes of list entries.
pub(super) const LISTS: &str = "l";
/// Maximum length of an entry's term in bytes: a record with a longer one is decided on its body.
const ENTRY_BYTES: usize = 8_000;

/// Terminates a part of an entry.
pub(super) const END: [u8; 2] = [0, 0];

/// Sorts after everything that begins with a part and its [`END`], and before parts that are longer.
pub(super) const BEHIND: [u8; 2] = [0, 1];

/// Returns the term of an entry of a list; `None` when it is too long.
pub(super) fn entry_term(list: usize, entry: &ListEntry) -> Option<Vec<u8>> {
    let mut term = traits_prefix(list, &entry.traits);
    push_group(&mut term, entry);
    terms::push_escaped(&mut term, &entry.gathered);
    (term.len() <= ENTRY_BYTES).then_some(term)
}

/// Returns the common prefix of the terms of all entries with the same traits.
pub(super) fn traits_prefix(list: usize, traits: &str) -> Vec<u8> {
    let mut prefix = terms::list_prefix(list);
    push_part(&mut prefix, traits);
    prefix
}

/// Returns the name of the column with the hashes of the entries that have these traits.
pub(super) fn hash_column(list: usize, traits: &str) -> String {
    format!("{LISTS}.{}", hash_key(list, traits))
}

/// Returns the key of that column below its field.
pub(super) fn hash_key(list: usize, traits: &str) -> String {
    terms::column_key(&[list.to_string(), traits.to_owned()])
}

/// Returns the bytes that entries have in common which are one entry of a list: key and distinguishing part.
pub(super) fn group_of(entry: &ListEntry) -> Vec<u8> {
    let mut group = Vec::new();
    push_group(&mut group, entry);
    group
}

/// Returns the hash of a group, which tells it from all others with the same traits.
pub(super) fn hash_of(group: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&Sha256::digest(group)[..8]);
    i64::from_le_bytes(bytes)
}

fn push_group(bytes: &mut Vec<u8>, entry: &ListEntry) {
    push_part(bytes, &entry.key);
    push_part(bytes, &entry.apart);
}

fn push_part(bytes: &mut Vec<u8>, part: &str) {
    terms::push_escaped(bytes, part);
    bytes.extend_from_slice(&END);
}

/// Returns the length of the first `n` parts, terminators included.
pub(super) fn parts_bytes(entry: &[u8], n: usize) -> usize {
    let mut n_ends = 0;
    let mut at = 0;
    while at + 1 < entry.len() {
        if entry[at..].starts_with(&END) {
            n_ends += 1;
            at += 2;
            if n_ends == n {
                return at;
            }
        } else {
            at += if entry[at] == 0 { 2 } else { 1 };
        }
    }
    entry.len()
}

/// Returns the parts, as far as they go.
pub(super) fn parts_of(entry: &[u8]) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < entry.len() {
        if entry[at..].starts_with(&END) {
            parts.push(String::from_utf8_lossy(&part).into_owned());
            part.clear();
            at += 2;
        } else {
            part.push(entry[at]);
            at += if entry[at] == 0 { 2 } else { 1 };
        }
    }
    if !part.is_empty() {
        parts.push(String::from_utf8_lossy(&part).into_owned());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = ListEntry> {
        let part = || "[ab\u{0}\u{1}\u{e9}]{0,3}";
        (part(), part(), part(), part()).prop_map(|(key, apart, traits, gathered)| ListEntry {
            key,
            apart,
            traits,
            gathered,
        })
    }

    proptest! {
        #[test]
        fn terms_sort_as_entries_and_give_them_back(a in entry(), b in entry()) {
            let term = |it: &ListEntry| entry_term(3, it).expect("a short entry");
            let order = (&a.traits, &a.key, &a.apart, &a.gathered).cmp(&(&b.traits, &b.key, &b.apart, &b.gathered));
            prop_assert_eq!(term(&a).cmp(&term(&b)), order);
            let term = term(&a);
            let whole = term.strip_prefix(traits_prefix(3, &a.traits).as_slice()).expect("its traits");
            let group = &whole[..parts_bytes(whole, 2)];
            prop_assert_eq!(group, group_of(&a));
            prop_assert_eq!(parts_of(group), [a.key, a.apart]);
            let rest = parts_of(&whole[group.len()..]);
            prop_assert_eq!(rest.first().map_or("", |it| it), a.gathered);
            let mut behind = terms::list_prefix(3);
            terms::push_escaped(&mut behind, &a.traits);
            behind.extend_from_slice(&BEHIND);
            prop_assert!(term < behind);
            prop_assert_eq!(behind < traits_prefix(3, &b.traits), a.traits < b.traits);
        }
    }
}
