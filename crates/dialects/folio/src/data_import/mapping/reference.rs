//! The names that mapping rules look up: types, formats, locations of a tenant.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// The id used for a name that does not exist.
pub(crate) const UNKNOWN_ID: &str = "fe19bae4-da28-472b-be90-d442e2428ead";

/// The tables used by rules: FOLIO's key in `mappingParams`, which is also the key of the list in answers of the
/// reference path.
pub(crate) const TABLES: [&str; 24] = [
    "identifierTypes",
    "contributorTypes",
    "contributorNameTypes",
    "instanceTypes",
    "instanceFormats",
    "alternativeTitleTypes",
    "instanceNoteTypes",
    "classificationTypes",
    "subjectTypes",
    "subjectSources",
    "issuanceModes",
    "instanceStatuses",
    "instanceDateTypes",
    "natureOfContentTerms",
    "electronicAccessRelationships",
    "statisticalCodes",
    "holdingsTypes",
    "holdingsNoteTypes",
    "holdingsRecordsSources",
    "callNumberTypes",
    "locations",
    "mtypes",
    "loantypes",
    "itemNoteTypes",
];

/// The entries of all tables, by name and by code.
#[derive(Debug, Default)]
pub(crate) struct Reference {
    tables: HashMap<String, Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Value>,
    by_name: HashMap<String, String>,
    by_code: HashMap<String, String>,
}

impl Reference {
    /// Adds an entry: `{"id", "name", "code"?}`. The first entry with a name is used.
    pub(crate) fn add(&mut self, table: &str, entry: Value) {
        let table = self.tables.entry(table.to_owned()).or_default();
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        if let Some(id) = text("id") {
            if let Some(name) = text("name") {
                table.by_name.entry(fold(name)).or_insert_with(|| id.to_owned());
            }
            if let Some(code) = text("code") {
                table.by_code.entry(fold(code)).or_insert_with(|| id.to_owned());
            }
        }
        table.entries.push(entry);
    }

    /// Returns the id for a name, ignoring case.
    pub(crate) fn by_name(&self, table: &str, name: &str) -> Option<&str> {
        self.tables.get(table)?.by_name.get(&fold(name)).map(String::as_str)
    }

    /// Returns the id for a code, ignoring case and surrounding blanks.
    pub(crate) fn by_code(&self, table: &str, code: &str) -> Option<&str> {
        self.tables.get(table)?.by_code.get(&fold(code)).map(String::as_str)
    }

    /// Returns the id for a name, a code, or the id itself.
    pub(crate) fn find(&self, table: &str, text: &str) -> Option<String> {
        let text = text.trim();
        // `Main Library (KU/CC/DI/M)`: the code is in parentheses.
        let in_brackets = text.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let found = self.by_name(table, text).or_else(|| self.by_code(table, text));
        let found = found.or_else(|| in_brackets.and_then(|code| self.by_code(table, code)));
        let is_id =
            || self.entries(table).iter().any(|it| it.get("id").and_then(Value::as_str) == Some(text));
        found.map(str::to_owned).or_else(|| is_id().then(|| text.to_owned()))
    }

    /// Returns all entries of a table.
    pub(crate) fn entries(&self, table: &str) -> &[Value] {
        self.tables.get(table).map_or(&[], |it| it.entries.as_slice())
    }

    /// Returns `mappingParams` of `/mapping-metadata`.
    pub(crate) fn parameters(&self) -> Value {
        let mut map = Map::new();
        map.insert("initialized".to_owned(), json!(true));
        for name in TABLES {
            map.insert(name.to_owned(), Value::from(self.entries(name).to_vec()));
        }
        Value::Object(map)
    }
}

fn fold(text: &str) -> String {
    text.trim().to_lowercase()
}
