//! `/patron-pin`: a PIN by which patrons identify themselves at a machine. Stored like a password (mod-users).

use http::StatusCode;
use pinakes_accounts::{Password, PasswordHash};
use pinakes_http::answer;
use pinakes_store::{StoreError, Txn, Weight};
use serde_json::json;

use crate::platform::app::Call;
use crate::platform::collection::not_a_uuid;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{parse_uuid, required_text};
use crate::users::user::{PIN, USERS};

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post("/patron-pin", Access::to("patron-pin.post"), set)
        .delete("/patron-pin", Access::to("patron-pin.delete"), remove)
        .post("/patron-pin/verify", Access::to("patron-pin.validate"), verify)
}

/// Parses `{"id","pin"}`. Errors: 422 for an invalid PIN.
async fn given(call: &mut Call) -> Result<(String, Password), FolioError> {
    let body = call.object().await?;
    let id = required_text(&body, "id")?;
    let id = parse_uuid(id).ok_or_else(|| not_a_uuid("id", id))?;
    let pin = Password::new(required_text(&body, "pin")?)
        .map_err(|_| FolioError::unprocessable(Fault::new("The PIN is empty or too long")))?;
    Ok((id, pin))
}

async fn set(mut call: Call) -> Answer {
    let (id, pin) = given(&mut call).await?;
    let hash = call.app.context.accounts().hash(pin).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if !txn.has(&USERS.kind, &id)? {
            let fault = Fault::new("There is no such user").with("id", &id);
            return Err(FolioError::unprocessable(fault));
        }
        txn.put(&PIN, &id, &json!({"id": id, "hash": hash}))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::CREATED))
}

async fn remove(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "id")?;
    let id = parse_uuid(id).ok_or_else(|| not_a_uuid("id", id))?;
    call.db().write(move |txn| txn.delete(&PIN, &id).map(drop).map_err(FolioError::from)).await?;
    Ok(answer::empty(StatusCode::OK))
}

/// Checks a PIN: 200 for the right one, 422 for any other. A wrong PIN and a missing one take the same time. After
/// several failures the user must wait, as at a login.
async fn verify(mut call: Call) -> Answer {
    let (id, pin) = given(&mut call).await?;
    let name = format!("pin of {id}");
    let found = call.db().read(Weight::Point, move |view| view.get(&PIN, &id)).await?;
    let hash = match found.map(|it| it.json()).transpose()? {
        Some(kept) => Some(
            serde_json::from_value::<PasswordHash>(kept["hash"].clone())
                .map_err(|error| StoreError::Damaged(format!("hash of a PIN: {error}")))?,
        ),
        None => None,
    };
    if call.app.context.accounts().is_secret(call.db().tenant(), &name, pin, hash).await? {
        return Ok(answer::empty(StatusCode::OK));
    }
    Err(FolioError::unprocessable(Fault::new("The PIN is wrong")))
}
