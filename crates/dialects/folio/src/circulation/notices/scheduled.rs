//! Notices that are made later: before, at or after a due date, the end of a request, or what happened.

use jiff::Timestamp;
use pinakes_store::{End, Expr, Query, Txn, Value as Wanted};
use serde_json::Value;

use super::context;
use crate::circulation::fees::ACCOUNTS;
use crate::circulation::fees::action_records::FEE_FINE_ACTIONS;
use crate::circulation::fees::charged::CLOSED;
use crate::circulation::loan_policy::Period;
use crate::circulation::loans::{self, LOANS};
use crate::circulation::moment;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::notices::planned::{DUE_DATE, SCHEDULED};
use crate::circulation::notices::sending::{parties, send};
use crate::circulation::records::{Records, object, text};
use crate::circulation::requests::{self, REQUESTS};
use crate::platform::chore::Parts;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::FolioError;
use crate::platform::limits::CHORE_RECORDS;

/// Makes the notices whose time has come.
pub(crate) fn send_due(parts: &Parts) -> Result<(), FolioError> {
    let now_ms = parts.now_ms;
    loop {
        let due = parts.tenant.read_blocking(move |view| -> Result<Vec<String>, FolioError> {
            let until = End::Included(Wanted::Instant(now_ms));
            let due = Query::filter(Expr::Range("nextRunTime".into(), End::Open, until));
            let due = Query { limit: Some(CHORE_RECORDS), ..due };
            Ok(view.find(&SCHEDULED.kind, &due)?.into_iter().map(|it| it.id).collect())
        })?;
        let n = due.len() as u64;
        // Each that was done is gone or lies in the future.
        parts.each("a scheduled notice is not made", due, make)?;
        if n < CHORE_RECORDS {
            return Ok(());
        }
    }
}

/// Makes one notice, and plans the next one where it recurs.
fn make(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    let Some(record) = txn.get(&SCHEDULED.kind, id)? else { return Ok(()) };
    let planned = record.json()?;
    let is_told = tell(txn, writer, &planned)?;
    let now = moment::from_ms(writer.now_ms);
    let next = next_run(&planned, now).filter(|_| is_told);
    let Some(next) = next else {
        txn.delete(&SCHEDULED.kind, id)?;
        return Ok(());
    };
    let mut body = object(&planned);
    body.insert("nextRunTime".into(), moment::wire(next).into());
    collection::put(txn, writer, &SCHEDULED, id, body, Missing::Refuse, Lock::Ignored).map(drop)
}

/// When a notice that recurs is made next: behind `now`, however long nobody looked. One before a due date ends with it.
fn next_run(planned: &Value, now: Timestamp) -> Option<Timestamp> {
    let every = Period::of(&planned["noticeConfig"]["recurringPeriod"]).ok().flatten()?;
    let mut next = moment::parse(text(planned, "nextRunTime"))?;
    // A loan that is a year behind with a notice each minute does not hold the writer.
    for _ in 0..1_000 {
        next = every.after(next)?;
        if now < next {
            return Some(next);
        }
    }
    every.after(now)
}

/// Tells it, unless what it is about is over. Gives false when there is nothing more to tell.
fn tell(txn: &mut Txn<'_>, writer: &Writer, planned: &Value) -> Result<bool, FolioError> {
    let mut known = Records::default();
    let template = text(planned, "noticeConfig.templateId");
    if !text(planned, "requestId").is_empty() {
        let Some(request) = known.at(txn, &REQUESTS, planned, "requestId")? else { return Ok(false) };
        let has_ended = ["Request expiration", "Hold expiration"].contains(&text(planned, "triggeringEvent"));
        if !requests::is_open(text(&request, "status")) && !has_ended {
            return Ok(false);
        }
        let Some(user) = known.at(txn, &USERS, &request, "requesterId")? else { return Ok(false) };
        let item = known.at(txn, &ITEMS, &request, "itemId")?;
        let book = item.map(|it| crate::circulation::book::Book::of(txn, &mut known, it)).transpose()?;
        let context = context::of_request(txn, &mut known, book.as_ref(), &request)?;
        send(txn, writer, &user, template, context)?;
        return Ok(requests::is_open(text(&request, "status")));
    }
    let Some(loan) = known.at(txn, &LOANS, planned, "loanId")? else { return Ok(false) };
    let Some((book, user)) = parties(txn, &mut known, &loan)? else { return Ok(false) };
    if let Some(action) = known.at(txn, &FEE_FINE_ACTIONS, planned, "feeFineActionId")? {
        let Some(account) = known.at(txn, &ACCOUNTS, &action, "accountId")? else { return Ok(false) };
        if text(&account, "status.name") == CLOSED {
            return Ok(false);
        }
        let mut context = context::of_loan(txn, &mut known, &book, &loan)?;
        context::add_fee(&mut context, &account, &action);
        send(txn, writer, &user, template, context)?;
        return Ok(true);
    }
    let is_lost = matches!(book.status(), "Declared lost" | "Claimed returned" | "Aged to lost");
    let is_of_due_date = text(planned, "triggeringEvent") == DUE_DATE;
    if !loans::is_open(&loan) || is_of_due_date && is_lost {
        return Ok(false);
    }
    let context = context::of_loan(txn, &mut known, &book, &loan)?;
    send(txn, writer, &user, template, context)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn next_runs() {
        let days = |n: i64| json!({"duration": n, "intervalId": "Days"});
        let planned = json!({
            "nextRunTime": "2026-03-11T12:00:00Z", "noticeConfig": {"recurringPeriod": days(2)},
        });
        let now: Timestamp = "2026-03-16T00:00:00Z".parse().unwrap();
        assert_eq!(next_run(&planned, now).map(moment::wire).as_deref(), Some("2026-03-17T12:00:00.000Z"));
        assert_eq!(next_run(&json!({"nextRunTime": "2026-03-11T12:00:00Z"}), now), None);
    }
}
