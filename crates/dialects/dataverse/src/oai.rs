//! The sets that harvesters are offered, `/api/harvest/server/oaisets`, and OAI-PMH 2.0 at `/oai`.
//!
//! A set is a search. Exporting a set records which published datasets the search finds: those become its members. A
//! member whose dataset is no longer published stays as a deleted record.

mod list;
pub(crate) mod members;
mod provider;

use http::Method;
use pinakes_store::{Expr, Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::routing::Routes;
use crate::search::query;
use crate::{envelope, stored};
use members::{MEMBER, Member, SET, Set};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .elsewhere(Method::GET, "/oai", provider::provide)
        .elsewhere(Method::POST, "/oai", provider::provide)
        .get("/harvest/server/oaisets", list_sets)
        .get("/harvest/server/oaisets/{name}", show_set)
        .post("/harvest/server/oaisets/add", add_set)
        .post("/harvest/server/oaisets/{name}", add_set)
        .put("/harvest/server/oaisets/{name}", change_set)
        .delete("/harvest/server/oaisets/{name}", delete_set)
        .get("/harvest/server/oaisets/{name}/datasets", set_datasets)
        .put("/harvest/server/oaisets/{name}/export", export_set)
        .post("/harvest/server/oaisets/{name}/export", export_set)
        .get("/harvest/server/oaisets/{name}/export", export_set)
        .get("/admin/metadata/exportOAI/{name}", export_set)
        .put("/admin/metadata/exportOAI/{name}", export_set)
}

fn set_json(set: &Set) -> Value {
    json!({"name": set.name, "definition": set.definition, "description": set.description, "version": 1})
}

/// Members stored in one transaction.
const BATCH: usize = 500;
/// Maximum number of characters of a set's name.
const NAME_CHARACTERS: usize = 30;

/// Checks that a superuser does something to a set. Errors: 400.
fn require_superuser(call: &Call, does: &str) -> Result<(), ApiError> {
    match call.asker.is_superuser() {
        true => Ok(()),
        false => Err(ApiError::bad_request(format!("Only superusers may {does} OAI sets."))),
    }
}

async fn list_sets(call: Call) -> Answer {
    let sets = call.db().read(Weight::Point, members::all_sets).await?;
    envelope::ok(json!({"oaisets": sets.iter().map(set_json).collect::<Vec<_>>()}))
}

async fn named(call: &Call) -> Result<Set, ApiError> {
    let name = call.param("name").to_owned();
    let text = format!("A set with specname {name} does not exist.");
    let found = call.db().read(Weight::Point, move |view| stored::get::<Set>(view, &SET, &name)).await?;
    found.ok_or_else(|| ApiError::not_found(text))
}

async fn show_set(call: Call) -> Answer {
    envelope::ok(set_json(&named(&call).await?))
}

fn read_set(body: &serde_json::Map<String, Value>, name: Option<&str>) -> Result<Set, ApiError> {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let set = Set {
        name: name.map_or_else(|| text("name"), str::to_owned),
        definition: text("definition"),
        description: text("description"),
    };
    let is_name = |it: &str| {
        !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-')
    };
    if !is_name(&set.name) {
        return Err(ApiError::bad_request(
            "Name (OAI setSpec) can contain only letters, digits, underscores (_) and dashes (-).",
        ));
    }
    if set.definition.trim().is_empty() {
        return Err(ApiError::bad_request("A set must have a definition."));
    }
    // The time does not matter: this only checks the syntax.
    query::parse(&set.definition, 0)
        .map_err(|error| ApiError::bad_request(format!("Search Syntax Error: {error}")))?;
    Ok(set)
}

async fn add_set(mut call: Call) -> Answer {
    require_superuser(&call, "create")?;
    let body = call.object().await?;
    let set = read_set(&body, None)?;
    if NAME_CHARACTERS < set.name.len() {
        return Err(ApiError::bad_request(format!(
            "This set name (OAI setSpec) may be no longer than {NAME_CHARACTERS} characters."
        )));
    }
    let (json, location) = (set_json(&set), format!("/harvest/server/oaisets/{}", set.name));
    let write = move |txn: &mut Txn<'_>| {
        if txn.has(&SET, &set.name)? {
            return Err(ApiError::bad_request("This set name (OAI setSpec) is already used."));
        }
        stored::insert(txn, &SET, &set.name, &set)
    };
    call.db().write(write).await?;
    envelope::created(&location, json)
}

async fn change_set(mut call: Call) -> Answer {
    require_superuser(&call, "edit")?;
    let before = named(&call).await?;
    let mut body = call.object().await?;
    let says = |name: &str| body.get(name).and_then(Value::as_str).is_some_and(|it| !it.trim().is_empty());
    let (has_definition, has_description) = (says("definition"), says("description"));
    if !has_definition && !has_description {
        return Err(ApiError::bad_request(
            "Invalid update! You must provide a definition and/or description to be updated.",
        ));
    }
    if !has_definition {
        body.insert("definition".to_owned(), before.definition.as_str().into());
    }
    if !has_description {
        body.insert("description".to_owned(), before.description.as_str().into());
    }
    let set = read_set(&body, Some(&before.name))?;
    let json = set_json(&set);
    call.db().write(move |txn: &mut Txn<'_>| stored::put(txn, &SET, &set.name, &set)).await?;
    envelope::ok(json)
}

async fn delete_set(call: Call) -> Answer {
    require_superuser(&call, "delete")?;
    let set = named(&call).await?;
    let name = set.name.clone();
    let write = move |txn: &mut Txn<'_>| {
        txn.delete(&SET, &set.name)?;
        for id in crate::files::rows::ids_of(txn, &MEMBER, Expr::Is("set".into(), set.name.clone().into()))? {
            txn.delete(&MEMBER, &id)?;
        }
        Ok::<_, ApiError>(())
    };
    call.db().write(write).await?;
    envelope::message(format!("OAI Set {name} deleted"))
}

async fn set_datasets(call: Call) -> Answer {
    let set = named(&call).await?;
    let read = move |view: &mut View<'_>| stored::find_by::<Member>(view, &MEMBER, "set", set.name.clone());
    let members = call.db().read(Weight::Scan, read).await?;
    envelope::ok(members.iter().filter(|it| !it.deleted).map(|it| it.pid.clone()).collect::<Vec<_>>())
}

async fn export_set(call: Call) -> Answer {
    let set = named(&call).await?;
    let (now, name) = (call.app.now(), set.name.clone());
    let changed = call.db().read(Weight::Scan, move |view| members::changed(view, &set, &now)).await?;
    for part in changed.chunks(BATCH) {
        let (part, set) = (part.to_vec(), name.clone());
        call.db().write(move |txn: &mut Txn<'_>| members::put(txn, &set, &part)).await?;
    }
    envelope::message(format!("OAI Set {name} exported"))
}
