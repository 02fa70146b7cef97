//! Changes to single fields of a version: adding values, replacing fields, deleting values.

use super::fields::{Content, Field, Fields};
use super::registry::Registry;

/// Adds values: sets an empty field, adds the missing values to a field that takes several, and leaves a filled field
/// that takes one value as it is.
pub fn add(registry: &Registry, fields: &mut Fields, update: Fields) {
    for field in update.0 {
        let Some(there) = fields.get(field.at) else {
            fields.set(registry, field);
            continue;
        };
        if !registry.at(field.at).is_multiple {
            continue;
        }
        let content = match (there.content.clone(), field.content) {
            (Content::Texts(list), Content::Texts(more)) => Content::Texts(joined(list, more)),
            (Content::Compounds(list), Content::Compounds(more)) => Content::Compounds(joined(list, more)),
            (there, _) => there,
        };
        fields.set(registry, Field { at: field.at, content });
    }
}

fn joined<T: PartialEq>(mut list: Vec<T>, more: Vec<T>) -> Vec<T> {
    for it in more {
        if !list.contains(&it) {
            list.push(it);
        }
    }
    list
}

/// Replaces the fields that `update` contains; the others stay.
pub fn replace(registry: &Registry, fields: &mut Fields, update: Fields) {
    update.0.into_iter().for_each(|field| fields.set(registry, field));
}

/// Deletes the values in `update`.
///
/// Errors: one of the values does not exist (the text follows `Delete metadata failed: `). Nothing is changed then.
pub fn delete(registry: &Registry, fields: &mut Fields, update: &Fields) -> Result<(), String> {
    let mut next = fields.clone();
    for field in &update.0 {
        let ty = registry.at(field.at);
        let missing = |value: String| format!("{}: {value} not found.", registry.display_name(ty));
        let there = next.get(field.at).map(|it| it.content.clone());
        let content = match (there, &field.content) {
            (Some(Content::Texts(list)), Content::Texts(gone)) => {
                Content::Texts(without(list, gone).map_err(|it| missing(it.clone()))?)
            }
            (Some(Content::Compounds(list)), Content::Compounds(gone)) => {
                Content::Compounds(without(list, gone).map_err(|it| missing(shown(it)))?)
            }
            (_, Content::Texts(gone)) => return Err(missing(gone.first().cloned().unwrap_or_default())),
            (_, Content::Compounds(gone)) => {
                return Err(missing(gone.first().map(|it| shown(it)).unwrap_or_default()));
            }
        };
        let is_empty = matches!(&content, Content::Texts(list) if list.is_empty())
            || matches!(&content, Content::Compounds(list) if list.is_empty());
        match is_empty {
            true => next.remove(field.at),
            false => next.set(registry, Field { at: field.at, content }),
        }
    }
    *fields = next;
    Ok(())
}

fn without<T: PartialEq>(mut list: Vec<T>, gone: &[T]) -> Result<Vec<T>, &T> {
    for it in gone {
        let place = list.iter().position(|there| there == it).ok_or(it)?;
        list.remove(place);
    }
    Ok(list)
}

/// Formats a compound value for display.
fn shown(children: &[Field]) -> String {
    let texts = children.iter().filter_map(|it| match &it.content {
        Content::Texts(list) => Some(list.join("; ")),
        Content::Compounds(_) => None,
    });
    texts.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(json: Value) -> Fields {
        Fields::read_single(&Registry::shipped(), &json!({"fields": json})).unwrap()
    }

    fn keyword(value: &str) -> Value {
        json!({"keywordValue": {"typeName": "keywordValue", "value": value}})
    }

    #[test]
    fn adding_keeps_what_is_there() {
        let registry = Registry::shipped();
        let mut there = fields(json!([
            {"typeName": "title", "value": "T"}, {"typeName": "subject", "value": ["Law"]}]));
        let update = fields(json!([
            {"typeName": "title", "value": "U"}, {"typeName": "subject", "value": ["Law", "Other"]},
            {"typeName": "keyword", "value": [keyword("a")]}]));
        add(&registry, &mut there, update);
        let expected = fields(json!([
            {"typeName": "title", "value": "T"}, {"typeName": "subject", "value": ["Law", "Other"]},
            {"typeName": "keyword", "value": [keyword("a")]}]));
        assert_eq!(there, expected);
    }

    #[test]
    fn replacing_and_deleting() {
        let registry = Registry::shipped();
        let mut there = fields(json!([
            {"typeName": "title", "value": "T"}, {"typeName": "keyword", "value": [keyword("a"), keyword("b")]}]));
        replace(&registry, &mut there, fields(json!([{"typeName": "title", "value": "U"}])));
        let gone = fields(json!([{"typeName": "keyword", "value": [keyword("c")]}]));
        assert_eq!(delete(&registry, &mut there, &gone), Err("Keyword: c not found.".to_owned()));
        delete(&registry, &mut there, &fields(json!([{"typeName": "keyword", "value": [keyword("a")]}])))
            .unwrap();
        delete(&registry, &mut there, &fields(json!([{"typeName": "title", "value": "U"}]))).unwrap();
        assert_eq!(there, fields(json!([{"typeName": "keyword", "value": [keyword("b")]}])));
    }
}
