//! The document that an index takes in for a record. Thousands of them wait for the index's threads, and most values are
//! short, so all values lie in two buffers of exactly their size.

use std::iter::{Empty, Once, once};

use tantivy::Document;
use tantivy::schema::Field;
use tantivy::schema::document::{ReferenceValue, ReferenceValueLeaf, Value};

use crate::field_values::EXACT;

/// A document.
#[derive(Debug)]
pub(super) struct IndexDocument {
    values: Box<[Packed]>,
    bytes: Box<[u8]>,
    text: Box<str>,
}

/// Collects the values of one document after the other.
#[derive(Debug, Default)]
pub(super) struct DocumentBuilder {
    values: Vec<Packed>,
    bytes: Vec<u8>,
    text: String,
}

/// A number in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    /// Returns a number as whole if it is.
    pub(super) fn of(number: f64) -> Self {
        if number.fract() == 0.0 && number.abs() < EXACT {
            Self::Whole(number as i64)
        } else {
            Self::Real(number)
        }
    }
}

/// A value, which begins where the one before it ends.
#[derive(Debug, Clone, Copy)]
struct Packed {
    field: u16,
    form: Form,
    /// Length of its bytes, its text, or the name of its column. No engine stores a body of more than 1 GB.
    length: u32,
}

/// How a value is packed; a number takes 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bytes,
    Text,
    Whole,
    Real,
    /// A number in the column of a name below the field.
    WholeColumn,
    RealColumn,
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum IndexValue<'d> {
    Bytes(&'d [u8]),
    Text(&'d str),
    Number(Number),
    Column(&'d str, Number),
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an index has some dozen fields, and see `Packed::length`"
)]
impl DocumentBuilder {
    /// Removes what was collected.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.bytes.clear();
        self.text.clear();
    }

    /// Returns what was collected, and begins anew.
    pub(super) fn finish(&mut self) -> IndexDocument {
        let document = IndexDocument {
            values: self.values.as_slice().into(),
            bytes: self.bytes.as_slice().into(),
            text: self.text.as_str().into(),
        };
        self.clear();
        document
    }

    pub(super) fn add_bytes(&mut self, field: Field, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.push(field, Form::Bytes, value.len());
    }

    pub(super) fn add_text(&mut self, field: Field, value: &str) {
        self.text.push_str(value);
        self.push(field, Form::Text, value.len());
    }

    pub(super) fn add_number(&mut self, field: Field, number: Number) {
        let form = self.pack(number, [Form::Whole, Form::Real]);
        self.push(field, form, 0);
    }

    pub(super) fn add_whole(&mut self, field: Field, number: i64) {
        self.add_number(field, Number::Whole(number));
    }

    /// Adds a number to the column of a name below a field of columns.
    pub(super) fn add_to_column(&mut self, field: Field, name: &str, number: Number) {
        let form = self.pack(number, [Form::WholeColumn, Form::RealColumn]);
        self.text.push_str(name);
        self.push(field, form, name.len());
    }

    /// Packs a number and returns the one of two forms, for whole numbers and for others, that applies.
    fn pack(&mut self, number: Number, [whole, real]: [Form; 2]) -> Form {
        let (bytes, form) = match number {
            Number::Whole(number) => (number.to_le_bytes(), whole),
            Number::Real(number) => (number.to_le_bytes(), real),
        };
        self.bytes.extend_from_slice(&bytes);
        form
    }

    fn push(&mut self, field: Field, form: Form, length: usize) {
        self.values.push(Packed { field: field.field_id() as u16, form, length: length as u32 });
    }
}

impl Document for IndexDocument {
    type Value<'d> = IndexValue<'d>;
    type FieldsValuesIter<'d> = Values<'d>;

    fn iter_fields_and_values(&self) -> Values<'_> {
        Values { values: self.values.iter(), bytes: &self.bytes, text: &self.text }
    }
}

/// The values of a document with their fields.
pub(super) struct Values<'d> {
    values: std::slice::Iter<'d, Packed>,
    /// From the next value on.
    bytes: &'d [u8],
    text: &'d str,
}

impl<'d> Values<'d> {
    fn bytes(&mut self, length: usize) -> &'d [u8] {
        let (value, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        value
    }

    fn text(&mut self, length: usize) -> &'d str {
        let (value, rest) = self.text.split_at(length);
        self.text = rest;
        value
    }

    fn eight(&mut self) -> [u8; 8] {
        let mut number = [0; 8];
        number.copy_from_slice(self.bytes(8));
        number
    }

    fn whole(&mut self) -> Number {
        Number::Whole(i64::from_le_bytes(self.eight()))
    }

    fn real(&mut self) -> Number {
        Number::Real(f64::from_le_bytes(self.eight()))
    }
}

impl<'d> Iterator for Values<'d> {
    type Item = (Field, IndexValue<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        let packed = self.values.next()?;
        let length = packed.length as usize;
        let value = match packed.form {
            Form::Bytes => IndexValue::Bytes(self.bytes(length)),
            Form::Text => IndexValue::Text(self.text(length)),
            Form::Whole => IndexValue::Number(self.whole()),
            Form::Real => IndexValue::Number(self.real()),
            Form::WholeColumn => IndexValue::Column(self.text(length), self.whole()),
            Form::RealColumn => IndexValue::Column(self.text(length), self.real()),
        };
        Some((Field::from_field_id(packed.field.into()), value))
    }
}

impl<'d> Value<'d> for IndexValue<'d> {
    type ArrayIter = Empty<Self>;
    type ObjectIter = Once<(&'d str, Self)>;

    fn as_value(&self) -> ReferenceValue<'d, Self> {
        match self {
            Self::Bytes(bytes) => ReferenceValue::Leaf(ReferenceValueLeaf::Bytes(bytes)),
            Self::Text(text) => ReferenceValue::Leaf(ReferenceValueLeaf::Str(text)),
            Self::Number(Number::Whole(number)) => ReferenceValue::Leaf(ReferenceValueLeaf::I64(*number)),
            Self::Number(Number::Real(number)) => ReferenceValue::Leaf(ReferenceValueLeaf::F64(*number)),
            Self::Column(name, number) => ReferenceValue::Object(once((*name, Self::Number(*number)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_as_they_were_added() {
        let field = Field::from_field_id;
        let mut builder = DocumentBuilder::default();
        builder.add_text(field(9), "of a document that is given up");
        builder.clear();
        builder.add_bytes(field(0), b"a\0b");
        builder.add_to_column(field(3), "/größe", Number::Real(-0.5));
        builder.add_text(field(1), "é");
        builder.add_bytes(field(0), b"");
        builder.add_whole(field(2), i64::MIN);
        builder.add_to_column(field(3), "", Number::Whole(7));
        builder.add_number(field(4), Number::Real(1e300));
        let document = builder.finish();
        let expected = [
            (0, IndexValue::Bytes(b"a\0b")),
            (3, IndexValue::Column("/größe", Number::Real(-0.5))),
            (1, IndexValue::Text("é")),
            (0, IndexValue::Bytes(b"")),
            (2, IndexValue::Number(Number::Whole(i64::MIN))),
            (3, IndexValue::Column("", Number::Whole(7))),
            (4, IndexValue::Number(Number::Real(1e300))),
        ];
        let found: Vec<_> = document.iter_fields_and_values().collect();
        assert_eq!(found, expected.map(|(id, value)| (field(id), value)));
        assert_eq!(builder.finish().iter_fields_and_values().count(), 0);
    }
}
