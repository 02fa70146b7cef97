//! Forgotten passwords: `/authn/password-reset-action` records that a user may set a new password until an instant,
//! `/authn/reset-password` uses this record up. Only the latest record of a user is valid.

use http::StatusCode;
use pinakes_accounts::{Password, user};
use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid, required_text};
use crate::users::user::{USERS, account_of};

/// Pending resets: `{id, userId, expirationTime}`.
pub(crate) static RESET_ACTION: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("userId", Type::Text)],
    indexes: &[Index::on(&["userId"])],
    ..Kind::named("folio_password_reset")
};

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post("/authn/password-reset-action", Access::to("login.password-reset-action.post"), note)
        .get("/authn/password-reset-action/{id}", Access::to("login.password-reset-action.get"), show)
        .post("/authn/reset-password", Access::to("login.password-reset.post"), reset)
}

async fn note(mut call: Call) -> Answer {
    let body = call.object().await?;
    let bad = |name: &str, value: &str| {
        FolioError::unprocessable(Fault::new(format!("{name} is {value:?}")).with(name, value))
    };
    let uuid = |name: &str| -> Result<String, FolioError> {
        let text = required_text(&body, name)?;
        parse_uuid(text).ok_or_else(|| bad(name, text))
    };
    let (id, user_id) = (uuid("id")?, uuid("userId")?);
    let until = required_text(&body, "expirationTime")?.to_owned();
    dates::parse_ms(&until).ok_or_else(|| bad("expirationTime", &until))?;
    let write = move |txn: &mut Txn<'_>| store(txn, &id, &user_id, &until);
    let exists = call.db().write(write).await?;
    Ok(json_answer(StatusCode::CREATED, &json!({"passwordExists": exists})))
}

/// Stores a pending reset, which replaces the user's earlier ones; says whether the user has a password.
pub(crate) fn store(txn: &mut Txn<'_>, id: &str, user_id: &str, until: &str) -> Result<bool, FolioError> {
    let account = user::by_uuid(txn, Uuid::parse_str(user_id).unwrap_or_default())?;
    for other in txn.find(&RESET_ACTION, &Query::filter(Expr::Is("userId".into(), user_id.into())))? {
        txn.delete(&RESET_ACTION, &other.id)?;
    }
    txn.put(&RESET_ACTION, id, &json!({"id": id, "userId": user_id, "expirationTime": until}))?;
    Ok(account.is_some_and(|it| it.password.is_some()))
}

/// Says whether a pending reset is past its end.
pub(crate) fn is_over(action: &Value, now_ms: i64) -> bool {
    text_at(action, "expirationTime").and_then(dates::parse_ms).is_none_or(|until_ms| until_ms <= now_ms)
}

fn missing(id: &str) -> FolioError {
    FolioError::not_found(format!("Password reset action with id: {id} was not found in the db"))
}

async fn action(call: &Call, id: &str) -> Result<Value, FolioError> {
    let wanted = id.to_owned();
    let found =
        call.db().read(Weight::Point, move |view: &mut View<'_>| view.get(&RESET_ACTION, &wanted)).await?;
    Ok(found.ok_or_else(|| missing(id))?.json()?)
}

async fn show(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    Ok(json_answer(StatusCode::OK, &action(&call, &id).await?))
}

/// Sets a new password: `{passwordResetActionId, newPassword}`.
async fn reset(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "passwordResetActionId")?.to_owned();
    let password = Password::new(required_text(&body, "newPassword")?)?;
    let action = action(&call, &id).await?;
    if is_over(&action, call.app.now_ms()) {
        return Err(FolioError::unprocessable(
            Fault::new("The link to set the password has expired").code("link.expired"),
        ));
    }
    let is_new = set_password(&call, &id, password).await?;
    Ok(json_answer(StatusCode::CREATED, &json!({"isNewPassword": is_new})))
}

/// Uses up a pending reset and sets its user's password; says whether it is the first. Who has no account gets one.
///
/// Errors: 404 if the reset was used up before.
pub(crate) async fn set_password(call: &Call, id: &str, password: Password) -> Result<bool, FolioError> {
    // Deleting the record decides who may set the password, so that it works only once.
    let taken = id.to_owned();
    let action = call.db().write(move |txn: &mut Txn<'_>| txn.delete(&RESET_ACTION, &taken)).await?;
    let action = action.ok_or_else(|| missing(id))?.json()?;
    let uuid = text_at(&action, "userId").and_then(|it| Uuid::parse_str(it).ok()).unwrap_or_default();
    let read = move |view: &mut View<'_>| -> Result<_, FolioError> {
        let record = view.get(&USERS.kind, &uuid.to_string())?.map(|it| it.json()).transpose()?;
        Ok((user::by_uuid(view, uuid)?, record))
    };
    let (account, record) = call.db().read(Weight::Point, read).await?;
    let accounts = call.app.context.accounts();
    let is_new = account.as_ref().is_none_or(|it| it.password.is_none());
    match account {
        Some(account) => drop(accounts.set_password(call.db().tenant(), &account.id, password).await?),
        None => {
            let account = record.and_then(|it| account_of(&it, uuid, call.app.now_ms()));
            let account = account.ok_or_else(|| missing(id))?;
            drop(accounts.create(call.db().tenant(), account, Some(password)).await?);
        }
    }
    accounts.changed();
    Ok(is_new)
}
