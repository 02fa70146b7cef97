//! The gateway's own endpoints: version, tenants, modules (section 1.1 of the contract).
//!
//! Tenants are managed by users of the default tenant. A tenant created here has its reference data at once, but no
//! users: the first one is added with `pinakes user add --tenant`.

use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use pinakes_http::{Db, answer};
use pinakes_store::{Catalogue, StoreError, Tenant, TenantInfo, Txn};
use serde_json::{Value, json};

use crate::platform::app::Call;
use crate::platform::error::{Answer, FolioError};
use crate::platform::meta::META;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// The gateway version that is reported.
const OKAPI_VERSION: &str = "7.2.0";

/// Modules whose interfaces are served, with the versions on which the contract is based.
const MODULES: [&str; 22] = [
    "okapi-7.2.0",
    "mod-authtoken-2.16.0",
    "mod-circulation-24.6.0",
    "mod-circulation-storage-17.6.0",
    "mod-configuration-5.12.0",
    "mod-data-import-3.5.0",
    "mod-di-converter-storage-2.6.0",
    "mod-entities-links-5.1.0",
    "mod-feesfines-19.3.0",
    "mod-inventory-22.1.0",
    "mod-inventory-storage-30.1.0",
    "mod-login-7.14.0",
    "mod-notes-7.1.0",
    "mod-patron-blocks-1.14.0",
    "mod-permissions-6.8.0",
    "mod-search-5.1.0",
    "mod-settings-1.3.0",
    "mod-source-record-manager-4.1.0",
    "mod-source-record-storage-6.1.0",
    "mod-tags-2.4.0",
    "mod-users-19.7.0",
    "mod-users-bl-7.11.0",
];

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let one = "/_/proxy/tenants/{tenant}";
    routes
        .get("/_/version", Access::Anybody, version)
        .get("/_/proxy/health", Access::Anybody, health)
        .get("/_/proxy/tenants", Access::Supertenant("okapi.proxy.tenants.list"), list)
        .post("/_/proxy/tenants", Access::Supertenant("okapi.proxy.tenants.post"), create)
        .get(one, Access::Supertenant("okapi.proxy.tenants.get"), show)
        .put(one, Access::Supertenant("okapi.proxy.tenants.put"), change)
        .delete(one, Access::Supertenant("okapi.proxy.tenants.delete"), remove)
        .get("/_/proxy/tenants/{tenant}/modules", Access::User, modules_of)
        .post(
            "/_/proxy/tenants/{tenant}/install",
            Access::Supertenant("okapi.proxy.tenants.install.post"),
            install,
        )
        .get("/_/proxy/modules", Access::User, modules)
        .get("/_/discovery/modules", Access::User, discovery)
}

async fn version(_: Call) -> Answer {
    Ok(answer::bytes(StatusCode::OK, HeaderValue::from_static("text/plain"), OKAPI_VERSION))
}

async fn health(_: Call) -> Answer {
    Ok(json_answer(StatusCode::OK, &json!([])))
}

/// Runs work that opens or creates tenants on a thread that may block.
async fn on_catalogue<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&Catalogue) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, FolioError> {
    let catalogue = call.app.context.catalogue().clone();
    let done = tokio::task::spawn_blocking(move || work(&catalogue)).await;
    Ok(done.unwrap_or(Err(StoreError::Panicked))?)
}

/// Returns a tenant in the form shown.
fn described(info: &TenantInfo, tenant: &Tenant) -> Result<Value, StoreError> {
    let changed = tenant.read_blocking(|view| view.get(&META, "tenant"))?;
    match changed {
        Some(record) => record.json(),
        None => Ok(json!({"id": info.name, "name": info.name, "description": info.description})),
    }
}

fn found(catalogue: &Catalogue, name: &str) -> Result<Value, StoreError> {
    let info = catalogue.tenants()?.into_iter().find(|it| it.name == name);
    let info = info.ok_or_else(|| StoreError::UnknownTenant(name.to_owned()))?;
    described(&info, &catalogue.tenant(name)?)
}

async fn list(call: Call) -> Answer {
    let list = on_catalogue(&call, |catalogue| {
        catalogue
            .tenants()?
            .iter()
            .map(|it| described(it, &catalogue.tenant(&it.name)?))
            .collect::<Result<Vec<_>, _>>()
    })
    .await?;
    Ok(json_answer(StatusCode::OK, &Value::Array(list)))
}

fn not_found(name: &str) -> FolioError {
    FolioError::not_found(format!("tenant {name} not found"))
}

async fn show(call: Call) -> Answer {
    let name = call.param("tenant").to_owned();
    let wanted = name.clone();
    match on_catalogue(&call, move |catalogue| Ok(found(catalogue, &wanted).ok())).await? {
        Some(tenant) => Ok(json_answer(StatusCode::OK, &tenant)),
        None => Err(not_found(&name)),
    }
}

async fn create(mut call: Call) -> Answer {
    let body = call.object().await?;
    let id = required_text(&body, "id")?.to_owned();
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let shown = json!({"id": id, "name": if text("name").is_empty() { id.clone() } else { text("name") }, "description": text("description")});
    let (made, description) = (id.clone(), text("description"));
    let refused =
        match on_catalogue(&call, move |catalogue| Ok(catalogue.create_tenant(&made, &description))).await? {
            Ok(tenant) => {
                let db = Db::new(tenant);
                keep(&db, shown.clone()).await?;
                call.app.prepare(&db).await?;
                return Ok(with_location(&shown, &id));
            }
            Err(refused) => refused,
        };
    Err(match refused {
        StoreError::TenantExists(_) => FolioError::bad_request(format!("Duplicate tenant id {id}")),
        error @ StoreError::TenantName(_) => FolioError::bad_request(error.to_string()),
        error => error.into(),
    })
}

fn with_location(shown: &Value, id: &str) -> Response {
    let location = format!("/_/proxy/tenants/{id}");
    answer::with_header(json_answer(StatusCode::CREATED, shown), LOCATION, &location)
}

async fn keep(db: &Db, shown: Value) -> Result<(), FolioError> {
    db.write(move |txn: &mut Txn<'_>| txn.put(&META, "tenant", &shown).map(drop).map_err(FolioError::from))
        .await
}

async fn change(mut call: Call) -> Answer {
    let name = call.param("tenant").to_owned();
    let mut body = call.object().await?;
    if body.get("id").and_then(Value::as_str).is_some_and(|it| it != name) {
        return Err(FolioError::bad_request(format!("Tenant.id={} id={name}", body["id"])));
    }
    body.insert("id".into(), name.as_str().into());
    let wanted = name.clone();
    let opened = on_catalogue(&call, move |catalogue| Ok(catalogue.tenant(&wanted).ok())).await?;
    let Some(tenant) = opened else { return Err(not_found(&name)) };
    let shown = Value::Object(body);
    keep(&Db::new(tenant), shown.clone()).await?;
    Ok(json_answer(StatusCode::OK, &shown))
}

async fn remove(call: Call) -> Answer {
    let name = call.param("tenant").to_owned();
    if name == call.app.context.tenants().default {
        return Err(FolioError::bad_request(format!("tenant {name} keeps the others and cannot be removed")));
    }
    call.app.forget(&name);
    let wanted = name.clone();
    match on_catalogue(&call, move |catalogue| Ok(catalogue.delete_tenant(&wanted))).await? {
        Ok(()) => Ok(answer::empty(StatusCode::NO_CONTENT)),
        Err(StoreError::UnknownTenant(_) | StoreError::TenantName(_)) => Err(not_found(&name)),
        Err(error) => Err(error.into()),
    }
}

fn module_ids() -> Value {
    MODULES.iter().map(|id| json!({"id": id})).collect()
}

/// Lists the modules of a tenant; every tenant has all of them. Users may ask for their own tenant, those of the
/// default tenant for any.
async fn modules_of(call: Call) -> Answer {
    let (asked, own) = (call.param("tenant"), call.asker.tenant());
    if asked != own && own != call.app.context.tenants().default {
        return Err(not_found(asked));
    }
    Ok(json_answer(StatusCode::OK, &module_ids()))
}

async fn modules(_: Call) -> Answer {
    let shown = |id: &&str| json!({"id": id, "name": id.rsplit_once('-').map_or(*id, |(name, _)| name)});
    Ok(json_answer(StatusCode::OK, &MODULES.iter().map(shown).collect()))
}

async fn discovery(_: Call) -> Answer {
    let shown = |id: &&str| json!({"instId": id, "srvcId": id});
    Ok(json_answer(StatusCode::OK, &MODULES.iter().map(shown).collect()))
}

/// Returns the requested list `[{id, action}]`: all modules are always present, so nothing is installed.
async fn install(mut call: Call) -> Answer {
    let list = call.json().await?;
    if !list.is_array() {
        return Err(FolioError::bad_request("expected a list of {id, action}"));
    }
    let name = call.param("tenant").to_owned();
    let wanted = name.clone();
    let opened = on_catalogue(&call, move |catalogue| Ok(catalogue.tenant(&wanted).ok())).await?;
    let Some(tenant) = opened else { return Err(not_found(&name)) };
    call.app.prepare(&Db::new(tenant)).await?;
    Ok(json_answer(StatusCode::OK, &list))
}
