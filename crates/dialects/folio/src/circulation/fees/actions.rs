//! What staff do about fees: pay, waive, transfer, refund, cancel, for one account or several, each with a check whether
//! it may be done.

use axum::response::Response;
use http::StatusCode;
use pinakes_store::{Txn, View, Weight};
use serde_json::{Map, Value, json};

use super::ACCOUNTS;
use super::accounts::{self, Action, Refundable};
use super::money::Money;
use crate::circulation::fees::charged::CLOSED;
use crate::circulation::records::text;
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, FolioError};
use crate::platform::limits::BULK_ACCOUNTS;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, parse_uuid};

/// What is done about a fee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Pay,
    Waive,
    Transfer,
    Refund,
    Cancel,
}

impl Deed {
    const ALL: [(&'static str, Self); 5] = [
        ("pay", Self::Pay),
        ("waive", Self::Waive),
        ("transfer", Self::Transfer),
        ("refund", Self::Refund),
        ("cancel", Self::Cancel),
    ];

    /// What actions and payment statuses say: `Paid`, with `fully` or `partially` behind it.
    fn done(self) -> &'static str {
        match self {
            Self::Pay => "Paid",
            Self::Waive => "Waived",
            Self::Transfer => "Transferred",
            Self::Refund => "Refunded",
            Self::Cancel => "Cancelled",
        }
    }
}

/// The routes of what is done about fees.
pub(super) fn routes(mut routes: Routes) -> Routes {
    for (name, deed) in Deed::ALL {
        let to = |whose: &str, end: &str| Access::owned(format!("feesfines.{whose}.{end}.post"));
        routes = routes
            .post(&format!("/accounts/{{id}}/{name}"), to("accounts", name), move |call| one(call, deed))
            .post(&format!("/accounts-bulk/{name}"), to("accounts-bulk", name), move |call| many(call, deed));
        if deed == Deed::Cancel {
            continue;
        }
        let check = format!("check-{name}");
        routes = routes
            .post(&format!("/accounts/{{id}}/{check}"), to("accounts", &check), move |call| {
                check_one(call, deed)
            })
            .post(&format!("/accounts-bulk/{check}"), to("accounts-bulk", &check), move |call| {
                check_many(call, deed)
            });
    }
    routes
}

/// What a request is about, as answers repeat it.
#[derive(Debug, Clone)]
struct Asked {
    ids: Vec<String>,
    is_bulk: bool,
    /// The amount as it was given: clients get it back so.
    amount: Value,
    body: Map<String, Value>,
}

impl Asked {
    async fn of_one(call: &mut Call) -> Result<Self, FolioError> {
        let id = call.uuid_param("id")?;
        let body = call.object().await?;
        Ok(Self {
            ids: vec![id],
            is_bulk: false,
            amount: body.get("amount").cloned().unwrap_or_default(),
            body,
        })
    }

    async fn of_many(call: &mut Call) -> Result<Self, FolioError> {
        let body = call.object().await?;
        let given = body.get("accountIds").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if given.is_empty() {
            return Err(FolioError::unprocessable(crate::platform::error::Fault::missing("accountIds")));
        }
        if BULK_ACCOUNTS < given.len() {
            let message =
                format!("accountIds has {} entries, at most {BULK_ACCOUNTS} are taken", given.len());
            return Err(FolioError::bad_request(message));
        }
        let mut ids: Vec<String> = Vec::new();
        for id in given {
            let text = id.as_str().unwrap_or_default();
            let id = parse_uuid(text)
                .ok_or_else(|| FolioError::bad_request(format!("Invalid UUID string: {text}")))?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(Self { ids, is_bulk: true, amount: body.get("amount").cloned().unwrap_or_default(), body })
    }

    fn amount_text(&self) -> String {
        match &self.amount {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }

    /// The beginning of an answer: which accounts, how much.
    fn answer(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if self.is_bulk {
            map.insert("accountIds".into(), json!(self.ids));
        } else {
            map.insert("accountId".into(), json!(self.ids.first()));
        }
        map.insert("amount".into(), self.amount_text().into());
        map
    }

    fn text(&self, name: &str) -> Option<String> {
        self.body.get(name).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    }

    /// What each action of the request says.
    fn action(&self) -> Action {
        Action {
            comments: self.text("comments"),
            information: self.body.get("transactionInfo").and_then(Value::as_str).map(str::to_owned),
            method: self.text("paymentMethod"),
            service_point: self.text("servicePointId").unwrap_or_default(),
            source: self.text("userName").unwrap_or_default(),
            notifies: self.body.get("notifyPatron").and_then(Value::as_bool).unwrap_or(false),
            ..Action::default()
        }
    }
}

/// Why a deed may not be done.
#[derive(Debug)]
enum Refusal {
    /// 404: there is no such account.
    Unknown(String),
    /// 422 with a message.
    Not(&'static str),
}

/// What comes of a look at the accounts: the amount, what of each can be used, what remains of all afterwards.
struct Checked {
    accounts: Vec<Value>,
    amount: Money,
    remaining: Money,
}

fn check(view: &mut View<'_>, asked: &Asked, deed: Deed) -> Result<Result<Checked, Refusal>, FolioError> {
    let mut accounts = Vec::with_capacity(asked.ids.len());
    for id in &asked.ids {
        match view.get(&ACCOUNTS.kind, id)? {
            Some(record) => accounts.push(record.json()?),
            None => return Ok(Err(Refusal::Unknown(id.clone()))),
        }
    }
    let is_any_closed = accounts.iter().any(|it| text(it, "status.name") == CLOSED);
    if deed == Deed::Cancel {
        let amount = accounts.iter().map(|it| Money::at(it, "remaining")).sum();
        return Ok(match is_any_closed {
            true => Err(Refusal::Not("Fee/fine is already closed")),
            false => Ok(Checked { accounts, amount, remaining: Money::ZERO }),
        });
    }
    let Some(amount) = Money::of(&asked.amount) else {
        return Ok(Err(Refusal::Not("Invalid amount entered")));
    };
    if !amount.is_positive() {
        return Ok(Err(Refusal::Not("Amount must be positive")));
    }
    let most: Money = if deed == Deed::Refund {
        let mut sum = Money::ZERO;
        for account in &accounts {
            sum = sum + Refundable::of(&accounts::actions_of(view, text(account, "id"))?).total();
        }
        sum
    } else {
        accounts.iter().map(|it| Money::at(it, "remaining")).sum()
    };
    Ok(match deed {
        Deed::Refund if most < amount => Err(Refusal::Not(
            "Refund amount must be greater than zero and less than or equal to Selected amount",
        )),
        Deed::Pay | Deed::Waive | Deed::Transfer if is_any_closed => {
            Err(Refusal::Not("Fee/fine is already closed"))
        }
        Deed::Pay | Deed::Waive | Deed::Transfer if most < amount => {
            Err(Refusal::Not("Requested amount exceeds remaining amount"))
        }
        _ => Ok(Checked { accounts, amount, remaining: most - amount }),
    })
}

/// The answer to a refusal: plain text for an unknown account, else the request with the reason.
fn refused(asked: &Asked, refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Unknown(id) => Err(FolioError::not_found(format!("Fee/fine ID {id} not found"))),
        Refusal::Not(message) => {
            let mut body = asked.answer();
            body.insert("allowed".into(), false.into());
            body.insert("errorMessage".into(), message.into());
            Ok(json_answer(StatusCode::UNPROCESSABLE_ENTITY, &Value::Object(body)))
        }
    }
}

async fn check_one(mut call: Call, deed: Deed) -> Answer {
    let asked = Asked::of_one(&mut call).await?;
    answer_check(&call, asked, deed).await
}

async fn check_many(mut call: Call, deed: Deed) -> Answer {
    let asked = Asked::of_many(&mut call).await?;
    answer_check(&call, asked, deed).await
}

async fn answer_check(call: &Call, asked: Asked, deed: Deed) -> Answer {
    let looked = asked.clone();
    let checked = call.db().read(Weight::Scan, move |view| check(view, &looked, deed)).await?;
    match checked {
        Err(refusal) => refused(&asked, refusal),
        Ok(checked) => {
            let mut body = asked.answer();
            body.insert("allowed".into(), true.into());
            body.insert("remainingAmount".into(), checked.remaining.text().into());
            Ok(json_answer(StatusCode::OK, &Value::Object(body)))
        }
    }
}

async fn one(mut call: Call, deed: Deed) -> Answer {
    let asked = Asked::of_one(&mut call).await?;
    answer_deed(&call, asked, deed).await
}

async fn many(mut call: Call, deed: Deed) -> Answer {
    let asked = Asked::of_many(&mut call).await?;
    answer_deed(&call, asked, deed).await
}

async fn answer_deed(call: &Call, asked: Asked, deed: Deed) -> Answer {
    let writer = Writer::of(call);
    let wanted = asked.clone();
    let write = move |txn: &mut Txn<'_>| -> Result<Result<Value, Refusal>, FolioError> {
        let checked = match check(txn, &wanted, deed)? {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (amount, remaining) = (checked.amount, checked.remaining);
        let actions = act(txn, &writer(), &wanted, checked, deed)?;
        let mut body = wanted.answer();
        body.insert("amount".into(), amount.text().into());
        body.insert("remainingAmount".into(), remaining.text().into());
        body.insert("feefineactions".into(), actions.into());
        Ok(Ok(Value::Object(body)))
    };
    match call.db().write(write).await? {
        Ok(body) => Ok::<Response, FolioError>(json_answer(StatusCode::CREATED, &body)),
        Err(refusal) => refused(&asked, refusal),
    }
}

/// Does it: the amount is spread over the accounts so that small ones are settled first, as FOLIO does.
fn act(
    txn: &mut Txn<'_>,
    writer: &Writer,
    asked: &Asked,
    checked: Checked,
    deed: Deed,
) -> Result<Vec<Value>, FolioError> {
    let template = asked.action();
    let mut done = Vec::new();
    let mut left = checked.amount;
    let mut accounts = Vec::with_capacity(checked.accounts.len());
    for account in checked.accounts {
        let most = match deed {
            Deed::Refund => Refundable::of(&accounts::actions_of(txn, text(&account, "id"))?).total(),
            _ => Money::at(&account, "remaining"),
        };
        accounts.push((most, account));
    }
    accounts.sort_by_key(|it| it.0);
    let n_accounts = accounts.len();
    for (place, (most, account)) in accounts.into_iter().enumerate() {
        if deed == Deed::Cancel {
            let action = Action { ty: "Cancelled as error".to_owned(), ..template.clone() };
            done.push(accounts::cancel(txn, writer, &account, action)?.1);
            continue;
        }
        let share = left.share(n_accounts - place).min(most);
        left = left - share;
        if !share.is_positive() {
            continue;
        }
        if deed == Deed::Refund {
            done.extend(accounts::refund(txn, writer, &account, share, &template)?.1);
            continue;
        }
        let remaining = Money::at(&account, "remaining") - share;
        let how = if remaining.is_positive() { "partially" } else { "fully" };
        let ty = format!("{} {how}", deed.done());
        let action = Action { ty: ty.clone(), amount: share, balance: remaining, ..template.clone() };
        done.push(accounts::note(txn, writer, &account, &action)?);
        accounts::settle(txn, writer, &account, remaining, &ty)?;
    }
    Ok(done)
}
