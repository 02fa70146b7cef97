//! Changes to a record, as an importer makes them between reading and storing.

use crate::record::{ControlField, DataField, Field, Record, Subfield};
use crate::tag::Tag;

impl Record {
    /// Inserts a field after the last one whose tag is not greater, so that a record whose fields are in tag
    /// order stays ordered; in an unordered record the field goes last.
    pub fn insert_in_order(&mut self, field: impl Into<Field>) {
        let field = field.into();
        let at = if self.fields.is_sorted_by_key(Field::tag) {
            self.fields.partition_point(|other| other.tag() <= field.tag())
        } else {
            self.fields.len()
        };
        self.fields.insert(at, field);
    }

    /// Appends a field, whatever its tag.
    pub fn push(&mut self, field: impl Into<Field>) {
        self.fields.push(field.into());
    }

    /// Removes all fields with this tag and returns them, for instance to put them back elsewhere.
    pub fn remove(&mut self, tag: &str) -> Vec<Field> {
        self.remove_where(|field| *field.tag() == *tag)
    }

    /// Removes the fields that `unwanted` picks and returns them in their order.
    pub fn remove_where(&mut self, unwanted: impl FnMut(&mut Field) -> bool) -> Vec<Field> {
        self.fields.extract_if(.., unwanted).collect()
    }

    /// Sets the text of a control field: the first with this tag is changed in place and others with the same
    /// tag are removed; without one it is inserted in tag order.
    pub fn set_control(&mut self, tag: Tag, value: impl Into<String>) {
        let field = Field::Control(ControlField::new(tag, value));
        self.replace(tag, [field]);
    }

    /// Replaces all fields with this tag by others, which take the place of the first; without one
    /// they are inserted in tag order.
    pub fn replace(&mut self, tag: Tag, fields: impl IntoIterator<Item = Field>) {
        let Some(at) = self.fields.iter().position(|field| *field.tag() == tag) else {
            fields.into_iter().for_each(|field| self.insert_in_order(field));
            return;
        };
        self.fields.retain(|field| *field.tag() != tag);
        self.fields.splice(at..at, fields);
    }

    /// Data fields with this tag, to be changed in place.
    pub fn data_fields_mut<'a>(&'a mut self, tag: &str) -> impl Iterator<Item = &'a mut DataField> {
        self.fields.iter_mut().filter_map(move |field| match field {
            Field::Data(data) if data.tag == *tag => Some(data),
            _ => None,
        })
    }
}

impl DataField {
    /// Adds a subfield at the end.
    pub fn push(&mut self, code: char, value: impl Into<String>) {
        self.subfields.push(Subfield { code, value: value.into() });
    }

    /// Sets the first subfield with this code, or adds one at the end.
    pub fn set(&mut self, code: char, value: impl Into<String>) {
        match self.subfields.iter_mut().find(|subfield| subfield.code == code) {
            Some(subfield) => subfield.value = value.into(),
            None => self.push(code, value),
        }
    }

    /// Removes all subfields with this code and returns how many there were.
    pub fn remove(&mut self, code: char) -> usize {
        let n_before = self.subfields.len();
        self.subfields.retain(|subfield| subfield.code != code);
        n_before - self.subfields.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(record: &Record) -> String {
        record.fields.iter().map(|field| field.tag().as_str()).collect::<Vec<_>>().join(" ")
    }

    fn sample() -> Record {
        let mut record = Record::default();
        record.push(ControlField::new(Tag::new(b"001"), "n 1"));
        record.push(ControlField::new(Tag::new(b"005"), "old"));
        record.push(DataField::new(Tag::new(b"035"), [' ', ' ']).with('a', "(X)1"));
        record.push(DataField::new(Tag::new(b"100"), ['1', ' ']).with('a', "Ann"));
        record
    }

    #[test]
    fn inserts_after_the_fields_of_the_same_tag() {
        let mut record = sample();
        record.insert_in_order(DataField::new(Tag::new(b"035"), [' ', ' ']).with('a', "(Y)2"));
        record.insert_in_order(DataField::new(Tag::new(b"999"), ['f', 'f']));
        assert_eq!(tags(&record), "001 005 035 035 100 999");
        assert_eq!(record.subfields("035", 'a').collect::<Vec<_>>(), ["(X)1", "(Y)2"]);
    }

    #[test]
    fn inserts_last_where_there_is_no_order() {
        let mut record = sample();
        record.fields.swap(0, 3);
        record.insert_in_order(DataField::new(Tag::new(b"035"), [' ', ' ']));
        assert_eq!(tags(&record), "100 005 035 001 035");
    }

    #[test]
    fn sets_a_control_field_where_it_stands() {
        let mut record = sample();
        record.push(ControlField::new(Tag::new(b"005"), "twice"));
        record.set_control(Tag::new(b"005"), "20261121020000.0");
        record.set_control(Tag::new(b"003"), "DLC");
        assert_eq!(tags(&record), "001 003 005 035 100");
        assert_eq!(record.control("005"), Some("20261121020000.0"));
    }

    #[test]
    fn removes_and_replaces() {
        let mut record = sample();
        assert_eq!(record.remove("035").len(), 1);
        let heading = DataField::new(Tag::new(b"100"), ['1', ' ']).with('a', "Bob");
        record.replace(Tag::new(b"100"), [heading.into()]);
        assert_eq!((tags(&record).as_str(), record.subfield("100", 'a')), ("001 005 100", Some("Bob")));
        record.data_fields_mut("100").for_each(|field| field.set('a', "Cy"));
        assert_eq!(record.subfield("100", 'a'), Some("Cy"));
    }
}
