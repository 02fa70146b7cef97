//! Converts input as Jackson does, the library with which FOLIO's modules parse JSON: a number or a boolean is
//! converted to text if a string is declared, and a string is parsed if a number or a boolean is declared. Scripts that
//! migrate libraries send barcodes as numbers, and FOLIO has always accepted them.

use pinakes_store::{Arity, Type};
use serde_json::{Map, Number, Value};

use crate::platform::collection::{Collection, Kinds};

/// Names that all schemas of FOLIO declare as strings, or as lists of strings; sorted.
const TEXTS: [&str; 79] = [
    "accessionNumber",
    "addressLine1",
    "addressLine2",
    "administrativeNotes",
    "barcode",
    "callNumber",
    "callNumberPrefix",
    "callNumberSuffix",
    "chronology",
    "city",
    "classificationNumber",
    "code",
    "comments",
    "configName",
    "contributorTypeText",
    "copyNumber",
    "copyNumbers",
    "countryId",
    "date1",
    "date2",
    "dateOfPublication",
    "desc",
    "description",
    "descriptionOfPieces",
    "discoveryDisplayName",
    "displaySummary",
    "editions",
    "email",
    "enumeration",
    "externalSystemId",
    "feeFineType",
    "firstName",
    "formerIds",
    "group",
    "hrid",
    "indexTitle",
    "itemBarcode",
    "itemIdentifier",
    "itemLevelCallNumber",
    "itemLevelCallNumberPrefix",
    "itemLevelCallNumberSuffix",
    "label",
    "languages",
    "lastName",
    "linkText",
    "materialsSpecification",
    "message",
    "middleName",
    "missingPieces",
    "mobilePhone",
    "name",
    "natureOfContentTermIds",
    "newBarcode",
    "numberOfItems",
    "numberOfMissingPieces",
    "numberOfPieces",
    "password",
    "patronComments",
    "permissionName",
    "phone",
    "physicalDescriptions",
    "place",
    "postalCode",
    "preferredFirstName",
    "proxyUserBarcode",
    "publicNote",
    "publicationFrequency",
    "publicationRange",
    "publisher",
    "region",
    "servicePointName",
    "shelvingTitle",
    "staffNote",
    "subject",
    "title",
    "uri",
    "userBarcode",
    "username",
    "volume",
];

/// Converts numbers and booleans to texts wherever the name stands for a string, at any depth.
pub(crate) fn texts(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map.iter_mut() {
                if TEXTS.binary_search(&name.as_str()).is_ok() {
                    each(inner, &mut as_text);
                }
                // Values of settings are arbitrary JSON of the client.
                if name != "value" {
                    texts(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(texts),
        _ => {}
    }
}

/// Converts properties to the types that a collection declares, where Jackson would.
pub(crate) fn declared(collection: &Collection, body: &mut Map<String, Value>) {
    for (path, kinds) in collection.schema.types {
        let convert: fn(&mut Value) = match kinds {
            Kinds::Text | Kinds::Uuid => as_text,
            Kinds::Integer => as_integer,
            Kinds::Number => as_number,
            Kinds::Boolean => as_boolean,
            Kinds::List | Kinds::Object => continue,
        };
        each_at(body, path, &mut |it| each(it, &mut { convert }));
    }
    for column in collection.kind.columns {
        if matches!(column.ty, Type::Text | Type::Folded) && column.arity == Arity::One {
            each_at(body, column.path, &mut as_text);
        }
    }
}

/// Calls `change` with a value, or with each element of a list.
fn each(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(change),
        _ => change(value),
    }
}

/// Calls `change` with each value at a dotted path, including those inside lists.
fn each_at(body: &mut Map<String, Value>, path: &str, change: &mut impl FnMut(&mut Value)) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (body.get_mut(first), rest) {
        (Some(value), None) => change(value),
        (Some(Value::Object(inner)), Some(rest)) => each_at(inner, rest, change),
        (Some(Value::Array(list)), Some(rest)) => {
            list.iter_mut().filter_map(Value::as_object_mut).for_each(|it| each_at(it, rest, change));
        }
        _ => {}
    }
}

fn as_text(value: &mut Value) {
    if value.is_number() || value.is_boolean() {
        *value = Value::String(value.to_string());
    }
}

fn as_integer(value: &mut Value) {
    let whole = match value {
        Value::String(text) => text.trim().parse::<i64>().ok(),
        // Jackson truncates the fraction.
        Value::Number(number) if number.is_f64() => number.as_f64().map(f64::trunc).and_then(exactly),
        _ => None,
    };
    if let Some(whole) = whole {
        *value = whole.into();
    }
}

/// Converts a whole number of type `f64` to an integer, if that is exact.
fn exactly(real: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (real.abs() <= EXACT).then(|| format!("{real:.0}").parse().ok())?
}

fn as_number(value: &mut Value) {
    let Value::String(text) = value else { return };
    let text = text.trim();
    let number = match text.parse::<i64>() {
        Ok(whole) => Some(Number::from(whole)),
        Err(_) => text.parse::<f64>().ok().and_then(Number::from_f64),
    };
    if let Some(number) = number {
        *value = Value::Number(number);
    }
}

fn as_boolean(value: &mut Value) {
    let truth = match value {
        Value::String(text) => match text.trim() {
            "true" | "True" | "TRUE" => true,
            "false" | "False" | "FALSE" => false,
            _ => return,
        },
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole != 0,
            None => return,
        },
        _ => return,
    };
    *value = Value::Bool(truth);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(TEXTS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn scalars_become_texts_where_texts_are_meant() {
        let mut value = json!({
            "barcode": 4711, "active": true, "personal": {"phone": 49, "lastName": false},
            "list": [{"name": 1.5, "amount": 2}], "editions": [1, "2."], "value": 3,
        });
        texts(&mut value);
        let wanted = json!({
            "barcode": "4711", "active": true, "personal": {"phone": "49", "lastName": "false"},
            "list": [{"name": "1.5", "amount": 2}], "editions": ["1", "2."], "value": 3,
        });
        assert_eq!(value, wanted);
    }

    #[test]
    fn strings_become_what_is_declared() {
        let converted = |convert: fn(&mut Value), mut value: Value| {
            convert(&mut value);
            value
        };
        assert_eq!(converted(as_integer, json!(" 5 ")), json!(5));
        assert_eq!(converted(as_integer, json!(5.9)), json!(5));
        assert_eq!(converted(as_integer, json!("five")), json!("five"));
        assert_eq!(converted(as_number, json!("1.25")), json!(1.25));
        assert_eq!(converted(as_boolean, json!("true")), json!(true));
        assert_eq!(converted(as_boolean, json!(0)), json!(false));
        assert_eq!(converted(as_boolean, json!("yes")), json!("yes"));
    }
}
