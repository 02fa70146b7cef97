//! Finds where records in mnemonic text begin and end.

use memchr::memchr_iter;

use crate::cut::{Cut, Rest};

/// Finds the next record: from the first line that is not blank to a blank line or the next leader.
pub(crate) fn cut(data: &[u8], rest: Rest) -> Cut {
    let skip = data.iter().take_while(|byte| is_between(**byte)).count();
    let data = &data[skip..];
    if data.is_empty() {
        return Cut::More { skip };
    }
    for at in memchr_iter(b'\n', data) {
        match line_start(&data[at + 1..]) {
            LineStart::Border => return Cut::Piece { skip, len: at + 1, fault: None },
            LineStart::Unknown if rest == Rest::Unknown => return Cut::More { skip },
            LineStart::Unknown | LineStart::Field => {}
        }
    }
    match rest {
        Rest::Unknown => Cut::More { skip },
        Rest::None => Cut::Piece { skip, len: data.len(), fault: None },
    }
}

/// Line ends, blanks and the bytes of a byte order mark.
const fn is_between(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b' ' | b'\t' | 0xEF | 0xBB | 0xBF)
}

enum LineStart {
    /// A blank line or a leader.
    Border,
    /// Another line of the record.
    Field,
    /// Too few bytes to tell.
    Unknown,
}

fn line_start(line: &[u8]) -> LineStart {
    match line {
        [b'\n', ..] | [b'\r', b'\n', ..] | [b'=', b'L', b'D', b'R', ..] => LineStart::Border,
        [] | [b'\r'] | [b'='] | [b'=', b'L'] | [b'=', b'L', b'D'] => LineStart::Unknown,
        _ => LineStart::Field,
    }
}
