//! Thumbnails of images and datasets.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, StatusCode};
use pinakes_store::{Txn, View, Weight};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::app::Call;
use crate::datasets::wanted::{self, Wanted};
use crate::datasets::{self, Dataset, Version};
use crate::error::{Answer, ApiError};
use crate::files::checksum::Algorithm;
use crate::files::kinds::LOGO;
use crate::files::receive::{self, Target};
use crate::files::{self, DataFile, Found, Row, rows};
use crate::grants::Permission;
use crate::routing::Routes;
use crate::{changes, clock, envelope, permissions, stored};

/// Default width of a thumbnail, in pixels.
const WIDTH: u32 = 64;
/// Maximum width, in pixels.
const WIDEST: u32 = 1000;
/// Maximum size of an image for which a thumbnail is made, in bytes.
const IMAGE_BYTES: u64 = 16 << 20;
/// Maximum length of an image's side, in pixels.
const SIDE: u32 = 20_000;

/// Maximum memory for a decoded image, in bytes (256 MiB). A small file may be a very large image.
const UNPACKED_BYTES: u64 = 256 << 20;
/// Maximum height of a thumbnail, in pixels.
const TALLEST: u32 = 4 * WIDEST;

/// Images that are decoded concurrently; this limits the memory for decoded images.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Returns whether there are thumbnails for files of a media type.
pub(crate) fn is_image(content_type: &str) -> bool {
    matches!(content_type, "image/png" | "image/jpeg" | "image/gif")
}

/// Returns the thumbnail of an image file; `None` for other files, and for images that cannot be read.
pub(crate) async fn of_file(call: &Call, file: &DataFile, size: &str) -> Result<Option<Response>, ApiError> {
    let width = size.trim().parse().unwrap_or(WIDTH).clamp(1, WIDEST);
    if !has_picture(file) {
        return Ok(None);
    }
    let Some(blob) = file.blob.as_deref() else { return Ok(None) };
    Ok(of_blob(call, blob, width).await?.map(png))
}

fn has_picture(file: &DataFile) -> bool {
    is_image(&file.content_type) && file.size <= IMAGE_BYTES
}

/// Returns a PNG as an answer.
pub(crate) fn png(bytes: Vec<u8>) -> Response {
    pinakes_http::answer::bytes(StatusCode::OK, HeaderValue::from_static("image/png"), bytes)
}

/// Returns the thumbnail of an image in the blob store, as PNG.
pub(crate) async fn of_blob(call: &Call, blob: &str, width: u32) -> Result<Option<Vec<u8>>, ApiError> {
    let blob: pinakes_blobs::Blob = blob.parse().map_err(crate::files::receive::store_fault)?;
    let (blobs, tenant) = (call.app.context.blobs().clone(), call.tenant().to_owned());
    let work = move || -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut blobs.reader(&tenant, &blob, None).ok()?, &mut bytes).ok()?;
        small(&bytes, width)
    };
    let place = AT_ONCE.acquire().await.map_err(|_| ApiError::internal("No picture can be made."))?;
    // The permit is held until the work is done, even if nobody waits for it any more.
    let kept = move || {
        let made = work();
        drop(place);
        made
    };
    Ok(tokio::task::spawn_blocking(kept).await.ok().flatten())
}

/// Returns an image scaled down to `width`, as PNG; `None` if it cannot be read.
fn small(bytes: &[u8], width: u32) -> Option<Vec<u8>> {
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(SIDE);
    limits.max_image_height = Some(SIDE);
    limits.max_alloc = Some(UNPACKED_BYTES);
    reader.limits(limits);
    let image = reader.decode().ok()?;
    let height = (u64::from(image.height()) * u64::from(width) / u64::from(image.width()).max(1))
        .clamp(1, u64::from(TALLEST));
    let small = image.thumbnail_exact(width, u32::try_from(height).ok()?);
    let mut out = Vec::new();
    small.write_to(&mut std::io::Cursor::new(&mut out), image::ImageFormat::Png).ok()?;
    Some(out)
}

/// Returns the URL of a dataset's thumbnail: its own logo, or an image among its files.
pub(crate) fn url_of_dataset(
    view: &mut View<'_>,
    site_url: &str,
    dataset: &Dataset,
    version: &Version,
) -> Result<Option<String>, ApiError> {
    let url = || format!("{site_url}/api/datasets/{}/logo", dataset.id);
    Ok(match choice(view, dataset, Some(version.ordinal))? {
        Choice::None => None,
        Choice::Logo(_) | Choice::File(_) => Some(url()),
    })
}

/// Settings of a dataset: the file chosen as thumbnail, and that it has none.
const CHOSEN: &str = "thumbnailFile";
const GENERIC: &str = "useGenericThumbnail";
/// Width of the thumbnail of a dataset or collection, in pixels.
pub(crate) const CARD_WIDTH: u32 = 48;
/// Maximum size of an uploaded logo of a dataset or collection, in bytes.
const LOGO_BYTES: u64 = 500_000;
/// Maximum number of images offered as a dataset's thumbnail, and of files examined for one.
const CANDIDATES: u64 = 20;

/// Source of a dataset's thumbnail.
enum Choice {
    /// Nothing.
    None,
    /// A logo of its own: its blob.
    Logo(String),
    /// A file.
    File(Box<DataFile>),
}

/// Returns the source of a dataset's thumbnail in a version.
fn choice(view: &mut View<'_>, dataset: &Dataset, ordinal: Option<i64>) -> Result<Choice, ApiError> {
    if let Some(logo) = view.get(&LOGO, &dataset.id.to_string())? {
        return Ok(Choice::Logo(logo.json()?["blob"].as_str().unwrap_or_default().to_owned()));
    }
    if dataset.more.get(GENERIC).is_some_and(|it| *it == true) {
        return Ok(Choice::None);
    }
    let Some(ordinal) = ordinal else { return Ok(Choice::None) };
    if let Some(id) = dataset.more.get(CHOSEN).and_then(Value::as_i64)
        && let Some(file) = rows::data_file(view, id)?.filter(|it| it.dataset == dataset.id)
        && rows::of_file(view, id)?.iter().any(|row| row.is_in(ordinal) && is_offered(row, &file))
    {
        return Ok(Choice::File(Box::new(file)));
    }
    Ok(images(view, dataset, ordinal)?
        .into_iter()
        .next()
        .map_or(Choice::None, |file| Choice::File(Box::new(file))))
}

/// Returns the openly accessible images of a version. Examines only a few files: a thumbnail is not essential.
fn images(view: &mut View<'_>, dataset: &Dataset, ordinal: i64) -> Result<Vec<DataFile>, ApiError> {
    let first = rows::page_of_version(view, dataset.id, ordinal, 0, CANDIDATES)?;
    let files = rows::with_files(view, first)?.into_iter();
    Ok(files.filter(|(row, file)| is_offered(row, file)).map(|it| it.1).collect())
}

/// Returns whether an image is openly accessible, so that it may be shown as thumbnail.
fn is_offered(row: &Row, file: &DataFile) -> bool {
    !row.restricted && file.embargo.is_none() && file.retention.is_none() && has_picture(file)
}

/// Adds the routes of thumbnails of datasets.
pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get("/datasets/{id}/thumbnail", show)
        .get("/datasets/{id}/logo", show)
        .post("/datasets/{id}/thumbnail", upload)
        .delete("/datasets/{id}/thumbnail", remove)
        .get("/datasets/{id}/thumbnail/candidates", candidates)
        .post("/datasets/{id}/thumbnail/{file}", choose)
        .get("/admin/datasets/thumbnailMetadata/{id}", metadata)
        .get("/access/fileCardImage/{id}", show_of_file)
        .get("/access/dsCardImage/{version}", show_of_version)
}

/// Returns the source of the thumbnail: in the published version or, without one, in the draft if the caller may see
/// it.
async fn chosen(call: &Call) -> Result<Choice, ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let released = dataset.released.as_ref().map(|it| it.ordinal);
        let may = permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)?;
        if released.is_none() && !may {
            return Ok(Choice::None);
        }
        choice(view, &dataset, released)
    };
    call.db().read(Weight::Point, read).await
}

async fn bytes_of(call: &Call, choice: &Choice) -> Result<Option<Vec<u8>>, ApiError> {
    let blob = match choice {
        Choice::None => None,
        Choice::Logo(blob) => Some(blob.as_str()),
        Choice::File(file) => file.blob.as_deref(),
    };
    match blob {
        Some(blob) => of_blob(call, blob, CARD_WIDTH).await,
        None => Ok(None),
    }
}

/// Returns an image as a `data:` URL.
fn data_url(bytes: &[u8]) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

async fn show(call: Call) -> Answer {
    let choice = chosen(&call).await?;
    match bytes_of(&call, &choice).await? {
        Some(bytes) => Ok(png(bytes)),
        None => Ok(pinakes_http::answer::empty(StatusCode::NOT_FOUND)),
    }
}

/// Answers with the thumbnail of an image file, for callers who may download it.
async fn show_of_file(call: Call) -> Answer {
    let (wanted, asker) = (files::Wanted::of(&call)?, call.asker.clone());
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| -> Result<Option<DataFile>, ApiError> {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        let may = found.may_download(view, &asker, &today)?;
        Ok(may.then_some(found.file))
    };
    let file = call.db().read(Weight::Point, read).await?;
    let picture = match &file {
        Some(file) => of_file(&call, file, &CARD_WIDTH.to_string()).await?,
        None => None,
    };
    Ok(picture.unwrap_or_else(|| pinakes_http::answer::empty(StatusCode::NOT_FOUND)))
}

/// Answers with the thumbnail of a version of a dataset, by the version's number.
async fn show_of_version(call: Call) -> Answer {
    let (id, asker) = (call.param("version").to_owned(), call.asker.clone());
    let read = move |view: &mut View<'_>| -> Result<Choice, ApiError> {
        let Some(version) = stored::get::<Version>(view, &datasets::VERSION, &id)? else {
            return Ok(Choice::None);
        };
        let Some(dataset) = datasets::by_id(view, version.dataset)? else { return Ok(Choice::None) };
        wanted::require_not_kept(view, &asker, &dataset)?;
        let is_out = version.state == datasets::State::Released;
        if !is_out && !permissions::may(view, &asker, dataset.place(), Permission::ViewUnpublishedDataset)? {
            return Ok(Choice::None);
        }
        choice(view, &dataset, Some(version.ordinal))
    };
    let choice = call.db().read(Weight::Point, read).await?;
    match bytes_of(&call, &choice).await? {
        Some(bytes) => Ok(png(bytes)),
        None => Ok(pinakes_http::answer::empty(StatusCode::NOT_FOUND)),
    }
}

async fn metadata(call: Call) -> Answer {
    let wanted = Wanted::of(&call)?;
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        let is_generic = dataset.more.get(GENERIC).is_some_and(|it| *it == true);
        let released = dataset.released.as_ref().map(|it| it.ordinal);
        Ok::<_, ApiError>((is_generic, choice(view, &dataset, released)?))
    };
    let (is_generic, choice) = call.db().read(Weight::Point, read).await?;
    let mut json = json!({
        "isUseGenericThumbnail": is_generic,
        "datasetLogoPresent": matches!(choice, Choice::Logo(_)),
    });
    if let Choice::File(file) = &choice {
        json["dataFileId"] = file.id.to_string().into();
    }
    if let Some(bytes) = bytes_of(&call, &choice).await? {
        json["datasetThumbnailBase64image"] = data_url(&bytes).into();
    }
    envelope::ok(json)
}

async fn candidates(call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        if !permissions::may(view, &asker, dataset.place(), Permission::EditDataset)? {
            let message = "You are not permitted to list dataset thumbnail candidates.";
            return Err(ApiError::forbidden(message));
        }
        let ordinal = dataset.draft.as_ref().map_or(dataset.last_ordinal, |it| it.ordinal);
        images(view, &dataset, ordinal)
    };
    let mut list = Vec::new();
    for file in call.db().read(Weight::Point, read).await? {
        let id = file.id;
        if let Some(bytes) = bytes_of(&call, &Choice::File(Box::new(file))).await? {
            list.push(json!({"base64image": data_url(&bytes), "dataFileId": id}));
        }
    }
    envelope::ok(list)
}

/// Changes the thumbnail of a dataset, after checking that the caller may edit it.
async fn changed(
    call: &Call,
    mut change: impl FnMut(&mut Txn<'_>, &mut Dataset) -> Result<(), ApiError> + Send + 'static,
) -> Result<(), ApiError> {
    let (wanted, asker, app) = (Wanted::of(call)?, call.asker.clone(), call.app.clone());
    let write = move |txn: &mut Txn<'_>| {
        let mut dataset = wanted.find(txn)?;
        permissions::require(txn, &asker, dataset.place(), Permission::EditDataset)?;
        txn.delete(&LOGO, &dataset.id.to_string())?;
        dataset.more.remove(CHOSEN);
        dataset.more.remove(GENERIC);
        change(txn, &mut dataset)?;
        datasets::put(txn, &dataset)?;
        changes::dataset(txn, &app, dataset.id)
    };
    call.db().write(write).await
}

/// `POST …/thumbnail/{file}`: chooses an image among the files as thumbnail.
async fn choose(call: Call) -> Answer {
    let id = call.param("file").to_owned();
    let id: i64 = id.parse().map_err(|_| ApiError::bad_request(format!("Bad file ID number: {id}.")))?;
    let read = move |view: &mut View<'_>| rows::data_file(view, id);
    let file = call.db().read(Weight::Point, read).await?.filter(has_picture);
    let missing = move || {
        ApiError::forbidden(format!("Could not find file based on id supplied: {id}, or it is no image."))
    };
    let file = file.ok_or_else(missing)?;
    let of = file.dataset;
    let change = move |_: &mut Txn<'_>, dataset: &mut Dataset| {
        if dataset.id != of {
            return Err(missing());
        }
        dataset.more.insert(CHOSEN.to_owned(), id.into());
        Ok(())
    };
    changed(&call, change).await?;
    let bytes = bytes_of(&call, &Choice::File(Box::new(file))).await?.unwrap_or_default();
    envelope::message(format!("Thumbnail set to {}", data_url(&bytes)))
}

/// `POST …/thumbnail`: a form with an image under `file`.
async fn upload(mut call: Call) -> Answer {
    let (wanted, asker) = (Wanted::of(&call)?, call.asker.clone());
    let read = move |view: &mut View<'_>| {
        let dataset = wanted.find(view)?;
        permissions::require(view, &asker, dataset.place(), Permission::EditDataset)
    };
    call.db().read(Weight::Point, read).await?;
    let (blob, bytes) = received(&mut call).await?;
    let change = move |txn: &mut Txn<'_>, dataset: &mut Dataset| {
        txn.put(&LOGO, &dataset.id.to_string(), &json!({"blob": blob}))?;
        Ok(())
    };
    changed(&call, change).await?;
    envelope::message(format!("Thumbnail is now {}", data_url(&bytes)))
}

/// Receives an image in a form, under `file`. Returns its blob and its thumbnail.
///
/// Errors: 400 without an image; 403 for one that is too large or cannot be read.
pub(crate) async fn received(call: &mut Call) -> Result<(String, Vec<u8>), ApiError> {
    let target = Target {
        blobs: call.app.context.blobs().clone(),
        tenant: call.tenant().to_owned(),
        algorithm: Algorithm::Md5,
        most_bytes: None,
    };
    let limits = call.app.context.limits().clone();
    let body = call.take_body();
    let form = receive::form(&call.headers, body, &limits, &target).await?;
    let no_file = || ApiError::bad_request("A picture is wanted under the name file.");
    let received = form.file.ok_or_else(no_file)?;
    if LOGO_BYTES < received.blob.length {
        let message = format!("File is larger than maximum size: {LOGO_BYTES} bytes.");
        return Err(ApiError::forbidden(message));
    }
    let blob = received.blob.to_string();
    let made = of_blob(call, &blob, CARD_WIDTH).await?;
    let bytes = made.ok_or_else(|| ApiError::forbidden("The file is no picture that can be read."))?;
    Ok((blob, bytes))
}

async fn remove(call: Call) -> Answer {
    let change = |_: &mut Txn<'_>, dataset: &mut Dataset| {
        dataset.more.insert(GENERIC.to_owned(), true.into());
        Ok(())
    };
    changed(&call, change).await?;
    envelope::message("Dataset thumbnail deleted.")
}
