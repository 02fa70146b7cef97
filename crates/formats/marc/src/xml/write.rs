//! Writes MARCXML.

use crate::record::{Field, Record};

/// The text before the first record of a file.
pub const COLLECTION_START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <collection xmlns=\"http://www.loc.gov/MARC21/slim\">\n";
/// The text after the last record of a file.
pub const COLLECTION_END: &str = "</collection>\n";

/// Appends a record as a `record` element; [`COLLECTION_START`] declares its namespace.
///
/// Returns how many characters were replaced by U+FFFD because XML 1.0 cannot hold them in any form: the
/// control characters other than tab and line ends.
pub fn write(record: &Record, out: &mut String) -> usize {
    let mut writer = Writer { out, n_replaced: 0 };
    writer.out.push_str("  <record>\n    <leader>");
    writer.text(record.leader.as_str());
    writer.out.push_str("</leader>\n");
    for field in &record.fields {
        writer.field(field);
    }
    writer.out.push_str("  </record>\n");
    writer.n_replaced
}

struct Writer<'a> {
    out: &'a mut String,
    n_replaced: usize,
}

impl Writer<'_> {
    fn field(&mut self, field: &Field) {
        match field {
            Field::Control(field) => {
                self.out.push_str("    <controlfield tag=\"");
                self.text(field.tag.as_str());
                self.out.push_str("\">");
                self.text(&field.value);
                self.out.push_str("</controlfield>\n");
            }
            Field::Data(field) => {
                self.out.push_str("    <datafield tag=\"");
                self.text(field.tag.as_str());
                self.out.push_str("\" ind1=\"");
                self.char(field.indicators[0]);
                self.out.push_str("\" ind2=\"");
                self.char(field.indicators[1]);
                self.out.push_str("\">\n");
                for subfield in &field.subfields {
                    self.out.push_str("      <subfield code=\"");
                    self.char(subfield.code);
                    self.out.push_str("\">");
                    self.text(&subfield.value);
                    self.out.push_str("</subfield>\n");
                }
                self.out.push_str("    </datafield>\n");
            }
        }
    }

    fn text(&mut self, text: &str) {
        text.chars().for_each(|char| self.char(char));
    }

    fn char(&mut self, char: char) {
        match char {
            '&' => self.out.push_str("&amp;"),
            '<' => self.out.push_str("&lt;"),
            '>' => self.out.push_str("&gt;"),
            '"' => self.out.push_str("&quot;"),
            // Parsers turn these into blanks or line feeds unless they are written as references.
            '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' => {
                self.out.push_str(&format!("&#x{:X};", u32::from(char)));
            }
            '\0'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}' => {
                self.out.push(char::REPLACEMENT_CHARACTER);
                self.n_replaced += 1;
            }
            _ => self.out.push(char),
        }
    }
}
