//! Values of columns of the records found, read from narrow rows.

use std::ops::ControlFlow;

use super::Scan;
use super::facets::facet_text;
use super::lead::Road;
use crate::cell::Cell;
use crate::columns::one_columns;
use crate::document::Taken;
use crate::{Arity, Counts, Kind, Query, Result, StoreError, Type, View};

/// Narrow rows read in one step where their keys are known.
const STEP_ROWS: usize = 1_000;

/// Something that is read of each record.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Id,
    /// A column, by its place among those with one value.
    Column(usize, &'static str, Type),
}

impl Wanted {
    fn of(kind: &'static Kind, name: &str) -> Result<Self> {
        if name == "id" {
            return Ok(Self::Id);
        }
        let column = one_columns(kind).enumerate().find(|it| it.1.name == name);
        let column = column.filter(|it| it.1.arity == Arity::One && it.1.ty != Type::Instant);
        column.map(|(place, it)| Self::Column(place, it.name, it.ty)).ok_or_else(|| {
            StoreError::Query(format!(
                "{name:?} is no column of {} with one value that has a text",
                kind.name
            ))
        })
    }

    fn text(self, cell: Cell) -> Option<String> {
        match self {
            Self::Id => match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            },
            Self::Column(_, _, ty) => facet_text(cell, ty, Counts::Values),
        }
    }
}

impl View<'_> {
    /// Passes values of each record that satisfies a condition to `visit`, in the order of `names`: `id`, or the name of
    /// a column with one value other than a point in time. A value is passed as a facet shows it; one of
    /// [`Type::Folded`] is folded. The records come in any order. No body is read unless the condition needs it.
    ///
    /// Errors: there is no such column.
    pub fn for_each_values(
        &mut self,
        kind: &'static Kind,
        filter: &crate::Expr,
        names: &[&str],
        mut visit: impl FnMut(Vec<Option<String>>),
    ) -> Result<()> {
        let wanted = names.iter().map(|it| Wanted::of(kind, it)).collect::<Result<Vec<_>>>()?;
        let query = Query::filter(filter.clone());
        let scan = Scan::of(self, kind, &query)?;
        if scan.has_columns(&wanted) {
            return scan.values(self, &wanted, &mut visit);
        }
        // A rebuild has not made all of the columns yet.
        self.try_for_each(kind, &query, |record| {
            let mut cells = Taken::from(kind, &record.json()?).cells;
            visit(
                wanted
                    .iter()
                    .map(|it| match it {
                        Wanted::Id => Some(record.id.clone()),
                        Wanted::Column(place, ..) => {
                            it.text(std::mem::replace(&mut cells[*place], Cell::Null))
                        }
                    })
                    .collect(),
            );
            Ok(())
        })
    }
}

impl Scan {
    fn has_columns(&self, wanted: &[Wanted]) -> bool {
        wanted.iter().all(|it| match it {
            Wanted::Id => true,
            Wanted::Column(_, name, _) => self.kind.column_named(name).is_some(),
        })
    }

    fn values(
        mut self,
        view: &mut View<'_>,
        wanted: &[Wanted],
        visit: &mut impl FnMut(Vec<Option<String>>),
    ) -> Result<()> {
        if self.plan.is_empty {
            return Ok(());
        }
        let names = wanted.iter().map(|it| match it {
            Wanted::Id => "r.id".to_owned(),
            Wanted::Column(_, name, _) => format!("r.\"{name}\""),
        });
        let selected = names.collect::<Vec<_>>().join(", ");
        let from = format!("SELECT {selected} FROM \"k_{}\" r", self.kind.name);
        if self.plan.residual.is_none() && self.road(view, &[])? == Road::Engine {
            let condition = self.where_sql(view);
            self.note("values", || "columns of the rows that the engine finds".into());
            return passed(view, &format!("{from}{condition}"), &self.plan.values, wanted, visit);
        }
        let sql = format!("{from} WHERE {}", view.session.flavour().in_set("r.key", 1));
        for step in self.keys(view)?.chunks(STEP_ROWS) {
            passed(view, &sql, &[Cell::Ints(step.to_vec())], wanted, visit)?;
            view.check_pace()?;
        }
        Ok(())
    }
}

/// Passes the values of each row of a statement to `visit`.
fn passed(
    view: &mut View<'_>,
    sql: &str,
    values: &[Cell],
    wanted: &[Wanted],
    visit: &mut impl FnMut(Vec<Option<String>>),
) -> Result<()> {
    view.session.rows(sql, values, |row| {
        let texts = wanted.iter().enumerate().map(|(at, it)| Ok(it.text(row.cell(at)?)));
        visit(texts.collect::<Result<_>>()?);
        Ok(ControlFlow::Continue(()))
    })
}
