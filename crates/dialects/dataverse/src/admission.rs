//! Admission of requests: prepares the tenant, authenticates the caller, and refuses parts of the API that are closed.

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

/// Returns the call of a request, with its tenant and caller.
///
/// Errors: an unknown tenant; an invalid credential (401); a part of the API that is closed (503).
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

/// Makes sure that the tenant has its root collection, roles and licences. Costs nothing once they were seen.
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

/// Age, in milliseconds, at which the recorded time of a user's last API use is updated (an hour).
const NOTED_MS: i64 = 3_600_000;

/// Records that a user changes something with an API token: at most once an hour, so that few requests cause this
/// write.
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
