//! The changes of MARC fields that a mapping profile makes, as rows of its form: one for each subfield, the first of which
//! names the field.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Faults, ROWS_MAX};
use crate::app::Visitor;
use crate::fields::Fields;
use crate::record::text;

/// Where a profile has them.
const LIST: &str = "/mappingDetails/marcMappingDetails";
/// Where it says that they are changes of single fields, and not of which field goes where in an update.
const OPTION: &str = "/mappingDetails/marcMappingOption";
/// What can be done to a field.
pub(super) const ACTIONS: [&str; 4] = ["ADD", "DELETE", "EDIT", "MOVE"];
/// What can be done to a subfield, and where.
pub(super) const SUBACTIONS: [&str; 7] = [
    "INSERT BEFORE_STRING",
    "INSERT AFTER_STRING",
    "INSERT NEW_SUBFIELD",
    "REMOVE",
    "REPLACE",
    "CREATE_NEW_FIELD",
    "ADD_TO_EXISTING_FIELD",
];
/// Names of the inputs of a row.
const CELLS: [&str; 13] = [
    "action",
    "tag",
    "ind1",
    "ind2",
    "code",
    "subaction",
    "text",
    "find",
    "replace",
    "to_tag",
    "to_ind1",
    "to_ind2",
    "to_code",
];

/// A row: what is done to one subfield. One without a field goes on with that of the row before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// Places of the change and of the subfield in the profile; empty for a new one.
    at: String,
    action: String,
    tag: String,
    /// Empty for one that is blank.
    ind1: String,
    ind2: String,
    code: String,
    /// With where, if it says so: `INSERT BEFORE_STRING`.
    subaction: String,
    text: String,
    find: String,
    replace: String,
    to_tag: String,
    to_ind1: String,
    to_ind2: String,
    to_code: String,
}

/// An indicator as the form shows it.
fn indicator(of: &Value, name: &str) -> String {
    text(of, name).trim().to_owned()
}

/// The same as it is kept.
fn kept_indicator(shown: &str) -> Value {
    json!(if shown.is_empty() { " " } else { shown })
}

/// Puts a text where it belongs, or takes what is there away where it says nothing.
fn put(map: &mut Map<String, Value>, name: &str, said: &str) {
    let is_same = map.get(name).and_then(Value::as_str).unwrap_or_default() == said;
    match said {
        _ if is_same => {}
        "" => drop(map.remove(name)),
        said => drop(map.insert(name.to_owned(), json!(said))),
    }
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

impl Row {
    /// The row of a subfield, at a place in a change.
    fn of(change: &Value, at: usize, place: usize) -> Self {
        let field = &change["field"];
        let part = &field["subfields"][place];
        let (data, target) = (&part["data"], &part["data"]["marcField"]);
        let first = |it: String| if place == 0 { it } else { String::new() };
        Self {
            at: format!("{at}/{place}"),
            action: first(text(change, "action")),
            tag: first(text(field, "field")),
            ind1: first(indicator(field, "indicator1")),
            ind2: first(indicator(field, "indicator2")),
            code: text(part, "subfield"),
            subaction: format!("{} {}", text(part, "subaction"), text(part, "position")).trim().to_owned(),
            text: text(data, "text"),
            find: text(data, "find"),
            replace: text(data, "replaceWith"),
            to_tag: text(target, "field"),
            to_ind1: indicator(target, "indicator1"),
            to_ind2: indicator(target, "indicator2"),
            to_code: text(target, "subfields/0/subfield"),
        }
    }

    /// Whether nothing was typed into it.
    fn is_empty(&self) -> bool {
        *self == Self { at: self.at.clone(), ..Self::default() }
    }

    /// Whether it says something of a subfield.
    fn has_part(&self) -> bool {
        let place = Self {
            at: self.at.clone(),
            action: self.action.clone(),
            tag: self.tag.clone(),
            ind1: self.ind1.clone(),
            ind2: self.ind2.clone(),
            ..Self::default()
        };
        *self != place
    }

    /// Where it stood in the profile.
    fn places(&self) -> Option<(usize, usize)> {
        let (change, part) = self.at.split_once('/')?;
        Some((change.parse().ok()?, part.parse().ok()?))
    }

    /// The change of a field, still without subfields.
    fn change(&self, before: Option<&Value>) -> Value {
        let mut change = object(before);
        put(&mut change, "action", &self.action);
        let mut field = object(change.get("field"));
        put(&mut field, "field", &self.tag);
        for (name, said) in [("indicator1", &self.ind1), ("indicator2", &self.ind2)] {
            if field.get(name).is_none_or(|it| it.as_str().unwrap_or_default().trim() != said) {
                field.insert(name.to_owned(), kept_indicator(said));
            }
        }
        field.insert("subfields".to_owned(), json!([]));
        change.insert("field".to_owned(), Value::Object(field));
        Value::Object(change)
    }

    /// What is done to a subfield.
    fn part(&self, before: Option<&Value>) -> Value {
        let mut part = object(before);
        put(&mut part, "subfield", if self.code.is_empty() { "*" } else { &self.code });
        let (subaction, position) = self.subaction.split_once(' ').unwrap_or((&self.subaction, ""));
        put(&mut part, "subaction", subaction);
        put(&mut part, "position", position);
        let mut data = object(part.get("data"));
        put(&mut data, "text", &self.text);
        put(&mut data, "find", &self.find);
        put(&mut data, "replaceWith", &self.replace);
        if self.to_tag.is_empty() {
            data.remove("marcField");
        } else {
            let mut target = object(data.get("marcField"));
            put(&mut target, "field", &self.to_tag);
            target.insert("indicator1".to_owned(), kept_indicator(&self.to_ind1));
            target.insert("indicator2".to_owned(), kept_indicator(&self.to_ind2));
            let mut first = object(target.get("subfields").and_then(|it| it.get(0)));
            put(&mut first, "subfield", &self.to_code);
            let list = if first.is_empty() { json!([]) } else { json!([first]) };
            target.insert("subfields".to_owned(), list);
            data.insert("marcField".to_owned(), Value::Object(target));
        }
        if !data.is_empty() {
            part.insert("data".to_owned(), Value::Object(data));
        } else if part.get("data").is_some_and(Value::is_object) {
            part.insert("data".to_owned(), json!({}));
        }
        Value::Object(part)
    }
}

/// Whether a profile has rules that the form does not show, and leaves as they are: those of an update, which are of another
/// shape, and more than it has rows for.
pub(super) fn is_hidden(profile: &Value) -> bool {
    let is_of_update = profile.pointer(OPTION).and_then(Value::as_str) == Some("UPDATE");
    is_of_update || ROWS_MAX < rows_of(profile).len()
}

/// The rows of a profile.
pub(super) fn of_profile(profile: &Value) -> Vec<Row> {
    if is_hidden(profile) { Vec::new() } else { rows_of(profile) }
}

fn rows_of(profile: &Value) -> Vec<Row> {
    let list = profile.pointer(LIST).and_then(Value::as_array);
    let mut rows = Vec::new();
    for (at, change) in list.into_iter().flatten().enumerate() {
        let n_parts = change["field"]["subfields"].as_array().map_or(0, Vec::len);
        rows.extend((0..n_parts.max(1)).map(|place| Row::of(change, at, place)));
    }
    rows
}

/// The rows that a browser sent.
pub(super) fn of_sent(sent: &Fields) -> Vec<Row> {
    let n_rows = (0..ROWS_MAX).take_while(|at| sent.has(&format!("marc.{at}.tag"))).count();
    let row = |at: usize| {
        // Blanks at the ends of texts mean something.
        let exact = |name: &str| sent.exact(&format!("marc.{at}.{name}")).to_owned();
        let cell = |name: &str| exact(name).trim().to_owned();
        Row {
            at: cell("at"),
            action: cell("action"),
            tag: cell("tag"),
            ind1: cell("ind1"),
            ind2: cell("ind2"),
            code: cell("code").trim_start_matches('$').to_owned(),
            subaction: cell("subaction"),
            text: exact("text"),
            find: exact("find"),
            replace: exact("replace"),
            to_tag: cell("to_tag"),
            to_ind1: cell("to_ind1"),
            to_ind2: cell("to_ind2"),
            to_code: cell("to_code").trim_start_matches('$').to_owned(),
        }
    };
    (0..n_rows).map(row).collect()
}

/// Key of what is wrong with a row, and the input that it is about; `action` is that of its field.
fn fault(row: &Row, action: &str, is_first: bool) -> Option<(&'static str, &'static str)> {
    let is_tag = |it: &str| it.len() == 3 && it.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_sign = |it: &str| it.chars().count() <= 1;
    if row.tag.is_empty() && (is_first || !row.action.is_empty()) || !(row.tag.is_empty() || is_tag(&row.tag))
    {
        return Some(("tag", "fault_marc_tag"));
    }
    if ![&row.ind1, &row.ind2, &row.code, &row.to_ind1, &row.to_ind2, &row.to_code]
        .into_iter()
        .all(|it| is_sign(it))
    {
        return Some(("code", "fault_marc_sign"));
    }
    if !row.to_tag.is_empty() && !is_tag(&row.to_tag) {
        return Some(("to_tag", "fault_marc_tag"));
    }
    if !ACTIONS.contains(&action) {
        return Some(("action", "fault_marc_action"));
    }
    let is_move = matches!(row.subaction.as_str(), "CREATE_NEW_FIELD" | "ADD_TO_EXISTING_FIELD");
    let is_control = row.tag.starts_with("00");
    match action {
        "ADD" if row.text.is_empty() => Some(("text", "fault_marc_text")),
        "ADD" if row.code.is_empty() && !is_control => Some(("code", "fault_marc_code")),
        "EDIT" if row.subaction.is_empty() || is_move => Some(("subaction", "fault_marc_subaction")),
        "EDIT" if row.subaction == "REPLACE" && row.find.is_empty() => Some(("find", "fault_marc_text")),
        "EDIT" if row.subaction.starts_with("INSERT") && row.text.is_empty() => {
            Some(("text", "fault_marc_text"))
        }
        "EDIT" if row.subaction == "REMOVE" && row.text.is_empty() && row.find.is_empty() => {
            Some(("text", "fault_marc_text"))
        }
        "MOVE" if row.to_tag.is_empty() => Some(("to_tag", "fault_marc_target")),
        "MOVE" if !is_move => Some(("subaction", "fault_marc_subaction")),
        _ => None,
    }
}

/// What is wrong with rows; those that stand in the profile as they are were taken by FOLIO.
pub(super) fn faults(rows: &[Row], profile_makes: &str, visitor: &Visitor, faults: &mut Faults) {
    let (mut action, mut is_first) = (String::new(), true);
    for (at, row) in rows.iter().enumerate().filter(|it| !it.1.is_empty()) {
        if !row.tag.is_empty() {
            action.clone_from(&row.action);
        }
        let found = fault(row, &action, is_first);
        let is_elsewhere = row.at.is_empty() && !profile_makes.starts_with("MARC_");
        let found = found.or_else(|| is_elsewhere.then_some(("tag", "fault_marc_entity")));
        if let Some((cell, key)) = found {
            faults.insert(format!("marc.{at}.{cell}"), visitor.text(key));
        }
        is_first = false;
    }
}

/// Puts the rows into a profile in place of what they stand for. A row without anything takes away what it stood for.
pub(super) fn apply(rows: &[Row], profile: &mut Value) {
    let rows: Vec<&Row> = rows.iter().filter(|it| !it.is_empty()).collect();
    let before = of_profile(profile);
    if is_hidden(profile) || rows.iter().copied().eq(before.iter()) {
        return;
    }
    let kept = profile.pointer(LIST).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut list: Vec<Value> = Vec::new();
    for row in rows {
        let old = row.places().and_then(|(change, part)| Some((kept.get(change)?, part)));
        if !row.tag.is_empty() {
            list.push(row.change(old.map(|it| it.0)));
        }
        let old_part = old.and_then(|(change, part)| change["field"]["subfields"].get(part));
        let is_whole = !row.tag.is_empty() && !row.has_part();
        // A field that was named without subfields stays so; a new one is meant as a whole.
        let part = (!is_whole || old.is_none() || old_part.is_some()).then(|| row.part(old_part));
        let parts = list.last_mut().and_then(|it| it["field"]["subfields"].as_array_mut());
        if let (Some(parts), Some(part)) = (parts, part) {
            parts.push(part);
        }
    }
    for (at, it) in list.iter_mut().enumerate() {
        it["order"] = json!(at);
    }
    let details = &mut profile["mappingDetails"];
    details["marcMappingDetails"] = list.into();
    if details.get("marcMappingOption").is_none_or(Value::is_null) {
        details["marcMappingOption"] = json!("MODIFY");
    }
}

/// The rows as the template shows them: each input with what is wrong with it.
pub(super) fn shown(rows: &[Row], faults: &Faults) -> Vec<Value> {
    let of = |(at, row): (usize, &Row)| {
        let mut it = json!(row);
        // A choice that the form does not offer is kept.
        let offered = SUBACTIONS.contains(&row.subaction.as_str()) || row.subaction.is_empty();
        it["other"] = json!(if offered { "" } else { &row.subaction });
        let of_row = CELLS.iter().filter_map(|cell| Some((*cell, faults.get(&format!("marc.{at}.{cell}"))?)));
        it["faults"] = of_row.map(|it| json!([it.0, it.1])).collect();
        it
    };
    rows.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Value {
        json!({"existingRecordType": "MARC_BIBLIOGRAPHIC", "mappingDetails": {"marcMappingOption": "MODIFY", "marcMappingDetails": [
            {"order": 1, "action": "ADD", "kept": 1, "field": {"field": "590", "indicator1": " ", "indicator2": "1", "subfields": [
                {"subfield": "a", "subaction": "ADD_SUBFIELD", "data": {"text": "new "}}, {"subfield": "5", "data": {"text": "X"}}]}},
            {"order": 2, "action": "DELETE", "field": {"field": "035", "indicator1": "*", "indicator2": "*", "subfields": []}},
            {"order": 3, "action": "MOVE", "field": {"field": "500", "subfields": [{"subfield": "*", "subaction": "CREATE_NEW_FIELD",
                "data": {"marcField": {"field": "520", "indicator1": " ", "indicator2": " ", "subfields": []}}}]}},
        ]}})
    }

    #[test]
    fn rows_that_nobody_touched_say_the_same_profile() {
        let rows = of_profile(&profile());
        let places: Vec<(&str, &str, &str)> =
            rows.iter().map(|it| (it.at.as_str(), it.tag.as_str(), it.code.as_str())).collect();
        assert_eq!(places, [("0/0", "590", "a"), ("0/1", "", "5"), ("1/0", "035", ""), ("2/0", "500", "*")]);
        let mut after = profile();
        apply(&rows, &mut after);
        assert_eq!(after, profile());
    }

    #[test]
    fn rows_change_what_they_stand_for_and_nothing_else() {
        let mut rows = of_profile(&profile());
        rows[1].text = "Y".to_owned();
        rows[2] = Row { at: "1/0".to_owned(), ..Row::default() };
        let new = |action: &str, tag: &str, code: &str, text: &str| {
            let [action, tag, code, text] = [action, tag, code, text].map(str::to_owned);
            Row { action, tag, code, text, ..Row::default() }
        };
        rows.extend([new("ADD", "591", "a", " b "), new("", "", "c", "d"), new("DELETE", "9XX", "", "")]);
        let mut after = profile();
        apply(&rows, &mut after);
        let list = &after["mappingDetails"]["marcMappingDetails"];
        let mut first = profile()["mappingDetails"]["marcMappingDetails"][0].clone();
        first["order"] = json!(0);
        first["field"]["subfields"][1]["data"]["text"] = json!("Y");
        assert_eq!(list[0], first);
        assert_eq!(list[1]["field"]["field"], "500");
        assert_eq!(
            list[2],
            json!({"order": 2, "action": "ADD", "field": {"field": "591", "indicator1": " ", "indicator2": " ", "subfields": [
                {"subfield": "a", "data": {"text": " b "}}, {"subfield": "c", "data": {"text": "d"}}]}})
        );
        assert_eq!(list[3]["field"]["subfields"], json!([{"subfield": "*"}]));
        assert_eq!(list.as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn a_row_needs_what_its_action_needs() {
        let row = |sent: &str| of_sent(&Fields::parse(sent)).remove(0);
        for (sent, is_first, expected) in [
            ("action=ADD&tag=590&code=a&text=x", true, None),
            ("action=ADD&tag=001&text=x", true, None),
            ("action=ADD&tag=590&code=a", true, Some("fault_marc_text")),
            ("action=ADD&tag=590&text=x", true, Some("fault_marc_code")),
            ("action=ADD&tag=59&code=a&text=x", true, Some("fault_marc_tag")),
            ("action=&tag=&code=a&text=x", true, Some("fault_marc_tag")),
            ("action=&tag=&code=a&text=x", false, Some("fault_marc_action")),
            ("action=DELETE&tag=035&ind1=*", true, None),
            ("action=DELETE&tag=035&ind1=**", true, Some("fault_marc_sign")),
            ("action=SPELL&tag=035", true, Some("fault_marc_action")),
            ("action=EDIT&tag=245&code=a", true, Some("fault_marc_subaction")),
            ("action=EDIT&tag=245&code=a&subaction=REPLACE&replace=x", true, Some("fault_marc_text")),
            ("action=EDIT&tag=245&code=$a&subaction=REPLACE&find=x", true, None),
            ("action=MOVE&tag=500&subaction=CREATE_NEW_FIELD", true, Some("fault_marc_target")),
            ("action=MOVE&tag=500&subaction=CREATE_NEW_FIELD&to_tag=520", true, None),
        ] {
            let sent: String = sent.split('&').map(|it| format!("marc.0.{it}&")).collect();
            let row = row(&sent);
            assert_eq!(fault(&row, &row.action, is_first).map(|it| it.1), expected, "{sent}");
        }
    }

    #[test]
    fn rules_that_the_form_does_not_show_stay() {
        let mut profile = profile();
        profile["mappingDetails"]["marcMappingOption"] = json!("UPDATE");
        let before = profile.clone();
        assert_eq!(of_profile(&profile), []);
        apply(&[Row { tag: "590".to_owned(), action: "DELETE".to_owned(), ..Row::default() }], &mut profile);
        assert_eq!(profile, before);
        let many = vec![json!({"action": "DELETE", "field": {"field": "035"}}); ROWS_MAX + 1];
        let many = json!({"mappingDetails": {"marcMappingDetails": many}});
        assert!(is_hidden(&many) && of_profile(&many).is_empty());
    }
}
