//! Reads mnemonic text.

use crate::cut::RawRecord;
use crate::encoding::utf8_lossy;
use crate::leader::Leader;
use crate::parsed::ParsedRecord;
use crate::problem::{Fault, Report};
use crate::record::{ControlField, DataField, Field, Record, Subfield};
use crate::tag::Tag;

/// Reads one record. A line that is not a field continues the field before it, as in files of old programs,
/// which broke long lines; before any field it is reported.
pub(crate) fn parse(raw: RawRecord<'_>) -> ParsedRecord {
    let RawRecord { number, offset, bytes, problems, .. } = raw;
    let mut report = Report::new(number, offset, problems);
    let Lines { leader, fields } = lines(bytes, &mut report);
    if leader.is_none() && fields.is_empty() {
        report.add(0, None, Fault::NotARecord { len: bytes.len(), expected: "mnemonic text" });
        return ParsedRecord {
            number,
            offset,
            record: None,
            field_offsets: Vec::new(),
            problems: report.finish(),
        };
    }
    if leader.is_none() {
        report.add(0, None, Fault::NoLeader);
    }
    let field_offsets = fields.iter().map(|line| offset + line.at as u64).collect();
    let fields = fields.iter().map(|line| field(line, &mut report)).collect();
    let record = Some(Record { leader: leader.unwrap_or_default(), fields });
    ParsedRecord { number, offset, record, field_offsets, problems: report.finish() }
}

/// The lines of a record, joined where they were broken.
#[derive(Default)]
struct Lines {
    leader: Option<Leader>,
    fields: Vec<Line>,
}

/// One field as text.
struct Line {
    /// Where it begins in the record.
    at: usize,
    tag: Tag,
    /// The text after the tag and its two blanks.
    text: String,
}

fn lines(bytes: &[u8], report: &mut Report) -> Lines {
    let mut lines = Lines::default();
    let mut at = 0;
    for whole in bytes.split_inclusive(|byte| *byte == b'\n') {
        let line = whole.strip_suffix(b"\n").unwrap_or(whole);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = utf8_lossy(line, |in_line, fault| report.add(at + in_line, None, fault));
        match split_line(&text) {
            Some(("LDR" | "000", text)) => lines.leader = Some(leader(text, at, report)),
            Some((tag, text)) => {
                let tag = known_tag(tag, at, report);
                lines.fields.push(Line { at, tag, text: text.to_owned() });
            }
            None => match lines.fields.last_mut() {
                Some(before) if !text.starts_with('=') => {
                    before.text.push(' ');
                    before.text.push_str(&text);
                }
                _ => report.add(at, None, Fault::BadLine { found: text.chars().take(40).collect() }),
            },
        }
        at += whole.len();
    }
    lines
}

/// Splits `=245  10$aTitle` into tag and text; one or two blanks separate them.
fn split_line(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('=')?;
    let (tag, text) = (line.get(..3)?, line.get(3..)?);
    let text = text.strip_prefix(' ').or_else(|| text.is_empty().then_some(text))?;
    Some((tag, text.strip_prefix(' ').unwrap_or(text)))
}

fn known_tag(tag: &str, at: usize, report: &mut Report) -> Tag {
    Tag::try_from(tag).unwrap_or_else(|_| {
        report.add(at, None, Fault::BadTag { found: tag.to_owned() });
        Tag::new(b"???")
    })
}

/// Reads the leader. Backslashes stand for blanks, as in control fields; the lengths are ignored.
fn leader(text: &str, at: usize, report: &mut Report) -> Leader {
    let text = text.replace('\\', " ");
    if !Leader::is_valid_bytes(text.as_bytes()) {
        report.add(at, None, Fault::BadLeader { found: text.chars().take(40).collect() });
    }
    Leader::from_text(&text)
}

fn field(line: &Line, report: &mut Report) -> Field {
    let Line { at, tag, text } = line;
    let n_chars = text.chars().take(3).count();
    let has_subfields = text.contains('$') || (n_chars <= 2 && tag.is_numeric());
    if tag.is_control() || !has_subfields {
        if tag.is_numeric() && !tag.is_control() {
            report.add(*at, Some(*tag), Fault::NoSubfields);
        }
        return ControlField::new(*tag, unescape(&text.replace('\\', " "))).into();
    }
    let (indicators, subfields) = text.split_once('$').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
    let mut field = DataField::new(*tag, read_indicators(indicators, *at, *tag, report));
    for subfield in subfields.into_iter().flat_map(|text| text.split('$')) {
        let subfield = unescape(subfield);
        let mut chars = subfield.chars();
        match chars.next() {
            Some(code) => field.subfields.push(Subfield { code, value: chars.as_str().to_owned() }),
            None => report.add(*at, Some(*tag), Fault::EmptySubfield),
        }
    }
    field.into()
}

fn read_indicators(text: &str, at: usize, tag: Tag, report: &mut Report) -> [char; 2] {
    let text = unescape(text);
    let mut chars = text.chars().map(|char| if char == '\\' { ' ' } else { char });
    let (first, second) = (chars.next(), chars.next());
    if second.is_none() {
        report.add(at, Some(tag), Fault::MissingIndicators { found: usize::from(first.is_some()) });
    }
    let extra: String = chars.take(40).collect();
    if extra.bytes().all(|byte| byte == b' ') {
        if !extra.is_empty() {
            report.add(at, Some(tag), Fault::ExtraBlanks { len: extra.len() });
        }
    } else {
        report.add(at, Some(tag), Fault::ExtraIndicators { found: extra });
    }
    [first.unwrap_or(' '), second.unwrap_or(' ')]
}

/// Longest mnemonic with its braces: `{u10FFFF}` and `{dollar}`, with some room.
const MNEMONIC_LEN_MAX_BYTES: usize = 12;

/// Replaces mnemonics by their characters; braces around anything else are kept.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.bytes().take(MNEMONIC_LEN_MAX_BYTES).position(|byte| byte == b'}');
        let known = end.and_then(|end| Some((mnemonic(&rest[1..end])?, end)));
        let (char, end) = known.unwrap_or(('{', 0));
        out.push(char);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

fn mnemonic(name: &str) -> Option<char> {
    match name {
        "dollar" => Some('$'),
        "lcub" => Some('{'),
        "rcub" => Some('}'),
        "bsol" => Some('\\'),
        _ => {
            let digits = name.strip_prefix('u').filter(|digits| (4..=6).contains(&digits.len()))?;
            let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)).flatten()
        }
    }
}
