//! The metadata blocks of a version, for its page: every block that it has, with the titles that Dataverse gives to its
//! fields.

use serde_json::Value;

use super::description::Field;
use crate::app::{Site, Visitor};
use crate::fields::encoded;
use crate::record::{Link, ShownBlock, ShownField, ShownPart, items, text};

/// Fields that a page shows elsewhere, with the part that it shows there: the heading, and the text below it. Values that
/// have other parts are shown with their block as well.
const SHOWN_ABOVE: [(&str, &str); 2] = [("title", ""), ("dsDescription", "dsDescriptionValue")];
/// Number of characters from which a value is no link to a search for its like: nobody else has written the same.
const LONG_CHARS: usize = 200;

/// Returns the blocks of a version in their order. Where a block's description cannot be read, its fields have their
/// names for titles.
pub(crate) async fn blocks_of(site: &Site, visitor: &Visitor, version: &Value) -> Vec<ShownBlock> {
    let mut shown = Vec::new();
    for (name, block) in version["metadataBlocks"].as_object().into_iter().flatten() {
        let path = format!("/api/metadatablocks/{}", encoded(name));
        let described = site.described(visitor, &path).await.unwrap_or_default();
        let fields = described.first().map_or(&[][..], |it| it.fields.as_slice());
        let fields: Vec<ShownField> =
            items(block, "fields").iter().filter_map(|it| shown_field(it, fields)).collect();
        if !fields.is_empty() {
            let title = Some(text(block, "displayName")).filter(|it| !it.is_empty());
            shown.push(ShownBlock {
                name: name.clone(),
                title: title.unwrap_or_else(|| name.clone()),
                fields,
            });
        }
    }
    shown
}

/// Returns a field with what it says; `None` if that is nothing, or on the page anyway. Mail addresses are left out, as
/// whoever collects them reads pages.
fn shown_field(it: &Value, described: &[Field]) -> Option<ShownField> {
    let name = text(it, "typeName");
    let field = described.iter().find(|it| it.name == name);
    if field.is_some_and(Field::is_mail) {
        return None;
    }
    let values = match &it["value"] {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    let has_more = |value: &Value, above: &str| {
        value.as_object().is_some_and(|parts| parts.keys().any(|part| part.as_str() != above))
    };
    if SHOWN_ABOVE.iter().any(|(above, part)| name == *above && !values.iter().any(|it| has_more(it, part))) {
        return None;
    }
    let lines = values.iter().map(|value| match value {
        Value::Object(parts) => {
            let described = field.map_or(&[][..], |it| it.parts.as_slice());
            parts.values().flat_map(|part| shown_parts(part, described)).collect()
        }
        _ => texts_of(value).into_iter().map(|it| part(String::new(), &name, it, field)).collect(),
    });
    let lines: Vec<Vec<ShownPart>> = lines.filter(|it: &Vec<ShownPart>| !it.is_empty()).collect();
    let title = field.map_or(name, |it| it.title.clone());
    (!lines.is_empty()).then_some(ShownField { title, lines })
}

/// Returns a part of a compound value, once for each of its texts.
fn shown_parts(it: &Value, described: &[Field]) -> Vec<ShownPart> {
    let name = text(it, "typeName");
    let field = described.iter().find(|it| it.name == name);
    if field.is_some_and(Field::is_mail) {
        return Vec::new();
    }
    let title = field.map_or(&name, |it| &it.title);
    texts_of(&it["value"]).into_iter().map(|it| part(title.clone(), &name, it, field)).collect()
}

fn part(title: String, name: &str, text: String, field: Option<&Field>) -> ShownPart {
    ShownPart { title, value: linked(name, text, field) }
}

/// Returns the text as a link: an address to itself, a value that searches compare to those like it.
fn linked(name: &str, text: String, field: Option<&Field>) -> Link {
    let Some(field) = field else { return Link::plain(text) };
    if field.is_address() {
        return if text.starts_with('/') { Link::plain(text) } else { Link::to(text.clone(), text) };
    }
    if !field.is_compared() || LONG_CHARS < text.chars().count() {
        return Link::plain(text);
    }
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let query = encoded(&format!("{name}:\"{quoted}\""));
    Link::to(text, format!("/site/search?q={query}&in=deposits"))
}

/// Returns the texts of a value without parts.
fn texts_of(value: &Value) -> Vec<String> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    let shown = list.iter().map(|it| match it {
        Value::String(text) => text.clone(),
        Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
        other => other.to_string(),
    });
    shown.filter(|it| !it.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::description::Block;
    use super::*;

    fn described() -> Vec<Field> {
        let list = json!([{"name": "b", "displayName": "B", "fields": {
            "title": {"name": "title", "title": "Title", "type": "TEXT"},
            "dsDescription": {"name": "dsDescription", "title": "Description", "type": "NONE", "childFields": {
                "dsDescriptionValue": {"name": "dsDescriptionValue", "title": "Text", "type": "TEXTBOX"},
                "dsDescriptionDate": {"name": "dsDescriptionDate", "title": "Date", "type": "DATE"},
            }},
            "unit": {"name": "unit", "title": "Unit", "type": "TEXT", "multiple": true,
                "isAdvancedSearchFieldType": true},
            "notes": {"name": "notes", "title": "Notes", "type": "TEXTBOX", "isAdvancedSearchFieldType": true},
            "contact": {"name": "contact", "title": "Contact", "type": "NONE", "childFields": {
                "who": {"name": "who", "title": "Name", "type": "TEXT"},
                "mail": {"name": "mail", "title": "E-mail", "type": "EMAIL"},
            }},
            "site": {"name": "site", "title": "Site", "type": "URL", "isAdvancedSearchFieldType": true},
        }}]);
        Block::list(&list).remove(0).fields
    }

    fn field(name: &str, value: Value) -> Option<ShownField> {
        shown_field(&json!({"typeName": name, "value": value}), &described())
    }

    /// Returns title, text and address of each part of each line.
    fn parts(name: &str, value: Value) -> Vec<Vec<(String, String, Option<String>)>> {
        let lines = field(name, value).map(|it| it.lines).unwrap_or_default();
        let part = |it: ShownPart| (it.title, it.value.text, it.value.href);
        lines.into_iter().map(|line| line.into_iter().map(part).collect()).collect()
    }

    fn plain(title: &str, text: &str) -> (String, String, Option<String>) {
        (title.to_owned(), text.to_owned(), None)
    }

    #[test]
    fn values_are_shown_by_their_sort() {
        assert_eq!(field("notes", json!("two\nlines")).map(|it| it.title), Some("Notes".to_owned()));
        assert_eq!(parts("notes", json!("two\nlines")), [[plain("", "two\nlines")]]);
        let href = "/site/search?q=unit%3A%22a%20%5C%22b%5C%22%22&in=deposits".to_owned();
        assert_eq!(
            parts("unit", json!(["a \"b\"", "", "x".repeat(201)])),
            [vec![(String::new(), "a \"b\"".to_owned(), Some(href))], vec![plain("", &"x".repeat(201))]]
        );
        let address = "https://example.org/".to_owned();
        assert_eq!(parts("site", json!(address)), [[(String::new(), address.clone(), Some(address))]]);
        assert_eq!(parts("site", json!("javascript:alert(1)")), [[plain("", "javascript:alert(1)")]]);
        assert_eq!(parts("site", json!("/site/users")), [[plain("", "/site/users")]]);
        assert_eq!(parts("of nobody", json!([7, true, null])), [[plain("", "7")], [plain("", "true")]]);
        assert_eq!(field("notes", json!(" ")), None);
        let who = json!({"typeName": "who", "value": "Ada"});
        let mail = json!({"typeName": "mail", "value": "ada@example.org"});
        assert_eq!(parts("contact", json!([{"who": who, "mail": mail}])), [[plain("Name", "Ada")]]);
        assert_eq!(field("contact", json!([{"mail": mail}])), None);
    }

    #[test]
    fn what_stands_above_is_not_repeated_but_nothing_is_left_out() {
        assert_eq!(field("title", json!("A title")), None);
        let text = json!({"typeName": "dsDescriptionValue", "value": "A text"});
        let date = json!({"typeName": "dsDescriptionDate", "value": "2026-01-01"});
        assert_eq!(field("dsDescription", json!([{"dsDescriptionValue": text}])), None);
        assert_eq!(
            parts("dsDescription", json!([{"dsDescriptionValue": text, "dsDescriptionDate": date}])),
            [[plain("Text", "A text"), plain("Date", "2026-01-01")]]
        );
    }
}
