//! Planned notices: which, when, and about what.

use jiff::Timestamp;
use pinakes_store::{Column, Index, Kind, Search, Txn, Type};
use serde_json::{Value, json};

use crate::circulation::loan_policy::Period;
use crate::circulation::moment;
use crate::circulation::notices::sending::{LoanEvent, RequestEvent, all_with, notices_of};
use crate::circulation::records::{object, text};
use crate::platform::collection::{self, Collection, Schema, Writer};
use crate::platform::error::FolioError;

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
        search: Search::Folded,
        ..Kind::named("folio_scheduled_notice")
    },
    schema: Schema { required: &["nextRunTime", "noticeConfig"], ..Schema::OPEN },
    ..Collection::named(
        "/scheduled-notice-storage/scheduled-notices",
        "scheduledNotices",
        "folio_scheduled_notice",
    )
};

/// Event name of notices about due dates.
pub(crate) const DUE_DATE: &str = "Due date";

/// A notice to be created later.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// What it is about: `loanId`, `requestId`, `feeFineActionId`, `recipientUserId`.
    ids: Value,
    event: String,
    notice: Value,
    /// The time from which the policy's periods count; `None` stands for the time of the event.
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

    /// Returns when the notice is first due; `None` for at once.
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

    /// Stores the plan.
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

/// Plans the notices for a loan's due date; those for an earlier due date are deleted.
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
        // A notice to be sent before the due date is dropped if its time has already passed, as with a short loan.
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

/// Plans the notices for the end of a request: its expiration when it is created, the end of the hold shelf period when
/// the item is available.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_runs() {
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
    }
}
