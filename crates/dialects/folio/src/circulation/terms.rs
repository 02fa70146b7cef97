//! The terms of a loan: the tenant's rules, the policies they choose, time zone and calendar.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pinakes_store::{Expr, Kind, Query, StoreError, View};
use serde_json::Value;

use super::book::Book;
use super::calendar::Calendar;
use super::due_date::Terms;
use super::loan_policy::{LoanPolicy, Schedule};
use super::moment;
use super::neighbours::locale_of;
use super::policies::{CALENDARS, LOAN_POLICIES, SCHEDULES};
use super::records::{Records, text};
use super::rules::{Criterion, Policies, PolicyKind, Rules, RulesFault};
use crate::platform::error::{Fault, FolioError};

/// The circulation rules of a tenant: one record.
pub(crate) static RULES: Kind = Kind::named("folio_circulation_rules");
/// Id of that record.
pub(crate) const RULES_ID: &str = "1721f01b-e69d-5c4c-5df2-523428a04c54";

/// The rules of a new tenant.
const DEFAULT_RULES: &str = "priority: t, s, c, b, a, m, g\n\
    fallback-policy: l d9cd0bed-1b49-4b5e-a7bd-064b8d177231 r 334e5a9e-94f9-4673-8d1d-ab552863886b \
    n 122b3d2b-4788-4f1e-9117-56daa91cb75c o cd3f6cac-fa17-4079-9fae-2fb28e521412 \
    i ed892c0e-52e0-4cd9-8133-c0ef07b4a709";

/// Maximum number of rule texts kept in compiled form.
const COMPILED_MAX: usize = 64;

/// Compiled rules by their text: equal texts have equal meaning in every tenant, so no entry becomes stale.
static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Rules>>>> = LazyLock::new(Mutex::default);

/// Returns the text of the tenant's rules.
pub(crate) fn rules_text(view: &mut View<'_>) -> Result<String, StoreError> {
    let record = view.get(&RULES, RULES_ID)?.map(|it| it.json()).transpose()?;
    Ok(record.map_or_else(|| DEFAULT_RULES.to_owned(), |it| text(&it, "rulesAsText").to_owned()))
}

/// Compiles a text of rules, or returns the cached result.
pub(crate) fn compiled(text: &str) -> Result<Arc<Rules>, RulesFault> {
    let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(rules) = kept.get(text) {
        return Ok(Arc::clone(rules));
    }
    let rules = Arc::new(Rules::parse(text)?);
    if COMPILED_MAX <= kept.len() {
        kept.clear();
    }
    kept.insert(text.to_owned(), Arc::clone(&rules));
    Ok(rules)
}

/// Returns the tenant's rules.
pub(crate) fn rules(view: &mut View<'_>) -> Result<Arc<Rules>, FolioError> {
    let text = rules_text(view)?;
    compiled(&text).map_err(|fault| StoreError::Damaged(format!("circulation rules: {fault}")).into())
}

/// The policies that the rules chose for an item and a patron group.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// The ids of the policies.
    pub(crate) policies: Policies,
    /// Whether the matching line names the group, the material type, the loan type.
    pub(crate) names_group: bool,
    pub(crate) names_material: bool,
    pub(crate) names_loan_type: bool,
}

/// Applies the rules to an item for a patron of `group`.
pub(crate) fn choose(view: &mut View<'_>, book: &Book, group: &str) -> Result<Chosen, FolioError> {
    let rules = rules(view)?;
    let Some(rule) = rules.best(&book.facts(group)) else {
        return Err(StoreError::Damaged("circulation rules without any line".to_owned()).into());
    };
    Ok(Chosen {
        policies: rule.policies.clone(),
        names_group: rule.names(Criterion::Group),
        names_material: rule.names(Criterion::Material),
        names_loan_type: rule.names(Criterion::LoanType),
    })
}

/// Returns the loan policy with an id.
///
/// Errors: 422 if the rules name a policy that does not exist.
pub(crate) fn loan_policy(
    view: &mut View<'_>,
    known: &mut Records,
    id: &str,
) -> Result<LoanPolicy, FolioError> {
    let Some(policy) = known.get(view, &LOAN_POLICIES, id)? else {
        let message = format!("Loan policy {id} could not be found, please check circulation rules");
        return Err(FolioError::unprocessable(Fault::new(message).with(PolicyKind::Loan.id_key(), id)));
    };
    Ok(LoanPolicy::of(Value::clone(&policy)))
}

/// The records that a policy refers to, and where and when it is applied.
#[derive(Debug)]
pub(crate) struct Circumstances {
    schedule: Option<Schedule>,
    renewal_schedule: Option<Schedule>,
    calendar: Calendar,
    zone: TimeZone,
    now: Timestamp,
}

impl Circumstances {
    /// Reads them for a policy at a service point.
    pub(crate) fn of(
        view: &mut View<'_>,
        known: &mut Records,
        policy: &LoanPolicy,
        service_point: &str,
        now_ms: i64,
    ) -> Result<Self, FolioError> {
        let mut schedule = |id: &Option<String>| -> Result<Option<Schedule>, StoreError> {
            let Some(id) = id else { return Ok(None) };
            Ok(known.get(view, &SCHEDULES, id)?.map(|it| Schedule::of(&it)))
        };
        let (loans, renewals) = (schedule(&policy.schedule_id)?, schedule(&policy.renewal_schedule_id)?);
        let calendar =
            if policy.asks_calendar() { calendar(view, service_point)? } else { Calendar::default() };
        Ok(Self {
            schedule: loans,
            renewal_schedule: renewals,
            calendar,
            zone: zone(view)?,
            now: moment::from_ms(now_ms),
        })
    }

    /// Returns the basis for calculating due dates.
    pub(crate) fn terms<'a>(&'a self, policy: &'a LoanPolicy, is_awaited: bool) -> Terms<'a> {
        Terms {
            policy,
            schedule: self.schedule.as_ref(),
            renewal_schedule: self.renewal_schedule.as_ref(),
            calendar: &self.calendar,
            zone: &self.zone,
            now: self.now,
            is_awaited,
        }
    }
}

/// Returns the calendar of a service point.
pub(crate) fn calendar(view: &mut View<'_>, service_point: &str) -> Result<Calendar, StoreError> {
    let assigned = Query::filter(Expr::Is("assignments".into(), service_point.into()));
    let records: Result<Vec<Value>, StoreError> =
        view.find(&CALENDARS.kind, &assigned)?.iter().map(pinakes_store::Record::json).collect();
    Ok(Calendar::of(&records?, service_point))
}

/// Returns the tenant's time zone.
pub(crate) fn zone(view: &mut View<'_>) -> Result<TimeZone, FolioError> {
    Ok(moment::zone(text(&locale_of(view)?, "timezone")))
}
