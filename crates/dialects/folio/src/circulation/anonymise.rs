//! Loans and requests that no longer say whose they were: when the site's `loan_history` setting says so, or on demand.

use http::StatusCode;
use jiff::Timestamp;
use pinakes_http::answer;
use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::{Map, Value, json};

use super::loans::{self, HISTORY, LOANS};
use super::moment;
use super::policies::setting;
use super::records::{object, text};
use super::requests::REQUESTS;
use crate::circulation::fees::charged::CLOSED;
use crate::circulation::fees::{ACCOUNTS, accounts, settled};
use crate::platform::app::Call;
use crate::platform::chore::Parts;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::limits::BULK_ACCOUNTS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// The routes of anonymisation on demand.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/loan-anonymization/by-user/{userId}",
            Access::to("circulation.loans.collection.anonymize.user.post"),
            of_user,
        )
        .post(
            "/loan-storage/loans/anonymize/{userId}",
            Access::to("circulation-storage.loans.anonymize.execute"),
            of_user_in_storage,
        )
        .post("/anonymize-storage-loans", Access::to("anonymize-storage-loans.post"), of_ids)
        .post(
            "/request-anonymization/{requestId}",
            Access::to("circulation.requests.anonymize.item.post"),
            of_request,
        )
}

/// When something is anonymised after it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Immediately,
    After { minutes: i64 },
    Never,
}

impl When {
    fn of(setting: &Value, name: &str) -> Self {
        match text(&setting["closingType"], name) {
            "immediately" => Self::Immediately,
            "interval" => {
                let period = &setting[name];
                let unit = match text(period, "intervalId").to_ascii_lowercase().trim_end_matches('s') {
                    "minute" => 1,
                    "hour" => 60,
                    "day" => 24 * 60,
                    "week" => 7 * 24 * 60,
                    "month" => 31 * 24 * 60,
                    _ => return Self::Never,
                };
                let duration =
                    period["duration"].as_i64().or_else(|| period["duration"].as_str()?.parse().ok());
                match duration.and_then(|it: i64| it.checked_mul(unit)) {
                    Some(minutes) => Self::After { minutes },
                    None => Self::Never,
                }
            }
            _ => Self::Never,
        }
    }

    /// Whether what ended at `end` is anonymised now.
    fn holds(self, end: Option<Timestamp>, now: Timestamp) -> bool {
        match self {
            Self::Immediately => true,
            Self::After { minutes } => end.is_some_and(|it| minutes <= now.duration_since(it).as_mins()),
            Self::Never => false,
        }
    }
}

/// The site's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    loans: When,
    /// For loans with fees, when they are treated differently.
    fees: Option<When>,
}

impl Policy {
    fn of(setting: &Value) -> Self {
        let treats_fees = setting["treatEnabled"].as_bool().unwrap_or(false);
        Self { loans: When::of(setting, "loan"), fees: treats_fees.then(|| When::of(setting, "feeFine")) }
    }
}

/// Closed loans that still say whose they were.
fn closed_loans(user: Option<&str>) -> Expr {
    let closed = Expr::Is("status.name".into(), loans::CLOSED.into());
    match user {
        Some(user) => Expr::Is("userId".into(), user.into()).and(closed),
        None => Expr::Exists("userId".into()).and(closed),
    }
}

/// Anonymises the loans for which the time has come.
pub(crate) fn run(parts: &Parts) -> Result<(), FolioError> {
    let now = moment::from_ms(parts.now_ms);
    let due = parts.tenant.read_blocking(move |view| -> Result<Vec<String>, FolioError> {
        let Some(policy) = setting(view, "loan_history")?.as_ref().map(Policy::of) else {
            return Ok(Vec::new());
        };
        if policy.loans == When::Never && matches!(policy.fees, None | Some(When::Never)) {
            return Ok(Vec::new());
        }
        let mut due = Vec::new();
        for record in view.find(&LOANS.kind, &Query::filter(closed_loans(None)))? {
            if is_due(view, policy, &record.json()?, now)? {
                due.push(record.id);
            }
        }
        Ok(due)
    })?;
    parts.each("a loan is not anonymised", due, forget)
}

fn is_due(view: &mut View<'_>, policy: Policy, loan: &Value, now: Timestamp) -> Result<bool, FolioError> {
    let accounts = settled::of_loan(view, &ACCOUNTS.kind, text(loan, "id"))?;
    if accounts.iter().any(|it| text(it, "status.name") != CLOSED) {
        return Ok(false);
    }
    let ended = moment::parse(text(loan, "systemReturnDate"))
        .or_else(|| moment::parse(text(loan, "metadata.updatedDate")));
    let Some(fees) = policy.fees.filter(|_| !accounts.is_empty()) else {
        return Ok(policy.loans.holds(ended, now));
    };
    let mut last = None;
    for account in &accounts {
        let actions = accounts::actions_of(view, text(account, "id"))?;
        let closed = actions.iter().rev().find(|it| it["balance"].as_f64() == Some(0.0));
        last = last.max(closed.and_then(|it| moment::parse(text(it, "dateAction"))));
    }
    Ok(fees.holds(last, now))
}

/// What a loan says of people.
const PERSONAL: [&str; 3] = ["userId", "proxyUserId", "patronInfoAdded"];

fn without_persons(body: &Value) -> Map<String, Value> {
    let mut body = object(body);
    body.retain(|name, _| !PERSONAL.contains(&name.as_str()));
    body
}

/// Takes out of a closed loan and its history whose it was.
fn forget(txn: &mut Txn<'_>, writer: &Writer, id: &str) -> Result<(), FolioError> {
    let Some(record) = txn.get(&LOANS.kind, id)? else { return Ok(()) };
    let loan = record.json()?;
    if loans::is_open(&loan) {
        return Ok(());
    }
    loans::change(txn, writer, without_persons(&loan))?;
    let states = Query::filter(Expr::Is("loan.id".into(), id.into()));
    for state in txn.find(&HISTORY.kind, &states)? {
        let mut body = object(&state.json()?);
        let loan = body.get("loan").map(without_persons).unwrap_or_default();
        body.insert("loan".into(), Value::Object(loan));
        collection::put(txn, writer, &HISTORY, &state.id, body, Missing::Refuse, Lock::Ignored)?;
    }
    Ok(())
}

/// The closed loans of a user: those without fees, and those with.
fn split_by_fees(view: &mut View<'_>, user: &str) -> Result<(Vec<String>, Vec<String>), StoreError> {
    let (mut free, mut with_fees) = (Vec::new(), Vec::new());
    for loan in view.find(&LOANS.kind, &Query::filter(closed_loans(Some(user))))? {
        match settled::of_loan(view, &ACCOUNTS.kind, &loan.id)?.is_empty() {
            true => free.push(loan.id),
            false => with_fees.push(loan.id),
        }
    }
    Ok((free, with_fees))
}

async fn of_user(call: Call) -> Answer {
    let user = call.uuid_param("userId")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let (free, with_fees) = split_by_fees(txn, &user)?;
        let writer = writer();
        free.iter().try_for_each(|id| forget(txn, &writer, id))?;
        let errors = match with_fees.is_empty() {
            true => json!([]),
            false => json!([{
                "message": "haveAssociatedFeesAndFines",
                "parameters": [{"key": "loanIds", "value": json!(with_fees).to_string()}],
            }]),
        };
        Ok(json!({"anonymizedLoans": free, "errors": errors}))
    };
    Ok(json_answer(StatusCode::CREATED, &call.db().write(write).await?))
}

async fn of_user_in_storage(call: Call) -> Answer {
    let user = call.uuid_param("userId")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let closed = txn.find(&LOANS.kind, &Query::filter(closed_loans(Some(&user))))?;
        let writer = writer();
        closed.iter().try_for_each(|it| forget(txn, &writer, &it.id))
    };
    call.db().write(write).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// `{"loanIds":[…]}`: those that are closed.
async fn of_ids(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let given = body["loanIds"].as_array().map(Vec::as_slice).unwrap_or_default();
    if given.is_empty() || BULK_ACCOUNTS < given.len() {
        let fault =
            Fault::new("Please provide the list of loan ids").with("loanIds", given.len().to_string());
        return Err(FolioError::unprocessable(fault));
    }
    let ids: Vec<String> =
        given.iter().filter_map(|it| it.as_str()).map(|it| parse_uuid(it).unwrap_or(it.to_owned())).collect();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let (mut done, mut not) = (Vec::new(), Vec::new());
        let writer = writer();
        for id in &ids {
            match txn.get(&LOANS.kind, id)? {
                Some(record) if !loans::is_open(&record.json()?) => {
                    forget(txn, &writer, id)?;
                    done.push(id.clone());
                }
                _ => not.push(id.clone()),
            }
        }
        let not = match not.is_empty() {
            true => json!([]),
            false => json!([{"error": "loanIsNotClosed", "loanIds": not}]),
        };
        Ok(json!({"anonymizedLoans": done, "notAnonymizedLoans": not}))
    };
    Ok(json_answer(StatusCode::CREATED, &call.db().write(write).await?))
}

/// A closed request forgets who made it.
async fn of_request(call: Call) -> Answer {
    let id = call.uuid_param("requestId")?;
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| -> Result<Value, FolioError> {
        let Some(record) = txn.get(&REQUESTS.kind, &id)? else {
            return Err(FolioError::not_found("request not found"));
        };
        let request = record.json()?;
        if super::requests::is_open(text(&request, "status")) {
            let fault = Fault::new("Request must be closed to be anonymized").code("REQUEST_IS_NOT_CLOSED");
            return Err(FolioError::unprocessable(fault.with("requestId", &id)));
        }
        let mut body = object(&request);
        for name in
            ["requesterId", "requester", "proxyUserId", "proxy", "deliveryAddressTypeId", "patronComments"]
        {
            body.remove(name);
        }
        collection::put(txn, &writer(), &REQUESTS, &id, body, Missing::Refuse, Lock::Ignored)?;
        Ok(json!({"requestId": id, "anonymized": true}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().write(write).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_when() {
        let setting = json!({
            "closingType": {"loan": "immediately", "feeFine": "interval"},
            "feeFine": {"duration": 1, "intervalId": "hour"}, "treatEnabled": true,
        });
        let policy = Policy::of(&setting);
        assert_eq!(policy, Policy { loans: When::Immediately, fees: Some(When::After { minutes: 60 }) });
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let after = When::After { minutes: 60 };
        assert!(!after.holds(Some(at("2026-01-01T10:00:00Z")), at("2026-01-01T10:59:00Z")));
        assert!(after.holds(Some(at("2026-01-01T10:00:00Z")), at("2026-01-01T11:00:00Z")));
        assert!(!after.holds(None, at("2026-01-01T11:00:00Z")));
        assert_eq!(Policy::of(&json!({})), Policy { loans: When::Never, fees: None });
    }
}
