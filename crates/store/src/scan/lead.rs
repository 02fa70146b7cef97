//! Choice of the leading index: the one with the fewest rows touched according to the maintained counts.
//!
//! Counts do not show correlations between conditions: where the newest thousand records of a group hold none of the
//! period asked for, walking them newest first is the wrong plan. Such a lead is tried for a number of rows, and a safe
//! one follows if that did not suffice.

use crate::cell::Cell;
use crate::columns::{index_name, many_table};
use crate::counters::{ALL_CLASSES, RECORDS, is_behind};
use crate::plan::Plan;
use crate::session::{Flavour, State};
use crate::{Arity, Column, Counts, Direction, Kind, Query, Result, StoreError, Type, View};

/// Number of records below which the engine's own choice is as good as any.
const SMALL_KIND_RECORDS: u64 = 2_000;
/// Maximum number of classes whose sorted lists are merged.
const MERGED_CLASSES: usize = 16;
/// Assumed share of records that satisfy an equality on an indexed column without counts.
const SHARE_OF_INDEXED: f64 = 0.001;
/// Assumed share of records that satisfy any other condition without counts.
const SHARE_OF_VAGUE: f64 = 0.33;
/// Cost of a row that an index yields out of order, relative to one in order: it has to be sorted afterwards.
const COST_OUT_OF_ORDER: f64 = 1.5;
/// Index rows counted before a lead is chosen.
const PROBED_ROWS: u64 = 200;
/// Rows of a many-valued column counted where no facet counts its values.
const PROBED_VALUES: u64 = 1_000;
/// Index rows counted after a lead has failed.
const COUNTED_ROWS: u64 = 100_000;
/// Number of rows that are read in less time than the search index takes.
const CHEAP_ROWS: f64 = 300.0;
/// How many times the expected number of rows a lead may touch before another is used.
const TRIED_TIMES: f64 = 4.0;

/// The way to find the records.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lead {
    /// The engine chooses.
    Engine,
    /// The index that yields the result in order, or the table itself.
    Sorted(Option<String>),
    /// The index of an equality, a range or classes; the result is sorted afterwards.
    Index(String),
    /// The table of a many-valued column.
    Many,
    /// The sorted lists of a few classes, merged.
    Merged(String),
}

/// What answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
    /// Counts show that there is nothing to find.
    Nothing,
    /// The engine: one of its indexes finds the answer in next to no time, or the search index cannot be used.
    Engine,
    /// The search index.
    Index,
}

impl Lead {
    /// Returns the hint to the embedded engine behind the name of the table.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Sorted(Some(index)) | Self::Index(index) => format!(" INDEXED BY \"{index}\""),
            Self::Sorted(None) => " NOT INDEXED".to_owned(),
            Self::Engine | Self::Many | Self::Merged(_) => String::new(),
        }
    }

    /// Returns its name in an explanation.
    pub(super) fn named(&self) -> String {
        match self {
            Self::Engine => "the engine's own choice".to_owned(),
            Self::Sorted(Some(index)) => format!("index {index}, in order"),
            Self::Sorted(None) => "the table, in order".to_owned(),
            Self::Index(index) => format!("index {index}, sorted afterwards"),
            Self::Many => "values of a list, sorted afterwards".to_owned(),
            Self::Merged(index) => format!("index {index}, the lists of some classes merged"),
        }
    }
}

/// The candidate leads of a query.
#[derive(Debug)]
pub(super) struct Leads {
    /// The most promising lead.
    pub(super) promising: Lead,
    /// The number of rows after which the promise is broken; `None` where it cannot be, or nothing is better.
    pub(super) tried_rows: Option<u64>,
    /// Leads with a known upper bound of rows touched, with their cost.
    safe: Vec<(f64, Lead)>,
    /// Number of records: the upper bound for any lead.
    n_records: f64,
    /// Whether the counts show that no record satisfies the condition.
    pub(super) is_nothing: bool,
    /// Expected number of rows touched.
    cost: f64,
}

impl Leads {
    /// Returns whether an index of the engine finds the answer in less time than the search index takes, if the engine
    /// decides the whole condition.
    pub(super) fn is_cheap(&self) -> bool {
        let safe = least(&self.safe).map_or(f64::INFINITY, |it| it.0);
        safe.min(self.cost) < CHEAP_ROWS
    }

    fn only(lead: Lead) -> Self {
        Self {
            promising: lead,
            tried_rows: None,
            safe: Vec::new(),
            n_records: f64::INFINITY,
            is_nothing: false,
            cost: f64::INFINITY,
        }
    }
}

/// The estimated selectivity of an equality.
struct Equality {
    /// As a share of all.
    of_all: f64,
    /// As a share of those in the allowed classes.
    of_allowed: f64,
    /// Whether the counts show for certain that no record in the allowed classes satisfies it.
    is_none: bool,
    lead: Option<Lead>,
}

/// A query whose lead is to be chosen.
pub(super) struct Choice<'a> {
    pub(super) kind: &'static Kind,
    pub(super) query: &'a Query,
    pub(super) plan: &'a Plan,
}

impl Choice<'_> {
    /// Returns the index with the fewest rows touched according to the maintained counts.
    pub(super) fn leads(&self, view: &mut View<'_>, order: &[(&'static str, Direction)]) -> Result<Leads> {
        if view.state == State::Open || order.len() > 1 || self.plan.has_text {
            return Ok(Leads::only(Lead::Engine));
        }
        if view.session.flavour() == Flavour::Postgres {
            return Ok(Leads::only(self.merged_lead(order).unwrap_or(Lead::Engine)));
        }
        let n_all = self.n_records(view, &[ALL_CLASSES])?;
        let has_ids = self.plan.conditions.iter().any(|it| it.starts_with("r.id "));
        if n_all < SMALL_KIND_RECORDS
            || has_ids
            || (self.plan.conditions.is_empty() && self.plan.classes.is_none())
        {
            return Ok(Leads::only(Lead::Engine));
        }
        let n = n_all as f64;
        let n_visible = match self.plan.classes.clone() {
            Some(set) => self.n_records(view, &set.numbers)? as f64,
            None => n,
        };
        let equal = self.equalities(view, n, n_visible)?;
        let mut safe: Vec<(f64, Lead)> = Vec::new();
        let mut others: f64 = equal.iter().map(|it| it.of_allowed).product();
        let is_nothing = n_visible == 0.0
            || (equal.iter().any(|it| it.is_none) && !is_behind(&mut view.session, self.kind.name)?);
        for it in equal {
            if let Some(lead) = it.lead {
                safe.push((it.of_all * n * COST_OUT_OF_ORDER, lead));
            }
        }
        let few = self.count_ranges(view, PROBED_ROWS)?;
        let n_vague = (self.plan.n_vague as usize).saturating_sub(few.len());
        for (n_rows, lead) in few {
            others *= n_rows / n;
            safe.push((n_rows * COST_OUT_OF_ORDER, lead));
        }
        others *= SHARE_OF_VAGUE.powi(i32::try_from(n_vague).unwrap_or(i32::MAX));
        let want = self.query.limit.map_or(n, |limit| (limit + self.query.skip) as f64);
        let touched = |share: f64, most: f64| (want / share.max(1e-9)).min(most);
        let mut sorted: Vec<(f64, Lead)> = Vec::new();
        match order {
            [] => sorted.push((touched(others * n_visible / n, n), Lead::Sorted(None))),
            [(column, _)] => {
                if let Some(index) = index_on(self.kind, &[column]) {
                    sorted.push((touched(others * n_visible / n, n), Lead::Sorted(Some(index))));
                }
            }
            _ => {}
        }
        if let Some(set) = &self.plan.classes {
            if let Some(index) = index_on(self.kind, &["class"]) {
                safe.push((n_visible * COST_OUT_OF_ORDER, Lead::Index(index)));
            }
            if let [(column, _)] = order
                && let Some(index) = index_on(self.kind, &["class", column])
                && set.numbers.len() <= MERGED_CLASSES
                && self.query.limit.is_some()
            {
                let n_lists = set.numbers.len() as f64;
                sorted.push((touched(others, n_visible / n_lists) * n_lists, Lead::Merged(index)));
            }
        }
        let has_others = !self.plan.ranges.is_empty() || !safe.is_empty();
        let (promising, tried_rows, cost) = match (least(&sorted), least(&safe)) {
            (Some((cost, lead)), best) if best.is_none_or(|it| *cost <= it.0) => {
                (lead.clone(), has_others.then_some((cost * TRIED_TIMES) as u64), *cost)
            }
            (_, Some((cost, lead))) => (lead.clone(), None, *cost),
            _ => (Lead::Engine, None, f64::INFINITY),
        };
        Ok(Leads { promising, tried_rows, safe, n_records: n, is_nothing, cost })
    }

    /// Returns the lead with the smallest guaranteed bound on rows touched.
    pub(super) fn safe_lead(&self, view: &mut View<'_>, leads: Leads) -> Result<Lead> {
        let Leads { promising, mut safe, n_records, .. } = leads;
        let ranges = self.count_ranges(view, COUNTED_ROWS)?;
        safe.extend(ranges.into_iter().map(|(n_rows, lead)| (n_rows * COST_OUT_OF_ORDER, lead)));
        safe.push((n_records, promising));
        Ok(safe.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or(Lead::Engine, |it| it.1))
    }

    /// Returns the ranges that fewer than `n_rows` rows satisfy: the number of rows and the index to use.
    fn count_ranges(&self, view: &mut View<'_>, n_rows: u64) -> Result<Vec<(f64, Lead)>> {
        let mut list = Vec::new();
        for range in &self.plan.ranges {
            let Some(index) = index_on(self.kind, &[range.column]) else { continue };
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM \"k_{}\" r INDEXED BY \"{index}\" WHERE {} LIMIT {n_rows})",
                self.kind.name, self.plan.conditions[range.condition]
            );
            let n = match view.session.first(&sql, &self.plan.values[..range.n_values], |row| row.int(0)) {
                // While a bulk load has dropped the indexes, none of them can be counted.
                Err(StoreError::Sqlite(_)) => continue,
                n => n?.unwrap_or(0).cast_unsigned(),
            };
            if n < n_rows {
                list.push((n as f64, Lead::Index(index)));
            }
        }
        Ok(list)
    }

    /// Returns the merged lists of a few classes, where they are sorted as requested: no planner does this by itself.
    fn merged_lead(&self, order: &[(&'static str, Direction)]) -> Option<Lead> {
        let set = self.plan.classes.as_ref()?;
        let [(column, _)] = order else { return None };
        let is_few = (2..=MERGED_CLASSES).contains(&set.numbers.len()) && self.query.limit.is_some();
        if is_few { index_on(self.kind, &["class", column]).map(Lead::Merged) } else { None }
    }

    /// Returns the selectivity of each top-level equality from the counts.
    fn equalities(&self, view: &mut View<'_>, n_all: f64, n_allowed: f64) -> Result<Vec<Equality>> {
        let mut list = Vec::new();
        for equality in &self.plan.equalities {
            let Some(column) = self.kind.column_of(&equality.path) else { continue };
            let lead = match column.arity {
                Arity::Many => Some(Lead::Many),
                Arity::One => index_on(self.kind, &[column.name]).map(Lead::Index),
            };
            let facet = self
                .kind
                .facets
                .iter()
                .find(|it| equality.path.is_dotted(it.path) && matches!(it.counts, Counts::Values));
            let Some(facet) = facet else {
                let share = match &lead {
                    Some(Lead::Many) => self.share_of_many(view, column, &equality.values, n_all)?,
                    Some(_) => SHARE_OF_INDEXED,
                    None => SHARE_OF_VAGUE,
                };
                list.push(Equality { of_all: share, of_allowed: share, is_none: false, lead });
                continue;
            };
            let n = self.n_with(view, facet.name, &equality.values, &[ALL_CLASSES])?;
            let few = self.plan.classes.as_ref().filter(|it| it.numbers.len() <= MERGED_CLASSES);
            let (n_within, of_allowed) = match few {
                Some(set) => {
                    let n = self.n_with(view, facet.name, &equality.values, &set.numbers)?;
                    (n, n as f64 / n_allowed.max(1.0))
                }
                None => (n, n as f64 / n_all),
            };
            let is_none = n_within == 0 && equality.is_counted;
            list.push(Equality { of_all: n as f64 / n_all, of_allowed, is_none, lead });
        }
        Ok(list)
    }

    /// Estimates the share of records with any of `values` in a many-valued column from its first rows.
    fn share_of_many(
        &self,
        view: &mut View<'_>,
        column: &'static Column,
        values: &[String],
        n_all: f64,
    ) -> Result<f64> {
        if column.ty != Type::Text || values.is_empty() {
            return Ok(SHARE_OF_INDEXED);
        }
        let table = many_table(self.kind, column);
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} x WHERE x.value = ?1 LIMIT {PROBED_VALUES})"
        );
        let mut n: u64 = 0;
        for value in values {
            let rows = view.session.first(&sql, &[value.as_str().into()], |row| row.int(0))?;
            n += rows.unwrap_or(0).cast_unsigned();
            if PROBED_VALUES <= n {
                return Ok(SHARE_OF_VAGUE);
            }
        }
        Ok(n as f64 / n_all)
    }

    /// Returns how often a facet counts any of `values` in `classes`.
    fn n_with(&self, view: &mut View<'_>, facet: &str, values: &[String], classes: &[i64]) -> Result<i64> {
        let sql = "SELECT n FROM facet WHERE kind = ?1 AND facet = ?2 AND class = ?3 AND value = ?4";
        let mut sum = 0;
        for class in classes {
            for value in values {
                let at = [self.kind.name.into(), facet.into(), (*class).into(), value.as_str().into()];
                sum += view.session.first(sql, &at, |row| row.int(0))?.unwrap_or(0);
            }
        }
        Ok(sum)
    }

    fn n_records(&self, view: &mut View<'_>, classes: &[i64]) -> Result<u64> {
        let sql = format!(
            "SELECT CAST(sum(n) AS bigint) FROM facet WHERE kind = ?1 AND facet = '{RECORDS}' AND {}",
            view.session.flavour().in_set("class", 2)
        );
        let values = [self.kind.name.into(), Cell::Ints(classes.to_vec())];
        Ok(view
            .session
            .first(&sql, &values, |row| row.optional_int(0))?
            .flatten()
            .unwrap_or(0)
            .cast_unsigned())
    }
}

/// Returns the cheapest.
fn least(leads: &[(f64, Lead)]) -> Option<&(f64, Lead)> {
    leads.iter().min_by(|a, b| a.0.total_cmp(&b.0))
}

/// Returns the name of a declared index that begins with these columns.
fn index_on(kind: &Kind, columns: &[&str]) -> Option<String> {
    kind.indexes
        .iter()
        .find(|index| index.columns.starts_with(columns) && index.is_over_all())
        .map(|index| index_name(kind, index))
}
