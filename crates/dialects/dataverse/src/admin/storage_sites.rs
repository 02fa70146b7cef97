//! Sites that keep copies of the installation's files, as its administrators list them: `/api/admin/storageSites`.
//!
//! The list is for programs that fetch from such a site. The server itself does not copy files there.

use pinakes_store::{Expr, Kind, Query, Txn, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::{envelope, stored};

/// Sites by number: body is a [`StorageSite`].
pub(crate) static STORAGE_SITE: Kind = Kind::named("dataverse_storage_site");

/// The ways in which files may be fetched from a site.
const PROTOCOLS: [&str; 3] = ["rsync", "posix", "globus"];

/// A site.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StorageSite {
    /// Number.
    id: i64,
    /// `dv.sbgrid.org`.
    hostname: String,
    /// `SBGrid`.
    name: String,
    /// Whether it holds the originals. At most one site is primary.
    primary_storage: bool,
    /// Some of [`PROTOCOLS`], separated by commas.
    transfer_protocols: String,
}

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/admin/storageSites", list)
        .post("/admin/storageSites", add)
        .get("/admin/storageSites/{id}", show)
        .put("/admin/storageSites/{id}/primaryStorage", set_primary)
        .delete("/admin/storageSites/{id}", remove)
}

fn all(view: &mut View<'_>) -> Result<Vec<StorageSite>, ApiError> {
    stored::find(view, &STORAGE_SITE, &Query::filter(Expr::All))
}

fn missing(id: &str) -> ApiError {
    ApiError::not_found(format!("Could not find a storage site based on id {id}."))
}

fn find(view: &mut View<'_>, id: &str) -> Result<StorageSite, ApiError> {
    stored::get(view, &STORAGE_SITE, id)?.ok_or_else(|| missing(id))
}

/// Checks that no other site is primary. Errors: 400.
fn only_primary(view: &mut View<'_>, site: &StorageSite) -> Result<(), ApiError> {
    let other = all(view)?.into_iter().find(|it| it.primary_storage && it.id != site.id);
    match other.filter(|_| site.primary_storage) {
        Some(other) => Err(ApiError::bad_request(format!(
            "Only one storage site can be primary: {} (id {}) is.",
            other.hostname, other.id
        ))),
        None => Ok(()),
    }
}

/// Returns the site that a request describes, without its number. Errors: 400 if a key is missing or wrong.
fn parse(body: &Map<String, Value>) -> Result<StorageSite, ApiError> {
    let text = |name: &str| {
        let value = body.get(name).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
        let wrong = || ApiError::bad_request(format!("{name} must be a text that is not empty"));
        value.map(str::to_owned).ok_or_else(wrong)
    };
    let primary = body.get("primaryStorage").and_then(Value::as_bool);
    let site = StorageSite {
        id: 0,
        hostname: text("hostname")?,
        name: text("name")?,
        primary_storage: primary
            .ok_or_else(|| ApiError::bad_request("primaryStorage must be true or false"))?,
        transfer_protocols: text("transferProtocols")?,
    };
    for protocol in site.transfer_protocols.split(',') {
        if !PROTOCOLS.contains(&protocol.trim()) {
            return Err(ApiError::bad_request(format!(
                "transferProtocols must be some of {}, between commas, but has {protocol:?}",
                PROTOCOLS.join(", ")
            )));
        }
    }
    Ok(site)
}

async fn list(call: Call) -> Answer {
    let sites = call.db().read(Weight::Scan, all).await?;
    if sites.is_empty() {
        return Err(ApiError::not_found("No storage sites were found."));
    }
    envelope::ok(json!(sites))
}

async fn show(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let find = move |view: &mut View<'_>| find(view, &id);
    envelope::ok(json!(call.db().read(Weight::Point, find).await?))
}

async fn add(mut call: Call) -> Answer {
    let site = parse(&call.object().await?)?;
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<StorageSite, ApiError> {
        let (mut ids, mut site) = (ids, site.clone());
        site.id = ids.next()?;
        only_primary(txn, &site)?;
        stored::insert(txn, &STORAGE_SITE, &site.id.to_string(), &site)?;
        Ok(site)
    };
    envelope::ok(json!(call.db().write(write).await?))
}

/// Sets whether a site is primary: the body is `true` or `false`.
async fn set_primary(mut call: Call) -> Answer {
    let bytes = call.bytes().await?;
    let id = call.param("id").to_owned();
    let primary = match bytes.trim_ascii() {
        b"true" => true,
        b"false" => false,
        _ => return Err(ApiError::bad_request("Please send true or false as the body.")),
    };
    let write = move |txn: &mut Txn<'_>| -> Result<StorageSite, ApiError> {
        let mut site = find(txn, &id)?;
        site.primary_storage = primary;
        only_primary(txn, &site)?;
        stored::put(txn, &STORAGE_SITE, &id, &site)?;
        Ok(site)
    };
    envelope::ok(json!(call.db().write(write).await?))
}

async fn remove(call: Call) -> Answer {
    let id = call.param("id").to_owned();
    let removed =
        call.db().write(move |txn: &mut Txn<'_>| Ok::<_, ApiError>(txn.delete(&STORAGE_SITE, &id)?));
    match removed.await? {
        Some(_) => envelope::message(format!("Storage site id {} has been deleted.", call.param("id"))),
        None => Err(missing(call.param("id"))),
    }
}
