//! Checks that a tenant is consistent: indexes, counts and references against the bodies.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::cell::Cell;
use crate::columns::{many_table, one_columns};
use crate::counters::{ALL_CLASSES, CHANGES, RECORDS, is_behind};
use crate::document::Taken;
use crate::pending_links;
use crate::row::Row;
use crate::session::Flavour;
use crate::whole_lists;
use crate::{Arity, Column, Kind, Result, View, index};

/// Maximum number of findings listed per kind; further ones are only counted.
const LISTED: usize = 20;

/// Returns all inconsistencies; empty when the tenant is sound.
pub(crate) fn findings(view: &mut View<'_>) -> Result<Vec<String>> {
    let mut list = Vec::new();
    let engine = match view.session.flavour() {
        Flavour::Sqlite => view.session.all("PRAGMA integrity_check", &[], |row| row.text(0))?,
        Flavour::Postgres => Vec::new(),
    };
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

/// Records compared in one step.
const STEP_RECORDS: usize = 500;

/// What the bodies say about a kind as a whole.
#[derive(Default)]
struct Totals {
    counts: HashMap<(String, i64, String), i64>,
    n_many: HashMap<usize, i64>,
    n_identifiers: i64,
    n_links: i64,
    classes: HashSet<(i64, Arc<str>)>,
}

/// A narrow row and what its body says.
struct Compared {
    key: i64,
    id: String,
    taken: Taken,
}

/// Checks every row against its body, and the references and counts against all bodies.
fn check_records(view: &mut View<'_>, kind: &'static Kind, found: &mut Findings) -> Result<()> {
    let mut totals = Totals::default();
    let mut columns: Vec<_> = one_columns(kind).collect();
    let flavour = view.session.flavour();
    if flavour == Flavour::Postgres {
        columns.extend(kind.columns.iter().filter(|it| it.arity == Arity::Many));
    }
    let selected: String = columns.iter().map(|it| format!(", r.\"{}\"", it.name)).collect();
    let sql = format!(
        "SELECT r.key, r.id, r.class, {}{selected} FROM {} WHERE ?1 < r.key ORDER BY r.key LIMIT {STEP_RECORDS}",
        flavour.body(),
        // A missing body is a finding, so the row must not be skipped.
        flavour.rows_with_bodies(kind.name).replace(" JOIN ", " LEFT JOIN ")
    );
    let mut last = i64::MIN;
    loop {
        let (mut step, mut n_rows) = (Vec::new(), 0);
        view.session.rows(&sql, &[last.into()], |row| {
            n_rows += 1;
            last = row.int(0)?;
            step.extend(compare_row(kind, &columns, &row, found)?);
            Ok(ControlFlow::Continue(()))
        })?;
        for it in &step {
            check_references(view, kind, it, found)?;
            totals.add(kind, &it.taken);
        }
        if n_rows < STEP_RECORDS {
            break;
        }
    }
    check_totals(view, kind, totals, found)
}

/// Compares one row with its body; `None` when there is no body.
fn compare_row(
    kind: &'static Kind,
    columns: &[&Column],
    row: &Row<'_, '_>,
    found: &mut Findings,
) -> Result<Option<Compared>> {
    let (key, id, class) = (row.int(0)?, row.text(1)?, row.int(2)?);
    let Cell::Blob(bytes) = row.cell(3)? else {
        found.add(format!("{id:?} has no body"));
        return Ok(None);
    };
    let body = match serde_json::from_slice(&bytes) {
        Ok(body) => body,
        Err(error) => {
            found.add(format!("{id:?}: body is not JSON: {error}"));
            return Ok(None);
        }
    };
    let taken = Taken::from(kind, &body);
    if taken.class.0 != class {
        found.add(format!("{id:?}: class is {class}, the body says {}", taken.class.0));
    }
    let lists =
        kind.columns.iter().enumerate().filter(|(_, it)| it.arity == Arity::Many).map(|(index, _)| {
            Cell::Set(taken.many.iter().filter(|it| it.0 == index).map(|it| it.1.clone()).collect())
        });
    let cells = taken.cells.iter().cloned().chain(lists);
    for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let stored = row.cell(index + 4)?;
        if !same(&stored, &cell) {
            found.add(format!("{id:?}: column {} is {stored:?}, the body says {cell:?}", column.name));
        }
    }
    Ok(Some(Compared { key, id, taken }))
}

/// Checks that each reference of a record is stored; the totals show whether there are others.
fn check_references(view: &mut View<'_>, kind: &Kind, it: &Compared, found: &mut Findings) -> Result<()> {
    let Compared { key, id, taken } = it;
    let links = pending_links::source(&mut view.session)?;
    let flavour = view.session.flavour();
    let mut look = |sql: &str, values: &[Cell], what: String| -> Result<()> {
        if view.session.first(sql, values, |_| Ok(()))?.is_none() {
            found.add(format!("{id:?}: {what} is not stored"));
        }
        Ok(())
    };
    for (column, value) in taken.many.iter().filter(|_| flavour == Flavour::Sqlite) {
        let column = &kind.columns[*column];
        let sql = format!("SELECT 1 FROM {} WHERE value = ?1 AND key = ?2", many_table(kind, column));
        look(&sql, &[value.clone(), (*key).into()], format!("{} {value:?}", column.name))?;
    }
    for (scheme, value) in &taken.identifiers {
        let sql = "SELECT 1 FROM identifier WHERE scheme = ?1 AND value = ?2 AND kind = ?3 AND id = ?4";
        let at = [(*scheme).into(), value.as_str().into(), kind.name.into(), id.as_str().into()];
        look(sql, &at, format!("identifier {scheme} {value:?}"))?;
    }
    for (relation, to, target) in &taken.links {
        let sql = format!(
            "SELECT 1 FROM {links} WHERE to_kind = ?1 AND target = ?2 AND relation = ?3 AND kind = ?4 AND id = ?5"
        );
        let at =
            [(*to).into(), target.as_str().into(), (*relation).into(), kind.name.into(), id.as_str().into()];
        look(&sql, &at, format!("link {relation} to {to} {target:?}"))?;
    }
    Ok(())
}

impl Totals {
    fn add(&mut self, kind: &Kind, taken: &Taken) {
        self.n_identifiers += taken.identifiers.len() as i64;
        self.n_links += taken.links.len() as i64;
        for (column, _) in &taken.many {
            *self.n_many.entry(*column).or_default() += 1;
        }
        self.classes.insert((taken.class.0, taken.class_text.clone()));
        for class in [ALL_CLASSES, taken.class.0] {
            *self.counts.entry((RECORDS.to_owned(), class, String::new())).or_default() += 1;
            for (facet, values) in &taken.counted {
                let facet = kind.facets[*facet].name;
                for value in values.values() {
                    *self.counts.entry((facet.to_owned(), class, value.to_owned())).or_default() += 1;
                }
            }
        }
    }
}

fn check_totals(
    view: &mut View<'_>,
    kind: &'static Kind,
    totals: Totals,
    found: &mut Findings,
) -> Result<()> {
    check_counts(view, kind, totals.counts, found)?;
    let is_apart = view.session.flavour() == Flavour::Sqlite;
    for (index, column) in
        kind.columns.iter().enumerate().filter(|(_, it)| is_apart && it.arity == Arity::Many)
    {
        let table = many_table(kind, column);
        let n = totals.n_many.get(&index).copied().unwrap_or(0);
        expect(view, &format!("SELECT count(*) FROM {table}"), n, &table, found)?;
    }
    let name = kind.name;
    let identifiers = format!("SELECT count(*) FROM identifier WHERE kind = '{name}'");
    expect(view, &identifiers, totals.n_identifiers, "identifiers", found)?;
    let links = pending_links::source(&mut view.session)?;
    let links = format!("SELECT count(*) FROM {links} WHERE kind = '{name}'");
    expect(view, &links, totals.n_links, "links", found)?;
    for (class, text) in totals.classes {
        let sql = "SELECT fields FROM class WHERE kind = ?1 AND class = ?2";
        let stored = view.session.first(sql, &[name.into(), class.into()], |row| row.text(0))?;
        if stored.as_deref() != Some(&*text) {
            found.add(format!("class {class} is {stored:?}, the bodies say {text:?}"));
        }
    }
    index::check(view, kind).map(|lines| lines.into_iter().for_each(|it| found.add(it)))
}

fn check_counts(
    view: &mut View<'_>,
    kind: &Kind,
    mut counts: HashMap<(String, i64, String), i64>,
    found: &mut Findings,
) -> Result<()> {
    // While a bulk load keeps its counts in memory, only the number of records is checked.
    let is_behind = is_behind(&mut view.session, kind.name)?;
    counts.retain(|at, _| !is_behind || at.0 == RECORDS);
    let mut stored: HashMap<(String, i64, String), i64> = view
        .session
        .all(
            "SELECT facet, class, value, CAST(sum(n) AS bigint) FROM facet WHERE kind = ?1 AND facet <> ?2 \
         GROUP BY facet, class, value HAVING sum(n) <> 0",
            &[kind.name.into(), CHANGES.into()],
            |row| Ok(((row.text(0)?, row.int(1)?, row.text(2)?), row.int(3)?)),
        )?
        .into_iter()
        .collect();
    if view.session.flavour() == Flavour::Sqlite {
        for facet in kind.facets {
            for (class, values, n) in whole_lists::by_class(&mut view.session, kind, facet.name)? {
                for value in values {
                    for class in [ALL_CLASSES, class.0] {
                        *stored.entry((facet.name.to_owned(), class, value.clone())).or_default() += n;
                    }
                }
            }
        }
        stored.retain(|_, n| *n != 0);
    }
    for (at, n) in stored.into_iter().filter(|(at, _)| !is_behind || at.0 == RECORDS) {
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

/// Finds rows that belong to no record.
fn check_orphans(view: &mut View<'_>, kind: &Kind, found: &mut Findings) -> Result<()> {
    let name = kind.name;
    if view.session.flavour() == Flavour::Sqlite {
        let bodies =
            format!("SELECT count(*) FROM \"b_{name}\" WHERE key NOT IN (SELECT key FROM \"k_{name}\")");
        expect(view, &bodies, 0, "bodies without a record", found)?;
    }
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

/// Returns whether a stored cell equals the one extracted from the body; an engine may store 1.0 as 1.
fn same(stored: &Cell, taken: &Cell) -> bool {
    match (stored, taken) {
        (Cell::Int(a), Cell::Real(b)) | (Cell::Real(b), Cell::Int(a)) => (*a as f64).total_cmp(b).is_eq(),
        (a, b) => a == b,
    }
}
