//! Where ISO 2709 records begin and end.

use memchr::{memchr, memchr_iter};

use super::{FIELD_TERMINATOR, RECORD_LEN_MAX_BYTES, RECORD_LEN_MIN_BYTES, RECORD_TERMINATOR};
use crate::cut::{Cut, Rest};
use crate::format::UTF8_BOM;
use crate::leader::{LEADER_LEN_BYTES, digits};
use crate::problem::{Fault, excerpt};

/// Finds the next record. The leader's length is used if a record terminator is at its end and no other
/// record begins before; otherwise the next record terminator, or the leader of the next record.
pub(crate) fn cut(data: &[u8], rest: Rest) -> Cut {
    let skip = filler_len(data, rest);
    let data = &data[skip..];
    if data.is_empty() {
        return Cut::More { skip };
    }
    let stated = data.get(..5).and_then(digits).filter(|len| RECORD_LEN_MIN_BYTES <= *len);
    if let Some(len) = stated
        && data.get(len - 1) == Some(&RECORD_TERMINATOR)
        && !holds_two_records(&data[..len])
    {
        return Cut::Piece { skip, len, fault: None };
    }
    if rest == Rest::Unknown && data.len() < stated.unwrap_or(0).min(RECORD_LEN_MAX_BYTES) + LEADER_LEN_BYTES
    {
        return Cut::More { skip };
    }
    match by_terminators(data, stated) {
        Some((len, fault)) => Cut::Piece { skip, len, fault: Some(fault) },
        None if rest == Rest::Unknown => Cut::More { skip },
        None => Cut::Piece { skip, len: data.len(), fault: Some(unended(data)) },
    }
}

/// Returns the length of bytes that real files have between records: line ends, blanks, padding, end-of-file
/// marks, a byte order mark, a second record terminator. Blanks may also be the length that a leader does not
/// state.
fn filler_len(data: &[u8], rest: Rest) -> usize {
    let mut at = 0;
    while let Some(&byte) = data.get(at) {
        let here = &data[at..];
        match byte {
            b' ' if is_leader_end(here) || (rest == Rest::Unknown && here.len() < LEADER_LEN_BYTES) => break,
            b'\n' | b'\r' | b'\t' | b' ' | 0x00 | 0x1A | RECORD_TERMINATOR => at += 1,
            0xEF if here.starts_with(UTF8_BOM) => at += UTF8_BOM.len(),
            _ => break,
        }
    }
    at
}

/// Returns whether bytes look like a leader, from the indicator count on.
fn is_leader_end(data: &[u8]) -> bool {
    data.get(10..12) == Some(b"22") && data.get(20..22) == Some(b"45")
}

/// Returns whether a record terminator inside is followed by a leader: the stated length then spans two
/// records.
fn holds_two_records(data: &[u8]) -> bool {
    memchr_iter(RECORD_TERMINATOR, &data[..data.len() - 1]).any(|at| is_leader(&data[at + 1..]))
}

/// Returns the end of a record whose leader is wrong about it, and what is wrong.
fn by_terminators(data: &[u8], stated: Option<usize>) -> Option<(usize, Fault)> {
    let end = memchr(RECORD_TERMINATOR, data);
    let searched = &data[..end.unwrap_or(data.len())];
    if let Some(len) = stated.filter(|len| is_leader(searched.get(*len..).unwrap_or_default())) {
        return Some((len, Fault::MissingTerminator));
    }
    if let Some(len) = next_leader(searched) {
        return Some((len, Fault::MissingTerminator));
    }
    end.map(|end| {
        let stated = excerpt(&data[..end.min(5)]);
        (end + 1, Fault::WrongLength { stated, found: end + 1 })
    })
}

/// Length of the bytes before a leader that follows a field terminator, perhaps on a new line.
fn next_leader(data: &[u8]) -> Option<usize> {
    memchr_iter(FIELD_TERMINATOR, data).map(|at| at + 1).find(|at| {
        let next = &data[*at..];
        is_leader(&next[next.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()..])
    })
}

/// Returns whether bytes look like a leader beyond doubt: digits, indicator and subfield code counts, entry map.
fn is_leader(data: &[u8]) -> bool {
    let Some(leader) = data.get(..LEADER_LEN_BYTES) else { return false };
    digits(&leader[..5]).is_some()
        && leader[5..10].iter().all(|byte| matches!(byte, b' '..=b'~'))
        && digits(&leader[12..17]).is_some()
        && is_leader_end(leader)
}

/// Returns what is wrong with bytes that end with the input instead of a terminator.
fn unended(data: &[u8]) -> Fault {
    let has_length = data.get(..5).and_then(digits).is_some();
    if has_length || memchr(FIELD_TERMINATOR, data).is_some() {
        Fault::CutOff { available: data.len() }
    } else {
        Fault::NotARecord { len: data.len(), expected: "ISO 2709" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = b"00041nam a2200037   4500001000300000\x1E1\x1E\x1D";
    const WHOLE: &[u8] = b"00040nam a2200037   4500001000200000\x1E1\x1E\x1D";

    fn piece(data: &[u8]) -> (usize, usize, Option<Fault>) {
        match cut(data, Rest::None) {
            Cut::Piece { skip, len, fault } => (skip, len, fault),
            Cut::More { skip } => (skip, 0, None),
        }
    }

    #[test]
    fn believes_a_right_length() {
        assert_eq!(piece(&[WHOLE, WHOLE].concat()), (0, 40, None));
        assert_eq!(piece(&[b"\r\n\x1A", WHOLE].concat()), (3, 40, None));
    }

    #[test]
    fn finds_the_terminator_of_a_wrong_length() {
        let fault = Fault::WrongLength { stated: "00041".into(), found: 40 };
        assert_eq!(piece(GOOD), (0, 40, Some(fault.clone())));
        assert_eq!(piece(&[GOOD, WHOLE].concat()), (0, 40, Some(fault)));
    }

    #[test]
    fn splits_records_without_terminator() {
        let cut_short = &WHOLE[..39];
        assert_eq!(piece(&[cut_short, WHOLE].concat()), (0, 39, Some(Fault::MissingTerminator)));
        assert_eq!(piece(&[cut_short, b"\r\n", WHOLE].concat()), (0, 39, Some(Fault::MissingTerminator)));
    }

    #[test]
    fn waits_for_more() {
        for len in 0..WHOLE.len() {
            assert_eq!(cut(&WHOLE[..len], Rest::Unknown), Cut::More { skip: 0 }, "{len} bytes");
        }
    }

    #[test]
    fn names_what_is_at_the_end() {
        assert_eq!(piece(&WHOLE[..30]).2, Some(Fault::CutOff { available: 30 }));
        assert_eq!(piece(b"7\n").2, Some(Fault::NotARecord { len: 2, expected: "ISO 2709" }));
        assert_eq!(piece(b" \n\0"), (3, 0, None));
    }
}
