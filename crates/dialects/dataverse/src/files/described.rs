//! The description of an added file in a request: the part `jsonData` (section 6.1 of the contract).

use serde_json::{Map, Value};

use super::unzip;
use crate::error::ApiError;

const BAD_DIRECTORY: &str = "Directory Name cannot contain invalid characters. Valid characters are a-Z, 0-9, '_', '-', '.', \
                             '\\', '/' and ' ' (white space).";
/// Tags allowed for tables.
pub(crate) const TAGS: [&str; 9] = [
    "Survey",
    "Time Series",
    "Panel",
    "Event",
    "Genomics",
    "Network",
    "Geospatial",
    "Simulation",
    "Qualitative",
];

/// The description of a file in a request: the part `jsonData`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) label: Option<String>,
    pub(crate) directory: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) categories: Option<Vec<String>>,
    pub(crate) restrict: Option<bool>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) provenance: Option<String>,
    pub(crate) tab_ingest: bool,
    pub(crate) force_replace: bool,
    pub(crate) file_to_replace: Option<i64>,
    /// For direct uploads.
    pub(crate) storage_identifier: Option<String>,
    pub(crate) file_name: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) checksum: Option<(String, String)>,
    pub(crate) size: Option<u64>,
}

impl Described {
    /// Parses the JSON text of a form; an absent text gives an empty description.
    ///
    /// Errors: 400 for text that is not an object, and for a folder with characters that are not allowed in folders.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, ApiError> {
        let text = text.map(str::trim).filter(|it| !it.is_empty());
        let Some(text) = text else { return Ok(Self { tab_ingest: true, ..Self::default() }) };
        let parsed: Option<Map<String, Value>> = serde_json::from_str(text).ok();
        let map = parsed.ok_or_else(|| ApiError::bad_request("Error in parsing provided json"))?;
        Self::of(&map)
    }

    /// Parses an object.
    pub(crate) fn of(map: &Map<String, Value>) -> Result<Self, ApiError> {
        let text = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| match map.get(name) {
            Some(Value::Bool(it)) => Some(*it),
            Some(Value::String(it)) => Some(it.eq_ignore_ascii_case("true")),
            _ => None,
        };
        let list = |name: &str| {
            let names = map.get(name)?.as_array()?.iter();
            let mut kept: Vec<String> = Vec::new();
            for name in names.filter_map(|it| it.as_str().or_else(|| it["name"].as_str())) {
                if !name.trim().is_empty() && !kept.iter().any(|it| it == name) {
                    kept.push(name.trim().to_owned());
                }
            }
            Some(kept)
        };
        let checksum = map
            .get("checksum")
            .and_then(|it| Some((it["@type"].as_str()?.to_owned(), it["@value"].as_str()?.to_owned())));
        let md5 = text("md5Hash").map(|it| ("MD5".to_owned(), it));
        Ok(Self {
            label: text("label"),
            directory: text("directoryLabel").map(|it| directory(&it)).transpose()?,
            description: text("description"),
            categories: list("categories"),
            restrict: flag("restrict"),
            tags: list("dataFileTags"),
            provenance: text("provFreeForm"),
            tab_ingest: flag("tabIngest").unwrap_or(true),
            force_replace: flag("forceReplace").unwrap_or(false),
            file_to_replace: map.get("fileToReplaceId").and_then(Value::as_i64),
            storage_identifier: text("storageIdentifier"),
            file_name: text("fileName"),
            mime_type: text("mimeType"),
            checksum: checksum.or(md5),
            size: map.get("fileSize").and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok())),
        })
    }
}

/// Returns a folder's name without leading and trailing separators. Errors: 400 for characters that are not allowed.
pub(crate) fn directory(text: &str) -> Result<String, ApiError> {
    let text = text.trim_matches(|it: char| matches!(it, '/' | '\\' | ' ' | '.' | '-'));
    let is_plain = text.chars().all(unzip::is_folder_character);
    let climbs = text.split(['/', '\\']).any(|it| it == "..");
    if !is_plain || climbs {
        return Err(ApiError::bad_request(BAD_DIRECTORY));
    }
    let steps: Vec<&str> = text.split(['/', '\\']).filter(|it| !it.is_empty()).collect();
    Ok(steps.join("/"))
}
