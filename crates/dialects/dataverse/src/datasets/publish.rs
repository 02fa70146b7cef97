//! Publishing, review and deaccession (sections 5.2 to 5.4 of the contract). A publication is complete when the request
//! is answered: no client sees a lock.

use pinakes_store::{Txn, View};
use serde_json::{Value, json};

use crate::app::{Call, Dataverse};
use crate::asker::Asker;
use crate::collections::{self, Collection};
use crate::datasets::version::{self, Withdrawn};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, Lock, Numbered, State, Version, terms};
use crate::error::{Answer, ApiError};
use crate::grants::{self, GRANT, Permission};
use crate::notifications::{self, Notice};
use crate::routing::Routes;
use crate::{changes, clock, envelope, files, permissions, tokens};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .post("/datasets/{id}/submitForReview", submit)
        .post("/datasets/{id}/returnToAuthor", return_to_author)
        .post("/datasets/{id}/versions/{version}/deaccession", deaccession)
}

/// Maximum length of the forwarding URL of a deaccessioned version.
const LINK_CHARACTERS: usize = 1260;

/// How a draft is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// As version N+1.0.
    Major,
    /// As version N.M+1.
    Minor,
    /// As a replacement of the newest release.
    UpdateCurrent,
}

/// Returns the release that the parameter `type` asks for. Errors: 400; 401 for guests, 403 for a type that only
/// superusers may use.
pub(crate) fn kind_of(call: &Call) -> Result<Release, ApiError> {
    let kind = match call.query.get("type").map(str::to_ascii_lowercase).as_deref() {
        None | Some("") => {
            return Err(ApiError::bad_request(
                "Missing 'type' parameter (either 'major','minor', or 'updatecurrent').",
            ));
        }
        Some("major") => Release::Major,
        Some("minor") => Release::Minor,
        Some("updatecurrent") => Release::UpdateCurrent,
        Some(_) => {
            let given = call.query.get("type").unwrap_or_default();
            return Err(ApiError::bad_request(format!(
                "Illegal 'type' parameter value '{given}'. It needs to be either 'major', 'minor', or 'updatecurrent'."
            )));
        }
    };
    call.asker.user()?;
    if kind == Release::UpdateCurrent && !call.asker.is_superuser() {
        return Err(ApiError::forbidden("Only superusers can update the current version"));
    }
    Ok(kind)
}

/// Maximum number of users who are notified of one publication.
pub(crate) const NOTICES: i64 = 50;

/// Releases a dataset's draft for the caller.
pub(crate) async fn release(call: &Call, dataset: i64, kind: Release) -> Result<Dataset, ApiError> {
    let (app, asker, ids) = (call.app.clone(), call.asker.clone(), call.ids(NOTICES).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<Dataset, ApiError> {
        let dataset = Wanted::number(dataset).find(txn)?;
        release_in(txn, &app, &asker, dataset, kind, ids)
    };
    call.db().write(write).await
}

/// Checks that the caller may release a dataset's draft now. Returns the draft, and the collection of the dataset.
///
/// Errors: 401, 403 and 409, according to section 5.2 of the contract.
pub(crate) fn check(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    kind: Release,
) -> Result<(Version, Collection), ApiError> {
    permissions::require(view, asker, dataset.place(), Permission::PublishDataset)?;
    let owner = collections::named_by_record(view, dataset.owner)?;
    if !owner.is_released() {
        return Err(ApiError::forbidden(format!(
            "This dataset may not be published because its host dataverse ({}) has not been published.",
            owner.alias
        )));
    }
    if let Some(lock) = dataset.locks.iter().find(|it| it.lock_type != "InReview") {
        return Err(ApiError::forbidden(format!(
            "This dataset is locked. Reason: {}. Please try publishing later.",
            lock.lock_type
        )));
    }
    let Some(draft) = &dataset.draft else {
        return Err(ApiError::forbidden(format!(
            "Latest version of dataset {} is already released. Only draft versions can be released.",
            dataset.identifier
        )));
    };
    let draft = version::of_dataset(view, dataset, draft.version)?;
    check_release(view, asker, dataset, &draft, kind)?;
    Ok((draft, owner))
}

/// Releases a draft in a transaction: checks the rules, then makes the change.
pub(crate) fn release_in(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    asker: &Asker,
    mut dataset: Dataset,
    kind: Release,
    mut ids: crate::ids::Ids,
) -> Result<Dataset, ApiError> {
    let (mut released, owner) = check(txn, asker, &dataset, kind)?;
    let now = app.now();
    let current = dataset.last.clone();
    if kind == Release::UpdateCurrent {
        let current = current.ok_or_else(|| ApiError::forbidden("The dataset has no released version."))?;
        update_current(txn, &mut dataset, &mut released, &current, &now)?;
    } else {
        let (number, minor) = match (current, kind) {
            (None, _) => (1, 0),
            (Some(it), Release::Minor) => (it.number, it.minor + 1),
            (Some(it), _) => (it.number + 1, 0),
        };
        (released.number, released.minor) = (Some(number), Some(minor));
        released.release_time = Some(now.clone());
        let numbered = Numbered { version: released.id, ordinal: released.ordinal, number, minor };
        (dataset.released, dataset.last) = (Some(numbered.clone()), Some(numbered));
    }
    released.state = State::Released;
    released.last_update_time.clone_from(&now);
    dataset.draft = None;
    let was_first = dataset.publication_date.is_none();
    if was_first {
        dataset.publication_date = Some(clock::date(app.now_ms()));
        dataset.publisher = asker.user.as_ref().map(|it| it.id);
    }
    dataset.locks.retain(|it| it.lock_type != "InReview");
    drop_preview(txn, &mut dataset)?;
    dataset.more.remove(datasets::curation::STATUS);
    version::put(txn, &released)?;
    datasets::put(txn, &dataset)?;
    crate::featured::remove_of_lost_files(txn, dataset.id)?;
    add_subjects(txn, app, &dataset, &released)?;
    let title = version::title_of(&released);
    for user in notifications::insiders(txn, &dataset)? {
        let Ok(id) = ids.next() else { break };
        let notice = Notice::of("PUBLISHEDDS")
            .with("datasetPersistentIdentifier", dataset.pid.as_str())
            .with("datasetDisplayName", title.as_str())
            .with("ownerAlias", owner.alias.as_str());
        notifications::send(txn, id, &now, user, notice)?;
    }
    changes::dataset(txn, app, dataset.id)?;
    Ok(dataset)
}

/// Checks the conditions for a release of the given kind. Errors: 403 and 409.
fn check_release(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    draft: &Version,
    kind: Release,
) -> Result<(), ApiError> {
    if kind == Release::Minor && dataset.last.is_none() {
        return Err(ApiError::forbidden("Cannot publish as minor version. Re-try as major release."));
    }
    if kind == Release::Minor && files::changed(view, dataset.id, draft.ordinal)? {
        return Err(ApiError::forbidden("Cannot release as minor version. Re-try as major release."));
    }
    if !terms::are_valid(draft) {
        return Err(ApiError::forbidden(
            "Dataset must have a valid license or Custom Terms Of Use configured before it can be published.",
        ));
    }
    check_access_terms(view, dataset, draft)?;
    // A superuser may publish without.
    if asker.is_superuser() {
        return Ok(());
    }
    check_files(view, dataset, draft, "Published datasets should contain at least one data file.")
}

/// Checks that a version has files if the collection requires them. Errors: 403 with `refusal`.
fn check_files(
    view: &mut View<'_>,
    dataset: &Dataset,
    draft: &Version,
    refusal: &str,
) -> Result<(), ApiError> {
    let owner = collections::named_by_record(view, dataset.owner)?;
    let above = collections::with_owners(view, owner)?;
    let requires_files = above.iter().find_map(|it| it.requires_files).unwrap_or(false);
    if requires_files && files::n_files(view, dataset.id, draft.ordinal)? == 0 {
        return Err(ApiError::forbidden(refusal));
    }
    Ok(())
}

/// Checks that a version with restricted files either allows access requests or has terms of access. Errors: 409.
pub(crate) fn check_access_terms(
    view: &mut View<'_>,
    dataset: &Dataset,
    draft: &Version,
) -> Result<(), ApiError> {
    let is_said = draft.file_access_request || draft.terms.contains_key("termsOfAccess");
    if is_said || !files::has_restricted(view, dataset.id, draft.ordinal)? {
        return Ok(());
    }
    Err(ApiError::conflict(
        "Terms of Use and Access are invalid. You must enable request access or add terms of access in datasets with restricted files.",
    ))
}

/// Replaces the newest release by the draft, which takes its version number.
fn update_current(
    txn: &mut Txn<'_>,
    dataset: &mut Dataset,
    draft: &mut Version,
    current: &Numbered,
    now: &str,
) -> Result<(), ApiError> {
    if files::changed(txn, dataset.id, draft.ordinal)? {
        return Err(ApiError::forbidden("Cannot change files in the current version"));
    }
    let before = version::of_dataset(txn, dataset, current.version)?;
    files::merge_draft(txn, dataset.id, current.ordinal, draft.ordinal)?;
    version::remove(txn, draft.id)?;
    draft.id = before.id;
    draft.ordinal = before.ordinal;
    (draft.number, draft.minor) = (before.number, before.minor);
    (draft.release_time, draft.create_time) = (before.release_time, before.create_time);
    draft.last_update_time = now.to_owned();
    dataset.last_ordinal = current.ordinal;
    Ok(())
}

/// Removes the private URL, which ends with the publication.
pub(crate) fn drop_preview(txn: &mut Txn<'_>, dataset: &mut Dataset) -> Result<(), ApiError> {
    if dataset.preview_anonymized.take().is_some() {
        tokens::remove(txn, "dataset", dataset.id)?;
        txn.delete(&GRANT, &grants::grant_id(dataset.id, &format!("!{}", dataset.id)))?;
    }
    Ok(())
}

/// Adds the subjects of a published dataset to the collections above it.
fn add_subjects(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    dataset: &Dataset,
    version: &Version,
) -> Result<(), ApiError> {
    let blocks = Value::Object(version.metadata_blocks.clone());
    let subjects: Vec<String> =
        crate::blocks::fields::Metadata(&blocks).many("subject").into_iter().map(str::to_owned).collect();
    let owner = collections::named_by_record(txn, dataset.owner)?;
    for mut collection in collections::with_owners(txn, owner)? {
        let before = collection.subjects.len();
        for subject in &subjects {
            if !collection.subjects.contains(subject) {
                collection.subjects.push(subject.clone());
            }
        }
        if collection.subjects.len() != before {
            collections::put(txn, &collection)?;
            changes::collection(txn, app, collection.id)?;
        }
    }
    Ok(())
}

async fn submit(call: Call) -> Answer {
    let (app, asker, wanted, ids) =
        (call.app.clone(), call.asker.clone(), Wanted::of(&call)?, call.ids(NOTICES).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        let user = asker.user()?;
        let Some(draft) = dataset.draft.clone() else {
            return Err(ApiError::forbidden(
                "Latest version of dataset is already released. Only draft versions can be submitted for review.",
            ));
        };
        if dataset.locks.iter().any(|it| it.lock_type == "InReview") {
            return Err(ApiError::forbidden(
                "You cannot submit this dataset for review because it is already in review.",
            ));
        }
        let now_ms = app.now_ms();
        dataset.locks.push(Lock::new("InReview", &user.name, now_ms));
        datasets::put(txn, &dataset)?;
        let mut draft = version::of_dataset(txn, &dataset, draft.version)?;
        check_files(
            txn,
            &dataset,
            &draft,
            "The dataset must contain at least one data file in order to be submitted for review.",
        )?;
        draft.note_contributor(&asker);
        version::put(txn, &draft)?;
        let mut ids = ids;
        for curator in notifications::curators(txn, &dataset)? {
            let Ok(id) = ids.next() else { break };
            let notice = review_notice(txn, "SUBMITTEDDS", &dataset, &draft, Some(user))?;
            notifications::send(txn, id, &clock::instant(now_ms), curator, notice)?;
        }
        changes::dataset(txn, &app, dataset.id)?;
        Ok(dataset.id)
    };
    let id = call.db().write(write).await?;
    let message = format!("Dataset id {id} has been submitted for review.");
    envelope::ok(json!({"inReview": true, "message": message}))
}

/// Returns the notice for reviewers and authors.
fn review_notice(
    view: &mut View<'_>,
    kind: &'static str,
    dataset: &Dataset,
    version: &Version,
    requestor: Option<&crate::users::User>,
) -> Result<Notice, ApiError> {
    let owner = collections::named_by_record(view, dataset.owner)?;
    let mut notice = Notice::of(kind)
        .with("datasetPersistentIdentifier", dataset.pid.as_str())
        .with("datasetDisplayName", version::title_of(version))
        .with("ownerPersistentIdentifier", owner.alias.as_str())
        .with("ownerAlias", owner.alias.as_str())
        .with("ownerDisplayName", owner.name.as_str())
        .with("dataset", dataset.id);
    if let Some(user) = requestor {
        notice = notice
            .with("requestorFirstName", user.first_name.as_str())
            .with("requestorLastName", user.last_name.as_str())
            .with("requestorEmail", user.email.as_str());
    }
    Ok(notice)
}

async fn return_to_author(mut call: Call) -> Answer {
    let body = call.object().await?;
    let reason = body.get("reasonForReturn").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (app, asker, wanted, ids) =
        (call.app.clone(), call.asker.clone(), Wanted::of(&call)?, call.ids(NOTICES).await?);
    let write = move |txn: &mut Txn<'_>| -> Result<i64, ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::PublishDataset)?;
        if reason.trim().is_empty() {
            return Err(ApiError::bad_request(
                "You must enter a reason for returning a dataset to the author(s).",
            ));
        }
        if !dataset.locks.iter().any(|it| it.lock_type == "InReview") {
            return Err(ApiError::forbidden(
                "This dataset cannot be return to the author(s) because the latest version is not In Review. The author(s) needs to click Submit for Review first.",
            ));
        }
        dataset.locks.retain(|it| it.lock_type != "InReview");
        let reasons = dataset.more.entry(REASONS).or_insert_with(|| json!([]));
        if let Some(list) = reasons.as_array_mut() {
            list.push(json!({"message": reason, "time": app.now()}));
        }
        datasets::put(txn, &dataset)?;
        let Some(draft) = dataset.draft.clone() else { return Ok(dataset.id) };
        let mut draft = version::of_dataset(txn, &dataset, draft.version)?;
        draft.note_contributor(&asker);
        version::put(txn, &draft)?;
        let mut ids = ids;
        for author in notifications::editors(txn, &dataset)? {
            let Ok(id) = ids.next() else { break };
            let notice = review_notice(txn, "RETURNEDDS", &dataset, &draft, None)?;
            notifications::send(txn, id, &app.now(), author, notice)?;
        }
        changes::dataset(txn, &app, dataset.id)?;
        Ok(dataset.id)
    };
    let id = call.db().write(write).await?;
    let message = format!("Dataset id {id} has been sent back to the author(s).");
    envelope::ok(json!({"inReview": false, "message": message}))
}

/// Setting of a dataset: the reasons for each time it was returned to its authors.
pub(crate) const REASONS: &str = "returnReasons";

/// Deaccessions a published version: it stays, its metadata states the reason, and its files become inaccessible.
async fn deaccession(mut call: Call) -> Answer {
    let body = call.object().await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let reason = text("deaccessionReason")
        .ok_or_else(|| ApiError::bad_request("Field 'deaccessionReason' is mandatory"))?;
    let link = text("deaccessionForwardURL").filter(|it| !it.is_empty());
    if let Some(link) = &link
        && (!crate::blocks::validate::is_url(link) || LINK_CHARACTERS < link.chars().count())
    {
        return Err(ApiError::bad_request(format!("Invalid deaccession forward URL: {link}")));
    }
    let spec = call.param("version").to_owned();
    if spec == ":draft" || spec == ":latest" {
        let message = "Only :latest-published or a specific version can be deaccessioned";
        return Err(ApiError::bad_request(message));
    }
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(&call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<String, ApiError> {
        let mut dataset = wanted.find(txn)?;
        let mut found = version::find(txn, &asker, &dataset, &spec, Withdrawn::Hidden)?;
        permissions::require(txn, &asker, dataset.place(), Permission::PublishDataset)?;
        found.state = State::Deaccessioned;
        found.deaccession_note = Some(reason.clone());
        found.deaccession_link.clone_from(&link);
        found.last_update_time = app.now();
        version::put(txn, &found)?;
        dataset.released = newest_released(txn, &dataset)?;
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)?;
        Ok(format!("Dataset {} deaccessioned for version {}", dataset.pid, found.friendly_number()))
    };
    envelope::message(call.db().write(write).await?)
}

/// Returns the newest version that is released and not deaccessioned.
pub(crate) fn newest_released(view: &mut View<'_>, dataset: &Dataset) -> Result<Option<Numbered>, ApiError> {
    let all = version::newest_first(view, dataset)?;
    let released = all.iter().find(|it| it.state == State::Released);
    Ok(released.and_then(|it| {
        Some(Numbered { version: it.id, ordinal: it.ordinal, number: it.number?, minor: it.minor? })
    }))
}
