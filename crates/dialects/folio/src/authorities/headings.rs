//! The headings of an authority as rows: the authorised form, references (`sft…`) and related headings (`saft…`), as a
//! search shows them (section 12 of the contract; mod-search).

use std::collections::BTreeMap;

use pinakes_store::{Expr, Path};
use serde_json::{Map, Value};

/// Fields with a heading, and its type: (field, heading type).
pub const HEADINGS: [(&str, &str); 17] = [
    ("personalName", "Personal Name"),
    ("personalNameTitle", "Personal Name"),
    ("corporateName", "Corporate Name"),
    ("corporateNameTitle", "Corporate Name"),
    ("meetingName", "Conference Name"),
    ("meetingNameTitle", "Conference Name"),
    ("uniformTitle", "Uniform Title"),
    ("namedEvent", "Named Event"),
    ("topicalTerm", "Topical"),
    ("geographicName", "Geographic Name"),
    ("genreTerm", "Genre"),
    ("chronTerm", "Chronological Term"),
    ("mediumPerfTerm", "Medium of Performance Term"),
    ("generalSubdivision", "General Subdivision"),
    ("geographicSubdivision", "Geographic Subdivision"),
    ("chronSubdivision", "Chronological Subdivision"),
    ("formSubdivision", "Form Subdivision"),
];

/// Prefixes of the fields, and the relation of their headings to the authority.
const RELATIONS: [(&str, &str); 3] = [("", "Authorized"), ("sft", "Reference"), ("saft", "Auth/Ref")];

/// One row: a heading, its relation to the authority, and the field it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `Authorized`, `Reference` or `Auth/Ref`.
    pub ref_type: &'static str,
    /// Type of the heading.
    pub heading_type: &'static str,
    /// The heading.
    pub heading: String,
    /// Field of the authority that it is in.
    pub field: String,
}

/// Returns the names of all fields with headings.
pub fn fields() -> impl Iterator<Item = String> {
    RELATIONS.iter().map(|it| it.0).flat_map(|prefix| HEADINGS.iter().map(move |it| field_of(prefix, it.0)))
}

/// Returns the name of a field with a prefix.
fn field_of(prefix: &str, field: &str) -> String {
    if prefix.is_empty() {
        return field.to_owned();
    }
    format!("{prefix}{}{}", field[..1].to_ascii_uppercase(), &field[1..])
}

/// Returns the condition that an authority has a heading in a field.
fn has(prefix: &str, field: &str) -> Expr {
    let path = Path::dotted(&field_of(prefix, field));
    if prefix.is_empty() {
        return Expr::Exists(path);
    }
    let is_empty = Expr::Size(path.clone(), 0);
    Expr::And(vec![Expr::Exists(path), Expr::Not(Box::new(is_empty))])
}

/// Returns each type of heading, with the condition that an authority has a heading of that type.
pub fn by_type() -> BTreeMap<&'static str, Expr> {
    let mut by_type: BTreeMap<&'static str, Vec<Expr>> = BTreeMap::new();
    for (field, heading_type) in HEADINGS {
        let any = RELATIONS.map(|it| has(it.0, field));
        by_type.entry(heading_type).or_default().extend(any);
    }
    by_type.into_iter().map(|(heading_type, any)| (heading_type, Expr::Or(any))).collect()
}

/// Returns each relation of a heading to its authority, with the condition that an authority has a heading in that
/// relation.
pub fn by_relation() -> Vec<(&'static str, Expr)> {
    let any = |prefix: &str| Expr::Or(HEADINGS.iter().map(|it| has(prefix, it.0)).collect());
    RELATIONS.iter().map(|(prefix, relation)| (*relation, any(prefix))).collect()
}

/// Returns the rows of an authority, the authorised form first.
pub fn rows(authority: &Value) -> Vec<Row> {
    let mut list = Vec::new();
    for (field, heading_type) in HEADINGS {
        if let Some(heading) = authority.get(field).and_then(Value::as_str) {
            list.push(Row {
                ref_type: "Authorized",
                heading_type,
                heading: heading.to_owned(),
                field: field.to_owned(),
            });
        }
    }
    for (prefix, ref_type) in &RELATIONS[1..] {
        for (field, heading_type) in HEADINGS {
            let field = field_of(prefix, field);
            let headings = authority.get(&field).and_then(Value::as_array).into_iter().flatten();
            for heading in headings.filter_map(Value::as_str) {
                list.push(Row { ref_type, heading_type, heading: heading.to_owned(), field: field.clone() });
            }
        }
    }
    list
}

/// Returns a row as search results show it; the conditions of a search apply to this form as well.
pub fn shown(authority: &Value, row: &Row) -> Value {
    let mut map = Map::new();
    let mut copy = |name: &str| {
        if let Some(value) = authority.get(name).filter(|it| !it.is_null()) {
            map.insert(name.to_owned(), value.clone());
        }
    };
    copy("id");
    for (name, value) in [
        ("authRefType", row.ref_type),
        ("headingType", row.heading_type),
        ("headingRef", &row.heading),
        (&row.field, &row.heading),
    ] {
        map.insert(name.to_owned(), value.into());
    }
    for name in ["sourceFileId", "naturalId", "subjectHeadings", "source", "identifiers", "notes", "metadata"]
    {
        if let Some(value) = authority.get(name).filter(|it| !it.is_null()) {
            map.insert(name.to_owned(), value.clone());
        }
    }
    map.insert("shared".to_owned(), false.into());
    map.insert("isTitleHeadingRef".to_owned(), row.field.ends_with("Title").into());
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_heading_is_a_row() {
        let authority = json!({
            "id": "a", "personalName": "Example, Ann", "sftPersonalName": ["Sample, Ann", "Ex, A."],
            "saftTopicalTerm": ["Testing"], "naturalId": "n1",
        });
        let found: Vec<_> =
            rows(&authority).into_iter().map(|it| (it.ref_type, it.heading_type, it.heading)).collect();
        let row = |a, b, c: &str| (a, b, c.to_owned());
        assert_eq!(
            found,
            [
                row("Authorized", "Personal Name", "Example, Ann"),
                row("Reference", "Personal Name", "Sample, Ann"),
                row("Reference", "Personal Name", "Ex, A."),
                row("Auth/Ref", "Topical", "Testing"),
            ]
        );
    }
}
