//! A file being added to a dataset, before it has a number.

use std::sync::Arc;

use pinakes_blobs::Blob;
use serde_json::Value;

use super::described::Described;
use super::receive::{self, Received, Target};
use super::{types, unzip};
use crate::app::{Call, Dataverse};
use crate::error::ApiError;
use crate::files::findings::Found;

/// A file to be added; its bytes are already in the store of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Incoming {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) description: String,
    pub(crate) categories: Vec<String>,
    pub(crate) restricted: bool,
    pub(crate) content_type: String,
    pub(crate) storage_identifier: String,
    pub(crate) blob: Option<String>,
    pub(crate) size: u64,
    pub(crate) checksum_type: String,
    pub(crate) checksum: String,
    pub(crate) tags: Vec<String>,
    pub(crate) provenance: Option<String>,
    pub(crate) tab_ingest: bool,
    /// The file that it replaces, and the first file in that chain of replacements.
    pub(crate) replaces: Option<(i64, i64)>,
    /// Information from its header.
    pub(crate) header: Option<Arc<Found>>,
}

impl Incoming {
    pub(super) fn of(
        call: &Call,
        received: &Received,
        folder: &str,
        described: &Described,
        target: &Target,
    ) -> Self {
        let name = described.label.as_deref().filter(|_| folder.is_empty()).unwrap_or(&received.name);
        let content_type = types::detect(received.content_type.as_deref(), &received.name, &received.head);
        let within = described.directory.as_deref().unwrap_or_default();
        let directory =
            [within, folder].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("/");
        Self {
            name: unzip::clean_name(name),
            directory,
            description: described.description.clone().unwrap_or_default(),
            categories: described.categories.clone().unwrap_or_default(),
            restricted: described.restrict.unwrap_or(false),
            content_type,
            storage_identifier: new_storage_identifier(&call.app),
            blob: Some(received.blob.to_string()),
            size: received.blob.length,
            checksum_type: target.algorithm.name().to_owned(),
            checksum: received.checksum.clone(),
            tags: described.tags.clone().unwrap_or_default(),
            provenance: described.provenance.clone(),
            tab_ingest: described.tab_ingest,
            replaces: None,
            header: None,
        }
    }
}

/// Generates a storage identifier: `file1://18b3972213f-268a1f7a9e5d`.
pub(crate) fn new_storage_identifier(app: &Dataverse) -> String {
    let now_ms = app.now_ms();
    let random = app.context.entropy().uuid_at(now_ms).simple().to_string();
    format!("{}://{now_ms:x}-{}", app.settings.storage_driver, &random[random.len() - 12..])
}

/// Returns the files in the JSON of a whole version, without their bytes. Only superusers may send those.
///
/// Errors: 400 for a file without a name, and for a folder with characters that are not allowed in folders.
pub(crate) fn of_version_json(app: &Dataverse, list: Option<&Value>) -> Result<Vec<Incoming>, ApiError> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::bad_request("Error parsing Json: files should be an array.")),
    };
    let mut files = Vec::new();
    for (place, it) in list.iter().enumerate() {
        let map = it.as_object().cloned().unwrap_or_default();
        let described = Described::of(&map)?;
        let data = &it["dataFile"];
        let text = |name: &str| data[name].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let name = described.label.or_else(|| text("filename")).filter(|it| !it.trim().is_empty());
        let name = name.ok_or_else(|| {
            ApiError::bad_request(format!("Error parsing Json: files[{place}] has no label"))
        })?;
        let checksum = data["checksum"]["value"].as_str().map(str::to_owned);
        let checksum = checksum.or_else(|| text("md5")).unwrap_or_default();
        let kind = data["checksum"]["type"].as_str().unwrap_or("MD5").to_owned();
        files.push(Incoming {
            name: unzip::clean_name(&name),
            directory: described.directory.unwrap_or_default(),
            description: described.description.or_else(|| text("description")).unwrap_or_default(),
            categories: described.categories.unwrap_or_default(),
            restricted: it["restricted"] == true,
            content_type: text("contentType").unwrap_or_else(|| types::UNKNOWN.to_owned()),
            storage_identifier: text("storageIdentifier").unwrap_or_else(|| new_storage_identifier(app)),
            size: data["filesize"].as_u64().unwrap_or(0),
            checksum_type: kind,
            checksum,
            ..Incoming::default()
        });
    }
    Ok(files)
}

/// Parses a blob.
pub(crate) fn blob_of(text: &str) -> Result<Blob, ApiError> {
    text.parse().map_err(receive::store_fault)
}
