//! What keeps a user from being deleted: open loans, requests and fees, proxies, manual blocks (mod-users-bl).

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, Txn, View, Weight};
use serde_json::{Value, json};

use super::fees::ACCOUNTS;
use super::loans::open_loans_of;
use super::neighbours::{PROXIES_FOR, USERS};
use super::patron_blocks::MANUAL_BLOCKS;
use super::requests::{REQUESTS, is_open};
use crate::platform::app::Call;
use crate::platform::collection::{Collection, Writer, delete};
use crate::platform::error::{Answer, FolioError, Shape};
use crate::platform::json::{self, text_at};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/bl-users/by-id/{id}/open-transactions", Access::to("users-bl.item.get"), |call| async move {
            let id = call.uuid_param("id")?;
            show(call, "id", id).await
        })
        .get(
            "/bl-users/by-username/{name}/open-transactions",
            Access::to("users-bl.item.get"),
            |call| async move {
                let name = call.param("name").to_owned();
                show(call, "username", name).await
            },
        )
        .delete("/bl-users/by-id/{id}", Access::to("users.item.delete"), remove)
}

/// Counts the transactions of the user whose `field` is `value`.
async fn show(call: Call, field: &'static str, value: String) -> Answer {
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let user = match field {
            "id" => view.get(&USERS.kind, &value)?,
            _ => {
                let name = pinakes_store::Value::Folded(pinakes_store::fold(&value));
                view.first(&USERS.kind, Expr::Is(field.into(), name))?
            }
        };
        let Some(user) = user else {
            return Err(FolioError::not_found(format!("User with {field} {value} does not exist")));
        };
        open(view, &user.json()?)
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn open(view: &mut View<'_>, user: &Value) -> Result<Value, FolioError> {
    let id = text_at(user, "id").unwrap_or_default();
    let is = |path: &str| Expr::Is(path.into(), id.into());
    let count = |view: &mut View<'_>, of: &'static Collection, filter: Expr| view.count(&of.kind, &filter);
    let loans = open_loans_of(view, id)?.len() as u64;
    let mut requests = 0_u64;
    for request in view.find(&REQUESTS.kind, &Query::filter(is("requesterId")))? {
        requests += u64::from(is_open(text_at(&request.json()?, "status").unwrap_or_default()));
    }
    let fees = count(view, &ACCOUNTS, is("userId").and(Expr::Is("status.name".into(), "Open".into())))?;
    let proxies = count(view, &PROXIES_FOR, Expr::Or(vec![is("userId"), is("proxyUserId")]))?;
    let blocks = count(view, &MANUAL_BLOCKS, is("userId"))?;
    Ok(json!({
        "userId": id, "userBarcode": text_at(user, "barcode").unwrap_or_default(),
        "hasOpenTransactions": 0 < loans + requests + fees + proxies + blocks,
        "loans": loans, "requests": requests, "feesFines": fees, "proxies": proxies, "blocks": blocks,
    }))
}

/// Deletes a user who has no open transactions.
///
/// Errors: 409 with the transactions of one who has.
async fn remove(call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let Some(user) = txn.get(&USERS.kind, &id)? else {
            return Err(FolioError::not_found(format!("User with id {id} does not exist")));
        };
        let open = open(txn, &user.json()?)?;
        if open["hasOpenTransactions"] == true {
            let body = String::from_utf8_lossy(&json::bytes(&open)).into_owned();
            return Err(FolioError { status: StatusCode::CONFLICT, shape: Shape::Json(body) });
        }
        delete(txn, &writer(), &USERS, &id).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
