//! Finds where `record` elements begin and end, without parsing their contents.

use memchr::{memchr, memchr2, memmem};

use crate::cut::{Cut, Rest};
use crate::problem::Fault;

/// Finds the next `record` element. Of nested ones the inner one is taken (OAI-PMH wraps MARC records in records of
/// its own); one without an end tag before the next one begins is cut there.
pub(crate) fn cut(data: &[u8], rest: Rest) -> Cut {
    let mut open: Option<Open> = None;
    let mut at = 0;
    while let Some(start) = memchr(b'<', &data[at..]).map(|found| at + found) {
        let (markup, len) = match markup(&data[start..]) {
            Scan::Whole(markup, len) => (markup, len),
            Scan::Beyond if rest == Rest::Unknown => {
                return Cut::More { skip: open.map_or(start, |open| open.start) };
            }
            Scan::Beyond => break,
        };
        at = start + len;
        match (markup, &mut open) {
            (Markup::RecordStart, Some(open)) if open.has_marc => {
                let skip = open.start;
                return Cut::Piece { skip, len: start - skip, fault: Some(unclosed()) };
            }
            (Markup::RecordStart, _) => open = Some(Open { start, has_marc: false, has_other: false }),
            (Markup::RecordEmpty, _) => return Cut::Piece { skip: start, len, fault: None },
            (Markup::RecordEnd, Some(other)) if other.has_other && !other.has_marc => open = None,
            (Markup::RecordEnd, Some(open)) => {
                return Cut::Piece { skip: open.start, len: at - open.start, fault: None };
            }
            (Markup::MarcStart, Some(open)) => open.has_marc = true,
            (Markup::OtherStart, Some(open)) => open.has_other = true,
            (Markup::RecordEnd | Markup::MarcStart | Markup::OtherStart, None) | (Markup::Other, _) => {}
        }
    }
    match (open, rest) {
        (Some(open), Rest::Unknown) => Cut::More { skip: open.start },
        (Some(open), Rest::None) => {
            Cut::Piece { skip: open.start, len: data.len() - open.start, fault: Some(unclosed()) }
        }
        (None, _) => Cut::More { skip: data.len() },
    }
}

/// A `record` start tag whose end was not seen yet.
struct Open {
    start: usize,
    /// Whether a leader or a field followed.
    has_marc: bool,
    /// Whether another element followed: without MARC it is a record of something else, such as a deletion in an
    /// OAI-PMH answer.
    has_other: bool,
}

fn unclosed() -> Fault {
    Fault::Xml { message: "the <record> element has no end tag; is the file cut off?".to_owned() }
}

enum Markup {
    RecordStart,
    RecordEmpty,
    RecordEnd,
    /// Start of a leader or a field.
    MarcStart,
    /// Start of another element.
    OtherStart,
    Other,
}

enum Scan {
    /// What it is and how many bytes it takes.
    Whole(Markup, usize),
    /// It does not end in the data.
    Beyond,
}

/// Recognises markup that begins with `<`.
fn markup(data: &[u8]) -> Scan {
    match data {
        [b'<', b'!', b'-', b'-', ..] => until(data, 4, b"-->"),
        [b'<', b'!', b'[', ..] => until(data, 3, b"]]>"),
        [b'<', b'?', ..] => until(data, 2, b"?>"),
        [b'<', b'/', rest @ ..] => end_tag(rest),
        [b'<', byte, ..] if is_name_byte(*byte) => start_tag(data),
        [b'<', _, ..] => Scan::Whole(Markup::Other, 1),
        _ => Scan::Beyond,
    }
}

fn until(data: &[u8], from: usize, end: &[u8]) -> Scan {
    match memmem::find(&data[from..], end) {
        Some(at) => Scan::Whole(Markup::Other, from + at + end.len()),
        None => Scan::Beyond,
    }
}

/// Recognises an end tag; `rest` follows `</`.
fn end_tag(rest: &[u8]) -> Scan {
    let Some(end) = memchr(b'>', rest) else { return Scan::Beyond };
    let markup = if local_name(rest) == b"record" { Markup::RecordEnd } else { Markup::Other };
    Scan::Whole(markup, end + 3)
}

fn start_tag(data: &[u8]) -> Scan {
    let Some(end) = tag_end(data) else { return Scan::Beyond };
    let is_empty = end.checked_sub(1).and_then(|before| data.get(before)) == Some(&b'/');
    let markup = match local_name(&data[1..]) {
        b"record" if is_empty => Markup::RecordEmpty,
        b"record" => Markup::RecordStart,
        b"leader" | b"controlfield" | b"datafield" => Markup::MarcStart,
        _ => Markup::OtherStart,
    };
    Scan::Whole(markup, end + 1)
}

/// Returns where the tag at the start of `data` ends: its `>` outside of quotes. A `<` is never allowed in a tag;
/// the tag is considered to end before it, so that a stray quote does not hide the records after it.
fn tag_end(data: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match data.get(at)? {
            b'>' => return Some(at),
            b'<' => return Some(at - 1),
            quote @ (b'"' | b'\'') => {
                let found = at + 1 + memchr2(*quote, b'<', &data[at + 1..])?;
                at = if data[found] == b'<' { found } else { found + 1 };
            }
            _ => at += 1,
        }
    }
}

/// Returns the element's name without its prefix.
fn local_name(data: &[u8]) -> &[u8] {
    let len = data.iter().take_while(|byte| is_name_byte(**byte)).count();
    let name = &data[..len];
    match memchr(b':', name) {
        Some(colon) => &name[colon + 1..],
        None => name,
    }
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.') || !byte.is_ascii()
}
