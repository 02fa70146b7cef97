//! Uploads in pieces, for the script of the files' page: pieces that have arrived are kept if the connection breaks,
//! and choosing the same file again continues after them.
//!
//! | request | what |
//! |---|---|
//! | `POST /site/uploads` | starts an upload, or finds an earlier one of the same file |
//! | `PUT /site/uploads/{id}?at=` | receives the piece that begins at that byte |
//! | `POST /site/uploads/{id}` | passes the whole file to Dataverse's dialect, which adds it to the deposit by its own rules |
//! | `DELETE /site/uploads/{id}` | cancels it |
//!
//! Pieces are kept in the store of files. A record names them, so that they are not swept; it is removed with the
//! upload or a week after its last piece.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use pinakes_blobs::{Blob, BlobError};
use pinakes_http::{RequestScope, answer, body::Pieces};
use pinakes_store::{
    Column, End, Expr, Identifier, Index, Kind, Query, Record, StoreError, Txn, Type, View, Weight,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::upload::{File, sent_on};
use super::{done, path_of};
use crate::app::{Site, Visitor};
use crate::error::SiteError;
use crate::fields::{Fields, encoded};

/// An upload in progress.
pub(crate) static UPLOAD: Kind = Kind {
    columns: &[
        Column::one("user", Type::Text),
        Column::one("fingerprint", Type::Text),
        Column::one("changedMs", Type::Integer),
    ],
    indexes: &[Index::on(&["user"]), Index::on(&["fingerprint"]), Index::on(&["changedMs"])],
    identifiers: &[Identifier { scheme: pinakes_blobs::SCHEME, path: "parts" }],
    ..Kind::named("site_upload")
};

/// Maximum number of uploads in progress for one account.
const UPLOADS_MAX: u64 = 100;
/// How long an upload is kept after its last piece (a week).
const KEEP_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Maximum number of expired uploads that are removed when another one starts.
const REMOVED_MAX: u64 = 100;
/// Minimum size of a piece, in bytes (8 MiB).
const PIECE_BYTES: u64 = 8 << 20;
/// Maximum number of pieces of an upload: the pieces of large files are larger.
const PIECES_MAX: u64 = 1_000;
/// Time after which passing on a file may be attempted again (an hour).
const FINISH_MS: i64 = 60 * 60 * 1000;
/// Maximum length of the name of a file or folder, in bytes.
const NAME_BYTES_MAX: usize = 1_000;

/// The stored state of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Upload {
    /// Its user.
    user: String,
    /// Distinguishes the file from others of the same account and deposit.
    fingerprint: String,
    pid: String,
    name: String,
    folder: String,
    content_type: String,
    size: u64,
    changed_ms: i64,
    /// When passing it on began; 0 if that is not in progress.
    finishing_ms: i64,
    parts: Vec<Blob>,
}

impl Upload {
    fn n_bytes(&self) -> u64 {
        self.parts.iter().map(|it| it.length).sum()
    }

    fn piece_bytes(&self) -> u64 {
        PIECE_BYTES.max(self.size.div_ceil(PIECES_MAX))
    }

    fn json(&self) -> std::result::Result<serde_json::Value, StoreError> {
        serde_json::to_value(self).map_err(|error| StoreError::Damaged(error.to_string()))
    }

    fn of(record: &Record) -> std::result::Result<Self, StoreError> {
        serde_json::from_slice(&record.body)
            .map_err(|error| StoreError::Damaged(format!("upload {:?}: {error}", record.id)))
    }
}

fn get(view: &mut View<'_>, id: &str) -> std::result::Result<Option<Upload>, StoreError> {
    view.get(&UPLOAD, id)?.as_ref().map(Upload::of).transpose()
}

/// Reason for a failure, as it is reported to the script.
enum Refused {
    /// An error that pages report too.
    Site(SiteError),
    /// A message with its status.
    Said(StatusCode, String),
    /// The upload is at a different position: at this byte.
    At(u64),
}

impl From<SiteError> for Refused {
    fn from(error: SiteError) -> Self {
        Self::Site(error)
    }
}

type Outcome<T> = std::result::Result<T, Refused>;

fn told(visitor: &Visitor, outcome: Outcome<Response>) -> Response {
    let (status, said) = match outcome {
        Ok(response) => return response,
        Err(Refused::At(at)) => (StatusCode::CONFLICT, json!({"at": at})),
        Err(Refused::Said(status, reason)) => (status, json!({"reason": reason})),
        Err(Refused::Site(SiteError::Refused(refusal))) => {
            (refusal.status(), json!({"reason": refusal.to_string()}))
        }
        Err(Refused::Site(error)) => (error.status(), json!({"reason": visitor.text(error.text_key())})),
    };
    answer::json(status, &said)
}

/// Returns the user whose uploads the visitor can access.
fn user_of(visitor: &Visitor) -> Outcome<String> {
    let user = visitor.caller.user.as_deref().ok_or(SiteError::SignIn)?;
    Ok(user.uuid.to_string())
}

/// Does the same for a request with the token of a form.
fn user_proven(visitor: &Visitor) -> Outcome<String> {
    let given = visitor.headers.get("x-csrf-token").and_then(|it| it.to_str().ok()).unwrap_or_default();
    visitor.proven_by(given)?;
    user_of(visitor)
}

/// Returns the visitor's upload with that id.
async fn own(visitor: &Visitor, user: &str, id: &str) -> Outcome<Upload> {
    let at = id.to_owned();
    let found = visitor.db.read(Weight::Point, move |view| get(view, &at)).await.map_err(SiteError::from)?;
    Ok(found.filter(|it| it.user == user).ok_or(SiteError::NotFound)?)
}

/// `POST /site/uploads`
pub(crate) async fn begin(State(site): State<Site>, visitor: Visitor, body: Body) -> Response {
    told(&visitor, begun(&site, &visitor, body).await)
}

async fn begun(site: &Site, visitor: &Visitor, body: Body) -> Outcome<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let user = user_of(visitor)?;
    let upload = wanted(site, visitor, &user, &sent)?;
    let may = site.read(visitor, "dataverse", &path_of(&upload.pid, "/userPermissions")).await?;
    if may["data"]["canEditDataset"] != true {
        return Err(SiteError::Forbidden.into());
    }
    let new_id = site.context.entropy().uuid().to_string();
    let now_ms = upload.changed_ms;
    let write = move |txn: &mut Txn<'_>| -> std::result::Result<Option<(String, Upload)>, StoreError> {
        remove_old(txn, now_ms - KEEP_MS)?;
        let same = Expr::Is("fingerprint".into(), upload.fingerprint.as_str().into());
        if let Some(record) = txn.first(&UPLOAD, same)? {
            return Ok(Some((record.id.clone(), Upload::of(&record)?)));
        }
        if UPLOADS_MAX <= txn.count(&UPLOAD, &Expr::Is("user".into(), upload.user.as_str().into()))? {
            return Ok(None);
        }
        txn.insert(&UPLOAD, &new_id, &upload.json()?)?;
        Ok(Some((new_id.clone(), upload.clone())))
    };
    let made = visitor.db.write(write).await.map_err(SiteError::from)?;
    let too_many = || Refused::Said(StatusCode::UNPROCESSABLE_ENTITY, visitor.text("uploads_too_many"));
    let (id, upload) = made.ok_or_else(too_many)?;
    let status = if upload.parts.is_empty() { StatusCode::CREATED } else { StatusCode::OK };
    let said = json!({
        "address": format!("/site/uploads/{}", encoded(&id)), "at": upload.n_bytes(),
        "piece_bytes": upload.piece_bytes(),
    });
    Ok(answer::json(status, &said))
}

/// Returns the upload that a request describes.
///
/// Errors: the description is invalid.
fn wanted(site: &Site, visitor: &Visitor, user: &str, sent: &Fields) -> Outcome<Upload> {
    let refused = |key: &str| Refused::Said(StatusCode::UNPROCESSABLE_ENTITY, visitor.text(key));
    let (name, folder, pid) = (sent.text("name"), sent.text("folder"), sent.text("pid"));
    if name.is_empty() || NAME_BYTES_MAX < name.len().max(folder.len()) {
        return Err(refused("upload_name"));
    }
    let size: u64 = sent.text("size").parse().map_err(|_| refused("upload_name"))?;
    if site.context.blobs().settings().file_bytes < size {
        return Err(refused("upload_too_large"));
    }
    let same = [user, pid, folder, name, &size.to_string(), sent.text("modified")];
    let digest = Sha256::digest(same.join("\u{0}"));
    Ok(Upload {
        user: user.to_owned(),
        fingerprint: digest.iter().map(|it| format!("{it:02x}")).collect(),
        pid: pid.to_owned(),
        name: name.to_owned(),
        folder: folder.to_owned(),
        content_type: sent.text("type").to_owned(),
        size,
        changed_ms: site.context.clock().now_ms(),
        finishing_ms: 0,
        parts: Vec::new(),
    })
}

/// Removes expired uploads; their pieces are swept.
fn remove_old(txn: &mut Txn<'_>, before_ms: i64) -> std::result::Result<(), StoreError> {
    let old = Expr::Range("changedMs".into(), End::Open, End::Excluded(before_ms.into()));
    for record in txn.find(&UPLOAD, &Query::filter(old).window(0, REMOVED_MAX))? {
        txn.delete(&UPLOAD, &record.id)?;
    }
    Ok(())
}

/// `PUT /site/uploads/{id}?at=`
pub(crate) async fn piece(
    State(site): State<Site>,
    visitor: Visitor,
    Path(id): Path<String>,
    fields: Fields,
    body: Body,
) -> Response {
    told(&visitor, taken(&site, &visitor, &id, &fields, body).await)
}

async fn taken(site: &Site, visitor: &Visitor, id: &str, fields: &Fields, body: Body) -> Outcome<Response> {
    let user = user_proven(visitor)?;
    let upload = own(visitor, &user, id).await?;
    let at = upload.n_bytes();
    if fields.text("at").parse::<u64>() != Ok(at) {
        return Err(Refused::At(at));
    }
    let most = upload.piece_bytes().min(upload.size - at);
    let blob = kept(site, visitor, body, most).await?;
    let (key, length, now_ms) = (id.to_owned(), blob.length, site.context.clock().now_ms());
    let tenant = visitor.db.tenant().name().to_owned();
    let part = blob.clone();
    let write = move |txn: &mut Txn<'_>| -> std::result::Result<Option<u64>, StoreError> {
        let Some(mut upload) = get(txn, &key)? else { return Ok(None) };
        // Another tab may have sent the same piece meanwhile.
        if upload.n_bytes() == at && 0 < part.length {
            upload.parts.push(part.clone());
            upload.changed_ms = now_ms;
            txn.update(&UPLOAD, &key, &upload.json()?)?;
        }
        Ok(Some(upload.n_bytes()))
    };
    let n_now = visitor.db.write(write).await.map_err(SiteError::from)?;
    match n_now {
        Some(n_now) if n_now == at + length => Ok(answer::json(StatusCode::OK, &json!({"at": n_now}))),
        other => {
            drop(site.context.blobs().delete(&tenant, &blob.key).await);
            Err(other.map_or_else(|| SiteError::NotFound.into(), Refused::At))
        }
    }
}

/// Writes a piece to the store of files. Nothing is kept of a piece that breaks off.
async fn kept(site: &Site, visitor: &Visitor, body: Body, most: u64) -> Outcome<Blob> {
    let mut pieces =
        Pieces::new(&visitor.headers, body, most, site.context.limits()).map_err(SiteError::from)?;
    let mut upload = site.context.blobs().begin(visitor.db.tenant().name()).map_err(unkept)?;
    loop {
        match pieces.next().await {
            Ok(Some(piece)) => upload.write(piece).await.map_err(unkept)?,
            Ok(None) => return upload.finish().await.map_err(unkept),
            Err(refusal) => {
                upload.abort().await;
                return Err(SiteError::from(refusal).into());
            }
        }
    }
}

/// Reports a failure of the store of files.
fn unkept(error: BlobError) -> Refused {
    tracing::warn!(%error, "a piece of an upload could not be kept");
    SiteError::Failed(StatusCode::SERVICE_UNAVAILABLE).into()
}

/// `POST /site/uploads/{id}`
pub(crate) async fn finish(State(site): State<Site>, visitor: Visitor, Path(id): Path<String>) -> Response {
    told(&visitor, finished(&site, &visitor, &id).await)
}

async fn finished(site: &Site, visitor: &Visitor, id: &str) -> Outcome<Response> {
    let user = user_proven(visitor)?;
    let upload = own(visitor, &user, id).await?;
    if upload.n_bytes() != upload.size {
        return Err(Refused::At(upload.n_bytes()));
    }
    if !claimed(site, visitor, id).await? {
        return Err(Refused::At(upload.size));
    }
    let file = File { name: &upload.name, folder: &upload.folder, content_type: &upload.content_type };
    let outcome = sent_on(site, visitor, &upload.pid, &file, content(site, visitor, &upload)).await;
    let outcome = outcome.and_then(|said| done(&said));
    match outcome {
        Ok(Ok(_)) => {
            forget(site, visitor, id, &upload).await?;
            Ok(answer::json(StatusCode::OK, &json!({"name": upload.name})))
        }
        other => {
            let key = id.to_owned();
            let release = move |txn: &mut Txn<'_>| -> std::result::Result<(), StoreError> {
                let Some(upload) = get(txn, &key)? else { return Ok(()) };
                txn.update(&UPLOAD, &key, &Upload { finishing_ms: 0, ..upload }.json()?)?;
                Ok(())
            };
            visitor.db.write(release).await.map_err(SiteError::from)?;
            Err(match other {
                Ok(Err(reason)) => Refused::Said(StatusCode::UNPROCESSABLE_ENTITY, reason),
                Ok(Ok(_)) => SiteError::NotFound.into(),
                Err(error) => error.into(),
            })
        }
    }
}

/// Marks that a file is being passed on; returns false if it already is.
async fn claimed(site: &Site, visitor: &Visitor, id: &str) -> Outcome<bool> {
    let (key, now_ms) = (id.to_owned(), site.context.clock().now_ms());
    let write = move |txn: &mut Txn<'_>| -> std::result::Result<bool, StoreError> {
        let Some(upload) = get(txn, &key)? else { return Ok(false) };
        if now_ms < upload.finishing_ms + FINISH_MS {
            return Ok(false);
        }
        txn.update(&UPLOAD, &key, &Upload { finishing_ms: now_ms, ..upload }.json()?)?;
        Ok(true)
    };
    Ok(visitor.db.write(write).await.map_err(SiteError::from)?)
}

/// Returns the bytes of an upload, piece by piece.
fn content(
    site: &Site,
    visitor: &Visitor,
    upload: &Upload,
) -> impl futures_util::Stream<Item = std::result::Result<Bytes, BlobError>> + Send + 'static + use<> {
    let (blobs, tenant) = (site.context.blobs().clone(), visitor.db.tenant().name().to_owned());
    let scope = RequestScope::current();
    stream::iter(upload.parts.clone())
        .then(move |part| {
            let (blobs, tenant) = (blobs.clone(), tenant.clone());
            async move { blobs.get(&tenant, &part, None).await }
        })
        .try_flatten()
        .inspect(move |_| {
            // The browser waits for the answer and sends nothing meanwhile, so progress is noted here.
            if let Some(scope) = &scope {
                scope.note_progress();
            }
        })
}

/// Removes an upload and its pieces.
async fn forget(site: &Site, visitor: &Visitor, id: &str, upload: &Upload) -> Outcome<()> {
    let key = id.to_owned();
    let remove = move |txn: &mut Txn<'_>| txn.delete(&UPLOAD, &key).map(|_| ());
    visitor.db.write::<_, StoreError>(remove).await.map_err(SiteError::from)?;
    for part in &upload.parts {
        // Pieces that cannot be removed now are swept later.
        drop(site.context.blobs().delete(visitor.db.tenant().name(), &part.key).await);
    }
    Ok(())
}

/// `DELETE /site/uploads/{id}`
pub(crate) async fn give_up(State(site): State<Site>, visitor: Visitor, Path(id): Path<String>) -> Response {
    told(&visitor, given_up(&site, &visitor, &id).await)
}

async fn given_up(site: &Site, visitor: &Visitor, id: &str) -> Outcome<Response> {
    let user = user_proven(visitor)?;
    let upload = own(visitor, &user, id).await?;
    forget(site, visitor, id, &upload).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}
