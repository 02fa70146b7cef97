//! Applying rules to a record: an option names the part of the record to change, and actions say how.

use serde_json::{Map, Value, json};

use super::table::Entity;
use crate::bulk_edit::operations::refused;
use crate::platform::error::FolioError;
use crate::platform::limits::BULK_EDIT_RULES;

/// The part of a record that an option is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A text, by path.
    Text(&'static str),
    /// A boolean.
    Flag(&'static str),
    /// A list of texts.
    Texts(&'static str),
    /// A list of objects with a text: the list, the text, the property with their type, and the key of the parameter
    /// that selects the type.
    Notes(&'static str, &'static str, &'static str, &'static str),
}

/// Options: their name, the record types that have them, and the part they are about.
static OPTIONS: [(&str, &[Entity], Target); 20] = [
    ("PATRON_GROUP", &[Entity::User], Target::Text("patronGroup")),
    ("EXPIRATION_DATE", &[Entity::User], Target::Text("expirationDate")),
    ("EMAIL_ADDRESS", &[Entity::User], Target::Text("personal.email")),
    ("STATUS", &[Entity::Item], Target::Text("status.name")),
    ("PERMANENT_LOAN_TYPE", &[Entity::Item], Target::Text("permanentLoanTypeId")),
    ("TEMPORARY_LOAN_TYPE", &[Entity::Item], Target::Text("temporaryLoanTypeId")),
    ("PERMANENT_LOCATION", &[Entity::Item, Entity::Holdings], Target::Text("permanentLocationId")),
    ("TEMPORARY_LOCATION", &[Entity::Item, Entity::Holdings], Target::Text("temporaryLocationId")),
    (
        "SUPPRESS_FROM_DISCOVERY",
        &[Entity::Item, Entity::Holdings, Entity::Instance],
        Target::Flag("discoverySuppress"),
    ),
    ("STAFF_SUPPRESS", &[Entity::Instance], Target::Flag("staffSuppress")),
    ("SET_RECORDS_FOR_DELETE", &[Entity::Instance], Target::Flag("deleted")),
    (
        "ADMINISTRATIVE_NOTE",
        &[Entity::Item, Entity::Holdings, Entity::Instance],
        Target::Texts("administrativeNotes"),
    ),
    (
        "STATISTICAL_CODE",
        &[Entity::Item, Entity::Holdings, Entity::Instance],
        Target::Texts("statisticalCodeIds"),
    ),
    ("ITEM_NOTE", &[Entity::Item], Target::Notes("notes", "note", "itemNoteTypeId", "ITEM_NOTE_TYPE_ID_KEY")),
    ("CHECK_IN_NOTE", &[Entity::Item], Target::Notes("circulationNotes", "note", "noteType", "Check in")),
    ("CHECK_OUT_NOTE", &[Entity::Item], Target::Notes("circulationNotes", "note", "noteType", "Check out")),
    (
        "HOLDINGS_NOTE",
        &[Entity::Holdings],
        Target::Notes("notes", "note", "holdingsNoteTypeId", "HOLDINGS_NOTE_TYPE_ID_KEY"),
    ),
    (
        "INSTANCE_NOTE",
        &[Entity::Instance],
        Target::Notes("notes", "note", "instanceNoteTypeId", "INSTANCE_NOTE_TYPE_ID_KEY"),
    ),
    ("ELECTRONIC_ACCESS_URI", &[Entity::Holdings], Target::Notes("electronicAccess", "uri", "", "")),
    (
        "ELECTRONIC_ACCESS_LINK_TEXT",
        &[Entity::Holdings],
        Target::Notes("electronicAccess", "linkText", "", ""),
    ),
];

/// An action, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Replace,
    Clear,
    FindAndReplace,
    FindAndRemove,
    SetTrue,
    SetFalse,
    Add,
    RemoveAll,
    MarkStaffOnly,
    UnmarkStaffOnly,
}

impl Verb {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "REPLACE_WITH" => Self::Replace,
            "CLEAR_FIELD" => Self::Clear,
            "FIND_AND_REPLACE" => Self::FindAndReplace,
            "FIND_AND_REMOVE_THESE" | "REMOVE_SOME" => Self::FindAndRemove,
            "SET_TO_TRUE" => Self::SetTrue,
            "SET_TO_FALSE" => Self::SetFalse,
            "ADD_TO_EXISTING" => Self::Add,
            "REMOVE_ALL" => Self::RemoveAll,
            "MARK_AS_STAFF_ONLY" => Self::MarkStaffOnly,
            "REMOVE_MARK_AS_STAFF_ONLY" => Self::UnmarkStaffOnly,
            _ => return None,
        })
    }

    fn fits(self, target: Target) -> bool {
        match target {
            Target::Text(_) => {
                matches!(self, Self::Replace | Self::Clear | Self::FindAndReplace | Self::FindAndRemove)
            }
            Target::Flag(_) => matches!(self, Self::SetTrue | Self::SetFalse),
            Target::Texts(_) => {
                matches!(self, Self::Add | Self::RemoveAll | Self::FindAndReplace | Self::FindAndRemove)
            }
            Target::Notes(..) => !matches!(self, Self::SetTrue | Self::SetFalse),
        }
    }
}

/// A rule with one action.
#[derive(Debug)]
pub(super) struct Rule {
    target: Target,
    verb: Verb,
    initial: String,
    updated: String,
    /// The type of the notes to change.
    ty: String,
}

/// Parses a list of rules, in order. Errors: 422 for an option or action that is unknown or does not fit.
pub(super) fn read(entity: Entity, given: &Value) -> Result<Vec<Rule>, FolioError> {
    let mut rules = Vec::new();
    for rule in given.as_array().into_iter().flatten() {
        let details = &rule["rule_details"];
        let name = details["option"].as_str().unwrap_or_default();
        let option = OPTIONS.iter().find(|it| it.0 == name && it.1.contains(&entity));
        let Some((_, _, target)) = option else {
            return Err(refused("there is no such option for these records", "option", name));
        };
        for action in details["actions"].as_array().into_iter().flatten() {
            let text = |name: &str| action[name].as_str().unwrap_or_default();
            let verb = Verb::named(text("type")).filter(|it| it.fits(*target));
            let Some(verb) = verb else {
                return Err(refused(format!("{name} has no such action"), "type", text("type")));
            };
            let ty = match target {
                Target::Notes(_, _, "noteType", fixed) => (*fixed).to_owned(),
                Target::Notes(_, _, _, key) => {
                    let parameters = action["parameters"].as_array().into_iter().flatten();
                    let found = parameters.into_iter().find(|it| it["key"] == *key);
                    found.and_then(|it| it["value"].as_str()).unwrap_or_default().to_owned()
                }
                _ => String::new(),
            };
            rules.push(Rule {
                target: *target,
                verb,
                initial: text("initial").to_owned(),
                updated: text("updated").to_owned(),
                ty,
            });
            if BULK_EDIT_RULES < rules.len() {
                return Err(refused(format!("at most {BULK_EDIT_RULES} actions are taken"), "option", name));
            }
        }
    }
    Ok(rules)
}

impl Rule {
    /// Changes a record.
    pub(super) fn change(&self, record: &mut Value) {
        match self.target {
            Target::Text(path) => self.change_text(record, path),
            Target::Flag(name) => {
                record[name] = (self.verb == Verb::SetTrue).into();
                if name == "deleted" && self.verb == Verb::SetTrue {
                    record["discoverySuppress"] = true.into();
                    record["staffSuppress"] = true.into();
                }
            }
            Target::Texts(name) => self.change_texts(record, name),
            Target::Notes(list, text, ty, _) => self.change_notes(record, list, text, ty),
        }
    }

    fn change_text(&self, record: &mut Value, path: &str) {
        let (parent, name) = path.split_once('.').map_or((None, path), |(first, rest)| (Some(first), rest));
        let holder = match parent {
            Some(parent) => &mut record[parent],
            None => record,
        };
        let Some(map) = holder.as_object_mut() else { return };
        let text = map.get(name).and_then(Value::as_str).unwrap_or_default();
        match self.verb {
            Verb::Clear => {
                map.shift_remove(name);
            }
            Verb::FindAndReplace if !self.initial.is_empty() => {
                let changed = text.replace(&self.initial, &self.updated);
                map.insert(name.to_owned(), changed.into());
            }
            Verb::FindAndRemove if !self.initial.is_empty() => {
                let changed = text.replace(&self.initial, "");
                map.insert(name.to_owned(), changed.into());
            }
            Verb::Replace => {
                map.insert(name.to_owned(), self.updated.as_str().into());
            }
            _ => {}
        }
    }

    fn change_texts(&self, record: &mut Value, name: &str) {
        if !record[name].is_array() {
            record[name] = json!([]);
        }
        let Some(list) = record[name].as_array_mut() else { return };
        match self.verb {
            Verb::Add if list.iter().any(|it| it == self.updated.as_str()) => {}
            Verb::Add => list.push(self.updated.as_str().into()),
            Verb::RemoveAll => list.clear(),
            Verb::FindAndRemove => {
                list.retain(|it| it != self.initial.as_str() && it != self.updated.as_str())
            }
            Verb::FindAndReplace if !self.initial.is_empty() => {
                for text in list {
                    let changed = text.as_str().unwrap_or_default().replace(&self.initial, &self.updated);
                    *text = changed.into();
                }
            }
            _ => {}
        }
    }

    fn change_notes(&self, record: &mut Value, list: &str, text: &str, ty: &str) {
        if !record[list].is_array() {
            record[list] = json!([]);
        }
        let is_meant = |it: &Value| ty.is_empty() || self.ty.is_empty() || it[ty] == self.ty.as_str();
        let Some(notes) = record[list].as_array_mut() else { return };
        match self.verb {
            Verb::Add => {
                let mut note = Map::new();
                if !ty.is_empty() {
                    note.insert(ty.to_owned(), self.ty.as_str().into());
                    note.insert("staffOnly".into(), false.into());
                }
                note.insert(text.to_owned(), self.updated.as_str().into());
                notes.push(Value::Object(note));
            }
            Verb::RemoveAll | Verb::Clear => notes.retain(|it| !is_meant(it)),
            Verb::MarkStaffOnly | Verb::UnmarkStaffOnly => {
                for note in notes.iter_mut().filter(|it| is_meant(it)) {
                    note["staffOnly"] = (self.verb == Verb::MarkStaffOnly).into();
                }
            }
            Verb::FindAndRemove => {
                notes.retain(|it| !(is_meant(it) && it[text] == self.initial.as_str()));
            }
            Verb::FindAndReplace | Verb::Replace => {
                for note in notes.iter_mut().filter(|it| is_meant(it)) {
                    let is_found = self.verb == Verb::Replace || note[text] == self.initial.as_str();
                    if is_found {
                        note[text] = self.updated.as_str().into();
                    }
                }
            }
            Verb::SetTrue | Verb::SetFalse => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the record after the rules have been applied.
    fn made(entity: Entity, rules: &Value, record: &Value) -> Value {
        let mut record = record.clone();
        for rule in read(entity, rules).unwrap_or_default() {
            rule.change(&mut record);
        }
        record
    }

    fn rule(option: &str, action: &Value) -> Value {
        json!([{"rule_details": {"option": option, "actions": [action]}}])
    }

    #[test]
    fn rules_change_what_they_name() {
        let item = json!({
            "status": {"name": "Available"}, "temporaryLocationId": "x", "administrativeNotes": ["a b"],
            "notes": [{"itemNoteTypeId": "t", "note": "n", "staffOnly": false}, {"itemNoteTypeId": "u", "note": "n"}],
        });
        for (option, action, path, expected) in [
            (
                "STATUS",
                json!({"type": "REPLACE_WITH", "updated": "Missing"}),
                "/status/name",
                json!("Missing"),
            ),
            ("TEMPORARY_LOCATION", json!({"type": "CLEAR_FIELD"}), "/temporaryLocationId", Value::Null),
            (
                "ADMINISTRATIVE_NOTE",
                json!({"type": "FIND_AND_REPLACE", "initial": "a", "updated": "c"}),
                "/administrativeNotes",
                json!(["c b"]),
            ),
            ("SUPPRESS_FROM_DISCOVERY", json!({"type": "SET_TO_TRUE"}), "/discoverySuppress", json!(true)),
            (
                "ITEM_NOTE",
                json!({"type": "REMOVE_ALL", "parameters": [{"key": "ITEM_NOTE_TYPE_ID_KEY", "value": "t"}]}),
                "/notes",
                json!([{"itemNoteTypeId": "u", "note": "n"}]),
            ),
            (
                "CHECK_IN_NOTE",
                json!({"type": "ADD_TO_EXISTING", "updated": "hello"}),
                "/circulationNotes",
                json!([{"noteType": "Check in", "staffOnly": false, "note": "hello"}]),
            ),
        ] {
            let changed = made(Entity::Item, &rule(option, &action), &item);
            assert_eq!(changed.pointer(path).cloned().unwrap_or_default(), expected, "{option}");
        }
    }

    #[test]
    fn rules_that_do_not_fit_are_refused() {
        assert!(read(Entity::User, &rule("STATUS", &json!({"type": "REPLACE_WITH"}))).is_err());
        assert!(read(Entity::Item, &rule("STATUS", &json!({"type": "SET_TO_TRUE"}))).is_err());
        assert!(read(Entity::Item, &rule("STATUS", &json!({"type": "REPLACE_WITH"}))).is_ok());
    }
}
