//! Moving holdings to another instance and items to other holdings, marking instances as deleted, and binding items
//! with several titles (mod-inventory).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::business::shown_items;
use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use super::relations::BOUND_WITH_PARTS;
use super::staff_rules::INSTANCE_FIELDS;
use crate::platform::app::Call;
use crate::platform::collection::{self, Collection, Lock, Missing, Writer, put};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};
use crate::source_records::source_storage;

pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .post("/inventory/holdings/move", to("inventory.holdings.move.item.post"), |call| {
            move_records(call, &HOLDINGS, &INSTANCES, ["toInstanceId", "holdingsRecordIds", "instanceId"])
        })
        .post("/inventory/items/move", to("inventory.items.move.item.post"), |call| {
            move_records(call, &ITEMS, &HOLDINGS, ["toHoldingsRecordId", "itemIds", "holdingsRecordId"])
        })
        .post(
            "/inventory/holdings/update-ownership",
            to("inventory.holdings.update-ownership.item.post"),
            no_consortium,
        )
        .post(
            "/inventory/items/update-ownership",
            to("inventory.items.update-ownership.item.post"),
            no_consortium,
        )
        .delete("/inventory/instances/{id}/mark-deleted", to("inventory.instances.item.delete"), mark_deleted)
        .get(
            "/inventory/items-by-holdings-id",
            to("inventory.items-by-holdings-id.collection.get"),
            items_of_holdings,
        )
        .put("/inventory-storage/bound-withs", to("inventory-storage.bound-withs.collection.put"), bind)
        .get(
            "/inventory/config/instances/blocked-fields",
            to("inventory.config.instances.blocked-fields.get"),
            |_| blocked(&INSTANCE_FIELDS),
        )
        .get(
            "/inventory/config/holdings/blocked-fields",
            to("inventory.config.holdings.blocked-fields.get"),
            |_| blocked(&HOLDINGS_FIELDS),
        )
}

/// Properties of holdings that are derived from their MARC records.
const HOLDINGS_FIELDS: [&str; 1] = ["hrid"];

async fn blocked(fields: &'static [&'static str]) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({"blockedFields": fields})))
}

/// Moves records to another parent; `names` are those of the target, of the list and of the reference. Ids of records
/// that do not exist are returned in `nonUpdatedIds`; the others are moved.
async fn move_records(
    mut call: Call,
    what: &'static Collection,
    target: &'static Collection,
    names: [&'static str; 3],
) -> Answer {
    let [to, list, field] = names;
    let body = call.object().await?;
    let to_id = required_text(&body, to)
        .map_err(|_| {
            let fault = Fault::new(format!("{to} is a required field")).with(to, "null");
            FolioError::unprocessable(fault)
        })?
        .to_owned();
    let ids: Vec<String> = body
        .get(list)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if ids.is_empty() {
        let fault = Fault::new(format!("{list} is a required field")).with(list, "[]");
        return Err(FolioError::unprocessable(fault));
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Vec<String>, FolioError> {
        if !txn.has(&target.kind, &to_id)? {
            let name = if field == "instanceId" { "Instance" } else { "Holding" };
            let fault = Fault::new(format!("{name} with id={to_id} not found")).with(to, to_id.as_str());
            return Err(FolioError::unprocessable(fault));
        }
        let writer = writer();
        let mut left = Vec::new();
        for id in &ids {
            let found = txn.get(&what.kind, id)?.map(|it| it.json()).transpose()?;
            let Some(Value::Object(mut record)) = found else {
                left.push(id.clone());
                continue;
            };
            record.insert(field.to_owned(), to_id.as_str().into());
            put(txn, &writer, what, id, record, Missing::Refuse, Lock::Ignored)?;
        }
        Ok(left)
    };
    let left = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &json!({"nonUpdatedIds": left})))
}

/// Refuses a change of owner, which is possible only between members of a consortium.
async fn no_consortium(call: Call) -> Answer {
    Err(FolioError::bad_request(format!("{} tenant is not in consortia", call.asker.tenant())))
}

/// Suppresses an instance everywhere and marks it as deleted, in its MARC record as well.
async fn mark_deleted(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let found = txn.get(&INSTANCES.kind, &id)?.ok_or_else(|| FolioError::not_found("Not Found"))?;
        let Value::Object(mut body) = found.json()? else { return Ok(()) };
        for name in ["staffSuppress", "discoverySuppress", "deleted"] {
            body.insert(name.to_owned(), true.into());
        }
        let writer = writer();
        put(txn, &writer, &INSTANCES, &id, body, Missing::Refuse, Lock::Ignored)?;
        source_storage::follow_instance(txn, &id, true, true, writer.now_ms)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Lists the items of holdings, `query=holdingsRecordId==…`, including items bound with them.
async fn items_of_holdings(call: Call) -> Answer {
    let query = call.query.get("query").unwrap_or_default().to_owned();
    let id =
        query.rsplit("==").next().unwrap_or_default().trim_matches(|it: char| !it.is_ascii_alphanumeric());
    let id = crate::platform::values::parse_uuid(id)
        .ok_or_else(|| FolioError::bad_request("expected the query holdingsRecordId==UUID"))?;
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let of = |path: &str| Expr::Is(path.into(), id.as_str().into());
        let parts = view.find(&BOUND_WITH_PARTS.kind, &Query::filter(of("holdingsRecordId")))?;
        let mut bound = Vec::new();
        for part in &parts {
            bound.extend(text_at(&part.json()?, "itemId").map(str::to_owned));
        }
        let filter = Expr::Or(vec![of("holdingsRecordId"), Expr::Ids(bound)]);
        let total = view.count(&ITEMS.kind, &filter)?;
        let found = view.find(&ITEMS.kind, &Query::filter(filter).window(offset, limit))?;
        Ok(json!({"items": shown_items(view, &found)?, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Sets the titles of an item, `{itemId, boundWithContents: [{holdingsRecordId}]}`; its own holdings are always
/// included.
async fn bind(mut call: Call) -> Answer {
    let body = call.object().await?;
    let item_id = required_text(&body, "itemId")?.to_owned();
    let mut wanted: Vec<String> = Vec::new();
    for part in body.get("boundWithContents").and_then(Value::as_array).into_iter().flatten() {
        let Some(id) = text_at(part, "holdingsRecordId") else {
            return Err(FolioError::unprocessable(Fault::missing("boundWithContents.holdingsRecordId")));
        };
        if !wanted.iter().any(|it| it == id) {
            wanted.push(id.to_owned());
        }
    }
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        let not_found = |what: &str, id: &str| {
            FolioError::unprocessable(Fault::new(format!("{what} not found")).with("id", id))
        };
        let item = txn.get(&ITEMS.kind, &item_id)?.ok_or_else(|| not_found("Item", &item_id))?.json()?;
        let own = text_at(&item, "holdingsRecordId").unwrap_or_default().to_owned();
        let mut wanted = wanted.clone();
        if !wanted.is_empty() && !wanted.contains(&own) {
            wanted.push(own);
        }
        for id in &wanted {
            if !txn.has(&HOLDINGS.kind, id)? {
                return Err(not_found("Holdings record", id));
            }
        }
        let of_item = Query::filter(Expr::Is("itemId".into(), item_id.as_str().into()));
        for part in txn.find(&BOUND_WITH_PARTS.kind, &of_item)?.iter().map(Record::json) {
            let part = part?;
            let holdings = text_at(&part, "holdingsRecordId").unwrap_or_default();
            match wanted.iter().position(|it| it == holdings) {
                Some(at) => drop(wanted.swap_remove(at)),
                None => {
                    let id = text_at(&part, "id").unwrap_or_default();
                    collection::delete(txn, &writer, &BOUND_WITH_PARTS, id)?;
                }
            }
        }
        for holdings in wanted {
            let part = json!({"itemId": item_id, "holdingsRecordId": holdings});
            let Value::Object(part) = part else { continue };
            let part: Map<String, Value> = part;
            collection::insert(txn, &writer, &BOUND_WITH_PARTS, part)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
