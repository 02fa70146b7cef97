//! Conditions on paths with a step that is a number: a position in a list, or the name of a member. The index knows no
//! positions; it tells which documents have such a value anywhere in the list, and bodies decide.

use super::{Bounds, Segment};
use crate::index::set::Set;
use crate::index::terms::{self, Tag};
use crate::{Expr, Path, Result, Value};

/// Maximum number of such steps: each doubles the number of paths.
const POSITIONS: usize = 2;

impl Segment<'_> {
    /// Evaluates a condition on a path that the index does not cover.
    pub(super) fn beside_terms(&self, expr: &Expr, path: &Path, within: &Set) -> Result<Bounds> {
        let all = || Bounds::some_of(Set::full(self.max_doc), self.max_doc);
        let steps = path.as_steps();
        let places: Vec<usize> = (0..steps.len()).filter(|at| is_position(&steps[*at])).collect();
        let is_covered = steps.first().is_some_and(|member| terms::is_member_indexed(self.kind, member));
        if !is_covered || places.first() == Some(&0) || POSITIONS < places.len() {
            return Ok(all());
        }
        let mut may = Set::empty(self.max_doc);
        for named in 0..1_usize << places.len() {
            // A bit is set for a step that is the name of a member.
            let is_kept =
                |at: &usize| places.iter().position(|it| it == at).is_none_or(|n| named >> n & 1 == 1);
            let path = Path::steps((0..steps.len()).filter(is_kept).map(|at| steps[at].clone()));
            // The index does not hold the elements of lists in lists.
            for n in 1..=path.as_steps().len() {
                may.add(&self.with(&terms::path_bytes(&path.as_steps()[..n]), Tag::Nested, &[])?);
            }
            let Some(expr) = moved(expr, path) else { return Ok(all()) };
            may.add(self.of_terms(&expr, within)?.high());
        }
        Ok(self.none_but(may))
    }
}

fn is_position(step: &str) -> bool {
    step.parse::<usize>().is_ok()
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
