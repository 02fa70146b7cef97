//! The rows of a search for authorities: one for each heading of an authority; paging is by row (mod-search).
//!
//! A condition without words is answered from the list of headings: only the authorities of the page are read. Others
//! first select the authorities that may have a matching row, which are read.

use std::ops::ControlFlow;

use pinakes_store::{Direction, Expr, Kind, Order, Path, Query, View, matches};
use serde_json::Value;

use super::{browse, refusals};
use crate::authorities::authority::AUTHORITIES;
use crate::authorities::headings;
use crate::platform::cql::{self, ALL_RECORDS, Clause, Cql, Names, Node, Relation};
use crate::platform::error::FolioError;

/// The meaning of names in searches for authorities, whose conditions apply to rows.
const ROW_NAMES: Names = Names {
    aliases: &[
        ("lccn", "identifiers"),
        ("canceledLccn", "identifiers"),
        ("identifiers.all", "identifiers"),
        ("authoritySourceFileId", "sourceFileId"),
    ],
    elements: &[("identifiers", "value"), ("notes", "note")],
    whole: &["naturalId", "authRefType", "headingType", "source"],
    anywhere: &["headingRef", "naturalId", "identifiers"],
    fields: &[],
};

/// A kind for the rows of authorities, which are not stored records.
static ROW: Kind = Kind { id_path: Some("id"), ..Kind::named("folio_authority_row") };

/// Fields of rows that authorities do not have.
const OF_ROWS: [&str; 4] = ["authRefType", "headingType", "isTitleHeadingRef", "shared"];

/// Fields of rows by which conditions select many rows at once.
const GROUPED_BY: [&str; 6] =
    ["authRefType", "headingType", "isTitleHeadingRef", "shared", "sourceFileId", "authoritySourceFileId"];

/// Fields that searches may name, beside those with headings; or the first parts of their names.
const KNOWN: [&str; 22] = [
    "cql",
    "keyword",
    "id",
    "tenantId",
    "shared",
    "headingRef",
    "authRefType",
    "headingType",
    "isTitleHeadingRef",
    "sourceFileId",
    "authoritySourceFileId",
    "naturalId",
    "subjectHeadings",
    "source",
    "lccn",
    "canceledLccn",
    "identifiers",
    "notes",
    "metadata",
    "createdDate",
    "updatedDate",
    "numberOfTitles",
];

/// A page of rows, and the number of all.
type Found = (Vec<Value>, u64);

/// Returns the rows in a window of a search, and their total number.
pub(super) fn found(view: &mut View<'_>, cql: &Cql, skip: u64, limit: u64) -> Result<Found, FolioError> {
    let condition = &cql.condition;
    require_known(condition)?;
    let fits = cql::meaning(condition, &ROW, &ROW_NAMES, &mut |_| Ok::<_, FolioError>(None))?;
    let order = cql::order(cql, &ROW_NAMES);
    let is_by_group = is_about(condition, &GROUPED_BY);
    let is_by_entry = is_by_group
        || (is_about(condition, &browse::HEADING_FIELDS) && matches!(candidates(condition)?, Expr::All));
    let (mut rows, n_rows) = if is_by_entry && is_listed(&order) {
        let text = if is_everything(condition) { String::new() } else { format!("{condition:?}") };
        let listed = Listed { fits, text, is_by_group };
        if order.is_empty() {
            let n_rows = listed.rows(view, 0, 0)?.1;
            let rows = if n_rows <= skip {
                Vec::new()
            } else {
                first_rows(view, condition, &listed.fits, skip, limit)?
            };
            (rows, n_rows)
        } else {
            listed.sorted(view, &order, skip, limit)?
        }
    } else {
        of_records(view, condition, &fits, &order, skip, limit)?
    };
    with_titles(view, &mut rows)?;
    Ok((rows, n_rows))
}

/// Refuses a field that authorities do not have.
fn require_known(node: &Node) -> Result<(), FolioError> {
    match node {
        Node::And(a, b) | Node::Or(a, b) | Node::Not(a, b) => require_known(a).and(require_known(b)),
        Node::Negation(it) => require_known(it),
        Node::Clause(clause) => {
            let first = clause.index.split('.').next().unwrap_or_default();
            let is_known = KNOWN.iter().any(|it| it.eq_ignore_ascii_case(first))
                || headings::fields().any(|it| it.eq_ignore_ascii_case(first));
            if is_known { Ok(()) } else { Err(refusals::no_such_field(&clause.index)) }
        }
    }
}

/// Checks whether an order can be read from the list of headings.
fn is_listed(order: &[Order]) -> bool {
    match order {
        [] => true,
        [last] if last.path.is_dotted("headingRef") => true,
        [first, rest @ ..] => grouped(&first.path).is_some() && is_listed(rest),
    }
}

/// Returns the values of a field by which rows can be grouped.
fn grouped(path: &Path) -> Option<Vec<&'static str>> {
    if path.is_dotted("headingType") {
        Some(headings::by_type().into_keys().collect())
    } else if path.is_dotted("authRefType") {
        Some(headings::by_relation().into_iter().map(|it| it.0).collect())
    } else {
        None
    }
}

/// Rows that satisfy a condition on the entries of the list of headings.
struct Listed {
    fits: Expr,
    /// Identifies the condition; empty for all rows.
    text: String,
    /// Whether the condition is about [`GROUPED_BY`] alone.
    is_by_group: bool,
}

impl Listed {
    /// Returns the rows in a window, by heading.
    fn rows(&self, view: &mut View<'_>, skip: u64, limit: u64) -> Result<Found, FolioError> {
        browse::headings(view, &self.fits, &self.text, self.is_by_group, (skip, limit))
    }

    /// Returns those that have a value, too.
    fn with(&self, path: &Path, value: &str) -> Self {
        let has_it = Expr::Is(path.clone(), value.into());
        let text = format!("{} and {path:?} {value}", self.text);
        Self { fits: Expr::And(vec![self.fits.clone(), has_it]), text, ..*self }
    }

    fn sorted(
        &self,
        view: &mut View<'_>,
        order: &[Order],
        skip: u64,
        limit: u64,
    ) -> Result<Found, FolioError> {
        let Some((first, rest)) = order.split_first() else { return self.rows(view, skip, limit) };
        let is_descending = first.direction == Direction::Descending;
        let Some(mut values) = grouped(&first.path) else {
            if !is_descending {
                return self.rows(view, skip, limit);
            }
            // The list is read forwards: the window is counted from its end.
            let n_rows = self.rows(view, 0, 0)?.1;
            let end = n_rows.saturating_sub(skip);
            let begin = end.saturating_sub(limit);
            let mut rows = if begin == end { Vec::new() } else { self.rows(view, begin, end - begin)?.0 };
            rows.reverse();
            return Ok((rows, n_rows));
        };
        values.sort_by_key(|it| pinakes_store::fold(it));
        if is_descending {
            values.reverse();
        }
        let (mut rows, mut n_passed) = (Vec::new(), 0);
        for value in values {
            let group = self.with(&first.path, value);
            let n_left = limit - rows.len() as u64;
            let (found, n_rows) = match group.rows(view, 0, 0)?.1 {
                n_rows if n_left == 0 || n_passed + n_rows <= skip => (Vec::new(), n_rows),
                _ => group.sorted(view, rest, skip.saturating_sub(n_passed), n_left)?,
            };
            rows.extend(found);
            n_passed += n_rows;
        }
        Ok((rows, n_passed))
    }
}

/// Passes the rows of the authorities that may have one which satisfies a condition to `visit`, those that do, until it
/// returns that it has enough.
fn each_row(
    view: &mut View<'_>,
    condition: &Node,
    fits: &Expr,
    mut visit: impl FnMut(Value) -> ControlFlow<()>,
) -> Result<(), FolioError> {
    view.for_each_body(&AUTHORITIES.kind, &Query::filter(candidates(condition)?), |_, authority| {
        for row in headings::rows(&authority) {
            let shown = headings::shown(&authority, &row);
            if matches(fits, &shown) {
                visit(shown)?;
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

/// Returns a window of the rows that satisfy a condition, in the order of the records; stops reading once it is full.
fn first_rows(
    view: &mut View<'_>,
    condition: &Node,
    fits: &Expr,
    skip: u64,
    limit: u64,
) -> Result<Vec<Value>, FolioError> {
    let (mut rows, mut n_rows) = (Vec::new(), 0_u64);
    if limit == 0 {
        return Ok(rows);
    }
    each_row(view, condition, fits, |row| {
        if skip <= n_rows {
            rows.push(row);
        }
        n_rows += 1;
        if limit <= rows.len() as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(rows)
}

/// Returns a window of the rows that satisfy a condition, and their total number.
fn of_records(
    view: &mut View<'_>,
    condition: &Node,
    fits: &Expr,
    order: &[Order],
    skip: u64,
    limit: u64,
) -> Result<Found, FolioError> {
    let (mut rows, mut n_rows) = (Vec::new(), 0_u64);
    let end = skip.saturating_add(limit);
    each_row(view, condition, fits, |row| {
        if !order.is_empty() || (skip <= n_rows && n_rows < end) {
            rows.push(row);
        }
        n_rows += 1;
        ControlFlow::Continue(())
    })?;
    if !order.is_empty() {
        sort(&mut rows, order);
        let bound = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        rows = rows.into_iter().skip(bound(skip)).take(bound(limit)).collect();
    }
    Ok((rows, n_rows))
}

fn is_everything(node: &Node) -> bool {
    matches!(node, Node::Clause(clause) if clause.index.eq_ignore_ascii_case(ALL_RECORDS))
}

/// Checks whether a condition refers to some fields only.
fn is_about(node: &Node, fields: &[&str]) -> bool {
    node.all_clauses(&|clause| {
        let is = |name: &str| name.eq_ignore_ascii_case(&clause.index);
        clause.modifiers.is_empty() && (is(ALL_RECORDS) || fields.iter().any(|it| is(it)))
    })
}

/// Adds the number of titles that use each authorised heading.
fn with_titles(view: &mut View<'_>, rows: &mut [Value]) -> Result<(), FolioError> {
    for row in rows {
        if row["authRefType"] == "Authorized" {
            let id = row["id"].as_str().unwrap_or_default().to_owned();
            row["numberOfTitles"] = crate::links::linked::n_links(view, &id)?.into();
        }
    }
    Ok(())
}

/// Returns a condition that every authority with a matching row satisfies. A negated clause cannot be used: one row
/// that does not match says nothing about the authority's other rows.
fn candidates(node: &Node) -> Result<Expr, FolioError> {
    Ok(match node {
        Node::And(a, b) => candidates(a)?.and(candidates(b)?),
        Node::Or(a, b) => match (candidates(a)?, candidates(b)?) {
            (Expr::All, _) | (_, Expr::All) => Expr::All,
            (a, b) => Expr::Or(vec![a, b]),
        },
        Node::Not(a, _) => candidates(a)?,
        Node::Negation(_) => Expr::All,
        Node::Clause(clause) if clause.relation == Relation::Different => Expr::All,
        Node::Clause(clause) if clause.index.eq_ignore_ascii_case("headingRef") => {
            let each = headings::fields().map(|index| of_record(&Clause { index, ..clause.clone() }));
            Expr::Or(each.collect::<Result<_, _>>()?)
        }
        Node::Clause(clause) if OF_ROWS.iter().any(|it| it.eq_ignore_ascii_case(&clause.index)) => {
            with_heading(clause).unwrap_or(Expr::All)
        }
        Node::Clause(clause) => of_record(clause)?,
    })
}

/// Returns the condition that an authority has a heading of a type or relation; `None` for other clauses.
fn with_heading(clause: &Clause) -> Option<Expr> {
    let literal = clause.term.literal().filter(|it| !it.is_empty())?;
    if !matches!(clause.relation, Relation::Words | Relation::Exact) {
        return None;
    }
    let has = |list: Vec<(&'static str, Expr)>| {
        list.into_iter().find(|it| it.0.eq_ignore_ascii_case(&literal)).map(|it| it.1)
    };
    if clause.index.eq_ignore_ascii_case("headingType") {
        has(headings::by_type().into_iter().collect())
    } else if clause.index.eq_ignore_ascii_case("authRefType") {
        has(headings::by_relation())
    } else {
        None
    }
}

fn of_record(clause: &Clause) -> Result<Expr, FolioError> {
    let node = Node::Clause(clause.clone());
    cql::meaning(&node, &AUTHORITIES.kind, &AUTHORITIES.names, &mut |_| Ok::<_, FolioError>(None))
}

fn sort(rows: &mut [Value], order: &[Order]) {
    let key = |row: &Value, path: &Path| -> String {
        let found = path.as_steps().iter().try_fold(row, |at, step| at.get(step));
        found.map_or_else(String::new, |it| it.as_str().map_or_else(|| it.to_string(), pinakes_store::fold))
    };
    rows.sort_by(|a, b| {
        order.iter().fold(std::cmp::Ordering::Equal, |so_far, it| {
            so_far.then_with(|| {
                let by_key = key(a, &it.path).cmp(&key(b, &it.path));
                if it.direction == Direction::Descending { by_key.reverse() } else { by_key }
            })
        })
    });
}
