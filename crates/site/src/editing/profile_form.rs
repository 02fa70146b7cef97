//! The form of a mapping profile: each field that sets something has a line for its value, wherever it is nested.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Faults, ROWS_MAX, cell, marc_form};
use crate::app::Visitor;
use crate::fields::Fields;
use crate::record::text;

/// Most fields that a form shows; those beyond stay as they are.
const FIELDS_MAX: usize = 500;
/// What profiles make.
pub(super) const ENTITIES: [&str; 7] =
    ["INSTANCE", "HOLDINGS", "ITEM", "AUTHORITY", "MARC_BIBLIOGRAPHIC", "MARC_HOLDINGS", "MARC_AUTHORITY"];
/// Where the fields are.
const LIST: &str = "/mappingDetails/mappingFields";

/// A field of the profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Field {
    /// Where it stands in the profile; empty for a new one.
    at: String,
    name: String,
    path: String,
    value: String,
}

/// What the form says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Form {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) entity: String,
    pub(super) fields: Vec<Field>,
    /// Changes of MARC fields.
    pub(super) marc: Vec<marc_form::Row>,
}

/// The fields of a list, and those within their rows, in the order of the profile.
fn collect(list: &Value, at: &str, out: &mut Vec<Field>) {
    for (n, field) in list.as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}/{n}");
        let rows = field["subfields"].as_array().map_or(&[][..], Vec::as_slice);
        for (row, it) in rows.iter().enumerate() {
            collect(&it["fields"], &format!("{at}/subfields/{row}/fields"), out);
        }
        if rows.is_empty() && FIELDS_MAX > out.len() && field.is_object() {
            out.push(Field {
                at,
                name: text(field, "name"),
                path: text(field, "path"),
                value: text(field, "value"),
            });
        }
    }
}

impl Form {
    pub(super) fn of_profile(profile: &Value) -> Self {
        let mut fields = Vec::new();
        collect(profile.pointer(LIST).unwrap_or(&Value::Null), LIST, &mut fields);
        Self {
            name: text(profile, "name"),
            description: text(profile, "description"),
            entity: text(profile, "existingRecordType"),
            fields,
            marc: marc_form::of_profile(profile),
        }
    }

    pub(super) fn of_sent(sent: &Fields) -> Self {
        let n_sent = (0..FIELDS_MAX).take_while(|at| sent.has(&format!("field.{at}.path"))).count();
        let field = |at: usize| Field {
            at: cell(sent, "field", at, "at"),
            name: cell(sent, "field", at, "name"),
            path: cell(sent, "field", at, "path"),
            value: cell(sent, "field", at, "value"),
        };
        Self {
            name: sent.text("name").to_owned(),
            description: sent.text("description").replace("\r\n", "\n"),
            entity: sent.text("entity").to_owned(),
            fields: (0..n_sent).map(field).collect(),
            marc: marc_form::of_sent(sent),
        }
    }

    /// With empty rows for changes of MARC fields.
    pub(super) fn with_empty_marc(mut self, n: usize) -> Self {
        let n = (self.marc.len() + n).min(ROWS_MAX.max(self.marc.len()));
        self.marc.resize_with(n, marc_form::Row::default);
        self
    }

    /// With empty fields to write into.
    pub(super) fn with_empty_fields(mut self, n: usize) -> Self {
        let n = (self.fields.len() + n).min(FIELDS_MAX.max(self.fields.len()));
        self.fields.resize_with(n, Field::default);
        self
    }

    /// What cannot be so.
    pub(super) fn faults(&self, visitor: &Visitor) -> Faults {
        let mut faults = Faults::new();
        if self.name.is_empty() {
            faults.insert("name".to_owned(), visitor.text("fault_profile_name"));
        }
        if !ENTITIES.contains(&self.entity.as_str()) {
            faults.insert("entity".to_owned(), visitor.text("fault_profile_entity"));
        }
        for (at, it) in self.fields.iter().enumerate().filter(|it| it.1.at.is_empty()) {
            let is_half = it.path.is_empty() != it.value.is_empty();
            let is_path = it.path.split('.').count() > 1 && it.path.split('.').all(|it| !it.is_empty());
            if is_half || !(it.path.is_empty() || is_path) {
                faults.insert(format!("field.{at}.path"), visitor.text("fault_profile_path"));
            }
        }
        marc_form::faults(&self.marc, &self.entity, visitor, &mut faults);
        faults
    }

    /// The profile with what the form says. A field is changed where it stands; new ones come behind the others.
    pub(super) fn applied(&self, profile: &Value) -> Value {
        let mut after = profile.clone();
        if !after.is_object() {
            after = json!({});
        }
        after["name"] = json!(self.name);
        if !self.description.is_empty() || after.get("description").is_some() {
            after["description"] = json!(self.description);
        }
        after["existingRecordType"] = json!(self.entity);
        if after.get("incomingRecordType").is_none() {
            after["incomingRecordType"] = json!(match self.entity.as_str() {
                "AUTHORITY" | "MARC_AUTHORITY" => "MARC_AUTHORITY",
                "MARC_HOLDINGS" => "MARC_HOLDINGS",
                _ => "MARC_BIBLIOGRAPHIC",
            });
        }
        if !after["mappingDetails"].is_object() {
            after["mappingDetails"] = json!({});
        }
        after["mappingDetails"]["name"] = json!(self.entity.to_lowercase());
        after["mappingDetails"]["recordType"] = json!(self.entity);
        if !after["mappingDetails"]["mappingFields"].is_array() {
            after["mappingDetails"]["mappingFields"] = json!([]);
        }
        for it in &self.fields {
            if it.at.is_empty() {
                continue;
            }
            if let Some(field) = after.pointer_mut(&it.at).filter(|_| it.at.starts_with(LIST))
                && text(field, "path") == it.path
                && text(field, "value") != it.value
            {
                field["value"] = json!(it.value);
            }
        }
        let new = self.fields.iter().filter(|it| it.at.is_empty() && !it.path.is_empty()).map(|it| {
            let name = it.path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]").to_owned();
            json!({"name": name, "enabled": "true", "required": false, "path": it.path, "value": it.value, "subfields": []})
        });
        if let Some(list) = after.pointer_mut(LIST).and_then(Value::as_array_mut) {
            list.extend(new);
        }
        marc_form::apply(&self.marc, &mut after);
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Value {
        json!({
            "name": "Items", "existingRecordType": "ITEM", "incomingRecordType": "MARC_BIBLIOGRAPHIC", "kept": 1,
            "mappingDetails": {"name": "item", "recordType": "ITEM", "mappingFields": [
                {"name": "barcode", "path": "item.barcode", "value": "945$b", "enabled": "true", "subfields": []},
                {"name": "notes", "path": "item.notes[]", "value": "", "subfields": [
                    {"order": 0, "path": "item.notes[]", "fields": [
                        {"name": "note", "path": "item.notes[].note", "value": "\"old\"", "required": true}]}]},
            ]},
        })
    }

    #[test]
    fn a_form_that_nobody_touched_says_the_same_profile() {
        let form = Form::of_profile(&profile());
        let paths: Vec<&str> = form.fields.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["item.barcode", "item.notes[].note"]);
        assert_eq!(form.applied(&profile()), profile());
    }

    #[test]
    fn nested_values_change_where_they_stand_and_new_ones_come_behind() {
        let mut form = Form::of_profile(&profile()).with_empty_fields(1);
        form.fields[1].value = "945$n".to_owned();
        form.fields[2].path = "item.materialType.id".to_owned();
        form.fields[2].value = "\"book\"".to_owned();
        let after = form.applied(&profile());
        let list = &after["mappingDetails"]["mappingFields"];
        assert_eq!(list[1]["subfields"][0]["fields"][0]["value"], "945$n");
        assert_eq!(list[1]["subfields"][0]["fields"][0]["required"], true);
        assert_eq!(text(&list[2], "path"), "item.materialType.id");
        assert_eq!(after["kept"], 1);
    }

    #[test]
    fn nothing_outside_of_the_fields_can_be_reached() {
        let sent = "name=x&entity=ITEM&field.0.at=/mappingDetails&field.0.path=&field.0.value=y\
            &field.1.at=/mappingDetails/mappingFields/0&field.1.path=item.other&field.1.value=y";
        let after = Form::of_sent(&Fields::parse(sent)).applied(&profile());
        assert_eq!(after["mappingDetails"], profile()["mappingDetails"]);
    }
}
