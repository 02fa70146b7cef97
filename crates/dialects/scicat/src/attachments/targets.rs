//! The records that attachments belong to.

use pinakes_store::{Expr, Record, Txn, Value as Condition};
use serde_json::Value;

use crate::documents::object;
use crate::error::ScicatError;
use crate::kinds::{ATTACHMENT, TARGETS};

/// Returns the condition that an attachment belongs to a record.
pub(crate) fn attached_to(target_id: &str) -> Expr {
    Expr::Is(TARGETS.into(), Condition::Text(target_id.to_owned()))
}

/// Detaches an attachment from the record `target_id` and deletes it if it belongs to nothing else.
pub(crate) fn detach(txn: &mut Txn<'_>, attachment: &Record, target_id: &str) -> Result<(), ScicatError> {
    let mut document = object(attachment)?;
    let is_left = match document.get_mut("relationships").and_then(Value::as_array_mut) {
        Some(relationships) => {
            relationships.retain(|it| it.get("targetId").and_then(Value::as_str) != Some(target_id));
            !relationships.is_empty()
        }
        None => false,
    };
    if is_left {
        txn.update(&ATTACHMENT, &attachment.id, &Value::Object(document))?;
    } else {
        txn.delete(&ATTACHMENT, &attachment.id)?;
    }
    Ok(())
}
