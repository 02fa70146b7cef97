//! A record as an owned value: leader and fields, all text in Unicode, with look-ups.
//!
//! This is the shape between the formats: every reader makes one, every writer takes one. Changes
//! to a record are in `edit.rs`.

use crate::leader::Leader;
use crate::tag::Tag;

/// A MARC record of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The 24 characters at its start. The lengths in it are those of the input until a writer recomputes
    /// them.
    pub leader: Leader,
    /// The fields in the order of the input.
    pub fields: Vec<Field>,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// Plain text: `001` to `009`, and the alphabetic tags that some systems write without subfields.
    Control(ControlField),
    /// Two indicators and subfields.
    Data(DataField),
}

/// A field that is one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlField {
    /// The field's name.
    pub tag: Tag,
    /// The whole text.
    pub value: String,
}

/// A field of indicators and subfields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataField {
    /// The field's name.
    pub tag: Tag,
    /// First and second indicator; a blank is `' '`.
    pub indicators: [char; 2],
    /// The subfields in order; codes may repeat.
    pub subfields: Vec<Subfield>,
}

/// A code and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subfield {
    /// One character; MARC 21 allows digits and lower-case letters.
    pub code: char,
    /// The text without the delimiter and the code.
    pub value: String,
}

impl Record {
    /// Creates a record without fields.
    #[must_use]
    pub const fn new(leader: Leader) -> Self {
        Self { leader, fields: Vec::new() }
    }

    /// Returns the text of the first control field with this tag: `record.control("001")`.
    #[must_use]
    pub fn control<'a>(&'a self, tag: &str) -> Option<&'a str> {
        self.controls(tag).next()
    }

    /// Returns the texts of all control fields with this tag.
    pub fn controls<'a>(&'a self, tag: &str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |field| *field.tag() == *tag).filter_map(Field::as_control)
    }

    /// Returns all fields that have subfields, with this tag, in the order of the record.
    pub fn data_fields<'a>(&'a self, tag: &str) -> impl Iterator<Item = &'a DataField> {
        self.fields.iter().filter(move |field| *field.tag() == *tag).filter_map(Field::as_data)
    }

    /// Returns the texts of all subfields with this tag and code: `record.subfields("010", 'a')`.
    pub fn subfields<'a>(&'a self, tag: &str, code: char) -> impl Iterator<Item = &'a str> {
        self.data_fields(tag).flat_map(move |field| field.values(code))
    }

    /// Returns the text of the first subfield with this tag and code.
    #[must_use]
    pub fn subfield<'a>(&'a self, tag: &str, code: char) -> Option<&'a str> {
        self.subfields(tag, code).next()
    }
}

impl Field {
    /// Returns the field's name.
    #[must_use]
    pub const fn tag(&self) -> &Tag {
        match self {
            Self::Control(field) => &field.tag,
            Self::Data(field) => &field.tag,
        }
    }

    /// Returns the text, if this is a control field.
    #[must_use]
    pub fn as_control(&self) -> Option<&str> {
        match self {
            Self::Control(field) => Some(&field.value),
            Self::Data(_) => None,
        }
    }

    /// Returns the indicators and subfields, if this is a data field.
    #[must_use]
    pub const fn as_data(&self) -> Option<&DataField> {
        match self {
            Self::Control(_) => None,
            Self::Data(field) => Some(field),
        }
    }
}

impl From<ControlField> for Field {
    fn from(field: ControlField) -> Self {
        Self::Control(field)
    }
}

impl From<DataField> for Field {
    fn from(field: DataField) -> Self {
        Self::Data(field)
    }
}

impl ControlField {
    /// Creates a control field.
    pub fn new(tag: Tag, value: impl Into<String>) -> Self {
        Self { tag, value: value.into() }
    }
}

impl DataField {
    /// Creates a data field without subfields; `with` adds them.
    ///
    /// ```
    /// use pinakes_marc::{DataField, Tag};
    /// let field = DataField::new(Tag::new(b"999"), ['f', 'f']).with('i', "5f2a").with('s', "77c1");
    /// assert_eq!(field.value('s'), Some("77c1"));
    /// ```
    #[must_use]
    pub const fn new(tag: Tag, indicators: [char; 2]) -> Self {
        Self { tag, indicators, subfields: Vec::new() }
    }

    /// Returns the same field with one more subfield at its end.
    #[must_use]
    pub fn with(mut self, code: char, value: impl Into<String>) -> Self {
        self.subfields.push(Subfield { code, value: value.into() });
        self
    }

    /// Returns the texts of the subfields with this code.
    pub fn values(&self, code: char) -> impl Iterator<Item = &str> {
        self.subfields.iter().filter(move |subfield| subfield.code == code).map(|subfield| &*subfield.value)
    }

    /// Returns the text of the first subfield with this code.
    #[must_use]
    pub fn value(&self, code: char) -> Option<&str> {
        self.values(code).next()
    }
}
