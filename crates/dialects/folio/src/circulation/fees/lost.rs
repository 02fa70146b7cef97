//! What a lost item costs: charged when it is declared lost or has aged to lost, given back when it returns, and the
//! loan closed once all is settled.

use jiff::Timestamp;
use pinakes_store::{StoreError, Txn, View};
use serde_json::Value;

use super::accounts::{self, Action, Charge, Refundable};
use super::actual_cost::{self, Loss};
use super::money::Money;
use crate::circulation::book::Book;
use crate::circulation::fees::charged::{Automatic, CLOSED};
use crate::circulation::fees::{ACCOUNTS, settled};
use crate::circulation::neighbours::LOCATIONS;
use crate::circulation::notices::sending::FeeEvent;
use crate::circulation::policies::LOST_ITEM_POLICIES;
use crate::circulation::records::{Records, text};
use crate::circulation::{loan_policy, moment};
use crate::platform::collection::Writer;
use crate::platform::error::{Fault, FolioError};

/// What a lost item fee policy says of a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Costs {
    item: Money,
    processing: Money,
    /// What the item costs is found out later.
    is_actual: bool,
}

impl Costs {
    fn of(policy: &Value, loss: Loss) -> Self {
        let charge = &policy["chargeAmountItem"];
        let (is_actual, item) = match text(charge, "chargeType") {
            "actualCost" => (true, Money::ZERO),
            _ => (false, Money::at(charge, "amount")),
        };
        let charges_processing = match loss {
            Loss::Declared => "chargeAmountItemPatron",
            Loss::AgedToLost => "chargeAmountItemSystem",
        };
        let processing = match policy[charges_processing].as_bool() {
            Some(true) => Money::at(policy, "lostItemProcessingFee"),
            _ => Money::ZERO,
        };
        Self { item, processing, is_actual }
    }

    fn is_nothing(&self) -> bool {
        !self.item.is_positive() && !self.processing.is_positive() && !self.is_actual
    }
}

/// Charges what a loss costs. Tells whether there was anything to charge: a loan that costs nothing is over at once.
///
/// Errors: 422 when something is to be charged and nobody owns the fees of the item's place.
pub(crate) fn charge(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    (loan, book): (&Value, &Book),
    loss: Loss,
    service_point: &str,
) -> Result<bool, FolioError> {
    let policy = known.at(txn, &LOST_ITEM_POLICIES, loan, "lostItemPolicyId")?;
    let Some(policy) = policy else { return Ok(false) };
    let costs = Costs::of(&policy, loss);
    if costs.is_nothing() {
        return Ok(false);
    }
    let place = place_of(txn, known, book)?;
    let Some(owner) = accounts::owner_at(txn, text(&place, "primaryServicePoint"))? else {
        let message = "No fee/fine owner found for item's permanent location";
        return Err(FolioError::unprocessable(Fault::new(message).with("locationId", text(&place, "id"))));
    };
    let event = (loss == Loss::AgedToLost).then_some(FeeEvent::AgedToLostFineCharged);
    for (kind, amount) in
        [(Automatic::LostItem, costs.item), (Automatic::LostItemProcessing, costs.processing)]
    {
        if amount.is_positive() {
            let comments = None;
            let charge = Charge { kind, amount, owner: &owner, loan, book, service_point, comments, event };
            accounts::charge(txn, writer, &charge)?;
        }
    }
    if costs.is_actual {
        actual_cost::open(txn, writer, known, (loan, book), (&owner, &policy), loss)?;
    }
    Ok(true)
}

/// The item's own place; where it has none, the effective one.
fn place_of(view: &mut View<'_>, known: &mut Records, book: &Book) -> Result<Value, StoreError> {
    let permanent = known.at(view, &LOCATIONS, &book.item, "permanentLocationId")?;
    Ok(permanent.map_or_else(|| Value::clone(&book.location), |it| Value::clone(&it)))
}

/// Why the fees of a lost item are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Returned,
    Renewed,
    DeclaredLost,
}

impl Found {
    fn status(self) -> &'static str {
        match self {
            Self::Returned => "Cancelled item returned",
            Self::Renewed => "Cancelled item renewed",
            Self::DeclaredLost => "Cancelled item declared lost",
        }
    }
}

/// Takes the fees of a lost item back: what was paid is refunded, what is open is cancelled; the processing fee only
/// where the policy says so, and nothing once the policy's time for it is over.
pub(crate) fn refund_lost_fees(
    txn: &mut Txn<'_>,
    writer: &Writer,
    known: &mut Records,
    loan: &Value,
    found: Found,
    service_point: &str,
) -> Result<(), FolioError> {
    let policy = known.at(txn, &LOST_ITEM_POLICIES, loan, "lostItemPolicyId")?.unwrap_or_default();
    let lost = lost_date(loan).unwrap_or(moment::from_ms(writer.now_ms));
    let ends = loan_policy::after(&policy, "feesFinesShallRefunded", lost);
    if ends.is_some_and(|it| it < moment::from_ms(writer.now_ms)) {
        return Ok(());
    }
    actual_cost::cancel_of_loan(txn, writer, text(loan, "id"))?;
    let returns_processing = policy["returnedLostItemProcessingFee"].as_bool().unwrap_or(false);
    let source = accounts::source(txn, writer)?;
    for account in settled::of_loan(txn, &ACCOUNTS.kind, text(loan, "id"))? {
        let is_cost = Automatic::LostItem.is_of(&account) || Automatic::LostItemActualCost.is_of(&account);
        let is_processing = Automatic::LostItemProcessing.is_of(&account) && returns_processing;
        let is_cancelled = text(&account, "paymentStatus.name").starts_with("Cancelled");
        if !(is_cost || is_processing) || is_cancelled {
            continue;
        }
        let template =
            Action { source: source.clone(), service_point: service_point.to_owned(), ..Action::default() };
        let paid = Refundable::of(&accounts::actions_of(txn, text(&account, "id"))?).total();
        let mut account = account;
        if paid.is_positive() {
            account = accounts::refund(txn, writer, &account, paid, &template)?.0;
        }
        if text(&account, "status.name") == CLOSED {
            accounts::settle(txn, writer, &account, Money::ZERO, found.status())?;
        } else {
            let action = Action { ty: found.status().to_owned(), ..template };
            accounts::cancel(txn, writer, &account, action)?;
        }
    }
    Ok(())
}

/// Whether the overdue fine of a lost item that returns is charged.
pub(crate) fn charges_overdue(
    view: &mut View<'_>,
    known: &mut Records,
    loan: &Value,
) -> Result<bool, StoreError> {
    let policy = known.at(view, &LOST_ITEM_POLICIES, loan, "lostItemPolicyId")?;
    Ok(policy.is_none_or(|it| text(&it, "lostItemReturned") != "Remove"))
}

/// When an item was lost: declared so, or aged.
fn lost_date(loan: &Value) -> Option<Timestamp> {
    let aged = text(loan, "agedToLostDelayedBilling.agedToLostDate");
    [text(loan, "declaredLostDate"), aged].into_iter().filter_map(moment::parse).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn costs_follow_who_says_that_it_is_lost() {
        let policy = json!({
            "chargeAmountItem": {"chargeType": "anotherCost", "amount": 10}, "lostItemProcessingFee": 5,
            "chargeAmountItemPatron": true, "chargeAmountItemSystem": false,
        });
        let check = |policy: &Value, loss, item: f64, processing: f64, is_actual| {
            let money = |it| Money::of_number(it).unwrap();
            let expected = Costs { item: money(item), processing: money(processing), is_actual };
            assert_eq!(Costs::of(policy, loss), expected);
        };
        check(&policy, Loss::Declared, 10.0, 5.0, false);
        check(&policy, Loss::AgedToLost, 10.0, 0.0, false);
        let policy = json!({"chargeAmountItem": {"chargeType": "actualCost", "amount": 3}});
        check(&policy, Loss::Declared, 0.0, 0.0, true);
        assert!(Costs::of(&json!({}), Loss::Declared).is_nothing());
    }
}
