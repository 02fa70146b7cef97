//! Reading one `record` element.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::cut::RawRecord;
use crate::leader::Leader;
use crate::parsed::ParsedRecord;
use crate::problem::{Fault, Report, excerpt};
use crate::record::{ControlField, DataField, Field, Record, Subfield};
use crate::repaired::RepairedText;
use crate::tag::Tag;

/// Reads the element. One that is not well-formed gives no record: nothing after the fault can be trusted.
pub(crate) fn parse(raw: RawRecord<'_>) -> ParsedRecord {
    let RawRecord { number, offset, bytes, problems, charset } = raw;
    let mut report = Report::new(number, offset, problems);
    let text = RepairedText::new(bytes, charset, |at, fault| report.add(at, None, fault));
    let mut builder =
        Builder { report, leader: None, fields: Vec::new(), offsets: Vec::new(), open: Open::None };
    let is_whole = builder.read(&text);
    let Builder { mut report, leader, fields, offsets, .. } = builder;
    if is_whole && leader.is_none() {
        report.add(0, None, Fault::NoLeader);
    }
    let record = is_whole.then(|| Record { leader: leader.unwrap_or_default(), fields });
    let field_offsets =
        if is_whole { offsets.into_iter().map(|at| offset + at as u64).collect() } else { Vec::new() };
    ParsedRecord { number, offset, record, field_offsets, problems: report.finish() }
}

struct Builder {
    report: Report,
    leader: Option<Leader>,
    fields: Vec<Field>,
    /// Start of each field in the element.
    offsets: Vec<usize>,
    open: Open,
}

/// The element whose text is being read.
enum Open {
    None,
    Leader(String),
    Control(Option<Tag>, String),
    /// A data field, between subfields. Without a tag it is read and dropped.
    Data(Option<Tag>, DataField),
    Subfield(Option<Tag>, DataField, char, String),
}

impl Builder {
    /// Reads all events; `false` if the element is not well-formed.
    fn read(&mut self, text: &RepairedText<'_>) -> bool {
        let mut reader = Reader::from_str(&text.text);
        let place = |at: u64| text.byte_of(usize::try_from(at).unwrap_or(usize::MAX));
        let mut n_open = 0_usize;
        loop {
            let at = place(reader.buffer_position());
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = place(reader.error_position());
                    self.report.add(at, None, Fault::Xml { message: error.to_string() });
                    return false;
                }
            };
            match event {
                Event::Start(start) => {
                    n_open += 1;
                    self.start(&start, at);
                }
                Event::Empty(start) => {
                    self.start(&start, at);
                    self.end(start.local_name().into_inner(), at);
                }
                Event::End(end) => {
                    n_open = n_open.saturating_sub(1);
                    self.end(end.local_name().into_inner(), at);
                }
                Event::Text(text) => self.text(&text.xml10_content()),
                Event::CData(text) => self.text(&text.xml10_content()),
                Event::GeneralRef(reference) => self.reference(&reference, at),
                Event::Eof if n_open == 0 => return true,
                Event::Eof => {
                    let message = "the element ends before all elements in it have ended".to_owned();
                    self.report.add(at, None, Fault::Xml { message });
                    return false;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, at: usize) {
        let name = start.local_name();
        let open = std::mem::replace(&mut self.open, Open::None);
        self.open = match (name.into_inner(), open) {
            ("leader", Open::None) => Open::Leader(String::new()),
            ("controlfield", Open::None) => Open::Control(self.tag(start, "controlfield", at), String::new()),
            ("datafield", Open::None) => {
                let tag = self.tag(start, "datafield", at);
                let indicators =
                    [self.indicator(start, "ind1", tag, at), self.indicator(start, "ind2", tag, at)];
                Open::Data(tag, DataField::new(tag.unwrap_or(Tag::new(b"???")), indicators))
            }
            ("subfield", Open::Data(tag, field)) => {
                let code = self.code(start, tag, at);
                Open::Subfield(tag, field, code, String::new())
            }
            (_, open) => open,
        };
        if matches!(name.into_inner(), "controlfield" | "datafield")
            && self.offsets.len() == self.fields.len()
        {
            self.offsets.push(at);
        }
    }

    fn end(&mut self, name: &str, at: usize) {
        let open = std::mem::replace(&mut self.open, Open::None);
        match (name, open) {
            ("leader", Open::Leader(text)) => self.leader = Some(self.check_leader(&text, at)),
            ("controlfield", Open::Control(tag, value)) => {
                self.keep(tag, |tag| ControlField::new(tag, value).into());
            }
            ("datafield", Open::Data(tag, field)) => self.keep(tag, |_| field.into()),
            ("subfield", Open::Subfield(tag, mut field, code, value)) => {
                field.subfields.push(Subfield { code, value });
                self.open = Open::Data(tag, field);
            }
            (_, open) => self.open = open,
        }
    }

    /// Keeps a field, unless it has no tag, which was reported.
    fn keep(&mut self, tag: Option<Tag>, field: impl FnOnce(Tag) -> Field) {
        match tag {
            Some(tag) => self.fields.push(field(tag)),
            None => self.offsets.truncate(self.fields.len()),
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.open {
            Open::Leader(value) | Open::Control(_, value) | Open::Subfield(_, _, _, value) => {
                value.push_str(text)
            }
            Open::None | Open::Data(..) => {}
        }
    }

    /// Resolves `&amp;`, `&#xE9;` and the like.
    fn reference(&mut self, reference: &BytesRef<'_>, at: usize) {
        let name: &str = reference;
        if let Ok(Some(char)) = reference.resolve_char_ref() {
            self.text(char.encode_utf8(&mut [0; 4]));
        } else if let Some(text) = quick_xml::escape::resolve_predefined_entity(name) {
            self.text(text);
        } else {
            self.report.add(at, None, Fault::UnknownEntity { name: excerpt(name.as_bytes()) });
            self.text("\u{FFFD}");
        }
    }

    /// Returns an attribute's value; one that the parser cannot read counts as missing.
    fn attribute<'a>(start: &'a BytesStart<'_>, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        let attribute = start.try_get_attribute(name).ok()??;
        attribute.normalized_value(XmlVersion::Implicit1_0).ok()
    }

    fn tag(&mut self, start: &BytesStart<'_>, element: &'static str, at: usize) -> Option<Tag> {
        let Some(text) = Self::attribute(start, "tag") else {
            self.report.add(at, None, Fault::MissingAttribute { element, attribute: "tag" });
            return None;
        };
        match Tag::try_from(&*text) {
            Ok(tag) => Some(tag),
            // `1` for `001`: spreadsheets and careless programs lose leading zeros.
            Err(_) if matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let tag = Tag::try_from(format!("{text:0>3}").as_str()).ok();
                self.report.add(at, tag, Fault::ShortTag { found: text.to_string() });
                tag
            }
            Err(_) => {
                self.report.add(at, None, Fault::BadTag { found: text.chars().take(40).collect() });
                None
            }
        }
    }

    fn indicator(&mut self, start: &BytesStart<'_>, name: &'static str, tag: Option<Tag>, at: usize) -> char {
        let Some(text) = Self::attribute(start, name) else {
            self.report.add(at, tag, Fault::MissingIndicator { attribute: name });
            return ' ';
        };
        let mut chars = text.chars();
        let indicator = chars.next().unwrap_or(' ');
        let extra: String = chars.take(40).collect();
        if !extra.trim().is_empty() {
            self.report.add(at, tag, Fault::ExtraIndicators { found: extra });
        }
        indicator
    }

    /// Returns the code; a subfield without one gets a blank, so that its text is kept.
    fn code(&mut self, start: &BytesStart<'_>, tag: Option<Tag>, at: usize) -> char {
        let Some(text) = Self::attribute(start, "code") else {
            self.report.add(at, tag, Fault::MissingAttribute { element: "subfield", attribute: "code" });
            return ' ';
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(code), None) => code,
            (first, _) => {
                self.report.add(at, tag, Fault::LongSubfieldCode { found: text.chars().take(40).collect() });
                first.unwrap_or(' ')
            }
        }
    }

    fn check_leader(&mut self, text: &str, at: usize) -> Leader {
        if !Leader::is_valid_bytes(text.as_bytes()) {
            self.report.add(at, None, Fault::BadLeader { found: text.chars().take(40).collect() });
        }
        Leader::from_text(text)
    }
}
