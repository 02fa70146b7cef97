//! Rules for fields of MARC records: `{"tag":"500","ind1":"\\","ind2":"\\","subfield":"a","actions":[{"name":"FIND","data":
//! [{"key":"VALUE","value":"old"}]},{"name":"REPLACE_WITH",…}]}`.

use pinakes_marc::{DataField, Field, Record, Tag};
use serde_json::Value;

use crate::bulk_edit::operations::refused;
use crate::platform::error::FolioError;
use crate::platform::limits::BULK_EDIT_RULES;

/// What a rule does to the fields it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    /// Adds a field, or a subfield to a field found.
    Add(String),
    /// Replaces the text found.
    Replace(String),
    /// Appends another subfield to a field in which the text was found.
    Append(char, String),
    /// Removes the fields in which the text was found, or all that the rule matches.
    RemoveField,
    /// Removes the subfields in which the text was found.
    RemoveSubfield,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarcRule {
    tag: Tag,
    indicators: [char; 2],
    subfield: char,
    /// The text to find in the subfield; `None` if the rule looks for nothing.
    find: Option<String>,
    act: Act,
    /// Further subfields of an added field.
    more: Vec<(char, String)>,
}

/// Returns the value of an action.
fn value(action: &Value) -> String {
    let data = action["data"].as_array().into_iter().flatten();
    let found = data.into_iter().find(|it| it["key"] == "VALUE").and_then(|it| it["value"].as_str());
    found.unwrap_or_default().to_owned()
}

/// Returns the subfield code of an action.
fn code_of(action: &Value) -> Option<char> {
    let data = action["data"].as_array().into_iter().flatten();
    data.into_iter().find(|it| it["key"] == "SUBFIELD")?["value"].as_str()?.chars().next()
}

/// Parses a list of rules, in order.
///
/// Errors: 422 for a field that rules may not change (control fields, 010, 999), or for actions that cannot be
/// combined.
pub(super) fn read(given: &Value) -> Result<Vec<MarcRule>, FolioError> {
    let mut rules = Vec::new();
    for rule in given.as_array().into_iter().flatten() {
        let text = |name: &str| rule[name].as_str().unwrap_or_default();
        let tag = text("tag");
        let is_own = tag.starts_with("00") || tag == "010" || tag == "999";
        let known = Tag::try_from(tag).ok().filter(|_| !is_own && tag.bytes().all(|it| it.is_ascii_digit()));
        let Some(tag) = known else {
            return Err(refused("there is no such field that can be changed", "tag", tag));
        };
        let Some(subfield) = text("subfield").chars().next() else {
            return Err(refused("a rule needs a subfield", "subfield", ""));
        };
        let indicator = |name: &str| match text(name).chars().next() {
            None | Some('\\') => ' ',
            Some(character) => character,
        };
        let actions = rule["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = actions.iter().map(|it| it["name"].as_str().unwrap_or_default()).collect();
        let (find, act) = match (names.as_slice(), actions) {
            (["ADD_TO_EXISTING"], [add]) => (None, Act::Add(value(add))),
            (["REMOVE_ALL"], _) => (None, Act::RemoveField),
            (["FIND", "REPLACE_WITH"], [find, act]) => (Some(value(find)), Act::Replace(value(act))),
            (["FIND", "APPEND"], [find, act]) => {
                (Some(value(find)), Act::Append(code_of(act).unwrap_or(subfield), value(act)))
            }
            (["FIND", "REMOVE_FIELD"], [find, _]) => (Some(value(find)), Act::RemoveField),
            (["FIND", "REMOVE_SUBFIELD"], [find, _]) => (Some(value(find)), Act::RemoveSubfield),
            _ => return Err(refused("these actions do not go together", "actions", &names.join(", "))),
        };
        if find.as_deref() == Some("") {
            return Err(refused("FIND needs a value", "actions", &names.join(", ")));
        }
        let more = rule["subfields"].as_array().into_iter().flatten();
        let more = more
            .filter_map(|it| Some((it["subfield"].as_str()?.chars().next()?, value(it["actions"].get(0)?))))
            .collect();
        let indicators = [indicator("ind1"), indicator("ind2")];
        rules.push(MarcRule { tag, indicators, subfield, find, act, more });
        if BULK_EDIT_RULES < rules.len() {
            return Err(refused(format!("at most {BULK_EDIT_RULES} rules are taken"), "tag", tag.as_str()));
        }
    }
    Ok(rules)
}

impl MarcRule {
    fn is_meant(&self, field: &DataField) -> bool {
        field.tag == self.tag && field.indicators == self.indicators
    }

    fn is_found(&self, field: &DataField) -> bool {
        let found = |find: &String| field.values(self.subfield).any(|it| it.contains(find.as_str()));
        self.is_meant(field) && self.find.as_ref().is_none_or(found)
    }

    /// Changes a record.
    pub(super) fn change(&self, record: &mut Record) {
        match &self.act {
            Act::Add(text) => {
                let mut field = DataField::new(self.tag, self.indicators).with(self.subfield, text);
                for (code, text) in &self.more {
                    field.push(*code, text.as_str());
                }
                let is_there = record.data_fields(self.tag.as_str()).any(|it| *it == field);
                if !is_there {
                    record.insert_in_order(field);
                }
            }
            Act::RemoveField => {
                record.remove_where(|it| match it {
                    Field::Data(field) => self.is_found(field),
                    Field::Control(_) => false,
                });
            }
            Act::Replace(_) | Act::Append(..) | Act::RemoveSubfield => {
                let name = self.tag;
                for field in record.data_fields_mut(name.as_str()) {
                    if self.is_found(field) {
                        self.change_field(field);
                    }
                }
                record.remove_where(|it| match it {
                    Field::Data(field) => self.is_meant(field) && field.subfields.is_empty(),
                    Field::Control(_) => false,
                });
            }
        }
    }

    fn change_field(&self, field: &mut DataField) {
        let find = self.find.as_deref().unwrap_or_default();
        let code = self.subfield;
        match &self.act {
            Act::Replace(text) => {
                for subfield in field.subfields.iter_mut().filter(|it| it.code == code) {
                    subfield.value = subfield.value.replace(find, text);
                }
            }
            Act::Append(code, text) => field.push(*code, text.as_str()),
            Act::RemoveSubfield => {
                field.subfields.retain(|it| !(it.code == code && it.value.contains(find)));
            }
            Act::Add(_) | Act::RemoveField => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_records::marc;
    use serde_json::json;

    fn note(text: &str) -> Value {
        json!({"500": {"ind1": " ", "ind2": " ", "subfields": [{"a": text}]}})
    }

    #[test]
    fn rules_change_the_fields_that_they_name() -> Result<(), FolioError> {
        let content = json!({"leader": "00000nam a2200000 a 4500", "fields": [{"001": "1"}, note("old news"), note("kept")]});
        let find = json!({"name": "FIND", "data": [{"key": "VALUE", "value": "old"}]});
        let act = |name: &str, value: &str| json!({"name": name, "data": [{"key": "VALUE", "value": value}]});
        let append = json!({"name": "APPEND", "data": [
            {"key": "SUBFIELD", "value": "5"}, {"key": "VALUE", "value": "X"},
        ]});
        let appended =
            json!({"500": {"ind1": " ", "ind2": " ", "subfields": [{"a": "old news"}, {"5": "X"}]}});
        for (actions, expected) in [
            (json!([find, act("REPLACE_WITH", "new")]), json!([note("new news"), note("kept")])),
            (json!([find, {"name": "REMOVE_FIELD"}]), json!([note("kept")])),
            (json!([find, {"name": "REMOVE_SUBFIELD"}]), json!([note("kept")])),
            (json!([find, append]), json!([appended, note("kept")])),
            (json!([{"name": "REMOVE_ALL"}]), json!([])),
            (json!([act("ADD_TO_EXISTING", "more")]), json!([note("old news"), note("kept"), note("more")])),
        ] {
            let given =
                json!([{"tag": "500", "ind1": "\\", "ind2": "\\", "subfield": "a", "actions": actions}]);
            let mut record = marc::from_value(&content).ok_or_else(|| refused("no record", "", ""))?;
            read(&given)?.iter().for_each(|it| it.change(&mut record));
            let fields = marc::to_value(&record)["fields"].as_array().cloned().unwrap_or_default();
            assert_eq!(Value::from(fields[1..].to_vec()), expected, "{actions}");
        }
        Ok(())
    }

    #[test]
    fn control_fields_are_no_matter_of_rules() {
        for tag in ["001", "010", "999", "5x0"] {
            let given = json!([{"tag": tag, "subfield": "a", "actions": [{"name": "REMOVE_ALL"}]}]);
            assert!(read(&given).is_err(), "{tag}");
        }
    }
}
