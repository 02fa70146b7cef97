//! Permissions of users and the list of all permissions (section 11 of the contract). They are kept with the
//! accounts: `permissions` of a user's account.

use std::sync::LazyLock;

use http::StatusCode;
use pinakes_accounts::{USER, User, user};
use pinakes_http::answer;
use pinakes_store::{Kind, Query, Record, Txn, View, Weight, matches};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{Call, json_answer, required_text};
use crate::collection::{Page, parsed};
use crate::cql::{self, Names};
use crate::error::{Answer, Fault, FolioError};
use crate::permissions::Access;
use crate::routes::{self, Routes};
use crate::users::{self, USERS};

/// What the names in queries on `/perms/users` stand for.
const NAMES: Names = Names { aliases: &[("id", "uuid"), ("userId", "uuid")], ..Names::PLAIN };
/// Stands for permissions, which are no records.
static PERMISSION: Kind = Kind::named("folio_permission");

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let read = || Access::to("perms.users.get");
    let change = || Access::to("perms.users.item.put");
    routes
        .get("/perms/users", read(), list)
        .post("/perms/users", Access::to("perms.users.item.post"), create)
        .get("/perms/users/{id}", read(), by_id)
        .put("/perms/users/{id}", change(), replace)
        .delete("/perms/users/{id}", Access::to("perms.users.item.delete"), remove)
        .get("/perms/users/{id}/permissions", read(), names)
        .post("/perms/users/{id}/permissions", change(), add)
        .delete("/perms/users/{id}/permissions/{name}", change(), take_away)
        .get("/perms/permissions", Access::to("perms.permissions.get"), all)
}

/// A permission user as it is shown; its id is that of the user.
fn shown(user: &User) -> Value {
    let id = user.uuid.to_string();
    json!({"id": id, "userId": id, "permissions": user.permissions})
}

async fn list(call: Call) -> Answer {
    let page = Page::of(&call)?;
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let filter = cql::meaning(&page.cql.condition, &USER, &NAMES, &mut |_| Ok::<_, FolioError>(None))?;
        let total = view.count(&USER, &filter)?;
        let query = Query::filter(filter).window(page.offset, page.limit);
        Ok((user::find(view, &query)?, total))
    };
    let (found, total) = call.db().read(Weight::Scan, read).await?;
    let list: Vec<Value> = found.iter().map(shown).collect();
    Ok(json_answer(StatusCode::OK, &json!({"permissionUsers": list, "totalRecords": total})))
}

/// The account that a path names; `indexField` may say which id it is, they are the same.
async fn account(call: &Call) -> Result<User, FolioError> {
    let id = call.uuid_param("id")?;
    let uuid = Uuid::parse_str(&id).unwrap_or_default();
    let found = call.db().read(Weight::Point, move |view| user::by_uuid(view, uuid)).await?;
    found.ok_or_else(|| FolioError::not_found(format!("No user with id: {id}")))
}

async fn by_id(call: Call) -> Answer {
    let user = account(&call).await?;
    Ok(json_answer(StatusCode::OK, &shown(&user)))
}

async fn names(call: Call) -> Answer {
    let user = account(&call).await?;
    let body = json!({"permissionNames": user.permissions, "totalRecords": user.permissions.len()});
    Ok(json_answer(StatusCode::OK, &body))
}

/// `{userId, permissions}`: a user who could not log in gets an account, without a password yet.
async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "userId")?.to_owned();
    let uuid = Uuid::parse_str(&id)
        .map_err(|_| FolioError::unprocessable(Fault::new("userId is no UUID").with("userId", &id)))?;
    let list = listed(body.get("permissions"))?;
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<User, FolioError> {
        if user::by_uuid(txn, uuid)?.is_none() {
            let record = txn.get(&USERS.kind, &uuid.to_string())?.as_ref().map(Record::json).transpose()?;
            let account = record.as_ref().and_then(|it| users::account_of(it, uuid, now_ms));
            let fault = || Fault::new(format!("No user with a username has the id {uuid}"));
            let account =
                account.ok_or_else(|| FolioError::unprocessable(fault().with("userId", uuid.to_string())))?;
            user::insert(txn, &account)?;
        }
        let account = user::by_uuid(txn, uuid)?.ok_or_else(|| FolioError::not_found(""))?;
        let list = list.clone();
        Ok(user::change(txn, &account.id, now_ms, |it| it.permissions = list)?)
    };
    let user = call.db().write(write).await?;
    call.app.context.accounts().changed();
    Ok(json_answer(StatusCode::CREATED, &shown(&user)))
}

fn listed(value: Option<&Value>) -> Result<Vec<String>, FolioError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
            Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => Err(FolioError::bad_request("permissions must be a list of names")),
    }
}

async fn change(call: &Call, change: impl Fn(&mut Vec<String>) + Send + 'static) -> Result<User, FolioError> {
    let user = account(call).await?;
    let change = move |user: &mut User| change(&mut user.permissions);
    Ok(call.app.context.accounts().change(call.db().tenant(), &user.id, change).await?)
}

async fn replace(mut call: Call) -> Answer {
    let body = call.object().await?;
    let list = listed(body.get("permissions"))?;
    let user = change(&call, move |it| it.clone_from(&list)).await?;
    Ok(json_answer(StatusCode::OK, &shown(&user)))
}

async fn remove(call: Call) -> Answer {
    change(&call, Vec::clear).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

async fn add(mut call: Call) -> Answer {
    let body = call.object().await?;
    let name = required_text(&body, "permissionName")?.to_owned();
    let added = name.clone();
    change(&call, move |list| {
        if !list.contains(&added) {
            list.push(added.clone());
        }
    })
    .await?;
    Ok(json_answer(StatusCode::OK, &json!({"permissionName": name})))
}

async fn take_away(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    change(&call, move |list| list.retain(|it| *it != name)).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Every permission that a route asks for, each once.
static PERMISSIONS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let mut names: Vec<String> = routes::table()
        .into_iter()
        .filter_map(|route| match route.access {
            Access::Permission(name) => Some(name.into_owned()),
            Access::Supertenant(name) => Some(name.to_owned()),
            Access::Anybody | Access::User => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let shown = |name: &String| {
        json!({
            "id": Uuid::from_u128(fnv(name)).to_string(), "permissionName": name, "displayName": name,
            "subPermissions": [], "childOf": [], "grantedTo": [], "mutable": false, "visible": true, "dummy": false,
        })
    };
    names.iter().map(shown).collect()
});

/// An id that follows from the name (FNV-1a, 128 bits).
fn fnv(text: &str) -> u128 {
    text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

async fn all(call: Call) -> Answer {
    let cql = parsed(&call.app.settings, call.query.get("query").unwrap_or_default())?;
    let filter =
        cql::meaning(&cql.condition, &PERMISSION, &Names::PLAIN, &mut |_| Ok::<_, FolioError>(None))?;
    let fitting: Vec<&Value> = PERMISSIONS.iter().filter(|it| matches(&filter, it)).collect();
    let (offset, limit) = (call.query.number("offset", 0)?, call.query.number("limit", 10)?);
    let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let page: Vec<&Value> = fitting.iter().skip(bound(offset)).take(bound(limit)).copied().collect();
    Ok(json_answer(StatusCode::OK, &json!({"permissions": page, "totalRecords": fitting.len()})))
}
