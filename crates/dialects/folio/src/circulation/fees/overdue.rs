//! Overdue fines, as the overdue fine policy of the loan says: so much for each begun interval, up to a maximum, not
//! within the grace period of the loan policy, and with `countClosed` switched off only for the time that the service
//! point was open.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pinakes_store::Txn;
use serde_json::Value;

use super::accounts::{self, Charge};
use super::money::Money;
use crate::circulation::book::Book;
use crate::circulation::calendar::Calendar;
use crate::circulation::fees::charged::Automatic;
use crate::circulation::loan_policy::Period;
use crate::circulation::notices::sending::FeeEvent;
use crate::circulation::policies::{LOAN_POLICIES, OVERDUE_POLICIES};
use crate::circulation::records::{Records, text};
use crate::circulation::{moment, terms};
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;
use crate::platform::limits::CALENDAR_DAYS;

/// What ends the time for which is fined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The item is back.
    Return,
    /// The loan is renewed; a policy may forgive the fine then.
    Renewal,
}

/// Charges the fine of a loan that was due before `until`, if the policy asks for one. `loan` is as it was before a
/// renewal. Without an owner of fees at the item's place nothing is charged.
pub(crate) fn charge(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    (loan, book): (&Value, &Book),
    until: Timestamp,
    (end, service_point): (End, &str),
) -> Result<(), FolioError> {
    let Some(due) = moment::parse(text(loan, "dueDate")).filter(|it| *it < until) else { return Ok(()) };
    let Some(policy) = known.at(txn, &OVERDUE_POLICIES, loan, "overdueFinePolicyId")? else { return Ok(()) };
    if end == End::Renewal && policy["forgiveOverdueFine"].as_bool().unwrap_or(false) {
        return Ok(());
    }
    let Some(rate) = Rate::of(&policy, is_recalled(loan)) else { return Ok(()) };
    let minutes = if policy["countClosed"].as_bool().unwrap_or(true) {
        until.duration_since(due).as_mins()
    } else {
        let calendar = terms::calendar(txn, text(loan, "checkoutServicePointId"))?;
        open_minutes(&calendar, due, until, &terms::zone(txn)?)
    };
    let loan_policy = known.at(txn, &LOAN_POLICIES, loan, "loanPolicyId")?.unwrap_or_default();
    let ignores_grace = is_recalled(loan) && policy["gracePeriodRecall"].as_bool().unwrap_or(false);
    if !ignores_grace && minutes <= grace_minutes(&loan_policy) {
        return Ok(());
    }
    let amount = rate.amount(minutes);
    let place = text(&book.location, "primaryServicePoint").to_owned();
    let Some(owner) = accounts::owner_at(txn, &place)?.filter(|_| amount.is_positive()) else {
        return Ok(());
    };
    let event = match end {
        End::Return => FeeEvent::OverdueFineReturned,
        End::Renewal => FeeEvent::OverdueFineRenewed,
    };
    let charge = Charge {
        kind: Automatic::OverdueFine,
        amount,
        owner: &owner,
        loan,
        book,
        service_point,
        comments: None,
        event: Some(event),
    };
    accounts::charge(txn, writer, &charge).map(drop)
}

fn is_recalled(loan: &Value) -> bool {
    loan["dueDateChangedByRecall"].as_bool().unwrap_or(false)
}

/// So much for each begun interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    quantity: Money,
    interval_minutes: i64,
    /// The most that is charged; nothing for no bound.
    most: Money,
}

impl Rate {
    /// From a policy: that for recalled items, or the ordinary one. `None` when it charges nothing.
    fn of(policy: &Value, is_recalled: bool) -> Option<Self> {
        let (fine, most) = match is_recalled {
            true => ("overdueRecallFine", "maxOverdueRecallFine"),
            false => ("overdueFine", "maxOverdueFine"),
        };
        let interval_minutes = match policy[fine]["intervalId"].as_str()? {
            "minute" => 1,
            "hour" => 60,
            "day" => 24 * 60,
            "week" => 7 * 24 * 60,
            "month" => 31 * 24 * 60,
            "year" => 365 * 24 * 60,
            _ => return None,
        };
        let quantity = Money::at(&policy[fine], "quantity");
        quantity.is_positive().then(|| Self { quantity, interval_minutes, most: Money::at(policy, most) })
    }

    fn amount(&self, minutes: i64) -> Money {
        let n = minutes.max(0) / self.interval_minutes + i64::from(minutes % self.interval_minutes != 0);
        let amount = self.quantity.times(n);
        if self.most.is_positive() { amount.min(self.most) } else { amount }
    }
}

/// The grace period of a loan policy.
fn grace_minutes(policy: &Value) -> i64 {
    let period = Period::of(&policy["loansPolicy"]["gracePeriod"]).ok().flatten();
    let start = Timestamp::UNIX_EPOCH;
    period.and_then(|it| it.after(start)).map_or(0, |it| it.duration_since(start).as_mins())
}

/// Minutes between two moments in which the service point was open.
fn open_minutes(calendar: &Calendar, from: Timestamp, until: Timestamp, zone: &TimeZone) -> i64 {
    let (first, last) = (moment::day_of(from, zone), moment::day_of(until, zone));
    let days = first.series(jiff::Span::new().days(1)).take_while(|it| *it <= last);
    let bound = usize::try_from(CALENDAR_DAYS).unwrap_or(usize::MAX);
    days.take(bound)
        .flat_map(|day| calendar.hours(day).into_iter().map(move |it| (day, it)))
        .map(|(day, (start, end))| (moment::at(day, start, zone), moment::at(day, end, zone)))
        .map(|(start, end)| end.min(until).duration_since(start.max(from)).as_mins().max(0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn begun_intervals_are_charged_up_to_the_maximum() {
        let policy = json!({
            "overdueFine": {"quantity": 0.25, "intervalId": "hour"}, "maxOverdueFine": 2,
            "overdueRecallFine": {"quantity": 5, "intervalId": "minute"}, "maxOverdueRecallFine": 0,
        });
        let check = |is_recalled, minutes, expected: &str| {
            let rate = Rate::of(&policy, is_recalled).unwrap();
            assert_eq!(rate.amount(minutes).text(), expected, "{minutes}");
        };
        check(false, 0, "0.00");
        check(false, 1, "0.25");
        check(false, 60, "0.25");
        check(false, 61, "0.50");
        check(false, 100_000, "2.00");
        check(true, 5, "25.00");
        assert_eq!(Rate::of(&json!({}), false), None);
    }

    #[test]
    fn only_open_hours_count() {
        let calendar = json!({
            "assignments": ["p"], "startDate": "2026-01-01", "endDate": "2026-12-31", "exceptions": [],
            "normalHours": [{"startDay": "MONDAY", "startTime": "09:00", "endDay": "MONDAY", "endTime": "17:00"}],
        });
        let calendar = Calendar::of([&calendar], "p");
        let check = |from: &str, until: &str, expected: i64| {
            let (from, until) = (from.parse().unwrap(), until.parse().unwrap());
            assert_eq!(open_minutes(&calendar, from, until, &TimeZone::UTC), expected, "{from} {until}");
        };
        // 2026-11-23 is a Monday.
        check("2026-11-23T10:00:00Z", "2026-11-23T10:30:00Z", 30);
        check("2026-11-22T10:00:00Z", "2026-11-23T08:30:00Z", 0);
        check("2026-11-22T10:00:00Z", "2026-11-30T09:10:00Z", 8 * 60 + 10);
    }
}
