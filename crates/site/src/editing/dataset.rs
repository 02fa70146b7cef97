//! Metadata of a dataset (SciCat): the descriptive fields, and the scientific metadata row by row.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use http::Method;
use http::header::IF_UNMODIFIED_SINCE;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::{Faults, ROWS_MAX, Trouble, cell, lines, n_rows, with_empty};
use crate::app::{Site, Visitor};
use crate::deposit::gone_on;
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::text;

/// The type of input for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Manner {
    Line,
    Text,
    /// A list with one element per line.
    Lines,
}

/// Fields of the form: their names in SciCat, keys of their labels, and types of input.
const FIELDS: [(&str, &str, Manner); 7] = [
    ("datasetName", "name", Manner::Line),
    ("description", "description", Manner::Text),
    ("keywords", "keywords_lines", Manner::Lines),
    ("owner", "owner", Manner::Line),
    ("contactEmail", "email", Manner::Line),
    ("license", "license", Manner::Line),
    ("comment", "note", Manner::Text),
];
/// The field whose members are edited as rows.
const METADATA: &str = "scientificMetadata";

/// A value of the scientific metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Row {
    /// The name under which it is stored; empty for a new one.
    was: String,
    name: String,
    value: String,
    unit: String,
}

/// The values of the form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Form {
    /// The texts of [`FIELDS`].
    texts: Vec<String>,
    rows: Vec<Row>,
}

/// Returns the text of a field of a dataset.
fn shown(dataset: &Value, name: &str, manner: Manner) -> String {
    let value = &dataset[name];
    match manner {
        Manner::Lines => {
            let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            list.collect::<Vec<_>>().join("\n")
        }
        _ => value.as_str().unwrap_or_default().replace("\r\n", "\n").trim().to_owned(),
    }
}

/// Returns the row for a value that a row can hold: a text, a number or a boolean, with or without a unit. Other values
/// stay as they are.
fn row(name: &str, kept: &Value) -> Option<Row> {
    let (value, unit) = match kept {
        Value::Object(map) => {
            (map.get("value")?, map.get("unit").and_then(Value::as_str).unwrap_or_default())
        }
        plain => (plain, ""),
    };
    let value = match value {
        // A single-line input would lose the line breaks.
        Value::String(text) if text.contains(char::is_control) => return None,
        Value::String(text) => text.trim().to_owned(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return None,
    };
    Some(Row { was: name.to_owned(), name: name.to_owned(), value, unit: unit.to_owned() })
}

impl Row {
    /// Returns the value to store; `before` is the one stored under the row's name.
    fn kept(&self, before: Option<&Value>) -> Value {
        let old = before.and_then(|it| row("", it));
        if let (Some(before), Some(old)) = (before, &old)
            && (&old.value, &old.unit) == (&self.value, &self.unit)
        {
            return before.clone();
        }
        let inner = before.map(|it| if it.is_object() { &it["value"] } else { it });
        let value = match (inner, self.value.as_str()) {
            (Some(Value::String(_)), text) => json!(text),
            (_, text) => match (serde_json::from_str::<Number>(text), text) {
                (Ok(number), _) => Value::Number(number),
                (Err(_), "true" | "false") if inner.is_some_and(Value::is_boolean) => json!(text == "true"),
                (Err(_), text) => json!(text),
            },
        };
        let mut map = before.and_then(Value::as_object).cloned().unwrap_or_default();
        if map.is_empty() && self.unit.is_empty() {
            return value;
        }
        // The server computes them again.
        map.retain(|name, _| !matches!(name.as_str(), "valueSI" | "unitSI"));
        map.insert("value".to_owned(), value);
        map.insert("unit".to_owned(), json!(self.unit));
        Value::Object(map)
    }
}

impl Form {
    fn of_dataset(dataset: &Value) -> Self {
        let metadata = dataset[METADATA].as_object().into_iter().flatten();
        Self {
            texts: FIELDS.iter().map(|(name, _, manner)| shown(dataset, name, *manner)).collect(),
            rows: metadata.filter_map(|(name, kept)| row(name, kept)).take(ROWS_MAX).collect(),
        }
    }

    fn of_sent(sent: &Fields) -> Self {
        let of_row = |at| Row {
            was: sent.exact(&format!("row.{at}.was")).to_owned(),
            name: cell(sent, "row", at, "name"),
            value: cell(sent, "row", at, "value"),
            unit: cell(sent, "row", at, "unit"),
        };
        Self {
            texts: FIELDS.iter().map(|it| sent.text(it.0).replace("\r\n", "\n")).collect(),
            rows: (0..n_rows(sent, "row", "name")).map(of_row).collect(),
        }
    }

    /// Returns the faults of the form.
    fn faults(&self, visitor: &Visitor) -> Faults {
        let mut faults = Faults::new();
        for (at, row) in self.rows.iter().enumerate() {
            let is_named = !row.name.is_empty();
            let is_said = !row.value.is_empty() || !row.unit.is_empty();
            let key = match (is_named, is_said) {
                (false, true) if row.was.is_empty() => "fault_row_name",
                (true, _) if self.rows.iter().take(at).any(|it| it.name == row.name) => "fault_row_twice",
                (true, _) if row.value.is_empty() && row.was.is_empty() => "fault_row_value",
                _ => continue,
            };
            faults.insert(format!("row.{at}.name"), visitor.text(key));
        }
        faults
    }

    /// Returns the changes that the form makes to the dataset, as a request body.
    fn changes(&self, dataset: &Value) -> Map<String, Value> {
        let mut changes = Map::new();
        for ((name, _, manner), said) in FIELDS.iter().zip(&self.texts) {
            if *said == shown(dataset, name, *manner) {
                continue;
            }
            let value = if *manner == Manner::Lines { json!(lines(said)) } else { json!(said) };
            changes.insert((*name).to_owned(), value);
        }
        let before = dataset[METADATA].as_object().cloned().unwrap_or_default();
        let after = self.metadata(&before);
        // The order of members does not matter.
        if after != before {
            changes.insert(METADATA.to_owned(), Value::Object(after));
        }
        changes
    }

    /// Returns the scientific metadata with the values of the rows. Members without a row stay; a row without a name
    /// removes its member.
    fn metadata(&self, before: &Map<String, Value>) -> Map<String, Value> {
        let mut after = Map::new();
        for (name, kept) in before {
            match self.rows.iter().find(|it| !it.was.is_empty() && it.was == *name) {
                None => drop(after.insert(name.clone(), kept.clone())),
                Some(row) if row.name.is_empty() => {}
                Some(row) => drop(after.insert(row.name.clone(), row.kept(Some(kept)))),
            }
        }
        let is_there = |row: &&Row| !row.was.is_empty() && before.contains_key(&row.was);
        for row in self.rows.iter().filter(|it| !it.name.is_empty() && !is_there(it)) {
            after.insert(row.name.clone(), row.kept(None));
        }
        after
    }
}

/// Parses SciCat's faults of single properties: lists of `{property, constraints}`, or texts that begin with a
/// property's name.
fn faults_of(answer: &Value) -> Faults {
    let mut faults = Faults::new();
    let message = &answer["message"];
    let inner = message.as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
    let list = inner.as_ref().unwrap_or(message);
    let list = list.as_array().or_else(|| list["message"].as_array());
    for it in list.into_iter().flatten() {
        let (property, said) = match it {
            Value::String(text) => {
                (text.split([' ', '.']).next().unwrap_or_default().to_owned(), text.clone())
            }
            it => {
                let said = it["constraints"].as_object().into_iter().flatten();
                let said: Vec<&str> = said.filter_map(|it| it.1.as_str()).collect();
                (text(it, "property"), said.join("; "))
            }
        };
        if FIELDS.iter().any(|it| it.0 == property) && !said.is_empty() {
            faults.insert(property, said);
        }
    }
    faults
}

fn path_of(pid: &str) -> String {
    format!("/api/v3/datasets/{}", encoded(pid))
}

/// `GET /site/edit/dataset/{pid}`
pub(crate) async fn edit(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
) -> Result<Response> {
    let page = begun(&site, &visitor, &pid).await;
    site.shown(&visitor, page)
}

async fn begun(site: &Site, visitor: &Visitor, pid: &str) -> Result<Response> {
    let dataset = read(site, visitor, pid).await?;
    let more = false;
    page(site, visitor, (pid, &dataset), &Form::of_dataset(&dataset), &Trouble::default(), more)
}

/// Reads the dataset as the visitor sees it.
///
/// Errors: nobody is signed in; it does not exist.
async fn read(site: &Site, visitor: &Visitor, pid: &str) -> Result<Value> {
    if visitor.caller.is_anonymous() {
        return Err(SiteError::SignIn);
    }
    match site.read(visitor, "scicat", &path_of(pid)).await? {
        Value::Null => Err(SiteError::NotFound),
        dataset => Ok(dataset),
    }
}

/// `POST /site/edit/dataset/{pid}`
pub(crate) async fn save(
    State(site): State<Site>,
    visitor: Visitor,
    Path(pid): Path<String>,
    body: Body,
) -> Result<Response> {
    let page = saved(&site, &visitor, &pid, body).await;
    site.shown(&visitor, page)
}

async fn saved(site: &Site, visitor: &Visitor, pid: &str, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let form = Form::of_sent(&sent);
    let dataset = read(site, visitor, pid).await?;
    let since = sent.text("since");
    if !sent.text("more").is_empty() {
        // The form keeps the state of the dataset from which it was filled.
        let began = json!({"updatedAt": since, "datasetName": text(&dataset, "datasetName")});
        return page(site, visitor, (pid, &began), &form, &Trouble::default(), true);
    }
    if since != text(&dataset, "updatedAt") {
        return page(site, visitor, (pid, &dataset), &form, &Trouble::conflict(), false);
    }
    let faults = form.faults(visitor);
    if !faults.is_empty() {
        return page(site, visitor, (pid, &dataset), &form, &Trouble::of_faults(faults), false);
    }
    let changes = form.changes(&dataset);
    let done = || Ok(gone_on(&format!("/site/dataset/{}", encoded_rest(pid))));
    if changes.is_empty() {
        return done();
    }
    let condition = Some((IF_UNMODIFIED_SINCE, since)).filter(|it| !it.1.is_empty());
    let (question, changes) = ((Method::PATCH, path_of(pid)), Value::Object(changes));
    let question = (question.0, question.1.as_str());
    let heard = site.hear(visitor, "scicat", question, Some(&changes), condition).await?;
    match Trouble::of(visitor, &heard.said, faults_of)? {
        None => done(),
        Some(trouble) if trouble.is_conflict => {
            let now = read(site, visitor, pid).await?;
            page(site, visitor, (pid, &now), &form, &trouble, false)
        }
        Some(trouble) => page(site, visitor, (pid, &dataset), &form, &trouble, false),
    }
}

/// Returns the form. After a conflict each field that differs shows the value stored now.
fn page(
    site: &Site,
    visitor: &Visitor,
    (pid, dataset): (&str, &Value),
    form: &Form,
    trouble: &Trouble,
    is_more_wanted: bool,
) -> Result<Response> {
    let mut rows = form.rows.clone();
    rows.resize_with(with_empty(rows.len(), is_more_wanted), Row::default);
    let mut faults = trouble.faults.clone();
    if trouble.is_conflict {
        let now = visitor.text("kept_now");
        for ((name, _, manner), said) in FIELDS.iter().zip(&form.texts) {
            let kept = shown(dataset, name, *manner);
            if kept != *said {
                faults.insert((*name).to_owned(), format!("{now} {kept}"));
            }
        }
        for (at, it) in form.rows.iter().enumerate().filter(|it| !it.1.was.is_empty()) {
            let kept = dataset[METADATA].get(&it.was).and_then(|kept| row(&it.was, kept)).unwrap_or_default();
            if (&kept.value, &kept.unit) != (&it.value, &it.unit) {
                faults.insert(format!("row.{at}.name"), format!("{now} {} {}", kept.value, kept.unit));
            }
        }
    }
    let fields: Vec<Value> = FIELDS
        .iter()
        .zip(&form.texts)
        .map(|((name, key, manner), said)| json!({"name": name, "key": key, "manner": manner, "text": said}))
        .collect();
    let rest = encoded_rest(pid);
    let name = text(dataset, "datasetName");
    let page = json!({
        "title_key": "edit_metadata", "name": if name.is_empty() { pid.to_owned() } else { name }, "pid": pid,
        "fields": fields, "rows": rows, "since": text(dataset, "updatedAt"), "faults": faults,
        "refused": trouble.refused, "is_conflict": trouble.is_conflict,
        "action": format!("/site/edit/dataset/{rest}"), "view": format!("/site/dataset/{rest}"),
    });
    site.page(visitor, trouble.status(), "edit_dataset.html", page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset() -> Value {
        json!({
            "datasetName": "run 1", "keywords": ["a", "b"], "updatedAt": "2026-01-01T00:00:00.000Z",
            METADATA: {
                "T": {"value": 60, "unit": "C", "valueSI": 333.15, "unitSI": "K", "note": "kept"}, "mode": "fast",
                "serial": "007", "on": true, "list": [1, 2], "range": {"from": 1, "to": 2},
            },
        })
    }

    #[test]
    fn what_is_not_changed_is_not_sent() {
        let dataset = dataset();
        assert_eq!(Form::of_dataset(&dataset).changes(&dataset), Map::new());
    }

    #[test]
    fn rows_change_what_they_stand_for_and_nothing_else() {
        for (change, expected) in [
            (("T", "T", "61", "C"), json!({"value": 61, "unit": "C", "note": "kept"})),
            (("T", "T", "61.5", "K"), json!({"value": 61.5, "unit": "K", "note": "kept"})),
            (("mode", "mode", "slow", ""), json!("slow")),
            (("serial", "serial", "008", ""), json!("008")),
            (("on", "on", "false", ""), json!(false)),
            (("", "new", "7", "mm"), json!({"value": 7, "unit": "mm"})),
            (("", "word", "x", ""), json!("x")),
            (("mode", "mode", "slow", "s"), json!({"value": "slow", "unit": "s"})),
        ] {
            let (was, name, value, unit) = change;
            let mut form = Form::of_dataset(&dataset());
            let row = [was, name, value, unit].map(str::to_owned);
            let [was, name, value, unit] = row;
            let new = Row { was: was.clone(), name: name.clone(), value, unit };
            match form.rows.iter_mut().find(|it| !was.is_empty() && it.was == was) {
                Some(row) => *row = new,
                None => form.rows.push(new),
            }
            let changes = form.changes(&dataset());
            assert_eq!(changes[METADATA][&name], expected, "{change:?}");
            assert_eq!(changes[METADATA]["range"], json!({"from": 1, "to": 2}));
            assert_eq!(changes.len(), 1);
        }
    }

    #[test]
    fn a_row_is_renamed_or_taken_away_and_others_rows_stay() {
        let mut form = Form::of_dataset(&dataset());
        form.rows.retain(|it| it.was != "serial");
        for row in &mut form.rows {
            match row.was.as_str() {
                "mode" => row.name.clear(),
                "on" => row.name = "is_on".to_owned(),
                _ => {}
            }
        }
        let changes = form.changes(&dataset());
        let after = changes[METADATA].as_object().cloned().unwrap_or_default();
        let names: Vec<&str> = after.keys().map(String::as_str).collect();
        // The row of "serial" was not in the form, as one that somebody else added would not be.
        assert_eq!(names, ["T", "serial", "is_on", "list", "range"]);
    }

    #[test]
    fn faults_stand_by_their_fields() {
        let listed = json!({"message": ["owner must be a string", "else is wrong"]});
        let tree = json!([{"property": "contactEmail", "constraints": {"isEmail": "contactEmail must be an email"}}]);
        let within = json!({"message": tree.to_string()});
        for (answer, expected) in [
            (listed, json!({"owner": "owner must be a string"})),
            (within, json!({"contactEmail": "contactEmail must be an email"})),
            (json!({"message": "no"}), json!({})),
            (Value::Null, json!({})),
        ] {
            assert_eq!(json!(faults_of(&answer)), expected, "{answer}");
        }
    }
}
