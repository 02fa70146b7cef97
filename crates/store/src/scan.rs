//! How a query is answered: which index leads, what the engine decides, what is decided here.

mod facets;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::counters::{ALL_CLASSES, RECORDS};
use crate::document::day_text;
use crate::eval::{sort_order, value_at};
use crate::plan::Plan;
use crate::session::{Cell, Flavour, Row};
use crate::view::State;
use crate::{
    Arity, Counts, Direction, End, Expr, Kind, Order, Path, Query, Result, StoreError, Type, View, eval, text,
};

/// Below so many records, the engine's own choice is as good as any.
const SMALL_KIND_RECORDS: u64 = 2_000;
/// Most classes whose sorted lists are merged.
const MERGED_CLASSES: usize = 16;
/// Assumed share of records that satisfy an equality on an indexed column without counts.
const SHARE_OF_INDEXED: f64 = 0.001;
/// Assumed share of records that satisfy any other condition without counts.
const SHARE_OF_VAGUE: f64 = 0.33;

/// A query on its way to its answer.
pub(crate) struct Scan {
    kind: &'static Kind,
    query: Query,
    plan: Plan,
}

/// What leads through the records.
#[derive(Debug, Clone, PartialEq)]
enum Lead {
    /// The engine chooses.
    Engine,
    /// The index in whose order the answer comes, or the table itself.
    Sorted(Option<String>),
    /// The index of an equality or of classes; the answer is sorted afterwards.
    Index(String),
    /// The table of a many-valued column.
    Many,
    /// The sorted lists of a few classes, merged.
    Merged(String),
}

impl Scan {
    pub(crate) fn of(view: &mut View<'_>, kind: &'static Kind, query: &Query) -> Result<Self> {
        if query.after.is_some() && !query.order.is_empty() {
            return Err(StoreError::Query(
                "a page `after` a record needs the insertion order; leave the order out".to_owned(),
            ));
        }
        let plan = Plan::of(&mut view.session, view.state, &view.shared.classes, kind, &query.filter)?;
        if plan.has_text {
            match view.state {
                State::Committed => text::require_current(view, kind)?,
                State::Open => {
                    while text::step(&mut view.session, kind, text::STEP_RECORDS)? == text::Progress::Behind {
                    }
                }
            }
        }
        Ok(Self { kind, query: query.clone(), plan })
    }

    /// The rows of the answer, in order.
    pub(crate) fn keys(mut self, view: &mut View<'_>) -> Result<Vec<i64>> {
        if self.plan.is_empty || self.query.limit == Some(0) {
            return Ok(Vec::new());
        }
        match self.order_columns() {
            Some(order) if self.plan.residual.is_none() => self.keys_by_engine(view, &order),
            Some(order) => self.keys_filtered(view, &order),
            None => self.keys_sorted_here(view),
        }
    }

    /// How many records satisfy the condition; the window does not count.
    pub(crate) fn count(mut self, view: &mut View<'_>) -> Result<u64> {
        if self.plan.is_empty {
            return Ok(0);
        }
        if self.plan.residual.is_some() {
            let mut n = 0;
            self.each_remaining(view, "", |_, _| {
                n += 1;
                ControlFlow::Continue(())
            })?;
            return Ok(n);
        }
        if view.state == State::Committed && self.plan.conditions.is_empty() {
            return self.counted(view, RECORDS).map(|list| list.iter().map(|it| it.n_records).sum());
        }
        let sql = format!("SELECT count(*) FROM \"k_{}\" r{}", self.kind.name, self.where_sql(view));
        Ok(view.session.first(&sql, &self.plan.values, |row| row.int(0))?.unwrap_or(0).cast_unsigned())
    }

    /// The sort as columns, or `None` when a path has none.
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

    fn keys_by_engine(
        &mut self,
        view: &mut View<'_>,
        order: &[(&'static str, Direction)],
    ) -> Result<Vec<i64>> {
        let lead = self.choose_lead(view, order)?;
        let n_values = self.plan.values.len();
        match self.keys_led(view, order, &lead) {
            // While a bulk load has put the indexes away, none of them can lead.
            Err(StoreError::Sqlite(_)) if lead != Lead::Engine => {
                self.plan.values.truncate(n_values);
                self.keys_led(view, order, &Lead::Engine)
            }
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
        let condition = self.where_sql(view);
        let condition = match lead {
            Lead::Engine | Lead::Many => condition,
            _ => condition.replace("r.key IN (", "+r.key IN ("),
        };
        format!(
            "SELECT r.key FROM \"k_{}\" r{hint}{condition}{}",
            self.kind.name,
            order_sql(view, "r.", order)
        )
    }

    /// Each class's sorted list up to the window, merged.
    fn merged_sql(&mut self, view: &View<'_>, index: &str, order: &[(&'static str, Direction)]) -> String {
        let hint = match view.session.flavour() {
            Flavour::Sqlite => format!(" INDEXED BY \"{index}\""),
            Flavour::Postgres => String::new(),
        };
        let numbers = self.plan.classes.as_ref().map(|set| set.numbers.clone()).unwrap_or_default();
        let want = self.query.skip + self.query.limit.unwrap_or(0);
        let n_want = self.plan.bind(want.into());
        let conditions: String = self
            .plan
            .conditions
            .iter()
            .map(|it| format!(" AND {}", it.replace("r.key IN (", "+r.key IN (")))
            .collect();
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

    /// Rows in the engine's order that satisfy what the engine could not decide.
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

    /// Rows sorted by values that no column holds.
    fn keys_sorted_here(&mut self, view: &mut View<'_>) -> Result<Vec<i64>> {
        let order = self.query.order.clone();
        let mut rows: Vec<(Vec<Option<Json>>, i64)> = Vec::new();
        self.each_body(view, " ORDER BY r.key", |key, body| {
            let values = order.iter().map(|it| value_at(body, it.path.as_steps()).cloned()).collect();
            rows.push((values, key));
            ControlFlow::Continue(())
        })?;
        let is_newest_first = order.last().is_some_and(|it| it.direction == Direction::Descending);
        rows.sort_by(|(a, a_key), (b, b_key)| {
            for (index, it) in order.iter().enumerate() {
                let by_value = sort_order(a[index].as_ref(), b[index].as_ref());
                let by_value =
                    if it.direction == Direction::Descending { by_value.reverse() } else { by_value };
                if by_value.is_ne() {
                    return by_value;
                }
            }
            if is_newest_first { b_key.cmp(a_key) } else { a_key.cmp(b_key) }
        });
        let skip = usize::try_from(self.query.skip).unwrap_or(usize::MAX);
        let limit = self.query.limit.and_then(|it| usize::try_from(it).ok()).unwrap_or(usize::MAX);
        Ok(rows.into_iter().skip(skip).take(limit).map(|(_, key)| key).collect())
    }

    /// Calls `visit` with each row that satisfies the whole condition, reading as little as decides it.
    fn each_remaining(
        &mut self,
        view: &mut View<'_>,
        order: &str,
        mut visit: impl FnMut(i64, &Json) -> ControlFlow<()>,
    ) -> Result<()> {
        let residual = self.plan.residual.clone().unwrap_or_else(|| Arc::new(Expr::All));
        let mut paths = Vec::new();
        let columns = if collect_paths(&residual, &mut paths) { self.columns_for(&paths) } else { None };
        let Some(columns) = columns else { return self.each_body(view, order, visit) };
        let condition = self.where_sql(view);
        let name = self.kind.name;
        let selected: String = columns.iter().map(|it| format!(", r.\"{}\"", it.0)).collect();
        let sql = format!("SELECT r.key{selected} FROM \"k_{name}\" r{condition}{order}");
        view.session.rows(&sql, &self.plan.values, |row| {
            let mut body = Json::Object(Map::new());
            for (index, (_, path, ty)) in columns.iter().enumerate() {
                place(&mut body, path, row.cell(index + 1)?, *ty);
            }
            Ok(if eval::matches(&residual, &body) {
                visit(row.int(0)?, &body)
            } else {
                ControlFlow::Continue(())
            })
        })
    }

    /// Calls `visit` with each row and its whole body that satisfies the condition.
    fn each_body(
        &mut self,
        view: &mut View<'_>,
        order: &str,
        mut visit: impl FnMut(i64, &Json) -> ControlFlow<()>,
    ) -> Result<()> {
        let residual = self.plan.residual.clone().unwrap_or_else(|| Arc::new(Expr::All));
        let condition = self.where_sql(view);
        let name = self.kind.name;
        let leaves = &self.plan.leaves;
        let decided: String = leaves.iter().map(|leaf| format!(", ({}) IS TRUE", leaf.sql)).collect();
        let sql = format!(
            "SELECT r.key, {}{decided} FROM {}{condition}{order}",
            view.session.flavour().body(),
            view.session.flavour().rows_with_bodies(name)
        );
        view.session.rows(&sql, &self.plan.values, |row| {
            let body = parse(&row, 1)?;
            let held: Vec<bool> =
                (0..leaves.len()).map(|index| row.flag(index + 2)).collect::<Result<_>>()?;
            let decide = |expr: &Expr| leaves.iter().zip(&held).any(|(leaf, held)| leaf.is_at(expr) && *held);
            Ok(if eval::matches_with(&residual, &body, &decide) {
                visit(row.int(0)?, &body)
            } else {
                ControlFlow::Continue(())
            })
        })
    }

    /// The columns that hold all of `paths`: (name, dotted path, type); `None` if one is not held.
    fn columns_for(&self, paths: &[Path]) -> Option<Vec<(&'static str, &'static str, Type)>> {
        let mut list = Vec::new();
        for path in paths {
            let held = if self.kind.is_id(path) {
                ("id", self.kind.id_path?, Type::Text)
            } else {
                let column = self.kind.column_of(path).filter(|it| it.arity == Arity::One)?;
                if matches!(column.ty, Type::Instant | Type::Folded) {
                    // A column keeps the point in time or the folded text, not how the body writes it.
                    return None;
                }
                (column.name, column.path, column.ty)
            };
            if !list.contains(&held) {
                list.push(held);
            }
        }
        Some(list)
    }

    fn where_sql(&mut self, view: &View<'_>) -> String {
        let mut conditions = self.plan.conditions.clone();
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

    /// Which index leads with the least rows touched, by the counts that are kept.
    fn choose_lead(&mut self, view: &mut View<'_>, order: &[(&'static str, Direction)]) -> Result<Lead> {
        if view.state == State::Open || order.len() > 1 || self.plan.has_text {
            return Ok(Lead::Engine);
        }
        if view.session.flavour() == Flavour::Postgres {
            return Ok(self.merged_lead(order).unwrap_or(Lead::Engine));
        }
        let n_all = self.n_records(view, &[ALL_CLASSES])?;
        let has_ids = self.plan.conditions.iter().any(|it| it.starts_with("r.id "));
        if n_all < SMALL_KIND_RECORDS
            || has_ids
            || (self.plan.conditions.is_empty() && self.plan.classes.is_none())
        {
            return Ok(Lead::Engine);
        }
        let n = n_all as f64;
        let n_visible = match self.plan.classes.clone() {
            Some(set) => self.n_records(view, &set.numbers)? as f64,
            None => n,
        };
        let equal = self.equal_shares(view, n)?;
        let vague = SHARE_OF_VAGUE.powi(i32::try_from(self.plan.n_vague).unwrap_or(i32::MAX));
        let others = equal.iter().map(|it| it.0).product::<f64>() * vague;
        let want = self.query.limit.map_or(n, |limit| (limit + self.query.skip) as f64);
        let touched = |share: f64, most: f64| (want / share.max(1e-9)).min(most);
        let mut best = (f64::INFINITY, Lead::Engine);
        let mut offer = |cost: f64, lead: Lead| {
            if cost < best.0 {
                best = (cost, lead);
            }
        };
        let sorted = match order {
            [] => Some(Lead::Sorted(None)),
            [(column, _)] => index_on(self.kind, &[column]).map(|it| Lead::Sorted(Some(it))),
            _ => None,
        };
        if let Some(lead) = sorted {
            offer(touched(others * n_visible / n, n), lead);
        }
        for (share, lead) in equal {
            if let Some(lead) = lead {
                offer(share * n * 1.5, lead);
            }
        }
        if let Some(set) = &self.plan.classes {
            if let Some(index) = index_on(self.kind, &["class"]) {
                offer(n_visible * 1.5, Lead::Index(index));
            }
            if let [(column, _)] = order
                && let Some(index) = index_on(self.kind, &["class", column])
                && set.numbers.len() <= MERGED_CLASSES
                && self.query.limit.is_some()
            {
                offer(
                    touched(others, n_visible / set.numbers.len() as f64) * set.numbers.len() as f64,
                    Lead::Merged(index),
                );
            }
        }
        Ok(best.1)
    }

    /// The lists of a few classes, where they are sorted as asked: what no planner does by itself.
    fn merged_lead(&self, order: &[(&'static str, Direction)]) -> Option<Lead> {
        let set = self.plan.classes.as_ref()?;
        let [(column, _)] = order else { return None };
        let is_few = (2..=MERGED_CLASSES).contains(&set.numbers.len()) && self.query.limit.is_some();
        if is_few { index_on(self.kind, &["class", column]).map(Lead::Merged) } else { None }
    }

    /// For each top-level equality: the share of records that satisfy it, and the index that leads to them.
    fn equal_shares(&mut self, view: &mut View<'_>, n_all: f64) -> Result<Vec<(f64, Option<Lead>)>> {
        let mut list = Vec::new();
        for (path, values) in self.plan.equalities.clone() {
            let Some(column) = self.kind.column_of(&path) else { continue };
            let lead = match column.arity {
                Arity::Many => Some(Lead::Many),
                Arity::One => index_on(self.kind, &[column.name]).map(Lead::Index),
            };
            let facet = self
                .kind
                .facets
                .iter()
                .find(|it| path.is_dotted(it.path) && matches!(it.counts, Counts::Values));
            let share = match facet {
                Some(facet) => {
                    let mut sum = 0;
                    for value in values {
                        let sql =
                            "SELECT n FROM facet WHERE kind = ?1 AND facet = ?2 AND class = 0 AND value = ?3";
                        let at = [self.kind.name.into(), facet.name.into(), Cell::Text(value)];
                        sum += view.session.first(sql, &at, |row| row.int(0))?.unwrap_or(0);
                    }
                    sum as f64 / n_all
                }
                None if lead.is_some() => SHARE_OF_INDEXED,
                None => SHARE_OF_VAGUE,
            };
            list.push((share, lead));
        }
        Ok(list)
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

/// Milliseconds in a day.
const DAY_MS: i64 = 86_400_000;

/// Name of a declared index that begins with these columns.
fn index_on(kind: &Kind, columns: &[&str]) -> Option<String> {
    kind.indexes
        .iter()
        .find(|index| index.columns.starts_with(columns) && index.is_over_all())
        .map(|index| crate::schema::index_name(kind, index))
}

/// The sort, ties in insertion order in the direction of the last column.
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

/// Collects the paths of a condition; false when it cannot be decided on single values.
fn collect_paths(expr: &Expr, into: &mut Vec<Path>) -> bool {
    match expr {
        Expr::All | Expr::Nothing => true,
        Expr::And(list) | Expr::Or(list) => list.iter().all(|it| collect_paths(it, into)),
        Expr::Not(it) => collect_paths(it, into),
        // Without ends, `null` satisfies a range as well; a column does not tell it from nothing.
        Expr::Range(_, End::Open, End::Open) => false,
        Expr::Range(path, ..) | Expr::Prefix(path, _) | Expr::Regex(path, _) => {
            into.push(path.clone());
            true
        }
        _ => false,
    }
}

/// Puts a column's value where its path says.
fn place(body: &mut Json, dotted: &str, cell: Cell, ty: Type) {
    let value = match (cell, ty) {
        (Cell::Int(it), Type::Boolean) => Json::from(it != 0),
        (Cell::Int(ms), Type::Instant) => Json::from(instant_text(ms)),
        (Cell::Int(number), _) => Json::from(number),
        (Cell::Real(number), _) => Json::from(number),
        (Cell::Text(text), _) => Json::from(text),
        _ => return,
    };
    let mut at = body;
    let mut steps = dotted.split('.').peekable();
    while let Some(step) = steps.next() {
        let Json::Object(map) = at else { return };
        if steps.peek().is_none() {
            map.insert(step.to_owned(), value);
            return;
        }
        at = map.entry(step.to_owned()).or_insert_with(|| Json::Object(Map::new()));
    }
}

fn instant_text(ms: i64) -> String {
    let day = day_text(ms).unwrap_or_default();
    let rest = ms.rem_euclid(DAY_MS);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    format!("{day}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1_000)
}

fn parse(row: &Row<'_, '_>, column: usize) -> Result<Json> {
    serde_json::from_slice(&row.bytes(column)?)
        .map_err(|error| StoreError::Damaged(format!("a body is not JSON: {error}")))
}
