//! `/scheduler/timers`: recurring work of the server in each tenant, and how often it runs (mod-scheduler).
//!
//! A timer names a route and runs as if that route were called. Each timer is a job of the store's queue with a time at
//! which it is due: however many servers there are, only one runs it, and its next time survives a restart.

mod clock;
pub(crate) mod known;

use http::StatusCode;
use pinakes_store::{Column, Expr, Kind, Query, Txn, Type};
use serde_json::{Map, Value, json};

use crate::circulation::records::text;
use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Lock, Metadata, Missing, Schema, Writer, page_of,
};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

pub use crate::timers::known::Timers;

/// `/scheduler/timers`.
pub(crate) static TIMERS: Collection = Collection {
    table: "timer",
    permission: "scheduler",
    kind: Kind {
        id_path: Some("id"),
        columns: &[Column::one("moduleName", Type::Folded), Column::one("type", Type::Folded)],
        ..Kind::named("folio_timer")
    },
    schema: Schema { required: &["routingEntry"], defaults: &[("enabled", "true")], ..Schema::OPEN },
    metadata: Metadata::Rmb,
    hooks: Hooks { prepare: check, stored: plan, deleting: unplan, ..Hooks::NONE },
    reference_data: include_str!("../reference/timers.json"),
    is_served: false,
    ..Collection::named("/scheduler/timers", "timerDescriptors", "folio_timer")
};

/// The queue that contains all timers of a tenant.
const QUEUE: &str = "folio-timer";

/// Adds the routes of timers.
pub(crate) fn routes(routes: Routes) -> Routes {
    let one = "/scheduler/timers/{id}";
    routes
        .get("/scheduler/timers", Access::to("scheduler.collection.get"), list)
        .post("/scheduler/timers", Access::to("scheduler.item.post"), |call| {
            collection::create(call, &TIMERS)
        })
        .get(one, Access::to("scheduler.item.get"), |call| collection::by_id(call, &TIMERS))
        .put(one, Access::to("scheduler.item.put"), replace)
        .delete(one, Access::to("scheduler.item.delete"), |call| collection::remove(call, &TIMERS))
}

async fn list(call: Call) -> Answer {
    let page = collection::Page::of(&call)?;
    let read = move |view: &mut pinakes_store::View<'_>| -> Result<Value, FolioError> {
        let (found, total) = page_of(view, &TIMERS, &page)?;
        let list = found.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?;
        Ok(json!({"timerDescriptors": list, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(pinakes_store::Weight::Scan, read).await?))
}

/// Replaces a timer and answers with it, as mod-scheduler does.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| {
        collection::put(txn, &writer(), &TIMERS, &id, body.clone(), Missing::Refuse, Lock::Ignored)
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?.body))
}

/// Returns the time between two runs of a timer, in milliseconds; `None` if it is missing or invalid.
fn delay_ms(timer: &Value) -> Option<u32> {
    let entry = &timer["routingEntry"];
    let delay = entry["delay"].as_u64().or_else(|| entry["delay"].as_str()?.trim().parse().ok())?;
    let unit_ms: u64 = match text(entry, "unit") {
        "millisecond" => 1,
        "second" => 1_000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        "day" => 86_400_000,
        _ => return None,
    };
    let ms = delay.checked_mul(unit_ms)?;
    (0 < ms).then(|| u32::try_from(ms).unwrap_or(u32::MAX))
}

fn check(
    _: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let whole = Value::Object(body.clone());
    if delay_ms(&whole).is_some() {
        return Ok(());
    }
    let message = "routingEntry needs a delay above 0 and a unit: second, minute, hour or day";
    let found = format!("{} {}", whole["routingEntry"]["delay"], whole["routingEntry"]["unit"]);
    Err(FolioError::unprocessable(Fault::new(message).with("routingEntry", found)))
}

/// Plans the next run of a timer that was created or changed.
fn plan(txn: &mut Txn<'_>, _: &Writer, timer: &Value, _: Option<&Value>) -> Result<(), FolioError> {
    let id = text(timer, "id");
    txn.cancel_job(QUEUE, id)?;
    let Some(delay) = delay_ms(timer).filter(|_| timer["enabled"].as_bool().unwrap_or(true)) else {
        return Ok(());
    };
    txn.queue_job(QUEUE, id)?;
    if let Some(lease) = txn.take_lease_of(QUEUE, id, "plan", 1_000)? {
        txn.release_lease(&lease, delay)?;
    }
    Ok(())
}

fn unplan(txn: &mut Txn<'_>, _: &Writer, timer: &Value) -> Result<(), FolioError> {
    txn.cancel_job(QUEUE, text(timer, "id"))?;
    Ok(())
}

/// Runs the timers of a route as soon as the current transaction is on disk.
pub(crate) fn wake(txn: &mut Txn<'_>, path: &str) -> Result<(), FolioError> {
    let of_path = Expr::Is("routingEntry.pathPattern".into(), path.into());
    for timer in txn.find(&TIMERS.kind, &Query::filter(of_path))? {
        if txn.cancel_job(QUEUE, &timer.id)? {
            txn.queue_job(QUEUE, &timer.id)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays() {
        let check = |entry: Value, expected| {
            assert_eq!(delay_ms(&json!({"routingEntry": entry})), expected, "{entry}");
        };
        check(json!({"unit": "second", "delay": "1"}), Some(1_000));
        check(json!({"unit": "minute", "delay": 30}), Some(1_800_000));
        check(json!({"unit": "day", "delay": "1000000"}), Some(u32::MAX));
        check(json!({"unit": "second", "delay": 0}), None);
        check(json!({"unit": "month", "delay": 1}), None);
        check(json!({"delay": "1"}), None);
    }
}
