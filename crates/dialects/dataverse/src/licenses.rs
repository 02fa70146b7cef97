//! Licences: `/api/licenses`.

use pinakes_store::{Column, Expr, Index, Kind, Query, Txn, Type, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::VERSION;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, stored};

/// Licences by number: body is a [`License`].
pub(crate) static LICENSE: Kind = Kind {
    columns: &[Column::one("name", Type::Text), Column::one("uri", Type::Text)],
    indexes: &[Index::unique(&["name"]), Index::unique(&["uri"])],
    ..Kind::named("dataverse_license")
};

/// A licence, in the form of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct License {
    /// Number.
    pub id: i64,
    /// `CC0 1.0`.
    pub name: String,
    /// Short description.
    pub short_description: String,
    /// URI of its text.
    pub uri: String,
    /// URL of its icon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    /// Whether new versions may choose it.
    pub active: bool,
    /// Whether it is the default of new datasets.
    pub is_default: bool,
    /// Position in lists.
    pub sort_order: i64,
    /// `CC0-1.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights_identifier: Option<String>,
    /// `SPDX`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights_identifier_scheme: Option<String>,
    /// `https://spdx.org/licenses/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme_uri: Option<String>,
    /// `en`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language_code: Option<String>,
}

/// Returns the licence with that number.
pub(crate) fn by_id(view: &mut View<'_>, id: i64) -> Result<Option<License>, ApiError> {
    stored::get(view, &LICENSE, &id.to_string())
}

/// Returns the licence with that name.
pub(crate) fn by_name(view: &mut View<'_>, name: &str) -> Result<Option<License>, ApiError> {
    let found = view.first(&LICENSE, Expr::Is("name".into(), name.into()))?;
    found.as_ref().map(stored::parsed).transpose()
}

/// Returns the licence with that URI, with or without a trailing slash.
pub(crate) fn by_uri(view: &mut View<'_>, uri: &str) -> Result<Option<License>, ApiError> {
    for text in [uri, uri.trim_end_matches('/')] {
        if let Some(found) = view.first(&LICENSE, Expr::Is("uri".into(), text.into()))? {
            return stored::parsed(&found).map(Some);
        }
    }
    Ok(None)
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/licenses", list)
        .post("/licenses", create)
        .get("/licenses/{id}", show)
        .delete("/licenses/{id}", delete)
        .get("/licenses/default", show_default)
        .put("/licenses/default/{id}", set_default)
        .put("/licenses/{id}/:active/{active}", set_active)
        .put("/licenses/{id}/:sortOrder/{order}", set_order)
}

/// Returns all licences: the default one first, then by sort order.
fn all(view: &mut View<'_>) -> Result<Vec<License>, ApiError> {
    let mut all: Vec<License> = stored::find(view, &LICENSE, &Query::filter(Expr::All))?;
    all.sort_by(|a, b| (!a.is_default, a.sort_order, &a.name).cmp(&(!b.is_default, b.sort_order, &b.name)));
    Ok(all)
}

fn named(view: &mut View<'_>, id: &str) -> Result<License, ApiError> {
    let missing = || ApiError::not_found(format!("License with ID {id} not found."));
    stored::get(view, &LICENSE, id)?.ok_or_else(missing)
}

async fn list(call: Call) -> Answer {
    let all = call.db().read(Weight::Scan, all).await?;
    envelope::ok(all.iter().map(|it| json!(it)).collect::<Vec<Value>>())
}

async fn show(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    envelope::ok(json!(call.db().read(Weight::Point, move |view| named(view, &id)).await?))
}

async fn show_default(call: Call) -> Answer {
    let all = call.db().read(Weight::Scan, all).await?;
    let default = all.iter().find(|it| it.is_default).map(|it| it.id);
    envelope::message(format!("Default license ID is {}", default.unwrap_or_default()))
}

const REFUSAL: &str = "Only superusers can change licenses.";

/// `POST /licenses`: the server assigns the number, so a body with an `id` is refused.
async fn create(mut call: Call) -> Answer {
    let user = call.asker.user()?;
    if !user.superuser {
        return Err(ApiError::forbidden(REFUSAL));
    }
    let body = call.object().await?;
    if body.contains_key("id") {
        return Err(ApiError::bad_request("Setting the ID of a license is not allowed."));
    }
    if body.get("sortOrder").and_then(Value::as_i64).is_none() {
        return Err(ApiError::bad_request("A license needs a sortOrder, a whole number."));
    }
    let mut license: License = serde_json::from_value(Value::Object(body))
        .map_err(|error| ApiError::bad_request(format!("Error parsing Json: {error}")))?;
    license.is_default = false;
    if license.name.trim().is_empty() || !crate::blocks::validate::is_url(&license.uri) {
        return Err(ApiError::bad_request("A license needs a name and a uri that is a URL."));
    }
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<License, ApiError> {
        let mut ids = ids;
        let license = License { id: ids.next()?, ..license.clone() };
        if by_name(txn, &license.name)?.is_some() || by_uri(txn, &license.uri)?.is_some() {
            return Err(ApiError::conflict("A license with the same URI or name is already present."));
        }
        stored::put(txn, &LICENSE, &license.id.to_string(), &license)?;
        Ok(license)
    };
    let license = call.db().write(write).await?;
    envelope::created(
        &format!("/licenses/{}", license.id),
        json!({"message": format!("License {} ({}) created.", license.name, license.id), "id": license.id}),
    )
}

async fn delete(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let license = named(txn, &id)?;
        if license.is_default {
            return Err(ApiError::conflict(
                "Please make sure the license is not the default before deleting it.",
            ));
        }
        let is_used = txn.count(&VERSION, &Expr::Is("license".into(), license.id.into()))? != 0;
        if is_used {
            return Err(ApiError::conflict("The license is used by datasets and cannot be deleted."));
        }
        txn.delete(&LICENSE, &id)?;
        Ok(())
    };
    call.db().write(write).await?;
    envelope::message(format!("License with ID {} deleted.", call.param("id")))
}

/// Changes the licence of the path.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut License) -> Result<(), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    call.asker.superuser(REFUSAL)?;
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut license = named(txn, &id)?;
        change(&mut license)?;
        stored::put(txn, &LICENSE, &id, &license)
    };
    call.db().write(write).await
}

async fn set_default(call: Call) -> Answer {
    call.asker.superuser(REFUSAL)?;
    let id = call.param("id").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let wanted = named(txn, &id)?;
        if wanted.is_default {
            return Ok(format!("License with ID {id} is already the default."));
        }
        if !wanted.active {
            return Err(ApiError::conflict("Cannot set an inactive license as default"));
        }
        for mut license in all(txn)? {
            license.is_default = license.id == wanted.id;
            stored::put(txn, &LICENSE, &license.id.to_string(), &license)?;
        }
        Ok(format!("Default license ID set to {id}"))
    };
    envelope::message(call.db().write(write).await?)
}

async fn set_active(call: Call) -> Answer {
    let active = match call.param("active") {
        "true" => true,
        "false" => false,
        other => return Err(ApiError::bad_request(format!("{other} is not true or false"))),
    };
    let state = if active { "active" } else { "inactive" };
    let id = call.param("id").to_owned();
    let done = changed(&call, move |license| {
        if license.is_default && !active {
            return Err(ApiError::conflict("Cannot deactivate the default license"));
        }
        if license.active == active {
            return Err(ApiError::new(
                http::StatusCode::ALREADY_REPORTED,
                format!("License already {state}"),
            ));
        }
        license.active = active;
        Ok(())
    });
    match done.await {
        Err(error) if error.status == http::StatusCode::ALREADY_REPORTED => envelope::message(error.message),
        Err(error) => Err(error),
        Ok(()) => envelope::message(format!("License ID {id} set to {state}")),
    }
}

async fn set_order(call: Call) -> Answer {
    let text = call.param("order").to_owned();
    let order: i64 =
        text.parse().map_err(|_| ApiError::bad_request(format!("{text} is not a whole number")))?;
    changed(&call, move |license| {
        license.sort_order = order;
        Ok(())
    })
    .await?;
    envelope::message(format!("License ID {} has been set to sort order {order}", call.param("id")))
}
