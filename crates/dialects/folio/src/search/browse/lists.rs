//! The lists that can be browsed: of what records their entries are made, how they are sorted and shown.

use http::StatusCode;
use pinakes_store::{View, fold};
use serde_json::{Value, json};

use super::window::{Item, Row};
use crate::authorities::authority::AUTHORITIES;
use crate::authorities::headings;
use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::inventory::shelving;
use crate::platform::app::{Call, json_answer};
use crate::platform::collection::Collection;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// A list.
pub(super) struct List {
    pub(super) path: &'static str,
    pub(super) permission: &'static str,
    /// Names of the field that a query begins at; the first is shown.
    pub(super) anchors: &'static [&'static str],
    /// Fields of entries that are compared as a whole.
    pub(super) whole: &'static [&'static str],
    pub(super) of: fn() -> &'static Collection,
    /// What an entry is sorted by.
    pub(super) key: fn(&str) -> String,
    pub(super) rows: fn(&Value) -> Vec<Row>,
    /// Adds to an entry what is read only for those that are shown.
    pub(super) complete: fn(&mut View<'_>, &mut Item) -> Result<(), FolioError>,
    /// Parts of the list by name, with the ids of their types.
    options: &'static [(&'static str, &'static [&'static str])],
}

const CALL_NUMBER_TYPES: &[(&str, &[&str])] = &[
    ("all", &[]),
    ("lc", &["95467209-6d7b-468b-94df-0f5d7ad2747d"]),
    ("dewey", &["03dd64d0-5626-4ecd-8ece-4531e0069f35"]),
    ("nlm", &["703753ab-51f2-56fb-95c5-4fef1ae5d82c"]),
    ("sudoc", &["2d0a61e2-155a-5c7f-8567-a1c0a19d4813"]),
    ("other", &["89002095-204b-5a50-95d5-8ff2c5a92722"]),
    ("local", &[]),
];
const CLASSIFICATION_TYPES: &[(&str, &[&str])] = &[
    ("all", &[]),
    ("lc", &["ce176ace-a53e-4b4d-aa89-725ed7b2edac", "522b68ac-f107-5774-9f90-efb3a46bc02e"]),
    ("dewey", &["42471af9-7d25-4f3a-bf78-60d29dcf463b"]),
];

const PLAIN: fn(&mut View<'_>, &mut Item) -> Result<(), FolioError> = |_, _| Ok(());

/// Every list.
pub(super) static LISTS: [List; 6] = [
    List {
        path: "/browse/authorities",
        permission: "browse.authorities.collection.get",
        anchors: &["headingRef"],
        whole: &["authRefType", "headingType", "sourceFileId", "naturalId", "source"],
        of: || &AUTHORITIES,
        key: fold,
        rows: authorities,
        complete: PLAIN,
        options: &[],
    },
    List {
        path: "/browse/contributors/instances",
        permission: "browse.contributors.instances.collection.get",
        anchors: &["name"],
        whole: &["contributorNameTypeId", "authorityId"],
        of: || &INSTANCES,
        key: fold,
        rows: contributors,
        complete: PLAIN,
        options: &[],
    },
    List {
        path: "/browse/subjects/instances",
        permission: "browse.subjects.instances.collection.get",
        anchors: &["value"],
        whole: &["sourceId", "typeId", "authorityId"],
        of: || &INSTANCES,
        key: fold,
        rows: subjects,
        complete: PLAIN,
        options: &[],
    },
    List {
        path: "/browse/classification-numbers/{option}/instances",
        permission: "browse.classification-numbers.instances.collection.get",
        anchors: &["classificationNumber", "number"],
        whole: &["classificationTypeId"],
        of: || &INSTANCES,
        key: shelf_key,
        rows: classifications,
        complete: with_title,
        options: CLASSIFICATION_TYPES,
    },
    List {
        path: "/browse/call-numbers/instances",
        permission: "browse.call-numbers.instances.collection.get",
        anchors: &["fullCallNumber", "callNumber", "itemEffectiveShelvingOrder", "typedCallNumber"],
        whole: &["callNumberTypeId"],
        of: || &ITEMS,
        key: shelf_key,
        rows: call_numbers,
        complete: with_title,
        options: &[],
    },
    List {
        path: "/browse/call-numbers/{option}/instances",
        permission: "browse.call-numbers.instances.collection.get",
        anchors: &["fullCallNumber", "callNumber", "itemEffectiveShelvingOrder"],
        whole: &["callNumberTypeId"],
        of: || &ITEMS,
        key: shelf_key,
        rows: call_numbers,
        complete: with_title,
        options: CALL_NUMBER_TYPES,
    },
];

impl List {
    /// Ids of the types of a part of the list; none for all. Errors: 400 for a part that is not known.
    pub(super) fn types(&self, option: &str) -> Result<&'static [&'static str], FolioError> {
        if self.options.is_empty() {
            return Ok(&[]);
        }
        let found = self.options.iter().find(|it| it.0 == option);
        found.map(|it| it.1).ok_or_else(|| unknown_option(self.options, option))
    }
}

fn unknown_option(options: &[(&str, &[&str])], found: &str) -> FolioError {
    let names: Vec<&str> = options.iter().map(|it| it.0).collect();
    FolioError::bad_request(format!("browse option {found:?} is none of {}", names.join(", ")))
}

/// A number of a shelf as the shelf sorts it.
fn shelf_key(text: &str) -> String {
    shelving::order(Some(text), std::iter::empty()).map_or_else(|| fold(text), |it| fold(&it))
}

fn entries<'v>(body: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    body.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The named fields that there are.
fn picked(value: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
    Value::Object(found.collect())
}

fn authorities(body: &Value) -> Vec<Row> {
    let rows = headings::rows(body).into_iter();
    rows.map(|row| {
        let mut authority = headings::shown(body, &row);
        authority["isTitleHeadingRef"] = row.field.ends_with("Title").into();
        let mut shown = picked(
            &authority,
            &["authRefType", "headingType", "isTitleHeadingRef", "sourceFileId", "naturalId"],
        );
        shown["headingRef"] = row.heading.as_str().into();
        shown["authority"] = authority;
        shown["isAnchor"] = false.into();
        shown["shared"] = false.into();
        let id = text_at(body, "id").unwrap_or_default();
        let apart = format!("{}/{id}", row.field);
        Row { text: row.heading, apart, ty: None, shown, gathered: None, is_counted: false }
    })
    .collect()
}

fn contributors(body: &Value) -> Vec<Row> {
    let rows = entries(body, "contributors").filter_map(|it| {
        let text = text_at(it, "name")?.to_owned();
        let mut shown = picked(it, &["name", "contributorNameTypeId", "authorityId"]);
        shown["isAnchor"] = false.into();
        let part = |name: &str| text_at(it, name).unwrap_or_default().to_owned();
        let apart = format!("{}/{}/{text}", part("contributorNameTypeId"), part("authorityId"));
        let gathered = text_at(it, "contributorTypeId").unwrap_or_default().to_owned();
        shown["contributorTypeId"] = json!([]);
        let gathered = Some(("contributorTypeId", gathered)).filter(|it| !it.1.is_empty());
        Some(Row { text, apart, ty: None, shown, gathered, is_counted: true })
    });
    rows.collect()
}

fn subjects(body: &Value) -> Vec<Row> {
    let rows = entries(body, "subjects").filter_map(|it| {
        let text = text_at(it, "value")?.to_owned();
        let mut shown = picked(it, &["value", "authorityId", "sourceId", "typeId"]);
        shown["isAnchor"] = false.into();
        let part = |name: &str| text_at(it, name).unwrap_or_default().to_owned();
        let apart = format!("{}/{}/{}/{text}", part("authorityId"), part("sourceId"), part("typeId"));
        Some(Row { text, apart, ty: None, shown, gathered: None, is_counted: true })
    });
    rows.collect()
}

fn classifications(body: &Value) -> Vec<Row> {
    let rows = entries(body, "classifications").filter_map(|it| {
        let text = text_at(it, "classificationNumber")?.to_owned();
        let ty = text_at(it, "classificationTypeId").map(str::to_owned);
        let mut shown = picked(it, &["classificationNumber", "classificationTypeId"]);
        shown["isAnchor"] = false.into();
        let apart = format!("{}/{text}", ty.as_deref().unwrap_or_default());
        Some(Row { text, apart, ty, shown, gathered: None, is_counted: true })
    });
    rows.collect()
}

fn call_numbers(body: &Value) -> Vec<Row> {
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
    let apart = format!("{}/{full}", ty.as_deref().unwrap_or_default());
    // The shelf sorts by the number; what stands before it is where the book stands.
    vec![Row { text: number.to_owned(), apart, ty, shown, gathered: None, is_counted: true }]
}

/// The title of the one instance that has an entry.
fn with_title(view: &mut View<'_>, item: &mut Item) -> Result<(), FolioError> {
    let Some(record) = item.record.clone().filter(|_| item.n_records == 1) else { return Ok(()) };
    let mut get = |collection: &'static Collection, id: &str| -> Result<Option<Value>, FolioError> {
        Ok(view.get(&collection.kind, id)?.map(|it| it.json()).transpose()?)
    };
    let mut instance = get(&INSTANCES, &record)?;
    if instance.is_none()
        && let Some(found) = get(&ITEMS, &record)?
        && let Some(holdings) = get(&HOLDINGS, text_at(&found, "holdingsRecordId").unwrap_or_default())?
    {
        instance = get(&INSTANCES, text_at(&holdings, "instanceId").unwrap_or_default())?;
    }
    if let Some(instance) = instance {
        item.shown["instanceTitle"] = instance.get("title").cloned().unwrap_or_default();
    }
    Ok(())
}

/// Which types the parts of a list are made of.
pub(super) fn routes(routes: Routes) -> Routes {
    routes.get("/browse/config/{option}", Access::to("browse.config.collection.get"), config)
}

async fn config(call: Call) -> Answer {
    let options = match call.param("option") {
        "instance-classification" => CLASSIFICATION_TYPES,
        "instance-call-number" => CALL_NUMBER_TYPES,
        other => {
            return Err(FolioError::bad_request(format!(
                "{other:?} is none of instance-classification, instance-call-number"
            )));
        }
    };
    let shown: Vec<Value> = options
        .iter()
        .map(|(name, types)| {
            let algorithm = if *name == "all" { "default" } else { name };
            json!({"id": name, "shelvingAlgorithm": algorithm, "typeIds": types})
        })
        .collect();
    Ok(json_answer(StatusCode::OK, &json!({"configs": shown, "totalRecords": shown.len()})))
}
