//! Updates of stored records beyond single ones: partial updates, instances in batches, all preceding and succeeding
//! titles of an instance (mod-inventory-storage, mod-inventory).

use http::{Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::business::{make_instance, patch, shown_items};
use super::holdings::HOLDINGS;
use super::instances::INSTANCES;
use super::items::ITEMS;
use super::relations::PRECEDING_SUCCEEDING_TITLES;
use crate::platform::app::Call;
use crate::platform::collection::{self, Lock, Missing, Writer, delete, insert, put};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::vocabularies::INSTANCE_DATE_TYPES;

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .on(
            Method::PATCH,
            "/instance-storage/instances/{id}",
            to("inventory-storage.instances.item.patch.execute"),
            |call| patch(call, &INSTANCES),
        )
        .on(
            Method::PATCH,
            "/holdings-storage/holdings/{id}",
            to("inventory-storage.holdings.item.patch.execute"),
            |call| patch(call, &HOLDINGS),
        )
        .on(
            Method::PATCH,
            "/instance-date-types/{id}",
            to("inventory-storage.instance-date-types.item.patch"),
            |call| patch(call, &INSTANCE_DATE_TYPES),
        )
        .on(Method::PATCH, "/item-storage/items", to("inventory-storage.items.collection.patch"), patch_items)
        .post("/inventory/instances/batch", to("inventory.instances.batch.post"), make_instances)
        .post("/inventory/tenant-items", to("inventory.tenant-items.collection.get"), tenant_items)
        .put(
            "/preceding-succeeding-titles/instances/{id}",
            to("inventory-storage.instances.preceding-succeeding-titles.collection.put"),
            replace_titles,
        )
}

/// Returns the objects of a list in a body, within the size limit of a batch.
fn objects(
    call: &Call,
    body: &Map<String, Value>,
    list: &str,
) -> Result<Vec<Map<String, Value>>, FolioError> {
    let Some(given) = body.get(list).and_then(Value::as_array) else {
        return Err(FolioError::unprocessable(Fault::missing(list)));
    };
    let most = call.app.settings.batch_records;
    if most < given.len() {
        let message = format!("at most {most} {list} are taken at once, {} were given", given.len());
        return Err(FolioError::text(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let objects: Option<Vec<_>> = given.iter().map(|it| it.as_object().cloned()).collect();
    objects.ok_or_else(|| FolioError::bad_request(format!("Json content error: {list} must hold objects")))
}

/// Changes the given properties of several items, `{"items":[{"id", …}]}`; all or none.
async fn patch_items(mut call: Call) -> Answer {
    let body = call.object().await?;
    let items = objects(&call, &body, "items")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        for given in &items {
            let id = given.get("id").and_then(Value::as_str).unwrap_or_default();
            let id = parse_uuid(id).ok_or_else(|| collection::not_a_uuid("id", id))?;
            let found = txn.get(&ITEMS.kind, &id)?;
            let Some(Value::Object(mut item)) = found.map(|it| it.json()).transpose()? else {
                return Err(FolioError::not_found(format!("Item with id {id} was not found")));
            };
            item.extend(given.clone());
            put(txn, &writer, &ITEMS, &id, item, Missing::Refuse, Lock::Checked)?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Creates instances one by one, `{"instances":[…]}`; the faults of those not created are in `errorMessages`.
///
/// Errors: 500 with the same body if none was created.
async fn make_instances(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = objects(&call, &body, "instances")?;
    let (mut made, mut messages) = (Vec::new(), Vec::new());
    for instance in given {
        let writer = Writer::of(&call);
        let write = move |txn: &mut Txn<'_>| make_instance(txn, &writer(), &instance);
        match call.db().write(write).await {
            Ok((_, shown)) => made.push(shown),
            Err(error) if error.status.is_server_error() => return Err(error),
            Err(error) => messages.push(error.message()),
        }
    }
    let status = match made.is_empty() && !messages.is_empty() {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => StatusCode::CREATED,
    };
    let total = made.len();
    Ok(json_answer(status, &json!({"instances": made, "errorMessages": messages, "totalRecords": total})))
}

/// Returns items, `{"tenantItemPairs":[{"tenantId","itemId"}]}`: those of this tenant only, other tenants are not
/// asked.
async fn tenant_items(mut call: Call) -> Answer {
    let body = call.object().await?;
    let pairs = objects(&call, &body, "tenantItemPairs")?;
    let tenant = call.asker.tenant().to_owned();
    let own = |it: &Map<String, Value>| {
        let text = |name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default();
        (text("tenantId") == tenant).then(|| text("itemId").to_owned())
    };
    let ids: Vec<String> = pairs.iter().filter_map(own).collect();
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, FolioError> {
        let found: Vec<Record> = view.get_many(&ITEMS.kind, &ids)?.into_iter().flatten().collect();
        shown_items(view, &found)
    };
    let items = call.db().read(Weight::Scan, read).await?;
    let tenant = call.asker.tenant();
    let shown: Vec<Value> = items.into_iter().map(|it| json!({"tenantId": tenant, "item": it})).collect();
    let total = shown.len();
    Ok(json_answer(StatusCode::OK, &json!({"tenantItems": shown, "totalRecords": total})))
}

/// Replaces all preceding and succeeding titles of an instance: `{"precedingSucceedingTitles":[…]}`.
async fn replace_titles(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let titles = objects(&call, &body, PRECEDING_SUCCEEDING_TITLES.list)?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        if !txn.has(&INSTANCES.kind, &id)? {
            return Err(FolioError::not_found("Instance not found"));
        }
        for title in &titles {
            let of = |name: &str| title.get(name).and_then(Value::as_str) == Some(id.as_str());
            if !of("precedingInstanceId") && !of("succeedingInstanceId") {
                let message = format!(
                    "The precedingInstanceId or succeedingInstanceId should contain instanceId [{id}]"
                );
                let fault = Fault::new(message);
                return Err(FolioError::unprocessable(fault.with("precedingInstanceId", &id)));
            }
        }
        let either = ["precedingInstanceId", "succeedingInstanceId"]
            .map(|field| Expr::Is(field.into(), id.as_str().into()));
        for old in txn.find(&PRECEDING_SUCCEEDING_TITLES.kind, &Query::filter(Expr::Or(either.to_vec())))? {
            delete(txn, &writer, &PRECEDING_SUCCEEDING_TITLES, &old.id)?;
        }
        for title in &titles {
            insert(txn, &writer, &PRECEDING_SUCCEEDING_TITLES, title.clone())?;
        }
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
