//! What templates of notices can print: the tokens of FOLIO's notices.

use jiff::tz::TimeZone;
use pinakes_store::{StoreError, View};
use serde_json::{Map, Value, json};

use crate::circulation::book::Book;
use crate::circulation::loan_policy::LoanPolicy;
use crate::circulation::neighbours::{INSTANCES, USERS};
use crate::circulation::policies::LOAN_POLICIES;
use crate::circulation::records::{Records, text};
use crate::circulation::{moment, slips, terms};
use crate::platform::error::FolioError;

/// A person: `user` of a notice.
pub(super) fn person(view: &mut View<'_>, known: &mut Records, user: &Value) -> Result<Value, StoreError> {
    Ok(Value::Object(slips::person_shown(view, known, user)?))
}

/// A loan with its borrower and item.
pub(super) fn of_loan(
    view: &mut View<'_>,
    known: &mut Records,
    book: &Book,
    loan: &Value,
) -> Result<Value, FolioError> {
    let user = known.at(view, &USERS, loan, "userId")?.unwrap_or_default();
    let item = Value::Object(book.slip(view, known)?);
    let policy = known.at(view, &LOAN_POLICIES, loan, "loanPolicyId")?;
    let policy = policy.map(|it| LoanPolicy::of(Value::clone(&it)));
    let taken = loan["renewalCount"].as_u64().unwrap_or(0);
    let (allowed, left) = match &policy {
        Some(it) if it.is_renewable && it.has_unlimited_renewals => {
            ("unlimited".to_owned(), "unlimited".to_owned())
        }
        Some(it) if it.is_renewable => {
            (it.n_renewals_max.to_string(), it.n_renewals_max.saturating_sub(taken).to_string())
        }
        _ => ("0".to_owned(), "0".to_owned()),
    };
    let shown = json!({
        "initialBorrowDate": loan["loanDate"],
        "initialBorrowDateTime": loan["loanDate"],
        "dueDate": loan["dueDate"],
        "dueDateTime": loan["dueDate"],
        "checkedInDate": loan["returnDate"],
        "checkinDate": loan["returnDate"],
        "checkedInDateTime": loan["returnDate"],
        "numberOfRenewalsTaken": taken.to_string(),
        "numberOfRenewalsAllowed": allowed,
        "numberOfRenewalsRemaining": left,
        "additionalInfo": loan["patronInfoAdded"],
    });
    Ok(json!({"user": person(view, known, &user)?, "item": item, "loan": shown}))
}

/// A request with its requester and, if it has one, its item.
pub(super) fn of_request(
    view: &mut View<'_>,
    known: &mut Records,
    book: Option<&Book>,
    request: &Value,
) -> Result<Value, FolioError> {
    let user = known.at(view, &USERS, request, "requesterId")?.unwrap_or_default();
    let item = match book {
        Some(book) => Value::Object(book.slip(view, known)?),
        None => {
            let instance = known.at(view, &INSTANCES, request, "instanceId")?.unwrap_or_default();
            let contributors = instance["contributors"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names: Vec<&str> = contributors.iter().map(|it| text(it, "name")).collect();
            json!({
                "title": instance["title"], "primaryContributor": names.first(),
                "allContributors": names.join("; "),
            })
        }
    };
    Ok(json!({
        "user": person(view, known, &user)?,
        "requester": slips::requester_shown(view, known, request)?,
        "item": item,
        "request": slips::request_shown(view, known, request)?,
    }))
}

/// Adds a fee and what was done about it.
pub(super) fn add_fee(context: &mut Value, account: &Value, action: &Value) {
    let amount = |value: &Value| value.as_f64().map(|it| format!("{it:.2}"));
    context["feeCharge"] = json!({
        "owner": account["feeFineOwner"],
        "type": account["feeFineType"],
        "paymentStatus": account["paymentStatus"]["name"],
        "amount": amount(&account["amount"]),
        "remainingAmount": amount(&account["remaining"]),
        "chargeDate": account["metadata"]["createdDate"],
        "chargeDateTime": account["metadata"]["createdDate"],
    });
    context["feeAction"] = json!({
        "type": action["typeAction"],
        "actionDate": action["dateAction"],
        "actionDateTime": action["dateAction"],
        "amount": amount(&action["amountAction"]),
        "remainingAmount": amount(&action["balance"]),
        "additionalInfo": patron_comment(text(action, "comments")),
    });
}

/// What of an action's comments is for the patron: behind `PATRON :`.
fn patron_comment(comments: &str) -> &str {
    comments.split_once("PATRON :").map_or("", |it| it.1).trim()
}

/// The same with dates as people read them, in the tenant's zone: tokens that end in `Date` as a day, in `DateTime` with
/// the time.
pub(super) fn localised(view: &mut View<'_>, context: Value) -> Result<Value, FolioError> {
    let zone = terms::zone(view)?;
    Ok(with_dates(context, &zone))
}

fn with_dates(value: Value, zone: &TimeZone) -> Value {
    match value {
        Value::Object(map) => {
            let shown = map.into_iter().map(|(name, value)| {
                let form = if name.ends_with("DateTime") {
                    "%b %-d, %Y, %-I:%M %p"
                } else if name.ends_with("Date") {
                    "%b %-d, %Y"
                } else {
                    return (name, with_dates(value, zone));
                };
                let date = value.as_str().and_then(moment::parse);
                let text = date.map(|it| it.to_zoned(zone.clone()).strftime(form).to_string());
                (name, text.map_or(value, Value::String))
            });
            Value::Object(shown.collect::<Map<String, Value>>())
        }
        Value::Array(list) => list.into_iter().map(|it| with_dates(it, zone)).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_tenants() {
        let zone = moment::zone("America/New_York");
        let context = json!({"loan": {"dueDate": "2026-02-01T03:30:00.000Z", "dueDateTime": "2026-02-01T03:30:00Z",
            "note": "2026-02-01T03:30:00Z"}, "loans": [{"dueDate": "soon"}]});
        let expected = json!({"loan": {"dueDate": "Jan 31, 2026", "dueDateTime": "Jan 31, 2026, 10:30 PM",
            "note": "2026-02-01T03:30:00Z"}, "loans": [{"dueDate": "soon"}]});
        assert_eq!(with_dates(context, &zone), expected);
        assert_eq!(patron_comment("STAFF : a \n PATRON : Thanks"), "Thanks");
        assert_eq!(patron_comment("STAFF : a"), "");
    }
}
