//! Changes of headings, recorded for link maintenance.

use pinakes_store::{Column, Index, Kind, Txn, Type};
use serde_json::{Value, json};

use crate::authorities::authority::SOURCE_FILES;
use crate::authorities::headings;
use crate::platform::collection::Writer;
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// Changes of headings, ordered by time.
pub(crate) static HEADING_CHANGE: Kind = Kind {
    id_path: Some("id"),
    columns: &[Column::one("startedAt", Type::Instant), Column::one("action", Type::Text)],
    indexes: &[Index::on(&["startedAt"])],
    ..Kind::named("folio_heading_change")
};

/// Records that the heading or the number of an authority changed, or that it is deleted (then `new` is `None`).
pub(crate) fn note(
    txn: &mut Txn<'_>,
    writer: &Writer,
    old: &Value,
    new: Option<&Value>,
    n_links: u64,
) -> Result<(), FolioError> {
    let heading = |it: &Value| headings::rows(it).into_iter().next().map(|it| (it.heading, it.heading_type));
    let before = heading(old);
    let after = new.and_then(heading);
    let text = |it: Option<&Value>, name: &str| it.and_then(|it| text_at(it, name)).map(str::to_owned);
    let is_same = new.is_some() && before == after && text(Some(old), "naturalId") == text(new, "naturalId");
    if is_same {
        return Ok(());
    }
    let action = match new {
        None => "DELETE",
        Some(_) if before != after => "UPDATE_HEADING",
        Some(_) => "UPDATE_NATURAL_ID",
    };
    let mut file = |it: Option<&Value>| -> Result<Option<String>, FolioError> {
        let Some(id) = text(it, "sourceFileId") else { return Ok(None) };
        let found = txn.get(&SOURCE_FILES.kind, &id)?.map(|it| it.json()).transpose()?;
        Ok(found.as_ref().and_then(|it| text_at(it, "name")).map(str::to_owned))
    };
    let (file_old, file_new) = (file(Some(old))?, file(new)?);
    let id = writer.new_uuid();
    let at = dates::micros(writer.now_ms);
    let mut body = json!({
        "id": id,
        "authorityId": old.get("id"),
        "action": action,
        "headingOld": before.as_ref().map(|it| &it.0),
        "headingNew": after.as_ref().map(|it| &it.0),
        "headingTypeOld": before.as_ref().map(|it| it.1),
        "headingTypeNew": after.as_ref().map(|it| it.1),
        "naturalIdOld": old.get("naturalId"),
        "naturalIdNew": new.and_then(|it| it.get("naturalId")),
        "sourceFileOld": file_old,
        "sourceFileNew": file_new,
        "lbTotal": n_links, "lbUpdated": if new.is_none() { n_links } else { 0 }, "lbFailed": 0,
        "startedAt": at, "completedAt": at,
        "metadata": {"startedByUserId": writer.user, "startedAt": at, "completedAt": at},
    });
    if let Value::Object(map) = &mut body {
        map.retain(|_, value| !value.is_null());
    }
    txn.insert(&HEADING_CHANGE, &id, &body)?;
    Ok(())
}
