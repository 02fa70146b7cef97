//! Reading MARC-in-JSON.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::cut::{RawRecord, XmlCharset};
use crate::leader::Leader;
use crate::parsed::ParsedRecord;
use crate::problem::{Fault, Problem, Report};
use crate::record::{ControlField, DataField, Field, Record, Subfield};
use crate::repaired::RepairedText;
use crate::tag::Tag;

/// Reads one object.
pub(crate) fn parse(raw: RawRecord<'_>) -> ParsedRecord {
    let RawRecord { number, offset, bytes, problems, .. } = raw;
    let mut report = Report::new(number, offset, problems);
    let repaired = RepairedText::new(bytes, XmlCharset::Utf8, |at, fault| report.add(at, None, fault));
    let record = match serde_json::from_str(&repaired.text) {
        Ok(Object { record: Some(Found { leader, fields }) }) => {
            let leader = check_leader(leader.as_deref(), &mut report);
            Some(Record { leader, fields })
        }
        Ok(Object { record: None }) => {
            report.add(0, None, Fault::NotARecord { len: bytes.len(), expected: "MARC-in-JSON" });
            None
        }
        Err(error) => {
            let at = place_in(&repaired.text, error.line(), error.column());
            report.add(repaired.byte_of(at), None, Fault::Json { message: message(&error) });
            None
        }
    };
    let n_fields = record.as_ref().map_or(0, |record| record.fields.len());
    ParsedRecord { number, offset, record, field_offsets: vec![offset; n_fields], problems: report.finish() }
}

impl Record {
    /// Reads one separate MARC-in-JSON object, for instance the content of a stored record.
    ///
    /// # Errors
    ///
    /// The problem that made it unreadable, with its byte offset in `json`.
    pub fn from_json(json: &[u8]) -> Result<Self, Problem> {
        let parsed = parse(RawRecord::alone(json));
        parsed.record.ok_or_else(|| {
            let fatal = parsed.problems.into_iter().max_by_key(Problem::severity);
            let fault = Fault::NotARecord { len: json.len(), expected: "MARC-in-JSON" };
            fatal.unwrap_or(Problem { record: 1, offset: 0, tag: None, fault })
        })
    }
}

fn check_leader(leader: Option<&str>, report: &mut Report) -> Leader {
    let Some(leader) = leader else {
        report.add(0, None, Fault::NoLeader);
        return Leader::default();
    };
    if !Leader::is_valid_bytes(leader.as_bytes()) {
        report.add(0, None, Fault::BadLeader { found: leader.chars().take(40).collect() });
    }
    Leader::from_text(leader)
}

/// Byte offset in `text` of a line and column as the JSON parser counts them, both from 1, columns in bytes.
fn place_in(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (line_start + column.saturating_sub(1)).min(text.len())
}

/// Returns the parser's message without its line and column, which count from the start of the record.
fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// The parts of a record in JSON.
struct Found {
    leader: Option<String>,
    fields: Vec<Field>,
}

/// An object from which the record is taken, either the object itself or the one under its `parsedRecord` or
/// `content`; everything else is skipped.
struct Object {
    record: Option<Found>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MARC-in-JSON object")
    }

    /// FOLIO's content may be an object or JSON in a string.
    fn visit_str<E: Error>(self, text: &str) -> Result<Object, E> {
        serde_json::from_str(text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let (mut leader, mut fields, mut inner) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "leader" => leader = Some(map.next_value::<String>()?),
                "fields" => fields = Some(map.next_value_seed(Fields)?),
                "parsedRecord" | "content" => inner = map.next_value::<Object>()?.record.or(inner),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let record = match (leader, fields) {
            (None, None) => inner,
            (leader, fields) => Some(Found { leader, fields: fields.unwrap_or_default() }),
        };
        Ok(Object { record })
    }
}

/// The array of fields: objects, each with the tag as its key.
struct Fields;

impl<'de> DeserializeSeed<'de> for Fields {
    type Value = Vec<Field>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Field>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<Field>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of fields such as {\"001\":\"...\"}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Field>, A::Error> {
        let mut fields = Vec::new();
        while seq.next_element_seed(TaggedFields(&mut fields))?.is_some() {}
        Ok(fields)
    }
}

/// One object of the array; more than one tag in it is read as more than one field.
struct TaggedFields<'a>(&'a mut Vec<Field>);

impl<'de> DeserializeSeed<'de> for TaggedFields<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TaggedFields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field such as {\"001\":\"...\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let tag = Tag::try_from(key.as_str()).map_err(A::Error::custom)?;
            self.0.push(map.next_value_seed(Content(tag))?);
        }
        Ok(())
    }
}

/// The value of a tag: a text or an object of indicators and subfields.
struct Content(Tag);

impl<'de> DeserializeSeed<'de> for Content {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Content {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text or an object with ind1, ind2 and subfields in field {}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field, E> {
        Ok(ControlField::new(self.0, text).into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Field, E> {
        Ok(ControlField::new(self.0, text).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        let mut field = DataField::new(self.0, [' ', ' ']);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ind1" => field.indicators[0] = indicator(&map.next_value::<String>()?),
                "ind2" => field.indicators[1] = indicator(&map.next_value::<String>()?),
                "subfields" => field.subfields = map.next_value::<Subfields>()?.0,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(field.into())
    }
}

/// Returns the indicator; an empty text is a blank, as some programs write it.
fn indicator(text: &str) -> char {
    text.chars().next().unwrap_or(' ')
}

/// The array of subfields: objects, each with the code as its key.
struct Subfields(Vec<Subfield>);

impl<'de> Deserialize<'de> for Subfields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(SubfieldsVisitor)
    }
}

struct SubfieldsVisitor;

impl<'de> Visitor<'de> for SubfieldsVisitor {
    type Value = Subfields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of subfields such as {\"a\":\"...\"}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Subfields, A::Error> {
        let mut subfields = Vec::new();
        while let Some(CodedTexts(texts)) = seq.next_element()? {
            subfields.extend(texts);
        }
        Ok(Subfields(subfields))
    }
}

/// One object of the array; more than one code in it is read as more than one subfield.
struct CodedTexts(Vec<Subfield>);

impl<'de> Deserialize<'de> for CodedTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CodedTextsVisitor)
    }
}

struct CodedTextsVisitor;

impl<'de> Visitor<'de> for CodedTextsVisitor {
    type Value = CodedTexts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a subfield such as {\"a\":\"...\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CodedTexts, A::Error> {
        let mut texts = Vec::with_capacity(1);
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            let mut chars = key.chars();
            let (Some(code), None) = (chars.next(), chars.next()) else {
                return Err(A::Error::custom(format_args!("subfield code {key:?}; expected one character")));
            };
            texts.push(Subfield { code, value });
        }
        Ok(CodedTexts(texts))
    }
}
