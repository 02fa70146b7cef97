//! The draft for a change of files.

use pinakes_store::{Txn, View};

use crate::app::Dataverse;
use crate::asker::Asker;
use crate::datasets::{self, Dataset, Draft, draft, version};
use crate::error::ApiError;
use crate::grants::Permission;
use crate::ids::Ids;
use crate::permissions;

/// Opens the draft of a dataset whose files the caller is about to change, and records the caller as a contributor. A new
/// draft is added to the search index.
pub(crate) fn open_draft(
    txn: &mut Txn<'_>,
    app: &Dataverse,
    asker: &Asker,
    now: &str,
    dataset: &mut Dataset,
    ids: &mut Ids,
) -> Result<Draft, ApiError> {
    let is_new = dataset.draft.is_none();
    let draft = draft::draft_for_edit(txn, now, dataset, ids)?;
    if is_new {
        crate::changes::dataset(txn, app, dataset.id)?;
    }
    let mut version = version::of_dataset(txn, dataset, draft.version)?;
    if version.note_contributor(asker) {
        version::put(txn, &version)?;
    }
    Ok(draft)
}

/// Checks that the caller may change the files of a dataset.
///
/// Errors: 403 without the permission or because of a lock; 400 because of a review.
pub(crate) fn require_edit(view: &mut View<'_>, asker: &Asker, dataset: &Dataset) -> Result<(), ApiError> {
    let held = permissions::held(view, asker, dataset.place())?;
    if !held.contains(&Permission::EditDataset) {
        return Err(ApiError::forbidden("You do not have permission to edit this dataset."));
    }
    let is_curator = held.contains(&Permission::PublishDataset);
    let forbids = |it: &datasets::Lock| match it.lock_type.as_str() {
        "Ingest" => false,
        "InReview" => !is_curator,
        _ => true,
    };
    if dataset.locks.iter().any(forbids) {
        let is_in_review = dataset.locks.iter().any(|it| it.lock_type == "InReview");
        return Err(match is_in_review {
            true => ApiError::bad_request("Failed to add file to dataset."),
            false => ApiError::forbidden("Dataset cannot be edited due to dataset lock."),
        });
    }
    Ok(())
}
