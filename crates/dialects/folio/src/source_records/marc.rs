//! MARC records as FOLIO stores them: MARC-in-JSON values, lengths in leaders, values by path, titles.

use pinakes_marc::{ControlField, DataField, Encoding, Field, Format, RawRecord, Record, RecordKind, Tag};
use pinakes_store::Path;
use serde_json::{Map, Value, json};

/// Where the content is in the body of a stored source record.
pub(crate) const CONTENT: [&str; 2] = ["parsedRecord", "content"];
/// Largest length that a leader can state, in bytes.
const STATED_MAX_BYTES: usize = 99_999;

/// Converts a record to the `content` of a parsed record.
pub(crate) fn to_value(record: &Record) -> Value {
    let fields = record.fields.iter().map(|field| match field {
        Field::Control(field) => one(field.tag.as_str(), Value::String(field.value.clone())),
        Field::Data(field) => {
            let mut code = [0; 4];
            let subfields = field
                .subfields
                .iter()
                .map(|it| one(it.code.encode_utf8(&mut code), Value::String(it.value.clone())))
                .collect();
            let mut body = Map::with_capacity(3);
            body.insert("ind1".to_owned(), Value::String(field.indicators[0].to_string()));
            body.insert("ind2".to_owned(), Value::String(field.indicators[1].to_string()));
            body.insert("subfields".to_owned(), Value::Array(subfields));
            one(field.tag.as_str(), Value::Object(body))
        }
    });
    let fields = fields.collect();
    let mut content = Map::with_capacity(2);
    content.insert("leader".to_owned(), Value::String(record.leader.as_str().to_owned()));
    content.insert("fields".to_owned(), Value::Array(fields));
    Value::Object(content)
}

fn one(name: &str, value: Value) -> Value {
    let mut map = Map::with_capacity(1);
    map.insert(name.to_owned(), value);
    Value::Object(map)
}

/// Converts a `content`, which may also be JSON text, to a record.
pub(crate) fn from_value(content: &Value) -> Option<Record> {
    let text = match content {
        Value::String(text) => text.clone().into_bytes(),
        other => serde_json::to_vec(other).ok()?,
    };
    pinakes_marc::parse(Format::Json, Encoding::Leader, RawRecord::alone(&text)).record
}

/// Sets the lengths in the leader to those of the record as ISO 2709 in UTF-8.
pub(crate) fn set_lengths(record: &mut Record) {
    let text_len = |field: &DataField| -> usize {
        let indicators: usize = field.indicators.iter().map(|it| it.len_utf8()).sum();
        indicators + field.subfields.iter().map(|it| 1 + it.code.len_utf8() + it.value.len()).sum::<usize>()
    };
    let data: usize = record
        .fields
        .iter()
        .map(|field| {
            1 + match field {
                Field::Control(field) => field.value.len(),
                Field::Data(field) => text_len(field),
            }
        })
        .sum();
    let base = 24 + 12 * record.fields.len() + 1;
    let whole = (base + data + 1).min(STATED_MAX_BYTES);
    let (whole, base) = (format!("{whole:05}"), format!("{:05}", base.min(STATED_MAX_BYTES)));
    let fixed = [(9, "a"), (10, "22"), (20, "4500")];
    for (at, text) in [(0, whole.as_str()), (12, base.as_str())].into_iter().chain(fixed) {
        for (n, char) in text.chars().enumerate() {
            record.leader.set(at + n, char);
        }
    }
}

/// Formats a record as `LEADER …` and one line per field.
pub(crate) fn formatted(content: &Value) -> String {
    let Some(record) = from_value(content) else { return String::new() };
    let mut text = format!("LEADER {}\n", record.leader);
    for field in &record.fields {
        match field {
            Field::Control(field) => text.push_str(&format!("{} {}\n", field.tag, field.value)),
            Field::Data(field) => {
                text.push_str(&format!("{} {}{} ", field.tag, field.indicators[0], field.indicators[1]));
                field.subfields.iter().for_each(|it| text.push_str(&format!("${}{}", it.code, it.value)));
                text.push('\n');
            }
        }
    }
    text
}

/// The place of a value in a record. `*` stands for any indicator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MarcPath {
    pub(crate) tag: String,
    pub(crate) indicators: [char; 2],
    /// `None` for control fields.
    pub(crate) subfield: Option<char>,
}

impl MarcPath {
    /// Builds a path from the texts in match profiles and filters: blank and `""` mean a space.
    pub(crate) fn new(tag: &str, ind1: &str, ind2: &str, subfield: &str) -> Self {
        let indicator = |text: &str| text.chars().next().unwrap_or(' ');
        let subfield = subfield.chars().next().filter(|it| !it.is_whitespace());
        Self { tag: tag.to_owned(), indicators: [indicator(ind1), indicator(ind2)], subfield }
    }

    /// Checks whether the path is e.g. `999 ff $i`.
    pub(crate) fn is(&self, tag: &str, indicators: [char; 2], subfield: Option<char>) -> bool {
        self.tag == tag && self.indicators == indicators && self.subfield == subfield
    }

    /// Returns all values at the path, untrimmed.
    pub(crate) fn values(&self, record: &Record) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for field in record.fields.iter().filter(|it| *it.tag() == *self.tag.as_str()) {
            match (field, self.subfield) {
                (Field::Control(field), None) => values.push(field.value.clone()),
                (Field::Data(field), Some(code)) if self.fits(field) => {
                    values.extend(field.values(code).map(str::to_owned));
                }
                _ => {}
            }
        }
        values
    }

    /// Returns the same values from MARC-in-JSON.
    pub(crate) fn values_in<'v>(&self, content: &'v Value) -> Vec<&'v str> {
        let fields = content.get("fields").and_then(Value::as_array).into_iter().flatten();
        let mut values = Vec::new();
        for field in fields.filter_map(|it| it.get(self.tag.as_str())) {
            let Some(code) = self.subfield else {
                values.extend(field.as_str());
                continue;
            };
            let indicator =
                |name: &str| field.get(name).and_then(Value::as_str).and_then(|it| it.chars().next());
            let found = [indicator("ind1").unwrap_or(' '), indicator("ind2").unwrap_or(' ')];
            if !fit(self.indicators, found) {
                continue;
            }
            let mut buffer = [0; 4];
            let code = &*code.encode_utf8(&mut buffer);
            let subfields = field.get("subfields").and_then(Value::as_array).into_iter().flatten();
            values.extend(subfields.filter_map(|it| it.get(code)?.as_str()));
        }
        values
    }

    /// Returns the path in the body of a stored source record, for queries of the store. It does not include
    /// indicators.
    pub(crate) fn in_source_record(&self) -> Path {
        let mut steps: Vec<String> =
            CONTENT.into_iter().chain(["fields", &self.tag]).map(str::to_owned).collect();
        if let Some(code) = self.subfield {
            steps.extend(["subfields".to_owned(), code.to_string()]);
        }
        Path::steps(steps)
    }

    fn fits(&self, field: &DataField) -> bool {
        fit(self.indicators, field.indicators)
    }
}

fn fit(wanted: [char; 2], found: [char; 2]) -> bool {
    wanted.iter().zip(found).all(|(wanted, found)| *wanted == '*' || *wanted == found)
}

/// Returns the text of `999 ff` with this code.
pub(crate) fn folio_id(record: &Record, code: char) -> Option<String> {
    MarcPath { tag: "999".to_owned(), indicators: ['f', 'f'], subfield: Some(code) }
        .values(record)
        .into_iter()
        .find(|it| !it.trim().is_empty())
}

/// Removes `999 ff` and appends a new one.
pub(crate) fn set_folio_ids(record: &mut Record, external: &str, matched: &str) {
    record.remove_where(|field| {
        *field.tag() == *"999" && field.as_data().is_some_and(|it| it.indicators == ['f', 'f'])
    });
    record.push(DataField::new(Tag::new(b"999"), ['f', 'f']).with('i', external).with('s', matched));
}

/// Returns the name of a record in the log: its heading, or its title.
pub(crate) fn title(record: &Record) -> String {
    let heading = match record.leader.kind() {
        RecordKind::Authority => record.fields.iter().find_map(|field| {
            let is_heading = field.tag().as_str().starts_with('1');
            field.as_data().filter(|_| is_heading)
        }),
        RecordKind::Bibliographic => record.data_fields("245").next(),
        _ => None,
    };
    let is_bib = record.leader.kind() == RecordKind::Bibliographic;
    let words = |field: &DataField| {
        let wanted = |code: char| {
            if is_bib { "anpbcfghks".contains(code) } else { code.is_ascii_lowercase() && code != 'w' }
        };
        let texts = field.subfields.iter().filter(|it| wanted(it.code)).map(|it| it.value.as_str());
        texts.collect::<Vec<_>>().join(" ")
    };
    heading.map(words).filter(|it| !it.trim().is_empty()).unwrap_or_else(|| "No content".to_owned())
}

/// Returns `({003}){001}`, or the 001 alone.
fn control_number(record: &Record) -> Option<String> {
    let number = record.control("001")?;
    Some(match record.control("003").filter(|it| !it.trim().is_empty()) {
        Some(agency) => format!("({agency}){number}"),
        None => number.to_owned(),
    })
}

/// Adds the old control number as 035 $a, unless it is present.
pub(crate) fn keep_control_number(record: &mut Record) {
    let Some(value) = control_number(record) else { return };
    if !record.subfields("035", 'a').any(|it| it == value) {
        insert_by_tag(record, DataField::new(Tag::new(b"035"), [' ', ' ']).with('a', value));
    }
}

/// Inserts a field before the first data field with a greater tag, whatever the order of the record, as FOLIO does.
pub(crate) fn insert_by_tag(record: &mut Record, field: DataField) {
    let is_behind = |it: &Field| it.as_data().is_some_and(|it| field.tag < it.tag);
    let at = record.fields.iter().position(is_behind).unwrap_or(record.fields.len());
    record.fields.insert(at, field.into());
}

/// Normalises OCLC numbers in 035 $a and removes duplicates.
pub(crate) fn normalise_oclc(record: &mut Record) {
    for field in record.data_fields_mut("035") {
        for subfield in field.subfields.iter_mut().filter(|it| it.code == 'a') {
            if let Some(number) = subfield.value.strip_prefix("(OCoLC)") {
                subfield.value = format!("(OCoLC){}", oclc_number(number));
            }
        }
    }
    let mut seen = Vec::new();
    record.remove_where(|field| {
        let Field::Data(data) = field else { return false };
        if data.tag != *"035" {
            return false;
        }
        let had = data.value('a').is_some();
        data.subfields.retain(|it| {
            let is_double = it.code == 'a' && it.value.starts_with("(OCoLC)") && seen.contains(&it.value);
            if it.code == 'a' && !is_double {
                seen.push(it.value.clone());
            }
            !is_double
        });
        had && data.subfields.is_empty()
    });
}

/// Converts `ocm00012` to `12`; other leading letters are kept.
fn oclc_number(text: &str) -> String {
    let text: String = text.chars().filter(|it| !it.is_whitespace() && *it != '.').collect();
    let n_letters = text.chars().take_while(char::is_ascii_alphabetic).count();
    let (letters, digits) = text.split_at(n_letters);
    let letters =
        if matches!(letters.to_ascii_lowercase().as_str(), "ocm" | "ocn" | "on") { "" } else { letters };
    let number = digits.trim_start_matches('0');
    let number = if number.is_empty() && !digits.is_empty() { "0" } else { number };
    format!("{letters}{number}")
}

/// Replaces 001, or inserts it first.
pub(crate) fn set_001(record: &mut Record, value: &str) {
    if record.control("001").is_some() {
        record.set_control(Tag::new(b"001"), value);
    } else {
        record.fields.insert(0, ControlField::new(Tag::new(b"001"), value).into());
    }
}

/// Returns the `recordType` of a kind of record.
pub(crate) const fn record_type(kind: RecordKind) -> Option<&'static str> {
    match kind {
        RecordKind::Bibliographic => Some("MARC_BIB"),
        RecordKind::Authority => Some("MARC_AUTHORITY"),
        RecordKind::Holdings => Some("MARC_HOLDING"),
        _ => None,
    }
}

/// Builds `{"id", "content"}`.
pub(crate) fn part(id: &str, content: Value) -> Value {
    json!({"id": id, "content": content})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oclc_numbers_have_one_form() {
        for (text, expected) in [
            ("ocm00012", "12"),
            ("ocn123", "123"),
            ("on0007", "7"),
            ("12.3 4", "1234"),
            ("abc001", "abc1"),
            ("000", "0"),
            ("", ""),
        ] {
            assert_eq!(oclc_number(text), expected, "{text}");
        }
    }

    #[test]
    fn a_record_goes_through_its_value_unchanged() {
        let mut record = Record::default();
        record.push(ControlField::new(Tag::new(b"001"), "n 1"));
        record.push(DataField::new(Tag::new(b"100"), ['1', ' ']).with('a', "Ann,").with('d', "1835-"));
        set_lengths(&mut record);
        assert_eq!(record.leader.as_str(), "00070nam a2200049   4500");
        let mut written = Vec::new();
        let result = pinakes_marc::iso2709::write(&record, pinakes_marc::OutputEncoding::Utf8, &mut written);
        assert!(result.is_ok());
        assert_eq!(&written[..24], record.leader.as_bytes());
        assert_eq!(from_value(&to_value(&record)), Some(record));
    }

    #[test]
    fn values_are_found_by_indicators() {
        let mut record = Record::default();
        set_folio_ids(&mut record, "ext", "own");
        record.push(DataField::new(Tag::new(b"999"), [' ', ' ']).with('i', "other"));
        let path = MarcPath::new("999", "f", "f", "i");
        assert_eq!(path.values(&record), ["ext"]);
        assert_eq!(path.values_in(&to_value(&record)), ["ext"]);
        assert_eq!(MarcPath::new("999", "*", "*", "i").values(&record), ["ext", "other"]);
        assert_eq!(folio_id(&record, 's').as_deref(), Some("own"));
    }
}
