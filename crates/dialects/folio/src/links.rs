//! Which headings of an instance are controlled by which authority (section 8.3 of the contract, T3).
//!
//! The links of an instance are one record, replaced as a whole. An authority that goes takes its links with it.

mod follow;
mod rules;
mod stats;
mod suggestions;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_marc::{Field, Subfield};
use pinakes_store::{Arity, Column, Expr, Index, Kind, Query, Txn, Type, Value as StoreValue, View, Weight};
use serde_json::{Value, json};

use crate::authorities::authority::AUTHORITIES;
use crate::inventory::instances::INSTANCES;
use crate::platform::app::{Call, json_answer, parse_uuid};
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::limits::COUNTED_AUTHORITIES;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::source_records::marc;
use crate::source_records::source_storage;

pub(crate) use follow::{follow_authority, take_over};
pub(crate) use rules::{LINKING_RULE, bib_field};
pub(crate) use stats::{HEADING_CHANGE, note};
pub(crate) use suggestions::{Wish, suggest_for};

/// Links by instance.
pub(crate) static LINKS: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column { name: "authorities", path: "links.authorityId", ty: Type::Text, arity: Arity::Many },
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[Index::on(&["updatedAt"])],
    ..Kind::named("folio_instance_links")
};

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

/// The links of an instance.
pub(crate) fn of_instance(view: &mut View<'_>, instance: &str) -> Result<Vec<Value>, FolioError> {
    Ok(links(view, instance)?.as_array().cloned().unwrap_or_default())
}

/// `{"links":[{authorityId, authorityNaturalId, instanceId, linkingRuleId}]}`.
async fn replace(mut call: Call) -> Answer {
    let instance = call.uuid_param("id")?;
    let body = call.object().await?;
    let Some(Value::Array(list)) = body.get("links").cloned() else {
        return Err(FolioError::unprocessable(Fault::missing("links")));
    };
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

/// Stores the links of an instance; without any there is no record.
fn store(txn: &mut Txn<'_>, instance: &str, links: Vec<Value>, now_ms: i64) -> Result<(), FolioError> {
    if links.is_empty() {
        txn.delete(&LINKS, instance)?;
        return Ok(());
    }
    let body = json!({"id": instance, "updatedAt": dates::micros(now_ms), "links": links});
    let bytes = crate::platform::json::bytes(&body);
    let document = pinakes_store::Document::with_bytes(&LINKS, instance, &body, bytes)?;
    match txn.has(&LINKS, instance)? {
        true => txn.update_document(&document)?,
        false => txn.insert_document(&document)?,
    };
    Ok(())
}

/// How many links an authority has.
pub(crate) fn n_links(view: &mut View<'_>, authority: &str) -> Result<u64, FolioError> {
    Ok(view.count(&LINKS, &Expr::Is("links.authorityId".into(), authority.into()))?)
}

/// An authority goes: its links go, and with them `$9` in the source records and `authorityId` in the instances. Gives
/// how many instances were linked.
pub(crate) fn unlink(txn: &mut Txn<'_>, writer: &Writer, authority: &str) -> Result<u64, FolioError> {
    let linked = Query::filter(Expr::Is("links.authorityId".into(), authority.into()));
    let records = txn.find(&LINKS, &linked)?;
    for record in &records {
        let body = record.json()?;
        let links = body.get("links").and_then(Value::as_array).cloned().unwrap_or_default();
        let kept = links.into_iter().filter(|it| text_at(it, "authorityId") != Some(authority)).collect();
        store(txn, &record.id, kept, writer.now_ms)?;
        unlink_source(txn, writer, &record.id, authority)?;
        unlink_instance(txn, writer, &record.id, authority)?;
    }
    Ok(records.len() as u64)
}

/// Takes `$9` with the authority's id out of an instance's source record.
fn unlink_source(
    txn: &mut Txn<'_>,
    writer: &Writer,
    instance: &str,
    authority: &str,
) -> Result<(), FolioError> {
    let Some(mut source) = source_storage::current_of(txn, "instanceId", instance)? else { return Ok(()) };
    let content = source.pointer("/parsedRecord/content").and_then(marc::from_value);
    let Some(mut record) = content else { return Ok(()) };
    let is_link = |it: &Subfield| it.code == '9' && it.value == authority;
    let mut n_links = 0;
    for field in &mut record.fields {
        if let Field::Data(field) = field {
            let n_before = field.subfields.len();
            field.subfields.retain(|it| !is_link(it));
            n_links += n_before - field.subfields.len();
        }
    }
    if n_links == 0 {
        return Ok(());
    }
    marc::set_lengths(&mut record);
    let id = text_at(&source, "id").unwrap_or_default().to_owned();
    source_storage::set(&mut source, "parsedRecord", marc::part(&id, marc::to_value(&record)));
    // Whoever waits for the change sees it by the snapshot.
    let snapshot = writer.new_uuid();
    source_storage::put_snapshot(txn, &snapshot, "COMMITTED", writer.now_ms)?;
    source_storage::set(&mut source, "snapshotId", snapshot.into());
    source_storage::touch(&mut source, writer.now_ms);
    Ok(source_storage::rewrite(txn, &source)?)
}

/// Takes the authority's id out of an instance's headings.
fn unlink_instance(
    txn: &mut Txn<'_>,
    writer: &Writer,
    instance: &str,
    authority: &str,
) -> Result<(), FolioError> {
    let Some(record) = txn.get(&INSTANCES.kind, instance)? else { return Ok(()) };
    let Value::Object(mut body) = record.json()? else { return Ok(()) };
    let mut is_changed = false;
    for name in ["contributors", "subjects", "alternativeTitles", "series"] {
        for heading in body.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(map) = heading
                && map.get("authorityId").and_then(Value::as_str) == Some(authority)
            {
                map.shift_remove("authorityId");
                is_changed = true;
            }
        }
    }
    if is_changed {
        collection::put(txn, writer, &INSTANCES, instance, body, Missing::Refuse, Lock::Ignored)?;
    }
    Ok(())
}

/// `{"ids":[…]}`: how many links each authority has.
async fn count(mut call: Call) -> Answer {
    let body = call.object().await?;
    let Some(Value::Array(ids)) = body.get("ids") else {
        return Err(FolioError::unprocessable(Fault::missing("ids")));
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
