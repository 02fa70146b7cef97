//! Uploads in pieces, for the script of the files' page: a piece that came stays when the connection breaks, and whoever
//! chooses the same file again goes on behind it.
//!
//! | request | what |
//! |---|---|
//! | `POST /site/uploads` | begins one, or finds the one of the same file that was begun before |
//! | `PUT /site/uploads/{id}?at=` | takes the piece that begins at that byte |
//! | `POST /site/uploads/{id}` | hands the whole file to Dataverse's dialect, by whose rules it becomes one of the deposit's |
//! | `DELETE /site/uploads/{id}` | gives it up |
//!
//! Pieces lie in the store of files. A record names them, so that they are not swept, and is removed with the upload or a
//! week after its last piece.

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

/// An upload that is under way.
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

/// Uploads that one account may have under way.
const UPLOADS_MAX: u64 = 100;
/// How long an upload is kept after its last piece (a week).
const KEEP_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Uploads out of date that are removed when another one begins.
const REMOVED_MAX: u64 = 100;
/// Least bytes of a piece (8 MiB).
const PIECE_BYTES: u64 = 8 << 20;
/// Most pieces of an upload: those of large files are larger.
const PIECES_MAX: u64 = 1_000;
/// How long the handing over of a file may take before it may be tried again (an hour).
const FINISH_MS: i64 = 60 * 60 * 1000;
/// Longest name of a file or folder, in bytes.
const NAME_BYTES_MAX: usize = 1_000;

/// What is kept of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Upload {
    /// Whose it is.
    user: String,
    /// What tells the file from others of the account and the deposit.
    fingerprint: String,
    pid: String,
    name: String,
    folder: String,
    content_type: String,
    size: u64,
    changed_ms: i64,
    /// When the handing over began; 0 while none is under way.
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

/// Why something is not done, as the script is told it.
enum Refused {
    /// A page would say it too.
    Site(SiteError),
    /// A sentence, with the status that goes with it.
    Said(StatusCode, String),
    /// The upload is elsewhere: at this byte.
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

/// Whose uploads the visitor's are.
fn user_of(visitor: &Visitor) -> Outcome<String> {
    let user = visitor.caller.user.as_deref().ok_or(SiteError::SignIn)?;
    Ok(user.uuid.to_string())
}

/// The same of a request that shows the token of a form.
fn user_proven(visitor: &Visitor) -> Outcome<String> {
    let given = visitor.headers.get("x-csrf-token").and_then(|it| it.to_str().ok()).unwrap_or_default();
    visitor.proven_by(given)?;
    user_of(visitor)
}

/// The visitor's upload of that id.
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

/// The upload that a request asks for.
///
/// Errors: it says what cannot be so.
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

/// Removes uploads that nobody goes on with; what they held is swept.
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

/// A piece in the store of files. Nothing is left of one that broke off.
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

/// The store of files failed.
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

/// Marks that a file is being handed over; false where it is already.
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

/// The bytes of an upload, piece after piece.
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
            // The browser waits for an answer and sends nothing meanwhile.
            if let Some(scope) = &scope {
                scope.note_progress();
            }
        })
}

/// Removes an upload and what it held.
async fn forget(site: &Site, visitor: &Visitor, id: &str, upload: &Upload) -> Outcome<()> {
    let key = id.to_owned();
    let remove = move |txn: &mut Txn<'_>| txn.delete(&UPLOAD, &key).map(|_| ());
    visitor.db.write::<_, StoreError>(remove).await.map_err(SiteError::from)?;
    for part in &upload.parts {
        // What cannot be removed now is swept.
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
