//! Conditions on paths with a step that is a number: a position in a list, or the name of a member. The index knows the
//! names and how long lists are, so it decides where no list is long enough to have the position. For the others it
//! tells which have such a value anywhere in the list, and bodies decide.

use super::{Bounds, Segment};
use crate::index::set::Set;
use crate::index::terms::{self, Tag};
use crate::{Expr, Path, Result, Search, Value};

/// Maximum number of such steps: each doubles the number of paths.
const POSITIONS: usize = 2;

impl Segment<'_> {
    /// Evaluates a condition on a path that the index does not cover.
    pub(super) fn beside_terms(&self, expr: &Expr, path: &Path, within: &Set) -> Result<Bounds> {
        let steps = path.as_steps();
        // The body itself is no list.
        let places: Vec<usize> =
            (1..steps.len()).filter(|at| Path::position(&steps[*at]).is_some()).collect();
        let is_covered = steps.first().is_some_and(|member| terms::is_member_indexed(self.kind, member));
        let is_told = self.kind.search != Search::Values || terms::is_of_values(expr);
        if !is_covered || !is_told || POSITIONS < places.len() {
            return Ok(Bounds::some_of(Set::full(self.max_doc), self.max_doc));
        }
        let named = self.of_terms(expr, within)?;
        let reached = self.with_positions(steps, &places)?;
        if reached.is_empty() {
            return Ok(named);
        }
        let Some(may) = self.at_positions(expr, steps, &places, within)? else {
            let high = named.high().clone().or(&reached);
            return Ok(Bounds { low: named.low.without(&reached), high: Some(high) });
        };
        let high = named.high().clone().or(&may.and(&reached));
        Ok(Bounds { low: named.low, high: Some(high) })
    }

    /// Returns the documents with a list that is long enough to have one of the positions.
    fn with_positions(&self, steps: &[String], places: &[usize]) -> Result<Set> {
        let mut found = Set::empty(self.max_doc);
        for (n, place) in places.iter().enumerate() {
            let Some(position) = Path::position(&steps[*place]) else { continue };
            let longer = (position as u64).saturating_add(1).to_be_bytes();
            for names in 0..1_usize << n {
                let list = kept(&steps[..*place], &places[..n], names);
                found.add(&self.between(&terms::path_bytes(list.as_steps()), Tag::Length, &longer, None)?);
                // The index does not tell how long lists in lists are.
                found.add(&self.with_nested(&list)?);
            }
        }
        Ok(found)
    }

    /// Returns the documents that have such a value anywhere in a list in place of a position; `None` if the condition
    /// also holds for absent values.
    fn at_positions(
        &self,
        expr: &Expr,
        steps: &[String],
        places: &[usize],
        within: &Set,
    ) -> Result<Option<Set>> {
        let mut may = Set::empty(self.max_doc);
        let all_names = (1_usize << places.len()) - 1;
        for names in 0..all_names {
            let path = kept(steps, places, names);
            // The index does not hold the elements of lists in lists.
            may.add(&self.with_nested(&path)?);
            let Some(expr) = moved(expr, path) else { return Ok(None) };
            may.add(self.of_terms(&expr, within)?.high());
        }
        Ok(Some(may))
    }

    /// Returns the documents with a list in a list at the path or on the way to it.
    fn with_nested(&self, path: &Path) -> Result<Set> {
        let mut found = Set::empty(self.max_doc);
        for n in 1..=path.as_steps().len() {
            found.add(&self.with(&terms::path_bytes(&path.as_steps()[..n]), Tag::Nested, &[])?);
        }
        Ok(found)
    }
}

/// Returns the path without the steps that are positions: those of `places` whose bit in `names` is not set.
fn kept(steps: &[String], places: &[usize], names: usize) -> Path {
    let is_kept = |at: &usize| places.iter().position(|it| it == at).is_none_or(|n| names >> n & 1 == 1);
    Path::steps((0..steps.len()).filter(is_kept).map(|at| steps[at].clone()))
}

/// Returns the same condition on another path; `None` if it also holds for absent values.
fn moved(expr: &Expr, path: Path) -> Option<Expr> {
    Some(match expr {
        Expr::Is(_, value) if *value != Value::Null => Expr::Is(path, value.clone()),
        Expr::In(_, values) if !values.contains(&Value::Null) => Expr::In(path, values.clone()),
        Expr::Range(_, low, high) => Expr::Range(path, low.clone(), high.clone()),
        Expr::Exists(_) => Expr::Exists(path),
        Expr::Prefix(_, prefix) => Expr::Prefix(path, prefix.clone()),
        Expr::Regex(_, pattern) => Expr::Regex(path, pattern.clone()),
        Expr::Word(_, word) => Expr::Word(path, word.clone()),
        Expr::Size(_, n) => Expr::Size(path, *n),
        Expr::Element(_, inner) => Expr::Element(path, inner.clone()),
        _ => return None,
    })
}
