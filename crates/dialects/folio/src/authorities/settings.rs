//! `/authorities/config/groups`: settings of authorities that a tenant may change (mod-entities-links).

use http::{Method, StatusCode};
use pinakes_http::answer;
use pinakes_store::{Kind, StoreError, Txn, View, Weight};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::dates;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// The only group.
const GROUP: &str = "authorities";

/// A setting: its key, default value, type and description.
struct Setting {
    key: &'static str,
    value: fn() -> Value,
    ty: &'static str,
    description: &'static str,
}

static SETTINGS: [Setting; 3] = [
    Setting {
        key: "mapping.extended",
        value: || false.into(),
        ty: "BOOLEAN",
        description: "Enable extended mapping for authorities",
    },
    Setting {
        key: "archives.expiration.enabled",
        value: || true.into(),
        ty: "BOOLEAN",
        description: "Enable authority archives expiration",
    },
    Setting {
        key: "archives.expiration.period",
        value: || 7.into(),
        ty: "INTEGER",
        description: "The retention period in days for keeping the deleted authorities",
    },
];

/// Settings that a tenant has changed, by key.
pub(crate) static SETTING: Kind = Kind { id_path: Some("key"), ..Kind::named("folio_authority_setting") };

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let settings = "/authorities/config/groups/{group}/settings";
    routes
        .get("/authorities/config/groups", Access::to("authorities.config.groups.collection.get"), groups)
        .get(settings, Access::to("authorities.config.groups.settings.collection.get"), list)
        .on(
            Method::PATCH,
            &format!("{settings}/{{key}}"),
            Access::to("authorities.config.groups.settings.item.patch"),
            patch,
        )
}

async fn groups(_: Call) -> Answer {
    let group = json!({"id": GROUP, "name": "Authorities", "description": "Authorities settings group"});
    Ok(json_answer(StatusCode::OK, &json!({"settingGroups": [group], "totalRecords": 1})))
}

fn check_group(call: &Call) -> Result<(), FolioError> {
    let group = call.param("group");
    if group == GROUP {
        return Ok(());
    }
    let fault = Fault::new(format!("Setting group with ID [{group}] was not found"));
    let fault = fault.ty("SettingGroupNotFoundException").code("not-found");
    Err(FolioError::faults(StatusCode::NOT_FOUND, vec![fault]))
}

/// Returns the current state of a setting.
fn shown(view: &mut View<'_>, setting: &Setting) -> Result<Value, StoreError> {
    if let Some(record) = view.get(&SETTING, setting.key)? {
        return record.json();
    }
    Ok(json!({
        "key": setting.key, "value": (setting.value)(), "type": setting.ty,
        "description": setting.description, "groupId": GROUP,
    }))
}

/// Returns the value of a setting for the tenant.
pub(crate) fn value_of(view: &mut View<'_>, key: &str) -> Result<Value, StoreError> {
    let Some(setting) = SETTINGS.iter().find(|it| it.key == key) else { return Ok(Value::Null) };
    Ok(shown(view, setting)?["value"].take())
}

async fn list(call: Call) -> Answer {
    check_group(&call)?;
    let read = |view: &mut View<'_>| -> Result<Vec<Value>, StoreError> {
        SETTINGS.iter().map(|it| shown(view, it)).collect()
    };
    let settings = call.db().read(Weight::Point, read).await?;
    let total = settings.len();
    Ok(json_answer(StatusCode::OK, &json!({"settings": settings, "totalRecords": total})))
}

/// Changes a setting: `{"value"}`. Errors: 404 for an unknown setting; 422 for a value of another type.
async fn patch(mut call: Call) -> Answer {
    check_group(&call)?;
    let body = call.object().await?;
    let key = call.param("key").to_owned();
    let Some(setting) = SETTINGS.iter().find(|it| it.key == key) else {
        let fault = Fault::new(format!("Setting with key [{key}] was not found"));
        let fault = fault.ty("SettingNotFoundException").code("not-found");
        return Err(FolioError::faults(StatusCode::NOT_FOUND, vec![fault]));
    };
    let value = body.get("value").cloned().unwrap_or_default();
    let fits = match setting.ty {
        "BOOLEAN" => value.is_boolean(),
        _ => value.as_u64().is_some_and(|it| 0 < it),
    };
    if !fits {
        let fault = Fault::new(format!("Setting {key} must have a value of type {}", setting.ty));
        let fault = fault.ty("RequestBodyValidationException").code("validation-error");
        return Err(FolioError::unprocessable(fault.with("value", value.to_string())));
    }
    let (user, now_ms) = (call.asker.user_id(), call.app.now_ms());
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut changed = shown(txn, setting)?;
        changed["value"] = value.clone();
        changed["updatedDate"] = dates::micros(now_ms).into();
        changed["updatedByUserId"] = json!(user);
        txn.put(&SETTING, setting.key, &changed)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
