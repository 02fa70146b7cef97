//! `/patron`: what patrons see and do about their own account in another program's catalogue (mod-patron): their loans,
//! fees and requests, renewing, requesting an item or a title, cancelling a request.
//!
//! | file | what |
//! |---|---|
//! | `account.rs` | the account: loans, charges, holds |
//! | `holds.rs` | requests: creating and cancelling them, and their pickup locations |
//!
//! The caller is the catalogue, not the patron: it names the patron in the path, and holds the permissions.

mod account;
mod holds;
pub(crate) mod summary;

use http::StatusCode;
use pinakes_store::{Expr, Txn, Value as StoreValue, View, Weight};
use serde_json::{Map, Value, json};

use crate::circulation::loans::renew;
use crate::circulation::neighbours::USERS;
use crate::circulation::overrides::Overrides;
use crate::circulation::patron::summary::patron;
use crate::platform::app::Call;
use crate::platform::collection::{self, Writer};
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;
use crate::users::staging::{self, STAGING_USERS};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let to = Access::to;
    let account = "/patron/account/{id}";
    let below = |end: &str| format!("{account}/{end}");
    routes
        .get(account, to("patron.account.item.get"), account::show)
        .post(&below("item/{itemId}/renew"), to("patron.renew.item.post"), renew)
        .post(&below("item/{itemId}/hold"), to("patron.hold.item.post"), holds::of_item)
        .post(&below("instance/{instanceId}/hold"), to("patron.title.hold.item.post"), holds::of_instance)
        .post(&below("hold/{holdId}/cancel"), to("patron.hold.cancel.item.post"), holds::cancel)
        .get(
            &below("item/{itemId}/allowed-service-points"),
            to("patron.item.allowed-service-points.collection.get"),
            holds::allowed_points,
        )
        .get(
            &below("instance/{instanceId}/allowed-service-points"),
            to("patron.instance.allowed-service-points.collection.get"),
            holds::allowed_points,
        )
        .post("/patron", to("patron.item.post"), |call| collection::create(call, &STAGING_USERS))
        .put("/patron/{id}", to("patron.item.put"), staging::replace)
        .get("/patron/registration-status", to("patron.registration-status.get"), registration)
}

/// Renews the patron's loan of an item; returns the loan.
///
/// Errors: 404 for the patron; 422 with the errors that the desk gets.
async fn renew(call: Call) -> Answer {
    let (id, item, now_ms) = (call.uuid_param("id")?, call.uuid_param("itemId")?, call.app.now_ms());
    let overrides = Overrides::of(&call, &Map::new())?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        patron(txn, &id, now_ms)?;
        let wish = json!({"userId": id, "itemId": item});
        let Value::Object(wish) = wish else { return Ok(Value::Null) };
        renew::by_ids(txn, &writer(), &wish, &overrides)
    };
    let loan = call.db().write(write).await?;
    Ok(json_answer(StatusCode::CREATED, &account::loan(&loan, now_ms)))
}

/// Returns the active user with an address or id: `?emailId=` or `?externalSystemId=`.
///
/// Errors: 400 without either; 404.
async fn registration(call: Call) -> Answer {
    let given = |name: &str| call.query.get(name).filter(|it| !it.is_empty()).map(str::to_owned);
    let (path, value) = match (given("emailId"), given("externalSystemId")) {
        (Some(mail), _) => ("personal.email", mail),
        (None, Some(id)) => ("externalSystemId", id),
        (None, None) => return Err(FolioError::bad_request("emailId or externalSystemId is required")),
    };
    let wanted = value.clone();
    let read = move |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let named = Expr::Is(path.into(), StoreValue::Folded(wanted.clone()));
        let found = view.first(&USERS.kind, named)?.map(|it| it.json()).transpose()?;
        Ok(found.filter(|it| it["active"].as_bool() == Some(true)))
    };
    let user = call.db().read(Weight::Scan, read).await?;
    let missing = || FolioError::not_found(format!("there is no active user of {value}"));
    let user = user.ok_or_else(missing)?;
    Ok(json_answer(StatusCode::OK, &user))
}
