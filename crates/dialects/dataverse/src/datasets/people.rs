//! Roles on a dataset, and its private URL (section 5.5 of the contract).

use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::asker::{Asker, Preview};
use crate::assignments::{self, Point};
use crate::collections::people::role_for;
use crate::datasets::create::point;
use crate::datasets::version::{self, title_of};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset};
use crate::error::{Answer, ApiError};
use crate::grants::{self, Assigned, GRANT, Grant, Permission};
use crate::routing::Routes;
use crate::tokens::{self, Token};
use crate::{changes, collections, envelope, permissions, roles, site_settings, stored};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let routes = routes
        .get("/datasets/{id}/assignments", list)
        .post("/datasets/{id}/assignments", assign)
        .get("/datasets/{id}/assignments/history", history)
        .get("/datasets/{id}/files/assignments/history", files_history)
        .delete("/datasets/{id}/assignments/{assignment}", revoke)
        .get("/datasets/{id}/userPermissions", user_permissions);
    ["privateUrl", "previewUrl"].into_iter().fold(routes, |routes, name| {
        let path = format!("/datasets/{{id}}/{name}");
        routes.get(&path, show_preview).post(&path, create_preview).delete(&path, delete_preview)
    })
}

fn managed(view: &mut View<'_>, asker: &Asker, wanted: &Wanted) -> Result<Dataset, ApiError> {
    let dataset = wanted.find(view)?;
    permissions::require(view, asker, dataset.place(), Permission::ManageDatasetPermissions)?;
    Ok(dataset)
}

/// Returns the dataset as the object of role assignments, with its title.
fn titled(view: &mut View<'_>, dataset: &Dataset) -> Result<Point, ApiError> {
    let newest = dataset.draft.as_ref().map(|it| it.version).or(dataset.last.as_ref().map(|it| it.version));
    let title = match newest {
        Some(id) => title_of(&version::of_dataset(view, dataset, id)?),
        None => String::new(),
    };
    Ok(point(dataset, &title))
}

async fn list(call: Call) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Vec<Value>, ApiError> {
        let dataset = managed(view, &asker, &wanted)?;
        let point = titled(view, &dataset)?;
        assignments::list(view, &point)
    };
    envelope::ok(call.db().read(Weight::Scan, find).await?)
}

async fn assign(mut call: Call) -> Answer {
    let body = call.object().await?;
    let (assignee, alias) = assignments::read_body(&body)?;
    let (asker, wanted, actor) = (call.asker.clone(), Wanted::of(&call)?, assignments::actor(&call));
    let ids = call.ids(1).await?;
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let dataset = managed(txn, &asker, &wanted)?;
        let assignee = assignments::find_assignee(txn, &assignee, "given a role")?;
        let owner = collections::named_by_record(txn, dataset.owner)?;
        let unknown =
            || ApiError::bad_request(format!("Cannot find role named '{alias}' in dataverse {}", owner.name));
        let role = role_for(txn, &owner, &alias)?.ok_or_else(unknown)?;
        assignments::check_holds(txn, &asker, dataset.place(), &role)?;
        let point = titled(txn, &dataset)?;
        let assigned = assignments::assign(txn, &actor, &point, &assignee, &role, ids.next()?)?;
        assignments::json(txn, &point, &assignee, &assigned)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn revoke(call: Call) -> Answer {
    let (asker, wanted, actor) = (call.asker.clone(), Wanted::of(&call)?, assignments::actor(&call));
    let (app, text) = (call.app.clone(), call.param("assignment").to_owned());
    let number: i64 =
        text.parse().map_err(|_| ApiError::bad_request(format!("Bad assignment ID number: {text}.")))?;
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = managed(txn, &asker, &wanted)?;
        let missing = || ApiError::not_found(format!("\"Role assignment {number} not found\""));
        let (assignee, role) = assignments::revoke(txn, &actor, dataset.id, number)?.ok_or_else(missing)?;
        // A preview URL is nothing without its role.
        if assignee == format!("!{}", dataset.id) {
            datasets::publish::drop_preview(txn, &mut dataset)?;
            datasets::put(txn, &dataset)?;
            changes::dataset(txn, &app, dataset.id)?;
        }
        let role = roles::by_id(txn, role)?.map(|it| it.name).unwrap_or_default();
        let point = titled(txn, &dataset)?;
        Ok(format!("Role {role} revoked for assignee {assignee} in {}", point.name))
    };
    envelope::message(call.db().write(write).await?)
}

async fn log(call: Call, path: &'static str) -> Answer {
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    if !call.app.settings.role_assignment_history {
        return Err(ApiError::not_found("Role assignment history is not kept on this server."));
    }
    let find = move |view: &mut View<'_>| {
        let dataset = managed(view, &asker, &wanted)?;
        assignments::history(view, path, dataset.id)
    };
    let changes = call.db().read(Weight::Scan, find).await?;
    assignments::history_answer(&call, &changes)
}

async fn history(call: Call) -> Answer {
    log(call, "object").await
}

async fn files_history(call: Call) -> Answer {
    log(call, "dataset").await
}

async fn user_permissions(call: Call) -> Answer {
    call.asker.user()?;
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = wanted.find(view)?;
        let held = permissions::held(view, &asker, dataset.place())?;
        let has = |it| held.contains(&it);
        Ok(json!({
            "canViewUnpublishedDataset": has(Permission::ViewUnpublishedDataset),
            "canEditDataset": has(Permission::EditDataset),
            "canPublishDataset": has(Permission::PublishDataset),
            "canManageDatasetPermissions": has(Permission::ManageDatasetPermissions),
            "canDeleteDatasetDraft": has(Permission::DeleteDatasetDraft),
        }))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

/// Returns a private URL as JSON.
fn preview_json(
    view: &mut View<'_>,
    site_url: &str,
    dataset: &Dataset,
    token: &str,
) -> Result<Value, ApiError> {
    let assignee = format!("!{}", dataset.id);
    let grant: Option<Grant> = stored::get(view, &GRANT, &grants::grant_id(dataset.id, &assignee))?;
    let assignment = match grant.as_ref().and_then(|it| it.roles.first()) {
        Some(assigned) => {
            let point = titled(view, dataset)?;
            let mut json = assignments::json(view, &point, &assignee, assigned)?;
            json["privateUrlToken"] = token.into();
            json
        }
        None => Value::Null,
    };
    Ok(json!({
        "token": token,
        "link": format!("{site_url}/previewurl.xhtml?token={token}"),
        "roleAssignment": assignment,
    }))
}

async fn show_preview(call: Call) -> Answer {
    let (app, tenant, site_url) = (call.app.clone(), call.tenant().to_owned(), call.site_url());
    let (asker, wanted) = (call.asker.clone(), Wanted::of(&call)?);
    let find = move |view: &mut View<'_>| -> Result<Value, ApiError> {
        let dataset = managed(view, &asker, &wanted)?;
        let token = tokens::of_dataset(view, dataset.id)?;
        let token = token.ok_or_else(|| ApiError::not_found("Private URL not found."))?;
        preview_json(view, &site_url, &dataset, &token.text(&app, &tenant))
    };
    envelope::ok(call.db().read(Weight::Point, find).await?)
}

async fn create_preview(call: Call) -> Answer {
    let (app, tenant, site_url) = (call.app.clone(), call.tenant().to_owned(), call.site_url());
    let (asker, wanted, ids) = (call.asker.clone(), Wanted::of(&call)?, call.ids(1).await?);
    let anonymized = call.query.is_true("anonymizedAccess");
    let write = move |txn: &mut Txn<'_>| -> Result<Value, ApiError> {
        let mut ids = ids;
        let mut dataset = managed(txn, &asker, &wanted)?;
        if dataset.preview_anonymized.is_some() {
            return Err(ApiError::forbidden("Preview URL already exists for this dataset."));
        }
        if anonymized && site_settings::get(txn, ":AnonymizedFieldTypeNames")?.is_none() {
            return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, "Anonymized Access not enabled"));
        }
        if dataset.draft.is_none() {
            return Err(ApiError::forbidden(
                "Can't create Preview URL because the latest version of this dataset is not a draft.",
            ));
        }
        if anonymized && dataset.was_released() {
            return Err(ApiError::forbidden(
                "Can't create a URL for anonymized access because this dataset has been published.",
            ));
        }
        let token = Token::of_preview(&app, Preview { dataset: dataset.id, anonymized });
        let text = token.text(&app, &tenant);
        tokens::insert(txn, &text, &token)?;
        let assignee = format!("!{}", dataset.id);
        let assigned = Assigned { id: ids.next()?, role: roles::MEMBER };
        let grant = Grant { object: dataset.id, assignee: assignee.clone(), roles: vec![assigned] };
        stored::put(txn, &GRANT, &grants::grant_id(dataset.id, &assignee), &grant)?;
        dataset.preview_anonymized = Some(anonymized);
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)?;
        preview_json(txn, &site_url, &dataset, &text)
    };
    envelope::ok(call.db().write(write).await?)
}

async fn delete_preview(call: Call) -> Answer {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = managed(txn, &asker, &wanted)?;
        if dataset.preview_anonymized.is_none() {
            return Err(ApiError::not_found("No Private URL to delete."));
        }
        datasets::publish::drop_preview(txn, &mut dataset)?;
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await?;
    envelope::message("Private URL deleted.")
}
