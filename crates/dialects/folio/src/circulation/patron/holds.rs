//! Requests of patrons: for an item, for any item of a title, and cancelling a request.

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::account;
use crate::circulation::overrides::Overrides;
use crate::circulation::patron::summary::patron;
use crate::circulation::records::{object, text};
use crate::circulation::requests::{self, REQUESTS, view};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::{Answer, FolioError};
use crate::platform::values::json_answer;

/// Translates a request of mod-patron into the terms of circulation.
fn wish(user: &str, given: &Map<String, Value>) -> Map<String, Value> {
    let mut wish = Map::new();
    wish.insert("requesterId".into(), user.into());
    for (name, from) in [
        ("requestDate", "requestDate"),
        ("requestExpirationDate", "expirationDate"),
        ("pickupServicePointId", "pickupLocationId"),
        ("deliveryAddressTypeId", "deliveryAddressTypeId"),
        ("patronComments", "patronComments"),
    ] {
        if let Some(value) = given.get(from).filter(|it| !it.is_null()) {
            wish.insert(name.into(), value.clone());
        }
    }
    let way = given.get("fulfillmentPreference").and_then(Value::as_str).unwrap_or("Hold Shelf");
    wish.insert("fulfillmentPreference".into(), way.into());
    wish
}

/// Requests an item: `{"pickupLocationId","requestDate","expirationDate","patronComments"}`. The request type is the
/// first of page, hold and recall that the item's status and the rules allow.
///
/// Errors: 404 for the patron; 422 with the errors that the desk gets.
pub(super) async fn of_item(mut call: Call) -> Answer {
    let (id, item, now_ms) = (call.uuid_param("id")?, call.uuid_param("itemId")?, call.app.now_ms());
    let body = call.object().await?;
    let overrides = Overrides::of(&call, &Map::new())?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        patron(txn, &id, now_ms)?;
        let mut wish = wish(&id, &body);
        wish.insert("itemId".into(), item.as_str().into());
        requests::create_for_item(txn, &writer(), &wish, &overrides)
    };
    made(&call, write).await
}

/// Requests a title: the title itself if the site accepts such requests, otherwise the first of its items that can be
/// requested.
pub(super) async fn of_instance(mut call: Call) -> Answer {
    let (id, instance) = (call.uuid_param("id")?, call.uuid_param("instanceId")?);
    let now_ms = call.app.now_ms();
    let body = call.object().await?;
    let overrides = Overrides::of(&call, &Map::new())?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        patron(txn, &id, now_ms)?;
        let mut wish = wish(&id, &body);
        wish.insert("instanceId".into(), instance.as_str().into());
        requests::create_for_title(txn, &writer(), &wish, &overrides)
    };
    made(&call, write).await
}

async fn made<F>(call: &Call, write: F) -> Answer
where
    F: Fn(&mut Txn<'_>) -> Result<Value, FolioError> + Send + Sync + 'static,
{
    let request = call.db().write(write).await?;
    Ok(json_answer(StatusCode::CREATED, &account::hold(&request)))
}

/// Cancels a request of the patron and returns the closed request:
/// `{"cancellationReasonId","canceledByUserId","cancellationAdditionalInformation","canceledDate"}`.
///
/// Errors: 404 for the patron, and for another patron's request; 422 for one that is closed.
pub(super) async fn cancel(mut call: Call) -> Answer {
    let (id, hold, now_ms) = (call.uuid_param("id")?, call.uuid_param("holdId")?, call.app.now_ms());
    let given = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let found = txn.get(&REQUESTS.kind, &hold)?.map(|it| it.json()).transpose()?;
        let found = found.filter(|it| text(it, "requesterId") == id);
        let missing = || FolioError::not_found(format!("hold {hold} of user {id} does not exist"));
        let mut body = object(&found.ok_or_else(missing)?);
        body.insert("status".into(), "Closed - Cancelled".into());
        for (name, from) in [
            ("cancellationReasonId", "cancellationReasonId"),
            ("cancelledByUserId", "canceledByUserId"),
            ("cancellationAdditionalInformation", "cancellationAdditionalInformation"),
            ("cancelledDate", "canceledDate"),
        ] {
            if let Some(value) = given.get(from).filter(|it| !it.is_null()) {
                body.insert(name.into(), value.clone());
            }
        }
        body.entry("cancelledByUserId").or_insert(id.as_str().into());
        body.entry("cancelledDate").or_insert(dates::rmb(now_ms).into());
        requests::replace(txn, &writer(), &hold, body, &Overrides::default())?;
        let closed = txn.get(&REQUESTS.kind, &hold)?.map(|it| it.json()).transpose()?.unwrap_or_default();
        Ok(view::extended(txn, &[closed])?.pop().unwrap_or_default())
    };
    let request = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &account::hold(&request)))
}

/// Lists the service points where the patron may pick up an item or a title.
pub(super) async fn allowed_points(call: Call) -> Answer {
    let (id, now_ms) = (call.uuid_param("id")?, call.app.now_ms());
    let (item, instance) = match call.param("itemId") {
        "" => (String::new(), call.uuid_param("instanceId")?),
        _ => (call.uuid_param("itemId")?, String::new()),
    };
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        patron(view, &id, now_ms)?;
        let allowed = requests::allowed_points(view, &id, &item, &instance, None)?;
        let mut points: Vec<Value> = Vec::new();
        for kind in ["Page", "Hold", "Recall"] {
            for point in allowed.get(kind).and_then(Value::as_array).into_iter().flatten() {
                if !points.iter().any(|it| it["id"] == point["id"]) {
                    points.push(json!({"id": point["id"], "name": point["name"]}));
                }
            }
        }
        Ok(json!({"allowedServicePoints": points}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}
