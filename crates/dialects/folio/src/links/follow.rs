//! Consequences of edited records: the links of an instance follow its fields, and the fields of instances follow the
//! headings that control them.

use pinakes_marc::{DataField, Field, Record, Subfield};
use pinakes_store::{Expr, Query, Txn};
use serde_json::{Value, json};

use super::links;
use super::rules::{self, Rule};
use super::suggestions::heading;
use crate::authorities::authority::{AUTHORITIES, SOURCE_FILES};
use crate::data_import;
use crate::links::linked::{LINKS, store, unlink_instance};
use crate::platform::collection::Writer;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;
use crate::source_records::{marc, source_storage};

/// Sets the links of an instance to those of its fields with `$9`. `told` are the link details that came with them.
pub(crate) fn take_over(
    txn: &mut Txn<'_>,
    writer: &Writer,
    instance: &str,
    record: &Record,
    told: &[Value],
) -> Result<(), FolioError> {
    let rules = rules::rules(txn)?;
    let before = links(txn, instance)?.as_array().cloned().unwrap_or_default();
    let mut next = before.iter().filter_map(|it| it.get("id")?.as_u64()).max().unwrap_or(0) + 1;
    let mut kept: Vec<Value> = Vec::new();
    for field in record.fields.iter().filter_map(Field::as_data) {
        let Some(id) = field.value('9') else { continue };
        let Some(authority) = txn.get(&AUTHORITIES.kind, id)?.map(|it| it.json()).transpose()? else {
            continue;
        };
        let is_for = |rule: u64| rules::bib_field(rule) == Some(field.tag.as_str());
        let of = |list: &[Value]| {
            list.iter()
                .find(|it| {
                    text_at(it, "authorityId") == Some(id)
                        && it.get("linkingRuleId").and_then(Value::as_u64).is_some_and(is_for)
                })
                .cloned()
        };
        let known = of(&before);
        let rule = of(told)
            .or_else(|| known.clone())
            .and_then(|it| it.get("linkingRuleId").and_then(Value::as_u64))
            .or_else(|| rules.iter().find(|it| it.bib_field == field.tag.as_str()).map(|it| it.id));
        let Some(rule) = rule else { continue };
        let number = known.and_then(|it| it.get("id")?.as_u64()).unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        kept.push(json!({
            "id": number, "authorityId": id, "authorityNaturalId": authority.get("naturalId"),
            "instanceId": instance, "linkingRuleId": rule, "status": "ACTUAL",
        }));
    }
    store(txn, instance, kept, writer.now_ms)
}

/// Applies the change of an authority: the fields that it controls follow its heading and its number, in the MARC
/// records and in the instances. If the type of the heading changed, or a rule no longer allows it, the fields are
/// unlinked.
pub(crate) fn follow_authority(
    txn: &mut Txn<'_>,
    writer: &Writer,
    id: &str,
    old: &Record,
    new: &Record,
) -> Result<(), FolioError> {
    let Some(authority) = txn.get(&AUTHORITIES.kind, id)?.map(|it| it.json()).transpose()? else {
        return Ok(());
    };
    let rules = rules::rules(txn)?;
    let natural = text_at(&authority, "naturalId").unwrap_or_default().to_owned();
    let base = match text_at(&authority, "sourceFileId") {
        Some(file) => txn.get(&SOURCE_FILES.kind, file)?.map(|it| it.json()).transpose()?,
        None => None,
    };
    let base = base.as_ref().and_then(|it| text_at(it, "baseUrl")).unwrap_or_default().to_owned();
    let headings = |record: &Record| -> Vec<DataField> {
        let fields = record.fields.iter().filter_map(Field::as_data);
        fields.filter(|it| it.tag.as_str().starts_with('1')).cloned().collect()
    };
    let is_heading_same = headings(old) == headings(new);
    // A heading of another type is another authority: a name cannot replace a name with a title.
    let is_kind_same = kind(&headings(old)) == kind(&headings(new));
    let linked = Query::filter(Expr::Is("links.authorityId".into(), id.into()));
    for found in txn.find(&LINKS, &linked)? {
        let body = found.json()?;
        let all = body.get("links").and_then(Value::as_array).cloned().unwrap_or_default();
        let (own, others): (Vec<Value>, Vec<Value>) =
            all.into_iter().partition(|it| text_at(it, "authorityId") == Some(id));
        let is_number_same = own.iter().all(|it| text_at(it, "authorityNaturalId") == Some(natural.as_str()));
        if is_heading_same && is_number_same {
            continue;
        }
        let Some(mut source) = source_storage::current_of(txn, "instanceId", &found.id)? else { continue };
        let Some(mut record) = source.pointer("/parsedRecord/content").and_then(marc::from_value) else {
            continue;
        };
        let mut kept = others;
        for mut link in own {
            let number = link.get("linkingRuleId").and_then(Value::as_u64);
            let Some(rule) = rules.iter().find(|it| Some(it.id) == number) else { continue };
            let heading = heading(new, rule).filter(|_| is_kind_same);
            for field in
                record.data_fields_mut(&rule.bib_field).filter(|it| it.values('9').any(|it| it == id))
            {
                match heading {
                    Some(heading) => control(field, heading, rule, &format!("{base}{natural}"), id),
                    None => field.subfields.retain(|it| it.code != '9' || it.value != id),
                }
            }
            if heading.is_some() {
                link["authorityNaturalId"] = natural.as_str().into();
                kept.push(link);
            }
        }
        let is_linked = kept.iter().any(|it| text_at(it, "authorityId") == Some(id));
        store(txn, &found.id, kept, writer.now_ms)?;
        marc::set_lengths(&mut record);
        let own_id = text_at(&source, "id").unwrap_or_default().to_owned();
        let snapshot = writer.new_uuid();
        source_storage::put_snapshot(txn, &snapshot, "COMMITTED", writer.now_ms)?;
        source_storage::set(&mut source, "snapshotId", snapshot.into());
        source_storage::set(&mut source, "parsedRecord", marc::part(&own_id, marc::to_value(&record)));
        source_storage::touch(&mut source, writer.now_ms);
        source_storage::rewrite(txn, &source)?;
        data_import::follow(txn, writer, &source, &record)?;
        if !is_linked {
            unlink_instance(txn, writer, &found.id, id)?;
        }
    }
    Ok(())
}

/// Returns the type of the headings: their tags, and whether a name heading has a title.
fn kind(headings: &[DataField]) -> Vec<(&str, bool)> {
    let kind =
        |it: &'_ DataField| matches!(it.tag.as_str(), "100" | "110" | "111") && it.value('t').is_some();
    headings.iter().map(|it| (it.tag.as_str(), kind(it))).collect()
}

/// Replaces the controlled subfields of a field with those of the heading, `$0` with the authority's URI.
fn control(field: &mut DataField, heading: &DataField, rule: &Rule, uri: &str, id: &str) {
    let is_controlled = |code: char| rule.subfields.contains(&code) || (rule.title_is_a && code == 'a');
    let code_of = |code: char| if rule.title_is_a && code == 't' { 'a' } else { code };
    let mut subfields: Vec<Subfield> = heading
        .subfields
        .iter()
        .filter(|it| rule.subfields.contains(&it.code))
        .map(|it| Subfield { code: code_of(it.code), value: it.value.clone() })
        .collect();
    let others =
        field.subfields.iter().filter(|it| !is_controlled(it.code) && it.code != '0' && it.code != '9');
    subfields.extend(others.cloned());
    subfields.push(Subfield { code: '0', value: uri.to_owned() });
    subfields.push(Subfield { code: '9', value: id.to_owned() });
    field.subfields = subfields;
}
