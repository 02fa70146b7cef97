//! The entries of instances and items in browse lists.

use pinakes_store::{Listing, fold};
use serde_json::{Value, json};

use super::shelving;
use crate::platform::json::text_at;
use crate::platform::listed::{Row, Shape, picked};

pub(crate) const CONTRIBUTORS: Shape =
    Shape { anchor: "name", traits: &["contributorNameTypeId"], others: &["authorityId"], key: fold };
pub(crate) const SUBJECTS: Shape =
    Shape { anchor: "value", traits: &["sourceId", "typeId"], others: &["authorityId"], key: fold };
pub(crate) const CLASSIFICATIONS: Shape =
    Shape { anchor: "classificationNumber", traits: &["classificationTypeId"], others: &[], key: shelf_key };
pub(crate) const CALL_NUMBERS: Shape = Shape {
    anchor: "fullCallNumber",
    traits: &["callNumberTypeId"],
    others: &["callNumber", "callNumberPrefix", "callNumberSuffix"],
    key: shelf_key,
};

/// The browse lists of the kind of instances.
pub(crate) const OF_INSTANCES: &[Listing] = &[
    Listing { name: "contributors", entries: |body, visit| CONTRIBUTORS.hand_out(contributors(body), visit) },
    Listing { name: "subjects", entries: |body, visit| SUBJECTS.hand_out(subjects(body), visit) },
    Listing {
        name: "classifications",
        entries: |body, visit| CLASSIFICATIONS.hand_out(classifications(body), visit),
    },
];

/// The browse lists of the kind of items.
pub(crate) const OF_ITEMS: &[Listing] = &[Listing {
    name: "call_numbers",
    entries: |body, visit| CALL_NUMBERS.hand_out(call_numbers(body), visit),
}];

/// Returns the sort key of a shelf number, which sorts as the shelf does.
pub(crate) fn shelf_key(text: &str) -> String {
    shelving::order(Some(text), std::iter::empty()).map_or_else(|| fold(text), |it| fold(&it))
}

fn entries<'v>(body: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    body.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the contributors of an instance.
pub(crate) fn contributors(body: &Value) -> Vec<Row> {
    let rows = entries(body, "contributors").filter_map(|it| {
        let text = text_at(it, "name")?.to_owned();
        let mut shown = picked(it, &["name", "contributorNameTypeId", "authorityId"]);
        shown["isAnchor"] = false.into();
        let gathered = text_at(it, "contributorTypeId").unwrap_or_default().to_owned();
        shown["contributorTypeId"] = json!([]);
        let gathered = Some(("contributorTypeId", gathered)).filter(|it| !it.1.is_empty());
        Some(Row { text, apart: String::new(), shown, gathered, is_counted: true })
    });
    rows.collect()
}

/// Returns the subjects of an instance.
pub(crate) fn subjects(body: &Value) -> Vec<Row> {
    let rows = entries(body, "subjects").filter_map(|it| {
        let text = text_at(it, "value")?.to_owned();
        let mut shown = picked(it, &["value", "authorityId", "sourceId", "typeId"]);
        shown["isAnchor"] = false.into();
        Some(Row { text, apart: String::new(), shown, gathered: None, is_counted: true })
    });
    rows.collect()
}

/// Returns the classification numbers of an instance.
pub(crate) fn classifications(body: &Value) -> Vec<Row> {
    let rows = entries(body, "classifications").filter_map(|it| {
        let text = text_at(it, "classificationNumber")?.to_owned();
        let mut shown = picked(it, &["classificationNumber", "classificationTypeId"]);
        shown["isAnchor"] = false.into();
        Some(Row { text, apart: String::new(), shown, gathered: None, is_counted: true })
    });
    rows.collect()
}

/// Returns the effective call number of an item.
pub(crate) fn call_numbers(body: &Value) -> Vec<Row> {
    let parts = body.get("effectiveCallNumberComponents").unwrap_or(&Value::Null);
    let Some(number) = text_at(parts, "callNumber") else { return Vec::new() };
    let affixes = [text_at(parts, "prefix"), Some(number), text_at(parts, "suffix")];
    let full = affixes.into_iter().flatten().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
    let ty = text_at(parts, "typeId").map(str::to_owned);
    let mut shown = json!({
        "fullCallNumber": full, "callNumber": number, "callNumberTypeId": ty,
        "callNumberPrefix": text_at(parts, "prefix"), "callNumberSuffix": text_at(parts, "suffix"),
        "isAnchor": false,
    });
    if let Value::Object(map) = &mut shown {
        map.retain(|_, value| !value.is_null());
    }
    // The shelf is sorted by the number; the prefix says where the shelf is.
    vec![Row { text: number.to_owned(), apart: String::new(), shown, gathered: None, is_counted: true }]
}
