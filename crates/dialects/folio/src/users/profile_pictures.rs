//! `/users/profile-picture`: pictures of users (mod-users). A site enables them with the setting
//! `PROFILE_PICTURE_CONFIG` of `/user/settings`; until then every request is refused with 500, as in FOLIO.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::StatusCode;
use pinakes_http::{answer, body};
use pinakes_store::{Kind, Txn, View, Weight};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};
use crate::users::user_settings::{self, PICTURE_MB};

/// Pictures: `id` and `profile_picture_blob`, the bytes in base64.
pub(crate) static PICTURE: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_profile_picture") };
/// Maximum number of bytes read of a picture: more than can be allowed.
const READ_BYTES: u64 = 12 << 20;
/// The first bytes of PNG and JPEG files.
const KNOWN: [&[u8]; 2] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"];

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let item = "/users/profile-picture/{id}";
    routes
        .post("/users/profile-picture", Access::to("users.profile-picture.item.post"), create)
        .get(item, Access::to("users.profile-picture.item.get"), show)
        .put(item, Access::to("users.profile-picture.item.put"), replace)
        .delete(item, Access::to("users.profile-picture.item.delete"), remove)
}

fn refused(text: impl Into<String>) -> FolioError {
    FolioError::text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

/// Returns the setting if it enables pictures.
async fn switched_on(call: &Call) -> Result<Value, FolioError> {
    let setting = call.db().read(Weight::Scan, user_settings::of_pictures).await?.unwrap_or_default();
    if setting.get("enabled") == Some(&Value::Bool(true)) {
        return Ok(setting);
    }
    Err(refused(format!("Profile picture feature is not enabled for tenant {}", call.asker.tenant())))
}

/// Reads the picture in a request. Errors: 500 for another type, if pictures are disabled, and for a file that is too
/// large.
async fn received(call: &mut Call) -> Result<String, FolioError> {
    let limits = call.app.context.limits().clone();
    let incoming = call.take_body();
    let bytes = body::receive(&call.headers, incoming, READ_BYTES, &limits).await?;
    if !KNOWN.iter().any(|it| bytes.starts_with(it)) {
        return Err(refused("Requested image should be of supported type-[PNG,JPG,JPEG]"));
    }
    let setting = switched_on(call).await?;
    let most_mb = setting.get("maxFileSize").and_then(Value::as_f64).unwrap_or(PICTURE_MB).min(PICTURE_MB);
    if most_mb * f64::from(1 << 20) < bytes.len() as f64 {
        return Err(refused(
            "Requested file size should be within allowed size updated in profile_picture configuration",
        ));
    }
    Ok(BASE64.encode(&bytes))
}

fn stored(id: &str, blob: &str) -> Value {
    json!({"id": id, "profile_picture_blob": blob})
}

async fn create(mut call: Call) -> Answer {
    let blob = received(&mut call).await?;
    let id = call.app.new_uuid();
    let body = stored(&id, &blob);
    let shown = json!({"id": id});
    call.db().write(move |txn: &mut Txn<'_>| txn.insert(&PICTURE, &id, &body).map(drop)).await?;
    Ok(json_answer(StatusCode::CREATED, &shown))
}

async fn show(call: Call) -> Answer {
    switched_on(&call).await?;
    let id = call.param("id").to_owned();
    let missing = || FolioError::not_found(format!("No profile picture found for id {id}"));
    let wanted = parse_uuid(&id).ok_or_else(missing)?;
    let found = call.db().read(Weight::Point, move |view: &mut View<'_>| view.get(&PICTURE, &wanted)).await?;
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?.json()?))
}

async fn replace(mut call: Call) -> Answer {
    let blob = received(&mut call).await?;
    let missing = || FolioError::not_found("Existing profile picture is not found");
    let id = parse_uuid(call.param("id")).ok_or_else(missing)?;
    let shown = json!({"id": id});
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if !txn.has(&PICTURE, &id)? {
            return Err(missing());
        }
        txn.put(&PICTURE, &id, &stored(&id, &blob))?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &shown))
}

async fn remove(call: Call) -> Answer {
    switched_on(&call).await?;
    let missing = || FolioError::not_found("Profile picture not found");
    let id = parse_uuid(call.param("id")).ok_or_else(missing)?;
    let gone = call.db().write(move |txn: &mut Txn<'_>| txn.delete(&PICTURE, &id)).await?;
    gone.map(drop).ok_or_else(missing)?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
