//! Streams for harvesters and discovery: ids, and instances with all related records.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use http::{HeaderValue, StatusCode};
use pinakes_http::{Gone, Sink, answer};
use pinakes_store::{End, Expr, Order, Query, Record, Value as StoreValue, View, Weight};
use serde_json::{Value, json};

use super::business::shown_items;
use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use super::relations::{INSTANCE_RELATIONSHIPS, PRECEDING_SUCCEEDING_TITLES};
use crate::places::LOCATIONS;
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Page, expr_of, page_of, parsed};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::{self, text_at};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::vocabularies::{CALL_NUMBER_TYPES, LOAN_TYPES, MATERIAL_TYPES};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Maximum number of instances in a request by id.
const MOST_IDS: usize = 10_000;
/// Number of instances whose holdings and items are read together.
const STEP_INSTANCES: usize = 64;
/// Maximum number of items that are read together for more than one instance.
const STEP_ITEMS_MAX: u64 = 1_000;

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get(
            "/inventory-hierarchy/updated-instance-ids",
            to("inventory-storage.inventory-hierarchy.updated-instances-ids.collection.get"),
            updated,
        )
        .post(
            "/inventory-hierarchy/items-and-holdings",
            to("inventory-storage.inventory-hierarchy.items-and-holdings.collection.post"),
            items_and_holdings,
        )
        .get(
            "/oai-pmh-view/updatedInstanceIds",
            to("inventory-storage.oai-pmh-view.updated-instances-ids.collection.get"),
            updated,
        )
        .post(
            "/oai-pmh-view/enrichedInstances",
            to("inventory-storage.oai-pmh-view.enriched-instances.collection.post"),
            items_and_holdings,
        )
        .get(
            "/oai-pmh-view/instances",
            to("inventory-storage.oai-pmh-view.instances.collection.get"),
            harvested,
        )
        .get(
            "/inventory-view/instance-set",
            to("inventory-storage.inventory-view.instance-set.get"),
            sets_of_instances,
        )
        .get("/record-bulk/ids", to("inventory-storage.record-bulk.ids.get"), record_ids)
        .get(
            "/item-storage-dereferenced/items",
            to("inventory-storage-dereferenced.items.collection.get"),
            whole_items,
        )
        .get(
            "/item-storage-dereferenced/items/{id}",
            to("inventory-storage-dereferenced.items.item.get"),
            whole_item,
        )
        .get(
            "/inventory-view/instances",
            to("inventory-storage.inventory-view.instances.collection.get"),
            view_of_instances,
        )
}

/// Answers with a body that is written while it is sent.
async fn streamed(
    call: &Call,
    produce: impl FnMut(&mut View<'_>, &mut Sink) -> Result<(), FolioError> + Send + 'static,
) -> Answer {
    let body = call.db().stream(call.app.context.limits(), produce).await?;
    Ok(answer::with_body(StatusCode::OK, JSON, body))
}

/// Passes the records of a query to `visit` until it reports that the client has disconnected.
fn each(
    view: &mut View<'_>,
    query: &Query,
    mut visit: impl FnMut(Record) -> Result<Result<(), Gone>, FolioError>,
) -> Result<(), FolioError> {
    let mut failed = None;
    view.for_each(&INSTANCES.kind, query, |record| match visit(record) {
        Ok(Ok(())) => ControlFlow::Continue(()),
        Ok(Err(Gone)) => ControlFlow::Break(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Lists changed instances, one object per line: `startDate`, `endDate`, `skipSuppressedFromDiscoveryRecords`,
/// `source`.
async fn updated(call: Call) -> Answer {
    let filter = filter_of(&call)?;
    streamed(&call, move |view, sink| {
        let order = vec![Order {
            path: "metadata.updatedDate".into(),
            direction: pinakes_store::Direction::Ascending,
        }];
        let query = Query { filter: filter.clone(), order, skip: 0, limit: None, after: None };
        each(view, &query, |record| {
            let body = record.json()?;
            let shown = json!({
                "instanceId": record.id,
                "source": body.get("source"),
                "updatedDate": text_at(&body, "metadata.updatedDate"),
                "suppressFromDiscovery": body.get("discoverySuppress"),
                "deleted": body.get("deleted"),
            });
            Ok(sink.push(&json::bytes(&shown)).and_then(|()| sink.push(b"\n")))
        })
    })
    .await
}

fn filter_of(call: &Call) -> Result<Expr, FolioError> {
    let date = |name: &str| -> Result<Option<StoreValue>, FolioError> {
        let Some(text) = call.query.get(name).filter(|it| !it.is_empty()) else { return Ok(None) };
        let ms = dates::parse_ms(text)
            .ok_or_else(|| FolioError::bad_request(format!("{name} {text:?} is no date")))?;
        Ok(Some(StoreValue::Instant(ms)))
    };
    let end = |value: Option<StoreValue>| value.map_or(End::Open, End::Included);
    let (from, until) = (date("startDate")?, date("endDate")?);
    let mut filter = match (&from, &until) {
        (None, None) => Expr::All,
        _ => Expr::Range("metadata.updatedDate".into(), end(from), end(until)),
    };
    if call.query.is_true("skipSuppressedFromDiscoveryRecords") {
        filter = filter.and(Expr::Not(Box::new(Expr::Is("discoverySuppress".into(), true.into()))));
    }
    if let Some(source) = call.query.get("source").filter(|it| !it.is_empty()) {
        filter = filter.and(Expr::Is("source".into(), StoreValue::Folded(source.to_owned())));
    }
    Ok(filter)
}

/// Lists each instance with its holdings and items, one per line: `{instanceIds, skipSuppressedFromDiscoveryRecords}`.
async fn items_and_holdings(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(Value::Array(ids)) = body.get("instanceIds") else {
        return Err(FolioError::unprocessable(Fault::missing("instanceIds")));
    };
    if MOST_IDS < ids.len() {
        let message = format!("at most {MOST_IDS} instanceIds are taken at once, {} were given", ids.len());
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let ids: Option<Vec<String>> = ids.iter().map(|it| it.as_str().and_then(parse_uuid)).collect();
    let mut ids = ids.ok_or_else(|| FolioError::bad_request("instanceIds must be UUIDs"))?;
    let mut seen = HashSet::new();
    ids.retain(|it| seen.insert(it.clone()));
    let skip = body.get("skipSuppressedFromDiscoveryRecords").and_then(Value::as_bool).unwrap_or(true);
    streamed(&call, move |view, sink| {
        each_with_parts(view, &ids, skip, |record, Belonging { holdings, items }| {
            let body = record.json()?;
            let shown = json!({
                "instanceId": record.id, "source": body.get("source"), "modeOfIssuance": body.get("modeOfIssuanceId"),
                "natureOfContent": body.get("natureOfContentTermIds"), "holdings": holdings, "items": items,
            });
            Ok(sink.push(&json::bytes(&shown)).and_then(|()| sink.push(b"\n")))
        })
    })
    .await
}

/// An instance's holdings and items.
#[derive(Default)]
struct Belonging {
    holdings: Vec<Value>,
    items: Vec<Value>,
}

/// Passes instances, by id and in this order, to `visit` with their holdings and items, until it reports that the client
/// has disconnected; those that are not there are left out. Several are read together, because each read of a database
/// costs a round trip.
fn each_with_parts(
    view: &mut View<'_>,
    ids: &[String],
    skips_suppressed: bool,
    mut visit: impl FnMut(&Record, Belonging) -> Result<Result<(), Gone>, FolioError>,
) -> Result<(), FolioError> {
    for step in ids.chunks(STEP_INSTANCES) {
        let records: Vec<Record> = view.get_many(&INSTANCES.kind, step)?.into_iter().flatten().collect();
        let parts = belonging(view, &records, skips_suppressed)?;
        for (record, belonging) in records.iter().zip(parts) {
            if visit(record, belonging)? == Err(Gone) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns the holdings and items of each of some instances.
fn belonging(
    view: &mut View<'_>,
    instances: &[Record],
    skips_suppressed: bool,
) -> Result<Vec<Belonging>, FolioError> {
    let is_shown = |it: &Value| !(skips_suppressed && it.get("discoverySuppress") == Some(&true.into()));
    let ids = |records: &[Record]| records.iter().map(|it| it.id.as_str().into()).collect();
    let holdings =
        view.find(&HOLDINGS.kind, &Query::filter(Expr::In("instanceId".into(), ids(instances))))?;
    let of_holdings = Expr::In("holdingsRecordId".into(), ids(&holdings));
    if 1 < instances.len() && STEP_ITEMS_MAX < view.count(&ITEMS.kind, &of_holdings)? {
        let (first, second) = instances.split_at(instances.len() / 2);
        let mut all = belonging(view, first, skips_suppressed)?;
        all.extend(belonging(view, second, skips_suppressed)?);
        return Ok(all);
    }
    let items = view.find(&ITEMS.kind, &Query::filter(of_holdings))?;
    let places: HashMap<&str, usize> = instances.iter().map(|it| it.id.as_str()).zip(0..).collect();
    let mut found: Vec<Belonging> = instances.iter().map(|_| Belonging::default()).collect();
    let mut place_of: HashMap<&str, usize> = HashMap::new();
    for record in &holdings {
        let body = record.json()?;
        let Some(place) = text_at(&body, "instanceId").and_then(|it| places.get(it)) else { continue };
        place_of.insert(&record.id, *place);
        if is_shown(&body) {
            found[*place].holdings.push(body);
        }
    }
    for item in shown_items(view, &items)?.into_iter().filter(is_shown) {
        if let Some(place) = text_at(&item, "holdingsRecordId").and_then(|it| place_of.get(it)) {
            found[*place].items.push(item);
        }
    }
    Ok(found)
}

/// `/inventory-view/instances?query=`: lists each instance with its holdings and items.
async fn view_of_instances(call: Call) -> Answer {
    let page = Page::of(&call)?;
    streamed(&call, move |view, sink| {
        let (filter, order) = expr_of(view, page.collections, &INSTANCES, &page.cql)?;
        let query = Query { filter, order, skip: page.offset, limit: Some(page.limit), after: None };
        let total = view.count(&INSTANCES.kind, &query.filter)?;
        let mut ids = Vec::new();
        each(view, &query, |record| {
            ids.push(record.id);
            Ok(Ok(()))
        })?;
        let mut comma: &[u8] = b"";
        if sink.push(b"{\"instances\" : [") == Err(Gone) {
            return Ok(());
        }
        each_with_parts(view, &ids, false, |record, Belonging { holdings, items }| {
            let id = &record.id;
            let head = format!("{{\"instanceId\" : \"{id}\",\"isBoundWith\" : false,\"instance\" : ");
            let tail = format!(
                ",\"holdingsRecords\" : {},\"items\" : {}}}",
                json::text(&Value::Array(holdings)),
                json::text(&Value::Array(items))
            );
            let sent = sink
                .push(comma)
                .and_then(|()| sink.push(head.as_bytes()))
                .and_then(|()| sink.push(&record.body))
                .and_then(|()| sink.push(tail.as_bytes()));
            comma = b",";
            Ok(sent)
        })?;
        // If the client has disconnected, the end of the list is not needed.
        let _ = sink.push(format!("],\"totalRecords\" : {total}}}").as_bytes());
        Ok(())
    })
    .await
}

/// Lists changed instances with their holdings and items, one per line: `startDate`, `endDate`,
/// `skipSuppressedFromDiscoveryRecords`.
async fn harvested(call: Call) -> Answer {
    let filter = filter_of(&call)?;
    let skips = call.query.is_true("skipSuppressedFromDiscoveryRecords");
    streamed(&call, move |view, sink| {
        let mut ids = Vec::new();
        each(view, &Query::filter(filter.clone()), |record| {
            ids.push(record.id);
            Ok(Ok(()))
        })?;
        each_with_parts(view, &ids, skips, |record, Belonging { holdings, items }| {
            let body = record.json()?;
            let shown = json!({
                "instanceid": record.id,
                "updateddate": text_at(&body, "metadata.updatedDate"),
                "deleted": body.get("deleted"),
                "itemsandholdingsfields": {"holdings": holdings, "items": items},
            });
            Ok(sink.push(&json::bytes(&shown)).and_then(|()| sink.push(b"\n")))
        })
    })
    .await
}

/// Lists instances, `?query=`, with the parts whose parameter is `true`: `instance`, `holdingsRecords`, `items`,
/// `precedingTitles`, `succeedingTitles`, `superInstanceRelationships`, `subInstanceRelationships`.
async fn sets_of_instances(call: Call) -> Answer {
    const RELATED: [(&str, &Collection, &str); 4] = [
        ("precedingTitles", &PRECEDING_SUCCEEDING_TITLES, "succeedingInstanceId"),
        ("succeedingTitles", &PRECEDING_SUCCEEDING_TITLES, "precedingInstanceId"),
        ("superInstanceRelationships", &INSTANCE_RELATIONSHIPS, "subInstanceId"),
        ("subInstanceRelationships", &INSTANCE_RELATIONSHIPS, "superInstanceId"),
    ];
    let page = Page::of(&call)?;
    let wanted: Vec<String> = ["instance", "holdingsRecords", "items"]
        .into_iter()
        .chain(RELATED.iter().map(|it| it.0))
        .filter(|it| call.query.is_true(it))
        .map(str::to_owned)
        .collect();
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let wants = |name: &str| wanted.iter().any(|it| it == name);
        let (records, _) = page_of(view, &INSTANCES, &page)?;
        let mut sets = Vec::with_capacity(records.len());
        for record in &records {
            let of = |field: &str| Query::filter(Expr::Is(field.into(), record.id.as_str().into()));
            let mut set = json!({"id": record.id});
            if wants("instance") {
                set["instance"] = record.json()?;
            }
            if wants("holdingsRecords") || wants("items") {
                let holdings = view.find(&HOLDINGS.kind, &of("instanceId"))?;
                if wants("items") {
                    let ids = holdings.iter().map(|it| it.id.as_str().into()).collect();
                    let within = Query::filter(Expr::In("holdingsRecordId".into(), ids));
                    set["items"] = bodies(&view.find(&ITEMS.kind, &within)?)?;
                }
                if wants("holdingsRecords") {
                    set["holdingsRecords"] = bodies(&holdings)?;
                }
            }
            for (name, collection, field) in RELATED {
                if wants(name) {
                    set[name] = bodies(&view.find(&collection.kind, &of(field))?)?;
                }
            }
            sets.push(set);
        }
        Ok(json!({"instanceSets": sets}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn bodies(records: &[Record]) -> Result<Value, FolioError> {
    Ok(records.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?.into())
}

/// Lists the ids of all records that a query finds: `?recordType=INSTANCE|HOLDING&field=id&query=`.
async fn record_ids(call: Call) -> Answer {
    let collection = match call.query.get("recordType").unwrap_or("INSTANCE").to_ascii_uppercase().as_str() {
        "INSTANCE" => &INSTANCES,
        "HOLDING" | "HOLDINGS" => &HOLDINGS,
        "ITEM" => &ITEMS,
        other => {
            let message = format!("recordType is {other:?}, expected INSTANCE, HOLDING or ITEM");
            return Err(FolioError::bad_request(message));
        }
    };
    if !matches!(call.query.get("field"), None | Some("" | "id")) {
        return Err(FolioError::bad_request("field: id is the one that can be asked for"));
    }
    let text = call.query.get("query").unwrap_or_default();
    let (cql, collections) = (parsed(&call.app.settings, text)?, call.app.collections);
    let limit = call.query.number("limit", u64::MAX)?;
    streamed(&call, move |view, sink| {
        let (filter, order) = expr_of(view, collections, collection, &cql)?;
        let query = Query { filter, order, skip: 0, limit: Some(limit), after: None };
        let total = view.count(&collection.kind, &query.filter)?;
        let mut sent = sink.push(b"{\"ids\" : [");
        let mut comma: &[u8] = b"";
        view.for_each(&collection.kind, &query, |record| {
            let id = format!("{{\"id\" : \"{}\"}}", record.id);
            sent = sent.and_then(|()| sink.push(comma)).and_then(|()| sink.push(id.as_bytes()));
            comma = b",";
            if sent.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        // If the client has disconnected, the end of the list is not needed.
        let _ = sink.push(format!("],\"totalRecords\" : {total}}}").as_bytes());
        Ok(())
    })
    .await
}

/// Returns items with the complete records they refer to.
fn dereferenced(view: &mut View<'_>, records: &[Record]) -> Result<Vec<Value>, FolioError> {
    const PARTS: [(&str, &str, &Collection); 8] = [
        ("holdingsRecordId", "holdingsRecord", &HOLDINGS),
        ("materialTypeId", "materialType", &MATERIAL_TYPES),
        ("permanentLoanTypeId", "permanentLoanType", &LOAN_TYPES),
        ("temporaryLoanTypeId", "temporaryLoanType", &LOAN_TYPES),
        ("permanentLocationId", "permanentLocation", &LOCATIONS),
        ("temporaryLocationId", "temporaryLocation", &LOCATIONS),
        ("effectiveLocationId", "effectiveLocation", &LOCATIONS),
        ("itemLevelCallNumberTypeId", "itemLevelCallNumberType", &CALL_NUMBER_TYPES),
    ];
    let mut shown = Vec::with_capacity(records.len());
    for record in records {
        let mut item = record.json()?;
        for (id, name, collection) in PARTS {
            let Some(id) = text_at(&item, id).map(str::to_owned) else { continue };
            if let Some(found) = view.get(&collection.kind, &id)? {
                item[name] = found.json()?;
            }
        }
        let instance = text_at(&item, "holdingsRecord.instanceId").map(str::to_owned);
        if let Some(found) = instance.map(|id| view.get(&INSTANCES.kind, &id)).transpose()?.flatten() {
            item["instanceRecord"] = found.json()?;
        }
        shown.push(item);
    }
    Ok(shown)
}

async fn whole_items(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let (records, total) = page_of(view, &ITEMS, &page)?;
        Ok(json!({"dereferencedItems": dereferenced(view, &records)?, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn whole_item(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let record = view.get(&ITEMS.kind, &id)?;
        Ok(dereferenced(view, record.as_slice())?.pop())
    };
    let found = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(|| FolioError::not_found("Not Found"))?))
}
