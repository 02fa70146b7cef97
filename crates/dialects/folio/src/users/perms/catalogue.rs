//! `/perms/permissions`: all permissions that routes ask for, the sets of them, and the site's own permissions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Kind, Query, Record, Txn, Value as StoreValue, View, Weight, matches};
use serde_json::{Map, Value, json};

use super::{PERMISSION, sets};
use crate::platform::app::Call;
use crate::platform::collection::parsed;
use crate::platform::cql::{self, Names};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::{id_of_name, text_at};
use crate::platform::permissions::Access;
use crate::platform::routes::{Route, Routes};
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::users::perms::sets::PERMISSION_USER;

/// A kind for built-in permissions, which are not stored records.
static BUILT_IN: Kind = Kind::named("folio_permission_built_in");
const NAMES: Names =
    Names { whole: &["permissionName"], anywhere: &["permissionName", "displayName"], ..Names::PLAIN };

pub(super) fn routes(routes: Routes) -> Routes {
    let item = "/perms/permissions/{id}";
    routes
        .get("/perms/permissions", Access::to("perms.permissions.get"), all)
        .post("/perms/permissions", Access::to("perms.permissions.item.post"), create)
        .get(item, Access::to("perms.permissions.get"), by_id)
        .put(item, Access::to("perms.permissions.item.put"), replace)
        .delete(item, Access::to("perms.permissions.item.delete"), remove)
        .post("/perms/purge-deprecated", Access::to("perms.permissions.purge-deprecated.post"), purge)
}

/// Returns all permissions that routes ask for, and a set `a.b.all` for each prefix of them.
pub(crate) fn built_in(table: &[Route]) -> Arc<[Value]> {
    let mut names: BTreeMap<String, Vec<String>> = table
        .iter()
        .filter_map(|route| match &route.access {
            Access::Permission(name) => Some((name.clone().into_owned(), Vec::new())),
            Access::Supertenant(name) => Some(((*name).to_owned(), Vec::new())),
            Access::Anybody | Access::User => None,
        })
        .collect();
    let mut sets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names.keys() {
        for (at, _) in name.match_indices('.') {
            sets.entry(format!("{}.all", &name[..at])).or_default().push(name.clone());
        }
    }
    names.extend(sets);
    let shown = |(name, below): (&String, &Vec<String>)| {
        json!({
            "id": id_of_name(name), "permissionName": name, "displayName": name, "subPermissions": below, "childOf": [],
            "grantedTo": [], "mutable": false, "visible": true, "dummy": false, "deprecated": false,
        })
    };
    names.iter().map(shown).collect()
}

/// Deletes permissions that no module declares any more: there are none, because permissions exist as long as a route
/// asks for them.
async fn purge(_: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!({"permissionNames": []})))
}

/// Adds the ids of the permission users to whom each of these permissions was granted.
fn with_holders(view: &mut View<'_>, permissions: &mut [Value]) -> Result<(), FolioError> {
    let name = |it: &Value| text_at(it, "permissionName").unwrap_or_default().to_owned();
    let wanted = permissions.iter().map(|it| StoreValue::Text(name(it))).collect();
    let mut holders: HashMap<String, Vec<Value>> = HashMap::new();
    for record in view.find(&PERMISSION_USER, &Query::filter(Expr::In("permissions".into(), wanted)))? {
        for held in crate::users::perms::sets::listed_in(&record.json()?) {
            holders.entry(held).or_default().push(record.id.clone().into());
        }
    }
    for permission in permissions {
        permission["grantedTo"] = holders.remove(&name(permission)).unwrap_or_default().into();
    }
    Ok(())
}

/// Returns permissions by name, in the given order; an unknown one is returned with its name only.
pub(crate) fn by_names(
    view: &mut View<'_>,
    built_in: &[Value],
    names: &[String],
) -> Result<Vec<Value>, FolioError> {
    let wanted = names.iter().map(|it| StoreValue::Text(it.clone())).collect();
    let own = view.find(&PERMISSION, &Query::filter(Expr::In("permissionName".into(), wanted)))?;
    let own = own.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
    let mut known: HashMap<&str, &Value> = HashMap::new();
    for permission in own.iter().chain(built_in) {
        known.entry(text_at(permission, "permissionName").unwrap_or_default()).or_insert(permission);
    }
    let one = |name: &String| {
        known.get(name.as_str()).map_or_else(|| json!({"permissionName": name}), |it| (*it).clone())
    };
    Ok(names.iter().map(one).collect())
}

/// Returns a page by `start` and `length`, this module's names, or `offset` and `limit`.
async fn all(call: Call) -> Answer {
    let cql = parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
    let start = call.query.number("start", call.query.number("offset", 0)?)?;
    let length = call.query.number("length", call.query.number("limit", 10)?)?;
    let built_in = Arc::clone(&call.app.permissions);
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let none = &mut |_: &crate::platform::cql::Clause| Ok::<_, FolioError>(None);
        let filter = cql::meaning(&cql.condition, &PERMISSION, &NAMES, none)?;
        let own = view.find(&PERMISSION, &Query::filter(filter))?;
        let mut fitting = own.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
        let filter = cql::meaning(&cql.condition, &BUILT_IN, &NAMES, none)?;
        fitting.extend(built_in.iter().filter(|it| matches(&filter, it)).cloned());
        let total = fitting.len();
        let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut page: Vec<Value> = fitting.into_iter().skip(bound(start)).take(bound(length)).collect();
        with_holders(view, &mut page)?;
        Ok(json!({"permissions": page, "totalRecords": total}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn missing(id: &str) -> FolioError {
    FolioError::not_found(format!("Permission {id} not found"))
}

async fn by_id(call: Call) -> Answer {
    let (id, built_in) = (call.param("id").to_owned(), Arc::clone(&call.app.permissions));
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let own = view.get(&PERMISSION, &id)?.map(|it| it.json()).transpose()?;
        let built_in = || built_in.iter().find(|it| text_at(it, "id") == Some(id.as_str())).cloned();
        let mut found = [own.or_else(built_in).ok_or_else(|| missing(&id))?];
        with_holders(view, &mut found)?;
        let [found] = found;
        Ok(found)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Returns the stored form of a site's own permission.
fn made(call: &Call, id: &str, mut body: Map<String, Value>, old: Option<&Value>) -> Value {
    let now = dates::rmb(call.app.now_ms());
    let by = call.asker.user_id();
    body.insert("id".into(), id.into());
    body.remove("grantedTo");
    for (name, otherwise) in [
        ("subPermissions", json!([])),
        ("childOf", json!([])),
        ("mutable", json!(true)),
        ("visible", json!(true)),
        ("dummy", json!(false)),
        ("deprecated", json!(false)),
    ] {
        if body.get(name).is_none_or(Value::is_null) {
            body.insert(name.into(), otherwise);
        }
    }
    let created = old.and_then(|it| it.get("metadata")).and_then(|it| it.get("createdDate")).cloned();
    let mut metadata =
        json!({"createdDate": created.unwrap_or_else(|| now.as_str().into()), "updatedDate": now});
    if let Some(by) = by {
        metadata["updatedByUserId"] = by.into();
    }
    body.insert("metadata".into(), metadata);
    Value::Object(body)
}

async fn create(mut call: Call) -> Answer {
    let mut body = call.object().await?;
    let id = match body.get("id").and_then(Value::as_str) {
        Some(id) => parse_uuid(id)
            .ok_or_else(|| FolioError::unprocessable(Fault::new("id is no UUID").with("id", id)))?,
        None => call.app.new_uuid(),
    };
    // A set without a name gets a unique one.
    let name = body.get("permissionName").and_then(Value::as_str).unwrap_or(&id).to_owned();
    body.insert("permissionName".into(), name.as_str().into());
    if call.app.permissions.iter().any(|it| text_at(it, "permissionName") == Some(name.as_str())) {
        return Err(taken(&name));
    }
    let (now_ms, whole) = (call.app.now_ms(), made(&call, &id, body, None));
    let shown = whole.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        txn.insert(&PERMISSION, &id, &whole).map_err(|error| match error {
            pinakes_store::StoreError::Duplicate { .. } => taken(&name),
            error => error.into(),
        })?;
        sets::follow(txn, now_ms)
    };
    call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(json_answer(StatusCode::CREATED, &shown))
}

fn taken(name: &str) -> FolioError {
    let fault = Fault::new(format!("Permission with name {name} already exists"));
    FolioError::unprocessable(fault.with("permissionName", name))
}

async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let name = required_text(&body, "permissionName")?.to_owned();
    let wanted = id.clone();
    let old =
        call.db().read(Weight::Point, move |view: &mut View<'_>| view.get(&PERMISSION, &wanted)).await?;
    let old = old.ok_or_else(|| missing(&id))?.json()?;
    if text_at(&old, "permissionName") != Some(name.as_str()) {
        let fault = Fault::new("the permission name property cannot change");
        return Err(FolioError::unprocessable(fault.with("permissionName", name)));
    }
    let (now_ms, whole) = (call.app.now_ms(), made(&call, &id, body, Some(&old)));
    let shown = whole.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        txn.put(&PERMISSION, &id, &whole)?;
        sets::follow(txn, now_ms)
    };
    call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(json_answer(StatusCode::OK, &shown))
}

async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let gone = txn.delete(&PERMISSION, &id)?.ok_or_else(|| missing(&id))?.json()?;
        let name = text_at(&gone, "permissionName").unwrap_or_default().to_owned();
        let of_name = |path: &str| Expr::Is(path.into(), name.as_str().into());
        for (kind, field) in [(&PERMISSION, "subPermissions"), (&PERMISSION_USER, "permissions")] {
            for record in txn.find(kind, &Query::filter(of_name(field)))? {
                let mut body = record.json()?;
                if let Some(list) = body.get_mut(field).and_then(Value::as_array_mut) {
                    list.retain(|it| it.as_str() != Some(name.as_str()));
                }
                txn.put(kind, &record.id, &body)?;
            }
        }
        sets::follow(txn, now_ms)
    };
    call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
