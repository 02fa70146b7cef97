//! Files of datasets: what datasets and collections ask of them.

use pinakes_store::{Txn, View};
use serde_json::Value;

use crate::error::ApiError;

/// A draft is dropped: what changed in it is undone.
pub(crate) fn discard_draft(_txn: &mut Txn<'_>, _dataset: i64, _ordinal: i64) -> Result<(), ApiError> {
    Ok(())
}

/// A dataset goes away with all its files.
pub(crate) fn remove_all(_txn: &mut Txn<'_>, _dataset: i64) -> Result<(), ApiError> {
    Ok(())
}

/// The files of a version, as `files` of a version has them.
pub(crate) fn list_json(_view: &mut View<'_>, _dataset: i64, _ordinal: i64) -> Result<Vec<Value>, ApiError> {
    Ok(Vec::new())
}

/// How many files a version has.
pub(crate) fn n_files(_view: &mut View<'_>, _dataset: i64, _ordinal: i64) -> Result<u64, ApiError> {
    Ok(0)
}

/// Whether files were added, removed or replaced in the version of that ordinal.
pub(crate) fn changed(_view: &mut View<'_>, _dataset: i64, _ordinal: i64) -> Result<bool, ApiError> {
    Ok(false)
}

/// Whether a version has restricted files.
pub(crate) fn has_restricted(_view: &mut View<'_>, _dataset: i64, _ordinal: i64) -> Result<bool, ApiError> {
    Ok(false)
}

/// A version is released: files that were never published are from now on.
pub(crate) fn published(
    _txn: &mut Txn<'_>,
    _dataset: i64,
    _ordinal: i64,
    _now: &str,
) -> Result<(), ApiError> {
    Ok(())
}

/// Bytes of all files of a dataset.
pub(crate) fn used_bytes(_view: &mut View<'_>, _dataset: i64) -> Result<u64, ApiError> {
    Ok(0)
}

/// A draft takes the place of the release before it: what it changed belongs to that ordinal.
pub(crate) fn merge_draft(
    _txn: &mut Txn<'_>,
    _dataset: i64,
    _current: i64,
    _draft: i64,
) -> Result<(), ApiError> {
    Ok(())
}
