//! Settings of human-readable ids: `in00000000001`, `ho…`, `it…` (section 1.3 of the contract).
//!
//! The next numbers are in one record. Code that creates many records in one transaction reserves their numbers first,
//! so that this record is written once.

use pinakes_store::{Txn, Weight};
use serde_json::Value;

use crate::platform::app::Call;
use crate::platform::collection::numbers::{HRID_SETTINGS, ID, MAX_NUMBER, settings};
use crate::platform::error::{Answer, Fault, FolioError};
use crate::platform::hrids::Numbered;
use crate::platform::permissions::Access;
use crate::platform::routes::Routes;
use crate::platform::values::json_answer;

/// Adds the routes.
pub(crate) fn routes(routes: Routes) -> Routes {
    let path = "/hrid-settings-storage/hrid-settings";
    routes.get(path, Access::to("inventory-storage.hrid-settings.item.get"), show).put(
        path,
        Access::to("inventory-storage.hrid-settings.item.put"),
        change,
    )
}

async fn show(call: Call) -> Answer {
    let all = call.db().read(Weight::Point, settings).await?;
    Ok(json_answer(http::StatusCode::OK, &all))
}

/// Changes the settings; a changed start number takes effect at once.
async fn change(mut call: Call) -> Answer {
    let body = call.object().await?;
    let mut faults = Vec::new();
    for it in Numbered::ALL {
        let start = body.get(it.name()).and_then(|it| it.get("startNumber"));
        match start.map(Value::as_u64) {
            None => faults.push(Fault::missing(it.name())),
            Some(Some(1..=MAX_NUMBER)) => {}
            Some(_) => {
                let fault = Fault::new(format!("must be between 1 and {MAX_NUMBER}"));
                faults.push(fault.ty("1").with(
                    format!("{}.startNumber", it.name()),
                    start.map_or_else(String::new, Value::to_string),
                ));
            }
        }
        if body.get(it.name()).and_then(|it| it.get("prefix")).is_some_and(|it| !is_prefix(it)) {
            let fault = Fault::new("must be at most 10 letters, digits, - or .");
            faults.push(fault.ty("1").with(format!("{}.prefix", it.name()), ""));
        }
    }
    if !faults.is_empty() {
        return Err(FolioError::faults(http::StatusCode::UNPROCESSABLE_ENTITY, faults));
    }
    let write = move |txn: &mut Txn<'_>| -> Result<(), FolioError> {
        let mut all = settings(txn)?;
        for it in Numbered::ALL {
            let given = &body[it.name()];
            let own = &mut all[it.name()];
            if let Some(prefix) = given.get("prefix") {
                own["prefix"] = prefix.clone();
            }
            if own["startNumber"] != given["startNumber"] {
                own["startNumber"] = given["startNumber"].clone();
                own["currentNumber"] = (given["startNumber"].as_u64().unwrap_or(1) - 1).into();
            }
        }
        if let Some(keeps) = body.get("commonRetainLeadingZeroes").filter(|it| it.is_boolean()) {
            all["commonRetainLeadingZeroes"] = keeps.clone();
        }
        txn.put(&HRID_SETTINGS, ID, &all)?;
        Ok(())
    };
    call.db().write(write).await?;
    Ok(pinakes_http::answer::empty(http::StatusCode::NO_CONTENT))
}

fn is_prefix(value: &Value) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.');
    value.as_str().is_some_and(|it| it.len() <= 10 && it.bytes().all(is_part))
}
