//! Accounts as they change: charging, and what is done about a charge, each with its action.

use pinakes_store::{Expr, Query, StoreError, Txn, View};
use serde_json::{Map, Value, json};

use super::money::Money;
use super::{ACCOUNTS, FEE_FINES, OWNERS};
use crate::circulation::book::Book;
use crate::circulation::fees::action_records::FEE_FINE_ACTIONS;
use crate::circulation::fees::charged::{Automatic, CLOSED};
use crate::circulation::notices::sending::FeeEvent;
use crate::circulation::records::{object, text};
use crate::circulation::{moment, notices};
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::error::FolioError;
use crate::users::user::USERS;

/// Status of a fee about which something is still to be done.
pub(crate) const OPEN: &str = "Open";

/// The id of the site's own record for an automatic charge, if it made one; else that of a new tenant.
pub(crate) fn id_of(automatic: Automatic, view: &mut View<'_>) -> Result<String, StoreError> {
    if view.has(&FEE_FINES.kind, automatic.id())? {
        return Ok(automatic.id().to_owned());
    }
    let named = Expr::Is("feeFineType".into(), pinakes_store::Value::Folded(automatic.name().to_owned()));
    for found in view.find(&FEE_FINES.kind, &Query::filter(named))? {
        if found.json()?["automatic"].as_bool() == Some(true) {
            return Ok(found.id);
        }
    }
    Ok(automatic.id().to_owned())
}

/// The owner of the fees that arise at a service point.
pub(crate) fn owner_at(view: &mut View<'_>, service_point: &str) -> Result<Option<Value>, StoreError> {
    if service_point.is_empty() {
        return Ok(None);
    }
    let at = Expr::Is("servicePointOwner.value".into(), service_point.into());
    view.first(&OWNERS.kind, at)?.map(|it| it.json()).transpose()
}

/// Who does something: staff by their name, or the system.
pub(crate) fn source(view: &mut View<'_>, writer: &Writer) -> Result<String, StoreError> {
    let user = match &writer.user {
        Some(id) => view.get(&USERS.kind, id)?.map(|it| it.json()).transpose()?,
        None => None,
    };
    let Some(user) = user else { return Ok("System".to_owned()) };
    Ok(match (text(&user, "personal.lastName"), text(&user, "personal.firstName")) {
        (last, "") => last.to_owned(),
        (last, first) => format!("{last}, {first}"),
    })
}

/// A fee that circulation charges.
#[derive(Debug)]
pub(crate) struct Charge<'a> {
    pub(crate) kind: Automatic,
    pub(crate) amount: Money,
    pub(crate) owner: &'a Value,
    pub(crate) loan: &'a Value,
    pub(crate) book: &'a Book,
    /// Where it arose; empty when nowhere.
    pub(crate) service_point: &'a str,
    /// What patrons and staff are told about it.
    pub(crate) comments: Option<String>,
    /// The notice that it brings about.
    pub(crate) event: Option<FeeEvent>,
}

/// Charges a fee: an open account with its first action.
pub(crate) fn charge(txn: &mut Txn<'_>, writer: &Writer, charge: &Charge<'_>) -> Result<Value, FolioError> {
    let shown = Value::Object(charge.book.summary());
    let loan = charge.loan;
    let account = json!({
        "amount": charge.amount.number(),
        "remaining": charge.amount.number(),
        "status": {"name": OPEN},
        "paymentStatus": {"name": "Outstanding"},
        "feeFineType": charge.kind.name(),
        "feeFineOwner": charge.owner["owner"],
        "title": shown["title"],
        "barcode": shown["barcode"],
        "callNumber": shown["callNumber"],
        "location": shown["location"]["name"],
        "materialType": shown["materialType"]["name"],
        "materialTypeId": charge.book.item["materialTypeId"],
        "dueDate": loan["dueDate"],
        "returnedDate": loan["returnDate"],
        "userId": loan["userId"],
        "itemId": charge.book.id(),
        "loanId": loan["id"],
        "loanPolicyId": loan["loanPolicyId"],
        "overdueFinePolicyId": loan["overdueFinePolicyId"],
        "lostItemFeePolicyId": loan["lostItemPolicyId"],
        "ownerId": charge.owner["id"],
        "feeFineId": id_of(charge.kind, txn)?,
        "contributors": shown["contributors"],
        "holdingsRecordId": shown["holdingsRecordId"],
        "instanceId": shown["instanceId"],
    });
    let account = collection::insert(txn, writer, &ACCOUNTS, object(&account))?.body;
    let action = Action {
        ty: charge.kind.name().to_owned(),
        amount: charge.amount,
        balance: charge.amount,
        service_point: charge.service_point.to_owned(),
        source: source(txn, writer)?,
        comments: charge.comments.clone(),
        ..Action::default()
    };
    let action = note(txn, writer, &account, &action)?;
    if let Some(event) = charge.event {
        notices::fee(txn, writer, event, loan, &account, &action)?;
    }
    Ok(account)
}

/// Something that was done about an account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Action {
    pub(crate) ty: String,
    pub(crate) amount: Money,
    pub(crate) balance: Money,
    pub(crate) comments: Option<String>,
    pub(crate) information: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) service_point: String,
    pub(crate) source: String,
    pub(crate) notifies: bool,
}

/// Keeps what was done about an account.
pub(crate) fn note(
    txn: &mut Txn<'_>,
    writer: &Writer,
    account: &Value,
    action: &Action,
) -> Result<Value, FolioError> {
    let service_point = Some(action.service_point.as_str()).filter(|it| !it.is_empty());
    let body = json!({
        "dateAction": moment::wire(moment::from_ms(writer.now_ms)),
        "typeAction": action.ty,
        "comments": action.comments,
        "notify": action.notifies,
        "amountAction": action.amount.number(),
        "balance": action.balance.number(),
        "transactionInformation": action.information,
        "createdAt": service_point,
        "source": action.source,
        "paymentMethod": action.method,
        "accountId": account["id"],
        "userId": account["userId"],
    });
    Ok(collection::insert(txn, writer, &FEE_FINE_ACTIONS, object(&body))?.body)
}

/// Gives an account another remaining amount and payment status; with nothing remaining it is closed.
pub(crate) fn settle(
    txn: &mut Txn<'_>,
    writer: &Writer,
    account: &Value,
    remaining: Money,
    payment_status: &str,
) -> Result<Value, FolioError> {
    let mut body: Map<String, Value> = object(account);
    body.insert("remaining".into(), remaining.number());
    body.insert("paymentStatus".into(), json!({"name": payment_status}));
    let status = if remaining.is_positive() { OPEN } else { CLOSED };
    body.insert("status".into(), json!({"name": status}));
    let id = text(account, "id").to_owned();
    Ok(collection::put(txn, writer, &ACCOUNTS, &id, body, Missing::Refuse, Lock::Ignored)?.body)
}

/// The actions of an account, in their order.
pub(crate) fn actions_of(view: &mut View<'_>, account: &str) -> Result<Vec<Value>, StoreError> {
    let of_account = Query::filter(Expr::Is("accountId".into(), account.into()));
    let found = view.find(&FEE_FINE_ACTIONS.kind, &of_account)?;
    let mut actions = found.iter().map(pinakes_store::Record::json).collect::<Result<Vec<Value>, _>>()?;
    actions.sort_by(|a, b| text(a, "dateAction").cmp(text(b, "dateAction")));
    Ok(actions)
}

/// What of an account can be given back: to the patron what they paid, to other accounts what was transferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refundable {
    pub(crate) paid: Money,
    /// What was transferred, by the name of the account it went to.
    pub(crate) transferred: Vec<(String, Money)>,
}

impl Refundable {
    /// From the actions of an account: what came in, without what was given back.
    pub(crate) fn of(actions: &[Value]) -> Self {
        let mut all = Self::default();
        for action in actions {
            let (ty, amount) = (text(action, "typeAction"), Money::at(action, "amountAction"));
            let to = text(action, "transactionInformation").strip_prefix("Refunded to ");
            if ty.starts_with("Paid ") {
                all.paid = all.paid + amount;
            } else if ty.starts_with("Transferred ") {
                all.add(text(action, "paymentMethod"), amount);
            } else if ty.starts_with("Refunded ") {
                match to {
                    Some(name) if name != "patron" => all.add(name, -amount),
                    _ => all.paid = all.paid - amount,
                }
            }
        }
        all
    }

    fn add(&mut self, name: &str, amount: Money) {
        match self.transferred.iter_mut().find(|(it, _)| it == name) {
            Some((_, sum)) => *sum = *sum + amount,
            None => self.transferred.push((name.to_owned(), amount)),
        }
    }

    /// All of it.
    pub(crate) fn total(&self) -> Money {
        self.paid + self.transferred.iter().map(|it| it.1).sum()
    }

    /// Whom `amount` goes back to: accounts first, in their order, then the patron.
    fn shares(&self, amount: Money) -> Vec<(String, Money)> {
        let mut left = amount;
        let mut shares = Vec::new();
        let patron = [("patron".to_owned(), self.paid)];
        for (name, most) in self.transferred.iter().chain(&patron) {
            let share = left.min(*most);
            if share.is_positive() {
                shares.push((name.clone(), share));
                left = left - share;
            }
        }
        shares
    }
}

/// Gives `amount` of an account back: for each whom it goes to a credit and a refund. Returns the account and the
/// actions.
pub(crate) fn refund(
    txn: &mut Txn<'_>,
    writer: &Writer,
    account: &Value,
    amount: Money,
    template: &Action,
) -> Result<(Value, Vec<Value>), FolioError> {
    let refundable = Refundable::of(&actions_of(txn, text(account, "id"))?);
    let how = if amount < refundable.total() { "partially" } else { "fully" };
    let remaining = Money::at(account, "remaining");
    let reason = template.ty.strip_prefix("Refund").unwrap_or_default();
    let mut done = Vec::new();
    for (to, share) in refundable.shares(amount) {
        let credit = Action {
            ty: format!("Credited {how}{reason}"),
            amount: share,
            balance: remaining,
            information: Some(format!("Refund to {to}")),
            ..template.clone()
        };
        let refund = Action {
            ty: format!("Refunded {how}{reason}"),
            amount: share,
            balance: remaining + share,
            information: Some(format!("Refunded to {to}")),
            ..template.clone()
        };
        done.push(note(txn, writer, account, &credit)?);
        done.push(note(txn, writer, account, &refund)?);
    }
    let mut body = object(account);
    body.insert("paymentStatus".into(), json!({"name": format!("Refunded {how}")}));
    let id = text(account, "id").to_owned();
    let account = collection::put(txn, writer, &ACCOUNTS, &id, body, Missing::Refuse, Lock::Ignored)?.body;
    Ok((account, done))
}

/// Cancels what is left of an account; `ty` says why: `Cancelled as error`, `Cancelled item returned`.
pub(crate) fn cancel(
    txn: &mut Txn<'_>,
    writer: &Writer,
    account: &Value,
    action: Action,
) -> Result<(Value, Value), FolioError> {
    let action = Action { amount: Money::at(account, "remaining"), balance: Money::ZERO, ..action };
    let noted = note(txn, writer, account, &action)?;
    Ok((settle(txn, writer, account, Money::ZERO, &action.ty)?, noted))
}
