//! Administration of workflows: definitions, triggers, and the addresses that may resume them.

use std::net::IpAddr;

use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::step::Step;
use super::{INVOCATION, Invocation, TRIGGERED, Trigger, WORKFLOW, Workflow, by_id, of_trigger};
use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, site_settings, stored};

/// Maximum number of steps of a workflow.
const STEPS: usize = 100;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/workflows", list)
        .post("/admin/workflows", add)
        .get("/admin/workflows/default", list_triggered)
        .get("/admin/workflows/default/{trigger}", show_triggered)
        .put("/admin/workflows/default/{trigger}", set_triggered)
        .delete("/admin/workflows/default/{trigger}", unset_triggered)
        .get("/admin/workflows/pending", list_pending)
        .get("/admin/workflows/{id}", show)
        .delete("/admin/workflows/{id}", delete)
        .get("/admin/workflows/ip-whitelist", show_addresses)
        .put("/admin/workflows/ip-whitelist", set_addresses)
        .delete("/admin/workflows/ip-whitelist", delete_addresses)
}

/// Parses a number in a path or a body. Errors: 400.
fn number(text: &str) -> Result<i64, ApiError> {
    text.trim().parse().map_err(|_| ApiError::bad_request("workflow identifier has to be numeric."))
}

fn missing(id: impl std::fmt::Display) -> ApiError {
    ApiError::not_found(format!("Can't find workflow with id {id}"))
}

async fn list(call: Call) -> Answer {
    let all = |view: &mut View<'_>| stored::find::<Workflow>(view, &WORKFLOW, &Query::filter(Expr::All));
    let mut all = call.db().read(Weight::Scan, all).await?;
    all.sort_by_key(|it| it.id);
    envelope::ok(all.iter().map(Workflow::brief).collect::<Vec<Value>>())
}

async fn add(mut call: Call) -> Answer {
    let refuse = |what: String| ApiError::bad_request(format!("Can't parse Json: {what}"));
    let text = call.text().await?;
    let body: Map<String, Value> = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    let name = body.get("name").and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let name = name.ok_or_else(|| refuse("a workflow has no text \"name\"".to_owned()))?.to_owned();
    let steps = body.get("steps").and_then(Value::as_array);
    let steps = steps.ok_or_else(|| refuse("a workflow has no list \"steps\"".to_owned()))?;
    if STEPS < steps.len() {
        return Err(refuse(format!("the workflow has {} steps, {STEPS} are taken", steps.len())));
    }
    let steps = steps.iter().map(Step::read).collect::<Result<Vec<_>, _>>().map_err(refuse)?;
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Workflow, ApiError> {
        let mut ids = ids;
        let workflow = Workflow { id: ids.next()?, name: name.clone(), steps: steps.clone() };
        stored::insert(txn, &WORKFLOW, &workflow.id.to_string(), &workflow)?;
        Ok(workflow)
    };
    let workflow = call.db().write(write).await?;
    envelope::created(&format!("/admin/workflows/{}", workflow.id), workflow.json())
}

async fn show(call: Call) -> Answer {
    let id = number(call.param("id"))?;
    let found = call.db().read(Weight::Point, move |view| by_id(view, id)).await?;
    envelope::ok(found.ok_or_else(|| missing(id))?.json())
}

/// Deletes a workflow. Errors: 403 if a trigger starts it. Waiting invocations of a deleted workflow fail.
async fn delete(call: Call) -> Answer {
    let id = number(call.param("id"))?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        for trigger in Trigger::ALL {
            if of_trigger(txn, trigger)?.is_some_and(|it| it.id == id) {
                return Err(ApiError::forbidden(format!(
                    "Workflow {id} is the default workflow of the trigger {} and cannot be deleted.",
                    trigger.name()
                )));
            }
        }
        txn.delete(&WORKFLOW, &id.to_string())?.map(drop).ok_or_else(|| missing(id))
    };
    call.db().write(write).await?;
    envelope::message(format!("Workflow {id} deleted"))
}

/// Lists waiting workflows with the ids by which they are resumed.
async fn list_pending(call: Call) -> Answer {
    let all = |view: &mut View<'_>| stored::find::<Invocation>(view, &INVOCATION, &Query::filter(Expr::All));
    let all = call.db().read(Weight::Scan, all).await?;
    let shown = all.iter().map(|it| {
        json!({
            "id": it.id, "workflow": it.workflow, "trigger": it.trigger.name(), "step": it.step, "dataset": it.dataset,
        })
    });
    envelope::ok(shown.collect::<Vec<Value>>())
}

async fn list_triggered(call: Call) -> Answer {
    let find = |view: &mut View<'_>| -> Result<Map<String, Value>, ApiError> {
        let mut map = Map::new();
        for trigger in Trigger::ALL {
            let workflow = of_trigger(view, trigger)?;
            map.insert(trigger.name().to_owned(), workflow.map_or(Value::Null, |it| it.brief()));
        }
        Ok(map)
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn show_triggered(call: Call) -> Answer {
    let trigger = Trigger::parse(call.param("trigger"))?;
    let found = call.db().read(Weight::Point, move |view| of_trigger(view, trigger)).await?;
    envelope::ok(found.ok_or_else(|| ApiError::not_found("no default workflow"))?.json())
}

/// Sets the workflow of a trigger; the body is its number.
async fn set_triggered(mut call: Call) -> Answer {
    let id = number(&call.text().await?)?;
    let trigger = Trigger::parse(call.param("trigger"))?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        by_id(txn, id)?.ok_or_else(|| missing(id))?;
        txn.put(&TRIGGERED, trigger.name(), &json!({"workflow": id}))?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message(format!("Default workflow id for trigger {} set to {id}", trigger.name()))
}

async fn unset_triggered(call: Call) -> Answer {
    let trigger = Trigger::parse(call.param("trigger"))?;
    let write = move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&TRIGGERED, trigger.name())?);
    call.db().write(write).await?;
    envelope::message(format!("default workflow for trigger {} unset", trigger.name()))
}

const ADDRESSES: &str = ":WorkflowsAdminIpWhitelist";
/// The loopback addresses.
const OWN_ADDRESSES: &str = "127.0.0.1;::1";

/// Returns the addresses that may resume workflows, in the form of the setting.
pub(super) fn addresses(view: &mut View<'_>) -> Result<String, ApiError> {
    Ok(site_settings::get(view, ADDRESSES)?.unwrap_or_else(|| OWN_ADDRESSES.to_owned()))
}

async fn show_addresses(call: Call) -> Answer {
    envelope::message(call.db().read(Weight::Point, addresses).await?)
}

async fn set_addresses(mut call: Call) -> Answer {
    let text = call.text().await?;
    let sound = !text.is_empty() && text.split(';').all(|it| it.trim().parse::<IpAddr>().is_ok());
    if !sound {
        return Err(ApiError::bad_request("Request contains illegal IP addresses."));
    }
    let value = text.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        txn.put(&site_settings::SETTING, ADDRESSES, &json!({"value": value}))?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message(format!("White list set to '{text}'"))
}

async fn delete_addresses(call: Call) -> Answer {
    let write = |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&site_settings::SETTING, ADDRESSES)?);
    call.db().write(write).await?;
    envelope::message("Restored whitelist to default")
}
