//! When a loan is due: at check-out, at a renewal, after a recall.
//!
//! Sources: section 9.1 of the contract; for renewals and recalls, the behaviour of FOLIO's circulation as its users
//! know it: a renewal never makes a due date earlier, and a recall never makes it later, unless the loan is overdue and
//! the policy allows it.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::calendar::Calendar;
use super::loan_policy::{ClosedDays, LoanPolicy, Profile, RenewFrom, Schedule};
use super::moment;

/// Message for a loan or renewal date outside all ranges of the schedule.
const LOAN_OUTSIDE: &str = "loan date falls outside of the date ranges in the loan policy";
const RENEWAL_OUTSIDE: &str = "renewal date falls outside of date ranges in the loan policy";
/// Message for a period that ends beyond the last representable time.
const TOO_LONG: &str = "the loan period in the loan policy is not recognised";

/// What a due date is calculated from.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) policy: &'a LoanPolicy,
    /// From `loansPolicy.fixedDueDateScheduleId`.
    pub(crate) schedule: Option<&'a Schedule>,
    /// From `renewalsPolicy.alternateFixedDueDateScheduleId`.
    pub(crate) renewal_schedule: Option<&'a Schedule>,
    /// Calendar of the service point at which the loan is made.
    pub(crate) calendar: &'a Calendar,
    /// The tenant's time zone.
    pub(crate) zone: &'a TimeZone,
    pub(crate) now: Timestamp,
    /// Whether a hold request is waiting for the item.
    pub(crate) is_awaited: bool,
}

/// The state of a loan to be renewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) due_date: Timestamp,
    pub(crate) n_renewals: u64,
    /// Whether a recall request is waiting for the item.
    pub(crate) is_recalled: bool,
}

impl Terms<'_> {
    /// Returns the due date of a loan that begins at `loan_date`.
    ///
    /// Errors: why the policy gives no due date, in the words that clients show.
    pub(crate) fn at_check_out(&self, loan_date: Timestamp) -> Result<Timestamp, String> {
        let due = match self.policy.profile()? {
            Profile::Fixed => self.fixed(self.schedule, loan_date, LOAN_OUTSIDE)?,
            Profile::Rolling => {
                let period = self.policy.loan_period(self.is_awaited)?;
                let due = period.after(loan_date).ok_or(TOO_LONG)?;
                self.limited(due, self.schedule, loan_date, LOAN_OUTSIDE)?
            }
        };
        Ok(self.on_open_day(due))
    }

    /// Returns the due date of a loan after a renewal now.
    ///
    /// Errors: all reasons against the renewal, in the words that clients show.
    pub(crate) fn at_renewal(&self, loan: Standing) -> Result<Timestamp, Vec<String>> {
        let mut reasons = Vec::new();
        if loan.is_recalled {
            reasons.push("items cannot be renewed when there is an active recall request".to_owned());
        }
        if self.is_awaited && !self.policy.renews_awaited_items() {
            reasons.push(
                "Items with this loan policy cannot be renewed when there is an active, pending hold request"
                    .to_owned(),
            );
        }
        if !self.policy.is_loanable {
            reasons.push("item is not loanable".to_owned());
        } else if !self.policy.is_renewable {
            reasons.push("loan is not renewable".to_owned());
        }
        if !reasons.is_empty() {
            return Err(reasons);
        }
        if !self.policy.has_unlimited_renewals && self.policy.n_renewals_max <= loan.n_renewals {
            reasons.push("loan at maximum renewal number".to_owned());
        }
        match self.renewed(loan) {
            Ok(due) if due <= loan.due_date => {
                reasons.push("renewal would not change the due date".to_owned());
            }
            Ok(due) if reasons.is_empty() => return Ok(due),
            Ok(_) => {}
            Err(reason) => reasons.push(reason),
        }
        Err(reasons)
    }

    /// Returns the due date of a loan after a recall now; the current one if the recall does not change it.
    pub(crate) fn at_recall(&self, loan_date: Timestamp, due_date: Timestamp) -> Timestamp {
        let is_overdue = due_date < self.now;
        if is_overdue && !self.policy.extends_overdue_loans() {
            return due_date;
        }
        let name = if is_overdue { "alternateRecallReturnInterval" } else { "recallReturnInterval" };
        let interval =
            self.policy.recall_period(name).or_else(|| self.policy.recall_period("recallReturnInterval"));
        let guaranteed =
            self.policy.recall_period("minimumGuaranteedLoanPeriod").and_then(|it| it.after(loan_date));
        let returned = interval.map_or(Some(self.now), |it| it.after(self.now));
        let Some(earliest) = guaranteed.max(returned) else { return due_date };
        let recalled = self.on_open_day(earliest);
        if is_overdue { recalled.max(due_date) } else { recalled.min(due_date) }
    }

    fn renewed(&self, loan: Standing) -> Result<Timestamp, String> {
        let schedule = self.renewal_schedule.or(self.schedule);
        let due = match self.policy.profile()? {
            Profile::Fixed => self.fixed(schedule, self.now, RENEWAL_OUTSIDE)?,
            Profile::Rolling => {
                let from = match self.policy.renew_from()? {
                    RenewFrom::SystemDate => self.now,
                    RenewFrom::CurrentDueDate => loan.due_date,
                };
                let due = self.policy.renewal_period(self.is_awaited)?.after(from).ok_or(TOO_LONG)?;
                self.limited(due, schedule, self.now, RENEWAL_OUTSIDE)?
            }
        };
        Ok(self.on_open_day(due))
    }

    fn fixed(
        &self,
        schedule: Option<&Schedule>,
        from: Timestamp,
        outside: &str,
    ) -> Result<Timestamp, String> {
        schedule.and_then(|it| it.due(from)).ok_or_else(|| outside.to_owned())
    }

    /// Limits a rolling due date to the one of its schedule, if it has a schedule.
    fn limited(
        &self,
        due: Timestamp,
        schedule: Option<&Schedule>,
        from: Timestamp,
        outside: &str,
    ) -> Result<Timestamp, String> {
        match schedule {
            None => Ok(due),
            Some(schedule) => {
                schedule.due(from).map(|limit| limit.min(due)).ok_or_else(|| outside.to_owned())
            }
        }
    }

    /// Moves a due date on a closed day as the policy says. If no calendar covers the day, all settings except
    /// `CURRENT_DUE_DATE_TIME` give the end of the day.
    fn on_open_day(&self, due: Timestamp) -> Timestamp {
        let way = self.policy.closed_days();
        if way == ClosedDays::CurrentDueDateTime {
            return due;
        }
        let day = moment::day_of(due, self.zone);
        let end = |day| moment::end_of_day(day, self.zone);
        if way == ClosedDays::CurrentDueDate || self.calendar.is_silent_on(day) {
            return end(day);
        }
        match way {
            ClosedDays::PreviousOpenDay => self.calendar.open_day(day, -1, self.zone).map_or(end(day), end),
            ClosedDays::NextOpenDay => self.calendar.open_day(day, 1, self.zone).map_or(end(day), end),
            _ if self.calendar.opening_at(due, self.zone).is_some() => due,
            ClosedDays::CurrentHours => self.end_of_hours().unwrap_or_else(|| end(day)),
            _ => self.next_hours(due).unwrap_or_else(|| end(day)),
        }
    }

    /// Returns the end of the current opening hours, or else of the next ones.
    fn end_of_hours(&self) -> Option<Timestamp> {
        let now = self.calendar.opening_at(self.now, self.zone);
        now.or_else(|| self.calendar.next_opening(self.now, self.zone)).map(|it| it.end)
    }

    /// Returns the start of the first opening hours after `due`, plus the policy's offset, but at most their end.
    fn next_hours(&self, due: Timestamp) -> Option<Timestamp> {
        let next = self.calendar.next_opening(due, self.zone)?;
        let offset = self.policy.opening_offset();
        Some(offset.and_then(|it| it.after(next.start)).map_or(next.start, |it| it.min(next.end)))
    }
}

#[cfg(test)]
mod tests;
