//! What a patron borrows or returns in one visit is reported in one message: when the desk ends the visit, or some time
//! after the last item.

use std::collections::BTreeMap;

use http::StatusCode;
use pinakes_http::answer;
use pinakes_store::{Column, End, Expr, Index, Kind, Query, Search, Txn, Type, Value as Wanted};
use serde_json::{Value, json};

use super::context;
use crate::circulation::loans::LOANS;
use crate::circulation::notices::sending::{LoanEvent, all_with, notices_of, parties, policy, send};
use crate::circulation::records::{Records, object, text};
use crate::platform::app::Call;
use crate::platform::chore::Parts;
use crate::platform::collection::{self, Collection, Kinds, Schema, Writer};
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::SESSION_MINUTES;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::users::user::USERS;

/// `/patron-action-session-storage/patron-action-sessions`: one record per loan, until the message is created.
pub(crate) static SESSIONS: Collection = Collection {
    table: "patron_action_session",
    permission: "patron-action-session-storage.patron-action-sessions",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("patronId", Type::Text),
            Column::one("loanId", Type::Text),
            Column::one("actionType", Type::Text),
            Column::at("createdDate", "metadata.createdDate", Type::Instant),
        ],
        indexes: &[Index::on(&["patronId"]), Index::on(&["createdDate"])],
        search: Search::Folded,
        ..Kind::named("folio_patron_session")
    },
    schema: Schema {
        required: &["patronId", "loanId", "actionType"],
        types: &[("patronId", Kinds::Uuid), ("loanId", Kinds::Uuid)],
        ..Schema::OPEN
    },
    ..Collection::named(
        "/patron-action-session-storage/patron-action-sessions",
        "patronActionSessions",
        "folio_patron_session",
    )
};

pub(super) fn routes(routes: Routes) -> Routes {
    routes.post(
        "/circulation/end-patron-action-session",
        Access::to("circulation.end-patron-action-session.post"),
        end,
    )
}

fn action_of(event: LoanEvent) -> &'static str {
    if event == LoanEvent::CheckIn { "Check-in" } else { "Check-out" }
}

fn event_of(action: &str) -> LoanEvent {
    if action == "Check-in" { LoanEvent::CheckIn } else { LoanEvent::CheckOut }
}

/// Adds a loan to the visit.
pub(super) fn note(
    txn: &mut Txn<'_>,
    writer: &Writer,
    event: LoanEvent,
    loan: &Value,
) -> Result<(), FolioError> {
    let known = all_with(txn, &SESSIONS.kind, "patronId", text(loan, "userId"))?;
    let is_noted =
        |it: &Value| text(it, "loanId") == text(loan, "id") && text(it, "actionType") == action_of(event);
    if known.iter().any(is_noted) {
        return Ok(());
    }
    let body = json!({"patronId": loan["userId"], "loanId": loan["id"], "actionType": action_of(event)});
    collection::insert(txn, writer, &SESSIONS, object(&body)).map(drop)
}

/// Ends visits: `{"endSessions":[{"patronId","actionType"}]}`.
async fn end(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let ended: Vec<(String, String)> = body["endSessions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|it| (text(it, "patronId").to_owned(), text(it, "actionType").to_owned()))
        .collect();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let writer = writer();
        ended.iter().try_for_each(|(patron, action)| end_one(txn, &writer, patron, action))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Ends a patron's visit: creates one message per template, with all its loans.
fn end_one(txn: &mut Txn<'_>, writer: &Writer, patron: &str, action: &str) -> Result<(), FolioError> {
    let mut known = Records::default();
    let sessions = all_with(txn, &SESSIONS.kind, "patronId", patron)?;
    let sessions: Vec<Value> = sessions.into_iter().filter(|it| text(it, "actionType") == action).collect();
    let user = known.get(txn, &USERS, patron)?;
    let mut messages: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for session in &sessions {
        txn.delete(&SESSIONS.kind, text(session, "id"))?;
        let Some(loan) = known.at(txn, &LOANS, session, "loanId")? else { continue };
        let Some((book, user)) = parties(txn, &mut known, &loan)? else { continue };
        let Some(policy) = policy(txn, &mut known, &book, text(&user, "patronGroup"))? else { continue };
        for notice in notices_of(&policy, "loanNotices", event_of(action).name()) {
            let shown = context::of_loan(txn, &mut known, &book, &loan)?;
            messages.entry(text(&notice, "templateId").to_owned()).or_default().push(shown);
        }
    }
    let Some(user) = user else { return Ok(()) };
    for (template, loans) in messages {
        let mut context = loans.first().cloned().unwrap_or_default();
        context["loans"] = loans.into();
        send(txn, writer, &user, &template, context)?;
    }
    Ok(())
}

/// Ends visits that the desk did not end.
pub(crate) fn end_old_sessions(parts: &Parts) -> Result<(), FolioError> {
    let until = parts.now_ms - SESSION_MINUTES * 60_000;
    let old = parts.tenant.read_blocking(move |view| -> Result<Vec<String>, FolioError> {
        let until = End::Included(Wanted::Instant(until));
        let old = Query::filter(Expr::Range("createdDate".into(), End::Open, until));
        let mut visits: Vec<String> = Vec::new();
        for record in view.find(&SESSIONS.kind, &old)? {
            let session = record.json()?;
            let visit = format!("{} {}", text(&session, "patronId"), text(&session, "actionType"));
            if !visits.contains(&visit) {
                visits.push(visit);
            }
        }
        Ok(visits)
    })?;
    parts.each("a visit is not ended", old, |txn, writer, visit| {
        let (patron, action) = visit.split_once(' ').unwrap_or((visit, ""));
        end_one(txn, writer, patron, action)
    })
}
