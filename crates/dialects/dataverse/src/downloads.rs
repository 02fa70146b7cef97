//! Guestbooks at downloads: who must sign one, and what is entered.

use pinakes_store::{Txn, View};
use serde_json::Value;

use crate::asker::Asker;
use crate::datasets::Dataset;
use crate::error::ApiError;
use crate::files::DataFile;

/// The guestbook that a caller must sign before it may download files of a dataset.
pub(crate) fn demanded(
    _view: &mut View<'_>,
    _dataset: &Dataset,
    _asker: &Asker,
) -> Result<Option<i64>, ApiError> {
    Ok(None)
}

/// Enters a download of a file.
pub(crate) fn note(_: &mut Txn<'_>, _: i64, _: &str, _: &Asker, _: &DataFile) -> Result<(), ApiError> {
    Ok(())
}

/// Enters what a caller says of itself. Errors: 400 when the guestbook asks for more.
pub(crate) fn sign(
    _: &mut Txn<'_>,
    _: i64,
    _: &str,
    _: &Asker,
    _: &DataFile,
    _: &Value,
) -> Result<(), ApiError> {
    Ok(())
}
