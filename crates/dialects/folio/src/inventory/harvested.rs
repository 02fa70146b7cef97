//! When an instance was last changed in any of its parts, and which instances are gone: what harvesters must
//! know.

use pinakes_store::{Column, Index, Kind, StoreError, Txn, Type};
use serde_json::{Value, json};

use crate::inventory::kinds::INSTANCE;
use crate::platform::collection::{Writer, by_kind};
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// Instances that are gone: `{id, source, metadata: {updatedDate}}`.
pub(crate) static GONE: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("source", Type::Folded),
        Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
    ],
    indexes: &[Index::on(&["updatedDate"])],
    ..Kind::named("folio_instance_gone")
};

/// Instances whose holdings, items or source record changed after they did themselves: `{id, source, metadata: {updatedDate}}`.
pub(crate) static CHANGED: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column::one("source", Type::Folded),
        Column::at("updatedDate", "metadata.updatedDate", Type::Instant),
    ],
    indexes: &[Index::on(&["updatedDate"])],
    ..Kind::named("folio_instance_changed")
};

/// Notes that something of an instance changed. Datestamps have seconds: within that of a change which is known already there
/// is nothing to note, so what is made together with its instance costs a read. `instances` is the kind of instances.
fn note_change(
    txn: &mut Txn<'_>,
    instances: &'static Kind,
    instance: &str,
    at_ms: i64,
) -> Result<(), StoreError> {
    let Some(record) = txn.get(instances, instance)? else { return Ok(()) };
    let record = record.json()?;
    if at_ms / 1_000 <= changed_ms(&record) / 1_000 {
        return Ok(());
    }
    let noted = txn.get(&CHANGED, instance)?.map(|it| it.json()).transpose()?;
    if noted.is_some_and(|it| at_ms / 1_000 <= changed_ms(&it) / 1_000) {
        return Ok(());
    }
    let note = json!({
        "id": instance, "source": record.get("source"), "metadata": {"updatedDate": dates::rmb(at_ms)},
    });
    txn.put(&CHANGED, instance, &note).map(drop)
}

/// Holdings were made or changed.
pub(crate) fn holdings_stored(
    txn: &mut Txn<'_>,
    writer: &Writer,
    holdings: &Value,
    old: Option<&Value>,
) -> Result<(), FolioError> {
    let instance = text_at(holdings, "instanceId");
    let former = old.and_then(|it| text_at(it, "instanceId")).filter(|it| Some(*it) != instance);
    let instances = &by_kind(writer.collections, INSTANCE)?.kind;
    for instance in instance.into_iter().chain(former) {
        note_change(txn, instances, instance, writer.now_ms)?;
    }
    Ok(())
}

/// Holdings go.
pub(crate) fn holdings_go(txn: &mut Txn<'_>, writer: &Writer, holdings: &Value) -> Result<(), FolioError> {
    holdings_stored(txn, writer, holdings, None)
}

/// A source record was made or changed; `instances` is the kind of instances.
pub(crate) fn source_stored(
    txn: &mut Txn<'_>,
    instances: &'static Kind,
    source: &Value,
) -> Result<(), StoreError> {
    let at_ms = text_at(source, "metadata.updatedDate").and_then(dates::parse_ms);
    match (text_at(source, "externalIdsHolder.instanceId"), at_ms) {
        (Some(instance), Some(at_ms)) => note_change(txn, instances, instance, at_ms),
        _ => Ok(()),
    }
}

/// Notes that an instance goes.
pub(crate) fn note_gone(txn: &mut Txn<'_>, writer: &Writer, instance: &Value) -> Result<(), FolioError> {
    let id = text_at(instance, "id").unwrap_or_default();
    let gone = json!({
        "id": id, "source": instance.get("source"), "deleted": true,
        "metadata": {"updatedDate": dates::rmb(writer.now_ms)},
    });
    txn.put(&GONE, id, &gone)?;
    if txn.has(&CHANGED, id)? {
        txn.delete(&CHANGED, id)?;
    }
    Ok(())
}

pub(crate) fn changed_ms(record: &Value) -> i64 {
    text_at(record, "metadata.updatedDate").and_then(dates::parse_ms).unwrap_or(0)
}
