//! What items take from their holdings: place, call number, shelving order.

use serde_json::{Map, Value, json};

use crate::inventory::shelving;

/// Sets what follows from the item and its holdings: place, call number, shelving order.
pub(crate) fn derive(item: &mut Map<String, Value>, holdings: &Value) {
    let text =
        |name: &str| item.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned);
    let held = |name: &str| {
        holdings.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let location = text("temporaryLocationId")
        .or_else(|| text("permanentLocationId"))
        .or_else(|| held("effectiveLocationId"));
    let mut components = Map::new();
    for (name, of_item, of_holdings) in [
        ("callNumber", "itemLevelCallNumber", "callNumber"),
        ("prefix", "itemLevelCallNumberPrefix", "callNumberPrefix"),
        ("suffix", "itemLevelCallNumberSuffix", "callNumberSuffix"),
        ("typeId", "itemLevelCallNumberTypeId", "callNumberTypeId"),
    ] {
        components.extend(text(of_item).or_else(|| held(of_holdings)).map(|it| (name.to_owned(), json!(it))));
    }
    let part = |name: &str| components.get(name).and_then(Value::as_str);
    let (volume, enumeration) = (text("volume"), text("enumeration"));
    let (chronology, copy) = (text("chronology"), text("copyNumber"));
    let rest =
        [volume.as_deref(), enumeration.as_deref(), chronology.as_deref(), copy.as_deref(), part("suffix")];
    let order = shelving::order(part("callNumber"), rest);
    item.insert("effectiveCallNumberComponents".to_owned(), Value::Object(components));
    for (name, value) in [("effectiveLocationId", location), ("effectiveShelvingOrder", order)] {
        match value {
            Some(value) => drop(item.insert(name.to_owned(), value.into())),
            None => drop(item.shift_remove(name)),
        }
    }
}
