//! Loan policies, read from their records (section 9.1 of the contract).

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::Value;

/// A length of time: a number of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Period {
    duration: i64,
    interval: Interval,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interval {
    Minutes,
    Hours,
    Days,
    Weeks,
    Months,
}

impl Period {
    /// From `{"duration","intervalId"}`; `None` when there is none.
    ///
    /// Errors: an interval or duration that no period has, in the words that clients show.
    pub(crate) fn of(value: &Value) -> Result<Option<Self>, String> {
        let Some(id) = value["intervalId"].as_str() else {
            return if value.is_object() {
                Err("the loan period in the loan policy is not recognised".into())
            } else {
                Ok(None)
            };
        };
        let interval = match id {
            "Minutes" => Interval::Minutes,
            "Hours" => Interval::Hours,
            "Days" => Interval::Days,
            "Weeks" => Interval::Weeks,
            "Months" => Interval::Months,
            other => return Err(format!("the interval \"{other}\" in the loan policy is not recognised")),
        };
        match value["duration"].as_i64() {
            Some(duration) if 0 < duration => Ok(Some(Self { duration, interval })),
            Some(duration) => Err(format!("the duration \"{duration}\" in the loan policy is invalid")),
            None => Err("the loan period in the loan policy is not recognised".into()),
        }
    }

    /// The moment that much later, counted in UTC; a month's end stays within its month. `None` beyond the end of time.
    pub(crate) fn after(self, moment: Timestamp) -> Option<Timestamp> {
        let span = match self.interval {
            Interval::Minutes => Span::new().try_minutes(self.duration),
            Interval::Hours => Span::new().try_hours(self.duration),
            Interval::Days => Span::new().try_days(self.duration),
            Interval::Weeks => Span::new().try_weeks(self.duration),
            Interval::Months => Span::new().try_months(self.duration),
        };
        Some(moment.to_zoned(TimeZone::UTC).checked_add(span.ok()?).ok()?.timestamp())
    }

    /// The moment a period before another.
    pub(crate) fn before(self, moment: Timestamp) -> Option<Timestamp> {
        Self { duration: -self.duration, ..self }.after(moment)
    }
}

/// Where a due date that was counted out falls, and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedDays {
    /// The end of its day.
    CurrentDueDate,
    /// As it is.
    CurrentDueDateTime,
    /// The end of the last open day up to it.
    PreviousOpenDay,
    /// The end of the first open day from it on.
    NextOpenDay,
    /// The end of the hours that are open now.
    CurrentHours,
    /// The beginning of the next open hours, and some time more.
    NextHours,
}

/// How a due date comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A period from the loan date on.
    Rolling,
    /// The date that a schedule has for the loan date.
    Fixed,
}

/// The day that renewals count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewFrom {
    /// Today.
    SystemDate,
    /// The due date.
    CurrentDueDate,
}

/// A loan policy.
#[derive(Debug, Clone)]
pub(crate) struct LoanPolicy {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) is_loanable: bool,
    /// Loans that a patron may have at once.
    pub(crate) item_limit: Option<u64>,
    pub(crate) is_renewable: bool,
    pub(crate) has_unlimited_renewals: bool,
    pub(crate) n_renewals_max: u64,
    /// `loansPolicy.fixedDueDateScheduleId`: the dates of a fixed policy, the limit of a rolling one.
    pub(crate) schedule_id: Option<String>,
    /// `renewalsPolicy.alternateFixedDueDateScheduleId`.
    pub(crate) renewal_schedule_id: Option<String>,
    /// `loansPolicy.forUseAtLocation`: the item stays in the house.
    pub(crate) is_for_use_at_location: bool,
    body: Value,
}

impl LoanPolicy {
    /// From its record.
    pub(crate) fn of(body: Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (loans, renewals) = (&body["loansPolicy"], &body["renewalsPolicy"]);
        Self {
            id: text(&body["id"]).unwrap_or_default(),
            name: text(&body["name"]).unwrap_or_default(),
            is_loanable: body["loanable"].as_bool().unwrap_or(false),
            item_limit: count(&loans["itemLimit"]),
            is_renewable: body["renewable"].as_bool().unwrap_or(false),
            has_unlimited_renewals: renewals["unlimited"].as_bool().unwrap_or(false),
            n_renewals_max: count(&renewals["numberAllowed"]).unwrap_or(0),
            schedule_id: text(&loans["fixedDueDateScheduleId"]),
            renewal_schedule_id: text(&renewals["alternateFixedDueDateScheduleId"]),
            is_for_use_at_location: loans["forUseAtLocation"].as_bool().unwrap_or(false),
            body,
        }
    }

    /// Errors: a profile of another name.
    pub(crate) fn profile(&self) -> Result<Profile, String> {
        match self.body["loansPolicy"]["profileId"].as_str().unwrap_or_default() {
            it if it.eq_ignore_ascii_case("rolling") => Ok(Profile::Rolling),
            it if it.eq_ignore_ascii_case("fixed") => Ok(Profile::Fixed),
            other => Err(format!("profile \"{other}\" in the loan policy is not recognised")),
        }
    }

    /// The period of a loan; with `is_awaited` the one for items that others wait for, if there is one.
    pub(crate) fn loan_period(&self, is_awaited: bool) -> Result<Period, String> {
        let alternate = &self.body["requestManagement"]["holds"]["alternateCheckoutLoanPeriod"];
        if let (true, Some(period)) = (is_awaited, Period::of(alternate)?) {
            return Ok(period);
        }
        let period = Period::of(&self.body["loansPolicy"]["period"])?;
        period.ok_or_else(|| "the loan period in the loan policy is not recognised".to_owned())
    }

    /// The period of a renewal, see [`LoanPolicy::loan_period`].
    pub(crate) fn renewal_period(&self, is_awaited: bool) -> Result<Period, String> {
        let alternate = &self.body["requestManagement"]["holds"]["alternateRenewalLoanPeriod"];
        if let (true, Some(period)) = (is_awaited, Period::of(alternate)?) {
            return Ok(period);
        }
        let renewals = &self.body["renewalsPolicy"];
        if renewals["differentPeriod"].as_bool().unwrap_or(false)
            && let Some(period) = Period::of(&renewals["period"])?
        {
            return Ok(period);
        }
        self.loan_period(false)
    }

    /// Whether an item that a hold waits for may be renewed.
    pub(crate) fn renews_awaited_items(&self) -> bool {
        self.body["requestManagement"]["holds"]["renewItemsWithRequest"].as_bool().unwrap_or(false)
    }

    /// Where renewals count from.
    pub(crate) fn renew_from(&self) -> Result<RenewFrom, String> {
        match self.body["renewalsPolicy"]["renewFromId"].as_str().unwrap_or_default() {
            "SYSTEM_DATE" => Ok(RenewFrom::SystemDate),
            "CURRENT_DUE_DATE" => Ok(RenewFrom::CurrentDueDate),
            "" => Err("cannot determine when to renew from".to_owned()),
            other => Err(format!("cannot renew from: {other}")),
        }
    }

    /// What is done with due dates on closed days. Without a word about it a due date stays as it is.
    pub(crate) fn closed_days(&self) -> ClosedDays {
        match self.body["loansPolicy"]["closedLibraryDueDateManagementId"].as_str().unwrap_or_default() {
            "CURRENT_DUE_DATE" => ClosedDays::CurrentDueDate,
            "END_OF_THE_PREVIOUS_OPEN_DAY" => ClosedDays::PreviousOpenDay,
            "END_OF_THE_NEXT_OPEN_DAY" => ClosedDays::NextOpenDay,
            "END_OF_THE_CURRENT_SERVICE_POINT_HOURS" => ClosedDays::CurrentHours,
            "BEGINNING_OF_THE_NEXT_OPEN_SERVICE_POINT_HOURS" => ClosedDays::NextHours,
            _ => ClosedDays::CurrentDueDateTime,
        }
    }

    /// Whether the openings of the service point matter for a due date.
    pub(crate) fn asks_calendar(&self) -> bool {
        !matches!(self.closed_days(), ClosedDays::CurrentDueDate | ClosedDays::CurrentDueDateTime)
    }

    /// How long an item that is used in the house is kept on the hold shelf.
    pub(crate) fn shelf_period(&self) -> Option<Period> {
        Period::of(&self.body["loansPolicy"]["holdShelfExpiryPeriodForUseAtLocation"]).ok().flatten()
    }

    /// What is added to the beginning of the next hours.
    pub(crate) fn opening_offset(&self) -> Option<Period> {
        Period::of(&self.body["loansPolicy"]["openingTimeOffset"]).ok().flatten()
    }

    /// A period of `requestManagement.recalls`: `recallReturnInterval`, `minimumGuaranteedLoanPeriod`,
    /// `alternateRecallReturnInterval`.
    pub(crate) fn recall_period(&self, name: &str) -> Option<Period> {
        Period::of(&self.body["requestManagement"]["recalls"][name]).ok().flatten()
    }

    /// `requestManagement.recalls.allowRecallsToExtendOverdueLoans`.
    pub(crate) fn extends_overdue_loans(&self) -> bool {
        self.body["requestManagement"]["recalls"]["allowRecallsToExtendOverdueLoans"]
            .as_bool()
            .unwrap_or(false)
    }
}

/// A whole number that is written as a number or as text.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The ranges of a fixed due date schedule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedule(Vec<(Timestamp, Timestamp, Timestamp)>);

impl Schedule {
    /// From its record, `{"schedules":[{"from","to","due"}]}`.
    pub(crate) fn of(body: &Value) -> Self {
        let range = |it: &Value| {
            let date = |name: &str| super::moment::parse(it[name].as_str()?);
            Some((date("from")?, date("to")?, date("due")?))
        };
        let list = body["schedules"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self(list.iter().filter_map(range).collect())
    }

    /// The due date of the range that holds a moment.
    pub(crate) fn due(&self, moment: Timestamp) -> Option<Timestamp> {
        self.0.iter().find(|(from, to, _)| (*from..=*to).contains(&moment)).map(|(_, _, due)| *due)
    }
}

/// A period of a policy from a moment on; `None` when it has none.
pub(crate) fn after(policy: &Value, name: &str, from: Timestamp) -> Option<Timestamp> {
    Period::of(&policy[name]).ok().flatten()?.after(from)
}
