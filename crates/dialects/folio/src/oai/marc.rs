//! The MARC formats of OAI-PMH: `marc21`, the source record of an instance, and `marc21_withholdings`, the same with
//! holdings and items in 952 ff and their links in 856 (mod-oai-pmh).

use pinakes_marc::{DataField, Record, Tag, xml};
use pinakes_store::{Expr, Query, View};
use serde_json::Value;

use crate::inventory::holdings::HOLDINGS;
use crate::inventory::items::ITEMS;
use crate::places::{CAMPUSES, INSTITUTIONS, LIBRARIES, LOCATIONS};
use crate::platform::collection::Collection;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::source_records::{marc, source_storage};
use crate::vocabularies::{CALL_NUMBER_TYPES, LOAN_TYPES, MATERIAL_TYPES};

/// Start tag of a `record` element of MARCXML.
const RECORD: &str = "<record xmlns=\"http://www.loc.gov/MARC21/slim\" \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.loc.gov/MARC21/slim \
     http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd\">";

/// Returns the source record of an instance; `None` if it has no readable one.
pub(super) fn source(view: &mut View<'_>, instance: &str) -> Result<Option<Record>, FolioError> {
    let found = source_storage::current_of(view, "instanceId", instance)?;
    Ok(found.as_ref().and_then(|it| it.pointer("/parsedRecord/content")).and_then(marc::from_value))
}

/// Generates a record from an instance that has no source record.
pub(super) fn made(instance: &Value) -> Record {
    let mut record = crate::data_export::run::made(instance);
    let id = text_at(instance, "id").unwrap_or_default();
    if !record.data_fields("999").any(|it| it.indicators == ['f', 'f']) {
        push(&mut record, "999", vec![("i", Some(id.to_owned()))]);
    }
    record
}

/// Formats a record as MARCXML, on its own.
pub(super) fn shown(record: &Record) -> String {
    let mut text = String::new();
    xml::write(record, &mut text);
    text.trim().replacen("<record>", RECORD, 1)
}

/// Sets `$t` of 999 ff to whether the record is suppressed from discovery: `1` or `0`.
pub(super) fn tell_suppressed(record: &mut Record, is_suppressed: bool) {
    let value = if is_suppressed { "1" } else { "0" };
    for field in record.data_fields_mut("999") {
        if field.indicators == ['f', 'f'] {
            field.set('t', value);
        }
    }
}

/// Adds the data of an instance's holdings and items; those suppressed from discovery are left out, or marked in `$t`
/// if `with_suppressed`.
pub(super) fn add_holdings(
    view: &mut View<'_>,
    record: &mut Record,
    instance: &str,
    with_suppressed: bool,
) -> Result<(), FolioError> {
    let of = |path: &str, id: &str| Query::filter(Expr::Is(path.into(), id.into()));
    for holdings in view.find(&HOLDINGS.kind, &of("instanceId", instance))? {
        let body = holdings.json()?;
        if is_hidden(&body) && !with_suppressed {
            continue;
        }
        let items = view.find(&ITEMS.kind, &of("holdingsRecordId", &holdings.id))?;
        let items = items.iter().map(|it| it.json()).collect::<Result<Vec<Value>, _>>()?;
        let shown: Vec<&Value> = items.iter().filter(|it| with_suppressed || !is_hidden(it)).collect();
        if items.is_empty() {
            push(record, "952", described(view, &body, None)?);
        }
        for item in &shown {
            push(record, "952", described(view, &body, Some(item))?);
        }
        for source in std::iter::once(&body).chain(shown) {
            for access in source.get("electronicAccess").and_then(Value::as_array).into_iter().flatten() {
                let field =
                    [("u", "uri"), ("y", "linkText"), ("3", "materialsSpecification"), ("z", "publicNote")];
                let field = field.map(|(code, name)| (code, text_at(access, name).map(str::to_owned)));
                let mut field = field.to_vec();
                if with_suppressed {
                    let is_told = if is_hidden(&body) || is_hidden(source) { "1" } else { "0" };
                    field.push(("t", Some(is_told.to_owned())));
                }
                push(record, "856", field);
            }
        }
    }
    Ok(())
}

fn is_hidden(body: &Value) -> bool {
    body.get("discoverySuppress") == Some(&true.into())
}

/// Appends a field with the subfields that have a value.
fn push(record: &mut Record, tag: &str, subfields: Vec<(&str, Option<String>)>) {
    let Ok(number) = Tag::try_from(tag) else { return };
    let indicators = if tag == "856" { ['4', '0'] } else { ['f', 'f'] };
    let mut field = DataField::new(number, indicators);
    for (code, value) in subfields {
        if let (Some(code), Some(value)) = (code.chars().next(), value.filter(|it| !it.is_empty())) {
            field.push(code, value);
        }
    }
    if !field.subfields.is_empty() {
        record.fields.push(field.into());
    }
}

/// Returns the location and description of an item, or of holdings without items.
fn described(
    view: &mut View<'_>,
    holdings: &Value,
    item: Option<&Value>,
) -> Result<Vec<(&'static str, Option<String>)>, FolioError> {
    let mut get = |collection: &'static Collection, id: Option<&str>| -> Result<Option<Value>, FolioError> {
        let Some(id) = id else { return Ok(None) };
        Ok(view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?)
    };
    let name = |it: &Option<Value>| it.as_ref().and_then(|it| text_at(it, "name")).map(str::to_owned);
    let text = |it: &Value, name: &str| text_at(it, name).map(str::to_owned);
    let location = text_at(item.unwrap_or(holdings), "effectiveLocationId");
    let location = get(&LOCATIONS, location)?;
    let part = |name: &str| location.as_ref().and_then(|it| text_at(it, name));
    let institution = get(&INSTITUTIONS, part("institutionId"))?;
    let campus = get(&CAMPUSES, part("campusId"))?;
    let library = get(&LIBRARIES, part("libraryId"))?;
    let parts = item.and_then(|it| it.get("effectiveCallNumberComponents"));
    let (number, prefix, suffix, ty) = match parts {
        Some(parts) => ("callNumber", "prefix", "suffix", text_at(parts, "typeId")),
        None => ("callNumber", "callNumberPrefix", "callNumberSuffix", text_at(holdings, "callNumberTypeId")),
    };
    let numbered = parts.unwrap_or(holdings);
    let ty = get(&CALL_NUMBER_TYPES, ty)?;
    let material = get(&MATERIAL_TYPES, item.and_then(|it| text_at(it, "materialTypeId")))?;
    let loan_type =
        item.and_then(|it| text_at(it, "temporaryLoanTypeId").or(text_at(it, "permanentLoanTypeId")));
    let loan_type = get(&LOAN_TYPES, loan_type)?;
    let of_item = |name: &str| item.and_then(|it| text(it, name));
    Ok(vec![
        ("a", name(&institution)),
        ("b", name(&campus)),
        ("c", name(&library)),
        ("d", name(&location)),
        ("e", text(numbered, number)),
        ("f", text(numbered, prefix)),
        ("g", text(numbered, suffix)),
        ("h", name(&ty)),
        ("i", name(&material)),
        ("j", of_item("volume")),
        ("k", of_item("enumeration")),
        ("l", of_item("chronology")),
        ("m", of_item("barcode")),
        ("n", of_item("copyNumber").or_else(|| text(holdings, "copyNumber"))),
        ("p", name(&loan_type)),
        ("t", Some(if is_hidden(holdings) || item.is_some_and(is_hidden) { "1" } else { "0" }.to_owned())),
    ])
}
