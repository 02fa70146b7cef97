//! How a query is answered: which index leads, what the engine decides, what is decided here.

mod facets;
mod filter;
mod lead;
mod sorting;
mod values;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use self::lead::{Choice, Lead};
use self::sorting::Sorting;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::counters::RECORDS;
use crate::index::{FirstRows, Found, MANY_RECORDS, ORDERS, Snapshot, SortBy, is_indexed};
use crate::parts::Parts;
use crate::plan::{Equality, Plan, typed};
use crate::remake;
use crate::session::{Flavour, State};
use crate::{Arity, Direction, Expr, Index, Kind, Order, Path, Query, Result, StoreError, View, explain};

/// Instructions of the embedded engine per row that an index scan passes over.
const STEPS_PER_ROW: u64 = 15;
/// Number of records from which the search index is used where rows would have to be read; where bodies would, it is
/// always used.
const FEWEST_ROWS: u64 = 2_000;
/// Maximum number of records sorted by reading their bodies where an index of the engine has the order but does not
/// tell which records qualify.
const MOST_SORTED_BODIES: u64 = 20_000;
/// Bodies read in one step.
const STEP_BODIES: usize = 500;
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
        let is_cheap = match self.order_columns() {
            Some(order) => self.is_cheap(view, &order)?,
            // All bodies would be read.
            None => false,
        };
        let most_bodies = match self.order_columns() {
            None => u64::MAX,
            Some(_) if self.plan.residual.is_some() => MOST_SORTED_BODIES,
            Some(_) => 0,
        };
        if !is_cheap && let Some(keys) = self.keys_by_index(view, most_bodies)? {
            return Ok(keys);
        }
        match self.order_columns() {
            Some(order) if self.plan.residual.is_none() => self.keys_by_engine(view, &order),
            Some(order) => {
                let keys = self.keys_filtered(view, &order);
                self.note("rows", || "in order, each row or body looked at until the page was full".into());
                keys
            }
            None => {
                let keys = self.keys_sorted_here(view);
                self.note("rows", || "all bodies that columns left, sorted afterwards".into());
                keys
            }
        }
    }

    /// Returns the window of rows ordered by values from their bodies.
    fn keys_of_bodies(&self, view: &mut View<'_>, keys: &[i64]) -> Result<Vec<i64>> {
        let mut rows = Sorting::of(self.declared, &self.query);
        let parts = Parts::default().with(self.query.order.iter().map(|it| &it.path));
        for step in keys.chunks(STEP_BODIES) {
            for record in view.by_keys(self.kind, step)? {
                rows.add(record.key, &record.json_of(&parts)?);
            }
            view.check_pace()?;
        }
        self.note("rows", || format!("{} bodies read and sorted", keys.len()));
        Ok(rows.window())
    }

    /// Counts the records that satisfy the condition; the window is ignored.
    pub(crate) fn count(mut self, view: &mut View<'_>) -> Result<u64> {
        if self.plan.is_empty {
            return Ok(0);
        }
        if !self.is_cheap(view, &[])?
            && let Some(n) = self.by_index(view, None, |found| Ok(Some(found.count())))?
        {
            return Ok(n);
        }
        if self.plan.residual.is_some() {
            let mut n = 0;
            self.each_remaining(view, "", |_, _| {
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

    /// Returns the search index if it may answer.
    fn index(&self, view: &View<'_>) -> Option<Arc<Snapshot>> {
        if !std::ptr::eq(self.kind, self.declared) {
            return None;
        }
        let snapshot = view.indexes.as_ref()?.get(self.kind.name)?;
        let has_residual = self.plan.residual.is_some();
        let reads_bodies = has_residual || self.plan.has_text || self.order_columns().is_none();
        let fewest = if reads_bodies { MANY_RECORDS } else { FEWEST_ROWS };
        let is_asked = match view.state {
            State::Committed => {
                let is_narrowed = !self.plan.conditions.is_empty() || self.plan.classes.is_some();
                reads_bodies || is_narrowed || !self.is_led()
            }
            // Writers mostly look a value up in an index of the engine.
            State::Open => has_residual && self.plan.conditions.is_empty(),
        };
        (is_asked && fewest <= snapshot.n_documents()).then(|| Arc::clone(snapshot))
    }

    /// Returns whether an index of the engine, or the table itself, is in the order asked for, by its first column.
    fn is_led(&self) -> bool {
        let Some(first) = self.query.order.first() else { return true };
        self.order_column(first).is_some_and(|(name, _)| {
            name == "id" || self.kind.indexes.iter().any(|it| it.columns.first() == Some(&name))
        })
    }

    /// Returns whether an index of the engine finds the answer in next to no time, or the search index cannot be used.
    fn is_cheap(&mut self, view: &mut View<'_>, order: &[(&'static str, Direction)]) -> Result<bool> {
        if self.index(view).is_none() || self.plan.conditions.iter().any(|it| it.starts_with("r.id ")) {
            return Ok(true);
        }
        let is_counted = self.plan.conditions.is_empty() && self.plan.residual.is_none();
        if is_counted && order.is_empty() && self.query.limit.is_none() {
            return Ok(true);
        }
        if view.session.flavour() == Flavour::Postgres {
            return Ok(self.plan.residual.is_none() && !self.plan.has_text && self.is_narrow(order));
        }
        let leads = self.choice().leads(view, order)?;
        Ok(leads.is_cheap(self.plan.residual.is_none()))
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

    /// Returns the rows of the answer by the search index; `None` when it cannot find them. Rows that it cannot sort
    /// are sorted by their bodies if there are at most `most_bodies`.
    fn keys_by_index(&self, view: &mut View<'_>, most_bodies: u64) -> Result<Option<Vec<i64>>> {
        let order: Option<Vec<_>> = self.query.order.iter().map(|it| self.sort_by(it)).collect();
        let order = order.filter(|it| it.len() <= ORDERS);
        let Query { after, skip, limit, .. } = self.query;
        let page = match order.as_deref() {
            Some([(SortBy::Column(place), direction)]) => {
                FirstRows::of(self.kind, *place, *direction, skip, limit)
            }
            _ => None,
        };
        let found = self.by_index(view, page.as_ref(), |found| {
            if let Some(page) = &page
                && let Some(keys) = found.first_rows(page)?
            {
                return Ok(Some((keys, true)));
            }
            found.settle()?;
            if let Some(order) = &order
                && let Some(keys) = found.keys(order, after, skip, limit)?
            {
                return Ok(Some((keys, true)));
            }
            if most_bodies < found.count() {
                return Ok(None);
            }
            Ok(found.keys(&[], after, 0, None)?.map(|keys| (keys, false)))
        })?;
        match found {
            Some((keys, true)) => Ok(Some(keys)),
            Some((keys, false)) => self.keys_of_bodies(view, &keys).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the search index's sort for an order; it has no column of ids.
    fn sort_by(&self, order: &Order) -> Option<(SortBy, Direction)> {
        if self.kind.is_id(&order.path) {
            return None;
        }
        let by = match self.kind.column_of(&order.path) {
            Some(column) => SortBy::Column(one_columns(self.kind).position(|it| it.name == column.name)?),
            None if is_indexed(self.kind, &order.path) => SortBy::Path(order.path.clone()),
            None => return None,
        };
        Some((by, order.direction))
    }

    /// Returns an answer of the search index, asked for a page or for everything; `None` when it has none. An index that fails, whatever damaged it, is
    /// rebuilt, and something else answers.
    fn by_index<T>(
        &self,
        view: &mut View<'_>,
        page: Option<&FirstRows>,
        answer: impl FnOnce(&mut Found<'_>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let Some(snapshot) = self.index(view) else { return Ok(None) };
        let classes = self.plan.classes.as_deref();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            match snapshot.find(view, self.kind, &self.plan.rest, classes, page)? {
                Some(mut found) => {
                    let given = answer(&mut found)?;
                    let how = if given.is_some() { "" } else { " (which cannot give them in this order)" };
                    self.note("answer", || {
                        let n_found = found.known_count().map_or_else(
                            || "walked along the order to the end of the page".to_owned(),
                            |it| format!("{it} found"),
                        );
                        format!(
                            "search index{how}, {n_found}, {} bodies read to decide, {} changed since",
                            found.n_read, found.n_changed
                        )
                    });
                    Ok(given)
                }
                None => {
                    self.note("answer", || "the search index is too far behind".into());
                    Ok(None)
                }
            }
        }));
        let error = match asked {
            Ok(Err(error @ StoreError::Index(_))) => error,
            Ok(result) => return result,
            Err(_) => StoreError::Panicked,
        };
        tracing::warn!(kind = self.kind.name, %error, "a search index failed; rebuilding it");
        if let Some(indexes) = view.shared.indexes.get() {
            indexes.distrust(self.kind);
        }
        Ok(None)
    }

    fn keys_through(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
        lead: &Lead,
    ) -> Result<Vec<i64>> {
        let n_values = self.plan.values.len();
        let keys = self.keys_led(view, order, lead);
        self.plan.values.truncate(n_values);
        match keys {
            // While a bulk load has dropped the indexes, none of them can lead.
            Err(StoreError::Sqlite(_)) if *lead != Lead::Engine => self.keys_led(view, order, &Lead::Engine),
            result => result,
        }
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
        let hint = match lead {
            Lead::Sorted(Some(index)) | Lead::Index(index) => format!(" INDEXED BY \"{index}\""),
            Lead::Sorted(None) => " NOT INDEXED".to_owned(),
            _ => String::new(),
        };
        let condition = match lead {
            Lead::Engine | Lead::Many => self.where_sql(view),
            _ => self.where_sql_of(view, self.plan.conditions.iter().map(|it| beside(it)).collect()),
        };
        format!(
            "SELECT r.key FROM \"k_{}\" r{hint}{condition}{}",
            self.kind.name,
            order_sql(view, "r.", order)
        )
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
        let (mut n_found, mut keys) = (0, Vec::new());
        let order = order_sql(view, "r.", order);
        self.each_remaining(view, &order, |key, _| {
            n_found += 1;
            if skip < n_found {
                keys.push(key);
            }
            if limit <= keys.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(keys)
    }

    /// Returns rows sorted by values that no column holds.
    fn keys_sorted_here(&mut self, view: &mut View<'_>) -> Result<Vec<i64>> {
        let mut rows = Sorting::of(self.declared, &self.query);
        let paths: Vec<Path> = self.query.order.iter().map(|it| it.path.clone()).collect();
        self.each_body(view, " ORDER BY r.key", &paths, |key, body| {
            rows.add(key, body);
            ControlFlow::Continue(())
        })?;
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
