//! What people typed into the form of a deposit, and the fields of Dataverse that it stands for. What the form does not show
//! (fields of other blocks, parts that the collection does not use) stays as it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::description::{Block, Field};
use crate::fields::Fields;
use crate::record::text;

/// Most rows of a field that the form shows; those beyond stay as they are.
pub(super) const ROWS_MAX: usize = 200;
/// Rows that one press on "more rows" adds.
const MORE_ROWS: usize = 3;
/// What stands before the digits of an ORCID iD that was copied as an address.
const ORCID: &str = "https://orcid.org/";

/// What is wrong, by the names of inputs and fields.
pub(super) type Faults = BTreeMap<String, String>;

/// One value of a field: the texts of each of its cells, several where several can be chosen.
pub(super) type Row = Vec<Vec<String>>;

/// What the form holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// The rows of each field that is on the form, by its name.
    rows: BTreeMap<String, Vec<Row>>,
    /// Name of the licence; empty where terms of its own hold.
    pub(super) license: String,
}

/// The fields of a block in a version, as Dataverse shows them.
pub(super) fn fields_of<'v>(version: &'v Value, block: &str) -> &'v [Value] {
    version["metadataBlocks"][block]["fields"].as_array().map_or(&[], Vec::as_slice)
}

/// A text without spaces around it, its lines ended in one way.
fn plain(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

fn is_empty(row: &Row) -> bool {
    row.iter().all(Vec::is_empty)
}

/// The texts of a value, however many there are.
fn texts(value: &Value) -> Vec<String> {
    let one = |it: &Value| match it {
        Value::String(text) => Some(plain(text)),
        Value::Number(_) | Value::Bool(_) => Some(it.to_string()),
        _ => None,
    };
    let all = value
        .as_array()
        .map_or_else(|| one(value).into_iter().collect(), |it| it.iter().filter_map(one).collect::<Vec<_>>());
    all.into_iter().filter(|it| !it.is_empty()).collect()
}

/// The values of a field that has rows, each as it is kept.
fn kept_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    }
}

/// A value of a field as a row.
fn row_of(field: &Field, value: &Value) -> Row {
    match field.is_compound() {
        true => field.parts.iter().map(|it| texts(&value[&it.name]["value"])).collect(),
        false => vec![texts(value)],
    }
}

fn rows_of(field: &Field, value: &Value) -> Vec<Row> {
    match value {
        Value::Null => Vec::new(),
        value if field.is_compound() || field.has_rows() => {
            kept_values(value).iter().map(|it| row_of(field, it)).collect()
        }
        value => vec![row_of(field, value)],
    }
}

impl Form {
    /// Of a version as Dataverse shows it.
    pub(super) fn of_version(version: &Value, blocks: &[Block]) -> Self {
        let mut rows = BTreeMap::new();
        for block in blocks {
            let kept = fields_of(version, &block.name);
            for field in &block.fields {
                let value = kept.iter().find(|it| it["typeName"] == field.name.as_str());
                let value = value.map_or(&Value::Null, |it| &it["value"]);
                let mut list = rows_of(field, value);
                list.truncate(ROWS_MAX);
                rows.insert(field.name.clone(), list);
            }
        }
        Self { rows, license: text(version, "license/name") }
    }

    /// Of what a browser sent. A field is on the form if it says how many rows it has there.
    pub(super) fn of_sent(sent: &Fields, blocks: &[Block]) -> Self {
        let mut rows = BTreeMap::new();
        for field in blocks.iter().flat_map(|it| &it.fields) {
            let count = format!("{}/rows", field.name);
            if !sent.has(&count) {
                continue;
            }
            let n_rows = sent.text(&count).parse().unwrap_or(0).min(ROWS_MAX);
            let cell = |at: usize, cell: &Field| {
                let texts = sent.all(&field.input(at, cell)).map(plain).collect::<Vec<_>>();
                let is_list = cell.is_in_lines() && (field.is_compound() || field.is_chosen_at_once());
                let texts: Vec<String> = match is_list {
                    true => texts.iter().flat_map(|it| it.lines()).map(plain).collect(),
                    false => texts,
                };
                texts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>()
            };
            let row = |at| field.cells().iter().map(|it| cell(at, it)).collect::<Row>();
            let mut list: Vec<Row> = (0..n_rows).map(row).collect();
            list.iter_mut().for_each(|it| shorten_orcid(field, it));
            rows.insert(field.name.clone(), list);
        }
        Self { rows, license: sent.text("license").to_owned() }
    }

    /// The rows of a field.
    pub(super) fn rows(&self, field: &Field) -> &[Row] {
        self.rows.get(&field.name).map_or(&[], Vec::as_slice)
    }

    /// Whether a field says something.
    pub(super) fn says(&self, field: &Field) -> bool {
        self.rows(field).iter().any(|it| !is_empty(it))
    }

    /// Says something of a field that says nothing yet: texts by the names of cells.
    pub(super) fn suggest(&mut self, blocks: &[Block], name: &str, suggested: &[(&str, String)]) {
        let Some(field) = blocks.iter().flat_map(|it| &it.fields).find(|it| it.name == name) else { return };
        let cell = |cell: &Field| {
            let found = suggested.iter().filter(|it| it.0 == cell.name && !it.1.is_empty());
            found.map(|it| it.1.clone()).collect::<Vec<_>>()
        };
        if !self.says(field) {
            self.rows.insert(name.to_owned(), vec![field.cells().iter().map(cell).collect()]);
        }
    }

    /// With rows to write into: one more for each field, or some more for the field that was asked for and as many as there
    /// were for others.
    pub(super) fn with_empty_rows(mut self, blocks: &[Block], more: &str) -> Self {
        for field in blocks.iter().flat_map(|it| &it.fields) {
            let rows = self.rows.entry(field.name.clone()).or_default();
            let n_rows = match more {
                _ if !field.has_rows() => 1,
                "" => rows.len() + 1,
                it if it == field.name => rows.len() + MORE_ROWS,
                _ => rows.len().max(1),
            };
            rows.resize(n_rows.min(ROWS_MAX.max(rows.len())), vec![Vec::new(); field.cells().len()]);
        }
        self
    }

    /// Inputs that hold something that no ORCID iD can be, though it is called one. Dataverse does not look at that.
    pub(super) fn bad_orcids(&self, blocks: &[Block]) -> Vec<String> {
        let mut found = Vec::new();
        for field in blocks.iter().flat_map(|it| &it.fields) {
            let Some((scheme, id)) = orcid_places(field) else { continue };
            for (at, row) in self.rows(field).iter().enumerate() {
                let is_orcid = row[scheme].iter().any(|it| it == "ORCID");
                if is_orcid && !row[id].iter().all(|it| is_orcid_id(it)) {
                    found.push(field.input(at, &field.parts[id]));
                }
            }
        }
        found
    }

    /// The fields of a block with what the form says in place of what they said.
    pub(super) fn applied(&self, block: &Block, before: &[Value]) -> Vec<Value> {
        let mut fields = before.to_vec();
        for field in &block.fields {
            let Some(rows) = self.rows.get(&field.name) else { continue };
            let at = fields.iter().position(|it| it["typeName"] == field.name.as_str());
            let old = at.map_or(Value::Null, |it| fields[it]["value"].clone());
            let value = value_applied(field, rows, &old);
            let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            let new = json!({
                "typeName": field.name, "multiple": field.is_multiple, "typeClass": field.class(), "value": value,
            });
            match at {
                Some(at) if is_nothing => drop(fields.remove(at)),
                Some(at) => fields[at] = new,
                None if is_nothing => {}
                None => fields.push(new),
            }
        }
        fields
    }
}

/// The value of a field with rows in place of what they began as. Rows that the form did not have stay.
fn value_applied(field: &Field, rows: &[Row], old: &Value) -> Value {
    if !field.is_compound() && !field.has_rows() {
        let said = rows.first().and_then(|it| it.first()).map_or(&[][..], Vec::as_slice);
        return match (said, field.is_multiple) {
            (said, _) if *said == texts(old)[..] => old.clone(),
            (said, true) => json!(said),
            (said, false) => said.first().map_or(Value::Null, |it| json!(it)),
        };
    }
    let kept = kept_values(old);
    let mut values: Vec<Value> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let before = kept.get(at);
        let is_as_before = before.is_some_and(|it| row_of(field, it) == *row);
        match before {
            Some(before) if is_as_before => values.push(before.clone()),
            _ if is_empty(row) => {}
            _ if field.is_compound() => values.push(compound_applied(field, row, before)),
            _ => values.extend(row[0].first().map(|it| json!(it))),
        }
    }
    values.extend(kept.into_iter().skip(rows.len()));
    if field.is_multiple { values.into() } else { values.into_iter().next().unwrap_or(Value::Null) }
}

/// A compound value with the parts of a row in place of its own.
fn compound_applied(field: &Field, row: &Row, before: Option<&Value>) -> Value {
    let mut map: Map<String, Value> = before.and_then(Value::as_object).cloned().unwrap_or_default();
    for (part, said) in field.parts.iter().zip(row) {
        let old = map.get(&part.name).map(|it| texts(&it["value"])).unwrap_or_default();
        match said.first() {
            _ if old == *said => {}
            None => drop(map.remove(&part.name)),
            Some(first) => {
                let value = if part.is_multiple { json!(said) } else { json!(first) };
                let new = json!({
                    "typeName": part.name, "multiple": part.is_multiple, "typeClass": part.class(), "value": value,
                });
                map.insert(part.name.clone(), new);
            }
        }
    }
    map.into()
}

/// Where a field says of which scheme an author's identifier is, and the identifier.
fn orcid_places(field: &Field) -> Option<(usize, usize)> {
    let place = |name: &str| field.parts.iter().position(|it| it.name == name);
    Some((place("authorIdentifierScheme")?, place("authorIdentifier")?))
}

/// An ORCID iD that was copied as an address is kept as its digits, and called by its name.
fn shorten_orcid(field: &Field, row: &mut Row) {
    let Some((scheme, id)) = orcid_places(field) else { return };
    let Some(short) = row[id].first().and_then(|it| it.strip_prefix(ORCID)).map(str::to_owned) else {
        return;
    };
    if row[scheme].is_empty() {
        row[scheme] = vec!["ORCID".to_owned()];
    }
    row[id] = vec![short];
}

/// Four groups of four digits, the last of which may be an X.
fn is_orcid_id(text: &str) -> bool {
    let groups: Vec<&str> = text.strip_prefix(ORCID).unwrap_or(text).split('-').collect();
    let is_digit = |(at, it): (usize, char)| it.is_ascii_digit() || (at == 15 && it == 'X');
    groups.len() == 4
        && groups.iter().all(|it| it.len() == 4)
        && groups.concat().chars().enumerate().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deposit::description::tests::block;

    const SENT: &str = "title/rows=1&title/0=Tides&author/rows=2&author/0/authorName=Sample%2C+Ada\
        &author/0/authorIdentifierScheme=&author/0/authorIdentifier=https%3A%2F%2Forcid.org%2F0000-0002-1825-0097\
        &author/1/authorName=&author/1/authorIdentifierScheme=&author/1/authorIdentifier=&words/rows=2&words/0=sea\
        &words/1=a%0D%0Ab&subject/rows=1&subject/0=Law&subject/0=Physics&size/rows=1&size/0=&license=CC0+1.0";

    fn part(name: &str, value: &str) -> Value {
        json!({"typeName": name, "multiple": false, "typeClass": "primitive", "value": value})
    }

    #[test]
    fn what_was_sent_is_what_the_record_then_says() {
        let blocks = [block()];
        let form = Form::of_sent(&Fields::parse(SENT), &blocks);
        assert_eq!(form.bad_orcids(&blocks), Vec::<String>::new());
        let fields = form.applied(&blocks[0], &[]);
        let value = |name: &str| fields.iter().find(|it| it["typeName"] == name).map(|it| &it["value"]);
        assert_eq!(value("title"), Some(&json!("Tides")));
        assert_eq!(value("words"), Some(&json!(["sea", "a\nb"])));
        assert_eq!(value("subject"), Some(&json!(["Law", "Physics"])));
        assert_eq!(value("size"), None, "an empty field is none");
        let author = &value("author").map(|it| it[0].clone()).unwrap_or_default();
        assert_eq!(author["authorIdentifier"]["value"], "0000-0002-1825-0097");
        let scheme = json!({"typeName": "authorIdentifierScheme", "multiple": false, "typeClass": "controlledVocabulary", "value": "ORCID"});
        assert_eq!(author["authorIdentifierScheme"], scheme);
        let version =
            json!({"metadataBlocks": {"citation": {"fields": fields}}, "license": {"name": "CC0 1.0"}});
        let read = Form::of_version(&version, &blocks);
        assert_eq!(read.rows(&blocks[0].fields[1]).len(), 1);
        assert_eq!(read.with_empty_rows(&blocks, "author").rows(&blocks[0].fields[1]).len(), 4);
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was() {
        let before = [
            json!({"typeName": "title", "multiple": false, "typeClass": "primitive", "value": " Tides\r\nof\r\n"}),
            json!({"typeName": "author", "multiple": true, "typeClass": "compound", "value": [
                {"authorName": part("authorName", "Old, A"), "authorOther": part("authorOther", "kept")},
                {"authorOther": part("authorOther", "a part that the form does not show")},
                {"authorName": part("authorName", "Young, B")}]}),
            json!({"typeName": "words", "multiple": true, "typeClass": "primitive", "value": ["a", "b "]}),
            json!({"typeName": "series", "multiple": true, "typeClass": "compound", "value": []}),
        ];
        let blocks = [block()];
        let version = json!({"metadataBlocks": {"citation": {"fields": before.clone()}}});
        let mut form = Form::of_version(&version, &blocks).with_empty_rows(&blocks, "");
        assert_eq!(form.applied(&blocks[0], &before), before);
        // One name is changed, one author is taken away, and one beyond those of the form is not touched.
        let Some(authors) = form.rows.get_mut("author") else { panic!("no authors") };
        authors.truncate(2);
        authors[0][0] = vec!["New, A".to_owned()];
        form.rows.insert("words".to_owned(), vec![vec![Vec::new()], vec![vec!["b".to_owned()]]]);
        form.rows.remove("title");
        let after = form.applied(&blocks[0], &before);
        assert_eq!((&after[0], &after[3]), (&before[0], &before[3]));
        let authors = &after[1]["value"];
        assert_eq!(
            (&authors[0]["authorName"]["value"], &authors[0]["authorOther"]["value"]),
            (&json!("New, A"), &json!("kept"))
        );
        assert_eq!((&authors[1], &authors[2]), (&before[1]["value"][1], &before[1]["value"][2]));
        assert_eq!(after[2]["value"], json!(["b "]));
    }

    #[test]
    fn orcids_are_of_sixteen_digits() {
        assert!(is_orcid_id("0000-0002-1694-233X") && !is_orcid_id("0000-0002-1694-23X3"));
        assert!(!is_orcid_id("") && !is_orcid_id("0000000216942330"));
        let blocks = [block()];
        let sent = "author/rows=2&author/0/authorName=A&author/1/authorName=B&author/1/authorIdentifierScheme=ORCID\
            &author/1/authorIdentifier=12";
        let form = Form::of_sent(&Fields::parse(sent), &blocks);
        assert_eq!(form.bad_orcids(&blocks), ["author/1/authorIdentifier"]);
    }
}
