//! Limits of a dataset: size of uploads, number of files, quotas.

use pinakes_store::{View, Weight};
use serde_json::Value;

use super::incoming::Incoming;
use super::unzip;
use crate::amounts::size_text;
use crate::app::Call;
use crate::asker::Asker;
use crate::collections::{self, Collection};
use crate::datasets::{self, Dataset, show};
use crate::error::ApiError;
use crate::files::checksum::Algorithm;
use crate::site_settings;

/// Limits for an upload into a dataset.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) algorithm: Algorithm,
    pub(crate) most_bytes: Option<u64>,
    pub(crate) zip_entries: usize,
    pub(crate) pids: bool,
}

impl Bounds {
    /// Reads the limits. Errors: 503 if the site takes files in other ways only.
    pub(crate) fn of(view: &mut View<'_>, collection: &Collection) -> Result<Self, ApiError> {
        require_http(view)?;
        let algorithm = site_settings::get(view, ":FileFixityChecksumAlgorithm")?.unwrap_or_default();
        let most_bytes = site_settings::get(view, ":MaxFileUploadSizeInBytes")?;
        let most_bytes = most_bytes.and_then(|text| {
            let json: Option<Value> = serde_json::from_str(&text).ok();
            let number = |it: &Value| it.as_u64().or_else(|| it.as_str()?.parse().ok());
            json.and_then(|json| number(&json).or_else(|| number(&json["default"])))
        });
        let zip_entries = site_settings::get(view, ":ZipUploadFilesLimit")?;
        let zip_entries = zip_entries.and_then(|it| it.trim().parse().ok()).unwrap_or(unzip::ENTRIES);
        let pids = site_settings::is_true(view, ":FilePIDsEnabled", false)?;
        let pids = collection.file_pids_enabled.unwrap_or(pids);
        Ok(Self { algorithm: Algorithm::named(&algorithm), most_bytes, zip_entries, pids })
    }
}

/// Ways to upload files that this server has, as the setting `:UploadMethods` names them.
const METHODS: [&str; 3] = ["native/http", "direct", "dvwebloader"];

/// Checks that the site takes files over HTTP: `:UploadMethods` is not set, or names a way that this server has.
/// Errors: 503.
fn require_http(view: &mut View<'_>) -> Result<(), ApiError> {
    let methods = site_settings::get(view, ":UploadMethods")?.unwrap_or_default();
    let has_any = |it: &str| METHODS.iter().any(|method| method.eq_ignore_ascii_case(it.trim()));
    if methods.trim().is_empty() || methods.split(',').any(has_any) {
        return Ok(());
    }
    Err(ApiError::new(
        http::StatusCode::SERVICE_UNAVAILABLE,
        "File upload via HTTP is not available for this installation of Dataverse.",
    ))
}

/// Checks the limits, with the bytes that the quotas leave ([`left`]). Errors: 400 if the dataset may hold no more files, or
/// a quota is exceeded.
pub(crate) fn check(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    list: &[Incoming],
    left: Option<u64>,
) -> Result<(), ApiError> {
    check_count(view, asker, dataset, list.iter().filter(|it| it.replaces.is_none()).count() as u64)?;
    let n_bytes: u64 = list.iter().map(|it| it.size).sum();
    match left.filter(|left| *left < n_bytes) {
        None => Ok(()),
        Some(left) => Err(ApiError::bad_request(format!(
            "There was an error when trying to add the new file. This file (size {}) exceeds the remaining storage \
             quota of {}.",
            size_text(n_bytes),
            size_text(left)
        ))),
    }
}

/// Returns the bytes that the quotas leave for a dataset; `None` without quotas. Read before the upload is stored, so that
/// the store's only writer adds up no files: uploads that are stored at once may together exceed a quota.
pub(crate) async fn left(call: &Call, dataset: i64) -> Result<Option<u64>, ApiError> {
    let read = move |view: &mut View<'_>| -> Result<Option<u64>, ApiError> {
        if !site_settings::is_true(view, ":UseStorageQuotas", false)? {
            return Ok(None);
        }
        match datasets::by_id(view, dataset)? {
            Some(dataset) => bytes_left(view, &dataset),
            None => Ok(None),
        }
    };
    call.db().read(Weight::Scan, read).await
}

/// Checks the number of files. Errors: 400 if the dataset may not hold so many more.
pub(crate) fn check_count(
    view: &mut View<'_>,
    asker: &Asker,
    dataset: &Dataset,
    n_new: u64,
) -> Result<(), ApiError> {
    if asker.is_superuser() || n_new == 0 {
        return Ok(());
    }
    let most = show::effective_limit(view, dataset)?.and_then(|it| u64::try_from(it).ok());
    let Some(most) = most.filter(|it| 0 < *it) else { return Ok(()) };
    let ordinal = dataset.draft.as_ref().map_or(dataset.last_ordinal, |it| it.ordinal);
    if most < super::n_files(view, dataset.id, ordinal)? + n_new {
        return Err(ApiError::bad_request(format!(
            "Number of files can not exceed the maximum number of files allowed for this Dataset ({most})."
        )));
    }
    Ok(())
}

/// Returns the bytes left by the quotas of a dataset and of all collections above it; `None` without quotas.
pub(crate) fn bytes_left(view: &mut View<'_>, dataset: &Dataset) -> Result<Option<u64>, ApiError> {
    let room = |quota: i64, used: u64| u64::try_from(quota).unwrap_or(0).saturating_sub(used);
    let mut left = match dataset.quota_bytes {
        Some(quota) => Some(room(quota, super::used_bytes(view, dataset.id)?)),
        None => None,
    };
    let owner = collections::named_by_record(view, dataset.owner)?;
    for collection in collections::with_owners(view, owner)? {
        if let Some(quota) = collection.quota_bytes {
            let here = room(quota, collections::storage::used_bytes(view, &collection)?);
            left = Some(left.map_or(here, |it| it.min(here)));
        }
    }
    Ok(left)
}
