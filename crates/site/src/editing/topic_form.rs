//! The form of a topic, and its conversion to a document.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Faults, ROWS_MAX, cell, lines, n_rows};
use crate::app::Visitor;
use crate::fields::Fields;
use crate::record::{items, text};

/// Lists of identities: their names in documents, and keys of their labels.
pub(super) const IDENTITIES: [(&str, &str); 3] = [
    ("subject-identifiers", "subject_identifiers"),
    ("subject-locators", "subject_locators"),
    ("item-identifiers", "item_identifiers"),
];

/// A list of a topic's members that is edited row by row.
pub(super) struct Part {
    /// Its name in the form.
    pub(super) name: &'static str,
    /// Its list in documents.
    pub(super) list: &'static str,
    /// Key of its heading.
    pub(super) key: &'static str,
    /// Cells of a row: names in documents, and keys of their labels. The first `n_required` must not be empty.
    pub(super) cells: &'static [(&'static str, &'static str)],
    n_required: usize,
    /// Names of the members that identify it within its list.
    identity: &'static [&'static str],
}

/// The lists that are edited.
pub(super) const PARTS: [Part; 3] = [
    Part {
        name: "metadata",
        list: "metadata",
        key: "topic_metadata",
        cells: &[("name", "name"), ("value", "value"), ("scope", "scope")],
        n_required: 1,
        identity: &["scope", "name"],
    },
    Part {
        name: "occurrence",
        list: "occurrences",
        key: "occurrences",
        cells: &[
            ("role", "role"),
            ("behaviour", "behaviour"),
            ("string-data", "content"),
            ("reference", "reference"),
            ("scope", "scope"),
        ],
        n_required: 2,
        identity: &["scope", "role", "behaviour", "reference"],
    },
    Part {
        name: "association",
        list: "associations",
        key: "associations",
        cells: &[("type", "type"), ("role", "role"), ("reference", "to_topic"), ("scope", "scope")],
        n_required: 3,
        identity: &["id"],
    },
];

/// One member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// Its identity in the stored topic; empty for a new one.
    was: String,
    cells: Vec<String>,
}

/// The values of the form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// The texts of [`IDENTITIES`].
    pub(super) identities: Vec<String>,
    /// The rows of each of [`PARTS`].
    pub(super) rows: Vec<Vec<Row>>,
}

impl Part {
    /// Returns what identifies a member in its list.
    fn identity_of(&self, member: &Value) -> String {
        self.identity.iter().map(|name| text(member, name)).collect::<Vec<_>>().join("\u{1f}")
    }

    /// Returns the row of a member, if it can be edited: binary data stays as it is.
    fn row(&self, member: &Value) -> Option<Row> {
        if member.get("data-base64").is_some() {
            return None;
        }
        let cells = self.cells.iter().map(|it| text(member, it.0).replace("\r\n", "\n").trim().to_owned());
        Some(Row { was: self.identity_of(member), cells: cells.collect() })
    }

    fn n_cells(&self) -> usize {
        self.cells.len()
    }
}

impl Row {
    pub(super) fn empty(part: &Part) -> Self {
        Self { was: String::new(), cells: vec![String::new(); part.n_cells()] }
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(String::is_empty)
    }

    /// Returns the member that the row describes.
    fn member(&self, part: &Part, before: Option<&Value>) -> Value {
        if let Some(before) = before
            && part.row(before).is_some_and(|it| it.cells == self.cells)
        {
            return before.clone();
        }
        let mut map = before.and_then(Value::as_object).cloned().unwrap_or_default();
        // A label is derived from the target of the association, unless its metadata contains another.
        map.shift_remove("label");
        for ((name, _), said) in part.cells.iter().zip(&self.cells) {
            let is_left_out = said.is_empty() && matches!(*name, "scope" | "reference");
            match is_left_out {
                true => drop(map.shift_remove(*name)),
                false => drop(map.insert((*name).to_owned(), json!(said))),
            }
        }
        Value::Object(map)
    }
}

impl Form {
    pub(super) fn of_topic(topic: &Value) -> Self {
        let list =
            |name: &str| items(topic, name).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
        let of = |part: &Part| {
            items(topic, part.list).iter().filter_map(|it| part.row(it)).take(ROWS_MAX).collect()
        };
        Self {
            identities: IDENTITIES.iter().map(|it| list(it.0)).collect(),
            rows: PARTS.iter().map(of).collect(),
        }
    }

    pub(super) fn of_sent(sent: &Fields) -> Self {
        let row = |part: &Part, at: usize| Row {
            was: sent.exact(&format!("{}.{at}.was", part.name)).to_owned(),
            cells: part.cells.iter().map(|it| cell(sent, part.name, at, it.0)).collect(),
        };
        let rows =
            |part: &Part| (0..n_rows(sent, part.name, part.cells[0].0)).map(|at| row(part, at)).collect();
        Self {
            identities: IDENTITIES.iter().map(|it| sent.text(it.0).replace("\r\n", "\n")).collect(),
            rows: PARTS.iter().map(rows).collect(),
        }
    }

    /// Returns the faults of the form.
    pub(super) fn faults(&self, visitor: &Visitor) -> Faults {
        let mut faults = Faults::new();
        for (part, rows) in PARTS.iter().zip(&self.rows) {
            let mut seen = HashSet::new();
            for (at, row) in rows.iter().enumerate().filter(|it| !it.1.is_empty()) {
                let field = format!("{}.{at}.{}", part.name, part.cells[0].0);
                if row.cells.iter().take(part.n_required).any(String::is_empty) {
                    faults.insert(field, visitor.text("fault_row_half"));
                } else if part.name != "association" {
                    let identity = part.identity_of(&row.member(part, None));
                    if !seen.insert(identity) {
                        faults.insert(field, visitor.text("fault_row_twice"));
                    }
                }
            }
        }
        for ((name, _), said) in IDENTITIES.iter().zip(&self.identities) {
            if lines(said).iter().any(|it| !it.contains(':') || it.contains(char::is_whitespace)) {
                faults.insert((*name).to_owned(), visitor.text("fault_iri"));
            }
        }
        faults
    }

    /// Returns the document with the values of the form. Members without a row stay; an empty row removes its member.
    pub(super) fn applied(&self, topic: &Value, id: &str) -> Value {
        let mut after = Map::new();
        after.insert("id".to_owned(), json!(id));
        for ((name, _), said) in IDENTITIES.iter().zip(&self.identities) {
            after.insert((*name).to_owned(), json!(lines(said)));
        }
        for (part, rows) in PARTS.iter().zip(&self.rows) {
            let mut left: Vec<&Row> = rows.iter().collect();
            let mut list: Vec<Value> = Vec::new();
            for member in items(topic, part.list) {
                let identity = part.identity_of(member);
                let is_editable = part.row(member).is_some();
                match left.iter().position(|it| is_editable && it.was == identity) {
                    None => list.push(member.clone()),
                    Some(at) => {
                        let row = left.remove(at);
                        list.extend((!row.is_empty()).then(|| row.member(part, Some(member))));
                    }
                }
            }
            list.extend(left.into_iter().filter(|it| !it.is_empty()).map(|it| it.member(part, None)));
            after.insert(part.list.to_owned(), list.into());
        }
        Value::Object(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> Value {
        json!({
            "_type": "topic", "id": "Tide", "label": "Tide", "subject-identifiers": ["https://example.org/tide"],
            "metadata": [{"_type": "metadata", "for": "Tide", "scope": "default", "name": "label", "value": "Tide"}],
            "associations": [{"_type": "association", "id": "1", "parent": "Tide", "type": "is-a", "scope": "default",
                "reference": "Motion", "role": "kind", "label": "Motion", "metadata": []}],
            "occurrences": [
                {"_type": "occurrence", "for": "Tide", "scope": "default", "role": "text", "behaviour": "markdown",
                    "reference": "self", "string-data": "one\ntwo"},
                {"_type": "occurrence", "for": "Tide", "scope": "default", "role": "picture", "behaviour": "image",
                    "reference": "self", "data-base64": "AAAA"},
            ],
        })
    }

    #[test]
    fn a_form_that_nobody_touched_says_the_same_topic() {
        let after = Form::of_topic(&topic()).applied(&topic(), "Tide");
        for name in ["metadata", "associations", "occurrences", "subject-identifiers"] {
            assert_eq!(after[name], topic()[name], "{name}");
        }
    }

    #[test]
    fn rows_change_add_and_take_away() {
        let sent = "subject-identifiers=a%3Ab%0D%0Ac%3Ad&subject-locators=&item-identifiers=\
            &metadata.0.was=default%1Flabel&metadata.0.name=label&metadata.0.value=Tides&metadata.0.scope=default\
            &association.0.was=1&association.0.type=&association.0.role=&association.0.reference=&association.0.scope=\
            &occurrence.0.was=&occurrence.0.role=note&occurrence.0.behaviour=text&occurrence.0.string-data=new\
            &occurrence.0.reference=&occurrence.0.scope=";
        let after = Form::of_sent(&Fields::parse(sent)).applied(&topic(), "Tide");
        assert_eq!(after["subject-identifiers"], json!(["a:b", "c:d"]));
        assert_eq!(after["metadata"][0]["value"], "Tides");
        assert_eq!(after["associations"], json!([]));
        let occurrences = after["occurrences"].as_array().map_or(0, Vec::len);
        assert_eq!(occurrences, 3, "those that no row stood for stay: {after}");
        assert_eq!(
            after["occurrences"][2],
            json!({"role": "note", "behaviour": "text", "string-data": "new"})
        );
    }

    #[test]
    fn the_label_of_what_an_association_led_to_does_not_stay() {
        let mut form = Form::of_topic(&topic());
        form.rows[2][0].cells[2] = "Wave".to_owned();
        let arc = &form.applied(&topic(), "Tide")["associations"][0];
        assert_eq!((text(arc, "reference"), text(arc, "label")), ("Wave".to_owned(), String::new()));
    }
}
