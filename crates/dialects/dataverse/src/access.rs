//! Downloads: `/api/access` (section 6.3 of the contract).

pub(crate) mod archive;
pub(crate) mod file;
pub(crate) mod metadata;
pub(crate) mod requests;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{HeaderValue, Method, StatusCode};
use pinakes_blobs::Blob;
use pinakes_http::answer;
use pinakes_store::{Txn, View, Weight};

use crate::app::Call;
use crate::error::{Answer, ApiError};
use crate::files::receive::store_fault;
use crate::files::{Found, Wanted, rows};
use crate::{clock, downloads};

const NOT_AUTHORIZED: &str = "Not authorized to access this object via this API endpoint. Please check your code for typos, \
                              or consult our API guide at http://guides.dataverse.org.";
const NO_SERVICE: &str = "datafile access error: requested optional service (image scaling, format conversion, etc.) is not \
                          supported on this datafile.";

/// Returns the router's own 403.
pub(crate) fn not_authorized() -> ApiError {
    ApiError::forbidden(NOT_AUTHORIZED).with("code", 403)
}

/// Returns the file that a path names, after checking that the caller may download it.
pub(crate) async fn admitted(call: &Call) -> Result<Found, ApiError> {
    let (wanted, asker) = (Wanted::of(call)?, call.asker.clone());
    let today = clock::date(call.app.now_ms());
    let read = move |view: &mut View<'_>| {
        let file = wanted.find(view)?;
        let found = Found::of(view, file)?;
        if found.may_download(view, &asker, &today)? { Ok(found) } else { Err(not_authorized()) }
    };
    call.db().read(Weight::Point, read).await
}

/// Content of an answer: a text, followed by the bytes of a blob.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) head: Bytes,
    pub(crate) blob: Blob,
    pub(crate) content_type: String,
    pub(crate) name: String,
}

impl Content {
    /// Returns the requested form of a file: as deposited, or as a table with or without its header line.
    pub(crate) fn of(found: &Found, original: bool, with_names: bool) -> Result<Self, ApiError> {
        let file = &found.file;
        let row = found.published_row().or_else(|| found.newest_row());
        let label = row.map(|it| it.label.clone()).unwrap_or_default();
        let elsewhere = || ApiError::not_found("The file's bytes are not kept here.");
        match file.original.as_ref().filter(|_| original) {
            Some(original) => Ok(Self {
                head: Bytes::new(),
                blob: match original.blob.as_str() {
                    "" => return Err(elsewhere()),
                    blob => blob.parse().map_err(store_fault)?,
                },
                content_type: original.content_type.clone(),
                name: original.name.clone(),
            }),
            None => Ok(Self {
                head: file.header.clone().filter(|_| with_names).map(Bytes::from).unwrap_or_default(),
                blob: file.blob.as_deref().ok_or_else(elsewhere)?.parse().map_err(store_fault)?,
                content_type: file.content_type.clone(),
                name: label,
            }),
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.head.len() as u64 + self.blob.length
    }
}

/// Returns the 404 for a form of a file that is not offered here.
pub(crate) fn no_service() -> ApiError {
    ApiError::not_found(NO_SERVICE)
}

/// Checks whether the dataset's guestbook must be signed first. Errors: 400. A URL that was signed after an entry
/// contains `gbrecs=true`, so no further entry is asked for; without the signature this parameter has no effect here.
pub(crate) async fn check_guestbook(call: &Call, found: &Found) -> Result<(), ApiError> {
    if call.asker.is_signed && call.query.is_true("gbrecs") {
        return Ok(());
    }
    let (dataset, asker, file) = (found.dataset.clone(), call.asker.clone(), found.file.id);
    let read = move |view: &mut View<'_>| -> Result<Option<i64>, ApiError> {
        let Some(guestbook) = downloads::demanded(view, &dataset, &asker)? else { return Ok(None) };
        let was_answered = downloads::was_answered_at_request(view, guestbook, &asker, file)?;
        Ok((!was_answered).then_some(guestbook))
    };
    match call.db().read(Weight::Point, read).await? {
        Some(guestbook) => Err(ApiError::bad_request(format!(
            "You may not download this file without the required Guestbook response for guestbookID {guestbook}."
        ))),
        None => Ok(()),
    }
}

/// Records a download of a published file.
pub(crate) async fn count(call: &Call, found: &Found) {
    if found.published_row().is_none() || call.headers.contains_key(RANGE) {
        return;
    }
    count_all(call, vec![found.file.id]).await;
}

/// Records downloads before the answer begins, so that they are included in counts requested afterwards. HEAD requests
/// and requests with `gbrecs=true` are not counted. If the store accepts no writes, the error is logged and the
/// download goes on.
pub(crate) async fn count_all(call: &Call, files: Vec<i64>) {
    if call.method == Method::HEAD || call.query.is_true("gbrecs") {
        return;
    }
    if let Err(error) = enter_all(call, files).await {
        tracing::warn!(error = error.message, "downloads could not be counted");
    }
}

async fn enter_all(call: &Call, files: Vec<i64>) -> Result<(), ApiError> {
    let mut ids = call.app.ids(call.db(), i64::try_from(files.len()).unwrap_or(1)).await?;
    let (asker, now) = (call.asker.clone(), call.app.now());
    let write = move |txn: &mut Txn<'_>| {
        for id in &files {
            let Some(mut file) = rows::data_file(txn, *id)? else { continue };
            file.downloads += 1;
            rows::put_file(txn, &file)?;
            downloads::note(txn, ids.next()?, &now, &asker, &file)?;
        }
        Ok::<_, ApiError>(())
    };
    call.db().write(write).await
}

/// Returns the range of a content that a request asks for.
fn range_of(call: &Call, length: u64) -> Result<Option<(u64, u64)>, ApiError> {
    let Some(header) = call.headers.get(RANGE) else { return Ok(None) };
    let text = header.to_str().unwrap_or_default();
    let refuse = |why: &str| {
        let text = format!("Error due to Range header: {why}");
        Err(ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, text))
    };
    const FORMAT: &str = "The format is bytes=<range-start>-<range-end> where start and end are optional.";
    let Some(ranges) = text.strip_prefix("bytes=") else { return refuse(FORMAT) };
    if ranges.contains(',') {
        return refuse("Only one range is allowed.");
    }
    let Some((start, end)) = ranges.trim().split_once('-') else { return refuse(FORMAT) };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (start, end) = match (start.trim(), end.trim()) {
        ("", "") => return refuse(FORMAT),
        ("", last) => match number(last) {
            Some(n) => (length.saturating_sub(n), length),
            None => return refuse(FORMAT),
        },
        (first, last) => {
            let end =
                if last.is_empty() { Some(length) } else { number(last).map(|it| it.saturating_add(1)) };
            match (number(first), end) {
                (Some(start), Some(end)) => (start, end.min(length)),
                _ => return refuse(FORMAT),
            }
        }
    };
    match start < end && start < length {
        true => Ok(Some((start, end))),
        false => refuse("Start is larger than end."),
    }
}

/// Quotes a name for use in a header.
pub(crate) fn quoted(name: &str) -> String {
    name.chars().map(|it| if it == '"' || it == '\\' || it.is_control() { '_' } else { it }).collect()
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes())
        .unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

/// Streams a content, or the range of it that the request asks for.
pub(crate) async fn send(call: &Call, content: Content) -> Answer {
    let length = content.length();
    let range = range_of(call, length)?;
    let (start, end) = range.unwrap_or((0, length));
    let head_bytes = content.head.len() as u64;
    let index = |at: u64| usize::try_from(at.min(head_bytes)).unwrap_or(0);
    let head = content.head.slice(index(start)..index(end));
    let blob_range = start.saturating_sub(head_bytes)..end.saturating_sub(head_bytes);
    let is_whole = blob_range == (0..content.blob.length);
    let wanted = (!is_whole).then_some(blob_range);
    let blobs = call.app.context.blobs();
    let reading = blobs.get(call.tenant(), &content.blob, wanted).await.map_err(store_fault)?;
    let first = stream::iter((!head.is_empty()).then_some(Ok(head)));
    let body = Body::from_stream(first.chain(reading));
    let name = quoted(&content.name);
    let kind = header(&format!("{}; name=\"{name}\"", content.content_type));
    let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = answer::with_body(status, kind, body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, header(&format!("attachment; filename=\"{name}\"")));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(end - start));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if range.is_some() {
        headers.insert(CONTENT_RANGE, header(&format!("bytes {start}-{}/{length}", end - 1)));
    }
    Ok(response)
}

/// Returns the answer with a blob as its body.
pub(crate) async fn blob_response(call: &Call, blob: &str, content_type: &str) -> Result<Response, ApiError> {
    let blob: Blob = blob.parse().map_err(store_fault)?;
    let reading = call.app.context.blobs().get(call.tenant(), &blob, None).await.map_err(store_fault)?;
    let mut response = answer::with_body(StatusCode::OK, header(content_type), Body::from_stream(reading));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(blob.length));
    Ok(response)
}

/// Returns whether the file is in a published version.
pub(crate) fn is_published(found: &Found) -> bool {
    found.published_row().is_some()
}
