//! Notices that are made later: before, at or after a due date, the end of a request, or what happened.

use jiff::Timestamp;
use pinakes_store::{Column, End, Expr, Index, Kind, Query, Txn, Type, Value as Wanted};
use serde_json::{Value, json};

use super::context;
use crate::circulation::fees::accounts::CLOSED;
use crate::circulation::fees::{ACCOUNTS, FEE_FINE_ACTIONS};
use crate::circulation::loan_policy::Period;
use crate::circulation::loans::{self, LOANS};
use crate::circulation::moment;
use crate::circulation::neighbours::{ITEMS, USERS};
use crate::circulation::notices::sending::{LoanEvent, RequestEvent, all_with, notices_of, parties, send};
use crate::circulation::records::{Records, object, text};
use crate::circulation::requests::{self, REQUESTS};
use crate::platform::chore::Parts;
use crate::platform::collection::{self, Collection, Lock, Missing, Schema, Writer};
use crate::platform::error::FolioError;
use crate::platform::limits::CHORE_RECORDS;

/// `/scheduled-notice-storage/scheduled-notices`.
pub(crate) static SCHEDULED: Collection = Collection {
    table: "scheduled_notice",
    permission: "scheduled-notice-storage.scheduled-notices",
    kind: Kind {
        id_path: Some("id"),
        columns: &[
            Column::one("loanId", Type::Text),
            Column::one("requestId", Type::Text),
            Column::one("nextRunTime", Type::Instant),
            Column::one("triggeringEvent", Type::Folded),
        ],
        indexes: &[Index::on(&["loanId"]), Index::on(&["requestId"]), Index::on(&["nextRunTime"])],
        ..Kind::named("folio_scheduled_notice")
    },
    schema: Schema { required: &["nextRunTime", "noticeConfig"], ..Schema::OPEN },
    ..Collection::named(
        "/scheduled-notice-storage/scheduled-notices",
        "scheduledNotices",
        "folio_scheduled_notice",
    )
};

const DUE_DATE: &str = "Due date";

/// A notice to be made later.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Who it is about: `loanId`, `requestId`, `feeFineActionId`, `recipientUserId`.
    ids: Value,
    event: String,
    notice: Value,
    /// What the policy's times are counted from; the moment of the event when there is none.
    anchor: Option<Timestamp>,
}

impl Plan {
    pub(super) fn of_loan(event: &str, notice: &Value, loan: &Value) -> Self {
        let ids = json!({"loanId": loan["id"], "recipientUserId": loan["userId"]});
        Self { ids, event: event.to_owned(), notice: notice.clone(), anchor: None }
    }

    pub(super) fn of_request(event: &str, notice: &Value, request: &Value) -> Self {
        let ids = json!({"requestId": request["id"], "recipientUserId": request["requesterId"]});
        Self { ids, event: event.to_owned(), notice: notice.clone(), anchor: None }
    }

    pub(super) fn of_fee(event: &str, notice: &Value, loan: &Value, action: &Value) -> Self {
        let ids = json!({
            "loanId": loan["id"], "feeFineActionId": action["id"], "recipientUserId": loan["userId"],
        });
        Self { ids, event: event.to_owned(), notice: notice.clone(), anchor: None }
    }

    fn at(self, anchor: Timestamp) -> Self {
        Self { anchor: Some(anchor), ..self }
    }

    /// When the notice is made first; `None` for at once.
    pub(super) fn first_run(&self, now_ms: i64) -> Option<Timestamp> {
        let options = &self.notice["sendOptions"];
        let anchor = self.anchor.unwrap_or(moment::from_ms(now_ms));
        let by = Period::of(&options["sendBy"]).ok().flatten();
        match (text(options, "sendHow"), by) {
            ("Before", Some(by)) => by.before(anchor),
            ("After", Some(by)) => by.after(anchor),
            _ => self.anchor,
        }
    }

    /// Keeps the plan.
    pub(super) fn store(&self, txn: &mut Txn<'_>, writer: &Writer, at: Timestamp) -> Result<(), FolioError> {
        let options = &self.notice["sendOptions"];
        let mut body = object(&self.ids);
        body.insert("nextRunTime".into(), moment::wire(at).into());
        body.insert("triggeringEvent".into(), self.event.as_str().into());
        let recurs = text(&self.notice, "frequency") != "One time";
        let every = options.get("sendEvery").filter(|_| recurs).cloned();
        body.insert(
            "noticeConfig".into(),
            json!({
                "timing": options["sendHow"], "recurringPeriod": every, "templateId": self.notice["templateId"],
                "format": self.notice["format"], "sendInRealTime": self.notice["realTime"],
            }),
        );
        collection::insert(txn, writer, &SCHEDULED, body).map(drop)
    }
}

/// Plans the notices of a loan's due date; those of an earlier one go.
pub(super) fn plan_due_date(
    txn: &mut Txn<'_>,
    writer: &Writer,
    loan: &Value,
    policy: &Value,
    event: LoanEvent,
) -> Result<(), FolioError> {
    if event != LoanEvent::CheckOut {
        for planned in all_with(txn, &SCHEDULED.kind, "loanId", text(loan, "id"))? {
            if text(&planned, "triggeringEvent") == DUE_DATE {
                txn.delete(&SCHEDULED.kind, text(&planned, "id"))?;
            }
        }
    }
    let Some(due) = moment::parse(text(loan, "dueDate")) else { return Ok(()) };
    for notice in notices_of(policy, "loanNotices", DUE_DATE) {
        let plan = Plan::of_loan(DUE_DATE, &notice, loan).at(due);
        // What should have been told before a loan that is shorter is not told.
        let is_past = |it: &Timestamp| it.as_millisecond() < writer.now_ms;
        let is_before = text(&notice, "sendOptions.sendHow") == "Before";
        match plan.first_run(writer.now_ms) {
            Some(at) if is_before && is_past(&at) => {}
            Some(at) => plan.store(txn, writer, at)?,
            None => {}
        }
    }
    Ok(())
}

/// Plans the notices of a request's end: of its wait when it is made, of the hold shelf when the item is there.
pub(super) fn plan_request_ends(
    txn: &mut Txn<'_>,
    writer: &Writer,
    request: &Value,
    policy: &Value,
    event: RequestEvent,
) -> Result<(), FolioError> {
    let (end, field) = match event {
        RequestEvent::Paged | RequestEvent::Held | RequestEvent::Recalled => {
            (RequestEvent::Expired, "requestExpirationDate")
        }
        RequestEvent::Available => (RequestEvent::HoldExpired, "holdShelfExpirationDate"),
        _ => return Ok(()),
    };
    let Some(date) = moment::parse(text(request, field)) else { return Ok(()) };
    for notice in notices_of(policy, "requestNotices", end.name()) {
        let plan = Plan::of_request(end.name(), &notice, request).at(date);
        if let Some(at) = plan.first_run(writer.now_ms) {
            plan.store(txn, writer, at)?;
        }
    }
    Ok(())
}

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
    use super::*;

    #[test]
    fn first_and_next_runs() {
        let due: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        let first = |how: &str, by: Value| {
            let notice = json!({"sendOptions": {"sendHow": how, "sendBy": by}});
            let plan = Plan::of_loan(DUE_DATE, &notice, &json!({})).at(due);
            plan.first_run(0).map(moment::wire)
        };
        let days = |n: i64| json!({"duration": n, "intervalId": "Days"});
        assert_eq!(first("Upon At", json!(null)).as_deref(), Some("2026-03-10T12:00:00.000Z"));
        assert_eq!(first("Before", days(3)).as_deref(), Some("2026-03-07T12:00:00.000Z"));
        assert_eq!(first("After", days(1)).as_deref(), Some("2026-03-11T12:00:00.000Z"));
        let planned = json!({
            "nextRunTime": "2026-03-11T12:00:00Z", "noticeConfig": {"recurringPeriod": days(2)},
        });
        let now: Timestamp = "2026-03-16T00:00:00Z".parse().unwrap();
        assert_eq!(next_run(&planned, now).map(moment::wire).as_deref(), Some("2026-03-17T12:00:00.000Z"));
        assert_eq!(next_run(&json!({"nextRunTime": "2026-03-11T12:00:00Z"}), now), None);
    }
}
