//! Permissions of users and the list of all permissions (section 11 of the contract; mod-permissions).
//!
//! A user's grants are in a record of their own (`PERMISSION_USER`), exactly as they were granted. The effective
//! permissions, with the site's own sets expanded, are in `permissions` of the user's account, which routes check.

pub(crate) mod catalogue;
pub(crate) mod routes;
pub(crate) mod sets;

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use pinakes_accounts::{User, user};
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Record, Txn, View, Weight};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::platform::app::Call;
use crate::platform::collection::Page;
use crate::platform::cql::{self, Names};
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::users::perms::sets::{PERMISSION_USER, listed_in};
use crate::users::user::{USERS, account_of};

pub(crate) use sets::PERMISSION;

/// Builds the permission user of an account whose permissions were granted in another way: its id is that of the user.
fn of_account(account: &User) -> Value {
    let id = account.uuid.to_string();
    json!({"id": id, "userId": id, "permissions": account.permissions})
}

/// Returns a permission user by its own id, or by that of the user (`indexField=userId`).
fn found(view: &mut View<'_>, id: &str, is_user: bool) -> Result<Option<Value>, FolioError> {
    if !is_user && let Some(record) = view.get(&PERMISSION_USER, id)? {
        return Ok(Some(record.json()?));
    }
    if let Some(record) = view.first(&PERMISSION_USER, Expr::Is("userId".into(), id.into()))? {
        // The user's id is not the id of a permission user that has its own id.
        return if is_user { Ok(Some(record.json()?)) } else { Ok(None) };
    }
    let account = user::by_uuid(view, Uuid::parse_str(id).unwrap_or_default())?;
    Ok(account.as_ref().map(of_account))
}

async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let names = Names::PLAIN;
        let filter =
            cql::meaning(&page.cql.condition, &PERMISSION_USER, &names, &mut |_| Ok::<_, FolioError>(None))?;
        let n_granted = view.count(&PERMISSION_USER, &filter)?;
        let query = Query::filter(filter).window(page.offset, page.limit);
        let mut found =
            view.find(&PERMISSION_USER, &query)?.iter().map(Record::json).collect::<Result<Vec<_>, _>>()?;
        // They are followed by accounts whose permissions were granted in another way.
        let names = Names { aliases: &[("id", "uuid"), ("userId", "uuid")], ..Names::PLAIN };
        let of_accounts = cql::meaning(&page.cql.condition, &pinakes_accounts::USER, &names, &mut |_| {
            Ok::<_, FolioError>(None)
        })?;
        let granted = view.join_keys(&PERMISSION_USER, &Expr::All, &"userId".into())?;
        let others = of_accounts.and(Expr::Not(Box::new(Expr::Joined("uuid".into(), granted))));
        let total = n_granted + user::count(view, &others)?;
        let n_left = page.limit - found.len() as u64;
        if n_left != 0 {
            let query = Query::filter(others).window(page.offset.saturating_sub(n_granted), n_left);
            found.extend(user::find(view, &query)?.iter().map(of_account));
        }
        Ok((found, total))
    };
    let (found, total) = call.db().read(Weight::Scan, read).await?;
    let body = json!({
        "permissionUsers": found, "totalRecords": total,
        "resultInfo": {"totalRecords": total, "facets": [], "diagnostics": []},
    });
    Ok(json_answer(StatusCode::OK, &body))
}

/// Returns the permission user in a path.
async fn named(call: &Call) -> Result<Value, FolioError> {
    let id = call.uuid_param("id")?;
    let is_user = call.query.get("indexField") == Some("userId");
    let wanted = id.clone();
    let body = call.db().read(Weight::Scan, move |view| found(view, &wanted, is_user)).await?;
    body.ok_or_else(|| missing(&id))
}

fn missing(id: &str) -> FolioError {
    FolioError::not_found(format!("No user with id: {id}"))
}

async fn by_id(call: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &named(&call).await?))
}

/// Returns `{"permissionNames"}`; with `expanded=true` including those in sets, with `full=true` as records.
async fn names(call: Call) -> Answer {
    let body = named(&call).await?;
    let mut names = listed_in(&body);
    if call.query.is_true("expanded") {
        let granted = names.clone();
        names = call.db().read(Weight::Scan, move |view| sets::expanded(view, &granted)).await?;
    }
    let n = names.len();
    let list: Value = if call.query.is_true("full") {
        let built_in = Arc::clone(&call.app.permissions);
        call.db().read(Weight::Scan, move |view| catalogue::by_names(view, &built_in, &names)).await?.into()
    } else {
        names.into()
    };
    Ok(json_answer(StatusCode::OK, &json!({"permissionNames": list, "totalRecords": n})))
}

/// Creates a permission user: `{id?, userId, permissions}`; a user who cannot log in yet gets an account without a
/// password.
async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let user_id = required_text(&body, "userId")?.to_owned();
    let uuid = Uuid::parse_str(&user_id)
        .map_err(|_| FolioError::unprocessable(Fault::new("userId is no UUID").with("userId", &user_id)))?;
    let id = match body.get("id").and_then(Value::as_str) {
        Some(id) => parse_uuid(id)
            .ok_or_else(|| FolioError::unprocessable(Fault::new("id is no UUID").with("id", id)))?,
        None => uuid.to_string(),
    };
    let list = checked(body.get("permissions"))?;
    let (now_ms, by) = (call.app.now_ms(), call.asker.user_id());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let user = uuid.to_string();
        if txn.first(&PERMISSION_USER, Expr::Is("userId".into(), user.as_str().into()))?.is_some()
            || txn.has(&PERMISSION_USER, &id)?
        {
            let fault = Fault::new(format!("permissions user for userId {user} already exists"));
            return Err(FolioError::unprocessable(fault.with("userId", user)));
        }
        store(txn, &id, &user, list.clone(), None, now_ms, by.as_deref())
    };
    let stored = call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(json_answer(StatusCode::CREATED, &stored))
}

/// Stores a user's grants, and the effective permissions in the account.
fn store(
    txn: &mut Txn<'_>,
    id: &str,
    user_id: &str,
    list: Vec<String>,
    old: Option<&Value>,
    now_ms: i64,
    by: Option<&str>,
) -> Result<Value, FolioError> {
    let uuid = Uuid::parse_str(user_id).unwrap_or_default();
    if user::by_uuid(txn, uuid)?.is_none() {
        let record = txn.get(&USERS.kind, &uuid.to_string())?.as_ref().map(Record::json).transpose()?;
        let account = record.as_ref().and_then(|it| account_of(it, uuid, now_ms));
        let fault = || Fault::new(format!("No user with a username has the id {uuid}"));
        let account =
            account.ok_or_else(|| FolioError::unprocessable(fault().with("userId", uuid.to_string())))?;
        user::insert(txn, &account)?;
    }
    let account = user::by_uuid(txn, uuid)?.ok_or_else(|| missing(user_id))?;
    let whole = sets::expanded(txn, &list)?;
    user::change(txn, &account.id, now_ms, |it| it.permissions = whole)?;
    let now = dates::rmb(now_ms);
    let mut metadata = Map::new();
    let created = old.and_then(|it| it.get("metadata")).cloned().unwrap_or_default();
    metadata.insert(
        "createdDate".into(),
        created.get("createdDate").cloned().unwrap_or_else(|| now.as_str().into()),
    );
    let creator =
        created.get("createdByUserId").cloned().or_else(|| by.filter(|_| old.is_none()).map(Value::from));
    metadata.extend(creator.map(|it| ("createdByUserId".to_owned(), it)));
    metadata.insert("updatedDate".into(), now.into());
    metadata.extend(by.map(|it| ("updatedByUserId".to_owned(), it.into())));
    let body = json!({"id": id, "userId": user_id, "permissions": list, "metadata": metadata});
    txn.put(&PERMISSION_USER, id, &body)?;
    Ok(body)
}

fn checked(value: Option<&Value>) -> Result<Vec<String>, FolioError> {
    let names = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => return Err(FolioError::bad_request("permissions must be a list of names")),
    };
    let mut seen = BTreeSet::new();
    Ok(names.into_iter().filter(|it| seen.insert(it.clone())).collect())
}

/// Changes a user's grants.
async fn changed(
    call: &Call,
    change: impl Fn(&mut Vec<String>) -> Result<(), FolioError> + Send + 'static,
) -> Result<Value, FolioError> {
    let id = call.uuid_param("id")?;
    let is_user = call.query.get("indexField") == Some("userId");
    let (now_ms, by) = (call.app.now_ms(), call.asker.user_id());
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let old = found(txn, &id, is_user)?.ok_or_else(|| missing(&id))?;
        let mut list = listed_in(&old);
        change(&mut list)?;
        let text = |name: &str| text_at(&old, name).unwrap_or_default().to_owned();
        store(txn, &text("id"), &text("userId"), list, Some(&old), now_ms, by.as_deref())
    };
    let stored = call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(stored)
}

async fn replace(mut call: Call) -> Answer {
    let body = call.object().await?;
    let list = checked(body.get("permissions"))?;
    let stored = changed(&call, move |it| {
        it.clone_from(&list);
        Ok(())
    })
    .await?;
    Ok(json_answer(StatusCode::OK, &stored))
}

/// Removes all of a user's grants.
async fn remove(call: Call) -> Answer {
    let stored = changed(&call, |it| {
        it.clear();
        Ok(())
    })
    .await?;
    let id = text_at(&stored, "id").unwrap_or_default().to_owned();
    call.db().write(move |txn: &mut Txn<'_>| txn.delete(&PERMISSION_USER, &id).map(drop)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn add(mut call: Call) -> Answer {
    let body = call.object().await?;
    let name = required_text(&body, "permissionName")?.to_owned();
    let added = name.clone();
    changed(&call, move |list| {
        if list.contains(&added) {
            let fault = Fault::new(format!("Permission {added} is already assigned"));
            return Err(FolioError::unprocessable(fault.with("permissionName", added.as_str())));
        }
        list.push(added.clone());
        Ok(())
    })
    .await?;
    Ok(json_answer(StatusCode::OK, &json!({"permissionName": name})))
}

async fn take_away(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    changed(&call, move |list| {
        list.retain(|it| *it != name);
        Ok(())
    })
    .await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
