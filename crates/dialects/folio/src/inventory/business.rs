//! `/inventory/…`: the stored records as staff see them, with the names of the records they refer to (mod-inventory).

use std::collections::{BTreeSet, HashMap};

use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode};
use pinakes_http::answer::{self, JoinedBodies};
use pinakes_store::{Expr, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use super::relations::{BOUND_WITH_PARTS, INSTANCE_RELATIONSHIPS, PRECEDING_SUCCEEDING_TITLES};
use super::staff_rules::{self, barcode_taken};
use crate::places::LOCATIONS;
use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Lock, Missing, Page, Writer, delete, insert, page_of, put,
};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::{self, text_at};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::source_records::source_storage;
use crate::vocabularies::{LOAN_TYPES, MATERIAL_TYPES};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Statuses that staff may set, and the last part of the path for each.
const MARKS: [(&str, &str); 9] = [
    ("mark-in-process", "In process"),
    ("mark-in-process-non-requestable", "In process (non-requestable)"),
    ("mark-intellectual-item", "Intellectual item"),
    ("mark-long-missing", "Long missing"),
    ("mark-missing", "Missing"),
    ("mark-restricted", "Restricted"),
    ("mark-unavailable", "Unavailable"),
    ("mark-unknown", "Unknown"),
    ("mark-withdrawn", "Withdrawn"),
];
/// Statuses that only circulation and orders may change.
const NOT_FOR_STAFF: [&str; 7] = [
    "Checked out",
    "Claimed returned",
    "Declared lost",
    "Aged to lost",
    "Lost and paid",
    "On order",
    "Order closed",
];

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let mut routes = routes
        .get("/inventory/items", to("inventory.items.collection.get"), items)
        .post("/inventory/items", to("inventory.items.item.post"), create_item)
        .get("/inventory/items/{id}", to("inventory.items.item.get"), item)
        .put("/inventory/items/{id}", to("inventory.items.item.put"), replace_item)
        .delete("/inventory/items/{id}", to("inventory.items.item.delete"), |call| remove(call, &ITEMS))
        .on(Method::PATCH, "/inventory/items/{id}", to("inventory.items.item.patch.execute"), |call| {
            patch(call, &ITEMS)
        })
        .delete("/inventory/items", to("inventory.items.collection.delete"), |call| {
            collection::remove_by_query(call, &ITEMS)
        })
        .post("/inventory/items/retrieve", to("inventory.items.retrieve.collection.post"), retrieve_items)
        .get("/inventory/instances", to("inventory.instances.collection.get"), instances)
        .post("/inventory/instances", to("inventory.instances.item.post"), create_instance)
        .get("/inventory/instances/{id}", to("inventory.instances.item.get"), instance)
        .put("/inventory/instances/{id}", to("inventory.instances.item.put"), replace_instance)
        .delete("/inventory/instances/{id}", to("inventory.instances.item.delete"), |call| {
            remove(call, &INSTANCES)
        })
        .on(
            Method::PATCH,
            "/inventory/instances/{id}",
            to("inventory.instances.item.patch.execute"),
            |call| patch(call, &INSTANCES),
        )
        .delete("/inventory/instances", to("inventory.instances.collection.delete"), |call| {
            collection::remove_by_query(call, &INSTANCES)
        })
        .get("/inventory/holdings", to("inventory.holdings.collection.get"), holdings)
        .get("/inventory/holdings/{id}", to("inventory.holdings.item.get"), |call| {
            collection::by_id(call, &HOLDINGS)
        })
        .put("/inventory/holdings/{id}", to("inventory.holdings.update"), replace_holdings);
    for (path, status) in MARKS {
        let path = format!("/inventory/items/{{id}}/{path}");
        routes = routes.post(&path, to("inventory.items.item.mark.post"), move |call| mark(call, status));
    }
    routes
}

/// Builds a list answer without the details that storage adds.
fn list_answer(list: &str, bodies: Vec<Value>, total: u64) -> Answer {
    let bodies = bodies.iter().map(json::bytes).collect();
    let head = format!("{{\"{list}\" : [");
    let joined = JoinedBodies::new(head, bodies, format!("],\"totalRecords\" : {total}}}"));
    Ok(answer::with_body(StatusCode::OK, JSON, joined.into_body()))
}

async fn holdings(call: Call) -> Answer {
    let page = Page::of(&call)?;
    collection::answer_list(&call, &HOLDINGS, page).await
}

async fn items(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (records, total) = page_of(view, &ITEMS, &page)?;
        Ok((shown_items(view, &records)?, total))
    };
    let (bodies, total) = call.db().read(Weight::Scan, read).await?;
    list_answer("items", bodies, total)
}

async fn item(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let Some(record) = view.get(&ITEMS.kind, &id)? else { return Ok(None) };
        let Some(mut shown) = shown_items(view, &[record])?.pop() else { return Ok(None) };
        if shown["isBoundWith"] == true {
            shown["boundWithTitles"] = bound_titles(view, &id)?.into();
        }
        Ok(Some(shown))
    };
    let found = call.db().read(Weight::Point, read).await?;
    let body = found.ok_or_else(|| FolioError::not_found("Not Found"))?;
    Ok(json_answer(StatusCode::OK, &body))
}

/// Returns the holdings that an item is bound with, each with its instance.
fn bound_titles(view: &mut View<'_>, item: &str) -> Result<Vec<Value>, FolioError> {
    let parts = view.find(&BOUND_WITH_PARTS.kind, &Query::filter(Expr::Is("itemId".into(), item.into())))?;
    let parts = parts.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
    let mut titles = Vec::new();
    for id in parts.iter().filter_map(|it| text_at(it, "holdingsRecordId")) {
        let Some(holdings) = view.get(&HOLDINGS.kind, id)?.map(|it| it.json()).transpose()? else { continue };
        let instance = view.get(&INSTANCES.kind, text_at(&holdings, "instanceId").unwrap_or_default())?;
        let instance = instance.map(|it| it.json()).transpose()?.unwrap_or_default();
        titles.push(json!({
            "briefHoldingsRecord": {"id": id, "hrid": holdings.get("hrid")},
            "briefInstance": {
                "id": instance.get("id"), "title": instance.get("title"), "hrid": instance.get("hrid"),
            },
        }));
    }
    Ok(titles)
}

/// Returns those of some instances of which an item is bound with others.
fn bound_instances(
    view: &mut View<'_>,
    ids: &[pinakes_store::Value],
) -> Result<BTreeSet<String>, FolioError> {
    if view.count(&BOUND_WITH_PARTS.kind, &Expr::All)? == 0 {
        return Ok(BTreeSet::new());
    }
    let mut instance_of: HashMap<String, String> = HashMap::new();
    let of_instances = Expr::In("instanceId".into(), ids.to_vec());
    view.for_each_values(&HOLDINGS.kind, &of_instances, &["id", "instanceId"], |mut row| {
        instance_of.extend(row[0].take().zip(row[1].take()));
    })?;
    let holdings = instance_of.keys().map(|it| it.as_str().into()).collect();
    let mut bound = BTreeSet::new();
    let of_holdings = Expr::In("holdingsRecordId".into(), holdings);
    view.for_each_values(&BOUND_WITH_PARTS.kind, &of_holdings, &["holdingsRecordId"], |row| {
        bound.extend(row[0].as_ref().and_then(|it| instance_of.get(it)).cloned());
    })?;
    Ok(bound)
}

/// Records that items refer to, read once per page.
struct Joined(HashMap<(&'static str, String), Value>);

impl Joined {
    fn read(
        &mut self,
        view: &mut View<'_>,
        collection: &'static Collection,
        ids: BTreeSet<String>,
    ) -> Result<(), FolioError> {
        let ids: Vec<String> = ids.into_iter().collect();
        for record in view.get_many(&collection.kind, &ids)?.into_iter().flatten() {
            self.0.insert((collection.kind.name, record.id.clone()), record.json()?);
        }
        Ok(())
    }

    fn get(&self, collection: &'static Collection, id: Option<&str>) -> Option<&Value> {
        self.0.get(&(collection.kind.name, id?.to_owned()))
    }

    fn named(&self, collection: &'static Collection, id: Option<&str>) -> Option<Value> {
        let found = self.get(collection, id)?;
        Some(json!({"id": id, "name": found.get("name")}))
    }
}

fn texts<'a>(bodies: &'a [Value], paths: &'a [&str]) -> BTreeSet<String> {
    bodies
        .iter()
        .flat_map(|it| paths.iter().filter_map(|path| text_at(it, path)))
        .map(str::to_owned)
        .collect()
}

/// Returns items with title, call number, contributors and the names of locations and types.
pub fn shown_items(view: &mut View<'_>, records: &[Record]) -> Result<Vec<Value>, FolioError> {
    let bodies = records.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
    let mut joined = Joined(HashMap::new());
    joined.read(view, &HOLDINGS, texts(&bodies, &["holdingsRecordId"]))?;
    let instances: BTreeSet<String> =
        joined.0.values().filter_map(|it| text_at(it, "instanceId")).map(str::to_owned).collect();
    joined.read(view, &INSTANCES, instances)?;
    joined.read(
        view,
        &LOCATIONS,
        texts(&bodies, &["effectiveLocationId", "permanentLocationId", "temporaryLocationId"]),
    )?;
    joined.read(view, &MATERIAL_TYPES, texts(&bodies, &["materialTypeId"]))?;
    joined.read(view, &LOAN_TYPES, texts(&bodies, &["permanentLoanTypeId", "temporaryLoanTypeId"]))?;
    let ids = records.iter().map(|it| it.id.as_str().into()).collect();
    let bound = view.find(&BOUND_WITH_PARTS.kind, &Query::filter(Expr::In("itemId".into(), ids)))?;
    let bound = bound.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?;
    let bound = texts(&bound, &["itemId"]);
    Ok(bodies.into_iter().map(|body| shown_item(body, &joined, &bound)).collect())
}

fn shown_item(item: Value, joined: &Joined, bound: &BTreeSet<String>) -> Value {
    let Value::Object(mut item) = item else { return item };
    let holdings = joined.get(&HOLDINGS, text_of(&item, "holdingsRecordId").as_deref());
    let instance = joined.get(&INSTANCES, holdings.and_then(|it| text_at(it, "instanceId")));
    let call_number = item.get("effectiveCallNumberComponents").and_then(|it| it.get("callNumber")).cloned();
    let is_bound = text_of(&item, "id").is_some_and(|id| bound.contains(&id));
    let mut added = Map::new();
    added.insert("callNumber".into(), call_number.unwrap_or_else(|| "".into()));
    if let Some(instance) = instance {
        added.insert("title".into(), instance.get("title").cloned().unwrap_or_default());
        let names = instance.get("contributors").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<Value> = names.map(|it| json!({"name": it.get("name")})).collect();
        added.insert("contributorNames".into(), names.into());
        added.insert("instanceHrid".into(), instance.get("hrid").cloned().unwrap_or_default());
    }
    for (name, from, collection) in [
        ("materialType", "materialTypeId", &MATERIAL_TYPES),
        ("permanentLoanType", "permanentLoanTypeId", &LOAN_TYPES),
        ("temporaryLoanType", "temporaryLoanTypeId", &LOAN_TYPES),
        ("effectiveLocation", "effectiveLocationId", &LOCATIONS),
        ("permanentLocation", "permanentLocationId", &LOCATIONS),
        ("temporaryLocation", "temporaryLocationId", &LOCATIONS),
    ] {
        if let Some(named) = joined.named(collection, text_of(&item, from).as_deref()) {
            added.insert(name.into(), named);
        }
        item.shift_remove(from);
    }
    added.insert("isBoundWith".into(), is_bound.into());
    added.retain(|_, value| !value.is_null());
    item.extend(added);
    Value::Object(item)
}

fn text_of(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Converts an item from the business layer's form to the stored one: `{"materialType":{"id"}}` and the like.
fn stored_item(mut body: Map<String, Value>) -> Map<String, Value> {
    for (name, id) in [
        ("materialType", "materialTypeId"),
        ("permanentLoanType", "permanentLoanTypeId"),
        ("temporaryLoanType", "temporaryLoanTypeId"),
        ("permanentLocation", "permanentLocationId"),
        ("temporaryLocation", "temporaryLocationId"),
    ] {
        let given = body.shift_remove(name).as_ref().and_then(|it| it.get("id")).cloned();
        if let (Some(given), false) = (given, body.contains_key(id)) {
            body.insert(id.to_owned(), given);
        }
    }
    for name in [
        "title",
        "callNumber",
        "contributorNames",
        "instanceHrid",
        "isBoundWith",
        "boundWithTitles",
        "effectiveLocation",
        "links",
        "lastCheckIn.servicePoint",
    ] {
        body.shift_remove(name);
    }
    body
}

async fn create_item(mut call: Call) -> Answer {
    let body = stored_item(call.object().await?);
    staff_rules::require_status(&body)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<_, FolioError> {
        let stored = insert(txn, &writer(), &ITEMS, body.clone()).map_err(barcode_taken)?;
        let record = txn.get(&ITEMS.kind, &stored.id)?;
        Ok((stored.id, shown_items(txn, record.as_slice())?.pop().unwrap_or_default()))
    };
    let (id, body) = call.db().write(write).await?;
    let location = format!("/inventory/items/{id}");
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &body), LOCATION, &location))
}

async fn replace_item(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = stored_item(call.object().await?);
    staff_rules::require_status(&body)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if let Some(old) = txn.get(&ITEMS.kind, &id)? {
            staff_rules::keep_hrid(&body, &old.json()?)?;
        }
        put(txn, &writer(), &ITEMS, &id, body.clone(), Missing::Refuse, Lock::Checked)
            .map(drop)
            .map_err(barcode_taken)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists items for a query that is too long for a URL: `{query, limit, offset}`.
async fn retrieve_items(mut call: Call) -> Answer {
    let body = call.object().await?;
    let number = |name: &str, default| body.get(name).and_then(Value::as_u64).unwrap_or(default);
    let text = body.get("query").and_then(Value::as_str).unwrap_or_default();
    let cql = collection::parsed(&call.app.settings, text)?;
    let (offset, limit) = (number("offset", 0), number("limit", 10));
    let page = Page { cql, offset, limit, collections: call.app.collections };
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (records, total) = page_of(view, &ITEMS, &page)?;
        Ok((shown_items(view, &records)?, total))
    };
    let (bodies, total) = call.db().read(Weight::Scan, read).await?;
    list_answer("items", bodies, total)
}

/// Changes the given properties; `null` removes one, the others are kept. `_version` is checked if it is given.
pub(super) async fn patch(mut call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let given = call.object().await?;
    let given = if std::ptr::eq(collection, &ITEMS) { stored_item(given) } else { given };
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let found = txn.get(&collection.kind, &id)?.ok_or_else(|| FolioError::not_found("Not Found"))?;
        let Value::Object(mut body) = found.json()? else { return Ok(()) };
        body.extend(given.clone());
        let writer = writer();
        let stored = put(txn, &writer, collection, &id, body, Missing::Refuse, Lock::Checked)
            .map_err(barcode_taken)?;
        if std::ptr::eq(collection, &INSTANCES) {
            let is = |name: &str| stored.body.get(name) == Some(&Value::Bool(true));
            source_storage::follow_instance(txn, &id, is("deleted"), is("discoverySuppress"), writer.now_ms)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn replace_holdings(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        put(txn, &writer(), &HOLDINGS, &id, body.clone(), Missing::Refuse, Lock::Checked).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn remove(call: Call, collection: &'static Collection) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    call.db().write(move |txn| delete(txn, &writer(), collection, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Sets the status of an item, unless only circulation may change it.
async fn mark(call: Call, status: &'static str) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let missing = || FolioError::not_found("Not Found");
        let Some(record) = txn.get(&ITEMS.kind, &id)? else { return Err(missing()) };
        let Value::Object(mut item) = record.json()? else { return Err(missing()) };
        let now =
            item.get("status").and_then(|it| it.get("name")).and_then(Value::as_str).unwrap_or_default();
        if NOT_FOR_STAFF.contains(&now) {
            let fault = Fault::new(format!("Item is not allowed to be marked as:\"{status}\""));
            return Err(FolioError::unprocessable(fault.with("status.name", now)));
        }
        item.insert("status".to_owned(), json!({"name": status}));
        put(txn, &writer(), &ITEMS, &id, item, Missing::Refuse, Lock::Ignored)?;
        let record = txn.get(&ITEMS.kind, &id)?;
        Ok(shown_items(txn, record.as_slice())?.pop().unwrap_or_default())
    };
    let body = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &body))
}

async fn instances(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let (records, total) = page_of(view, &INSTANCES, &page)?;
        Ok((shown_instances(view, &records)?, total))
    };
    let (bodies, total) = call.db().read(Weight::Scan, read).await?;
    list_answer("instances", bodies, total)
}

async fn instance(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let Some(record) = view.get(&INSTANCES.kind, &id)? else { return Ok(None) };
        Ok(shown_instances(view, &[record])?.pop())
    };
    let found = call.db().read(Weight::Scan, read).await?;
    let body = found.ok_or_else(|| FolioError::not_found("Not Found"))?;
    Ok(json_answer(StatusCode::OK, &body))
}

/// Returns instances with their preceding and succeeding titles and their parent and child instances.
fn shown_instances(view: &mut View<'_>, records: &[Record]) -> Result<Vec<Value>, FolioError> {
    let ids: Vec<pinakes_store::Value> = records.iter().map(|it| it.id.as_str().into()).collect();
    let either = |a: &str, b: &str| {
        Query::filter(Expr::Or(vec![Expr::In(a.into(), ids.clone()), Expr::In(b.into(), ids.clone())]))
    };
    let bodies = |found: Vec<Record>| found.iter().map(Record::json).collect::<Result<Vec<Value>, _>>();
    let titles = bodies(
        view.find(&PRECEDING_SUCCEEDING_TITLES.kind, &either("precedingInstanceId", "succeedingInstanceId"))?,
    )?;
    let relations =
        bodies(view.find(&INSTANCE_RELATIONSHIPS.kind, &either("superInstanceId", "subInstanceId"))?)?;
    let of = |list: &[Value], field: &str, id: &str| -> Value {
        list.iter().filter(|it| text_at(it, field) == Some(id)).cloned().collect()
    };
    let bound = bound_instances(view, &ids)?;
    let mut shown = Vec::with_capacity(records.len());
    for record in records {
        let mut body = record.json()?;
        // If a title names this instance as its successor, it precedes the instance.
        body["precedingTitles"] = of(&titles, "succeedingInstanceId", &record.id);
        body["succeedingTitles"] = of(&titles, "precedingInstanceId", &record.id);
        body["parentInstances"] = of(&relations, "subInstanceId", &record.id);
        body["childInstances"] = of(&relations, "superInstanceId", &record.id);
        body["isBoundWith"] = bound.contains(&record.id).into();
        shown.push(body);
    }
    Ok(shown)
}

/// Returns the titles and relationships in an instance's body, which are stored as separate records.
fn brought(body: &Map<String, Value>, id: &str) -> Vec<(&'static Collection, Map<String, Value>)> {
    let mut list = Vec::new();
    for (name, collection, field) in [
        ("precedingTitles", &PRECEDING_SUCCEEDING_TITLES, "succeedingInstanceId"),
        ("succeedingTitles", &PRECEDING_SUCCEEDING_TITLES, "precedingInstanceId"),
        ("parentInstances", &INSTANCE_RELATIONSHIPS, "subInstanceId"),
        ("childInstances", &INSTANCE_RELATIONSHIPS, "superInstanceId"),
    ] {
        let given = body.get(name).and_then(Value::as_array).into_iter().flatten();
        for it in given.filter_map(Value::as_object) {
            let mut record = it.clone();
            record.insert(field.to_owned(), id.into());
            list.push((collection, record));
        }
    }
    list
}

async fn create_instance(mut call: Call) -> Answer {
    let body = call.object().await?;
    staff_rules::require_title(&body)?;
    let writer = Writer::of(&call);
    let (id, body) = call.db().write(move |txn| make_instance(txn, &writer(), &body)).await?;
    let location = format!("/inventory/instances/{id}");
    Ok(answer::with_header(json_answer(StatusCode::CREATED, &body), LOCATION, &location))
}

/// Creates an instance with the titles and relationships in its body. Returns its id and the form shown.
pub(super) fn make_instance(
    txn: &mut Txn<'_>,
    writer: &Writer,
    body: &Map<String, Value>,
) -> Result<(String, Value), FolioError> {
    let stored = insert(txn, writer, &INSTANCES, body.clone())?;
    for (collection, record) in brought(body, &stored.id) {
        insert(txn, writer, collection, record)?;
    }
    let record = txn.get(&INSTANCES.kind, &stored.id)?;
    Ok((stored.id, shown_instances(txn, record.as_slice())?.pop().unwrap_or_default()))
}

/// Replaces an instance; titles and relationships in the body replace the stored ones.
async fn replace_instance(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        if let Some(old) = txn.get(&INSTANCES.kind, &id)? {
            let old = old.json()?;
            staff_rules::keep_hrid(&body, &old)?;
            staff_rules::keep_marc_fields(&body, &old)?;
        }
        let stored = put(txn, &writer, &INSTANCES, &id, body.clone(), Missing::Refuse, Lock::Checked)?;
        let is = |name: &str| stored.body.get(name) == Some(&Value::Bool(true));
        source_storage::follow_instance(txn, &id, is("deleted"), is("discoverySuppress"), writer.now_ms)?;
        for (names, collection, field) in [
            ("precedingTitles", &PRECEDING_SUCCEEDING_TITLES, "succeedingInstanceId"),
            ("succeedingTitles", &PRECEDING_SUCCEEDING_TITLES, "precedingInstanceId"),
            ("parentInstances", &INSTANCE_RELATIONSHIPS, "subInstanceId"),
            ("childInstances", &INSTANCE_RELATIONSHIPS, "superInstanceId"),
        ] {
            if !body.contains_key(names) {
                continue;
            }
            let query = Query::filter(Expr::Is(field.into(), id.as_str().into()));
            for record in txn.find(&collection.kind, &query)? {
                delete(txn, &writer, collection, &record.id)?;
            }
        }
        for (collection, record) in brought(&body, &id) {
            insert(txn, &writer, collection, record)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
