//! Whether a tenant is sound: indexes, counts and references against the bodies.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::counters::{ALL_CLASSES, RECORDS};
use crate::document::Taken;
use crate::plan::many_table;
use crate::session::Cell;
use crate::{Arity, Kind, Result, View};

/// Findings listed per kind at most; more are counted.
const LISTED: usize = 20;

/// What does not agree; empty when the tenant is sound.
pub(crate) fn findings(view: &mut View<'_>) -> Result<Vec<String>> {
    let mut list = Vec::new();
    let engine = view.session.all("PRAGMA integrity_check", &[], |row| row.text(0))?;
    list.extend(engine.into_iter().filter(|it| it != "ok").map(|it| format!("engine: {it}")));
    for kind in view.shared.kinds {
        let mut found = Findings::of(kind);
        check_records(view, kind, &mut found)?;
        check_orphans(view, kind, &mut found)?;
        list.extend(found.into_lines());
    }
    Ok(list)
}

struct Findings {
    kind: &'static Kind,
    lines: Vec<String>,
    n_more: usize,
}

impl Findings {
    fn of(kind: &'static Kind) -> Self {
        Self { kind, lines: Vec::new(), n_more: 0 }
    }

    fn add(&mut self, text: String) {
        if self.lines.len() < LISTED { self.lines.push(text) } else { self.n_more += 1 }
    }

    fn into_lines(self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.lines.into_iter().map(|it| format!("{}: {it}", self.kind.name)).collect();
        if 0 < self.n_more {
            lines.push(format!("{}: {} more", self.kind.name, self.n_more));
        }
        lines
    }
}

/// Every row against its body, and the counts against all bodies.
fn check_records(view: &mut View<'_>, kind: &'static Kind, found: &mut Findings) -> Result<()> {
    let mut counts: HashMap<(String, i64, String), i64> = HashMap::new();
    let (mut n_many, mut n_identifiers, mut n_links) = (HashMap::<usize, i64>::new(), 0, 0);
    let columns: Vec<_> = kind.columns.iter().filter(|it| it.arity == Arity::One).collect();
    let selected: String = columns.iter().map(|it| format!(", r.\"{}\"", it.name)).collect();
    let sql = format!(
        "SELECT r.id, r.class, b.body{selected} FROM \"k_{0}\" r LEFT JOIN \"b_{0}\" b ON b.key = r.key ORDER BY r.key",
        kind.name
    );
    view.session.rows(&sql, &[], |row| {
        let (id, class) = (row.text(0)?, row.int(1)?);
        let body = match row.cell(2)? {
            Cell::Blob(bytes) => serde_json::from_slice(&bytes),
            _ => {
                found.add(format!("{id:?} has no body"));
                return Ok(ControlFlow::Continue(()));
            }
        };
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                found.add(format!("{id:?}: body is not JSON: {error}"));
                return Ok(ControlFlow::Continue(()));
            }
        };
        let taken = Taken::from(kind, &body);
        if taken.class.0 != class {
            found.add(format!("{id:?}: class is {class}, the body says {}", taken.class.0));
        }
        for (index, (column, cell)) in columns.iter().zip(&taken.cells).enumerate() {
            let stored = row.cell(index + 3)?;
            if !same(&stored, cell) {
                found.add(format!("{id:?}: column {} is {stored:?}, the body says {cell:?}", column.name));
            }
        }
        n_identifiers += taken.identifiers.len() as i64;
        n_links += taken.links.len() as i64;
        for (column, _) in &taken.many {
            *n_many.entry(*column).or_default() += 1;
        }
        for class in [ALL_CLASSES, taken.class.0] {
            *counts.entry((RECORDS.to_owned(), class, String::new())).or_default() += 1;
            for (facet, value) in &taken.counted {
                let facet = kind.facets[*facet].name.to_owned();
                *counts.entry((facet, class, value.clone())).or_default() += 1;
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    check_counts(view, kind, counts, found)?;
    for (index, column) in kind.columns.iter().enumerate().filter(|(_, it)| it.arity == Arity::Many) {
        let table = many_table(kind, column);
        expect(
            view,
            &format!("SELECT count(*) FROM {table}"),
            n_many.get(&index).copied().unwrap_or(0),
            &table,
            found,
        )?;
    }
    let name = kind.name;
    expect(
        view,
        &format!("SELECT count(*) FROM identifier WHERE kind = '{name}'"),
        n_identifiers,
        "identifiers",
        found,
    )?;
    expect(view, &format!("SELECT count(*) FROM link WHERE kind = '{name}'"), n_links, "links", found)
}

fn check_counts(
    view: &mut View<'_>,
    kind: &Kind,
    mut counts: HashMap<(String, i64, String), i64>,
    found: &mut Findings,
) -> Result<()> {
    let stored = view.session.all(
        "SELECT facet, class, value, n FROM facet WHERE kind = ?1",
        &[kind.name.into()],
        |row| Ok(((row.text(0)?, row.int(1)?, row.text(2)?), row.int(3)?)),
    )?;
    for (at, n) in stored {
        let true_n = counts.remove(&at).unwrap_or(0);
        if n != true_n {
            found.add(format!(
                "count of {:?} {:?} in class {} is {n}, the bodies say {true_n}",
                at.0, at.2, at.1
            ));
        }
    }
    for ((facet, class, value), n) in counts {
        found.add(format!("count of {facet:?} {value:?} in class {class} is missing, the bodies say {n}"));
    }
    Ok(())
}

/// Rows that belong to nothing.
fn check_orphans(view: &mut View<'_>, kind: &Kind, found: &mut Findings) -> Result<()> {
    let name = kind.name;
    let bodies = format!("SELECT count(*) FROM \"b_{name}\" WHERE key NOT IN (SELECT key FROM \"k_{name}\")");
    expect(view, &bodies, 0, "bodies without a record", found)?;
    if kind.members.is_none() {
        return Ok(());
    }
    let lists = format!(
        "SELECT count(DISTINCT list) FROM \"m_{name}\" WHERE list NOT IN (SELECT list FROM \"k_{name}\" WHERE list IS NOT NULL) \
         AND list NOT IN (SELECT list FROM staging WHERE kind = '{name}')"
    );
    expect(view, &lists, 0, "lists without a record", found)?;
    let members = format!(
        "SELECT count(*) FROM \"k_{name}\" r WHERE r.list IS NOT NULL \
         AND r.n_members <> (SELECT coalesce(sum(m.n), 0) FROM \"m_{name}\" m WHERE m.list = r.list)"
    );
    expect(view, &members, 0, "records whose number of members is wrong", found)
}

fn expect(view: &mut View<'_>, sql: &str, expected: i64, what: &str, found: &mut Findings) -> Result<()> {
    let n = view.session.first(sql, &[], |row| row.int(0))?.unwrap_or(0);
    if n != expected {
        found.add(format!("{what}: {n} stored, {expected} expected"));
    }
    Ok(())
}

/// Whether a stored cell is the one taken from the body; an engine may keep 1.0 as 1.
fn same(stored: &Cell, taken: &Cell) -> bool {
    match (stored, taken) {
        (Cell::Int(a), Cell::Real(b)) | (Cell::Real(b), Cell::Int(a)) => (*a as f64).total_cmp(b).is_eq(),
        (a, b) => a == b,
    }
}
