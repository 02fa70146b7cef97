//! Requesting access to restricted files, and granting it.

use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};

use crate::app::Call;
use crate::datasets::{self, draft, wanted};
use crate::downloads::{self, Occasion};
use crate::error::{Answer, ApiError};
use crate::files::kinds::{AccessRequest, REQUEST};
use crate::files::{Found, Wanted};
use crate::grants::{self, Permission};
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::users::{self, User};
use crate::{assignments, clock, envelope, guestbooks, permissions, roles, stored};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .put("/access/datafile/{id}/requestAccess", ask)
        .put("/access/datafile/{id}/grantAccess/{user}", grant)
        .put("/access/datafile/{id}/rejectAccess/{user}", reject)
        .delete("/access/datafile/{id}/revokeAccess/{user}", revoke)
        .get("/access/datafile/{id}/listRequests", list)
        .get("/access/datafile/{id}/userFileAccessRequested", was_requested)
        .get("/access/datafile/{id}/userPermissions", user_permissions)
        .put("/access/{id}/allowAccessRequest", allow)
}

/// The role that allows downloads.
const DOWNLOADER: &str = "fileDownloader";

fn open_request(view: &mut View<'_>, file: i64, user: i64) -> Result<Option<AccessRequest>, ApiError> {
    let all: Vec<AccessRequest> = stored::find_by(view, &REQUEST, "file", file)?;
    Ok(all.into_iter().find(|it| it.user == user && it.state == "created"))
}

/// Transfers the requests of one user to another, who has at most one open request for a file.
pub(crate) fn hand_over(txn: &mut Txn<'_>, from: i64, into: i64) -> Result<(), ApiError> {
    for mut request in stored::find_by::<AccessRequest>(txn, &REQUEST, "user", from)? {
        let id = request.id.to_string();
        if request.state == "created" && open_request(txn, request.file, into)?.is_some() {
            txn.delete(&REQUEST, &id)?;
            continue;
        }
        request.user = into;
        stored::put(txn, &REQUEST, &id, &request)?;
    }
    Ok(())
}

/// Removes the requests of a user who is being removed.
pub(crate) fn remove_of_user(txn: &mut Txn<'_>, user: i64) -> Result<(), ApiError> {
    for request in stored::find_by::<AccessRequest>(txn, &REQUEST, "user", user)? {
        txn.delete(&REQUEST, &request.id.to_string())?;
    }
    Ok(())
}

fn label_of(found: &Found) -> String {
    found.newest_row().map(|it| it.label.clone()).unwrap_or_default()
}

/// `PUT …/requestAccess`. If the dataset's guestbook is to be answered with the request, the body has
/// `guestbookResponse`.
async fn ask(mut call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let user = call.asker.user.clone();
    let user =
        user.ok_or_else(|| ApiError::bad_request("You must provide a key to request access to a file. "))?;
    let (asker, now, today) = (call.asker.clone(), call.app.now(), clock::date(call.app.now_ms()));
    let ids = call.ids(53).await?;
    let text = call.text().await?;
    let body: Value = match text.trim() {
        "" => Value::Null,
        text => serde_json::from_str(text)
            .map_err(|error| ApiError::bad_request(format!("Error parsing Json: {error}")))?,
    };
    let app = call.app.clone();
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let refuse = |text: &str| Err(ApiError::bad_request(text));
        let file = wanted.find(txn)?;
        let found = Found::of(txn, file)?;
        let Some(released) = &found.dataset.released else {
            return refuse("Requests for access are not accepted on the Dataset.");
        };
        let version = datasets::version::of_dataset(txn, &found.dataset, released.version)?;
        if !version.file_access_request {
            return refuse("Requests for access are not accepted on the Dataset.");
        }
        if found.file.retention.as_ref().is_some_and(|it| it.date.as_str() < today.as_str()) {
            return refuse(
                "You may not request access to this file. It is not available because its retention period has ended.",
            );
        }
        if found.published_row().is_none() || found.may_download(txn, &asker, &today)? {
            return refuse("You may not request access to this file. It may already be available to you.");
        }
        if open_request(txn, found.file.id, user.id)?.is_some() {
            return refuse("An access request for this file on your behalf already exists.");
        }
        if guestbooks::is_at_request(&app.settings, &found.dataset)
            && let Some(guestbook) = downloads::demanded(txn, &found.dataset, &asker)?
        {
            let given = &body["guestbookResponse"];
            if !given.is_object() {
                return Err(ApiError::bad_request(format!(
                    "You may not request access to this file without the required Guestbook response for guestbookID {guestbook}."
                )));
            }
            let answers = (Occasion::Request, given);
            downloads::sign(txn, ids.next()?, &now, &asker, &found.file, answers)?;
        }
        let request = AccessRequest {
            id: ids.next()?,
            file: found.file.id,
            user: user.id,
            state: "created".to_owned(),
            created: now.clone(),
        };
        stored::insert(txn, &REQUEST, &request.id.to_string(), &request)?;
        let about = |kind| notice(kind, &found);
        notifications::send(txn, ids.next()?, &now, user.id, about("REQUESTEDFILEACCESS"))?;
        let managers = notifications::file_managers(txn, found.file.id, &found.dataset)?;
        for manager in managers.into_iter().take(TOLD) {
            notifications::send(txn, ids.next()?, &now, manager, about("REQUESTFILEACCESS"))?;
        }
        Ok::<_, ApiError>(label_of(&found))
    };
    let label = call.db().write(write).await?;
    envelope::message(format!("Access to File {label} requested."))
}

/// Maximum number of users who are notified of one request.
const TOLD: usize = 50;

fn notice(kind: &'static str, found: &Found) -> Notice {
    Notice::of(kind)
        .with("datasetPersistentIdentifier", found.dataset.pid.as_str())
        .with("dataFileId", found.file.id)
        .with("dataFileDisplayName", label_of(found))
}

/// Returns the file as the object of role assignments.
fn point_of(found: &Found) -> assignments::Point {
    assignments::Point {
        id: found.file.id,
        name: label_of(found),
        ty: "DataFile",
        pid: found.file.pid.clone(),
        dataset: Some(found.dataset.id),
    }
}

/// Returns the file, after checking that the caller may grant access to it, and the user that the path names.
fn managed(
    txn: &mut View<'_>,
    asker: &crate::asker::Asker,
    wanted: &Wanted,
    name: &str,
) -> Result<(Found, User), ApiError> {
    let file = wanted.find(txn)?;
    let found = Found::of(txn, file)?;
    if !permissions::may(txn, asker, found.place(), Permission::ManageFilePermissions)?
        && !permissions::may(txn, asker, found.place(), Permission::ManageDatasetPermissions)?
    {
        return Err(ApiError::bad_request(
            "Requestor does not have permission to manage file download requests.",
        ));
    }
    let user = users::by_name(txn, name.trim_start_matches('@'))?;
    let user = user
        .ok_or_else(|| ApiError::bad_request(format!("Could not find assignee with identifier {name}.")))?;
    Ok((found, user))
}

async fn grant(call: Call) -> Answer {
    let (wanted, asker, name) = (Wanted::of(&call)?, call.asker.clone(), call.param("user").to_owned());
    let (ids, app) = (call.ids(2).await?, call.app.clone());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let (found, user) = managed(txn, &asker, &wanted, &name)?;
        let role =
            roles::by_alias(txn, DOWNLOADER)?.ok_or_else(|| ApiError::internal("The role is gone."))?;
        let actor = assignments::actor_of(&app, &asker);
        let point = point_of(&found);
        assignments::assign(txn, &actor, &point, &user.identifier(), &role, ids.next()?)?;
        if let Some(mut request) = open_request(txn, found.file.id, user.id)? {
            request.state = "granted".to_owned();
            stored::put(txn, &REQUEST, &request.id.to_string(), &request)?;
        }
        notifications::send(txn, ids.next()?, &app.now(), user.id, notice("GRANTFILEACCESS", &found))?;
        Ok::<_, ApiError>(label_of(&found))
    };
    let label = call.db().write(write).await?;
    envelope::message(format!("Access to File {label} granted."))
}

async fn reject(call: Call) -> Answer {
    let (wanted, asker, name) = (Wanted::of(&call)?, call.asker.clone(), call.param("user").to_owned());
    let (ids, now) = (call.ids(1).await?, call.app.now());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let (found, user) = managed(txn, &asker, &wanted, &name)?;
        let request = open_request(txn, found.file.id, user.id)?;
        let mut request = request.ok_or_else(|| {
            ApiError::bad_request(format!(
                "No request for access to file {} for user {name}",
                label_of(&found)
            ))
        })?;
        request.state = "rejected".to_owned();
        stored::put(txn, &REQUEST, &request.id.to_string(), &request)?;
        notifications::send(txn, ids.next()?, &now, user.id, notice("REJECTFILEACCESS", &found))?;
        Ok::<_, ApiError>(label_of(&found))
    };
    let label = call.db().write(write).await?;
    envelope::message(format!("Access to File {label} rejected."))
}

async fn revoke(call: Call) -> Answer {
    let (wanted, asker, name) = (Wanted::of(&call)?, call.asker.clone(), call.param("user").to_owned());
    let app = call.app.clone();
    let write = move |txn: &mut Txn<'_>| {
        let (found, user) = managed(txn, &asker, &wanted, &name)?;
        let role =
            roles::by_alias(txn, DOWNLOADER)?.ok_or_else(|| ApiError::internal("The role is gone."))?;
        let missing = || ApiError::bad_request(format!("No File Downloader role found for user {name}"));
        let grants = grants::grants_on(txn, found.file.id)?;
        let held = grants.iter().find(|it| it.assignee == user.identifier());
        let assigned = held.and_then(|it| it.roles.iter().find(|it| it.role == role.id));
        let assignment = assigned.ok_or_else(missing)?.id;
        let actor = assignments::actor_of(&app, &asker);
        assignments::revoke(txn, &actor, found.file.id, assignment)?.ok_or_else(missing)?;
        Ok::<_, ApiError>((user, label_of(&found)))
    };
    let (user, label) = call.db().write(write).await?;
    envelope::message(format!(
        "File Downloader access has been revoked for user {} on file {label}",
        user.identifier()
    ))
}

async fn list(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    call.asker.user()?;
    let with_history = call.query.is_true("includeHistory");
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let may = permissions::may(view, &asker, found.place(), Permission::ManageFilePermissions)?
            || permissions::may(view, &asker, found.place(), Permission::ManageDatasetPermissions)?;
        if !may {
            return Err(ApiError::forbidden(
                "Requestor does not have permission to manage file download requests.",
            ));
        }
        let all: Vec<AccessRequest> = stored::find_by(view, &REQUEST, "file", found.file.id)?;
        let mut list = Vec::new();
        for it in all.iter().filter(|it| with_history || it.state == "created") {
            let Some(user) = users::by_id(view, it.user)? else { continue };
            list.push(json!({
                "identifier": user.identifier(),
                "displayName": user.display_name(),
                "creationTime": it.created,
                "requestState": it.state,
            }));
        }
        if list.is_empty() {
            let label = label_of(&found);
            return Err(ApiError::not_found(format!("There are no access requests for this file: {label}.")));
        }
        Ok(Value::from(list))
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

async fn was_requested(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let user = call.asker.user()?.id;
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        Ok::<_, ApiError>(open_request(view, file.id, user)?.is_some())
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

async fn user_permissions(call: Call) -> Answer {
    let (wanted, asker, today) = (Wanted::of(&call)?, call.asker.clone(), clock::date(call.app.now_ms()));
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let held = permissions::held(view, &asker, found.place())?;
        Ok::<_, ApiError>(json!({
            "canDownloadFile": found.may_download(view, &asker, &today)?,
            "canManageFilePermissions": held.contains(&Permission::ManageFilePermissions),
            "canEditOwnerDataset": held.contains(&Permission::EditDataset),
        }))
    };
    envelope::ok(call.db().read(Weight::Point, read).await?)
}

async fn allow(mut call: Call) -> Answer {
    let wanted = wanted::Wanted::of(&call)?;
    let text = call.text().await?;
    let allows = text.eq_ignore_ascii_case("true");
    let (asker, now, ids, app) = (call.asker.clone(), call.app.now(), call.ids(1).await?, call.app.clone());
    let write = move |txn: &mut Txn<'_>| {
        let mut ids = ids;
        let mut dataset = wanted.find(txn).map_err(|error| ApiError::bad_request(error.message))?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        let mut version = draft::open_draft(txn, &now, &mut dataset, &mut ids)?;
        version.note_contributor(&asker);
        version.file_access_request = allows;
        if !allows
            && !version.terms.contains_key("termsOfAccess")
            && crate::files::has_restricted(txn, dataset.id, version.ordinal)?
        {
            return Err(ApiError::conflict(
                "Terms of Use and Access are invalid. You must enable request access or add terms of access in datasets \
                 with restricted files.",
            ));
        }
        datasets::version::put(txn, &version)?;
        datasets::put(txn, &dataset)?;
        crate::changes::dataset(txn, &app, dataset.id)?;
        Ok(dataset.identifier)
    };
    let name = call.db().write(write).await?;
    let verb = if allows { "allows" } else { "disallows" };
    envelope::message(format!("Dataset {name} {verb} file access requests."))
}
