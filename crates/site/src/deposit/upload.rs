//! Files on their way from a browser's form to Dataverse: each part of the form becomes a request of its own, whose body is
//! passed on as it comes. Nothing is kept here.

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

/// Files that one form may bring.
const FILES_MAX: usize = 100;
/// Most bytes of a field of the form that is no file.
const FIELD_BYTES_MAX: usize = 4096;
/// Most bytes that the answer to one file may have.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What became of the files of a form.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Files that are kept now.
    pub(super) n_kept: usize,
    /// Names of others, and why.
    pub(super) refused: Vec<(String, String)>,
}

/// The body of the browser, as the shell's limits on slow clients and long answers want it watched.
fn watched(body: Body) -> impl Stream<Item = std::result::Result<Bytes, axum::Error>> {
    let scope = RequestScope::current();
    body.into_data_stream().inspect(move |_| {
        if let Some(scope) = &scope {
            scope.note_progress();
        }
    })
}

/// Takes the files of a form. Its first field must be the token of the form, so that nothing of another's form is kept.
///
/// Errors: it is no form of several parts; the form is another's.
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

/// A file on its way, as it is described.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a str,
    /// Empty where nobody says it.
    pub(super) content_type: &'a str,
}

/// Hands a file to Dataverse's dialect.
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

/// A name within quotes of a part's head, as browsers write it.
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
