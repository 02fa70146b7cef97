//! The caller's own account and token: `/api/users`.

use http::{HeaderValue, Method, StatusCode};
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::Asker;
use crate::error::{Answer, ApiError};
use crate::grants::{self, GRANT, Grant, Permission};
use crate::groups;
use crate::routing::Routes;
use crate::users::builtin::{is_username, make, read_user, recreate};
use crate::users::traces::Element;
use crate::users::{self, removal, traces};
use crate::{clock, envelope, permissions, stored, tokens};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/users/:me", show)
        .elsewhere(Method::GET, "/users/:me", show)
        .get("/users/token", show_token)
        .post("/users/token/recreate", recreate_token)
        .delete("/users/token", delete_token)
        .get("/users/{name}/traces", show_traces)
        .get("/users/{name}/traces/{element}", show_traces_of_one_kind)
        .post("/users/{name}/removeRoles", remove_roles)
        .get("/users/{name}/allowedCollections/{permission}", allowed_collections)
        .post("/users/{name}/changeIdentifier/{new}", change_identifier)
        .post("/users/{name}/changeIdentifier", change_identifier)
        .post("/users/{name}/mergeIntoUser/{base}", merge)
        .post("/users/register", register)
        .post("/logout", log_out)
}

async fn show(call: Call) -> Answer {
    let user = call.asker.user.as_ref();
    let user = user.ok_or_else(|| {
        ApiError::unauthorized("Only authenticated users can perform the requested operation")
    })?;
    envelope::ok(user.json())
}

async fn show_token(call: Call) -> Answer {
    let user = call.asker.user()?.id;
    let token = call.db().read(Weight::Point, move |view| tokens::of_user(view, user)).await?;
    let token = token.ok_or_else(|| ApiError::not_found("Token not found."))?;
    let text = token.text(&call.app, call.tenant());
    let expires = clock::precise(token.expires_at_ms.unwrap_or_default());
    envelope::message(format!("Token {text} expires on {expires}"))
}

async fn recreate_token(call: Call) -> Answer {
    let user = call.asker.user()?;
    let (text, expires) = recreate(&call, user.id).await?;
    let tail = match call.query.is_true("returnExpiration") {
        true => format!(" and expires on {expires}"),
        false => String::new(),
    };
    envelope::message(format!("New token for {} is {text}{tail}", user.name))
}

async fn delete_token(call: Call) -> Answer {
    let user = call.asker.user()?;
    let (id, name) = (user.id, user.name.clone());
    let n = call.db().write(move |txn: &mut Txn<'_>| tokens::remove(txn, "user", id)).await?;
    if n == 0 {
        return Err(ApiError::not_found("Token not found."));
    }
    envelope::message(format!("Token for {name} deleted."))
}

/// Checks that the caller is a superuser or the named user.
fn own_or_superuser(call: &Call, name: &str) -> Result<(), ApiError> {
    let user = call.asker.user()?;
    if user.superuser || user.name.eq_ignore_ascii_case(name) {
        return Ok(());
    }
    Err(ApiError::forbidden("This API call can be used by Users getting there own info or by superusers."))
}

async fn show_traces(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let name = call.param("name").to_owned();
    let found = call.db().read(Weight::Scan, move |view| {
        let user = users::identified(view, &name)?;
        traces::json(view, &user, None)
    });
    envelope::ok(found.await?)
}

/// Answers with the traces of one kind, as CSV if `Accept` asks for it.
async fn show_traces_of_one_kind(call: Call) -> Answer {
    call.asker.superuser("Superusers only.")?;
    let element = Element::named(call.param("element"));
    let element = element.ok_or_else(|| ApiError::bad_request("Not a valid element"))?;
    let name = call.param("name").to_owned();
    if !call.header("accept").is_some_and(|it| it.contains("text/csv")) {
        let found = call.db().read(Weight::Scan, move |view| {
            let user = users::identified(view, &name)?;
            traces::json(view, &user, Some(element))
        });
        return envelope::ok(found.await?);
    }
    let found = call.db().read(Weight::Scan, move |view| {
        let user = users::identified(view, &name)?;
        traces::csv(view, &user, element)
    });
    Ok(pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static("text/csv"), found.await?))
}

async fn remove_roles(call: Call) -> Answer {
    if !call.asker.user()?.superuser {
        return Err(permissions::refusal(&call.asker));
    }
    let name = call.param("name").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let user = users::identified(txn, &name)?;
        for grant in grants::grants_to(txn, &[user.identifier()])? {
            txn.delete(&GRANT, &grants::grant_id(grant.object, &grant.assignee))?;
        }
        Ok(user.name)
    };
    let name = call.db().write(write).await?;
    envelope::message(format!("Roles removed for user {name}."))
}

/// Answers with the collections in which a user holds a permission, through role assignments to them or to their
/// groups.
async fn allowed_collections(call: Call) -> Answer {
    let name = call.param("name").to_owned();
    call.asker.user()?;
    own_or_superuser(&call, &name)?;
    let wanted = call.param("permission");
    let any = wanted.eq_ignore_ascii_case("any");
    let permission = Permission::named(wanted);
    if permission.is_none() && !any {
        return Err(ApiError::bad_request("Permission not valid."));
    }
    let peer = call.asker.peer;
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let user = users::by_name(view, &name)?
            .ok_or_else(|| ApiError::internal(format!("User {name} not found.")))?;
        let asker = Asker { user: Some(user.into()), peer, ..Asker::default() };
        let allowed = permissions::collections_with(view, &asker, permission)?;
        let items: Vec<Value> = allowed
            .iter()
            .map(
                |it| json!({"id": it.id, "alias": it.alias, "name": it.name, "isReleased": it.is_released()}),
            )
            .collect();
        Ok(json!({"count": items.len(), "items": items}))
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

/// Renames a user everywhere.
async fn change_identifier(call: Call) -> Answer {
    let (old, new) = (call.param("name").to_owned(), call.param("new").to_owned());
    if new.is_empty() {
        return Err(ApiError::not_found("A new identifier is missing."));
    }
    let user = call.asker.user()?;
    if !user.superuser {
        return Err(ApiError::unauthorized("Superusers only."));
    }
    if !is_username(&new) {
        return Err(ApiError::bad_request(format!("The identifier {new:?} cannot be used.")));
    }
    let now_ms = call.app.now_ms();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut user = users::identified(txn, &old)?;
        if users::by_name(txn, &new)?.is_some_and(|it| it.id != user.id) {
            return Err(ApiError::bad_request(format!("User {new} already exists; no changes were made.")));
        }
        let before = user.identifier();
        user.name.clone_from(&new);
        if user.persistent_user_id == old {
            user.persistent_user_id.clone_from(&new);
        }
        if let Some(account) = &user.account {
            let renamed = new.clone();
            pinakes_accounts::user::change(txn, account, now_ms, |it| it.username = renamed)?;
        }
        users::put(txn, &user)?;
        rename_assignee(txn, &before, &user.identifier())
    };
    call.db().write(write).await?;
    call.app.context.accounts().changed();
    envelope::message("UserIdentifier changed successfully.")
}

/// Transfers the grants and group memberships of one assignee to another.
fn rename_assignee(txn: &mut Txn<'_>, before: &str, after: &str) -> Result<(), ApiError> {
    for grant in grants::grants_to(txn, &[before.to_owned()])? {
        txn.delete(&GRANT, &grants::grant_id(grant.object, &grant.assignee))?;
        let id = grants::grant_id(grant.object, after);
        let mut moved: Grant = match stored::get(txn, &GRANT, &id)? {
            Some(held) => held,
            None => Grant { object: grant.object, assignee: after.to_owned(), roles: Vec::new() },
        };
        let held: Vec<i64> = moved.roles.iter().map(|it| it.role).collect();
        moved.roles.extend(grant.roles.into_iter().filter(|it| !held.contains(&it.role)));
        stored::put(txn, &GRANT, &id, &moved)?;
    }
    groups::rename_member(txn, before, after)
}

/// Merges a user into another one, and removes the former.
async fn merge(call: Call) -> Answer {
    let user = call.asker.user()?;
    if !user.superuser {
        return Err(ApiError::unauthorized("Superusers only."));
    }
    let (from, into) = (call.param("name").to_owned(), call.param("base").to_owned());
    let write = move |txn: &mut Txn<'_>| -> Result<(String, String), ApiError> {
        let (from, into) = (users::identified(txn, &from)?, users::identified(txn, &into)?);
        if from.id == into.id {
            return Err(ApiError::bad_request("You cannot merge a user into itself."));
        }
        if from.deactivated != into.deactivated {
            return Err(ApiError::bad_request("An active user and one who is deactivated cannot be merged."));
        }
        rename_assignee(txn, &from.identifier(), &into.identifier())?;
        traces::hand_over(txn, &from, &into)?;
        removal::remove(txn, &from)?;
        Ok((from.name, into.name))
    };
    let (from, into) = call.db().write(write).await?;
    call.app.context.accounts().changed();
    envelope::message(format!("All account data for {from} has been merged into {into} ."))
}

/// Creates a user for the account that is signed in on the website. External accounts would be registered by bearer
/// tokens, which are disabled, as by default in the original.
async fn register(mut call: Call) -> Answer {
    let Some(account) = call.asker.account.clone() else {
        return Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This endpoint is only available when bearer authentication is enabled.",
        ));
    };
    if call.asker.user.is_some() {
        return Err(ApiError::bad_request("User is already registered with this account."));
    }
    let body = call.object().await?;
    if body.get("termsAccepted").and_then(Value::as_bool) != Some(true) {
        return Err(ApiError::bad_request("Terms must be accepted: termsAccepted is not true."));
    }
    let mut said = body.clone();
    said.insert("userName".to_owned(), account.username.clone().into());
    if let Some(email) = body.get("emailAddress") {
        said.insert("email".to_owned(), email.clone());
    }
    let mut user = read_user(&call.app, &said)?;
    user.account = Some(account.id.clone());
    make(&call, user, None).await?;
    envelope::message("User registered.")
}

/// Refuses: there are no sessions to end.
async fn log_out(_: Call) -> Answer {
    Err(ApiError::internal(
        "This endpoint is only available when session authentication feature flag is enabled",
    ))
}
