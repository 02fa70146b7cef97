//! Small pictures of images and datasets.

use axum::response::Response;
use pinakes_store::View;

use crate::app::Call;
use crate::datasets::{Dataset, Version};
use crate::error::ApiError;
use crate::files::kinds::LOGO;
use crate::files::{DataFile, rows};

/// Width of a picture when the request names none, in pixels.
const WIDTH: u32 = 64;
/// Largest width, in pixels.
const WIDEST: u32 = 1000;
/// Largest image that is made smaller, in bytes.
const IMAGE_BYTES: u64 = 16 << 20;
/// Largest side of an image that is read, in pixels.
const SIDE: u32 = 20_000;

/// Whether pictures are made of files of a media type.
pub(crate) fn is_image(content_type: &str) -> bool {
    matches!(content_type, "image/png" | "image/jpeg" | "image/gif")
}

/// The picture of an image file; `None` for other files, and for images that cannot be read.
pub(crate) async fn of_file(call: &Call, file: &DataFile, size: &str) -> Result<Option<Response>, ApiError> {
    if !is_image(&file.content_type) || IMAGE_BYTES < file.size {
        return Ok(None);
    }
    let width = size.trim().parse().unwrap_or(WIDTH).clamp(1, WIDEST);
    let Some(blob) = file.blob.as_deref() else { return Ok(None) };
    let blob: pinakes_blobs::Blob = blob.parse().map_err(crate::files::receive::store_fault)?;
    let (blobs, tenant) = (call.app.context.blobs().clone(), call.tenant().to_owned());
    let work = move || -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut blobs.reader(&tenant, &blob).ok()?, &mut bytes).ok()?;
        small(&bytes, width)
    };
    let made = tokio::task::spawn_blocking(work).await.ok().flatten();
    let png = http::HeaderValue::from_static("image/png");
    Ok(made.map(|it| pinakes_http::answer::bytes(http::StatusCode::OK, png, it)))
}

/// An image made as narrow as `width`, as PNG; `None` for what cannot be read.
fn small(bytes: &[u8], width: u32) -> Option<Vec<u8>> {
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(SIDE);
    limits.max_image_height = Some(SIDE);
    reader.limits(limits);
    let image = reader.decode().ok()?;
    let height = (u64::from(image.height()) * u64::from(width) / u64::from(image.width()).max(1))
        .clamp(1, u64::from(SIDE));
    let small = image.thumbnail_exact(width, u32::try_from(height).ok()?);
    let mut out = Vec::new();
    small.write_to(&mut std::io::Cursor::new(&mut out), image::ImageFormat::Png).ok()?;
    Some(out)
}

/// Where the picture of a dataset is found: its own, or that of an image among its files.
pub(crate) fn url_of_dataset(
    view: &mut View<'_>,
    site_url: &str,
    dataset: &Dataset,
    version: &Version,
) -> Result<Option<String>, ApiError> {
    let url = || format!("{site_url}/api/datasets/{}/logo", dataset.id);
    if view.has(&LOGO, &dataset.id.to_string())? {
        return Ok(Some(url()));
    }
    // Few files are looked at: a picture is an ornament.
    let first = rows::page_of_version(view, dataset.id, version.ordinal, 0, 20)?;
    let has_image = rows::with_files(view, first)?
        .iter()
        .any(|(row, file)| !row.restricted && is_image(&file.content_type));
    Ok(has_image.then(url))
}
