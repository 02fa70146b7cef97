//! The terms of entries of browsable lists: they sort as the entries do, and give them back.

use super::terms;
use crate::ListEntry;

/// Maximum length of an entry's term in bytes: a record with a longer one is decided on its body.
const ENTRY_BYTES: usize = 8_000;

/// Returns the term of an entry of a list; `None` when it is too long.
pub(super) fn entry_term(list: usize, entry: &ListEntry) -> Option<Vec<u8>> {
    let mut term = terms::list_prefix(list);
    push_entry(&mut term, entry);
    (term.len() <= ENTRY_BYTES).then_some(term)
}

/// Appends the key and the distinguishing part, each terminated, then the collected value: sorts as these do.
pub(super) fn push_entry(bytes: &mut Vec<u8>, entry: &ListEntry) {
    for part in [&entry.key, &entry.apart] {
        terms::push_escaped(bytes, part);
        bytes.extend_from_slice(&END);
    }
    terms::push_escaped(bytes, &entry.gathered);
}

/// Terminates a part of an entry.
const END: [u8; 2] = [0, 0];

/// Returns how many bytes of an entry are its key and distinguishing part, terminators included.
pub(super) fn group_bytes(entry: &[u8]) -> usize {
    let mut n_ends = 0;
    let mut at = 0;
    while at + 1 < entry.len() {
        if entry[at..].starts_with(&END) {
            n_ends += 1;
            at += 2;
            if n_ends == 2 {
                return at;
            }
        } else {
            at += if entry[at] == 0 { 2 } else { 1 };
        }
    }
    entry.len()
}

/// Returns the parts of an entry, as far as it goes.
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
    use super::{entry_term, group_bytes, parts_of};
    use crate::ListEntry;
    use crate::index::terms::list_prefix;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = ListEntry> {
        let part = || "[ab\u{0}\u{1}\u{e9}]{0,3}";
        (part(), part(), part()).prop_map(|(key, apart, gathered)| ListEntry { key, apart, gathered })
    }

    proptest! {
        #[test]
        fn terms_sort_as_entries_and_give_them_back(a in entry(), b in entry()) {
            let term = |it: &ListEntry| entry_term(3, it).expect("a short entry");
            prop_assert_eq!(term(&a).cmp(&term(&b)), a.cmp(&b));
            let whole = term(&a)[list_prefix(3).len()..].to_vec();
            let group = &whole[..group_bytes(&whole)];
            prop_assert_eq!(parts_of(group), [a.key, a.apart]);
            let rest = parts_of(&whole[group.len()..]);
            prop_assert_eq!(rest.first().map_or("", |it| it), a.gathered);
        }
    }
}
