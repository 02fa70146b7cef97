//! Passes files from a browser's form on to Dataverse: each part of the form becomes a separate request, whose body is
//! streamed. Nothing is kept here.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use pinakes_http::{Question, RequestScope, Said};
use serde_json::json;

use super::{done, path_of};
use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};

/// Maximum number of files in one form.
const FILES_MAX: usize = 100;
/// Maximum size of a form field that is not a file, in bytes.
const FIELD_BYTES_MAX: usize = 4096;
/// Maximum size of the answer to one file, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The outcome for the files of a form.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Number of files that were stored.
    pub(super) n_kept: usize,
    /// Names of the other files, with the reasons.
    pub(super) refused: Vec<(String, String)>,
}

/// Returns the browser's body, and notes its progress for the shell's limits on slow clients and long answers.
fn watched(body: Body) -> impl Stream<Item = std::result::Result<Bytes, axum::Error>> {
    let scope = RequestScope::current();
    body.into_data_stream().inspect(move |_| {
        if let Some(scope) = &scope {
            scope.note_progress();
        }
    })
}

/// Passes on the files of a form. Its first field must be the form's token, so that nothing of a foreign form is
/// stored.
///
/// Errors: it is not a multipart form; the form comes from another site or session.
pub(super) async fn take(site: &Site, visitor: &Visitor, pid: &str, body: Body) -> Result<Outcome> {
    let content_type = visitor.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(content_type).map_err(|_| SiteError::ForeignForm)?;
    let mut parts = multer::Multipart::new(Box::pin(watched(body)), boundary);
    let (mut outcome, mut is_proven, mut folder) = (Outcome::default(), false, String::new());
    while let Some(mut field) = parts.next_field().await.map_err(|_| SiteError::ForeignForm)? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "_csrf" || name == "folder" {
            let mut bytes = Vec::new();
            while let Some(piece) = field.chunk().await.map_err(|_| SiteError::ForeignForm)? {
                if FIELD_BYTES_MAX < bytes.len() + piece.len() {
                    return Err(SiteError::ForeignForm);
                }
                bytes.extend_from_slice(&piece);
            }
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            if name == "folder" {
                folder = text;
            } else {
                visitor.proven_by(&text)?;
                is_proven = true;
            }
            continue;
        }
        if !is_proven {
            return Err(SiteError::ForeignForm);
        }
        let file = field.file_name().unwrap_or_default().to_owned();
        if name != "file" || file.is_empty() {
            continue;
        }
        if FILES_MAX <= outcome.n_kept + outcome.refused.len() {
            outcome.refused.push((file, format!("> {FILES_MAX}")));
            break;
        }
        let content_type =
            field.content_type().map_or("application/octet-stream", |it| it.as_ref()).to_owned();
        let to = File { name: &file, folder: &folder, content_type: &content_type };
        let said = sent_on(site, visitor, pid, &to, field).await?;
        match done(&said)? {
            Ok(_) => outcome.n_kept += 1,
            Err(reason) => outcome.refused.push((file, reason)),
        }
    }
    if is_proven { Ok(outcome) } else { Err(SiteError::ForeignForm) }
}

/// Description of a file that is being passed on.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a str,
    /// Empty if it is unknown.
    pub(super) content_type: &'a str,
}

/// Passes a file on to Dataverse's dialect.
pub(super) async fn sent_on<E>(
    site: &Site,
    visitor: &Visitor,
    pid: &str,
    file: &File<'_>,
    content: impl Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
) -> Result<Said>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
{
    let boundary = format!("pinakes-{}", site.context.entropy().uuid());
    let folder = file.folder;
    let file_type = if file.content_type.is_empty() { "application/octet-stream" } else { file.content_type };
    let described = json!({"directoryLabel": folder});
    let described = if folder.is_empty() { json!({}) } else { described };
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"jsonData\"\r\n\r\n{described}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n",
        quoted(file.name),
        quoted(file_type),
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let whole = stream::once(async { Ok(Bytes::from(head)) })
        .chain(content)
        .chain(stream::once(async { Ok::<_, E>(Bytes::from(tail)) }));
    let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"));
    let content_type = content_type.map_err(|error| SiteError::Damaged(error.to_string()))?;
    let path = path_of(pid, "/add");
    let question = Question {
        method: Method::POST,
        path: &path,
        headers: vec![(CONTENT_TYPE, content_type)],
        body: Body::from_stream(whole),
    };
    let answer = site.open(visitor, "dataverse", question).await?;
    let status = answer.status();
    let body = axum::body::to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await;
    let body = body.map_err(|error| SiteError::Damaged(error.to_string()))?;
    Ok(Said { status, body })
}

/// Escapes a name within the quotes of a part's header, as browsers do.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_cannot_leave_their_quotes() {
        assert_eq!(quoted("a\"\r\nX: y.csv"), "a%22%0D%0AX: y.csv");
    }
}
