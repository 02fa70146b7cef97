//! A tenant's version of a specification: MARC 21 with the changes and additions of the tenant's cataloguers.
//!
//! The standard is part of the program and is parsed once. The store contains only the differences, one record per
//! specification: `{"id", "rules": {code: enabled}, "fields": {id: field or null}}`. A field with any changed part is
//! stored completely; `null` marks a deleted one.

use std::collections::HashMap;

use pinakes_store::{Kind, Txn, View};
use serde_json::{Map, Value, json};

use super::standard::{STANDARDS, Standard};
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// The changes of tenants.
pub(crate) static CHANGES: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_specification_changes") };

/// A tenant's version of a specification.
pub(crate) struct Tailored {
    pub(super) standard: &'static Standard,
    changes: Value,
}

impl Tailored {
    fn of(view: &mut View<'_>, standard: &'static Standard) -> Result<Self, FolioError> {
        let changes = view.get(&CHANGES, standard.id)?.map(|it| it.json()).transpose()?;
        let changes = changes.unwrap_or_else(|| json!({"id": standard.id, "rules": {}, "fields": {}}));
        Ok(Self { standard, changes })
    }

    /// Returns all specifications of a tenant.
    pub(super) fn all(view: &mut View<'_>) -> Result<Vec<Self>, FolioError> {
        STANDARDS.iter().map(|it| Self::of(view, it)).collect()
    }

    /// Returns the specification with an id.
    pub(super) fn by_id(view: &mut View<'_>, id: &str) -> Result<Option<Self>, FolioError> {
        STANDARDS.iter().find(|it| it.id == id).map(|it| Self::of(view, it)).transpose()
    }

    /// Returns the specification for a format of the editor (`BIBLIOGRAPHIC`); holdings have none.
    pub(crate) fn for_format(view: &mut View<'_>, format: &str) -> Result<Option<Self>, FolioError> {
        let found = STANDARDS.iter().find(|it| it.profile.eq_ignore_ascii_case(format));
        found.map(|it| Self::of(view, it)).transpose()
    }

    /// Returns its fields in tag order.
    pub(super) fn fields(&self) -> Vec<&Value> {
        let changed = self.changes["fields"].as_object();
        let as_is = |field: &&Value| {
            changed.is_none_or(|map| !map.contains_key(text_at(field, "id").unwrap_or_default()))
        };
        let mut fields: Vec<&Value> = self.standard.fields.iter().filter(as_is).collect();
        fields.extend(changed.into_iter().flat_map(Map::values).filter(|it| !it.is_null()));
        fields.sort_by(|a, b| text_at(a, "tag").cmp(&text_at(b, "tag")));
        fields
    }

    /// Returns its fields by tag.
    pub(super) fn by_tag(&self) -> HashMap<&str, &Value> {
        self.fields().into_iter().filter_map(|it| Some((text_at(it, "tag")?, it))).collect()
    }

    /// Returns its rules.
    pub(super) fn rules(&self) -> Vec<Value> {
        let rules = self.standard.rules().map(|(id, rule)| {
            json!({
                "id": id, "specificationId": self.standard.id, "name": rule.name, "description": rule.description,
                "code": rule.code, "enabled": self.has_rule(rule.code),
            })
        });
        rules.collect()
    }

    /// Checks whether a rule is enabled.
    pub(super) fn has_rule(&self, code: &str) -> bool {
        let said = self.changes["rules"].get(code).and_then(Value::as_bool);
        said.unwrap_or_else(|| self.standard.rules().any(|(_, it)| it.code == code && it.is_enabled))
    }

    /// Switches a rule on or off.
    pub(super) fn set_rule(
        &mut self,
        txn: &mut Txn<'_>,
        code: &str,
        enabled: bool,
    ) -> Result<(), FolioError> {
        self.changes["rules"][code] = enabled.into();
        self.keep(txn)
    }

    /// Stores a new or changed field; `None` deletes it.
    pub(super) fn set_field(
        &mut self,
        txn: &mut Txn<'_>,
        id: &str,
        field: Option<Value>,
    ) -> Result<(), FolioError> {
        let is_standard = self.standard.fields.iter().any(|it| text_at(it, "id") == Some(id));
        if let Some(fields) = self.changes["fields"].as_object_mut() {
            match field {
                None if !is_standard => _ = fields.shift_remove(id),
                field => _ = fields.insert(id.to_owned(), field.unwrap_or_default()),
            }
        }
        self.keep(txn)
    }

    /// Resets changes to MARC 21's own fields; local ones are kept.
    pub(super) fn reset(&mut self, txn: &mut Txn<'_>) -> Result<(), FolioError> {
        let own: Vec<&str> = self.standard.fields.iter().filter_map(|it| text_at(it, "id")).collect();
        if let Some(fields) = self.changes["fields"].as_object_mut() {
            fields.retain(|id, _| !own.contains(&id.as_str()));
        }
        self.keep(txn)
    }

    fn keep(&self, txn: &mut Txn<'_>) -> Result<(), FolioError> {
        txn.put(&CHANGES, self.standard.id, &self.changes)?;
        Ok(())
    }
}
