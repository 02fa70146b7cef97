//! Links of instances with authorities, as they are stored, and unlinking when an authority is deleted.

use pinakes_marc::{Field, Subfield};
use pinakes_store::{Arity, Column, Expr, Index, Kind, Query, Txn, Type, View};
use serde_json::{Value, json};

use crate::inventory::instances::INSTANCES;
use crate::platform::collection::{self, Lock, Missing, Writer};
use crate::platform::dates;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::source_records::{marc, source_storage};

/// Links by instance.
pub(crate) static LINKS: Kind = Kind {
    id_path: Some("id"),
    columns: &[
        Column { name: "authorities", path: "links.authorityId", ty: Type::Text, arity: Arity::Many },
        Column::one("updatedAt", Type::Instant),
    ],
    indexes: &[Index::on(&["updatedAt"])],
    ..Kind::named("folio_instance_links")
};

/// Stores the links of an instance; without links no record is kept.
pub(crate) fn store(
    txn: &mut Txn<'_>,
    instance: &str,
    links: Vec<Value>,
    now_ms: i64,
) -> Result<(), FolioError> {
    if links.is_empty() {
        txn.delete(&LINKS, instance)?;
        return Ok(());
    }
    let body = json!({"id": instance, "updatedAt": dates::micros(now_ms), "links": links});
    let bytes = crate::platform::json::bytes(&body);
    let document = pinakes_store::Document::with_bytes(&LINKS, instance, &body, bytes)?;
    match txn.has(&LINKS, instance)? {
        true => txn.update_document(&document)?,
        false => txn.insert_document(&document)?,
    };
    Ok(())
}

/// Counts the links of an authority.
pub(crate) fn n_links(view: &mut View<'_>, authority: &str) -> Result<u64, FolioError> {
    Ok(view.count(&LINKS, &Expr::Is("links.authorityId".into(), authority.into()))?)
}

/// Unlinks an authority that is being deleted: deletes its links, `$9` in the source records and `authorityId` in the
/// instances. Returns the number of linked instances.
pub(crate) fn unlink(txn: &mut Txn<'_>, writer: &Writer, authority: &str) -> Result<u64, FolioError> {
    let linked = Query::filter(Expr::Is("links.authorityId".into(), authority.into()));
    let records = txn.find(&LINKS, &linked)?;
    for record in &records {
        let body = record.json()?;
        let links = body.get("links").and_then(Value::as_array).cloned().unwrap_or_default();
        let kept = links.into_iter().filter(|it| text_at(it, "authorityId") != Some(authority)).collect();
        store(txn, &record.id, kept, writer.now_ms)?;
        unlink_source(txn, writer, &record.id, authority)?;
        unlink_instance(txn, writer, &record.id, authority)?;
    }
    Ok(records.len() as u64)
}

/// Removes `$9` with the authority's id from an instance's source record.
pub(crate) fn unlink_source(
    txn: &mut Txn<'_>,
    writer: &Writer,
    instance: &str,
    authority: &str,
) -> Result<(), FolioError> {
    let Some(mut source) = source_storage::current_of(txn, "instanceId", instance)? else { return Ok(()) };
    let content = source.pointer("/parsedRecord/content").and_then(marc::from_value);
    let Some(mut record) = content else { return Ok(()) };
    let is_link = |it: &Subfield| it.code == '9' && it.value == authority;
    let mut n_links = 0;
    for field in &mut record.fields {
        if let Field::Data(field) = field {
            let n_before = field.subfields.len();
            field.subfields.retain(|it| !is_link(it));
            n_links += n_before - field.subfields.len();
        }
    }
    if n_links == 0 {
        return Ok(());
    }
    marc::set_lengths(&mut record);
    let id = text_at(&source, "id").unwrap_or_default().to_owned();
    source_storage::set(&mut source, "parsedRecord", marc::part(&id, marc::to_value(&record)));
    // The new snapshot tells clients that wait for the change that it is done.
    let snapshot = writer.new_uuid();
    source_storage::put_snapshot(txn, &snapshot, "COMMITTED", writer.now_ms)?;
    source_storage::set(&mut source, "snapshotId", snapshot.into());
    source_storage::touch(&mut source, writer.now_ms);
    Ok(source_storage::rewrite(txn, &source)?)
}

/// Removes the authority's id from an instance's headings.
pub(crate) fn unlink_instance(
    txn: &mut Txn<'_>,
    writer: &Writer,
    instance: &str,
    authority: &str,
) -> Result<(), FolioError> {
    let Some(record) = txn.get(&INSTANCES.kind, instance)? else { return Ok(()) };
    let Value::Object(mut body) = record.json()? else { return Ok(()) };
    let mut is_changed = false;
    for name in ["contributors", "subjects", "alternativeTitles", "series"] {
        for heading in body.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(map) = heading
                && map.get("authorityId").and_then(Value::as_str) == Some(authority)
            {
                map.shift_remove("authorityId");
                is_changed = true;
            }
        }
    }
    if is_changed {
        collection::put(txn, writer, &INSTANCES, instance, body, Missing::Refuse, Lock::Ignored)?;
    }
    Ok(())
}
