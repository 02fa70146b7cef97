//! Receiving bytes: multipart forms, and files that are streamed into the store of files and checksummed on the way.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::HeaderMap;
use pinakes_blobs::{Blob, BlobError, Blobs};
use pinakes_http::body::Pieces;
use pinakes_store::Limits;

use super::summing::Summing;
use super::types::HEAD_BYTES;
use crate::amounts;
use crate::error::ApiError;
use crate::files::checksum::Algorithm;

/// Maximum size of a form field that is not a file, in bytes.
const FIELD_BYTES: usize = 16 << 20;
/// Maximum number of fields of a form.
const FIELDS: usize = 64;

/// A file that is complete in the store of files; it is swept unless a record refers to it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) name: String,
    pub(crate) content_type: Option<String>,
    pub(crate) blob: Blob,
    pub(crate) checksum: String,
    pub(crate) head: Vec<u8>,
}

/// A form: its fields, and the file, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Form {
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) file: Option<Received>,
}

impl Form {
    /// Returns the value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }
}

/// Destination of received files.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) blobs: Blobs,
    pub(crate) tenant: String,
    pub(crate) algorithm: Algorithm,
    /// Maximum size of a file, by the server's settings.
    pub(crate) most_bytes: Option<u64>,
}

/// Returns the bytes of a request as a stream of pieces.
pub(crate) fn pieces(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    most_bytes: u64,
) -> Result<impl Stream<Item = Result<Bytes, ApiError>> + Send + 'static, ApiError> {
    let pieces = Pieces::new(headers, body, most_bytes, limits)?;
    Ok(stream::unfold(Some(pieces), |state| async {
        let mut pieces = state?;
        match pieces.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Ok(None) => None,
            Err(error) => Some((Err(ApiError::from(error)), None)),
        }
    }))
}

/// Receives a form. A file's bytes are streamed to the store; if the form is cut off, nothing is kept.
///
/// Errors: the body is not a form, is cut off or too large; the store fails.
pub(crate) async fn form(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    target: &Target,
) -> Result<Form, ApiError> {
    let content_type = headers.get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type).map_err(|_| {
        ApiError::new(
            http::StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "HTTP 415 Unsupported Media Type: expected multipart/form-data.",
        )
    })?;
    let most_bytes = target.blobs.settings().file_bytes.saturating_add(FIELD_BYTES as u64);
    let pieces = pieces(headers, body, limits, most_bytes)?;
    let mut parts = multer::Multipart::new(Box::pin(pieces), boundary);
    let mut form = Form::default();
    let mut n_fields = 0;
    while let Some(field) = parts.next_field().await.map_err(unreadable)? {
        n_fields += 1;
        if FIELDS < n_fields {
            return Err(ApiError::bad_request(format!("The form has more than {FIELDS} parts.")));
        }
        let name = field.name().unwrap_or_default().to_owned();
        if name == "file" && form.file.is_none() {
            form.file = Some(file(field, target).await?);
        } else {
            let value = text(field).await?;
            form.fields.push((name, value));
        }
    }
    Ok(form)
}

fn unreadable(error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(inner) => match inner.downcast::<ApiError>() {
            Ok(error) => *error,
            Err(other) => ApiError::bad_request(format!("The form cannot be read: {other}")),
        },
        other => ApiError::bad_request(format!("The form cannot be read: {other}")),
    }
}

async fn text(mut field: multer::Field<'_>) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(unreadable)? {
        if FIELD_BYTES < bytes.len() + piece.len() {
            return Err(ApiError::bad_request(format!(
                "A field of the form has more than {FIELD_BYTES} bytes."
            )));
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).map_err(|_| ApiError::bad_request("A field of the form is not UTF-8."))
}

async fn file(mut field: multer::Field<'_>, target: &Target) -> Result<Received, ApiError> {
    let name = field.file_name().unwrap_or_default().to_owned();
    let content_type = field.content_type().map(ToString::to_string);
    let mut taking = Taking::begin(target)?;
    loop {
        match field.chunk().await {
            Ok(Some(piece)) => taking.take(piece).await?,
            Ok(None) => return taking.finish(name, content_type).await,
            Err(error) => {
                taking.give_up().await;
                return Err(unreadable(error));
            }
        }
    }
}

/// Receives a whole body as a file.
pub(crate) async fn whole(
    pieces: impl Stream<Item = Result<Bytes, ApiError>>,
    target: &Target,
    name: String,
    content_type: Option<String>,
) -> Result<Received, ApiError> {
    use futures_util::StreamExt as _;
    let mut pieces = std::pin::pin!(pieces);
    let mut taking = Taking::begin(target)?;
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => taking.take(piece).await?,
            Err(error) => {
                taking.give_up().await;
                return Err(error);
            }
        }
    }
    taking.finish(name, content_type).await
}

/// A file being received.
struct Taking {
    upload: pinakes_blobs::Upload,
    checksum: Summing,
    head: Vec<u8>,
    most_bytes: Option<u64>,
}

impl Taking {
    fn begin(target: &Target) -> Result<Self, ApiError> {
        let upload = target.blobs.begin(&target.tenant).map_err(store_fault)?;
        let checksum = Summing::begin(target.algorithm);
        Ok(Self { upload, checksum, head: Vec::new(), most_bytes: target.most_bytes })
    }

    async fn take(&mut self, piece: Bytes) -> Result<(), ApiError> {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..missing]);
        let length = self.upload.length() + piece.len() as u64;
        if let Some(most) = self.most_bytes.filter(|most| *most < length) {
            let (found, most) = (amounts::size_text(length), amounts::size_text(most));
            return Err(ApiError::bad_request(format!(
                "This file size ({found}) exceeds the size limit of {most}."
            )));
        }
        self.checksum.take(piece.clone()).await?;
        self.upload.write(piece).await.map_err(store_fault)
    }

    async fn give_up(self) {
        self.upload.abort().await;
    }

    async fn finish(self, name: String, content_type: Option<String>) -> Result<Received, ApiError> {
        let blob = self.upload.finish().await.map_err(store_fault)?;
        let checksum = self.checksum.finish().await?;
        Ok(Received { name, content_type, blob, checksum, head: self.head })
    }
}

/// Converts an error of the store of files into an answer.
pub(crate) fn store_fault(error: BlobError) -> ApiError {
    match error {
        BlobError::TooLarge { most_bytes } => ApiError::bad_request(format!(
            "This file exceeds the size limit of {}.",
            amounts::size_text(most_bytes)
        )),
        other => {
            tracing::error!(error = %other, "the store of files failed");
            ApiError::internal("The store of files failed. More details available at the server logs.")
        }
    }
}
