//! How a request comes in: its tenant is made ready, who asks is found out, what is closed stays closed.

use std::net::IpAddr;

use axum::body::Body;
use http::Method;
use http::request::Parts;
use pinakes_http::{Db, RequestScope};
use pinakes_store::Txn;

use crate::app::{Call, Dataverse};
use crate::error::ApiError;
use crate::query::Query;
use crate::{bootstrap, clock, credentials, files, gate, harvest, users};

/// The call that a request makes: finds the tenant and who asks.
///
/// Errors: an unknown tenant; a credential that stands for nobody (401); a part of the API that is closed (503).
pub(crate) async fn admit(
    app: Dataverse,
    params: Vec<(String, String)>,
    parts: Parts,
    body: Body,
) -> Result<Call, ApiError> {
    let db = app.context.db(&parts.headers).await?;
    prepare(&app, &db).await?;
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let peer: Option<IpAddr> =
        RequestScope::current().and_then(|it| it.peer()).map(|it| it.ip().to_canonical());
    let asker = credentials::of(&app, &db, &parts, &query, peer).await?;
    let call = Call::new((app, db, asker), (params, query), parts, body);
    gate::check(&call, call.version)?;
    if call.method != Method::GET && call.method != Method::HEAD {
        note_api_use(&call).await?;
    }
    Ok(call)
}

/// Sees to it that the tenant has its root collection, roles and licences; free once it was seen.
async fn prepare(app: &Dataverse, db: &Db) -> Result<(), ApiError> {
    let name = db.tenant().name();
    if app.is_prepared(name) {
        return Ok(());
    }
    bootstrap::prepare(app, db).await?;
    files::ingest::resume(app, db).await?;
    harvest::run::resume(app, db).await?;
    app.note_prepared(name);
    Ok(())
}

/// How old the noted time of a user's last use may be before it is noted anew, in milliseconds (an hour).
const NOTED_MS: i64 = 3_600_000;

/// Notes that a user changes something by an API token: at most once an hour, so that few requests write it.
async fn note_api_use(call: &Call) -> Result<(), ApiError> {
    let Some(user) = call.asker.user.as_ref().filter(|_| call.asker.token.is_some()) else { return Ok(()) };
    let noted_ms = user.last_api_use_time.as_deref().and_then(clock::parse);
    let now_ms = call.app.now_ms();
    if noted_ms.is_some_and(|it| now_ms - it < NOTED_MS) {
        return Ok(());
    }
    let id = user.id;
    let write = move |txn: &mut Txn<'_>| -> Result<(), ApiError> {
        let Some(mut user) = users::by_id(txn, id)? else { return Ok(()) };
        user.last_api_use_time = Some(clock::instant(now_ms));
        users::put(txn, &user)
    };
    call.db().write(write).await
}
