//! `/user/settings`: settings of the tenant and of single users in mod-users, including those of profile pictures.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, Expr, Index, Kind, Query, Search, Txn, Type, Value as StoreValue, View, Weight};
use serde_json::{Map, Value};

use crate::platform::app::Call;
use crate::platform::collection::{
    self, Collection, Hooks, Kinds, Lock, Locking, Metadata, Missing, Schema, Writer,
};
use crate::platform::cql::Names;
use crate::platform::error::{Answer, FolioError};
use crate::platform::json::text_at;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Key of the setting for profile pictures.
pub(crate) const PICTURES: &str = "PROFILE_PICTURE_CONFIG";
/// Largest size that can be allowed for a picture, in megabytes.
pub(crate) const PICTURE_MB: f64 = 10.0;

/// `/user/settings`.
pub(crate) static USER_SETTINGS: Collection = Collection {
    permission: "users.settings",
    table: "settings",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("scope", Type::Folded),
            Column::at("name", "key", Type::Folded),
            Column::one("userId", Type::Text),
        ],
        indexes: &[Index::on(&["name", "userId"])],
        search: Search::Folded,
        ..Kind::named("folio_user_setting")
    },
    schema: Schema {
        required: &["scope", "key"],
        types: &[("scope", Kinds::Text), ("key", Kinds::Text), ("userId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    names: Names { whole: &["scope", "key"], fields: &["value"], ..Names::PLAIN },
    locking: Locking::From(1),
    metadata: Metadata::Rmb,
    hooks: Hooks { prepare, ..Hooks::NONE },
    is_served: false,
    ..Collection::named("/user/settings", "settings", "folio_user_setting")
};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let item = "/user/settings/{id}";
    routes
        .get("/user/settings", Access::to("users.settings.collection.get"), |call| async move {
            let page = collection::Page::of(&call)?;
            collection::answer_list(&call, &USER_SETTINGS, page).await
        })
        .post("/user/settings", Access::to("users.settings.item.post"), |call| {
            collection::create(call, &USER_SETTINGS)
        })
        .get(item, Access::to("users.settings.item.get"), |call| collection::by_id(call, &USER_SETTINGS))
        .put(item, Access::to("users.settings.item.put"), replace)
        .delete(item, Access::to("users.settings.item.delete"), |call| {
            collection::remove(call, &USER_SETTINGS)
        })
        .get("/users/configurations/entry", Access::to("users.configurations.item.get"), entry)
        .put("/users/configurations/entry/{id}", Access::to("users.configurations.item.put"), replace_entry)
}

/// Checks that a setting is unique for the tenant, or for a user.
fn prepare(
    txn: &mut Txn<'_>,
    _: &Writer,
    body: &mut Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, key, user) = (text("id"), text("key"), text("userId"));
    let named = Expr::Is("key".into(), StoreValue::Folded(key.to_owned()));
    let of_user = Some(user).filter(|it| !it.is_empty()).map(StoreValue::from);
    let alike = collection::with_or_without(Query::filter(named), "userId", of_user);
    let first = txn.find(&USER_SETTINGS.kind, &alike.window(0, 1))?.pop().filter(|it| it.id != id);
    let taken = match first {
        Some(other) => text_at(&other.json()?, "userId").unwrap_or_default() == user,
        None => false,
    };
    if taken {
        let value = pinakes_store::fold(key);
        return Err(FolioError::bad_request(format!("value already exists in table settings: {value}")));
    }
    Ok(())
}

/// Returns the setting for pictures, if the tenant has it.
pub(crate) fn of_pictures(view: &mut View<'_>) -> Result<Option<Value>, FolioError> {
    let found =
        view.first(&USER_SETTINGS.kind, Expr::Is("key".into(), StoreValue::Folded(PICTURES.to_owned())))?;
    Ok(found.map(|it| it.json()).transpose()?.and_then(|mut it| it.get_mut("value").map(Value::take)))
}

/// Replaces a setting. The encryption key of pictures cannot be changed, so that stored ones stay readable.
async fn replace(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let body = call.object().await?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        if body.get("key").and_then(Value::as_str) == Some(PICTURES)
            && let Some(old) = txn.get(&USER_SETTINGS.kind, &id)?
        {
            check_pictures(&old.json()?, body.get("value").unwrap_or(&Value::Null))?;
        }
        collection::put(txn, &writer(), &USER_SETTINGS, &id, body.clone(), Missing::Refuse, Lock::Checked)
            .map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

fn check_pictures(old: &Value, new: &Value) -> Result<(), FolioError> {
    if text_at(old, "value.encryptionKey") != text_at(new, "encryptionKey") {
        return Err(FolioError::bad_request("Cannot update the Encryption key"));
    }
    let most = new.get("maxFileSize").and_then(Value::as_f64).unwrap_or(PICTURE_MB);
    if PICTURE_MB < most {
        let message = format!("Max file size should not exceed more than {PICTURE_MB} megabytes");
        return Err(FolioError::text(StatusCode::INTERNAL_SERVER_ERROR, message));
    }
    Ok(())
}

/// Returns the setting for pictures in the form of older versions of mod-users.
async fn entry(call: Call) -> Answer {
    let read = |view: &mut View<'_>| -> Result<Option<Value>, FolioError> {
        let named = Expr::Is("key".into(), StoreValue::Folded(PICTURES.to_owned()));
        let Some(record) = view.first(&USER_SETTINGS.kind, named)? else { return Ok(None) };
        let setting = record.json()?;
        let mut shown = setting.get("value").and_then(Value::as_object).cloned().unwrap_or_default();
        shown.insert("id".into(), record.id.into());
        shown.insert("configName".into(), PICTURES.into());
        Ok(Some(Value::Object(shown)))
    };
    let found = call.db().read(Weight::Point, read).await?;
    let missing = || FolioError::not_found(format!("there is no setting {PICTURES}"));
    Ok(json_answer(StatusCode::OK, &found.ok_or_else(missing)?))
}

/// Replaces the setting for pictures in that form.
async fn replace_entry(mut call: Call) -> Answer {
    let id = call.uuid_param("id")?;
    let mut value = call.object().await?;
    value.retain(|name, _| !matches!(name.as_str(), "id" | "configName" | "key" | "metadata"));
    let value = Value::Object(value);
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let old = txn.get(&USER_SETTINGS.kind, &id)?.map(|it| it.json()).transpose()?;
        let Some(Value::Object(mut body)) = old else { return Err(FolioError::not_found("Not found")) };
        if body.get("key").and_then(Value::as_str) != Some(PICTURES) {
            return Err(FolioError::not_found("Not found"));
        }
        check_pictures(&Value::Object(body.clone()), &value)?;
        body.insert("value".into(), value.clone());
        collection::put(txn, &writer(), &USER_SETTINGS, &id, body, Missing::Refuse, Lock::Ignored).map(drop)
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
