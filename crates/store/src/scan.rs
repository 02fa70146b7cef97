//! How a query is answered: which index leads, what the engine decides, what is decided here.

mod at_once;
mod facets;
mod filter;
mod indexed;
mod lead;
mod sorting;
mod sums;
mod values;

use std::ops::ControlFlow;

pub(crate) use self::at_once::AT_ONCE_RECORDS;
use self::lead::{Choice, Lead, Road};
use self::sorting::Sorting;
use crate::cell::Cell;
use crate::counters::RECORDS;
use crate::index::Extent;
use crate::plan::{Equality, Plan, typed};
use crate::remake;
use crate::session::{Flavour, State};
use crate::{Arity, Direction, Expr, Index, Kind, Order, Path, Query, Result, StoreError, View, explain};

/// Instructions of the embedded engine per row that an index scan passes over.
const STEPS_PER_ROW: u64 = 15;
/// Maximum number of records sorted by reading their bodies where an index of the engine has the order but does not
/// tell which records qualify.
const MOST_SORTED_BODIES: u64 = 20_000;
/// Rows that a database may pass over on the way to a page.
const FAR_ROWS: u64 = 10_000;
/// More rows than a tenant can hold; the sum of two such numbers still fits the integers of both engines.
const MOST_ROWS: u64 = 1 << 62;

/// A query being answered.
pub(crate) struct Scan {
    /// The kind as declared.
    declared: &'static Kind,
    /// The kind; during a rebuild, without the missing parts.
    kind: &'static Kind,
    query: Query,
    plan: Plan,
}

impl Scan {
    pub(crate) fn of(view: &mut View<'_>, kind: &'static Kind, query: &Query) -> Result<Self> {
        if query.after.is_some() && !query.order.is_empty() {
            return Err(StoreError::Query(
                "a page `after` a record needs the insertion order; leave the order out".to_owned(),
            ));
        }
        view.require_declared()?;
        let (declared, remake) = (kind, view.remake(kind)?);
        let made = if remake.is_some() { view.remaking(kind).map(|it| it.made) } else { None };
        let kind = made.unwrap_or(declared);
        let condition = typed(declared, &query.filter);
        let plan = Plan::of(&mut view.session, view.state, &view.shared.classes, kind, &condition)?;
        if let Some(remake) = remake.filter(|_| plan.has_text) {
            remake.require_words(declared, view.session.flavour())?;
        }
        // A window that ends behind the last possible row has no end; PostgreSQL refuses larger numbers than its own.
        let skip = query.skip.min(MOST_ROWS);
        let limit = query.limit.filter(|limit| *limit < MOST_ROWS);
        let scan = Self { declared, kind, query: Query { skip, limit, ..query.clone() }, plan };
        if view.state == State::Open {
            scan.refuse_bodies(view, &condition)?;
        }
        scan.leave_standby(view)?;
        Ok(scan)
    }

    /// Refuses a scan by a writer that would read all bodies because columns are missing during a rebuild. Other
    /// writers would have to wait for it.
    fn refuse_bodies(&self, view: &mut View<'_>, condition: &Expr) -> Result<()> {
        if std::ptr::eq(self.kind, self.declared) {
            return Ok(());
        }
        let classes = &view.shared.classes;
        let whole = Plan::of(&mut view.session, view.state, classes, self.declared, condition)?;
        let has_order =
            |it: &Order| self.declared.is_id(&it.path) || self.declared.column_of(&it.path).is_some();
        let is_decided = whole.residual.is_none() && self.query.order.iter().all(has_order);
        let reads_bodies = self.plan.residual.is_some() || self.order_columns().is_none();
        if is_decided && reads_bodies { Err(remake::not_yet(self.declared)) } else { Ok(()) }
    }

    /// Leaves a standby for the primary where the search index, which does not know the standby's snapshot, would save
    /// reading bodies.
    fn leave_standby(&self, view: &mut View<'_>) -> Result<()> {
        let reads_bodies =
            self.plan.residual.is_some() || self.plan.has_text || self.order_columns().is_none();
        let has_index = || view.shared.published().is_some_and(|it| it.contains_key(self.kind.name));
        if reads_bodies && view.indexes.is_none() && has_index() && view.session.leave_standby() {
            return Err(StoreError::Conflict("the primary is asked instead of a standby".to_owned()));
        }
        Ok(())
    }

    /// Returns the rows of the answer, in order.
    pub(crate) fn keys(mut self, view: &mut View<'_>) -> Result<Vec<i64>> {
        if self.plan.is_empty || self.query.limit == Some(0) {
            return Ok(Vec::new());
        }
        let road = match self.order_columns() {
            Some(order) => self.road(view, &order)?,
            // The engine would read all bodies.
            None => Road::Index,
        };
        if road == Road::Nothing {
            self.note("rows", || "counts that are kept: there are none".into());
            return Ok(Vec::new());
        }
        let most_bodies = match self.order_columns() {
            None => u64::MAX,
            Some(_) if self.plan.residual.is_some() => MOST_SORTED_BODIES,
            Some(_) => 0,
        };
        if road == Road::Index
            && let Some(keys) = self.keys_by_index(view, most_bodies)?
        {
            return Ok(keys);
        }
        match self.order_columns() {
            Some(order) if self.plan.residual.is_none() => self.keys_by_engine(view, &order),
            Some(order) => self.keys_filtered(view, &order),
            None => {
                let keys = self.keys_sorted_here(view);
                self.note("rows", || "all bodies that columns left, sorted afterwards".into());
                keys
            }
        }
    }

    /// Counts the records that satisfy the condition; the window is ignored.
    pub(crate) fn count(mut self, view: &mut View<'_>) -> Result<u64> {
        if self.plan.is_empty {
            return Ok(0);
        }
        let road = self.road(view, &[])?;
        if road == Road::Nothing {
            self.note("count", || "counts that are kept: there are none".into());
            return Ok(0);
        }
        if road == Road::Index
            && let Some(n) = self.by_index(view, Extent::All, |_, found| Ok(Some(found.count())))?
        {
            return Ok(n);
        }
        if self.plan.residual.is_some() {
            let mut n = 0;
            self.each_remaining(view, &Lead::Engine, "", |_, _| {
                n += 1;
                ControlFlow::Continue(())
            })?;
            self.note("count", || "each row or body looked at that columns left".into());
            return Ok(n);
        }
        if view.state == State::Committed && self.plan.conditions.is_empty() {
            let n = self.counted(view, RECORDS).map(|list| list.iter().map(|it| it.n_records).sum());
            self.note("count", || "counts that are kept".into());
            return n;
        }
        let sql = format!("SELECT count(*) FROM \"k_{}\" r{}", self.kind.name, self.where_sql(view));
        let n = view.session.first(&sql, &self.plan.values, |row| row.int(0))?;
        self.note("count", || "rows counted by the engine".into());
        Ok(n.unwrap_or(0).cast_unsigned())
    }

    /// Returns the sort as columns, or `None` when a path has none.
    fn order_columns(&self) -> Option<Vec<(&'static str, Direction)>> {
        self.query.order.iter().map(|order| self.order_column(order)).collect()
    }

    fn order_column(&self, order: &Order) -> Option<(&'static str, Direction)> {
        if self.kind.is_id(&order.path) {
            return Some(("id", order.direction));
        }
        let column = self.kind.column_of(&order.path).filter(|column| column.arity == Arity::One)?;
        Some((column.name, order.direction))
    }

    /// Notes how an answer was found, if somebody asks.
    fn note(&self, what: &str, how: impl FnOnce() -> String) {
        explain::note(|| format!("{} {what}: {}", self.kind.name, how()));
    }

    fn choice(&self) -> Choice<'_> {
        Choice { kind: self.kind, query: &self.query, plan: &self.plan }
    }

    fn keys_by_engine(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
    ) -> Result<Vec<i64>> {
        let leads = self.choice().leads(view, order)?;
        if leads.is_nothing {
            return Ok(Vec::new());
        }
        if let (Some(n_rows), Some(pace)) = (leads.tried_rows, view.pace) {
            let tried =
                pace.within(n_rows * STEPS_PER_ROW, || self.keys_through(view, order, &leads.promising));
            if let Some(result) = tried {
                self.note("rows", || leads.promising.named());
                return result;
            }
            if let Some(keys) = self.keys_by_index(view, 0)? {
                return Ok(keys);
            }
            let safe = self.choice().safe_lead(view, leads)?;
            let keys = self.keys_through(view, order, &safe);
            self.note("rows", || safe.named());
            return keys;
        }
        let keys = self.keys_through(view, order, &leads.promising);
        self.note("rows", || leads.promising.named());
        keys
    }

    /// Returns whether an index of the engine, or the table itself, is in the order asked for, by its first column.
    fn is_led(&self) -> bool {
        let Some(first) = self.query.order.first() else { return true };
        self.order_column(first).is_some_and(|(name, _)| {
            name == "id" || self.kind.indexes.iter().any(|it| it.columns.first() == Some(&name))
        })
    }

    /// Chooses what answers.
    fn road(&mut self, view: &mut View<'_>, order: &[(&'static str, Direction)]) -> Result<Road> {
        if self.index(view).is_none() || self.plan.conditions.iter().any(|it| it.starts_with("r.id ")) {
            return Ok(Road::Engine);
        }
        let is_whole = self.plan.residual.is_none();
        if self.plan.conditions.is_empty() && is_whole && order.is_empty() && self.query.limit.is_none() {
            return Ok(Road::Engine);
        }
        let is_cheap = if view.session.flavour() == Flavour::Postgres {
            !self.plan.has_text && self.is_narrow(order)
        } else {
            let leads = self.choice().leads(view, order)?;
            if leads.is_nothing {
                return Ok(Road::Nothing);
            }
            leads.is_cheap()
        };
        Ok(if is_cheap && is_whole { Road::Engine } else { Road::Index })
    }

    /// Returns whether an index of a database leads to few rows, as far as the declaration tells: to one of many
    /// values, or along the order to the first of all visible records.
    fn is_narrow(&self, order: &[(&'static str, Direction)]) -> bool {
        let is_of_many = |equality: &Equality| {
            let column = self.kind.column_of(&equality.path).map(|it| it.name);
            let is_leading = |index: &Index| index.columns.first().copied() == column;
            self.kind.indexes.iter().any(is_leading)
                && !self.kind.facets.iter().any(|it| equality.path.is_dotted(it.path))
        };
        let is_first_of_all = || {
            let is_led = match order {
                [] => true,
                [(column, _), ..] => self.kind.indexes.iter().any(|it| it.columns.contains(column)),
            };
            self.plan.conditions.is_empty()
                && is_led
                && self.query.limit.is_some()
                && self.query.skip < FAR_ROWS
        };
        self.plan.equalities.iter().any(is_of_many) || is_first_of_all()
    }

    fn keys_through(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
        lead: &Lead,
    ) -> Result<Vec<i64>> {
        self.led(lead, |scan, lead| scan.keys_led(view, order, lead))
    }

    /// Reads through a lead, and as the engine chooses if that fails: while a bulk load has dropped the indexes, none of
    /// them can lead.
    fn led<T>(&mut self, lead: &Lead, mut read: impl FnMut(&mut Self, &Lead) -> Result<T>) -> Result<T> {
        let n_values = self.plan.values.len();
        let mut result = read(self, lead);
        self.plan.values.truncate(n_values);
        if matches!(result, Err(StoreError::Sqlite(_))) && *lead != Lead::Engine {
            result = read(self, &Lead::Engine);
            self.plan.values.truncate(n_values);
        }
        result
    }

    fn keys_led(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
        lead: &Lead,
    ) -> Result<Vec<i64>> {
        let sql = match lead {
            Lead::Merged(index) => self.merged_sql(view, index, order),
            _ => self.plain_sql(view, lead, order),
        };
        let window = self.window_sql(view);
        view.session.all(&format!("{sql}{window}"), &self.plan.values, |row| row.int(0))
    }

    fn plain_sql(&mut self, view: &View<'_>, lead: &Lead, order: &[(&'static str, Direction)]) -> String {
        let condition = self.led_where_sql(view, lead);
        format!(
            "SELECT r.key FROM \"k_{}\" r{}{condition}{}",
            self.kind.name,
            lead.hint(),
            order_sql(view, "r.", order)
        )
    }

    /// Returns the conditions in a form in which they do not compete with the lead.
    fn led_where_sql(&mut self, view: &View<'_>, lead: &Lead) -> String {
        match lead {
            Lead::Engine | Lead::Many => self.where_sql(view),
            _ => self.where_sql_of(view, self.plan.conditions.iter().map(|it| beside(it)).collect()),
        }
    }

    /// Returns SQL that merges each class's sorted list up to the window.
    fn merged_sql(&mut self, view: &View<'_>, index: &str, order: &[(&'static str, Direction)]) -> String {
        let hint = match view.session.flavour() {
            Flavour::Sqlite => format!(" INDEXED BY \"{index}\""),
            Flavour::Postgres => String::new(),
        };
        let numbers = self.plan.classes.as_ref().map(|set| set.numbers.clone()).unwrap_or_default();
        let want = self.query.skip + self.query.limit.unwrap_or(0);
        let n_want = self.plan.bind(want.into());
        let conditions: String =
            self.plan.conditions.iter().map(|it| format!(" AND {}", beside(it))).collect();
        let columns: String = order.iter().map(|(name, _)| format!(", r.\"{name}\" AS \"{name}\"")).collect();
        let mut parts = Vec::new();
        for number in numbers {
            let n = self.plan.bind(number.into());
            parts.push(format!(
                "SELECT * FROM (SELECT r.key AS key{columns} FROM \"k_{}\" r{hint} \
                 WHERE r.class = ?{n}{conditions}{} LIMIT ?{n_want}) c{n}",
                self.kind.name,
                order_sql(view, "r.", order)
            ));
        }
        format!("SELECT p.key FROM ({}) p{}", parts.join(" UNION ALL "), order_sql(view, "p.", order))
    }

    fn window_sql(&mut self, view: &View<'_>) -> String {
        let Some(limit) = self.query.limit else {
            if self.query.skip == 0 {
                return String::new();
            }
            let all = match view.session.flavour() {
                Flavour::Sqlite => " LIMIT -1",
                Flavour::Postgres => "",
            };
            return format!("{all} OFFSET ?{}", self.plan.bind(self.query.skip.into()));
        };
        let n = self.plan.bind(limit.into());
        if self.query.skip == 0 {
            return format!(" LIMIT ?{n}");
        }
        format!(" LIMIT ?{n} OFFSET ?{}", self.plan.bind(self.query.skip.into()))
    }

    /// Returns the rows, in the engine's order, that satisfy the part that the engine could not decide.
    fn keys_filtered(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
    ) -> Result<Vec<i64>> {
        let (skip, limit) = (self.query.skip, self.query.limit.unwrap_or(u64::MAX));
        let lead = match self.choice().leads(view, order)?.promising {
            Lead::Merged(_) => Lead::Engine,
            lead => lead,
        };
        let order = order_sql(view, "r.", order);
        self.led(&lead, |scan, lead| {
            let (mut n_found, mut keys) = (0, Vec::new());
            scan.each_remaining(view, lead, &order, |key, _| {
                n_found += 1;
                if skip < n_found {
                    keys.push(key);
                }
                if limit <= keys.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            scan.note("rows", || format!("{}, each row or body looked at", lead.named()));
            Ok(keys)
        })
    }

    /// Returns rows sorted by values that no column holds.
    fn keys_sorted_here(&mut self, view: &mut View<'_>) -> Result<Vec<i64>> {
        let mut rows = Sorting::of(self.declared, &self.query, &view.shared.limits);
        let mut kept = Ok(());
        let paths: Vec<Path> = self.query.order.iter().map(|it| it.path.clone()).collect();
        self.each_body(view, &Lead::Engine, " ORDER BY r.key", &paths, |key, body| {
            kept = rows.add(key, body);
            if kept.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        kept?;
        Ok(rows.window())
    }

    fn where_sql(&mut self, view: &View<'_>) -> String {
        self.where_sql_of(view, self.plan.conditions.clone())
    }

    fn where_sql_of(&mut self, view: &View<'_>, mut conditions: Vec<String>) -> String {
        if let Some(set) = self.plan.classes.clone() {
            conditions.push(match set.numbers.as_slice() {
                [one] => format!("r.class = ?{}", self.plan.bind((*one).into())),
                many => {
                    let n = self.plan.bind(Cell::Ints(many.to_vec()));
                    view.session.flavour().in_set("r.class", n)
                }
            });
        }
        if let Some(after) = self.query.after {
            conditions.push(format!("?{} < r.key", self.plan.bind(after.into())));
        }
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }
}

/// Returns a condition for rows that another index finds. A value of a many-valued column is looked up for each row:
/// otherwise the engine would first build a list of all records that have it.
fn beside(condition: &str) -> String {
    let looked_up = condition
        .strip_prefix("r.key IN (SELECT x.key FROM ")
        .and_then(|it| it.strip_suffix(')'))
        .filter(|it| it.contains(" WHERE x.value = ?") || it.contains(" WHERE x.value IN rarray("));
    match looked_up {
        Some(from) => format!("EXISTS (SELECT 1 FROM {from} AND x.key = r.key)"),
        None => condition.replace("r.key IN (", "+r.key IN ("),
    }
}

/// Milliseconds in a day.
const DAY_MS: i64 = 86_400_000;

/// Returns the sort as SQL; ties are in insertion order, in the direction of the last column.
fn order_sql(view: &View<'_>, alias: &str, order: &[(&'static str, Direction)]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut last = "ASC";
    for (name, direction) in order {
        last = match direction {
            Direction::Ascending => "ASC",
            Direction::Descending => "DESC",
        };
        let absent = view.session.flavour().absent_is_smallest(*direction);
        parts.push(format!("{alias}\"{name}\" {last}{absent}"));
    }
    parts.push(format!("{alias}key {last}"));
    format!(" ORDER BY {}", parts.join(", "))
}
