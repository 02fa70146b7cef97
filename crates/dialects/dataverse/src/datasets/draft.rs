//! The draft of a dataset, created on the first change.

use http::StatusCode;
use pinakes_store::Txn;

use crate::datasets::version::{self, Version};
use crate::datasets::{self, Dataset, Draft};
use crate::error::ApiError;
use crate::ids::Ids;

/// Checks that a dataset was not harvested, because harvested datasets cannot be edited here. Errors: 403.
fn refuse_harvested(dataset: &Dataset) -> Result<(), ApiError> {
    match dataset.harvested_by {
        Some(_) => Err(ApiError::forbidden("Harvested datasets cannot be edited.")),
        None => Ok(()),
    }
}

/// Returns the draft of a dataset; creates it as a copy of the newest version if there is none. The dataset is changed
/// but not stored: the caller must call [`datasets::put`], and [`version::put`] if it changes the version. Uses one
/// number.
pub(crate) fn open_draft(
    txn: &mut Txn<'_>,
    now: &str,
    dataset: &mut Dataset,
    ids: &mut Ids,
) -> Result<Version, ApiError> {
    refuse_harvested(dataset)?;
    if let Some(draft) = &mut dataset.draft {
        draft.internal += 1;
        draft.last_update_time = now.to_owned();
        let id = draft.version;
        return version::of_dataset(txn, dataset, id);
    }
    let last = dataset.last.as_ref().map(|it| it.version);
    let last = last.ok_or_else(|| ApiError::new(StatusCode::CONFLICT, "The dataset has no version."))?;
    let copied = version::of_dataset(txn, dataset, last)?;
    dataset.last_ordinal += 1;
    let draft = Draft {
        version: ids.next()?,
        ordinal: dataset.last_ordinal,
        internal: 1,
        last_update_time: now.to_owned(),
    };
    let version = copied.as_draft(&draft);
    dataset.draft = Some(draft);
    version::put(txn, &version)?;
    Ok(version)
}

/// Opens the draft for changes that do not affect metadata (files), and stores the dataset.
pub(crate) fn draft_for_edit(
    txn: &mut Txn<'_>,
    now: &str,
    dataset: &mut Dataset,
    ids: &mut Ids,
) -> Result<Draft, ApiError> {
    match &mut dataset.draft {
        Some(draft) => {
            draft.internal += 1;
            draft.last_update_time = now.to_owned();
        }
        None => {
            open_draft(txn, now, dataset, ids)?;
        }
    }
    datasets::put(txn, dataset)?;
    dataset.draft.clone().ok_or_else(|| ApiError::internal("The draft is gone."))
}
