//! Items that are lent for use in the library (`loansPolicy.forUseAtLocation`): the patron leaves one on the hold shelf
//! and picks it up again while the loan stays open.

use http::StatusCode;
use pinakes_store::Txn;
use serde_json::{Value, json};

use super::neighbours::ITEMS;
use super::records::{Records, by_barcode, object};
use super::{loans, moment, terms};
use crate::platform::app::Call;
use crate::platform::collection::Writer;
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::{json_answer, required_text};

/// Where the item of such a loan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Shelf,
    Patron,
}

/// Adds the routes.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .post(
            "/circulation/hold-by-barcode-for-use-at-location",
            Access::to("circulation.hold-by-barcode-for-use-at-location.post"),
            |call| bring(call, Place::Shelf),
        )
        .post(
            "/circulation/pickup-by-barcode-for-use-at-location",
            Access::to("circulation.pickup-by-barcode-for-use-at-location.post"),
            |call| bring(call, Place::Patron),
        )
}

/// Returns `forUseAtLocation` of a loan whose item the patron has.
pub(super) fn in_use(now_ms: i64) -> Value {
    json!({"status": "In use", "statusDate": moment::wire(moment::from_ms(now_ms))})
}

/// Returns `forUseAtLocation` of a closed loan.
pub(super) fn returned(now_ms: i64) -> Value {
    json!({"status": "Returned", "statusDate": moment::wire(moment::from_ms(now_ms))})
}

/// Moves the item of `{"itemBarcode"}` to the shelf or the patron; returns the loan.
///
/// Errors: 422 for an item without an open loan, or one not lent for use at the location.
async fn bring(mut call: Call, to: Place) -> Answer {
    let body = call.object().await?;
    let barcode = required_text(&body, "itemBarcode")?.to_owned();
    let writer = Writer::of(&call);
    let write = move |txn: &mut Txn<'_>| move_item(txn, &writer(), &barcode, to);
    let loan = call.db().write(write).await?;
    Ok(json_answer(StatusCode::OK, &loan))
}

fn move_item(txn: &mut Txn<'_>, writer: &Writer, barcode: &str, to: Place) -> Result<Value, FolioError> {
    let refuse = |message: &str| FolioError::unprocessable(Fault::new(message).with("itemBarcode", barcode));
    let Some(item) = by_barcode(txn, &ITEMS, barcode)? else {
        return Err(refuse(&format!("No item with barcode {barcode} could be found")));
    };
    let Some(loan) = loans::open_loan_of(txn, &item.id)? else {
        return Err(refuse("No open loan found for the item barcode."));
    };
    let mut loan = object(&loan.json()?);
    if loan.get("forUseAtLocation").is_none_or(Value::is_null) {
        return Err(refuse("The item is not lent for use at location."));
    }
    let mut known = Records::default();
    let (place, action) = match to {
        Place::Patron => (in_use(writer.now_ms), "pickedUpForUseAtLocation"),
        Place::Shelf => {
            let now = moment::from_ms(writer.now_ms);
            let mut place = json!({"status": "Held", "statusDate": moment::wire(now)});
            let policy = loan.get("loanPolicyId").and_then(Value::as_str).unwrap_or_default();
            let policy = terms::loan_policy(txn, &mut known, policy)?;
            if let Some(end) = policy.shelf_period().and_then(|it| it.after(now)) {
                place["holdShelfExpirationDate"] = moment::wire(end).into();
            }
            (place, "heldForUseAtLocation")
        }
    };
    loan.insert("forUseAtLocation".into(), place);
    loan.insert("action".into(), action.into());
    let stored = loans::change(txn, writer, loan)?;
    Ok(loans::view::extended_all(txn, &mut known, vec![stored])?.pop().unwrap_or_default())
}
