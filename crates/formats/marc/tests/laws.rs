//! Laws that hold for any input: written records come back, nothing panics, nothing is lost between records.

mod common;

use common::{assert_same, composed, round_trip};
use pinakes_marc::{
    ControlField, DataField, Encoding, Fault, Field, Format, Leader, OutputEncoding, Reader, Record,
    RecordView, Subfield, Tag, Writer, json, parse, records, sniff, validate,
};
use proptest::prelude::*;

/// Texts of many scripts, with characters that formats must escape, but without those that none can hold.
fn text() -> impl Strategy<Value = String> {
    let plain = "[ -~]{1,30}";
    let scripts = "[a-zéüñŁøאבגالعΑβγДжЙ一丁ㄱ가₂α \u{300}-\u{308}😀]{1,20}";
    let escaped = "[{}$\\\\<>&\"'=\t\n\r;#x0-9A-F]{1,20}";
    prop_oneof![plain, scripts, escaped]
}

fn tag(range: std::ops::Range<u16>) -> impl Strategy<Value = Tag> {
    range.prop_map(|number| Tag::try_from(format!("{number:03}").as_str()).unwrap())
}

fn control_field() -> impl Strategy<Value = Field> {
    (tag(1..10), text()).prop_map(|(tag, value)| ControlField::new(tag, value).into())
}

fn data_field() -> impl Strategy<Value = Field> {
    let indicator = || prop::char::ranges(vec!['0'..='9', ' '..=' ', 'a'..='z'].into());
    let code = prop::char::ranges(vec!['0'..='9', 'a'..='z'].into());
    let subfield = (code, text()).prop_map(|(code, value)| Subfield { code, value });
    let subfields = prop::collection::vec(subfield, 0..6);
    (tag(10..1000), indicator(), indicator(), subfields).prop_map(|(tag, first, second, subfields)| {
        Field::Data(DataField { tag, indicators: [first, second], subfields })
    })
}

fn record() -> impl Strategy<Value = Record> {
    let fields = prop::collection::vec(prop_oneof![control_field(), data_field()], 0..12);
    ("[ -\\[\\]-~]{24}", fields)
        .prop_map(|(leader, fields)| Record { leader: Leader::from_text(&leader), fields })
}

/// Good records with some bytes changed, removed or inserted.
fn damaged(format: Format) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    let changes = prop::collection::vec(change, 0..8);
    (prop::collection::vec(record(), 1..4), changes).prop_map(move |(records, changes)| {
        let mut writer = Writer::new(Vec::new(), format, OutputEncoding::Utf8);
        for record in &records {
            let _ = writer.write(record);
        }
        let mut bytes = writer.finish().unwrap();
        for (index, byte, kind) in changes {
            let at = index.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match kind {
                _ if bytes.is_empty() => bytes.push(byte),
                0 => bytes[at] = byte,
                1 => _ = bytes.remove(at),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

/// Does everything that can be done with bytes; the records must be adjacent in the input.
fn exercise(format: Format, bytes: &[u8]) {
    let mut end = 0;
    for raw in records(format, bytes) {
        assert!(end <= raw.offset, "records overlap");
        end = raw.offset + raw.bytes.len() as u64;
        let start = usize::try_from(raw.offset).unwrap();
        assert_eq!(&bytes[start..start + raw.bytes.len()], raw.bytes);
        if format == Format::Iso2709 {
            let view = RecordView::new(raw.clone());
            let mut direct = Vec::new();
            json::write_view(&view, Encoding::Leader, &mut direct);
            json::write_view(&view, Encoding::Marc8, &mut direct);
            assert!(std::str::from_utf8(&direct).is_ok(), "JSON is UTF-8");
        }
        let parsed = parse(format, Encoding::Leader, raw);
        for problem in validate(&parsed) {
            assert!(!problem.to_string().is_empty());
            assert!(problem.offset <= bytes.len() as u64, "{problem}");
        }
        assert_eq!(parsed.field_offsets.len(), parsed.record.as_ref().map_or(0, |it| it.fields.len()));
        let Some(record) = &parsed.record else { continue };
        for to in Format::ALL {
            let _ = round_trip(record, to, OutputEncoding::Utf8);
        }
    }
    assert!(end <= bytes.len() as u64);
    streamed(format, bytes);
}

/// A stream yields the same records as the slice; with a small limit it still ends.
fn streamed(format: Format, bytes: &[u8]) {
    let mut reader = Reader::new(bytes, format);
    for raw in records(format, bytes) {
        let streamed = reader.next_record().unwrap().unwrap();
        assert_eq!((streamed.number, streamed.offset, streamed.bytes), (raw.number, raw.offset, raw.bytes));
        assert_eq!(streamed.problems, raw.problems);
    }
    assert!(reader.next_record().unwrap().is_none());
    let mut bounded = Reader::new(bytes, format).with_record_len_max(64);
    while let Some(raw) = bounded.next_record().unwrap() {
        let is_too_long = raw.problems.iter().any(|it| matches!(it.fault, Fault::TooLong { .. }));
        assert!(!is_too_long || raw.bytes.len() == 64);
    }
}

proptest! {
    #[test]
    fn records_come_back_from_every_format(record in record()) {
        for format in Format::ALL {
            if let Some(back) = round_trip(&record, format, OutputEncoding::Utf8) {
                assert_same(&record, &back, format, "generated record");
            }
        }
        if let Some(back) = round_trip(&record, Format::Iso2709, OutputEncoding::Marc8) {
            assert_same(&composed(&record), &back, Format::Iso2709, "generated record in MARC-8");
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = sniff(&bytes);
        Format::ALL.into_iter().for_each(|format| exercise(format, &bytes));
    }

    #[test]
    fn any_delimiters_are_read(bytes in "[0-9a ]{0,30}([\x1D\x1E\x1F0-9a]{0,40}00026nam a2200025   45[\x1D\x1E\x1F]{0,3}){0,4}") {
        exercise(Format::Iso2709, bytes.as_bytes());
    }

    #[test]
    fn any_markup_is_read(bytes in "(<(/?(record|leader|datafield|subfield|x:record|c)( tag=\"1\"| code='a'|/)?>?|!--|!\\[CDATA\\[|\\?)|-->|\\]\\]>|&amp;|&x;|[a\"' ]){0,40}") {
        exercise(Format::Xml, bytes.as_bytes());
    }

    #[test]
    fn any_json_is_read(bytes in "(\\{|\\}|\\[|\\]|,|:|\"leader\"|\"fields\"|\"001\"|\"content\"|\"subfields\"|\"a\"|\"|\\\\|\n){0,40}") {
        exercise(Format::Json, bytes.as_bytes());
    }

    #[test]
    fn any_lines_are_read(bytes in "(=LDR  |=001  |=245  |\\$a|\\{dollar\\}|\\{|\\}|\\\\|\r|\n|é| ){0,40}") {
        exercise(Format::Mnemonic, bytes.as_bytes());
    }

    #[test]
    fn damaged_iso2709_is_read(bytes in damaged(Format::Iso2709)) {
        exercise(Format::Iso2709, &bytes);
    }

    #[test]
    fn damaged_xml_is_read(bytes in damaged(Format::Xml)) {
        exercise(Format::Xml, &bytes);
    }

    #[test]
    fn damaged_json_is_read(bytes in damaged(Format::Json)) {
        exercise(Format::Json, &bytes);
    }

    #[test]
    fn damaged_text_is_read(bytes in damaged(Format::Mnemonic)) {
        exercise(Format::Mnemonic, &bytes);
    }
}
