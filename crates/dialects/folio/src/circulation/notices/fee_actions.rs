//! Notices about what is done about fees and fines.

use pinakes_store::Txn;
use serde_json::{Value, json};

use crate::circulation::fees::{ACCOUNTS, FEE_FINES, OWNERS};
use crate::circulation::notices::context;
use crate::circulation::notices::sending::send;
use crate::circulation::records::{Records, text};
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;
use crate::users::user::USERS;

/// Tells of what staff did about a fee, when they asked for it: by the template of the fee's type, or its owner's.
pub(crate) fn fee_action(
    txn: &mut Txn<'_>,
    writer: &Writer,
    action: &Value,
    _: Option<&Value>,
) -> Result<(), FolioError> {
    if action["notify"].as_bool() != Some(true) {
        return Ok(());
    }
    let mut known = Records::default();
    let Some(account) = known.at(txn, &ACCOUNTS, action, "accountId")? else { return Ok(()) };
    let Some(user) = known.at(txn, &USERS, &account, "userId")? else { return Ok(()) };
    let is_charge = text(action, "typeAction") == text(&account, "feeFineType");
    let (own, default) = match is_charge {
        true => ("chargeNoticeId", "defaultChargeNoticeId"),
        false => ("actionNoticeId", "defaultActionNoticeId"),
    };
    let kind = known.at(txn, &FEE_FINES, &account, "feeFineId")?.unwrap_or_default();
    let owner = known.at(txn, &OWNERS, &account, "ownerId")?.unwrap_or_default();
    let template = [text(&kind, own), text(&owner, default)].into_iter().find(|it| !it.is_empty());
    let Some(template) = template.map(str::to_owned) else { return Ok(()) };
    let mut context = json!({"user": context::person(txn, &mut known, &user)?});
    context["item"] = json!({
        "title": account["title"], "barcode": account["barcode"], "callNumber": account["callNumber"],
        "materialType": account["materialType"], "effectiveLocationSpecific": account["location"],
    });
    context::add_fee(&mut context, &account, action);
    send(txn, writer, &user, &template, context)
}
