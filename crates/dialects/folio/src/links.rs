//! Links: which headings of an instance are controlled by which authority (section 8.3 of the contract, T3).
//!
//! The links of an instance are one record, replaced as a whole. Deleting an authority deletes its links.

mod follow;
pub(crate) mod linked;
pub(crate) mod noted;
mod rules;
mod stats;
mod suggestions;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Txn, Value as StoreValue, View, Weight};
use serde_json::{Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::links::linked::{LINKS, store};
use crate::platform::app::Call;
use crate::platform::collection::with_exceptions;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::COUNTED_AUTHORITIES;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

pub(crate) use follow::{follow_authority, take_over};
pub(crate) use rules::{LINKING_RULE, bib_field};
pub(crate) use suggestions::{Wish, suggest_for};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    routes
        .get("/links/instances/{id}", to("instance-authority-links.instances.collection.get"), show)
        .put("/links/instances/{id}", to("instance-authority-links.instances.collection.put"), replace)
        .post("/links/authorities/bulk/count", to("instance-authority-links.authorities.bulk.post"), count)
        .with(rules::routes)
        .with(suggestions::routes)
        .with(stats::routes)
}

fn bad(message: &str) -> FolioError {
    let fault = Fault::new(message).ty("RequestBodyValidationException").code("validation-error");
    FolioError::unprocessable(fault)
}

fn lacking_property(path: &str) -> FolioError {
    with_exceptions(FolioError::unprocessable(Fault::missing(path)))
}

fn links(view: &mut View<'_>, instance: &str) -> Result<Value, FolioError> {
    let record = view.get(&LINKS, instance)?.map(|it| it.json()).transpose()?;
    Ok(record.and_then(|mut it| it.get_mut("links").map(Value::take)).unwrap_or_else(|| json!([])))
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let list = call.db().read(Weight::Point, move |view| links(view, &id)).await?;
    let total = list.as_array().map_or(0, Vec::len);
    Ok(json_answer(StatusCode::OK, &json!({"links": list, "totalRecords": total})))
}

/// Returns the links of an instance.
pub(crate) fn of_instance(view: &mut View<'_>, instance: &str) -> Result<Vec<Value>, FolioError> {
    Ok(links(view, instance)?.as_array().cloned().unwrap_or_default())
}

/// What each link must have.
const REQUIRED: [&str; 4] = ["authorityId", "authorityNaturalId", "instanceId", "linkingRuleId"];

/// Replaces the links of an instance: `{"links":[{authorityId, authorityNaturalId, instanceId, linkingRuleId}]}`.
///
/// Errors: 422 when a link lacks a property, belongs to another instance, or names an authority that does not exist.
async fn replace(mut call: Call) -> Answer {
    let instance = call.uuid_param("id")?;
    let body = call.object().await?;
    let Some(Value::Array(list)) = body.get("links").cloned() else {
        return Err(lacking_property("links"));
    };
    for (n, link) in list.iter().enumerate() {
        let lacking = REQUIRED.iter().find(|name| link.get(**name).is_none_or(Value::is_null));
        if let Some(name) = lacking {
            return Err(lacking_property(&format!("links[{n}].{name}")));
        }
        if link["linkingRuleId"].as_u64().and_then(bib_field).is_none() {
            return Err(bad("linkingRuleId must be the number of a linking rule"));
        }
    }
    if list.iter().any(|it| text_at(it, "instanceId").and_then(parse_uuid).as_ref() != Some(&instance)) {
        return Err(bad("Link should have instanceId to be the same as in the path"));
    }
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut kept = Vec::with_capacity(list.len());
        for (n, link) in list.iter().enumerate() {
            let authority = text_at(link, "authorityId").and_then(parse_uuid);
            let authority = authority.ok_or_else(|| bad("authorityId must be a UUID"))?;
            if !txn.has(&AUTHORITIES.kind, &authority)? {
                return Err(bad("Cannot save links to non-existing authorities"));
            }
            let mut link = link.clone();
            link["authorityId"] = authority.into();
            if link.get("id").is_none_or(Value::is_null) {
                link["id"] = (n + 1).into();
            }
            if link.get("status").is_none_or(Value::is_null) {
                link["status"] = "ACTUAL".into();
            }
            kept.push(link);
        }
        store(txn, &instance, kept, now_ms)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Counts the links of each authority: `{"ids":[…]}`.
async fn count(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(Value::Array(ids)) = body.get("ids") else {
        return Err(lacking_property("ids"));
    };
    let ids: Option<Vec<String>> = ids.iter().map(|it| it.as_str().and_then(parse_uuid)).collect();
    let ids = ids
        .filter(|it| it.len() <= COUNTED_AUTHORITIES)
        .ok_or_else(|| bad("ids must be at most 10000 UUIDs"))?;
    let read = move |view: &mut View<'_>| -> Result<Vec<Value>, FolioError> {
        let mut counts: BTreeMap<String, u64> = ids.iter().map(|it| (it.clone(), 0)).collect();
        let wanted = ids.iter().map(|it| StoreValue::Text(it.clone())).collect();
        let linking = Query::filter(Expr::In("links.authorityId".into(), wanted));
        view.for_each_body(&LINKS, &linking, |_, body| {
            for link in body["links"].as_array().into_iter().flatten() {
                if let Some(n) = text_at(link, "authorityId").and_then(|it| counts.get_mut(it)) {
                    *n += 1;
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(ids.iter().map(|it| json!({"id": it, "totalLinks": counts.get(it)})).collect())
    };
    let list = call.db().read(Weight::Scan, read).await?;
    Ok(json_answer(StatusCode::OK, &json!({"links": list})))
}
