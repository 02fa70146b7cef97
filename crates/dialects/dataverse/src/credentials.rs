//! Authentication of requests: API tokens, signed URLs, private URLs (section 0.3 of the contract).

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use pinakes_http::{Asking, Db, Inside, RequestScope};
use pinakes_store::{View, Weight};

use crate::app::Dataverse;
use crate::asker::{Asker, GUEST};
use crate::error::ApiError;
use crate::query::Query;
use crate::tokens::{self, Bearer};
use crate::{signing, users};

/// Header that carries the API token.
const KEY_HEADER: &str = "x-dataverse-key";

/// Message for an invalid token, or for one that is not valid at this path.
const BAD_KEY: &str = "Bad API key";

/// Returns the token of a request: header, then parameter, then `Authorization: Bearer`.
fn token_of<'a>(parts: &'a Parts, query: &'a Query) -> Option<&'a str> {
    let header = |name| parts.headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
    let bearer = || header("authorization")?.strip_prefix("Bearer ").map(str::trim);
    let named = header(KEY_HEADER).filter(|it| !it.is_empty()).or_else(|| query.filled("key"));
    named.or_else(bearer)
}

/// Returns whether a path is `/api/access/datafile/{id}`, the only one for which the token of an anonymous preview is
/// valid. Everything else about a draft could name its authors; the page of the preview has a route of its own, which
/// withholds them.
fn is_download(path: &str) -> bool {
    let mut parts = path.split('/').filter(|it| !it.is_empty() && *it != "v1");
    let head = [parts.next(), parts.next(), parts.next()];
    head == [Some("api"), Some("access"), Some("datafile")]
        && parts.next().is_some()
        && parts.next().is_none()
}

/// Authenticates the caller.
///
/// Errors: 401 `Bad API key` for an invalid token, or for an anonymous preview at a path for which it is not valid; 401
/// for an invalid signed URL.
pub(crate) async fn of(
    app: &Dataverse,
    db: &Db,
    parts: &Parts,
    query: &Query,
    peer: Option<IpAddr>,
) -> Result<Asker, ApiError> {
    let guest = Asker { peer, ..Asker::default() };
    // The paths of builtin users have a parameter of the same name that is not a token.
    let is_other_key = parts.uri.path().contains("/builtin-users");
    let is_signed = query.get("until").is_some() && query.get("token").is_some();
    let asker = match token_of(parts, query).filter(|_| !is_other_key) {
        // Tokens of this dialect contain no dots.
        Some(token) if parts.extensions.get::<Inside>().is_some() && token.contains('.') => {
            with_account(app, db, token, guest).await?
        }
        Some(token) => {
            let mut asker = with_token(app, db, token, guest).await?;
            if asker.preview.is_some_and(|it| it.anonymized) && !is_download(parts.uri.path()) {
                return Err(ApiError::unauthorized(BAD_KEY));
            }
            // Some clients send their token together with a URL that was signed for them.
            if is_signed && let Ok(name) = signing::verified_user(app, db.tenant().name(), parts, query) {
                asker.is_signed = asker.user.as_ref().is_some_and(|it| it.name == name);
            }
            asker
        }
        None if is_signed => {
            let user = signing::verified_user(app, db.tenant().name(), parts, query)?;
            if user == GUEST {
                return Ok(Asker { is_signed: true, ..guest });
            }
            let found = db.read(Weight::Point, move |view| users::by_name(view, &user)).await?;
            let user = found.filter(|it| !it.deactivated);
            let user = user.ok_or_else(|| ApiError::unauthorized("Bad signed URL"))?;
            Asker { user: Some(Arc::new(user)), is_signed: true, ..guest }
        }
        None => guest,
    };
    if let (Some(scope), Some(user)) = (RequestScope::current(), &asker.user) {
        scope.set_username(&user.name);
    }
    Ok(asker)
}

/// Returns the user of the account that is signed in on the website; a guest if the account has no user here yet.
///
/// Errors: 401 for an expired session or a deactivated user.
async fn with_account(app: &Dataverse, db: &Db, token: &str, guest: Asker) -> Result<Asker, ApiError> {
    let Asking::Caller(caller) = app.context.asking_with(db, token).await? else {
        return Err(ApiError::unauthorized(BAD_KEY));
    };
    let Some(account) = caller.user else { return Ok(guest) };
    let id = account.id.clone();
    let user = db.read(Weight::Point, move |view| users::by_account(view, &id)).await?;
    if user.as_ref().is_some_and(|it| it.deactivated) {
        return Err(ApiError::unauthorized("User deactivated"));
    }
    Ok(Asker { user: user.map(Arc::new), account: Some(account), ..guest })
}

/// Returns the caller with this token. Errors: 401 `Bad API key`.
pub(crate) async fn with_token(
    app: &Dataverse,
    db: &Db,
    token: &str,
    guest: Asker,
) -> Result<Asker, ApiError> {
    let (id, now_ms) = (tokens::id_of(token), app.now_ms());
    let find = move |view: &mut View<'_>| -> Result<_, ApiError> {
        Ok(match tokens::bearer(view, &id, now_ms)? {
            Some(Bearer::User(user)) => users::by_id(view, user)?.map(|it| (Some(it), None)),
            Some(Bearer::Preview(preview)) => Some((None, Some(preview))),
            None => None,
        })
    };
    match db.read(Weight::Point, find).await? {
        Some((Some(user), _)) if user.deactivated => Err(ApiError::unauthorized("User deactivated")),
        Some((user, preview)) => {
            Ok(Asker { user: user.map(Arc::new), preview, token: Some(token.to_owned()), ..guest })
        }
        None => Err(ApiError::unauthorized(BAD_KEY)),
    }
}
