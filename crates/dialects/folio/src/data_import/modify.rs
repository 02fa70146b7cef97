//! Changes to a MARC record by a mapping profile (MODIFY): add, delete, edit and move.

use pinakes_marc::{ControlField, DataField, Field, Record, Tag};
use serde_json::Value;

/// One entry of `marcMappingDetails`.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    action: Change,
    field: Place,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Add,
    Delete,
    Edit,
    Move,
}

/// A tag with indicators; `*` stands for any.
#[derive(Debug, Clone)]
struct Place {
    tag: Tag,
    indicators: [char; 2],
}

/// The change to one subfield.
#[derive(Debug, Clone)]
struct Part {
    /// `*` for the whole field.
    code: char,
    subaction: String,
    position: String,
    text: String,
    find: String,
    replace_with: String,
    target: Option<(Place, Option<char>)>,
}

impl Edit {
    /// Parses an entry; `None` for one without a known effect.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let action = match value.get("action")?.as_str()? {
            "ADD" => Change::Add,
            "DELETE" => Change::Delete,
            "EDIT" => Change::Edit,
            "MOVE" => Change::Move,
            _ => return None,
        };
        let field = value.get("field")?;
        let parts =
            field.get("subfields").and_then(Value::as_array).into_iter().flatten().map(part).collect();
        Some(Self { action, field: place(field)?, parts })
    }

    /// Applies the edit to a record.
    pub(crate) fn apply(&self, record: &mut Record) {
        match self.action {
            Change::Add => self.add(record),
            Change::Delete => self.delete(record),
            Change::Edit => self.edit(record),
            Change::Move => self.move_to(record),
        }
    }

    fn add(&self, record: &mut Record) {
        if self.field.tag.is_control() {
            let text = self.parts.first().map_or("", |it| it.text.as_str());
            return record.insert_in_order(ControlField::new(self.field.tag, text));
        }
        let mut field =
            DataField::new(self.field.tag, self.field.indicators.map(|it| if it == '*' { ' ' } else { it }));
        self.parts.iter().for_each(|it| field.push(it.code, it.text.as_str()));
        record.insert_in_order(field);
    }

    fn delete(&self, record: &mut Record) {
        let codes: Vec<char> =
            self.parts.iter().map(|it| it.code).filter(|it| *it != '*' && *it != ' ').collect();
        record.remove_where(|field| {
            if !self.field.fits(field) {
                return false;
            }
            match field {
                Field::Data(data) if !codes.is_empty() => {
                    data.subfields.retain(|it| !codes.contains(&it.code));
                    data.subfields.is_empty()
                }
                _ => true,
            }
        });
    }

    fn edit(&self, record: &mut Record) {
        for field in record.fields.iter_mut().filter(|it| self.field.fits(it)) {
            for part in &self.parts {
                match field {
                    Field::Control(field) => part.edit(&mut field.value),
                    Field::Data(field) if part.adds_subfield() => {
                        field.push(part.new_code(), part.text.as_str());
                    }
                    Field::Data(field) => {
                        let wanted = |code: char| part.code == '*' || part.code == code;
                        field
                            .subfields
                            .iter_mut()
                            .filter(|it| wanted(it.code))
                            .for_each(|it| part.edit(&mut it.value));
                        field.subfields.retain(|it| !it.value.is_empty());
                    }
                }
            }
        }
        record.remove_where(|field| self.field.fits(field) && is_empty(field));
    }

    fn move_to(&self, record: &mut Record) {
        for part in &self.parts {
            let Some((target, new_code)) = &part.target else { continue };
            let mut moved = Vec::new();
            record.remove_where(|field| {
                if !self.field.fits(field) {
                    return false;
                }
                let Field::Data(data) = field else { return false };
                let wanted = |code: char| part.code == '*' || part.code == code;
                let taken = data.subfields.extract_if(.., |it| wanted(it.code)).collect::<Vec<_>>();
                if !taken.is_empty() {
                    moved.push((data.indicators, taken));
                }
                data.subfields.is_empty()
            });
            for (indicators, mut subfields) in moved {
                if let Some(code) = new_code.filter(|_| part.code != '*') {
                    subfields.iter_mut().for_each(|it| it.code = code);
                }
                let existing = record
                    .data_fields_mut(target.tag.as_str())
                    .find(|it| fit(target.indicators, it.indicators));
                match existing.filter(|_| part.subaction == "ADD_TO_EXISTING_FIELD") {
                    Some(field) => field.subfields.extend(subfields),
                    None => {
                        let pairs = target.indicators.into_iter().zip(indicators);
                        let mut chosen = pairs.map(|(it, old)| if it == '*' { old } else { it });
                        let indicators = [chosen.next().unwrap_or(' '), chosen.next().unwrap_or(' ')];
                        record.insert_in_order(DataField { tag: target.tag, indicators, subfields });
                    }
                }
            }
        }
    }
}

impl Place {
    fn fits(&self, field: &Field) -> bool {
        *field.tag() == self.tag && field.as_data().is_none_or(|it| fit(self.indicators, it.indicators))
    }
}

impl Part {
    fn adds_subfield(&self) -> bool {
        self.subaction == "ADD_SUBFIELD" || (self.subaction == "INSERT" && self.position == "NEW_SUBFIELD")
    }

    fn new_code(&self) -> char {
        self.target.as_ref().and_then(|(_, code)| *code).unwrap_or(self.code)
    }

    fn edit(&self, value: &mut String) {
        match (self.subaction.as_str(), self.position.as_str()) {
            ("INSERT", "BEFORE_STRING") => value.insert_str(0, &self.text),
            ("INSERT", _) => value.push_str(&self.text),
            ("REPLACE", _) if !self.find.is_empty() => *value = value.replace(&self.find, &self.replace_with),
            ("REMOVE", _) => {
                let text = if self.text.is_empty() { &self.find } else { &self.text };
                if !text.is_empty() {
                    *value = value.replace(text.as_str(), "");
                }
            }
            _ => {}
        }
    }
}

fn is_empty(field: &Field) -> bool {
    match field {
        Field::Control(field) => field.value.is_empty(),
        Field::Data(field) => field.subfields.is_empty(),
    }
}

fn place(field: &Value) -> Option<Place> {
    let tag = Tag::try_from(field.get("field")?.as_str()?).ok()?;
    let indicator =
        |name: &str| field.get(name).and_then(Value::as_str).and_then(|it| it.chars().next()).unwrap_or(' ');
    Some(Place { tag, indicators: [indicator("indicator1"), indicator("indicator2")] })
}

fn part(value: &Value) -> Part {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let data = value.get("data").unwrap_or(&Value::Null);
    let target = data.get("marcField").and_then(|it| {
        let code =
            it.pointer("/subfields/0/subfield").and_then(Value::as_str).and_then(|it| it.chars().next());
        Some((place(it)?, code))
    });
    Part {
        code: text(value, "subfield").chars().next().unwrap_or('*'),
        subaction: text(value, "subaction"),
        position: text(value, "position"),
        text: text(data, "text"),
        find: text(data, "find"),
        replace_with: text(data, "replaceWith"),
        target,
    }
}

fn fit(wanted: [char; 2], found: [char; 2]) -> bool {
    wanted.iter().zip(found).all(|(wanted, found)| *wanted == '*' || *wanted == found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Compares the result of an edit of a record with 500 $a one and 500 $a two $5 X.
    fn check(edit: Value, expected: &[&str]) {
        let mut record = Record::default();
        record.push(DataField::new(Tag::new(b"500"), [' ', ' ']).with('a', "one"));
        record.push(DataField::new(Tag::new(b"500"), [' ', ' ']).with('a', "two").with('5', "X"));
        Edit::read(&edit).unwrap_or_else(|| panic!("{edit} is not understood")).apply(&mut record);
        let lines: Vec<String> = record
            .fields
            .iter()
            .filter_map(Field::as_data)
            .map(|it| {
                let parts: String =
                    it.subfields.iter().map(|it| format!("${}{}", it.code, it.value)).collect();
                format!("{}{parts}", it.tag)
            })
            .collect();
        assert_eq!(lines, expected, "{edit}");
    }

    #[test]
    fn edits_do_what_they_say() {
        let field = |subfields: Value| json!({"field": "500", "indicator1": " ", "indicator2": " ", "subfields": subfields});
        check(
            json!({"action": "ADD", "field": {"field": "590", "subfields": [{"subfield": "a", "data": {"text": "new"}}]}}),
            &["500$aone", "500$atwo$5X", "590$anew"],
        );
        check(
            json!({"action": "DELETE", "field": field(json!([{"subfield": "5"}]))}),
            &["500$aone", "500$atwo"],
        );
        check(json!({"action": "DELETE", "field": field(json!([{"subfield": "*"}]))}), &[]);
        check(
            json!({"action": "EDIT", "field": field(json!([{"subfield": "a", "subaction": "REPLACE", "data": {"find": "o", "replaceWith": "0"}}]))}),
            &["500$a0ne", "500$atw0$5X"],
        );
        check(
            json!({"action": "EDIT", "field": field(json!([{"subfield": "a", "subaction": "INSERT", "position": "BEFORE_STRING", "data": {"text": "> "}}]))}),
            &["500$a> one", "500$a> two$5X"],
        );
        check(
            json!({"action": "MOVE", "field": field(json!([{"subfield": "5", "subaction": "CREATE_NEW_FIELD",
                "data": {"marcField": {"field": "561", "indicator1": " ", "indicator2": " ", "subfields": [{"subfield": "a"}]}}}]))}),
            &["500$aone", "500$atwo", "561$aX"],
        );
    }
}
