//! Writes a record as MARC-in-JSON.

use crate::record::{Field, Record};

/// Appends a record as one JSON object without line ends.
pub fn write(record: &Record, out: &mut Vec<u8>) {
    let mut json = JsonRecord::begin(record.leader.as_bytes(), out);
    for field in &record.fields {
        match field {
            Field::Control(field) => json.control(field.tag.as_bytes(), field.value.as_bytes()),
            Field::Data(field) => {
                json.begin_data(field.tag.as_bytes(), field.indicators);
                for subfield in &field.subfields {
                    json.subfield(subfield.code, subfield.value.as_bytes());
                }
                json.end_data();
            }
        }
    }
    json.end();
}

/// The parts of the JSON text in the order in which they are written. All texts are UTF-8.
pub(super) struct JsonRecord<'a> {
    out: &'a mut Vec<u8>,
    has_field: bool,
    has_subfield: bool,
}

impl<'a> JsonRecord<'a> {
    pub(super) fn begin(leader: &[u8], out: &'a mut Vec<u8>) -> Self {
        out.extend_from_slice(b"{\"leader\":\"");
        append_escaped(leader, out);
        out.extend_from_slice(b"\",\"fields\":[");
        Self { out, has_field: false, has_subfield: false }
    }

    fn tag(&mut self, tag: &[u8; 3]) {
        self.out.extend_from_slice(if self.has_field { b",{\"" } else { b"{\"" });
        self.has_field = true;
        append_escaped(tag, self.out);
    }

    pub(super) fn control(&mut self, tag: &[u8; 3], value: &[u8]) {
        self.tag(tag);
        self.out.extend_from_slice(b"\":\"");
        append_escaped(value, self.out);
        self.out.extend_from_slice(b"\"}");
    }

    pub(super) fn begin_data(&mut self, tag: &[u8; 3], indicators: [char; 2]) {
        self.tag(tag);
        self.out.extend_from_slice(b"\":{\"ind1\":\"");
        append_char(indicators[0], self.out);
        self.out.extend_from_slice(b"\",\"ind2\":\"");
        append_char(indicators[1], self.out);
        self.out.extend_from_slice(b"\",\"subfields\":[");
        self.has_subfield = false;
    }

    pub(super) fn subfield(&mut self, code: char, value: &[u8]) {
        self.out.extend_from_slice(if self.has_subfield { b",{\"" } else { b"{\"" });
        self.has_subfield = true;
        append_char(code, self.out);
        self.out.extend_from_slice(b"\":\"");
        append_escaped(value, self.out);
        self.out.extend_from_slice(b"\"}");
    }

    pub(super) fn end_data(&mut self) {
        self.out.extend_from_slice(b"]}}");
    }

    pub(super) fn end(self) {
        self.out.extend_from_slice(b"]}");
    }
}

/// Returns whether a byte cannot stand for itself in a JSON string.
const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the length of the bytes before the first that needs an escape. It works in blocks without inner
/// branches, which the compiler turns into vector instructions.
fn plain_len(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<16>();
    let n_plain = blocks
        .iter()
        .take_while(|block| !block.iter().fold(false, |found, byte| found | is_escaped(*byte)))
        .count();
    let at = n_plain * 16;
    text[at..].iter().position(|byte| is_escaped(*byte)).map_or(text.len(), |found| at + found)
}

fn append_char(char: char, out: &mut Vec<u8>) {
    append_escaped(char.encode_utf8(&mut [0; 4]).as_bytes(), out);
}

/// Appends UTF-8 text; most texts need no escape and are copied at once.
fn append_escaped(mut text: &[u8], out: &mut Vec<u8>) {
    loop {
        let (plain, rest) = text.split_at(plain_len(text));
        out.extend_from_slice(plain);
        let [byte, rest @ ..] = rest else { return };
        append_escape(*byte, out);
        text = rest;
    }
}

fn append_escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    }
}
