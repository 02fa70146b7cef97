//! A case file is a JSON object: `policies`, `schedules` and `calendars` by name, and `cases`, each with `is`
//! (`check-out`, `renewal`, `recall`), the name of its policy and its dates. The answer has one line per case.

use serde_json::Value;

use super::{Standing, Terms};
use crate::circulation::calendar::Calendar;
use crate::circulation::loan_policy::{LoanPolicy, Schedule};
use crate::circulation::{golden, moment};

#[test]
fn golden() {
    golden::check_all("due_dates", |text| {
        let file: Value = serde_json::from_str(text).unwrap();
        file["cases"].as_array().unwrap().iter().map(|case| answer(&file, case)).collect()
    });
}

fn answer(file: &Value, case: &Value) -> String {
    let text = |name: &str| case[name].as_str().unwrap_or_default();
    let date = |name: &str| moment::parse(text(name)).unwrap_or_else(|| panic!("{name} in {case}"));
    let policy = LoanPolicy::of(file["policies"][text("policy")].clone());
    let schedule = |name: &Option<String>| name.as_deref().map(|it| Schedule::of(&file["schedules"][it]));
    let (loans, renewals) = (schedule(&policy.schedule_id), schedule(&policy.renewal_schedule_id));
    let calendar = Calendar::of(file["calendars"].as_array().into_iter().flatten(), text("servicePoint"));
    let terms = Terms {
        policy: &policy,
        schedule: loans.as_ref(),
        renewal_schedule: renewals.as_ref(),
        calendar: &calendar,
        zone: &moment::zone(text("zone")),
        now: date("now"),
        is_awaited: case["hold"] == true,
    };
    let due = match text("is") {
        "check-out" => terms.at_check_out(terms.now).map_err(|it| vec![it]),
        "recall" => Ok(terms.at_recall(date("loanDate"), date("dueDate"))),
        _ => terms.at_renewal(Standing {
            due_date: date("dueDate"),
            n_renewals: case["renewals"].as_u64().unwrap_or(0),
            is_recalled: case["recall"] == true,
        }),
    };
    let due = due.map_or_else(|reasons| reasons.join("; "), moment::wire);
    format!("{}: {due}\n", text("name"))
}
