//! Finding stored records by match profiles: one look-up per profile for the values of a whole batch.

use std::ops::ControlFlow;
use std::sync::Arc;

use pinakes_marc::Record;
use pinakes_store::{Expr, Path, Query, Txn, Type, Value as Condition, fold};
use serde_json::Value;

use super::criteria::{Criterion, Qualifier};
use super::engine::{Case, Engine, StepError, collection_of};
use super::tree::{Entity, ExistingValue, IncomingValue, MatchSpec};
use crate::data_import::engine::{Prepared, Setup};
use crate::data_import::fields::table_of;
use crate::data_import::hits::{Cache, Found, Hit, Hits};
use crate::data_import::mapping::Reference;
use crate::data_import::tree::Content;
use crate::platform::limits::MATCH_HITS;
use crate::source_records::marc::MarcPath;
use crate::source_records::source_storage::SOURCE_RECORD;

/// The error of a look-up.
type StepFailure = pinakes_store::StoreError;

/// Returns the hits of one match for one record.
pub(crate) fn find(
    engine: &mut Engine<'_, '_, '_>,
    case: &Case<'_>,
    spec: &MatchSpec,
) -> Result<Hits, StepError> {
    let values = incoming_values(spec, &case.record);
    match &spec.existing {
        ExistingValue::Marc(path) => {
            let wanted = wanted(case, spec);
            // MODIFY has changed the compared values, so the batch's look-up does not cover them. Nor does it cover a
            // value of more records than it considers; those that the match before has found are few.
            let is_covered = case.is_unchanged && (wanted.is_empty() || !engine.cache.is_cut(spec, &values));
            if !is_covered {
                let found = look_up(engine.txn, spec, path, &values, wanted)?;
                engine.cache.stored[spec.number].absorb(found);
            }
            let mut hits: Vec<Hit> = Vec::new();
            for value in &values {
                for hit in engine.cache.of(spec, value) {
                    if !hits.iter().any(|it| it.id() == hit.id()) {
                        hits.push(hit.clone());
                    }
                }
            }
            if !wanted.is_empty() {
                hits.retain(|it| it.external_id().is_some_and(|id| wanted.iter().any(|it| it == id)));
            }
            Ok(Hits::Sources(hits))
        }
        ExistingValue::Field { path, identifier_type } => {
            let ids = find_records(engine, case, spec, path, identifier_type.as_deref(), &values)?;
            Ok(Hits::Records(ids))
        }
    }
}

/// Returns the ids of the instances or holdings that the match above this one has found, to which its hits are limited;
/// none if there is no such match.
fn wanted<'c>(case: &'c Case<'_>, spec: &MatchSpec) -> &'c [String] {
    match spec.existing_type {
        Entity::MarcBib => &case.found.instances,
        Entity::MarcHoldings => &case.found.holdings,
        _ => &[],
    }
}

/// Returns the values of the incoming record that are compared.
fn incoming_values(spec: &MatchSpec, record: &Record) -> Vec<String> {
    let values = match &spec.incoming {
        IncomingValue::Marc(path) => path.values(record),
        IncomingValue::Static(text) => vec![text.clone()],
    };
    qualified(spec.incoming_qualifier.as_ref(), values)
}

fn qualified(qualifier: Option<&Qualifier>, values: Vec<String>) -> Vec<String> {
    let mut values: Vec<String> = match qualifier {
        None => values,
        Some(qualifier) => values.iter().filter_map(|it| qualifier.apply(it)).collect(),
    };
    values.retain(|it| !it.is_empty());
    values
}

/// Returns the values of a stored source record that are compared.
fn existing_values(spec: &MatchSpec, path: &MarcPath, body: &Value) -> Vec<String> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let values: Vec<String> = match special(path) {
        Some(Special::Matched) => text("/matchedId").into_iter().collect(),
        Some(Special::External) => Hit(Arc::new(
            body.get("externalIdsHolder")
                .map_or(Value::Null, |it| serde_json::json!({"externalIdsHolder": it})),
        ))
        .external_id()
        .map(str::to_owned)
        .into_iter()
        .collect(),
        Some(Special::Hrid) => ["instanceHrid", "holdingsHrid", "authorityHrid"]
            .iter()
            .find_map(|name| text(&format!("/externalIdsHolder/{name}")))
            .into_iter()
            .collect(),
        None => {
            let content = body.pointer("/parsedRecord/content").unwrap_or(&Value::Null);
            path.values_in(content).into_iter().map(str::to_owned).collect()
        }
    };
    qualified(spec.existing_qualifier.as_ref(), values)
}

/// Places that are stored with the record as ids.
enum Special {
    Matched,
    External,
    Hrid,
}

fn special(path: &MarcPath) -> Option<Special> {
    if path.is("999", ['f', 'f'], Some('s')) {
        Some(Special::Matched)
    } else if path.is("999", ['f', 'f'], Some('i')) {
        Some(Special::External)
    } else if path.tag == "001" {
        Some(Special::Hrid)
    } else {
        None
    }
}

/// Looks up stored, current source records of the type that have one of the values; those of the wanted instances or
/// holdings, if any are named.
fn look_up(
    txn: &mut Txn<'_>,
    spec: &MatchSpec,
    path: &MarcPath,
    values: &[String],
    wanted: &[String],
) -> Result<Found, StepFailure> {
    let mut found = Found::default();
    let Some(record_type) = spec.existing_type.record_type() else { return Ok(found) };
    let external = match spec.existing_type {
        Entity::MarcAuthority => "externalIdsHolder.authorityId",
        Entity::MarcHoldings => "externalIdsHolder.holdingsId",
        _ => "externalIdsHolder.instanceId",
    };
    let path_in_store: Path = match (special(path), spec.existing_type) {
        (Some(Special::Matched), _) => "matchedId".into(),
        (Some(Special::External), _) => external.into(),
        (Some(Special::Hrid), Entity::MarcAuthority) => "externalIdsHolder.authorityHrid".into(),
        (Some(Special::Hrid), Entity::MarcHoldings) => "externalIdsHolder.holdingsHrid".into(),
        (Some(Special::Hrid), _) => "externalIdsHolder.instanceHrid".into(),
        (None, _) => path.in_source_record(),
    };
    let mut all = vec![
        spec.criterion.in_store(&path_in_store, values, spec.existing_qualifier.as_ref()),
        Expr::Is("recordType".into(), record_type.into()),
        Expr::Is("state".into(), "ACTUAL".into()),
    ];
    if !wanted.is_empty() {
        all.push(Expr::In(external.into(), texts(wanted)));
    }
    let mut n_left = vec![MATCH_HITS; values.len()];
    txn.for_each(&SOURCE_RECORD, &Query::filter(Expr::And(all)), |record| {
        let body = match record.json() {
            Ok(body) => Arc::new(body),
            Err(error) => {
                tracing::warn!(%error, id = record.id, "a source record cannot be read");
                return ControlFlow::Continue(());
            }
        };
        for existing in existing_values(spec, path, &body) {
            let mut is_added = false;
            for (value, n_left) in values.iter().zip(&mut n_left) {
                if !spec.criterion.holds(value, &existing) {
                    continue;
                }
                if let Some(fewer) = n_left.checked_sub(1) {
                    (*n_left, is_added) = (fewer, true);
                }
            }
            if is_added {
                found.add(existing, Hit(Arc::clone(&body)));
            }
        }
        if n_left.iter().all(|it| *it == 0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    for (value, _) in values.iter().zip(n_left).filter(|(_, n_left)| *n_left == 0) {
        found.cut(value);
    }
    Ok(found)
}

/// Looks up instances, holdings, items or authorities that have one of the values.
fn find_records(
    engine: &mut Engine<'_, '_, '_>,
    case: &Case<'_>,
    spec: &MatchSpec,
    path: &str,
    identifier_type: Option<&str>,
    values: &[String],
) -> Result<Vec<String>, StepError> {
    let Some(collection) = collection_of(spec.existing_type) else { return Ok(Vec::new()) };
    let values = &with_ids(&engine.setup.reference, path, values);
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let mut filter = Expr::All;
    match spec.existing_type {
        Entity::Holdings if !case.found.instances.is_empty() => {
            filter = Expr::In("instanceId".into(), texts(&case.found.instances));
        }
        Entity::Item if !case.found.holdings.is_empty() => {
            filter = Expr::In("holdingsRecordId".into(), texts(&case.found.holdings));
        }
        _ => {}
    }
    let is_exact = spec.criterion == Criterion::Exact && spec.existing_qualifier.is_none();
    let column = collection.kind.column_of(&path.into());
    if is_exact && column.is_some_and(|it| it.ty == Type::Folded) {
        // A folded column also finds values that differ in case or accents; the exact condition decides.
        let folded = values.iter().map(|it| Condition::Folded(fold(it))).collect();
        filter = filter.and(Expr::In(path.into(), folded));
    }
    filter = filter.and(spec.criterion.in_store(&path.into(), values, spec.existing_qualifier.as_ref()));
    if let (true, Some(ty), Some((list, last))) = (is_exact, identifier_type, path.rsplit_once('.')) {
        // The condition on the path narrows the candidates, the one on list elements decides.
        let both = Expr::And(vec![
            Expr::In(last.into(), texts(values)),
            Expr::Is("identifierTypeId".into(), ty.into()),
        ]);
        filter = filter.and(Expr::Element(list.into(), Box::new(both)));
    }
    let mut ids = Vec::new();
    engine.txn.for_each(&collection.kind, &Query::filter(filter), |record| {
        let holds = is_exact
            || record.json().is_ok_and(|body| {
                let found = values_at(&body, path, identifier_type);
                let found = qualified(spec.existing_qualifier.as_ref(), found);
                found.iter().any(|it| values.iter().any(|value| spec.criterion.holds(value, it)))
            });
        if holds {
            ids.push(record.id);
        }
        // Two hits already mean "several".
        if ids.len() < MATCH_HITS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(ids)
}

/// Pairs each of several holdings or items with the field whose value has matched it; `None` if that is not possible:
/// two are matched by one field, or the values do not come from fields.
pub(crate) fn by_field(
    engine: &mut Engine<'_, '_, '_>,
    case: &Case<'_>,
    spec: &MatchSpec,
    hits: &Hits,
) -> Result<Option<Vec<(String, usize)>>, StepError> {
    let (Hits::Records(ids), IncomingValue::Marc(incoming), ExistingValue::Field { path, identifier_type }) =
        (hits, &spec.incoming, &spec.existing)
    else {
        return Ok(None);
    };
    let collection = collection_of(spec.existing_type)
        .filter(|_| matches!(spec.existing_type, Entity::Holdings | Entity::Item));
    let Some(collection) = collection else { return Ok(None) };
    let mut values_of_fields: Vec<(usize, Vec<String>)> = Vec::new();
    for (at, field) in case.record.fields.iter().enumerate().filter(|(_, it)| *it.tag() == *incoming.tag) {
        let alone = Record { leader: case.record.leader, fields: vec![field.clone()] };
        values_of_fields.push((at, with_ids(&engine.setup.reference, path, &incoming_values(spec, &alone))));
    }
    let mut pairs: Vec<(String, usize)> = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(record) = engine.txn.get(&collection.kind, id)? else { return Ok(None) };
        let existing = values_at(&record.json()?, path, identifier_type.as_deref());
        let existing = qualified(spec.existing_qualifier.as_ref(), existing);
        let holds = |value: &String| existing.iter().any(|it| spec.criterion.holds(value, it));
        let field = values_of_fields
            .iter()
            .find(|(at, values)| pairs.iter().all(|(_, taken)| taken != at) && values.iter().any(holds));
        let Some((at, _)) = field else { return Ok(None) };
        pairs.push((id.clone(), *at));
    }
    Ok(Some(pairs))
}

/// Replaces names and codes by ids if the path is that of an id of a type, status or location.
fn with_ids(reference: &Reference, path: &str, values: &[String]) -> Vec<String> {
    let Some(table) = table_of(path) else { return values.to_vec() };
    let id_of = |text: &String| reference.find(table, text).unwrap_or_else(|| text.clone());
    values.iter().map(id_of).collect()
}

fn texts(values: &[String]) -> Vec<Condition> {
    values.iter().map(|it| Condition::from(it.as_str())).collect()
}

/// Returns the strings at a dotted path, including those inside lists; of identifiers, those of a type.
fn values_at(body: &Value, path: &str, identifier_type: Option<&str>) -> Vec<String> {
    fn walk(value: &Value, steps: &[&str], of_type: Option<&str>, found: &mut Vec<String>) {
        match (value, steps) {
            (Value::Array(list), _) => list.iter().for_each(|it| walk(it, steps, of_type, found)),
            (Value::String(text), []) => found.push(text.clone()),
            (_, [_]) if of_type.is_some_and(|it| value["identifierTypeId"] != it) => {}
            (_, [first, rest @ ..]) => {
                if let Some(inner) = value.get(first) {
                    walk(inner, rest, of_type, found);
                }
            }
            _ => {}
        }
    }
    let steps: Vec<&str> = path.split('.').collect();
    let mut found = Vec::new();
    walk(body, &steps, identifier_type.filter(|_| 1 < steps.len()), &mut found);
    found
}

impl Cache {
    /// Looks up, for each match on MARC records, the values of all records of the batch.
    pub(crate) fn fetch(txn: &mut Txn<'_>, setup: &Setup, batch: &[Prepared]) -> Result<Self, StepFailure> {
        let mut specs = Vec::with_capacity(setup.tree.n_matches);
        setup.tree.for_each(&mut |node| {
            if let Content::Match(spec) = &node.content {
                specs.push(spec);
            }
        });
        specs.sort_by_key(|it| it.number);
        let mut cache = Self::default();
        for spec in specs {
            let mut found = Found::default();
            if let ExistingValue::Marc(path) = &spec.existing {
                let mut values: Vec<String> = batch
                    .iter()
                    .filter_map(|it| it.incoming.record.as_ref().ok())
                    .flat_map(|record| incoming_values(spec, record))
                    .collect();
                values.sort_unstable();
                values.dedup();
                if !values.is_empty() {
                    found = look_up(txn, spec, path, &values, &[])?;
                }
            }
            cache.stored.push(found);
            cache.added.push(Found::default());
        }
        Ok(cache)
    }

    /// Adds a source record that this batch has stored, so that later records find it.
    pub(crate) fn add(&mut self, setup: &Setup, body: &Arc<Value>) {
        let added = &mut self.added;
        setup.tree.for_each(&mut |node| {
            let Content::Match(spec) = &node.content else { return };
            let ExistingValue::Marc(path) = &spec.existing else { return };
            if spec.existing_type.record_type() != body.get("recordType").and_then(Value::as_str) {
                return;
            }
            for value in existing_values(spec, path, body) {
                added[spec.number].add(value, Hit(Arc::clone(body)));
            }
        });
    }
}
