//! Rows that the engine could not decide: each is looked at, as columns or as a whole body.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::lead::Lead;
use super::{DAY_MS, Scan};
use crate::cell::Cell;
use crate::document::day_text;
use crate::index::Decider;
use crate::session::Flavour;
use crate::{Arity, End, Expr, Path, Result, StoreError, Type, View, eval};

impl Scan {
    /// Calls `visit` with each row that satisfies the whole condition, found through `lead`, and with as much of it as
    /// decides that.
    pub(super) fn each_remaining(
        &mut self,
        view: &mut View<'_>,
        lead: &Lead,
        order: &str,
        mut visit: impl FnMut(i64, &Json) -> ControlFlow<()>,
    ) -> Result<()> {
        let residual = self.plan.residual.clone().unwrap_or_else(|| Arc::new(Expr::All));
        let mut paths = Vec::new();
        let columns = if collect_paths(&residual, &mut paths) { self.columns_for(&paths) } else { None };
        let Some(columns) = columns else { return self.each_body(view, lead, order, &[], visit) };
        let condition = self.led_where_sql(view, lead);
        let name = self.kind.name;
        let selected: String = columns.iter().map(|it| format!(", r.\"{}\"", it.0)).collect();
        let hint = lead.hint();
        let sql = format!("SELECT r.key{selected} FROM \"k_{name}\" r{hint}{condition}{order}");
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

    /// Calls `visit` with each row that satisfies the condition, and with what its body has at `paths`.
    pub(super) fn each_body(
        &mut self,
        view: &mut View<'_>,
        lead: &Lead,
        order: &str,
        paths: &[Path],
        mut visit: impl FnMut(i64, &Json) -> ControlFlow<()>,
    ) -> Result<()> {
        let residual = self.plan.residual.clone().unwrap_or_else(|| Arc::new(Expr::All));
        let condition = self.led_where_sql(view, lead);
        let name = self.kind.name;
        // A database decides text conditions by itself.
        let own = if view.session.flavour() == Flavour::Sqlite { &*residual } else { &Expr::All };
        let decider = Decider::of(self.kind, own);
        let parts = decider.parts(&residual).with(paths);
        let leaves = &self.plan.leaves;
        let decided: String = leaves.decided.iter().map(|sql| format!(", ({sql}) IS TRUE")).collect();
        let sql = format!(
            "SELECT r.key, {}{decided} FROM {}{condition}{order}",
            view.session.flavour().body(),
            view.session.flavour().led_rows_with_bodies(name, &lead.hint())
        );
        view.session.rows(&sql, &self.plan.values, |row| {
            let bytes = row.bytes(1)?;
            let body = parts.parse(&bytes).map_err(|error| damaged(&error))?;
            let held: Vec<bool> =
                (0..leaves.decided.len()).map(|index| row.flag(index + 2)).collect::<Result<_>>()?;
            let decide = |expr: &Expr| leaves.holds(expr, &held);
            Ok(if decider.holds_beside(&residual, &bytes, &body, &decide)? {
                visit(row.int(0)?, &body)
            } else {
                ControlFlow::Continue(())
            })
        })
    }

    /// Returns the columns that hold all of `paths`: (name, dotted path, type); `None` if one has no column.
    fn columns_for(&self, paths: &[Path]) -> Option<Vec<(&'static str, &'static str, Type)>> {
        let mut list = Vec::new();
        for path in paths {
            let held = if self.kind.is_id(path) {
                ("id", self.kind.id_path?, Type::Text)
            } else {
                let column = self.kind.column_of(path).filter(|it| it.arity == Arity::One)?;
                if matches!(column.ty, Type::Instant | Type::Folded) {
                    // The column holds the point in time or the folded text, not the text of the body.
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
}

/// Collects the paths of a condition; false when it cannot be decided on single values.
fn collect_paths(expr: &Expr, into: &mut Vec<Path>) -> bool {
    match expr {
        Expr::All | Expr::Nothing => true,
        Expr::And(list) | Expr::Or(list) => list.iter().all(|it| collect_paths(it, into)),
        Expr::Not(it) => collect_paths(it, into),
        // A range without ends also matches `null`, which a column cannot tell from an absent value.
        Expr::Range(_, End::Open, End::Open) => false,
        Expr::Range(path, ..) | Expr::Prefix(path, _) | Expr::Regex(path, _) | Expr::Word(path, _) => {
            into.push(path.clone());
            true
        }
        _ => false,
    }
}

/// Puts a column's value into the body at its path.
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

fn damaged(error: &serde_json::Error) -> StoreError {
    StoreError::Damaged(format!("a body is not JSON: {error}"))
}
