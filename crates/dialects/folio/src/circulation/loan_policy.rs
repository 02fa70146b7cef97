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
    /// Parses `{"duration","intervalId"}`; `None` if there is no period.
    ///
    /// Errors: an invalid interval or duration, in the words that clients show.
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

    /// Returns the moment one period later, counted in UTC; the end of a month stays within its month. `None` beyond
    /// the last representable time.
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

    /// Returns the moment one period earlier.
    pub(crate) fn before(self, moment: Timestamp) -> Option<Timestamp> {
        Self { duration: -self.duration, ..self }.after(moment)
    }
}

/// How a calculated due date is moved with regard to closed days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedDays {
    /// The end of the due day.
    CurrentDueDate,
    /// Unchanged.
    CurrentDueDateTime,
    /// The end of the last open day, up to and including the due day.
    PreviousOpenDay,
    /// The end of the first open day, from the due day on.
    NextOpenDay,
    /// The end of the current opening hours.
    CurrentHours,
    /// The start of the next opening hours, plus an offset.
    NextHours,
}

/// How a due date is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A period that starts on the loan date.
    Rolling,
    /// The date that a schedule gives for the loan date.
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
    /// Maximum number of loans that a patron may have at once.
    pub(crate) item_limit: Option<u64>,
    pub(crate) is_renewable: bool,
    pub(crate) has_unlimited_renewals: bool,
    pub(crate) n_renewals_max: u64,
    /// `loansPolicy.fixedDueDateScheduleId`: the dates of a fixed policy, the limit of a rolling one.
    pub(crate) schedule_id: Option<String>,
    /// `renewalsPolicy.alternateFixedDueDateScheduleId`.
    pub(crate) renewal_schedule_id: Option<String>,
    /// `loansPolicy.forUseAtLocation`: the item is used in the library.
    pub(crate) is_for_use_at_location: bool,
    body: Value,
}

impl LoanPolicy {
    /// Reads a policy from its record.
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

    /// Returns the profile. Errors: an unknown profile.
    pub(crate) fn profile(&self) -> Result<Profile, String> {
        match self.body["loansPolicy"]["profileId"].as_str().unwrap_or_default() {
            it if it.eq_ignore_ascii_case("rolling") => Ok(Profile::Rolling),
            it if it.eq_ignore_ascii_case("fixed") => Ok(Profile::Fixed),
            other => Err(format!("profile \"{other}\" in the loan policy is not recognised")),
        }
    }

    /// Returns the loan period; with `is_awaited` the one for items that others have requested, if the policy has one.
    pub(crate) fn loan_period(&self, is_awaited: bool) -> Result<Period, String> {
        let alternate = &self.body["requestManagement"]["holds"]["alternateCheckoutLoanPeriod"];
        if let (true, Some(period)) = (is_awaited, Period::of(alternate)?) {
            return Ok(period);
        }
        let period = Period::of(&self.body["loansPolicy"]["period"])?;
        period.ok_or_else(|| "the loan period in the loan policy is not recognised".to_owned())
    }

    /// Returns the period of a renewal, see [`LoanPolicy::loan_period`].
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

    /// Checks whether an item with a waiting hold may be renewed.
    pub(crate) fn renews_awaited_items(&self) -> bool {
        self.body["requestManagement"]["holds"]["renewItemsWithRequest"].as_bool().unwrap_or(false)
    }

    /// Returns the date from which renewals count.
    pub(crate) fn renew_from(&self) -> Result<RenewFrom, String> {
        match self.body["renewalsPolicy"]["renewFromId"].as_str().unwrap_or_default() {
            "SYSTEM_DATE" => Ok(RenewFrom::SystemDate),
            "CURRENT_DUE_DATE" => Ok(RenewFrom::CurrentDueDate),
            "" => Err("cannot determine when to renew from".to_owned()),
            other => Err(format!("cannot renew from: {other}")),
        }
    }

    /// Returns how due dates on closed days are moved. Without a setting a due date stays unchanged.
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

    /// Checks whether due dates depend on the opening hours of the service point.
    pub(crate) fn asks_calendar(&self) -> bool {
        !matches!(self.closed_days(), ClosedDays::CurrentDueDate | ClosedDays::CurrentDueDateTime)
    }

    /// Returns how long an item for use in the library is kept on the hold shelf.
    pub(crate) fn shelf_period(&self) -> Option<Period> {
        Period::of(&self.body["loansPolicy"]["holdShelfExpiryPeriodForUseAtLocation"]).ok().flatten()
    }

    /// Returns the offset from the start of the next opening hours.
    pub(crate) fn opening_offset(&self) -> Option<Period> {
        Period::of(&self.body["loansPolicy"]["openingTimeOffset"]).ok().flatten()
    }

    /// Returns a period of `requestManagement.recalls`: `recallReturnInterval`, `minimumGuaranteedLoanPeriod`,
    /// `alternateRecallReturnInterval`.
    pub(crate) fn recall_period(&self, name: &str) -> Option<Period> {
        Period::of(&self.body["requestManagement"]["recalls"][name]).ok().flatten()
    }

    /// Returns `requestManagement.recalls.allowRecallsToExtendOverdueLoans`.
    pub(crate) fn extends_overdue_loans(&self) -> bool {
        self.body["requestManagement"]["recalls"]["allowRecallsToExtendOverdueLoans"]
            .as_bool()
            .unwrap_or(false)
    }
}

/// Parses a whole number that is written as a number or as text.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The ranges of a fixed due date schedule.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedule(Vec<(Timestamp, Timestamp, Timestamp)>);

impl Schedule {
    /// Reads a schedule from its record, `{"schedules":[{"from","to","due"}]}`.
    pub(crate) fn of(body: &Value) -> Self {
        let range = |it: &Value| {
            let date = |name: &str| super::moment::parse(it[name].as_str()?);
            Some((date("from")?, date("to")?, date("due")?))
        };
        let list = body["schedules"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self(list.iter().filter_map(range).collect())
    }

    /// Returns the due date of the range that contains a moment.
    pub(crate) fn due(&self, moment: Timestamp) -> Option<Timestamp> {
        self.0.iter().find(|(from, to, _)| (*from..=*to).contains(&moment)).map(|(_, _, due)| *due)
    }
}

/// Returns the end of a period of a policy that starts at `from`; `None` if the policy does not have it.
pub(crate) fn after(policy: &Value, name: &str, from: Timestamp) -> Option<Timestamp> {
    Period::of(&policy[name]).ok().flatten()?.after(from)
}
