//! Files as JSON (section 6.1 of the contract).

use pinakes_store::View;
use serde_json::{Map, Value, json};

use super::kinds::{DataFile, Row};
use super::types;
use crate::clock;
use crate::datasets::{self, Dataset, State, Version, version};
use crate::error::ApiError;

/// Information about its dataset that a file's JSON needs.
pub(crate) struct Around {
    /// The version that is shown.
    pub(crate) version: Version,
    /// (ordinal, date) of each publication, oldest first.
    published: Vec<(i64, String)>,
}

impl Around {
    /// Reads it for the version with that ordinal.
    pub(crate) fn of(view: &mut View<'_>, dataset: &Dataset, ordinal: i64) -> Result<Self, ApiError> {
        let all = version::newest_first(view, dataset)?;
        let version = all.iter().find(|it| it.ordinal == ordinal).ok_or_else(|| {
            ApiError::not_found(format!("Dataset version {ordinal} of dataset {} not found", dataset.id))
        })?;
        Ok(Self::among(&all, version))
    }

    /// Returns it for one of all versions of a dataset, which are given with the newest first.
    pub(crate) fn among(all: &[Version], version: &Version) -> Self {
        Self { version: version.clone(), published: publications(all) }
    }

    /// Reads it for a version that is already in memory.
    pub(crate) fn with(view: &mut View<'_>, dataset: &Dataset, version: Version) -> Result<Self, ApiError> {
        if !dataset.was_released() {
            return Ok(Self { version, published: Vec::new() });
        }
        Ok(Self { version: version.clone(), ..Self::of(view, dataset, version.ordinal)? })
    }

    /// Returns the date on which a file was first published, or the end of its embargo if that is later.
    pub(crate) fn publication_date<'a>(&'a self, file: &'a DataFile) -> Option<&'a str> {
        let published = self.published.iter().find(|it| file.first <= it.0).map(|it| it.1.as_str())?;
        let embargo = file.embargo.as_ref().map(|it| it.date.as_str());
        Some(embargo.map_or(published, |it| it.max(published)))
    }
}

/// Returns the ordinal and the date of each publication, the oldest first, of versions of which the newest is first.
pub(crate) fn publications(newest_first: &[Version]) -> Vec<(i64, String)> {
    let published = newest_first.iter().rev().filter(|it| it.state != State::Draft);
    published.filter_map(|it| Some((it.ordinal, it.release_time.as_deref()?.get(..10)?.to_owned()))).collect()
}

/// Returns the display name of the original format of a table, from its media type.
fn original_label(content_type: &str) -> &str {
    types::friendly(content_type)
}

/// Returns a file in a version as JSON.
pub(crate) fn file_json(row: &Row, file: &DataFile, around: &Around) -> Value {
    let mut data = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            data.insert(name.to_owned(), value);
        }
    };
    put("id", file.id.into());
    put("persistentId", file.pid.as_deref().unwrap_or_default().into());
    if let Some(pid) = &file.pid {
        put("pidURL", format!("https://doi.org/{}", pid.trim_start_matches("doi:")).into());
    }
    put("filename", row.label.as_str().into());
    put("contentType", file.content_type.as_str().into());
    put("friendlyType", types::friendly(&file.content_type).into());
    put("filesize", file.size.into());
    put("description", row.description.as_str().into());
    if !row.categories.is_empty() {
        put("categories", row.categories.clone().into());
    }
    if let Some(embargo) = &file.embargo {
        put("embargo", json!({"dateAvailable": embargo.date, "reason": embargo.reason}));
    }
    if let Some(retention) = &file.retention {
        put("retention", json!({"dateUnavailable": retention.date, "reason": retention.reason}));
    }
    put("storageIdentifier", file.storage_identifier.as_str().into());
    if let Some(original) = &file.original {
        put("originalFileFormat", original.content_type.as_str().into());
        put("originalFormatLabel", original_label(&original.content_type).into());
        put("originalFileSize", original.size.into());
        put("originalFileName", original.name.as_str().into());
    }
    put("UNF", file.unf.clone().into());
    put("rootDataFileId", file.root.unwrap_or(-1).into());
    put("previousDataFileId", file.previous.into());
    if file.checksum_type == "MD5" {
        put("md5", file.checksum.as_str().into());
    }
    put("checksum", json!({"type": file.checksum_type, "value": file.checksum}));
    put("tabularData", file.original.is_some().into());
    if !file.tags.is_empty() {
        put("tabularTags", file.tags.clone().into());
    }
    put("creationDate", clock::date(file.created_ms).into());
    put("publicationDate", around.publication_date(file).into());
    if !row.directory.is_empty() {
        put("directoryLabel", row.directory.as_str().into());
    }
    put("lastUpdateTime", around.version.last_update_time.as_str().into());
    put("fileAccessRequest", around.version.file_access_request.into());
    let mut json = Map::new();
    json.insert("description".into(), row.description.as_str().into());
    json.insert("label".into(), row.label.as_str().into());
    json.insert("restricted".into(), row.restricted.into());
    if !row.directory.is_empty() {
        json.insert("directoryLabel".into(), row.directory.as_str().into());
    }
    json.insert("version".into(), row.since.into());
    json.insert("datasetVersionId".into(), around.version.id.into());
    if !row.categories.is_empty() {
        json.insert("categories".into(), row.categories.clone().into());
    }
    json.insert("dataFile".into(), data.into());
    json.into()
}

/// Returns the dataset that contains a file.
pub(crate) fn dataset_of(view: &mut View<'_>, file: &DataFile) -> Result<Dataset, ApiError> {
    datasets::by_id(view, file.dataset)?
        .ok_or_else(|| ApiError::not_found(format!("Dataset with ID {} not found.", file.dataset)))
}
