//! Direct uploads to signed URLs: the client sends the bytes in one or several parts, then refers to them by their
//! storage identifier (section 6.4 of the contract).
//!
//! The bytes go into the server's own store of files, whatever its type. Each URL is authorised by a signature over its
//! path and expiry, so whoever holds it needs no token. Uploads that no file ever refers to are swept.

use futures_util::TryStreamExt as _;
use pinakes_blobs::Blob;
use pinakes_store::{Txn, View, Weight};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::described::Described;
use super::incoming::{Incoming, new_storage_identifier};
use super::kinds::BEGUN;
use super::receive::{self, Target};
use super::{types, unzip};
use crate::app::Call;
use crate::datasets::Dataset;
use crate::datasets::wanted::Wanted;
use crate::error::{Answer, ApiError};
use crate::files::checksum::{Algorithm, Checksum};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{envelope, permissions, signing, site_settings, stored};

/// Size of a part in a multipart upload, in bytes.
const PART_BYTES: u64 = 1 << 30;
/// Maximum number of parts of an upload.
const PARTS: u64 = 10_000;
/// Validity of the URLs, in minutes.
const MINUTES: i64 = 60;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/uploadurls", urls)
        .put("/datasets/directupload/{key}/{part}", take)
        .put("/datasets/mpupload", complete)
        .delete("/datasets/mpupload", abort)
}

/// An upload that was started.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Begun {
    /// `file1://…`.
    pub storage_identifier: String,
    /// The dataset for which it was started.
    pub dataset: i64,
    /// The user who started it.
    pub user: i64,
    /// Whether it may have several parts.
    pub is_multipart: bool,
    /// Parts received so far, ordered by number.
    pub parts: Vec<Part>,
}

/// A received part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its number from 1.
    pub number: u64,
    /// Its blob.
    pub blob: String,
    /// Its checksum.
    pub checksum: String,
    /// Its first bytes, in hexadecimal digits.
    pub head: String,
}

/// Returns the key of an upload's record: the storage identifier after `://`.
fn key_of(storage_identifier: &str) -> &str {
    storage_identifier.split_once("://").map_or(storage_identifier, |it| it.1)
}

/// Returns whether direct upload is enabled by the setting `:UploadMethods`.
fn is_on(view: &mut View<'_>) -> Result<bool, ApiError> {
    let methods = site_settings::get(view, ":UploadMethods")?.unwrap_or_default();
    Ok(methods.split(',').any(|it| it.trim() == "dvwebloader" || it.trim() == "direct"))
}

/// Removes the record of an upload that a file now refers to.
pub(crate) fn taken(txn: &mut Txn<'_>, storage_identifier: &str) -> Result<(), ApiError> {
    txn.delete(&BEGUN, key_of(storage_identifier))?;
    Ok(())
}

async fn urls(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let size = call.query.number("size")?.unwrap_or(0);
    let size = u64::try_from(size).map_err(|_| ApiError::bad_request("The size is negative."))?;
    let asker = call.asker.clone();
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        if !permissions::may(view, &asker, dataset.place(), Permission::EditDataset)? {
            return Err(permissions::refusal(&asker));
        }
        Ok::<_, ApiError>((is_on(view)?, dataset))
    };
    let (is_on, dataset) = call.db().read(Weight::Point, read).await?;
    if !is_on {
        let text = format!("Direct upload not supported for files in this dataset: {}", dataset.id);
        return Err(ApiError::not_found(text));
    }
    let most = call.app.context.blobs().settings().file_bytes;
    if most < size || PARTS * PART_BYTES < size {
        return Err(ApiError::bad_request(format!(
            "The size of the file is over the limit of {most} bytes."
        )));
    }
    let user = call.asker.user()?.clone();
    let storage_identifier = new_storage_identifier(&call.app);
    let key = key_of(&storage_identifier).to_owned();
    let is_multipart = PART_BYTES < size;
    let begun = Begun {
        storage_identifier: storage_identifier.clone(),
        dataset: dataset.id,
        user: user.id,
        is_multipart,
        parts: Vec::new(),
    };
    let id = key.clone();
    call.db().write(move |txn: &mut Txn<'_>| stored::insert(txn, &BEGUN, &id, &begun)).await?;
    let sign = |part: u64| {
        let url = format!("{}/api/datasets/directupload/{key}/{part}", call.site_url());
        signing::sign(&call, &url, "PUT", &user.name, MINUTES)
    };
    if !is_multipart {
        return envelope::ok(json!({
            "url": sign(1),
            "partSize": PART_BYTES,
            "storageIdentifier": storage_identifier,
        }));
    }
    let parts: Map<String, Value> =
        (1..=size.div_ceil(PART_BYTES)).map(|part| (part.to_string(), sign(part).into())).collect();
    let path = format!(
        "/api/datasets/mpupload?globalid={}&uploadid={key}&storageidentifier={storage_identifier}",
        dataset.pid
    );
    envelope::ok(json!({
        "urls": parts,
        "abort": path,
        "complete": path,
        "partSize": PART_BYTES,
        "storageIdentifier": storage_identifier,
    }))
}

async fn find(call: &Call, key: &str) -> Result<Begun, ApiError> {
    let id = key.to_owned();
    let found = call.db().read(Weight::Point, move |view| stored::get::<Begun>(view, &BEGUN, &id)).await?;
    found.ok_or_else(|| ApiError::not_found(format!("There is no upload {key}.")))
}

/// Receives a part: the request is authorised by its signed URL alone.
async fn take(mut call: Call) -> Answer {
    if !call.asker.is_signed {
        return Err(ApiError::unauthorized("Bad signed URL"));
    }
    let key = call.param("key").to_owned();
    let number: u64 = call
        .param("part")
        .parse()
        .map_err(|_| ApiError::bad_request("The number of the part is no number."))?;
    let begun = find(&call, &key).await?;
    if number == 0 || PARTS < number || (1 < number && !begun.is_multipart) {
        return Err(ApiError::bad_request(format!("The upload has no part {number}.")));
    }
    let target = Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: Algorithm::Md5,
        most_bytes: Some(PART_BYTES),
    };
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let pieces = receive::pieces(&call.headers, body, &limits, PART_BYTES)?;
    let received = receive::whole(pieces.map_err(|it| it), &target, String::new(), None).await?;
    let checksum = received.checksum.clone();
    let head = received.head.iter().map(|it| format!("{it:02x}")).collect();
    let part = Part { number, blob: received.blob.to_string(), checksum: checksum.clone(), head };
    let write = move |txn: &mut Txn<'_>| {
        let mut begun: Begun = stored::get(txn, &BEGUN, &key)?
            .ok_or_else(|| ApiError::not_found(format!("There is no upload {key}.")))?;
        begun.parts.retain(|it| it.number != number);
        begun.parts.push(part.clone());
        begun.parts.sort_by_key(|it| it.number);
        stored::put(txn, &BEGUN, &key, &begun)
    };
    call.db().write(write).await?;
    let response = pinakes_http::answer::empty(http::StatusCode::OK);
    Ok(pinakes_http::answer::with_header(response, http::header::ETAG, &format!("\"{checksum}\"")))
}

/// Returns the upload that the parameters name, after checking that the caller started it.
async fn named(call: &Call) -> Result<(String, Begun), ApiError> {
    let identifier = call.query.get("storageidentifier").unwrap_or_default();
    let key = key_of(identifier).to_owned();
    let begun = find(call, &key).await?;
    let user = call.asker.user()?;
    if user.id != begun.user && !call.asker.is_superuser() {
        return Err(permissions::refusal(&call.asker));
    }
    Ok((key, begun))
}

async fn complete(mut call: Call) -> Answer {
    let (key, begun) = named(&call).await?;
    let given = call.object().await?;
    for (number, etag) in &given {
        let wanted = etag.as_str().unwrap_or_default().trim_matches('"');
        let is_there = begun.parts.iter().any(|it| it.number.to_string() == *number && it.checksum == wanted);
        if !is_there {
            return Err(ApiError::bad_request(format!("Part {number} with the ETag {wanted} did not come.")));
        }
    }
    if given.len() != begun.parts.len() {
        let (found, given) = (begun.parts.len(), given.len());
        return Err(ApiError::bad_request(format!("{found} parts came, {given} are named.")));
    }
    let whole = joined(&call, &begun).await?;
    let write = move |txn: &mut Txn<'_>| {
        let parts = vec![whole.clone()];
        stored::put(txn, &BEGUN, &key, &Begun { parts, is_multipart: false, ..begun.clone() })
    };
    call.db().write(write).await?;
    envelope::message("Multipart Upload completed")
}

/// Concatenates the parts into one file.
async fn joined(call: &Call, begun: &Begun) -> Result<Part, ApiError> {
    let (blobs, tenant) = (call.app.context.blobs().clone(), call.tenant().to_owned());
    let mut upload = blobs.begin(&tenant).map_err(receive::store_fault)?;
    let mut checksum = Checksum::new(Algorithm::Md5);
    for part in &begun.parts {
        let blob: Blob = part.blob.parse().map_err(receive::store_fault)?;
        let mut reading = blobs.get(&tenant, &blob, None).await.map_err(receive::store_fault)?;
        while let Some(piece) = reading.try_next().await.map_err(receive::store_fault)? {
            checksum.update(&piece);
            upload.write(piece).await.map_err(receive::store_fault)?;
        }
    }
    let blob = upload.finish().await.map_err(receive::store_fault)?;
    let head = begun.parts.first().map(|it| it.head.clone()).unwrap_or_default();
    Ok(Part { number: 1, blob: blob.to_string(), checksum: checksum.finish(), head })
}

async fn abort(call: Call) -> Answer {
    let (key, _) = named(&call).await?;
    call.db()
        .write(move |txn: &mut Txn<'_>| txn.delete(&BEGUN, &key).map(|_| ()).map_err(ApiError::from))
        .await?;
    Ok(pinakes_http::answer::empty(http::StatusCode::NO_CONTENT))
}

/// Returns the uploaded file that a request names by its storage identifier.
///
/// Errors: 400 if nothing was uploaded under it, if it was for another dataset, or if its checksum or length differs.
pub(crate) async fn claimed(
    call: &Call,
    described: &Described,
    dataset: &Dataset,
) -> Result<Incoming, ApiError> {
    let refused = |text: String| ApiError::bad_request(text);
    let identifier = described.storage_identifier.as_deref().unwrap_or_default();
    let name = described.file_name.as_deref().filter(|it| !it.trim().is_empty());
    let (Some(name), false) = (name, identifier.is_empty()) else {
        return Err(refused(
            "You must upload a file or provide a valid storageidentifier, filename, and mimetype.".to_owned(),
        ));
    };
    let key = key_of(identifier).to_owned();
    let begun = find(call, &key).await.ok().filter(|it| it.dataset == dataset.id);
    let part = begun
        .as_ref()
        .and_then(|it| it.parts.first())
        .filter(|_| begun.as_ref().is_some_and(|it| it.parts.len() == 1));
    let part = part.ok_or_else(|| {
        refused(format!(
            "Dataset store configuration does not allow provided storageIdentifier: {identifier}"
        ))
    })?;
    let blob: Blob = part.blob.parse().map_err(receive::store_fault)?;
    if let Some(size) = described.size.filter(|it| *it != blob.length) {
        return Err(refused(format!("The file has {} bytes, not {size}.", blob.length)));
    }
    let (checksum_type, checksum) = match &described.checksum {
        Some((kind, value)) if kind == "MD5" && !value.eq_ignore_ascii_case(&part.checksum) => {
            return Err(refused(format!("The file's MD5 is {}, not {value}.", part.checksum)));
        }
        Some((kind, value)) => (kind.clone(), value.to_lowercase()),
        None => ("MD5".to_owned(), part.checksum.clone()),
    };
    let head: Vec<u8> = (0..part.head.len() / 2)
        .filter_map(|at| u8::from_str_radix(part.head.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    Ok(Incoming {
        name: unzip::clean_name(described.label.as_deref().unwrap_or(name)),
        directory: described.directory.clone().unwrap_or_default(),
        description: described.description.clone().unwrap_or_default(),
        categories: described.categories.clone().unwrap_or_default(),
        restricted: described.restrict.unwrap_or(false),
        content_type: types::detect(described.mime_type.as_deref(), name, &head),
        storage_identifier: identifier.to_owned(),
        size: blob.length,
        blob: Some(part.blob.clone()),
        checksum_type,
        checksum,
        tags: described.tags.clone().unwrap_or_default(),
        provenance: described.provenance.clone(),
        tab_ingest: described.tab_ingest,
        replaces: None,
        header: None,
    })
}
