//! Fields that a mapping profile sets: `"text"`, `945$a`, `852$b; else "KU/CC/DI/M"`, `###TODAY###`.
//!
//! A value is a list of alternatives; the first that gives anything is used. An alternative is literals, MARC fields
//! and `###…###` words, concatenated. Names of types and locations are replaced by ids: from the profile's own
//! `acceptedValues`, else from the tenant's reference data.

use std::collections::HashMap;

use pinakes_marc::{Field, Record};
use serde_json::{Map, Value};

use crate::data_import::mapping::Reference;
use crate::platform::values::parse_uuid;

/// One field of a mapping profile.
#[derive(Debug, Clone)]
pub(crate) struct FieldRule {
    /// Steps below the record: `holdings.notes[].note` → `notes`, `note`.
    path: Vec<String>,
    is_required: bool,
    name: String,
    value: Vec<Vec<Token>>,
    /// Lower-case name → id.
    accepted: HashMap<String, String>,
    /// The objects of a list.
    rows: Vec<Vec<FieldRule>>,
    list_action: ListAction,
    boolean: Option<bool>,
}

/// What happens to the elements that a list has (`repeatableFieldAction`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListAction {
    /// They stay, and new ones are added.
    Extend,
    /// They go, and new ones are added.
    Exchange,
    /// They go.
    Clear,
    /// Those that the rule gives go.
    Remove,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(String),
    Marc { tag: String, subfield: Option<char> },
    Today,
    Remove,
}

/// The input of the rules.
pub(crate) struct Source<'a> {
    pub(crate) record: &'a Record,
    pub(crate) reference: &'a Reference,
    /// `2026-01-31`.
    pub(crate) today: &'a str,
}

impl FieldRule {
    /// Parses a field; `None` for one that sets nothing.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        if value.get("enabled").and_then(Value::as_str) == Some("false")
            || value.get("enabled").and_then(Value::as_bool) == Some(false)
        {
            return None;
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let path: Vec<String> =
            text("path").replace("[]", "").split('.').skip(1).map(str::to_owned).collect();
        if path.is_empty() {
            return None;
        }
        let accepted = value.get("acceptedValues").and_then(Value::as_object).into_iter().flatten();
        let accepted =
            accepted.filter_map(|(id, name)| Some((name.as_str()?.trim().to_lowercase(), id.clone())));
        let rows: Vec<Vec<Self>> = value
            .get("subfields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|row| {
                row.get("fields")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Self::read)
                    .collect()
            })
            .collect();
        let list_action = match text("repeatableFieldAction") {
            "EXCHANGE_EXISTING" => ListAction::Exchange,
            "DELETE_EXISTING" => ListAction::Clear,
            "DELETE_INCOMING" => ListAction::Remove,
            _ => ListAction::Extend,
        };
        let boolean = match text("booleanFieldAction") {
            "ALL_TRUE" => Some(true),
            "ALL_FALSE" => Some(false),
            _ => None,
        };
        let it = Self {
            path,
            is_required: value.get("required").and_then(Value::as_bool).unwrap_or(false),
            name: text("name").to_owned(),
            value: parse(text("value")),
            accepted: accepted.collect(),
            rows,
            list_action,
            boolean,
        };
        let sets = !it.value.is_empty() || !it.rows.is_empty() || it.boolean.is_some() || it.clears_list();
        sets.then_some(it)
    }

    /// Checks whether the rule changes a list even if it gives no elements.
    fn clears_list(&self) -> bool {
        matches!(self.list_action, ListAction::Exchange | ListAction::Clear)
    }

    /// Returns the first MARC tag that the rule reads.
    pub(crate) fn tag(&self) -> Option<&str> {
        let own = self.value.iter().flatten().find_map(|it| match it {
            Token::Marc { tag, .. } => Some(tag.as_str()),
            _ => None,
        });
        own.or_else(|| self.rows.iter().flatten().find_map(Self::tag))
    }

    /// Checks whether the rule sets this property.
    pub(crate) fn sets(&self, path: &str) -> bool {
        path.split('.').eq(self.path.iter().map(String::as_str))
    }

    /// Sets the field in a record. Errors: a required field without a value.
    pub(crate) fn apply(&self, object: &mut Map<String, Value>, source: &Source<'_>) -> Result<(), String> {
        if let Some(flag) = self.boolean {
            return set(object, &self.path, Value::Bool(flag));
        }
        if !self.rows.is_empty() || self.clears_list() {
            return self.apply_list(object, source);
        }
        match self.values(source).into_iter().next() {
            Some(None) => {
                remove(object, &self.path);
                Ok(())
            }
            Some(Some(text)) => set(object, &self.path, self.typed(text, source)?),
            None if self.is_required => {
                Err(format!("the mapping profile's required field '{}' has no value", self.name))
            }
            None => Ok(()),
        }
    }

    fn apply_list(&self, object: &mut Map<String, Value>, source: &Source<'_>) -> Result<(), String> {
        let mut made = Vec::new();
        for row in &self.rows {
            self.row(row, source, &mut made)?;
        }
        let [name] = self.path.as_slice() else {
            return set(object, &self.path, Value::Array(made));
        };
        let list = object.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return Ok(()) };
        match self.list_action {
            ListAction::Extend => {}
            ListAction::Exchange => list.clear(),
            ListAction::Clear => {
                list.clear();
                return Ok(());
            }
            ListAction::Remove => {
                list.retain(|it| !made.contains(it));
                return Ok(());
            }
        }
        made.retain(|it| !list.contains(it));
        list.extend(made);
        Ok(())
    }

    /// Adds the elements of one row: as many as its longest column has values.
    fn row(&self, row: &[Self], source: &Source<'_>, made: &mut Vec<Value>) -> Result<(), String> {
        let depth = self.path.len();
        let columns: Vec<Vec<String>> =
            row.iter().map(|it| it.values(source).into_iter().flatten().collect()).collect();
        let n = columns.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..n {
            let mut element = Map::new();
            for (rule, column) in row.iter().zip(&columns) {
                let Some(text) = column.get(at).or_else(|| column.first().filter(|_| column.len() == 1))
                else {
                    continue;
                };
                let value = rule.typed(text.clone(), source)?;
                match rule.path.get(depth..) {
                    Some([]) | None => made.push(value),
                    Some(rest) => set(&mut element, rest, value)?,
                }
            }
            if !element.is_empty() {
                made.push(Value::Object(element));
            }
        }
        Ok(())
    }

    /// Returns the values of the first alternative that gives any; `None` among them means that the field is to be
    /// removed.
    fn values(&self, source: &Source<'_>) -> Vec<Option<String>> {
        if let Some(flag) = self.boolean {
            return vec![Some(flag.to_string())];
        }
        for alternative in &self.value {
            if alternative.contains(&Token::Remove) {
                return vec![None];
            }
            if let [Token::Marc { tag, subfield }] = alternative.as_slice() {
                let values = marc_values(source.record, tag, *subfield);
                if !values.is_empty() {
                    return values.into_iter().map(Some).collect();
                }
                continue;
            }
            let has_marc = alternative.iter().any(|it| matches!(it, Token::Marc { .. }));
            let (mut text, mut found) = (String::new(), !has_marc);
            for token in alternative {
                match token {
                    Token::Literal(it) => text.push_str(it),
                    Token::Today => text.push_str(source.today),
                    Token::Remove => {}
                    Token::Marc { tag, subfield } => {
                        let values = marc_values(source.record, tag, *subfield);
                        found |= !values.is_empty();
                        text.push_str(&values.join(" "));
                    }
                }
            }
            if found && !text.is_empty() {
                return vec![Some(text)];
            }
        }
        Vec::new()
    }

    /// Converts a text to the type of the property: names of types and locations to ids, flags to booleans. Errors: an
    /// unknown name.
    fn typed(&self, text: String, source: &Source<'_>) -> Result<Value, String> {
        if let Some(flag) = self.boolean {
            return Ok(flag.into());
        }
        if let Some(id) = self.accepted.get(&text.trim().to_lowercase()) {
            return Ok(id.as_str().into());
        }
        let last = self.path.last().map_or("", String::as_str);
        let owner = self.path.len().checked_sub(2).map_or("", |at| self.path[at].as_str());
        if let Some(table) = table(last, owner) {
            if let Some(id) = source.reference.find(table, &text) {
                return Ok(id.into());
            }
            if parse_uuid(&text).is_none() {
                return Err(format!(
                    "the mapping profile's field '{}': {text:?} is none of the {table}",
                    self.name
                ));
            }
        }
        Ok(match (last, text.as_str()) {
            ("staffOnly" | "discoverySuppress" | "staffSuppress" | "previouslyHeld" | "primary", "true") => {
                true.into()
            }
            ("staffOnly" | "discoverySuppress" | "staffSuppress" | "previouslyHeld" | "primary", "false") => {
                false.into()
            }
            _ => text.into(),
        })
    }
}

/// Returns the reference table that the ids at a dotted path belong to.
pub(crate) fn table_of(path: &str) -> Option<&'static str> {
    let mut steps = path.rsplit('.');
    table(steps.next()?, steps.next().unwrap_or_default())
}

/// Returns the reference table that a property's ids belong to.
fn table(last: &str, owner: &str) -> Option<&'static str> {
    Some(match (last, owner) {
        ("permanentLocationId" | "temporaryLocationId", _) => "locations",
        ("id", "permanentLocation" | "temporaryLocation") => "locations",
        ("materialTypeId", _) | ("id", "materialType") => "mtypes",
        ("permanentLoanTypeId" | "temporaryLoanTypeId", _) => "loantypes",
        ("id", "permanentLoanType" | "temporaryLoanType") => "loantypes",
        ("statusId", _) => "instanceStatuses",
        ("natureOfContentTermIds" | "natureOfContentTermId", _) => "natureOfContentTerms",
        ("statisticalCodeIds" | "statisticalCodeId", _) => "statisticalCodes",
        ("holdingsTypeId", _) => "holdingsTypes",
        ("callNumberTypeId" | "itemLevelCallNumberTypeId", _) => "callNumberTypes",
        ("itemNoteTypeId", _) => "itemNoteTypes",
        ("holdingsNoteTypeId", _) => "holdingsNoteTypes",
        ("relationshipId", _) => "electronicAccessRelationships",
        ("sourceId", _) => "holdingsRecordsSources",
        ("instanceTypeId", _) => "instanceTypes",
        _ => return None,
    })
}

fn marc_values(record: &Record, tag: &str, subfield: Option<char>) -> Vec<String> {
    let fields = record.fields.iter().filter(|it| *it.tag() == *tag);
    let mut values: Vec<String> = Vec::new();
    for field in fields {
        match (field, subfield) {
            (Field::Control(field), None) => values.push(field.value.clone()),
            (Field::Data(field), Some(code)) => values.extend(field.values(code).map(str::to_owned)),
            _ => {}
        }
    }
    values.retain(|it| !it.trim().is_empty());
    values
}

/// Parses the alternatives of an expression.
fn parse(text: &str) -> Vec<Vec<Token>> {
    let mut alternatives = Vec::new();
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('"') {
            let end = inner.find('"').unwrap_or(inner.len());
            tokens.push(Token::Literal(inner[..end].to_owned()));
            rest = inner.get(end + 1..).unwrap_or("").trim_start();
        } else if let Some(after) = rest.strip_prefix(';') {
            alternatives.push(std::mem::take(&mut tokens));
            let after = after.trim_start();
            rest = after.strip_prefix("else").unwrap_or(after).trim_start();
        } else if let Some(after) = rest.strip_prefix("###TODAY###") {
            tokens.push(Token::Today);
            rest = after.trim_start();
        } else if let Some(after) = rest.strip_prefix("###REMOVE###") {
            tokens.push(Token::Remove);
            rest = after.trim_start();
        } else {
            let end = rest.find([' ', '"', ';']).unwrap_or(rest.len()).max(1);
            let end = (end..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            tokens.push(word(&rest[..end]));
            rest = rest[end..].trim_start();
        }
    }
    alternatives.push(tokens);
    alternatives.retain(|it| !it.is_empty());
    alternatives
}

/// Parses `945$a` or `001`; anything else is a literal.
fn word(text: &str) -> Token {
    let is_tag = |tag: &str| tag.len() == 3 && tag.bytes().all(|it| it.is_ascii_alphanumeric());
    match text.split_once('$') {
        Some((tag, code)) if is_tag(tag) && code.chars().count() == 1 => {
            Token::Marc { tag: tag.to_owned(), subfield: code.chars().next() }
        }
        None if is_tag(text) && text.starts_with("00") => {
            Token::Marc { tag: text.to_owned(), subfield: None }
        }
        _ => Token::Literal(text.to_owned()),
    }
}

fn set(object: &mut Map<String, Value>, path: &[String], value: Value) -> Result<(), String> {
    match path {
        [] => Ok(()),
        [name] => {
            let is_many = name.ends_with("Ids") && !value.is_array();
            object.insert(name.clone(), if is_many { Value::Array(vec![value]) } else { value });
            Ok(())
        }
        [name, rest @ ..] => {
            let inner = object.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            match inner {
                Value::Object(inner) => set(inner, rest, value),
                _ => Err(format!(
                    "the mapping profile sets '{}' in {name}, which is no object",
                    rest.join(".")
                )),
            }
        }
    }
}

fn remove(object: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [name] => {
            object.shift_remove(name);
        }
        [name, rest @ ..] => {
            if let Some(Value::Object(inner)) = object.get_mut(name) {
                remove(inner, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pinakes_marc::{DataField, Tag};
    use serde_json::json;

    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        record.push(DataField::new(Tag::new(b"945"), [' ', ' ']).with('a', "one").with('l', "KU/CC/DI/M"));
        record.push(DataField::new(Tag::new(b"945"), [' ', ' ']).with('a', "two"));
        record
    }

    /// Compares the result of one field rule.
    fn check(rule: Value, expected: Value) {
        let mut reference = Reference::default();
        reference.add("locations", json!({"id": "loc", "name": "Main Library", "code": "KU/CC/DI/M"}));
        let record = record();
        let source = Source { record: &record, reference: &reference, today: "2026-01-31" };
        let mut object = Map::new();
        let result = FieldRule::read(&rule).map(|it| it.apply(&mut object, &source));
        assert_eq!(result, Some(Ok(())), "{rule}");
        assert_eq!(Value::Object(object), expected, "{rule}");
    }

    #[test]
    fn expressions_give_what_they_say() {
        let rule = |path: &str, value: &str| json!({"name": "x", "path": path, "value": value});
        check(rule("item.barcode", "945$a"), json!({"barcode": "one"}));
        check(rule("item.copyNumber", "945$z; else \"none\""), json!({"copyNumber": "none"}));
        check(rule("item.copyNumber", "\"c. \" 945$l"), json!({"copyNumber": "c. KU/CC/DI/M"}));
        check(rule("item.status.date", "###TODAY###"), json!({"status": {"date": "2026-01-31"}}));
        check(rule("holdings.permanentLocationId", "945$l"), json!({"permanentLocationId": "loc"}));
        check(
            rule("holdings.permanentLocationId", "\"Main Library (KU/CC/DI/M)\""),
            json!({"permanentLocationId": "loc"}),
        );
        check(rule("holdings.copyNumber", "945$q"), json!({}));
    }

    #[test]
    fn lists_are_changed_as_the_rule_says() {
        let record = record();
        let reference = Reference::default();
        let source = Source { record: &record, reference: &reference, today: "2026-01-31" };
        for (action, expected) in [
            ("EXTEND_EXISTING", json!(["one", "three", "two"])),
            ("EXCHANGE_EXISTING", json!(["one", "two"])),
            ("DELETE_EXISTING", json!([])),
            ("DELETE_INCOMING", json!(["three"])),
        ] {
            let rule = json!({"name": "formerIds", "path": "item.formerIds[]", "value": "", "repeatableFieldAction": action,
                "subfields": [{"order": 0, "fields": [{"name": "formerId", "path": "item.formerIds[]", "value": "945$a"}]}]});
            let mut object = Map::from_iter([("formerIds".to_owned(), json!(["one", "three"]))]);
            let result = FieldRule::read(&rule).map(|it| it.apply(&mut object, &source));
            assert_eq!(result, Some(Ok(())), "{action}");
            assert_eq!(object["formerIds"], expected, "{action}");
        }
    }

    #[test]
    fn rows_give_as_many_elements_as_there_are_values() {
        let rule = json!({"name": "notes", "path": "item.notes[]", "value": "", "subfields": [{"order": 0, "fields": [
            {"name": "note", "path": "item.notes[].note", "value": "945$a"},
            {"name": "staffOnly", "path": "item.notes[].staffOnly", "booleanFieldAction": "ALL_FALSE"}]}]});
        check(
            rule,
            json!({"notes": [{"note": "one", "staffOnly": false}, {"note": "two", "staffOnly": false}]}),
        );
    }
}
