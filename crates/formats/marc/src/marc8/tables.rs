//! The code tables of MARC-8 as data, and look-ups in both directions.
//!
//! The files and their source are described in `data/marc8/README.md`. Look-ups from MARC-8 go straight to the
//! embedded bytes; the reverse index is built once, when text is first written as MARC-8.

use std::collections::HashMap;
use std::sync::LazyLock;

static CHARACTER_SETS: &[u8] = include_bytes!("../../data/marc8/sets.bin");
static EACC: &[u8] = include_bytes!("../../data/marc8/eacc.bin");

/// Rows of a set of 94 characters: bytes 21 to 7E hex.
const SET_ROWS: usize = 94;
const SET_ROW_LEN_BYTES: usize = 3;
const EACC_ROW_LEN_BYTES: usize = 5;

/// Final bytes of the sets in `sets.bin`, in their order.
const SETS_IN_FILE: &[u8; 10] = b"ESNQ234bpg";

/// Final byte of the escape sequence for ASCII.
pub(super) const ASCII: u8 = b'B';
/// Final byte of the escape sequence for extended Latin (ANSEL).
pub(super) const ANSEL: u8 = b'E';
/// Final byte of the escape sequence for East Asian characters, the only set of three bytes a character.
pub(super) const CJK: u8 = b'1';

/// A character and whether it is a combining mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) char: char,
    pub(super) combines: bool,
}

/// Returns whether a final byte names a set.
pub(super) fn is_set(final_byte: u8) -> bool {
    final_byte == ASCII || final_byte == CJK || SETS_IN_FILE.contains(&final_byte)
}

/// Returns the character of a one-byte set; `byte` is in the left half (21 to 7E hex).
pub(super) fn single(set: u8, byte: u8) -> Option<Entry> {
    if set == ASCII {
        return byte.is_ascii_graphic().then(|| Entry { char: char::from(byte), combines: false });
    }
    let set_at = SETS_IN_FILE.iter().position(|name| *name == set)?;
    let row = usize::from(byte.checked_sub(0x21)?);
    if SET_ROWS <= row {
        return None;
    }
    let at = (set_at * SET_ROWS + row) * SET_ROW_LEN_BYTES;
    let row = CHARACTER_SETS.get(at..at + SET_ROW_LEN_BYTES)?;
    match u16::from_be_bytes([row[1], row[2]]) {
        0 => None,
        code_point => Some(Entry { char: char::from_u32(u32::from(code_point))?, combines: row[0] == 1 }),
    }
}

/// The character of a three-byte EACC code.
pub(super) fn eacc(code: [u8; 3]) -> Option<char> {
    let rows = EACC.as_chunks::<EACC_ROW_LEN_BYTES>().0;
    let at = rows.binary_search_by(|row| row[..3].cmp(&code)).ok()?;
    char::from_u32(u32::from(u16::from_be_bytes([rows[at][3], rows[at][4]])))
}

/// The place of a character in MARC-8: a set and its code there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) set: u8,
    pub(super) bytes: [u8; 3],
    pub(super) combines: bool,
}

impl Code {
    /// Returns the bytes of the code: three in the East Asian set, one in all others.
    pub(super) fn as_bytes(&self) -> &[u8] {
        if self.set == CJK { &self.bytes } else { &self.bytes[..1] }
    }
}

/// Codes of a character, in the order of preference: one-byte sets in the order of the file, then EACC.
type Index = HashMap<char, Vec<Code>>;

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::new();
    for set in SETS_IN_FILE {
        for byte in 0x21..=0x7E {
            if let Some(Entry { char, combines }) = single(*set, byte) {
                add(&mut index, char, Code { set: *set, bytes: [byte, 0, 0], combines });
            }
        }
    }
    for row in EACC.as_chunks::<EACC_ROW_LEN_BYTES>().0 {
        let bytes = [row[0], row[1], row[2]];
        if let Some(char) = eacc(bytes).filter(|_| is_written(bytes)) {
            add(&mut index, char, Code { set: CJK, bytes, combines: false });
        }
    }
    index
});

/// Returns whether a code may be written: not those outside of the set's range, which only old records have.
fn is_written(bytes: [u8; 3]) -> bool {
    bytes == IDEOGRAPHIC_SPACE || bytes.iter().all(|byte| (0x21..=0x7E).contains(byte))
}

/// The one regular code with a byte below 21 hex.
const IDEOGRAPHIC_SPACE: [u8; 3] = [0x21, 0x23, 0x20];

/// Adds a code, unless the set has one for this character already: the lowest code of a set is used.
fn add(index: &mut Index, char: char, code: Code) {
    let codes = index.entry(char).or_default();
    if codes.iter().all(|other| other.set != code.set) {
        codes.push(code);
    }
}

/// Returns all codes of a character outside ASCII; also those of ASCII characters in other sets.
pub(super) fn codes(char: char) -> &'static [Code] {
    INDEX.get(&char).map_or(&[], Vec::as_slice)
}

/// Returns whether a character is a mark that MARC-8 writes before its letter.
pub(super) fn combines(char: char) -> bool {
    codes(char).iter().any(|code| code.combines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_stated_layout() {
        assert_eq!(CHARACTER_SETS.len(), SETS_IN_FILE.len() * SET_ROWS * SET_ROW_LEN_BYTES);
        assert_eq!(EACC.len() % EACC_ROW_LEN_BYTES, 0);
        assert!(EACC.as_chunks::<EACC_ROW_LEN_BYTES>().0.is_sorted_by_key(|row| [row[0], row[1], row[2]]));
    }

    #[test]
    fn knows_one_character_of_each_set() {
        assert_eq!(single(ANSEL, 0x61), Some(Entry { char: '\u{300}', combines: true }));
        assert_eq!(single(b'S', 0x41).map(|it| it.char), Some('Α'));
        assert_eq!(single(b'N', 0x41).map(|it| it.char), Some('а'));
        assert_eq!(single(b'Q', 0x40).map(|it| it.char), Some('ґ'));
        assert_eq!(single(b'2', 0x60).map(|it| it.char), Some('א'));
        assert_eq!(single(b'3', 0x47).map(|it| it.char), Some('ا'));
        assert_eq!(single(b'4', 0x29).map(|it| it.char), Some('پ'));
        assert_eq!(single(b'b', 0x32).map(|it| it.char), Some('₂'));
        assert_eq!(single(b'p', 0x32).map(|it| it.char), Some('²'));
        assert_eq!(single(b'g', 0x61).map(|it| it.char), Some('α'));
        assert_eq!(eacc([0x21, 0x30, 0x21]), Some('一'));
        assert_eq!(single(b'!', 0x61), None);
    }
}
