//! Reports on fees: refunds, the cash drawer of a service point, all transactions of a time (`/feefine-reports`).

use std::collections::{BTreeMap, HashMap};

use http::StatusCode;
use jiff::Timestamp;
use pinakes_store::{End, Expr, Query, Record, Value as Wanted, View, Weight};
use serde_json::{Map, Value, json};

use super::money::Money;
use super::{ACCOUNTS, accounts};
use crate::circulation::fees::action_records::FEE_FINE_ACTIONS;
use crate::circulation::loans::LOANS;
use crate::circulation::neighbours::{GROUPS, ITEMS, LOCATIONS, SERVICE_POINTS, USERS};
use crate::circulation::records::{Records, text};
use crate::circulation::{moment, terms};
use crate::platform::app::Call;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// The routes of reports.
pub(super) fn routes(routes: Routes) -> Routes {
    let drawer = "/feefine-reports/cash-drawer-reconciliation";
    routes
        .post("/feefine-reports/refund", Access::to("feefine-reports.refund.post"), refunds)
        .post(drawer, Access::to("feesfines.feefine-reports.cash-drawer-reconciliation.post"), drawer_report)
        .post(
            &format!("{drawer}/sources"),
            Access::to("feesfines.feefine-reports.cash-drawer-reconciliation-source.post"),
            drawer_sources,
        )
        .post(
            "/feefine-reports/financial-transactions-detail",
            Access::to("feefine-reports.financial-transactions-detail.post"),
            transactions,
        )
}

/// What a report is asked for.
#[derive(Debug, Clone, Default)]
struct Asked {
    start: Option<String>,
    end: Option<String>,
    lists: HashMap<&'static str, Vec<String>>,
    created_at: String,
}

impl Asked {
    /// Errors: 422 for a field that the report does not have.
    fn of(body: &Map<String, Value>, lists: &[&'static str]) -> Result<Self, FolioError> {
        const OWN: [&str; 3] = ["startDate", "endDate", "createdAt"];
        if let Some(name) =
            body.keys().find(|it| !OWN.contains(&it.as_str()) && !lists.contains(&it.as_str()))
        {
            let message = format!("Unrecognized field \"{name}\" (of a report), not marked as ignorable");
            return Err(FolioError::unprocessable(Fault::new(message).ty("1").code("-1")));
        }
        let whole = Value::Object(body.clone());
        let date = |name: &str| Some(text(&whole, name).to_owned()).filter(|it| !it.is_empty());
        let texts = |name: &str| -> Vec<String> {
            let list = whole[name].as_array().map(Vec::as_slice).unwrap_or_default();
            list.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        for name in ["startDate", "endDate"] {
            if date(name)
                .is_some_and(|it| it.get(..10).and_then(|it| it.parse::<jiff::civil::Date>().ok()).is_none())
            {
                let message = format!("{name} is no date; expected YYYY-MM-DD");
                return Err(FolioError::unprocessable(Fault::new(message).with(name, text(&whole, name))));
            }
        }
        Ok(Self {
            start: date("startDate"),
            end: date("endDate"),
            lists: lists.iter().map(|it| (*it, texts(it))).collect(),
            created_at: text(&whole, "createdAt").to_owned(),
        })
    }

    /// Whether a value is in a list that was asked for; an empty list asks for all.
    fn wants(&self, list: &'static str, value: &str) -> bool {
        self.lists.get(list).is_none_or(|it| it.is_empty() || it.iter().any(|it| it == value))
    }

    /// The actions of the time that is asked for: days in the tenant's zone, the last one included.
    fn actions(&self, view: &mut View<'_>) -> Result<Vec<Value>, FolioError> {
        let zone = terms::zone(view)?;
        let day = |text: &Option<String>| text.as_ref()?.get(..10)?.parse::<jiff::civil::Date>().ok();
        let bound = |it: Timestamp| Wanted::Instant(it.as_millisecond());
        let midnight = |it| moment::at(it, jiff::civil::Time::midnight(), &zone);
        let from = day(&self.start).map_or(End::Open, |it| End::Included(bound(midnight(it))));
        let until = match (day(&self.end), &self.start) {
            (Some(day), _) => End::Excluded(bound(day.tomorrow().map_or(Timestamp::MAX, midnight))),
            (None, _) => End::Open,
        };
        let in_time = match (&from, &until) {
            (End::Open, End::Open) => Expr::All,
            _ => Expr::Range("dateAction".into(), from, until),
        };
        let query = Query::filter(in_time).sorted("dateAction", pinakes_store::Direction::Ascending);
        let found = view.find(&FEE_FINE_ACTIONS.kind, &query)?;
        Ok(found.iter().map(Record::json).collect::<Result<Vec<Value>, _>>()?)
    }
}

fn reads(value: &Value) -> Money {
    Money::at(value, "amountAction")
}

/// When an action was, as reports show it.
fn shown_date(view: &mut View<'_>, value: &str) -> Result<String, FolioError> {
    let zone = terms::zone(view)?;
    let date = moment::parse(value);
    Ok(date.map(|it| it.to_zoned(zone).strftime("%-m/%-d/%y, %-I:%M %p").to_string()).unwrap_or_default())
}

fn name_of(user: &Value) -> String {
    let (last, first) = (text(user, "personal.lastName"), text(user, "personal.firstName"));
    let middle = text(user, "personal.middleName");
    let given = [first, middle].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
    if given.is_empty() { last.to_owned() } else { format!("{last}, {given}") }
}

/// Part of the actions of an account that begin with a word, e.g. `Paid`.
fn sum_of(actions: &[Value], word: &str) -> Money {
    actions.iter().filter(|it| text(it, "typeAction").starts_with(word)).map(reads).sum()
}

fn joined(actions: &[Value], word: &str, field: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for action in actions.iter().filter(|it| text(it, "typeAction").starts_with(word)) {
        let name = text(action, field);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        _ => "Multiple".to_owned(),
    }
}

async fn refunds(mut call: Call) -> Answer {
    let asked = Asked::of(&call.object().await?, &["feeFineOwners"])?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut known = Records::default();
        let mut rows = Vec::new();
        for action in asked.actions(view)? {
            if !text(&action, "typeAction").starts_with("Refunded") {
                continue;
            }
            let Some(account) = known.at(view, &ACCOUNTS, &action, "accountId")? else { continue };
            if asked.wants("feeFineOwners", text(&account, "ownerId")) {
                rows.push(refund_row(view, &mut known, &action, &account)?);
            }
        }
        Ok(json!({"reportData": rows}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn refund_row(
    view: &mut View<'_>,
    known: &mut Records,
    action: &Value,
    account: &Value,
) -> Result<Value, FolioError> {
    let user = known.at(view, &USERS, account, "userId")?.unwrap_or_default();
    let group = known.at(view, &GROUPS, &user, "patronGroup")?.unwrap_or_default();
    let instance = known.at(view, &crate::circulation::neighbours::INSTANCES, account, "instanceId")?;
    let all = accounts::actions_of(view, text(account, "id"))?;
    let billed = shown_date(view, text(account, "metadata.createdDate"))?;
    let date = shown_date(view, text(action, "dateAction"))?;
    Ok(json!({
        "patronName": name_of(&user),
        "patronBarcode": text(&user, "barcode"),
        "patronId": account["userId"],
        "patronGroup": text(&group, "group"),
        "feeFineType": account["feeFineType"],
        "billedAmount": Money::at(account, "amount").text(),
        "dateBilled": billed,
        "paidAmount": sum_of(&all, "Paid").text(),
        "paymentMethod": joined(&all, "Paid", "paymentMethod"),
        "transactionInfo": joined(&all, "Paid", "transactionInformation"),
        "transferredAmount": sum_of(&all, "Transferred").text(),
        "transferAccount": joined(&all, "Transferred", "paymentMethod"),
        "feeFineId": account["id"],
        "refundDate": date,
        "refundAmount": reads(action).text(),
        "refundAction": action["typeAction"],
        "refundReason": action["paymentMethod"],
        "staffInfo": comment(text(action, "comments"), "STAFF : "),
        "patronInfo": comment(text(action, "comments"), "PATRON : "),
        "itemBarcode": text(account, "barcode"),
        "instance": instance.as_ref().map_or_else(|| text(account, "title").to_owned(), |it| text(it, "title").to_owned()),
        "actionCompletionDate": "",
        "staffMemberName": action["source"],
        "actionTaken": "",
        "feeFineOwner": account["feeFineOwner"],
    }))
}

/// The part of a comment that is for staff or for the patron.
fn comment<'a>(comments: &'a str, whose: &str) -> &'a str {
    let Some((_, rest)) = comments.split_once(whose) else { return "" };
    let end = ["STAFF : ", "PATRON : "].iter().filter_map(|it| rest.find(it)).min().unwrap_or(rest.len());
    rest[..end].trim()
}

/// Amounts and numbers by a name, e.g. by owner, with a total.
fn stats<'a>(rows: impl IntoIterator<Item = (&'a str, Money)>) -> Vec<Value> {
    let mut by: BTreeMap<&str, (Money, u64)> = BTreeMap::new();
    let mut total = (Money::ZERO, 0_u64);
    for (name, amount) in rows {
        let entry = by.entry(name).or_default();
        *entry = (entry.0 + amount, entry.1 + 1);
        total = (total.0 + amount, total.1 + 1);
    }
    let shown = |name: &str, (amount, count): (Money, u64)| json!({"name": name, "totalAmount": amount.text(), "totalCount": count.to_string()});
    let mut list: Vec<Value> = by.into_iter().map(|(name, it)| shown(name, it)).collect();
    list.push(shown("totals", total));
    list
}

async fn drawer_report(mut call: Call) -> Answer {
    let body = call.object().await?;
    for name in ["startDate", "createdAt"] {
        if body.get(name).is_none_or(Value::is_null) {
            return Err(FolioError::unprocessable(Fault::missing(name)));
        }
    }
    let asked = Asked::of(&body, &["sources"])?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut known = Records::default();
        let mut rows = Vec::new();
        for action in asked.actions(view)? {
            let is_here = text(&action, "createdAt") == asked.created_at;
            if !text(&action, "typeAction").starts_with("Paid")
                || !is_here
                || !asked.wants("sources", text(&action, "source"))
            {
                continue;
            }
            let Some(account) = known.at(view, &ACCOUNTS, &action, "accountId")? else { continue };
            let date = shown_date(view, text(&action, "dateAction"))?;
            let billed = shown_date(view, text(&account, "metadata.createdDate"))?;
            rows.push(json!({
                "source": action["source"],
                "feeFineId": account["id"],
                "feeFineOwner": account["feeFineOwner"],
                "feeFineType": account["feeFineType"],
                "paidAmount": reads(&action).text(),
                "paymentMethod": action["paymentMethod"],
                "paymentDate": date,
                "paymentStatus": action["typeAction"],
                "transactionInfo": action["transactionInformation"],
                "additionalStaffInfo": comment(text(&action, "comments"), "STAFF : "),
                "additionalPatronInfo": comment(text(&action, "comments"), "PATRON : "),
                "patronId": account["userId"],
                "billedAmount": Money::at(&account, "amount").text(),
                "dateBilled": billed,
            }));
        }
        let by = |field: &'static str| {
            stats(rows.iter().map(move |it| {
                let amount = text(it, "paidAmount").parse().ok().and_then(Money::of_number);
                (text(it, field), amount.unwrap_or_default())
            }))
        };
        let found = json!({
            "bySource": by("source"), "byPaymentMethod": by("paymentMethod"), "byFeeFineType": by("feeFineType"),
            "byFeeFineOwner": by("feeFineOwner"),
        });
        Ok(json!({"reportData": rows, "reportStats": found}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

/// Who took money at a service point: `{"createdAt"}`.
async fn drawer_sources(mut call: Call) -> Answer {
    let body = Value::Object(call.object().await?);
    let point = text(&body, "createdAt").to_owned();
    if point.is_empty() {
        return Err(FolioError::unprocessable(Fault::missing("createdAt")));
    }
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let at = Query::filter(Expr::Is("createdAt".into(), point.as_str().into()));
        let mut sources: Vec<String> = Vec::new();
        for action in view.find(&FEE_FINE_ACTIONS.kind, &at)? {
            let action = action.json()?;
            let source = text(&action, "source").to_owned();
            if text(&action, "typeAction").starts_with("Paid") && !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources.sort_unstable();
        Ok(json!({"sources": sources}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

async fn transactions(mut call: Call) -> Answer {
    let body = call.object().await?;
    for name in ["startDate", "feeFineOwner"] {
        if body.get(name).is_none_or(Value::is_null) {
            return Err(FolioError::unprocessable(Fault::missing(name)));
        }
    }
    let owner = body.get("feeFineOwner").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut body = body;
    let points = body.remove("createdAt").unwrap_or_default();
    body.insert("points".into(), points);
    let asked = Asked::of(&body, &["feeFineOwner", "points"])?;
    let read = move |view: &mut View<'_>| -> Result<Value, FolioError> {
        let mut known = Records::default();
        let mut rows = Vec::new();
        for action in asked.actions(view)? {
            let Some(account) = known.at(view, &ACCOUNTS, &action, "accountId")? else { continue };
            if text(&account, "ownerId") == owner && asked.wants("points", text(&action, "createdAt")) {
                rows.push(transaction_row(view, &mut known, &action, &account)?);
            }
        }
        let by = |field: &'static str, starts: &'static [&'static str]| {
            let wanted = rows.iter().filter(move |it| {
                starts.iter().any(|word| text(it, "action").starts_with(word)) || starts.is_empty()
            });
            stats(wanted.map(move |it| {
                let amount = text(it, "actionAmount").parse().ok().and_then(Money::of_number);
                (text(it, field), amount.unwrap_or_default())
            }))
        };
        let found = json!({
            "byFeeFineOwner": by("feeFineOwner", &[]),
            "byFeeFineType": by("feeFineType", &[]),
            "byAction": by("action", &[]),
            "byPaymentMethod": by("paymentMethod", &["Paid"]),
            "byWaiveReason": by("waiveReason", &["Waived"]),
            "byRefundReason": by("refundReason", &["Refunded"]),
            "byTransferAccount": by("transferAccount", &["Transferred"]),
        });
        Ok(json!({"reportData": rows, "reportStats": found}))
    };
    Ok(json_answer(StatusCode::OK, &call.db().read(Weight::Scan, read).await?))
}

fn transaction_row(
    view: &mut View<'_>,
    known: &mut Records,
    action: &Value,
    account: &Value,
) -> Result<Value, FolioError> {
    let user = known.at(view, &USERS, account, "userId")?.unwrap_or_default();
    let group = known.at(view, &GROUPS, &user, "patronGroup")?.unwrap_or_default();
    let item = known.at(view, &ITEMS, account, "itemId")?.unwrap_or_default();
    let location = known.at(view, &LOCATIONS, &item, "effectiveLocationId")?.unwrap_or_default();
    let loan = known.at(view, &LOANS, account, "loanId")?.unwrap_or_default();
    let point = known.at(view, &SERVICE_POINTS, action, "createdAt")?.unwrap_or_default();
    let ty = text(action, "typeAction");
    let if_it = |word: &str| if ty.starts_with(word) { text(action, "paymentMethod") } else { "" };
    let billed = shown_date(view, text(account, "metadata.createdDate"))?;
    let date = shown_date(view, text(action, "dateAction"))?;
    let mut dates = HashMap::new();
    for name in ["loanDate", "dueDate", "returnDate"] {
        dates.insert(name, shown_date(view, text(&loan, name))?);
    }
    Ok(json!({
        "feeFineOwner": account["feeFineOwner"],
        "feeFineType": account["feeFineType"],
        "billedAmount": Money::at(account, "amount").text(),
        "dateBilled": billed,
        "feeFineCreatedAt": text(&point, "name"),
        "feeFineSource": action["source"],
        "feeFineId": account["id"],
        "action": ty,
        "actionAmount": reads(action).text(),
        "actionDate": date,
        "actionCreatedAt": text(&point, "name"),
        "actionSource": action["source"],
        "actionStatus": ty,
        "actionAdditionalStaffInfo": comment(text(action, "comments"), "STAFF : "),
        "actionAdditionalPatronInfo": comment(text(action, "comments"), "PATRON : "),
        "paymentMethod": if_it("Paid"),
        "transactionInfo": if ty.starts_with("Paid") { text(action, "transactionInformation") } else { "" },
        "waiveReason": if_it("Waived"),
        "refundReason": if_it("Refunded"),
        "transferAccount": if_it("Transferred"),
        "patronId": account["userId"],
        "patronName": name_of(&user),
        "patronBarcode": text(&user, "barcode"),
        "patronGroup": text(&group, "group"),
        "patronEmail": text(&user, "personal.email"),
        "instance": text(account, "title"),
        "contributors": contributors(account),
        "itemBarcode": text(account, "barcode"),
        "callNumber": text(account, "callNumber"),
        "effectiveLocation": text(&location, "name"),
        "loanDate": dates["loanDate"],
        "dueDate": dates["dueDate"],
        "returnDate": dates["returnDate"],
        "loanPolicyId": loan["loanPolicyId"],
        "overdueFinePolicyId": loan["overdueFinePolicyId"],
        "lostItemPolicyId": loan["lostItemPolicyId"],
        "loanId": account["loanId"],
        "holdingsRecordId": account["holdingsRecordId"],
        "instanceId": account["instanceId"],
        "itemId": account["itemId"],
    }))
}

fn contributors(account: &Value) -> String {
    let list = account["contributors"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|it| text(it, "name")).collect::<Vec<_>>().join("; ")
}
