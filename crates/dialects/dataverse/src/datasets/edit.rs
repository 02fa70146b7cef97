//! Changing the draft of a dataset: metadata, terms, notes (section 5.1 of the contract).

use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value};

use crate::app::Call;
use crate::asker::Asker;
use crate::blocks::fields::Reading;
use crate::blocks::{Fields, Registry, edit};
use crate::datasets::show::{self, Showing};
use crate::datasets::wanted::Wanted;
use crate::datasets::{self, Dataset, Version, draft, schema, terms, version};
use crate::error::{Answer, ApiError};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{changes, clock, collections, envelope, licenses, permissions};

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .put("/datasets/{id}/versions/{version}", replace_draft)
        .put("/datasets/{id}/editMetadata", edit_metadata)
        .put("/datasets/{id}/deleteMetadata", delete_metadata)
        .put("/datasets/{id}/access", set_access)
        .put("/datasets/{id}/license", set_license)
        .get("/datasets/{id}/versions/{version}/versionNote", show_note)
        .put("/datasets/{id}/versions/{version}/versionNote", set_note)
        .delete("/datasets/{id}/versions/{version}/versionNote", delete_note)
        .put("/datasets/{id}/citationdate", set_citation_date)
        .delete("/datasets/{id}/citationdate", clear_citation_date)
}

/// Checks that no lock forbids changes. `Ingest` locks do not forbid uploads, which do not call this function.
pub(crate) fn check_locks(asker: &Asker, dataset: &Dataset) -> Result<(), ApiError> {
    let holds = |it: &datasets::Lock| match it.lock_type.as_str() {
        // Curators may change a dataset in review; `check_review` checks the permission.
        "InReview" => false,
        "Workflow" => !asker.is_superuser(),
        _ => true,
    };
    if dataset.locks.iter().any(holds) {
        return Err(ApiError::forbidden("Dataset cannot be edited due to dataset lock."));
    }
    Ok(())
}

/// Checks that the caller may publish the dataset if it is in review. Errors: 403.
fn check_review(view: &mut View<'_>, asker: &Asker, dataset: &Dataset) -> Result<(), ApiError> {
    let is_in_review = dataset.locks.iter().any(|it| it.lock_type == "InReview");
    if is_in_review && !permissions::may(view, asker, dataset.place(), Permission::PublishDataset)? {
        return Err(ApiError::forbidden("Dataset cannot be edited due to In Review dataset lock."));
    }
    Ok(())
}

/// Checks both the locks and the review. Errors: 403.
pub(crate) fn check_changeable(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
) -> Result<(), ApiError> {
    check_locks(asker, dataset)?;
    check_review(view, asker, dataset)
}

/// Returns the dataset of a request, after checking that the caller may edit it now.
pub(crate) fn editable(view: &mut View<'_>, asker: &Asker, wanted: &Wanted) -> Result<Dataset, ApiError> {
    let dataset = wanted.find(view)?;
    permissions::require(view, asker, dataset.place(), Permission::EditDataset)?;
    check_locks(asker, &dataset)?;
    check_review(view, asker, &dataset)?;
    Ok(dataset)
}

/// Changes the draft with `change`, and returns the result of `render`, which reads after the change is stored: no other
/// writer waits while the files of a large dataset are described.
pub(crate) async fn changed<R: Send + 'static>(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Dataset, &mut Version) -> Result<(), ApiError> + Send + 'static,
    mut render: impl FnMut(&mut View<'_>, &Dataset, &Version) -> Result<R, ApiError> + Send + 'static,
) -> Result<R, ApiError> {
    let (app, asker, wanted, ids) =
        (call.app.clone(), call.asker.clone(), Wanted::of(call)?, call.ids(1).await?);
    let expected = call.query.filled("sourceLastUpdateTime").map(str::to_owned);
    let write = move |txn: &mut Txn<'_>| -> Result<(Dataset, Version), ApiError> {
        let (mut ids, now) = (ids, app.now());
        let mut dataset = editable(txn, &asker, &wanted)?;
        check_source_time(txn, &dataset, expected.as_deref())?;
        let mut draft = draft::open_draft(txn, &now, &mut dataset, &mut ids)?;
        change(txn, &mut dataset, &mut draft)?;
        draft.note_contributor(&asker);
        datasets::put(txn, &dataset)?;
        version::put(txn, &draft)?;
        changes::dataset(txn, &app, dataset.id)?;
        Ok((dataset, draft))
    };
    let (dataset, draft) = call.db().write(write).await?;
    call.db().read(Weight::Scan, move |view| render(view, &dataset, &draft)).await
}

/// Refuses a change that is based on an outdated state.
///
/// Errors: 400 for a time that is invalid or outdated.
pub(crate) fn check_source_time(
    view: &mut View<'_>,
    dataset: &Dataset,
    expected: Option<&str>,
) -> Result<(), ApiError> {
    let Some(expected) = expected else { return Ok(()) };
    let unreadable = || ApiError::bad_request(format!("Error parsing date: {expected}"));
    let given = clock::parse(expected).ok_or_else(unreadable)?;
    let current = match (&dataset.draft, &dataset.last) {
        (Some(draft), _) => draft.last_update_time.clone(),
        (None, Some(last)) => version::of_dataset(view, dataset, last.version)?.last_update_time,
        (None, None) => return Ok(()),
    };
    if clock::parse(&current).is_some_and(|it| given < it) {
        return Err(ApiError::bad_request(format!("Internal version timestamp {expected} is outdated")));
    }
    Ok(())
}

/// Returns the draft as JSON for answers to changes.
pub(crate) fn rendered(view: &mut View<'_>, dataset: &Dataset, draft: &Version) -> Result<Value, ApiError> {
    show::version_json(view, dataset, draft, Showing::default())
}

pub(crate) fn put_fields(
    txn: &mut Txn<'_>,
    registry: &Registry,
    dataset: &Dataset,
    draft: &mut Version,
    fields: &Fields,
) -> Result<(), ApiError> {
    let collection = collections::named_by_record(txn, dataset.owner)?;
    schema::check_fields(txn, registry, &collection, fields)?;
    if let Value::Object(blocks) = fields.to_json(registry) {
        draft.metadata_blocks = blocks;
    }
    Ok(())
}

/// `PUT versions/:draft`: replaces all metadata and terms by those of the body.
async fn replace_draft(mut call: Call) -> Answer {
    if call.param("version") != ":draft" {
        return Err(ApiError::bad_request("Only the :draft version can be updated"));
    }
    let body = call.object().await?;
    if body.get("files").and_then(Value::as_array).is_some_and(|it| !it.is_empty()) {
        return Err(ApiError::bad_request("You may not add files via this api."));
    }
    let registry = call.app.registry(call.db()).await?;
    let absent = Value::Null;
    let fields = Fields::read(&registry, body.get("metadataBlocks").unwrap_or(&absent), Reading::Declared)
        .map_err(|text| ApiError::bad_request(format!("Error parsing dataset version: {text}")))?;
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        put_fields(txn, &registry, dataset, draft, &fields)?;
        terms::read(txn, draft, &body)?;
        if let Some(note) = body.get("versionNote").and_then(Value::as_str) {
            draft.version_note = Some(note.to_owned());
        }
        Ok(())
    };
    envelope::ok(changed(&call, change, rendered).await?)
}

/// `PUT editMetadata?replace=`.
async fn edit_metadata(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let parse = |text: String| ApiError::bad_request(format!("Error parsing dataset update: {text}"));
    let update = Fields::read_single(&registry, &body).map_err(parse)?;
    let replaces = call.query.is_true("replace");
    let named: Vec<usize> = names_of(&body).iter().filter_map(|it| registry.place(it)).collect();
    let emptied: Vec<usize> = named.into_iter().filter(|at| update.get(*at).is_none()).collect();
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        let mut fields = Fields::stored(&registry, &Value::Object(draft.metadata_blocks.clone()));
        check_emptied(txn, &registry, dataset, &emptied)?;
        if replaces {
            // A field that is given without a value is removed.
            emptied.iter().for_each(|at| fields.remove(*at));
            edit::replace(&registry, &mut fields, update.clone());
        } else {
            edit::add(&registry, &mut fields, update.clone());
        }
        put_fields(txn, &registry, dataset, draft, &fields)
    };
    envelope::ok(changed(&call, change, rendered).await?)
}

/// Refuses an update that empties required fields. Errors: 400 that names all of them.
fn check_emptied(
    view: &mut View<'_>,
    registry: &Registry,
    dataset: &Dataset,
    emptied: &[usize],
) -> Result<(), ApiError> {
    let collection = collections::named_by_record(view, dataset.owner)?;
    let (_, levels) = collections::structure::rules_of(view, registry, &collection)?;
    let mut faults = String::new();
    for ty in emptied.iter().map(|at| registry.at(*at)).filter(|it| levels.is_required(it)) {
        let what = match (ty.is_multiple, ty.is_controlled, ty.is_compound()) {
            (true, ..) => "multiple required",
            (_, true, _) => "controlled vocabulary required",
            (_, _, true) => "compound required",
            _ => "required",
        };
        faults.push_str(&format!("Empty {what} value for field: {} ", ty.title));
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Error parsing dataset update: {faults}")))
}

/// Returns the field names in a body of single fields.
fn names_of(body: &Value) -> Vec<String> {
    let list = body.get("fields").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![body.clone()]);
    list.iter().filter_map(|it| it["typeName"].as_str()).map(str::to_owned).collect()
}

/// `PUT deleteMetadata`: removes the values in the body, which must exist.
async fn delete_metadata(mut call: Call) -> Answer {
    let body = call.json().await?;
    let registry = call.app.registry(call.db()).await?;
    let parse = |text: String| ApiError::bad_request(format!("Error parsing dataset update: {text}"));
    let update = Fields::read_single(&registry, &body).map_err(parse)?;
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        let mut fields = Fields::stored(&registry, &Value::Object(draft.metadata_blocks.clone()));
        edit::delete(&registry, &mut fields, &update)
            .map_err(|text| ApiError::bad_request(format!("Delete metadata failed: {text}")))?;
        put_fields(txn, &registry, dataset, draft, &fields)
    };
    envelope::ok(changed(&call, change, rendered).await?)
}

/// `PUT access`: terms of access to restricted files.
async fn set_access(mut call: Call) -> Answer {
    let body = call.object().await?;
    let given = body.get("customTermsOfAccess").and_then(Value::as_object).cloned().unwrap_or(body);
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset, draft: &mut Version| {
        terms::put_texts(draft, &given, &terms::ACCESS);
        if let Some(asked) = given.get("fileAccessRequest").and_then(Value::as_bool) {
            draft.file_access_request = asked;
        }
        datasets::publish::check_access_terms(txn, dataset, draft)
    };
    envelope::ok(changed(&call, change, rendered).await?)
}

/// `PUT license`: a licence by name, or custom terms.
async fn set_license(mut call: Call) -> Answer {
    let body = call.object().await?;
    let name = body.get("name").and_then(Value::as_str).map(str::to_owned);
    let custom = body.get("customTerms").and_then(Value::as_object).cloned();
    if custom.is_none() && name.as_deref().unwrap_or_default().trim().is_empty() {
        return Err(ApiError::bad_request("License name cannot be empty."));
    }
    let change = move |txn: &mut Txn<'_>, _: &mut Dataset, draft: &mut Version| match (&custom, &name) {
        (Some(custom), _) => put_custom(txn, draft, custom),
        (None, name) => {
            let name = name.as_deref().unwrap_or_default();
            let missing = || ApiError::not_found(format!("License with name {name} not found."));
            let license = licenses::by_name(txn, name)?.ok_or_else(missing)?;
            if !license.active {
                return Err(ApiError::bad_request(format!(
                    "License {name} cannot be set because it is not active."
                )));
            }
            draft.license = Some(license.id);
            terms::CUSTOM.iter().for_each(|it| drop(draft.terms.remove(*it)));
            Ok(())
        }
    };
    changed(&call, change, |_, _, _| Ok(())).await?;
    envelope::message("Dataset license updated.")
}

fn put_custom(view: &mut View<'_>, draft: &mut Version, custom: &Map<String, Value>) -> Result<(), ApiError> {
    if !terms::allows_custom(view)? {
        return Err(ApiError::bad_request("Custom terms of use are not allowed on this server."));
    }
    if custom.get("termsOfUse").and_then(Value::as_str).unwrap_or_default().trim().is_empty() {
        return Err(ApiError::bad_request("Terms of use text should be provided in custom terms."));
    }
    draft.license = None;
    terms::put_texts(draft, custom, &terms::CUSTOM);
    Ok(())
}

async fn show_note(call: Call) -> Answer {
    let note = show::with_version(&call, Weight::Point, |_, _, _, version| Ok(version.version_note.clone()));
    match note.await? {
        Some(note) => envelope::message(note),
        None => Err(ApiError::not_found("No version note.")),
    }
}

/// Changes the note of a version. Editors may change that of the draft, publishers those of other versions.
async fn change_note(call: &Call, note: Option<String>) -> Result<(), ApiError> {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(call)?);
    let text = call.param("version").to_owned();
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        let mut found = version::find(txn, &asker, &dataset, &text, version::Withdrawn::Shown)?;
        let needed = match found.state {
            version::State::Draft => Permission::EditDataset,
            _ => Permission::PublishDataset,
        };
        permissions::require(txn, &asker, dataset.place(), needed)?;
        found.version_note.clone_from(&note);
        if let Some(draft) = dataset.draft.as_mut().filter(|it| it.version == found.id) {
            draft.internal += 1;
            draft.last_update_time = app.now();
        }
        datasets::put(txn, &dataset)?;
        version::put(txn, &found)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await
}

async fn set_note(mut call: Call) -> Answer {
    let text = call.text().await?;
    let note = match serde_json::from_str::<Value>(&text) {
        Ok(Value::String(note)) => note,
        Ok(Value::Object(map)) => {
            map.get("versionNote").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => text,
    };
    change_note(&call, Some(note.clone())).await?;
    envelope::message(note)
}

async fn delete_note(call: Call) -> Answer {
    change_note(&call, None).await?;
    envelope::message("Note deleted")
}

/// `PUT citationdate`: the body is the name of a date field.
async fn set_citation_date(mut call: Call) -> Answer {
    let name = call.text().await?;
    let registry = call.app.registry(call.db()).await?;
    let is_date = registry.field(&name).is_some_and(|it| it.kind == crate::blocks::FieldKind::Date);
    if !is_date {
        return Err(ApiError::bad_request(format!("Dataset Field Type Name {name} not found or no date.")));
    }
    change_citation_date(&call, Some(name.clone())).await?;
    envelope::message(format!("Citation Date for dataset set to {name}."))
}

async fn clear_citation_date(call: Call) -> Answer {
    change_citation_date(&call, None).await?;
    envelope::message("Citation Date for dataset set to default")
}

async fn change_citation_date(call: &Call, name: Option<String>) -> Result<(), ApiError> {
    let (app, asker, wanted) = (call.app.clone(), call.asker.clone(), Wanted::of(call)?);
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        dataset.citation_date_field.clone_from(&name);
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await
}
