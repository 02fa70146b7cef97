//! Counts by value: read where they are maintained, otherwise computed from as little of each row as is needed.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use serde_json::Value as Json;

use super::lead::{Lead, Road};
use super::{DAY_MS, MOST_ROWS, Scan};
use crate::cell::Cell;
use crate::columns::many_table;
use crate::counters::{ALL_CLASSES, is_behind};
use crate::document::{count as count_values, day_text};
use crate::field_values::{Field, ValueBound, ValueCounts};
use crate::index::Extent;
use crate::row::Row;
use crate::session::{Flavour, State};
use crate::whole_lists;
use crate::{Arity, Column, Counts, FacetCount, Path, Result, Type, View};

impl Scan {
    /// Returns the counts of each facet.
    ///
    /// Errors: one has more values than a facet may have.
    pub(crate) fn facets(self, view: &mut View<'_>, facets: &[&str]) -> Result<Vec<Vec<FacetCount>>> {
        let bound = ValueBound::of(&view.shared.limits);
        let lists = self.facets_within(view, facets, bound)?;
        for (name, list) in facets.iter().zip(&lists) {
            bound.check_counts(list, name)?;
        }
        Ok(lists)
    }

    fn facets_within(
        mut self,
        view: &mut View<'_>,
        facets: &[&str],
        bound: ValueBound,
    ) -> Result<Vec<Vec<FacetCount>>> {
        if self.plan.is_empty {
            return Ok(vec![Vec::new(); facets.len()]);
        }
        let is_counted =
            view.state == State::Committed && self.plan.conditions.is_empty() && self.plan.residual.is_none();
        let are_made = facets
            .iter()
            .all(|it| self.declared.facet_named(it).is_none() == self.kind.facet_named(it).is_none());
        if is_counted && are_made && !is_behind(&mut view.session, self.kind.name)? {
            let lists = facets.iter().map(|facet| self.counted_within(view, facet, Some(bound))).collect();
            self.note("facets", || "counts that are kept".into());
            return lists;
        }
        // The table of a many-valued column is ordered by value: grouping it reads all of it.
        let reads_all = view.session.flavour() == Flavour::Sqlite
            && facets.iter().filter_map(|it| self.held(it)).any(|it| it.column.arity == Arity::Many);
        let road = self.road(view, &[])?;
        if road == Road::Nothing {
            self.note("facets", || "counts that are kept: there are none".into());
            return Ok(vec![Vec::new(); facets.len()]);
        }
        if (reads_all || is_counted || road == Road::Index)
            && let Some(lists) =
                self.by_index(view, Extent::All, |_, found| found.facets(facets, bound).map(Some))?
        {
            return Ok(lists);
        }
        let mut lists: Vec<Option<Vec<FacetCount>>> = facets
            .iter()
            .map(|name| if self.declared.facet_named(name).is_none() { Some(Vec::new()) } else { None })
            .collect();
        if self.plan.residual.is_none() {
            let held: Vec<_> =
                (0..facets.len()).filter_map(|at| Some((at, self.held(facets[at])?))).collect();
            // The embedded engine would read and sort the rows once for each facet.
            let (together, alone): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, it)| {
                it.column.arity == Arity::One && view.session.flavour() == Flavour::Sqlite
            });
            for (at, facet) in alone {
                lists[at] = Some(self.grouped(view, facet, bound)?);
            }
            let columns: Vec<Held> = together.iter().map(|it| it.1).collect();
            for ((at, _), list) in together.into_iter().zip(self.tallied(view, &columns, bound)?) {
                lists[at] = Some(list);
            }
        }
        let open: Vec<usize> = (0..facets.len()).filter(|index| lists[*index].is_none()).collect();
        let n_open = open.len();
        if !open.is_empty() {
            let names: Vec<&str> = open.iter().map(|index| facets[*index]).collect();
            for (index, list) in open.into_iter().zip(self.facets_by_body(view, &names, bound)?) {
                lists[index] = Some(list);
            }
        }
        self.note("facets", || format!("columns grouped, and for {n_open} of them each body read"));
        Ok(lists.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Counts the values of fields by the search index, as [`View::count_values`]. Returns also the rows of the records whose
    /// bodies have to be counted; `None` where all have to.
    pub(crate) fn count_values(
        &self,
        view: &mut View<'_>,
        fields: &[Field],
    ) -> Result<Option<(Vec<ValueCounts>, Vec<i64>)>> {
        let bound = ValueBound::of(&view.shared.limits);
        if self.plan.is_empty {
            return Ok(Some((fields.iter().map(|_| ValueCounts::within(bound)).collect(), Vec::new())));
        }
        self.by_index_alone(view, |_, found| found.count_values(fields, bound))
    }

    /// Returns the counts of a facet over the allowed classes, from the incrementally maintained counts.
    pub(super) fn counted(&mut self, view: &mut View<'_>, facet: &str) -> Result<Vec<FacetCount>> {
        self.counted_within(view, facet, None)
    }

    /// As [`Scan::counted`], no more than one more than a bound allows.
    fn counted_within(
        &mut self,
        view: &mut View<'_>,
        facet: &str,
        bound: Option<ValueBound>,
    ) -> Result<Vec<FacetCount>> {
        let limit = bound.map_or(String::new(), limit_sql);
        let mut values: Vec<Cell> = vec![self.kind.name.into(), facet.into()];
        let sql = match &self.plan.classes {
            None => format!(
                "SELECT value, CAST(sum(n) AS bigint) FROM facet WHERE kind = ?1 AND facet = ?2 AND class = {ALL_CLASSES} \
                 GROUP BY value HAVING sum(n) <> 0 ORDER BY value DESC"
            ),
            Some(set) => {
                values.push(Cell::Ints(set.numbers.clone()));
                format!(
                    "SELECT value, CAST(sum(n) AS bigint) FROM facet WHERE kind = ?1 AND facet = ?2 AND {} \
                     GROUP BY value HAVING sum(n) <> 0 ORDER BY value DESC",
                    view.session.flavour().in_set("class", 3)
                )
            }
        };
        let sql = format!("{sql}{limit}");
        let mut counts = view.session.all(&sql, &values, |row| Ok((row.text(0)?, row.int(1)?)))?;
        let has_lists =
            self.kind.facet_named(facet).is_some_and(|it| matches!(it.counts, Counts::Strings(_)));
        if has_lists && view.session.flavour() == Flavour::Sqlite {
            let classes = self.plan.classes.as_ref().map(|it| it.numbers.as_slice());
            let lists = whole_lists::summed(&mut view.session, self.kind, facet, classes)?;
            if !lists.is_empty() {
                counts = with_lists(counts, lists);
            }
        }
        let counts = counts.into_iter().map(|(value, n)| FacetCount { value, n_records: n.cast_unsigned() });
        Ok(counts.collect())
    }

    /// Returns the column that holds what a facet counts.
    fn held(&self, facet: &str) -> Option<Held> {
        let facet = self.declared.facet_named(facet)?;
        let column = self.kind.column_of(&Path::dotted(facet.path))?;
        let is_as_written = !matches!(column.ty, Type::Instant | Type::Folded);
        let is_held = match (column.arity, facet.counts) {
            (_, Counts::Values) => is_as_written,
            (Arity::One, Counts::Days) => true,
            _ => false,
        };
        is_held.then_some(Held { column, counts: facet.counts })
    }

    /// Returns the counts of a facet by grouping its column.
    fn grouped(&mut self, view: &mut View<'_>, facet: Held, bound: ValueBound) -> Result<Vec<FacetCount>> {
        let n_values = self.plan.values.len();
        let condition = self.where_sql(view);
        let table = self.kind.name;
        let (value, from) = match (facet.column.arity, view.session.flavour()) {
            (Arity::One, _) => (facet.value_sql(), format!("\"k_{table}\" r{condition}")),
            (Arity::Many, Flavour::Sqlite) => {
                let many = many_table(self.kind, facet.column);
                ("x.value".to_owned(), format!("{many} x JOIN \"k_{table}\" r ON r.key = x.key{condition}"))
            }
            (Arity::Many, Flavour::Postgres) => {
                let name = facet.column.name;
                let from = format!("\"k_{table}\" r CROSS JOIN unnest(r.\"{name}\") x (value){condition}");
                ("x.value".to_owned(), from)
            }
        };
        let sql = format!("SELECT {value} AS v, count(*) FROM {from} GROUP BY v{}", limit_sql(bound));
        let rows = view.session.all(&sql, &self.plan.values, |row| Ok((row.cell(0)?, row.int(1)?)))?;
        self.plan.values.truncate(n_values);
        Ok(facet.list(rows.into_iter().map(|(value, n)| (value, n.cast_unsigned()))))
    }

    /// Returns the counts of facets over columns of the narrow row, in one pass over the rows of the embedded engine.
    fn tallied(
        &mut self,
        view: &mut View<'_>,
        facets: &[Held],
        bound: ValueBound,
    ) -> Result<Vec<Vec<FacetCount>>> {
        if facets.is_empty() {
            return Ok(Vec::new());
        }
        let n_values = self.plan.values.len();
        let condition = self.where_sql(view);
        let values: Vec<String> = facets.iter().map(Held::value_sql).collect();
        let sql = format!("SELECT {} FROM \"k_{}\" r{condition}", values.join(", "), self.kind.name);
        let mut tallies: Vec<Tally> = facets.iter().map(|_| Tally::default()).collect();
        view.session.rows(&sql, &self.plan.values, |row| {
            for (index, tally) in tallies.iter_mut().enumerate() {
                tally.add(&row, index)?;
                bound.check(tally.len(), tally.n_bytes, &facets[index].column.name)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.plan.values.truncate(n_values);
        Ok(facets.iter().zip(tallies).map(|(facet, tally)| facet.list(tally.cells())).collect())
    }

    fn facets_by_body(
        &mut self,
        view: &mut View<'_>,
        names: &[&str],
        bound: ValueBound,
    ) -> Result<Vec<Vec<FacetCount>>> {
        let facets: Vec<_> = names.iter().map(|name| self.declared.facet_named(name)).collect();
        let mut counts: Vec<HashMap<String, u64>> = vec![HashMap::new(); names.len()];
        let (mut n_bytes, mut kept) = (vec![0; names.len()], Ok(()));
        let paths: Vec<Path> = facets.iter().flatten().map(|it| Path::dotted(it.path)).collect();
        self.each_body(view, &Lead::Engine, "", &paths, |_, body| {
            for ((facet, counts), n_bytes) in facets.iter().zip(&mut counts).zip(&mut n_bytes) {
                let Some(facet) = facet else { continue };
                let mut seen = Vec::new();
                count_values(facet.counts, body, facet.path, &mut |value| seen.push(value.to_owned()));
                seen.sort_unstable();
                seen.dedup();
                for value in seen {
                    *n_bytes += if counts.contains_key(&value) { 0 } else { value.len() };
                    *counts.entry(value).or_default() += 1;
                }
                kept = bound.check(counts.len(), *n_bytes, &facet.name);
                if kept.is_err() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        kept?;
        Ok(counts
            .into_iter()
            .map(|counts| {
                let mut list: Vec<FacetCount> =
                    counts.into_iter().map(|(value, n_records)| FacetCount { value, n_records }).collect();
                list.sort_unstable_by(|a, b| b.value.cmp(&a.value));
                list
            })
            .collect())
    }
}

/// Returns SQL that reads one more value than a bound allows.
fn limit_sql(bound: ValueBound) -> String {
    format!(" LIMIT {}", bound.n_values().saturating_add(1).min(MOST_ROWS))
}

/// Combines the counts of single values with those of whole lists; largest value first.
fn with_lists(counts: Vec<(String, i64)>, lists: Vec<(Vec<String>, i64)>) -> Vec<(String, i64)> {
    let mut sums: BTreeMap<String, i64> = counts.into_iter().collect();
    for (values, n) in lists {
        for value in values {
            *sums.entry(value).or_default() += n;
        }
    }
    sums.into_iter().rev().filter(|it| it.1 != 0).collect()
}

/// A facet whose values a column holds.
#[derive(Clone, Copy)]
struct Held {
    column: &'static Column,
    counts: Counts,
}

impl Held {
    /// Returns the SQL of the counted value of row `r`.
    fn value_sql(&self) -> String {
        let name = self.column.name;
        match self.counts {
            Counts::Days => format!("(r.\"{name}\" - ((r.\"{name}\" % {DAY_MS}) + {DAY_MS}) % {DAY_MS})"),
            _ => format!("r.\"{name}\""),
        }
    }

    /// Returns each value as the facet shows it, largest first.
    fn list(&self, counts: impl Iterator<Item = (Cell, u64)>) -> Vec<FacetCount> {
        let mut list: Vec<FacetCount> = counts
            .filter_map(|(value, n_records)| {
                Some(FacetCount { value: facet_text(value, self.column.ty, self.counts)?, n_records })
            })
            .collect();
        list.sort_unstable_by(|a, b| b.value.cmp(&a.value));
        list
    }
}

/// How often each value of a column occurred.
#[derive(Default)]
struct Tally {
    texts: HashMap<String, u64>,
    integers: HashMap<i64, u64>,
    /// Keyed by their bits.
    reals: HashMap<u64, u64>,
    /// Total length of the texts.
    n_bytes: usize,
}

impl Tally {
    fn add(&mut self, row: &Row<'_, '_>, column: usize) -> Result<()> {
        if let Row::Sqlite(row) = row
            && let ValueRef::Text(bytes) = row.get_ref(column)?
            && let Ok(text) = std::str::from_utf8(bytes)
            && let Some(n) = self.texts.get_mut(text)
        {
            *n += 1;
            return Ok(());
        }
        match row.cell(column)? {
            Cell::Text(text) => {
                self.n_bytes += if self.texts.contains_key(&text) { 0 } else { text.len() };
                *self.texts.entry(text).or_default() += 1;
            }
            Cell::Int(it) => *self.integers.entry(it).or_default() += 1,
            Cell::Real(it) => *self.reals.entry(it.to_bits()).or_default() += 1,
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of values.
    fn len(&self) -> usize {
        self.texts.len() + self.integers.len() + self.reals.len()
    }

    fn cells(self) -> impl Iterator<Item = (Cell, u64)> {
        let texts = self.texts.into_iter().map(|(it, n)| (Cell::Text(it), n));
        let integers = self.integers.into_iter().map(|(it, n)| (Cell::Int(it), n));
        let reals = self.reals.into_iter().map(|(it, n)| (Cell::Real(f64::from_bits(it)), n));
        texts.chain(integers).chain(reals)
    }
}

/// Returns the text under which a facet shows a column's value.
pub(super) fn facet_text(value: Cell, ty: Type, counts: Counts) -> Option<String> {
    match (value, ty, counts) {
        (Cell::Int(ms), Type::Instant, Counts::Days) => day_text(ms),
        (Cell::Int(it), Type::Boolean, _) => Some((it != 0).to_string()),
        (Cell::Int(number), ..) => Some(number.to_string()),
        (Cell::Real(number), ..) => match Cell::number(number) {
            Cell::Int(whole) => Some(whole.to_string()),
            _ => Some(Json::from(number).to_string()),
        },
        (Cell::Text(text), ..) => Some(text),
        _ => None,
    }
}
