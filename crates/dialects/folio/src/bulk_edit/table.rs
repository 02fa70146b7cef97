//! The columns in which records are shown, and CSV (RFC 4180).

use std::fmt::Write as _;

use pinakes_store::{Expr, Txn, Value as StoreValue, View};
use serde_json::{Value, json};

use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::places::LOCATIONS;
use crate::platform::collection::Collection;
use crate::platform::error::FolioError;
use crate::platform::json::at;
use crate::users::user::{GROUPS, USERS};
use crate::vocabularies::{HOLDINGS_TYPES, INSTANCE_STATUSES, INSTANCE_TYPES, LOAN_TYPES, MATERIAL_TYPES};

/// A type of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entity {
    User,
    Item,
    Holdings,
    Instance,
}

/// A column: its name, the path of its value, and, if the value is an id, the records that it refers to.
pub(super) type Shown = (&'static str, &'static str, Option<(fn() -> &'static Collection, &'static str)>);

const USER: &[Shown] = &[
    ("User name", "username", None),
    ("User id", "id", None),
    ("External system id", "externalSystemId", None),
    ("Barcode", "barcode", None),
    ("Active", "active", None),
    ("Type", "type", None),
    ("Patron group", "patronGroup", Some((|| &GROUPS, "group"))),
    ("Last name", "personal.lastName", None),
    ("First name", "personal.firstName", None),
    ("Middle name", "personal.middleName", None),
    ("Preferred first name", "personal.preferredFirstName", None),
    ("Email", "personal.email", None),
    ("Phone", "personal.phone", None),
    ("Mobile phone", "personal.mobilePhone", None),
    ("Enrollment date", "enrollmentDate", None),
    ("Expiration date", "expirationDate", None),
    ("Tags", "tags.tagList", None),
];
const ITEM: &[Shown] = &[
    ("Item UUID", "id", None),
    ("Suppress from discovery", "discoverySuppress", None),
    ("Item HRID", "hrid", None),
    ("Barcode", "barcode", None),
    ("Accession number", "accessionNumber", None),
    ("Former identifiers", "formerIds", None),
    ("Statistical codes", "statisticalCodeIds", None),
    ("Administrative note", "administrativeNotes", None),
    ("Material type", "materialTypeId", Some((|| &MATERIAL_TYPES, "name"))),
    ("Copy number", "copyNumber", None),
    ("Item effective call number", "effectiveCallNumberComponents.callNumber", None),
    ("Volume", "volume", None),
    ("Enumeration", "enumeration", None),
    ("Chronology", "chronology", None),
    ("Permanent loan type", "permanentLoanTypeId", Some((|| &LOAN_TYPES, "name"))),
    ("Temporary loan type", "temporaryLoanTypeId", Some((|| &LOAN_TYPES, "name"))),
    ("Status", "status.name", None),
    ("Notes", "notes.note", None),
    ("Check in and check out notes", "circulationNotes.note", None),
    ("Item permanent location", "permanentLocationId", Some((|| &LOCATIONS, "name"))),
    ("Item temporary location", "temporaryLocationId", Some((|| &LOCATIONS, "name"))),
    ("Item effective location", "effectiveLocationId", Some((|| &LOCATIONS, "name"))),
    ("Holdings UUID", "holdingsRecordId", None),
    ("Tags", "tags.tagList", None),
];
const HOLDING: &[Shown] = &[
    ("Holdings UUID", "id", None),
    ("Suppress from discovery", "discoverySuppress", None),
    ("Holdings HRID", "hrid", None),
    ("Holdings type", "holdingsTypeId", Some((|| &HOLDINGS_TYPES, "name"))),
    ("Statistical codes", "statisticalCodeIds", None),
    ("Administrative note", "administrativeNotes", None),
    ("Holdings permanent location", "permanentLocationId", Some((|| &LOCATIONS, "name"))),
    ("Holdings temporary location", "temporaryLocationId", Some((|| &LOCATIONS, "name"))),
    ("Effective location", "effectiveLocationId", Some((|| &LOCATIONS, "name"))),
    ("Shelving title", "shelvingTitle", None),
    ("Call number", "callNumber", None),
    ("Copy number", "copyNumber", None),
    ("Holdings statement", "holdingsStatements.statement", None),
    ("Notes", "notes.note", None),
    ("Electronic access", "electronicAccess.uri", None),
    ("Instance UUID", "instanceId", None),
    ("Tags", "tags.tagList", None),
];
const INSTANCE: &[Shown] = &[
    ("Instance UUID", "id", None),
    ("Suppress from discovery", "discoverySuppress", None),
    ("Staff suppress", "staffSuppress", None),
    ("Set for deletion", "deleted", None),
    ("Instance HRID", "hrid", None),
    ("Source", "source", None),
    ("Cataloged date", "catalogedDate", None),
    ("Instance status term", "statusId", Some((|| &INSTANCE_STATUSES, "name"))),
    ("Statistical codes", "statisticalCodeIds", None),
    ("Administrative note", "administrativeNotes", None),
    ("Resource title", "title", None),
    ("Index title", "indexTitle", None),
    ("Series statements", "series.value", None),
    ("Contributors", "contributors.name", None),
    ("Edition", "editions", None),
    ("Physical description", "physicalDescriptions", None),
    ("Resource type", "instanceTypeId", Some((|| &INSTANCE_TYPES, "name"))),
    ("Languages", "languages", None),
    ("Identifiers", "identifiers.value", None),
    ("Notes", "notes.note", None),
];

impl Entity {
    /// Returns the type by its name in requests.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "USER" => Some(Self::User),
            "ITEM" => Some(Self::Item),
            "HOLDINGS_RECORD" => Some(Self::Holdings),
            "INSTANCE" | "INSTANCE_MARC" => Some(Self::Instance),
            _ => None,
        }
    }

    pub(super) fn collection(self) -> &'static Collection {
        match self {
            Self::User => &USERS,
            Self::Item => &ITEMS,
            Self::Holdings => &HOLDINGS,
            Self::Instance => &INSTANCES,
        }
    }

    /// Returns the permission to change a record of this type.
    pub(super) fn permission(self) -> &'static str {
        match self {
            Self::User => "users.item.put",
            Self::Item => "inventory-storage.items.item.put",
            Self::Holdings => "inventory-storage.holdings.item.put",
            Self::Instance => "inventory-storage.instances.item.put",
        }
    }

    /// Returns the property that holds identifiers of this kind.
    pub(super) fn identified_by(self, sort: &str) -> Option<&'static str> {
        match (self, sort) {
            (_, "ID") => Some("id"),
            (Self::User | Self::Item, "BARCODE") => Some("barcode"),
            (Self::User, "USER_NAME") => Some("username"),
            (Self::User, "EXTERNAL_SYSTEM_ID") => Some("externalSystemId"),
            (Self::Item | Self::Holdings | Self::Instance, "HRID") => Some("hrid"),
            (Self::Item, "HOLDINGS_RECORD_ID") => Some("holdingsRecordId"),
            (Self::Holdings, "INSTANCE_ID") => Some("instanceId"),
            _ => None,
        }
    }

    pub(super) fn columns(self) -> &'static [Shown] {
        match self {
            Self::User => USER,
            Self::Item => ITEM,
            Self::Holdings => HOLDING,
            Self::Instance => INSTANCE,
        }
    }
}

/// Returns the names of the columns as clients receive them.
pub(super) fn header(entity: Entity) -> Value {
    let column = |it: &Shown| json!({"value": it.0, "dataType": "STRING", "visible": true});
    entity.columns().iter().map(column).collect()
}

/// Returns the values of a record in the order of the columns; several values in one column are separated by `|`.
pub(super) fn cells(view: &mut View<'_>, entity: Entity, record: &Value) -> Result<Vec<String>, FolioError> {
    let mut cells = Vec::with_capacity(entity.columns().len());
    for (_, path, named) in entity.columns() {
        let mut texts = Vec::new();
        gather(record, path, &mut texts);
        if let Some((collection, name)) = named {
            for text in &mut texts {
                if let Some(found) = view.get(&collection().kind, text)? {
                    let found = found.json()?;
                    if let Some(name) = at(&found, name).and_then(Value::as_str) {
                        name.clone_into(text);
                    }
                }
            }
        }
        cells.push(texts.join(" | "));
    }
    Ok(cells)
}

/// Collects the values at a path, including those inside lists.
fn gather(value: &Value, path: &str, texts: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|it| gather(it, path, texts)),
        Value::Object(map) => {
            let (name, rest) = path.split_once('.').unwrap_or((path, ""));
            if let Some(below) = map.get(name) {
                gather(below, rest, texts);
            }
        }
        Value::Null => {}
        Value::String(text) => texts.push(text.clone()),
        other => texts.push(other.to_string()),
    }
}

/// Applies the cells that differ from the record; `given` holds cells by column name. Lists of objects and ids cannot
/// be changed this way.
///
/// Returns the reason if a cell cannot be applied.
pub(super) fn set_cells(
    txn: &mut Txn<'_>,
    entity: Entity,
    record: &mut Value,
    given: &Value,
) -> Result<Result<(), String>, FolioError> {
    let shown = cells(txn, entity, record)?;
    for ((column, path, named), old) in entity.columns().iter().zip(shown) {
        let Some(text) = given.get(*column).and_then(Value::as_str).map(str::trim) else { continue };
        if text == old.trim() {
            continue;
        }
        let is_fixed = matches!(*path, "id" | "hrid" | "source" | "effectiveLocationId");
        let is_in_list = path.split_once('.').is_some_and(|(first, _)| record[first].is_array());
        if is_fixed || is_in_list {
            return Ok(Err(format!("{column} cannot be changed in a file")));
        }
        let value = match named {
            _ if text.is_empty() => Value::Null,
            Some((collection, name)) => {
                let is_named = Expr::Is((*name).into(), StoreValue::Folded(pinakes_store::fold(text)));
                match txn.first(&collection().kind, is_named)? {
                    Some(found) => found.id.into(),
                    None => return Ok(Err(format!("{column} {text:?} is not known"))),
                }
            }
            None => match (at(record, path), text) {
                (Some(Value::Bool(_)), "true") => true.into(),
                (Some(Value::Bool(_)), "false") => false.into(),
                (Some(Value::Bool(_)), other) => {
                    return Ok(Err(format!("{column} must be true or false, found {other:?}")));
                }
                (Some(Value::Array(_)), text) => text.split('|').map(|it| Value::from(it.trim())).collect(),
                (_, text) => text.into(),
            },
        };
        set(record, path, value);
    }
    Ok(Ok(()))
}

/// Sets the value at a path of objects; null removes it.
fn set(record: &mut Value, path: &str, value: Value) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Value::Object(map) = record else { return };
    match rest {
        Some(rest) => set(map.entry(first).or_insert_with(|| json!({})), rest, value),
        None if value.is_null() => {
            map.shift_remove(first);
        }
        None => {
            map.insert(first.to_owned(), value);
        }
    }
}

/// Parses a CSV file into lines of cells.
///
/// Errors: a quote that is not closed.
pub(super) fn lines(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut lines, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut characters = text.trim_start_matches('\u{feff}').chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' if is_quoted => is_quoted = false,
            it if is_quoted => cell.push(it),
            '"' if cell.is_empty() => is_quoted = true,
            ',' => cells.push(std::mem::take(&mut cell)),
            '\r' => {}
            '\n' => {
                cells.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut cells));
            }
            it => cell.push(it),
        }
    }
    if is_quoted {
        return Err(format!("line {}: a quote is not closed", lines.len() + 1));
    }
    if !cell.is_empty() || !cells.is_empty() {
        cells.push(cell);
        lines.push(cells);
    }
    lines.retain(|it| it.iter().any(|cell| !cell.trim().is_empty()));
    Ok(lines)
}

/// Appends a line of CSV.
pub(super) fn line(csv: &mut String, cells: impl IntoIterator<Item: AsRef<str>>) {
    for (n, cell) in cells.into_iter().enumerate() {
        let cell = cell.as_ref();
        let comma = if n == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match cell.contains(['"', ',', '\n', '\r']) {
            true => write!(csv, "{comma}\"{}\"", cell.replace('"', "\"\"")),
            false => write!(csv, "{comma}{cell}"),
        };
    }
    csv.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut csv = String::new();
        line(&mut csv, ["plain", "a, b", "say \"a\"", ""]);
        assert_eq!(csv, "plain,\"a, b\",\"say \"\"a\"\"\",\n");
        assert_eq!(lines(&csv), Ok(vec![["plain", "a, b", "say \"a\"", ""].map(str::to_owned).to_vec()]));
        assert!(lines("a,\"b").is_err());
    }

    #[test]
    fn values_of_lists_stand_side_by_side() {
        let mut texts = Vec::new();
        gather(&json!({"notes": [{"note": "a"}, {"note": "b"}, {"no": 1}]}), "notes.note", &mut texts);
        assert_eq!(texts, ["a", "b"]);
    }
}
