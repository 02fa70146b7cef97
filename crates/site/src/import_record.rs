//! A record of an import job: what went wrong with it, and its MARC data with each fault marked.

use axum::extract::{Path, State};
use axum::response::Response;
use base64::Engine as _;
use http::StatusCode;
use pinakes_marc::{Encoding, Field, Format, ParsedRecord, Problem, RawRecord};
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::{Site, Visitor};
use crate::error::Result;
use crate::fields::encoded;
use crate::imports::for_staff;
use crate::record::text;

/// Number of bytes shown on each side of a fault.
const AROUND_BYTES: usize = 40;
/// Number of bytes shown of an unreadable record, with the fault in their middle.
const RAW_BYTES_MAX: usize = 20_000;

/// A field of a record, or its leader.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line {
    tag: String,
    indicators: String,
    /// Codes of subfields (empty in control fields) and their contents.
    parts: Vec<(String, String)>,
    is_marked: bool,
}

/// A fault and its place.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Fault {
    place: String,
    text: String,
    /// The number of its line.
    line: Option<usize>,
    /// The text before, at and after the place.
    around: Option<[String; 3]>,
}

/// A piece of an unreadable record.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Piece {
    text: String,
    is_marked: bool,
}

/// What is shown of a record.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    lines: Vec<Line>,
    faults: Vec<Fault>,
    /// The bytes of an unreadable record.
    raw: Option<Vec<Piece>>,
    is_raw_cut: bool,
}

/// `GET /site/imports/{job}/records/{record}`
pub(crate) async fn page(
    State(site): State<Site>,
    visitor: Visitor,
    Path((job, id)): Path<(String, String)>,
) -> Result<Response> {
    let page = record(&site, &visitor, &job, &id).await.map_err(|it| for_staff(&visitor, it));
    site.shown(&visitor, page)
}

async fn record(site: &Site, visitor: &Visitor, job: &str, id: &str) -> Result<Response> {
    let (job, id) = (encoded(job), encoded(id));
    let entry = format!("/metadata-provider/jobLogEntries/{job}/records/{id}");
    let source = format!("/source-storage/records/{id}");
    let (entry, source) =
        tokio::join!(site.read(visitor, "folio", &entry), site.read(visitor, "folio", &source));
    let (entry, source) = (entry?, source.unwrap_or(Value::Null));
    let (error, warning) = (text(&entry, "error"), text(&entry, "warning"));
    let bytes = bytes_of(&source);
    let shown =
        if bytes.is_empty() { Shown::default() } else { shown(&bytes, &format!("{error} {warning}")) };
    let number = text(&entry, "sourceRecordOrder").parse::<u64>().map(|it| (it + 1).to_string());
    let page = json!({
        "title_key": "import", "title": text(&entry, "sourceRecordTitle"), "number": number.unwrap_or_default(),
        "job": format!("/site/imports/{job}"), "error": error, "warning": warning, "problems": shown.faults,
        "is_marked": shown.lines.iter().any(|it| it.is_marked), "lines": shown.lines, "raw": shown.raw,
        "is_raw_cut": shown.is_raw_cut,
    });
    site.page(visitor, StatusCode::OK, "import_record.html", page)
}

/// Returns the original bytes of a source record.
fn bytes_of(source: &Value) -> Vec<u8> {
    let exact = text(source, "rawRecord/contentBase64");
    let exact = base64::engine::general_purpose::STANDARD.decode(exact).unwrap_or_default();
    if exact.is_empty() { text(source, "rawRecord/content").into_bytes() } else { exact }
}

/// Returns a record's fields with the faulty ones marked: those that could not be parsed completely, and those that the
/// import's own message names.
fn shown(bytes: &[u8], message: &str) -> Shown {
    let format = pinakes_marc::sniff(bytes).unwrap_or(Format::Iso2709);
    let mut cut = pinakes_marc::records(format, bytes);
    let raw = cut.next().unwrap_or_else(|| RawRecord::alone(bytes));
    let parsed = pinakes_marc::parse(format, Encoding::Leader, raw);
    let mut lines = lines_of(&parsed);
    let faults: Vec<Fault> = parsed.problems.iter().map(|it| fault(&parsed, bytes, it)).collect();
    let named = tags_named(message);
    for line in lines.iter_mut().filter(|it| named.contains(&it.tag.as_str())) {
        line.is_marked = true;
    }
    for at in faults.iter().filter_map(|it| it.line) {
        if let Some(line) = lines.get_mut(at) {
            line.is_marked = true;
        }
    }
    if !lines.is_empty() {
        return Shown { lines, faults, ..Shown::default() };
    }
    let at = parsed.problems.first().map(|it| usize::try_from(it.offset).unwrap_or(usize::MAX));
    let (raw, is_raw_cut) = pieces(bytes, at.unwrap_or(usize::MAX));
    Shown { lines, faults, raw: Some(raw), is_raw_cut }
}

fn lines_of(parsed: &ParsedRecord) -> Vec<Line> {
    let Some(record) = &parsed.record else { return Vec::new() };
    let plain = |tag: String, text: &str| Line {
        tag,
        indicators: String::new(),
        parts: vec![(String::new(), text.to_owned())],
        is_marked: false,
    };
    let field = |it: &Field| match it {
        Field::Control(it) => plain(it.tag.to_string(), &it.value),
        Field::Data(it) => Line {
            tag: it.tag.to_string(),
            indicators: it.indicators.iter().map(|it| if *it == ' ' { '#' } else { *it }).collect(),
            parts: it.subfields.iter().map(|it| (it.code.to_string(), it.value.clone())).collect(),
            is_marked: false,
        },
    };
    let leader = plain("LDR".to_owned(), record.leader.as_str());
    std::iter::once(leader).chain(record.fields.iter().map(field)).collect()
}

/// Returns the line of a problem: the field that contains its byte, or the first field with its tag, or the leader.
fn line_of(parsed: &ParsedRecord, problem: &Problem) -> Option<usize> {
    let record = parsed.record.as_ref()?;
    let Some(tag) = problem.tag else { return Some(0) };
    let of_tag = |at: &usize| *record.fields[*at].tag() == tag;
    let places: Vec<usize> = (0..record.fields.len()).filter(of_tag).collect();
    let begins = |at: &&usize| parsed.field_offsets.get(**at).is_some_and(|it| *it <= problem.offset);
    places.iter().rev().find(begins).or_else(|| places.first()).map(|at| at + 1)
}

fn fault(parsed: &ParsedRecord, bytes: &[u8], problem: &Problem) -> Fault {
    let at = usize::try_from(problem.offset).unwrap_or(usize::MAX);
    let around = (at < bytes.len() && parsed.record.is_some()).then(|| {
        let begin = at.saturating_sub(AROUND_BYTES);
        let behind = at + length_at(bytes, at);
        let end = (behind + AROUND_BYTES).min(bytes.len());
        [visible(&bytes[begin..at]), visible(&bytes[at..behind]), visible(&bytes[behind..end])]
    });
    let place = match problem.tag {
        Some(tag) => format!("{tag} (byte {})", problem.offset),
        None => format!("byte {}", problem.offset),
    };
    Fault { place, text: problem.fault.to_string(), line: line_of(parsed, problem), around }
}

/// Returns the length of the character that begins there; 1 if none does.
fn length_at(bytes: &[u8], at: usize) -> usize {
    let end = (at + 4).min(bytes.len());
    (1..=end - at).find(|it| std::str::from_utf8(&bytes[at..at + it]).is_ok()).unwrap_or(1)
}

/// Returns the bytes around a fault, which is marked.
fn pieces(bytes: &[u8], at: usize) -> (Vec<Piece>, bool) {
    let at = at.min(bytes.len());
    let begin = at.saturating_sub(RAW_BYTES_MAX / 2);
    let end = (begin + RAW_BYTES_MAX).min(bytes.len());
    let behind = if at < bytes.len() { at + length_at(bytes, at) } else { at };
    let piece = |range: std::ops::Range<usize>, is_marked| Piece {
        text: bytes.get(range).map(visible).unwrap_or_default(),
        is_marked,
    };
    let mut list = vec![piece(begin..at, false), piece(at..behind, true), piece(behind..end, false)];
    list.retain(|it| !it.text.is_empty());
    (list, begin > 0 || end < bytes.len())
}

/// Formats bytes as text; separators of fields and subfields, and other control characters, are shown as symbols.
fn visible(bytes: &[u8]) -> String {
    let sign = |it: char| match u32::from(it) {
        9 | 10 => it,
        13 => '␍',
        code @ 0..=31 => char::from_u32(0x2400 + code).unwrap_or('�'),
        _ => it,
    };
    String::from_utf8_lossy(bytes).chars().map(sign).collect()
}

/// Returns the tags that a message names: `field 245`, `852 $b`, `245$a`, `The 004 tag`.
fn tags_named(message: &str) -> Vec<&str> {
    let words: Vec<&str> =
        message.split([' ', ',', ':', ';', '(', ')', '\'', '"']).filter(|it| !it.is_empty()).collect();
    let mut tags = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(tag) = word.get(..3).filter(|it| it.bytes().all(|it| it.is_ascii_digit())) else { continue };
        let rest = &word[3..];
        let before = at.checked_sub(1).and_then(|it| words.get(it)).copied().unwrap_or_default();
        let after = words.get(at + 1).copied().unwrap_or_default();
        let is_named =
            matches!(before, "field" | "fields" | "tag" | "and") || after == "tag" || after.starts_with('$');
        if rest.starts_with('$') || (rest.is_empty() && is_named) {
            tags.push(tag);
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record whose title contains a byte that is not UTF-8.
    const BROKEN: &[u8] = b"00085nam a2200061   4500001000300000245001500003500000500018\x1Eu1\x1E10\x1FaBad \xFF byte\x1Eno\x1Ff\x1E\x1D";

    #[test]
    fn the_field_with_the_fault_is_marked_and_so_is_its_byte() {
        let it = shown(BROKEN, "");
        let marked: Vec<&str> = it.lines.iter().filter(|it| it.is_marked).map(|it| it.tag.as_str()).collect();
        assert_eq!((marked, it.raw.is_none()), (vec!["245"], true));
        let fault = it.faults.iter().find(|it| it.place.starts_with("245"));
        let [before, at, behind] = fault.and_then(|it| it.around.clone()).unwrap_or_default();
        assert!(before.ends_with("10␟aBad "), "{before}");
        assert!(at == "\u{fffd}" && behind.starts_with(" byte␞"), "{at}{behind}");
        assert_eq!(fault.and_then(|it| it.line), Some(2));
    }

    #[test]
    fn a_field_that_the_message_names_is_marked() {
        let record = b"=LDR  00000nam a2200000   4500\n=245  10$aTides\n=852  \\\\$bmain\n";
        for (message, marked) in [
            ("record 1 (byte 0): 852 $b \"main\" is not the code of a location", &["852"][..]),
            ("record 852 (byte 245): something", &[]),
            ("The 004 tag of the Holdings doesn't has a link; field 245: wrong", &["245"]),
            ("", &[]),
        ] {
            let it = shown(record, message);
            let found: Vec<&str> =
                it.lines.iter().filter(|it| it.is_marked).map(|it| it.tag.as_str()).collect();
            assert_eq!(found, marked, "{message}");
        }
    }

    #[test]
    fn what_is_no_record_is_shown_as_it_came() {
        let it = shown(b"this is no MARC record\x1D", "");
        assert!(it.lines.is_empty());
        let text: String = it.raw.unwrap_or_default().iter().map(|it| it.text.as_str()).collect();
        assert_eq!(text, "this is no MARC record␝");
        let (pieces, is_cut) = pieces(&vec![b'x'; 100_000], 50_000);
        assert!(is_cut && pieces.iter().map(|it| it.text.len()).sum::<usize>() == RAW_BYTES_MAX);
    }
}
