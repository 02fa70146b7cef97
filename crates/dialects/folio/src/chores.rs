//! Recurring maintenance of a tenant's data: each chore is a route that a timer, or any caller with the permission,
//! calls.
//!
//! A chore reads what is due and processes it in small transactions, so that it never holds the tenant's writer for
//! long, and one record that fails does not stop the others.

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{StoreError, Txn};

use crate::circulation::fees::actual_cost;
use crate::circulation::{aging, anonymise, notices, requests};
use crate::platform::app::Call;
use crate::platform::chore::{Chore, Parts};
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::CHORE_RECORDS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;

/// Chores with the route and the permission of each.
const CHORES: [(&str, &str, Chore); 9] = [
    ("/circulation/scheduled-age-to-lost", "circulation.scheduled-age-to-lost.post", aging::age),
    (
        "/circulation/scheduled-age-to-lost-fee-charging",
        "circulation.scheduled-age-to-lost-fee-charging.post",
        aging::charge,
    ),
    (
        "/circulation/actual-cost-expiration-by-timeout",
        "circulation.actual-cost-expiration-by-timeout.post",
        expire_actual_costs,
    ),
    (
        "/circulation/scheduled-anonymize-processing",
        "circulation.scheduled-anonymize-processing.post",
        anonymise::run,
    ),
    (
        "/circulation/loan-scheduled-notices-processing",
        "circulation.loan-scheduled-notices-processing.post",
        notices::send_due,
    ),
    (
        "/circulation/request-scheduled-notices-processing",
        "circulation.request-scheduled-notices-processing.post",
        notices::send_due,
    ),
    (
        "/circulation/notice-session-expiration-by-timeout",
        "circulation.notice-session-expiration-by-timeout.post",
        notices::end_old_sessions,
    ),
    (notices::mail::DELIVERY, "email.delayed-task.retry-failed-emails.post", notices::deliver),
    (
        "/scheduled-request-expiration",
        "circulation-storage.scheduled-request-expiration.post",
        expire_requests,
    ),
];

/// Returns the chore that a route runs.
pub(crate) fn of_path(path: &str) -> Option<Chore> {
    CHORES.iter().find(|it| it.0 == path).map(|it| it.2)
}

/// Adds the routes of chores.
pub(crate) fn routes(mut routes: Routes) -> Routes {
    for (path, permission, chore) in CHORES {
        routes = routes.post(path, Access::to(permission), move |call| run(call, chore));
    }
    routes
}

async fn run(call: Call, chore: Chore) -> Answer {
    let parts = Parts {
        tenant: call.db().tenant().clone(),
        now_ms: call.app.now_ms(),
        user: call.asker.user_id(),
        entropy: call.app.context.entropy().clone(),
        collections: call.app.collections,
    };
    let done = tokio::task::spawn_blocking(move || chore(&parts)).await;
    done.map_err(|error| StoreError::Damaged(format!("a chore ended: {error}")))??;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

fn expire_actual_costs(parts: &Parts) -> Result<(), FolioError> {
    loop {
        let (now_ms, entropy, collections) = (parts.now_ms, parts.entropy.clone(), parts.collections);
        let n = parts.tenant.write_blocking(move |txn: &mut Txn<'_>| {
            actual_cost::expire(txn, &Writer::new(now_ms, None, entropy.clone(), collections), CHORE_RECORDS)
        })?;
        if n < CHORE_RECORDS {
            return Ok(());
        }
    }
}

fn expire_requests(parts: &Parts) -> Result<(), FolioError> {
    let (now_ms, user, entropy) = (parts.now_ms, parts.user.clone(), parts.entropy.clone());
    let collections = parts.collections;
    parts.tenant.write_blocking(move |txn: &mut Txn<'_>| {
        requests::expire(txn, &Writer::new(now_ms, user.clone(), entropy.clone(), collections))
    })
}
