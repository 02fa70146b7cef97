//! Finds where JSON objects begin and end, without parsing their contents.

use memchr::memchr3;

use crate::cut::{Cut, Rest};
use crate::problem::Fault;

/// Finds the next object outside of any other. A truncated object ends where the next one begins: a line end
/// inside a string and a `{` where none is allowed are taken as such places.
pub(crate) fn cut(data: &[u8], rest: Rest) -> Cut {
    let skip = data.iter().take_while(|byte| is_between(**byte)).count();
    let data = &data[skip..];
    let Some(first) = data.first() else { return Cut::More { skip } };
    let end = if *first == b'{' { object_end(data) } else { junk_end(data) };
    match end {
        End::At(len) => {
            let fault = (*first != b'{').then_some(Fault::NotARecord { len, expected: "MARC-in-JSON" });
            Cut::Piece { skip, len, fault }
        }
        End::Broken(len) => Cut::Piece { skip, len, fault: Some(unended(len)) },
        End::Beyond if rest == Rest::Unknown => Cut::More { skip },
        End::Beyond => Cut::Piece { skip, len: data.len(), fault: Some(unended(data.len())) },
    }
}

/// Blanks, the punctuation of an array around the objects, record separators of JSON text sequences, and the
/// bytes of a byte order mark.
const fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b'[' | b']' | 0x1E | 0xEF | 0xBB | 0xBF)
}

enum End {
    /// The object ends here.
    At(usize),
    /// The object is cut off here.
    Broken(usize),
    /// The data end first.
    Beyond,
}

fn unended(len: usize) -> Fault {
    Fault::Json { message: format!("the object breaks off after {len} bytes") }
}

/// Length of the object at the start of `data`.
fn object_end(data: &[u8]) -> End {
    let (mut at, mut depth) = (0, 0_usize);
    // The last byte that was not a blank: it determines what may come next.
    let mut last = b'[';
    while let Some(byte) = data.get(at) {
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'{' if !matches!(last, b'[' | b',' | b':') => return End::Broken(at - 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return End::At(at);
                }
            }
            b'"' => match string_end(&data[at..]) {
                End::At(len) => at += len,
                End::Broken(len) => return End::Broken(at + len),
                End::Beyond => return End::Beyond,
            },
            _ => {}
        }
        last = *byte;
    }
    End::Beyond
}

/// Length of a string's rest, with its closing quote.
fn string_end(data: &[u8]) -> End {
    let mut at = 0;
    while let Some(found) = data.get(at..).and_then(|rest| memchr3(b'"', b'\\', b'\n', rest)) {
        at += found;
        match data[at] {
            b'"' => return End::At(at + 1),
            b'\\' => at += 2,
            _ => return End::Broken(at),
        }
    }
    End::Beyond
}

/// Returns the length of bytes that are not an object: to the next line end or opening brace.
fn junk_end(data: &[u8]) -> End {
    memchr::memchr2(b'\n', b'{', data).map_or(End::Beyond, End::At)
}
