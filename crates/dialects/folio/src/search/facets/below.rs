//! Facets of an instance's holdings and items: how many of the instances found have each value in one of them.
//!
//! Of few instances the holdings and items are read. Of many, columns of all holdings and items are read, and no body
//! unless a field has neither a column nor counts: the time depends on the catalogue, not on its records' size.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use pinakes_store::{Expr, Path, Query, View, fold};
use serde_json::Value;
use uuid::Uuid;

use crate::inventory::holdings::HOLDINGS;
use crate::inventory::instances::INSTANCES;
use crate::inventory::items::ITEMS;
use crate::inventory::joins::within;
use crate::platform::collection::Collection;
use crate::platform::error::FolioError;
use crate::platform::json::text_at;

/// The values of a facet and the number of records with each.
pub(super) type Counts = BTreeMap<String, u64>;

/// Maximum number of records whose relatives are read at once.
const CHUNK: usize = 500;
/// Reading the holdings and items of one instance takes as long as reading columns of so many.
const ROWS_PER_BODY: u64 = 20;

/// A field of records below instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// A field of an instance's holdings.
    Holdings(&'static str),
    /// A field of an instance's items.
    Items(&'static str),
}

/// Counts fields of the holdings and items of the instances that satisfy a condition.
pub(super) fn counts(
    view: &mut View<'_>,
    filter: &Expr,
    wanted: &[Below],
) -> Result<Vec<Counts>, FolioError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let n_found = view.count(&INSTANCES.kind, filter)?;
    if n_found.saturating_mul(ROWS_PER_BODY) <= view.count(&HOLDINGS.kind, &Expr::All)? {
        return of_few(view, filter, wanted);
    }
    of_many(view, filter, wanted)
}

/// Counts by reading the records below each instance.
fn of_few(view: &mut View<'_>, filter: &Expr, wanted: &[Below]) -> Result<Vec<Counts>, FolioError> {
    let mut instances = Vec::new();
    view.for_each_values(&INSTANCES.kind, filter, &["id"], |mut row| instances.extend(row[0].take()))?;
    let mut found = vec![Counts::new(); wanted.len()];
    for chunk in instances.chunks(CHUNK) {
        // The values of each facet with the instance that has them.
        let mut seen: Vec<BTreeSet<(String, String)>> = vec![BTreeSet::new(); wanted.len()];
        let mut instance_of: BTreeMap<String, String> = BTreeMap::new();
        let of_chunk = within("instanceId", chunk.iter().cloned().collect());
        view.for_each_body(&HOLDINGS.kind, &Query::filter(of_chunk), |id, body| {
            let instance = text_at(&body, "instanceId").unwrap_or_default();
            instance_of.insert(id.to_owned(), instance.to_owned());
            for (seen, below) in seen.iter_mut().zip(wanted) {
                if let Below::Holdings(path) = below {
                    seen.extend(values_at(&body, path).into_iter().map(|it| (it, instance.to_owned())));
                }
            }
            ControlFlow::Continue(())
        })?;
        if wanted.iter().any(|it| matches!(it, Below::Items(_))) {
            let of_holdings = within("holdingsRecordId", instance_of.keys().cloned().collect());
            view.for_each_body(&ITEMS.kind, &Query::filter(of_holdings), |_, body| {
                let holdings = text_at(&body, "holdingsRecordId").unwrap_or_default();
                let instance = instance_of.get(holdings).cloned().unwrap_or_default();
                for (seen, below) in seen.iter_mut().zip(wanted) {
                    if let Below::Items(path) = below {
                        seen.extend(values_at(&body, path).into_iter().map(|it| (it, instance.clone())));
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        for (counts, seen) in found.iter_mut().zip(seen) {
            for (value, _) in seen {
                *counts.entry(value).or_default() += 1;
            }
        }
    }
    Ok(found)
}

/// Counts by reading columns of all holdings and items.
fn of_many(view: &mut View<'_>, filter: &Expr, wanted: &[Below]) -> Result<Vec<Counts>, FolioError> {
    let mut instances = Vec::new();
    view.for_each_values(&INSTANCES.kind, filter, &["id"], |row| instances.extend(id(row[0].as_deref())))?;
    instances.sort_unstable();
    let number_of = |instance: Option<&str>| place_of(&instances, id(instance)?, |it| *it);
    let mut tallies = vec![Tally::default(); wanted.len()];
    let fields: Vec<Option<&str>> =
        wanted.iter().map(|it| if let Below::Holdings(path) = it { Some(*path) } else { None }).collect();
    let needs_items = wanted.iter().any(|it| matches!(it, Below::Items(_)));
    // The number of each holdings record's instance.
    let mut holdings: Vec<(Uuid, u32)> = Vec::new();
    if needs_items {
        view.for_each_values(&HOLDINGS.kind, &Expr::All, &["id", "instanceId"], |row| {
            holdings.extend(id(row[0].as_deref()).zip(number_of(row[1].as_deref())));
        })?;
        holdings.sort_unstable();
    }
    tally(view, &HOLDINGS, "instanceId", &fields, &number_of, &mut tallies)?;
    if needs_items {
        let instance_of = |record: Option<&str>| {
            place_of(&holdings, id(record)?, |it| it.0).map(|at| holdings[at as usize].1)
        };
        let fields: Vec<Option<&str>> =
            wanted.iter().map(|it| if let Below::Items(path) = it { Some(*path) } else { None }).collect();
        tally(view, &ITEMS, "holdingsRecordId", &fields, &instance_of, &mut tallies)?;
    }
    Ok(tallies.into_iter().map(Tally::counts).collect())
}

/// Adds the values of fields of all records of a collection to tallies. `instance_of` returns the number of the instance
/// above a record by the value of its column `above`; none if the instance is not counted.
fn tally(
    view: &mut View<'_>,
    collection: &'static Collection,
    above: &str,
    fields: &[Option<&str>],
    instance_of: &dyn Fn(Option<&str>) -> Option<u32>,
    tallies: &mut [Tally],
) -> Result<(), FolioError> {
    let kind = &collection.kind;
    let mut names = vec![above];
    let mut by_column: Vec<(usize, HashMap<String, String>)> = Vec::new();
    for (at, path) in fields.iter().enumerate().filter_map(|(at, it)| Some((at, (*it)?))) {
        let facet = kind.facets.iter().find(|it| it.path == path).map(|it| it.name);
        let mut written = || -> Result<Vec<String>, FolioError> {
            let Some(facet) = facet else { return Ok(Vec::new()) };
            let counts = view.facets(kind, &Expr::All, &[facet])?.into_iter().flatten();
            Ok(counts.map(|it| it.value).collect())
        };
        if let Some(column) = kind.column_of(&Path::dotted(path)) {
            // A folded column does not tell how its value is written.
            let written = written()?.into_iter().map(|it| (fold(&it), it));
            let is_folded = column.ty == pinakes_store::Type::Folded;
            by_column.push((at, if is_folded { written.collect() } else { HashMap::new() }));
            names.push(column.name);
        } else if facet.is_some() {
            for value in written()? {
                let has_it = Expr::Is(Path::dotted(path), value.as_str().into());
                view.for_each_values(kind, &has_it, &[above], |row| {
                    tallies[at].extend(&value, instance_of(row[0].as_deref()));
                })?;
            }
        } else {
            let has_one = Query::filter(Expr::Exists(Path::dotted(path)));
            view.for_each_body(kind, &has_one, |_, body| {
                let instance = instance_of(text_at(&body, above));
                for value in values_at(&body, path) {
                    tallies[at].extend(&value, instance);
                }
                ControlFlow::Continue(())
            })?;
        }
    }
    if by_column.is_empty() {
        return Ok(());
    }
    view.for_each_values(kind, &Expr::All, &names, |row| {
        let instance = instance_of(row[0].as_deref());
        for ((at, written), value) in by_column.iter().zip(&row[1..]) {
            if let Some(value) = value {
                tallies[*at].extend(written.get(value).unwrap_or(value), instance);
            }
        }
    })?;
    Ok(())
}

/// Returns the id in a text; FOLIO's are UUIDs.
fn id(text: Option<&str>) -> Option<Uuid> {
    Uuid::try_parse(text?).ok()
}

/// Returns the place of an id in a sorted list.
fn place_of<T>(list: &[T], id: Uuid, id_of: impl Fn(&T) -> Uuid) -> Option<u32> {
    u32::try_from(list.binary_search_by_key(&id, id_of).ok()?).ok()
}

/// Values with the instances that have them.
#[derive(Debug, Clone, Default)]
struct Tally {
    codes: HashMap<String, u32>,
    /// The code of a value in the upper half, the number of an instance in the lower.
    pairs: Vec<u64>,
}

impl Tally {
    fn extend(&mut self, value: &str, instance: Option<u32>) {
        let Some(instance) = instance else { return };
        let code = match self.codes.get(value) {
            Some(code) => *code,
            None => {
                let code = self.codes.len() as u32;
                self.codes.insert(value.to_owned(), code);
                code
            }
        };
        self.pairs.push(u64::from(code) << 32 | u64::from(instance));
    }

    fn counts(mut self) -> Counts {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let mut by_code = vec![0_u64; self.codes.len()];
        for pair in self.pairs {
            by_code[(pair >> 32) as usize] += 1;
        }
        self.codes.into_iter().map(|(value, code)| (value, by_code[code as usize])).collect()
    }
}

/// Returns the different values at a dotted path, which may lead through lists.
fn values_at(body: &Value, path: &str) -> BTreeSet<String> {
    let mut at = vec![body];
    for step in path.split('.') {
        at = at.into_iter().flat_map(elements).filter_map(|it| it.get(step)).collect();
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    at.into_iter().flat_map(elements).filter_map(text).collect()
}

/// Returns the elements of a list, or a value that is none by itself.
fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}
