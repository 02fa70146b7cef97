//! Depositing in the browser: drafts, the form, files, review and publication. Everything is requested from Dataverse's
//! dialect on behalf of the signed-in user, and its rights decide.
//!
//! | file | what |
//! |---|---|
//! | `description.rs` | the metadata blocks of a collection and their fields, from which the form is built |
//! | `descriptions.rs` | descriptions that were read before, until they change |
//! | `metadata.rs` | the metadata blocks of a version, for the page of a deposit |
//! | `form.rs` | the values that were typed, and their conversion to Dataverse's fields |
//! | `refusal.rs` | assigning Dataverse's faults to the inputs of the form |
//! | `view.rs` | the form as its template shows it |
//! | `edit.rs` | new deposits, and changing their metadata |
//! | `files.rs`, `upload.rs` | their files, review and publication |
//! | `resumable.rs` | files uploaded in pieces, for the script |

mod description;
pub(crate) mod descriptions;
pub(crate) mod edit;
pub(crate) mod files;
mod form;
pub(crate) mod metadata;
mod refusal;
pub(crate) mod resumable;
mod upload;
mod view;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, LOCATION};
use http::{Method, StatusCode};
use pinakes_http::{Said, answer};
use serde_json::{Value, json};

use self::description::Block;
use self::descriptions::Kept;
use crate::app::{Site, Visitor};
use crate::error::{Result, SiteError};
use crate::fields::{Fields, encoded, encoded_rest};
use crate::record::{Link, items, text};

/// Maximum number of characters of an error message that are read: one that names many fields is long.
const REASON_CHARS_MAX: usize = 20_000;
/// Maximum number of drafts that the list shows.
const DRAFTS_MAX: u32 = 100;

/// Redirects after a form was processed.
pub(crate) fn gone_on(to: &str) -> Response {
    let response = answer::with_header(answer::empty(StatusCode::SEE_OTHER), LOCATION, to);
    answer::with_header(response, CACHE_CONTROL, "no-store")
}

/// Returns the message of Dataverse's error.
pub(super) fn reason(said: &Said) -> String {
    let answer: Value = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
    let message = text(&answer, "message");
    let message = if message.is_empty() { text(&answer, "message/message") } else { message };
    if message.is_empty() {
        format!("{}", said.status)
    } else {
        message.chars().take(REASON_CHARS_MAX).collect()
    }
}

/// Returns an answer's data, or the message of an error. An answer that means nothing to the visitor is an error.
pub(super) fn done(said: &Said) -> Result<std::result::Result<Value, String>> {
    match said.json() {
        Some(answer) => Ok(Ok(answer["data"].clone())),
        None if said.status == StatusCode::UNAUTHORIZED => Err(SiteError::Forbidden),
        None if said.status.is_server_error() => Err(SiteError::Failed(said.status)),
        None => Ok(Err(reason(said))),
    }
}

impl Site {
    /// Returns the visitor's Dataverse user; `None` if the account has none yet.
    ///
    /// Errors: nobody is signed in; the dialect is not served.
    pub(super) async fn depositor(&self, visitor: &Visitor) -> Result<Option<Value>> {
        if visitor.caller.is_anonymous() {
            return Err(SiteError::SignIn);
        }
        let said = self.ask(visitor, "dataverse", Method::GET, "/api/users/:me", None).await?;
        match said.json() {
            Some(it) => Ok(Some(it["data"].clone())),
            None if said.status == StatusCode::UNAUTHORIZED => Ok(None),
            None => Err(SiteError::of_status(said.status)),
        }
    }

    /// Returns the metadata blocks that a path of Dataverse describes. They are read again only if they have changed.
    ///
    /// Errors: as [`Site::read`].
    pub(super) async fn described(&self, visitor: &Visitor, path: &str) -> Result<Arc<[Block]>> {
        let place = (visitor.db.tenant().name().to_owned(), path.to_owned());
        let kept = self.descriptions.get(&place);
        let known = kept.as_ref().map_or("", |it| it.tag.as_str());
        let heard = self.read_changed(visitor, "dataverse", path, known).await?;
        match (heard, kept) {
            (Some((said, tag)), _) => {
                let blocks: Arc<[Block]> = Block::list(&said["data"]).into();
                self.descriptions.keep(place, Kept { tag, blocks: Arc::clone(&blocks) });
                Ok(blocks)
            }
            (None, Some(kept)) => Ok(kept.blocks),
            (None, None) => Err(SiteError::of_status(StatusCode::NOT_MODIFIED)),
        }
    }
}

/// `GET /site/deposits`: the drafts that the visitor may see, or the form to become a depositor.
pub(crate) async fn list(State(site): State<Site>, visitor: Visitor) -> Result<Response> {
    let page = drafts(&site, &visitor, None).await;
    site.shown(&visitor, page)
}

async fn drafts(site: &Site, visitor: &Visitor, refused: Option<(String, &Fields)>) -> Result<Response> {
    let Some(me) = site.depositor(visitor).await? else { return joining(site, visitor, refused) };
    let path = format!(
        "/api/search?q=*&type=dataset&fq=publicationStatus:Draft&sort=date&order=desc&per_page={DRAFTS_MAX}"
    );
    let said = site.read(visitor, "dataverse", &path).await?;
    let row = |it: &Value| {
        let pid = text(it, "global_id");
        let changed = text(it, "updatedAt");
        vec![
            Link::to(text(it, "name"), format!("/site/deposit/{}", encoded_rest(&pid))),
            Link::plain(pid.clone()),
            Link::plain(text(it, "name_of_dataverse")),
            Link::plain(changed.get(..10).unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = items(&said, "data/items").iter().map(row).collect();
    let page = json!({
        "title_key": "my_deposits", "me": text(&me, "displayName"), "rows": rows,
        "n_all": said["data"]["total_count"], "join": Value::Null, "refused": Value::Null,
    });
    site.page(visitor, StatusCode::OK, "deposits.html", page)
}

/// Returns the form for visitors who have no Dataverse user yet.
fn joining(site: &Site, visitor: &Visitor, refused: Option<(String, &Fields)>) -> Result<Response> {
    let user = visitor.caller.user.as_deref();
    let known = |of: fn(&pinakes_accounts::User) -> Option<String>| user.and_then(of).unwrap_or_default();
    let join = match refused.as_ref() {
        Some((_, sent)) => json!({
            "first": sent.text("first"), "last": sent.text("last"), "email": sent.text("email"),
        }),
        None => json!({
            "first": known(|it| it.first_name.clone()), "last": known(|it| it.last_name.clone()),
            "email": known(|it| it.email.clone()),
        }),
    };
    let status = if refused.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = json!({
        "title_key": "my_deposits", "me": "", "rows": [], "n_all": 0, "join": join,
        "refused": refused.map(|it| it.0),
    });
    site.page(visitor, status, "deposits.html", page)
}

/// `POST /site/deposits`: creates a Dataverse user for the account.
pub(crate) async fn join(State(site): State<Site>, visitor: Visitor, body: Body) -> Result<Response> {
    let page = joined(&site, &visitor, body).await;
    site.shown(&visitor, page)
}

async fn joined(site: &Site, visitor: &Visitor, body: Body) -> Result<Response> {
    let sent = site.form(visitor, body).await?;
    visitor.proven(&sent)?;
    let wanted = json!({
        "firstName": sent.text("first"), "lastName": sent.text("last"), "emailAddress": sent.text("email"),
        "termsAccepted": sent.text("terms") == "yes",
    });
    let said = site.ask(visitor, "dataverse", Method::POST, "/api/users/register", Some(&wanted)).await?;
    match done(&said)? {
        Ok(_) => Ok(gone_on("/site/deposits")),
        Err(message) => joining(site, visitor, Some((message, &sent))),
    }
}

/// Returns Dataverse's path for the dataset with a persistent identifier.
pub(super) fn path_of(pid: &str, rest: &str) -> String {
    format!("/api/datasets/:persistentId{rest}?persistentId={}", encoded(pid))
}
