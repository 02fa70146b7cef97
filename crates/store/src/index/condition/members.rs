//! Which records have a member that satisfies a condition, as far as the index tells what their members have
//! ([`Kind::patterns`](crate::Kind::patterns), [`Kind::member_values`](crate::Kind::member_values)).

use std::collections::{BTreeSet, HashSet};

use super::grams::needed;
use super::span::{Span, instants_between};
use super::{Segment, bytes};
use crate::index::layout::MEMBERS;
use crate::index::member_values::{Summed, hash_of, number_bound};
use crate::index::set::Set;
use crate::index::terms::{self, Gram, Tag, after};
use crate::index::values::each_value;
use crate::{Direction, End, Expr, Path, Result, Value, fold};

/// Maximum number of values of a list that are compared with what the members of a record lie between.
const COMPARED: usize = 16;

impl Segment<'_> {
    /// Returns the documents among `within` that may have a member which satisfies a condition; its paths begin at a
    /// member. `None` where the index excludes none.
    pub(in crate::index) fn with_member(&self, condition: &Expr, within: &Set) -> Result<Option<Set>> {
        Ok(match condition {
            Expr::Nothing => Some(Set::empty(self.max_doc)),
            Expr::And(list) => {
                let mut left: Option<Set> = None;
                for it in list {
                    if let Some(set) = self.with_member(it, left.as_ref().unwrap_or(within))? {
                        left = Some(set);
                    }
                }
                left
            }
            Expr::Or(list) => {
                let mut found = Set::empty(self.max_doc);
                for it in list {
                    let Some(set) = self.with_member(it, within)? else { return Ok(None) };
                    found.add(&set);
                }
                Some(found)
            }
            Expr::Is(path, value) => self.with_equal(path, std::slice::from_ref(value), within)?,
            Expr::In(path, values) => self.with_equal(path, values, within)?,
            Expr::Range(path, low, high) => self.with_values_between(path, low, high, within)?,
            Expr::Prefix(path, prefix) => {
                let last = after(prefix.as_bytes());
                let begun = match self.summed(path) {
                    Some(path) => {
                        Some(self.with_texts_of(&path, prefix.as_bytes(), last.as_deref(), within)?)
                    }
                    None => None,
                };
                let left = begun.as_ref().unwrap_or(within);
                self.with_grams(path, &terms::grams_of(&fold(prefix)), left)?.or(begun)
            }
            Expr::Regex(path, pattern) => self.with_grams(path, &needed(pattern), within)?,
            Expr::Not(it) => {
                let without = self.in_named_column(MEMBERS, &Span::Whole(0, 0), within)?;
                let such = self.with_such_only(it, within)?;
                Some(within.clone().without(&such).without(&without))
            }
            _ => None,
        })
    }

    /// Returns documents among `within` of which every member satisfies a condition: those of which the index tells.
    pub(in crate::index) fn with_such_only(&self, condition: &Expr, within: &Set) -> Result<Set> {
        Ok(match condition {
            Expr::All => within.clone(),
            Expr::And(list) => {
                let mut left = within.clone();
                for it in list {
                    left = self.with_such_only(it, &left)?;
                }
                left
            }
            Expr::Or(list) => {
                let mut found = Set::empty(self.max_doc);
                for it in list {
                    found.add(&self.with_such_only(it, within)?);
                }
                found
            }
            Expr::Not(it) => match self.with_member(it, within)? {
                Some(may) => within.clone().without(&may),
                None => Set::empty(self.max_doc),
            },
            Expr::Range(path, low, high) => self.with_values_within(path, low, high, within)?,
            Expr::Is(path, value) => {
                let end = End::Included(value.clone());
                self.with_values_within(path, &end, &end, within)?
            }
            Expr::Prefix(path, prefix) => match self.summed(path) {
                Some(path) => {
                    let end = after(prefix.as_bytes());
                    self.with_texts_within(&path, prefix.as_bytes(), end.as_deref(), within)?
                }
                None => Set::empty(self.max_doc),
            },
            _ => Set::empty(self.max_doc),
        })
    }

    /// Returns the documents among `within` of which every member has a value in a range at a path. What the index holds of
    /// the values is never narrower than they are.
    fn with_values_within(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Set> {
        let is_open = matches!((low, high), (End::Open, End::Open));
        let Some(path) = self.summed(path).filter(|_| !is_open) else {
            return Ok(Set::empty(self.max_doc));
        };
        let between = |columns: [Summed; 2], from: Span, to: Span| -> Result<Set> {
            let [first, last] = columns.map(|it| it.column(&path));
            let found = self.in_named_column(&first, &from, within)?.and(within);
            Ok(found.and(&self.in_named_column(&last, &to, within)?))
        };
        if let Some((from, to)) = instants_between(low, high) {
            let columns = [Summed::Earliest, Summed::Latest];
            let found = between(columns, Span::Whole(from, i64::MAX), Span::Whole(i64::MIN, to))?;
            let others = self.with(&bytes(&path), Tag::Undated, &[])?;
            return Ok(found
                .without(&others)
                .without(&self.beside(&path)?)
                .without(&self.with_numbers(&path)?));
        }
        let is_excluded = |end: &End| matches!(end, End::Excluded(_));
        if let (Some(from), Some(to)) = (number(low, f64::NEG_INFINITY), number(high, f64::INFINITY)) {
            let from = if is_excluded(low) { from.next_up() } else { from };
            let to = if is_excluded(high) { to.next_down() } else { to };
            let columns = [Summed::LowestNumber, Summed::HighestNumber];
            let (from, to) = (Span::Real(from, f64::INFINITY), Span::Real(f64::NEG_INFINITY, to));
            let others = self.between(&bytes(&path), Tag::Lowest, &[], None)?;
            return Ok(between(columns, from, to)?.without(&others).without(&self.beside(&path)?));
        }
        let (Some(from), Some(to)) = (text(low), text(high)) else { return Ok(Set::empty(self.max_doc)) };
        // No text lies between one and the same followed by a zero byte.
        let next = |it: &[u8]| [it, &[0]].concat();
        let from = from.map(|it| if is_excluded(low) { next(it) } else { it.to_vec() });
        let to = to.map(|it| if is_excluded(high) { it.to_vec() } else { next(it) });
        self.with_texts_within(&path, &from.unwrap_or_default(), to.as_deref(), within)
    }

    /// Returns the documents among `within` of which every member has a text from `from` (inclusive) to `to` (exclusive) at a
    /// path of [`Kind::member_values`](crate::Kind::member_values).
    fn with_texts_within(&self, path: &Path, from: &[u8], to: Option<&[u8]>, within: &Set) -> Result<Set> {
        let at = bytes(path);
        let found = self.between(&at, Tag::Lowest, from, None)?.and(within);
        let found = found.and(&self.between(&at, Tag::Highest, &[], to)?);
        Ok(found.without(&self.beside(path)?).without(&self.with_numbers(path)?))
    }

    /// Returns the documents of whose members one has neither a number nor a text at a path, or of which nothing is known.
    fn beside(&self, path: &Path) -> Result<Set> {
        let mut found = Set::empty(self.max_doc);
        for tag in [Tag::Lacking, Tag::Odd, Tag::Untold] {
            found.add(&self.with(&bytes(path), tag, &[])?);
        }
        Ok(found)
    }

    /// Returns the documents of whose members one has a number at a path.
    fn with_numbers(&self, path: &Path) -> Result<Set> {
        let all = Span::Real(f64::NEG_INFINITY, f64::INFINITY);
        self.in_named_column(&Summed::LowestNumber.column(path), &all, &Set::full(self.max_doc))
    }

    /// Returns the path below the list of members at which the index holds values; `None` if it holds none there.
    fn summed(&self, path: &Path) -> Option<Path> {
        self.declared_of(path, self.kind.member_values)
    }

    fn declared_of(&self, path: &Path, declared: &[&'static str]) -> Option<Path> {
        let below =
            |it: &&&'static str| self.kind.below_member(it).is_some_and(|below| path.is_dotted(below));
        declared.iter().find(below).map(|it| Path::dotted(it))
    }

    /// Returns the documents among `within` whose members have all these trigrams at a path, taken together.
    fn with_grams(&self, path: &Path, grams: &BTreeSet<Gram>, within: &Set) -> Result<Option<Set>> {
        let Some(path) = self.declared_of(path, self.kind.patterns).filter(|_| !grams.is_empty()) else {
            return Ok(None);
        };
        let unknown = self.with_term(&terms::many_grams_term())?.and(within);
        Ok(Some(self.with_all(&path, grams, within)?.or(&unknown)))
    }

    /// Returns the documents among `within` that may have a member with one of these values at a path.
    fn with_equal(&self, path: &Path, values: &[Value], within: &Set) -> Result<Option<Set>> {
        let hashes: Option<HashSet<i64>> = values.iter().map(|it| hash_of(it).map(i64::from)).collect();
        let found = if values.len() <= COMPARED { self.with_each(path, values, within)? } else { None };
        match (self.summed(path), hashes) {
            (Some(path), Some(hashes)) => {
                self.with_hashes(&path, &hashes, found.as_ref().unwrap_or(within)).map(Some)
            }
            _ => Ok(found),
        }
    }

    /// As [`Segment::with_equal`], without hashes.
    fn with_each(&self, path: &Path, values: &[Value], within: &Set) -> Result<Option<Set>> {
        let mut found = Set::empty(self.max_doc);
        for value in values {
            let end = End::Included(value.clone());
            let between = self.with_values_between(path, &end, &end, within)?;
            let grams = match value {
                Value::Text(text) | Value::Folded(text) => {
                    let left = between.as_ref().unwrap_or(within);
                    self.with_grams(path, &terms::grams_of(&fold(text)), left)?
                }
                _ => None,
            };
            let Some(set) = grams.or(between) else { return Ok(None) };
            found.add(&set);
        }
        Ok(Some(found))
    }

    fn with_hashes(&self, path: &Path, hashes: &HashSet<i64>, within: &Set) -> Result<Set> {
        let mut found = self.with(&bytes(path), Tag::ManyValues, &[])?.and(within);
        let name = Summed::Hashes.column(path);
        if let (1, Some(hash)) = (hashes.len(), hashes.iter().next()) {
            found.add(&self.in_named_column(&name, &Span::Whole(*hash, *hash), within)?.and(within));
        } else if let Some(column) = self.reader.fast_fields().column_opt::<i64>(&name)? {
            each_value(&column, within, |doc, it| {
                if hashes.contains(&it) {
                    found.insert(doc);
                }
            });
        }
        Ok(found)
    }

    /// Returns the documents among `within` that may have a member with a value in a range at a path.
    fn with_values_between(&self, path: &Path, low: &End, high: &End, within: &Set) -> Result<Option<Set>> {
        let is_open = matches!((low, high), (End::Open, End::Open));
        let Some(path) = self.summed(path).filter(|_| !is_open) else { return Ok(None) };
        if let Some((from, to)) = instants_between(low, high) {
            let of = |what: Summed, span: Span| self.in_named_column(&what.column(&path), &span, within);
            let found = of(Summed::Earliest, Span::Whole(i64::MIN, to))?;
            let found = found.and(&of(Summed::Latest, Span::Whole(from, i64::MAX))?);
            return Ok(Some(found.or(&self.untold(&path, within)?).and(within)));
        }
        if let (Some(from), Some(to)) = (number(low, f64::NEG_INFINITY), number(high, f64::INFINITY)) {
            let (from, to) =
                (number_bound(from, Direction::Ascending), number_bound(to, Direction::Descending));
            let of = |what: Summed, span: Span| self.in_named_column(&what.column(&path), &span, within);
            let found = of(Summed::LowestNumber, Span::Real(f64::NEG_INFINITY, to))?;
            let found = found.and(&of(Summed::HighestNumber, Span::Real(from, f64::INFINITY))?);
            return Ok(Some(found.or(&self.untold(&path, within)?).and(within)));
        }
        match (text(low), text(high)) {
            (Some(from), Some(to)) => {
                let to = to.map(|it| [it, &[0]].concat());
                self.with_texts_of(&path, from.unwrap_or_default(), to.as_deref(), within).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the documents among `within` that may have a member with a text from `from` (inclusive) to `to` (exclusive)
    /// at a path of [`Kind::member_values`](crate::Kind::member_values).
    fn with_texts_of(&self, path: &Path, from: &[u8], to: Option<&[u8]>, within: &Set) -> Result<Set> {
        let at = bytes(path);
        let found = self.between(&at, Tag::Lowest, &[], to)?.and(within);
        let found = found.and(&self.between(&at, Tag::Highest, from, None)?);
        Ok(found.or(&self.untold(path, within)?))
    }

    /// Returns the documents among `within` of whose members nothing is known.
    fn untold(&self, path: &Path, within: &Set) -> Result<Set> {
        Ok(self.with(&bytes(path), Tag::Untold, &[])?.and(within))
    }
}

/// Returns the number at an end of a range, `open` for none; `None` if it is of another type.
fn number(end: &End, open: f64) -> Option<f64> {
    match end {
        End::Open => Some(open),
        End::Included(Value::Integer(number)) | End::Excluded(Value::Integer(number)) => Some(*number as f64),
        End::Included(Value::Real(number)) | End::Excluded(Value::Real(number)) => Some(*number),
        End::Included(_) | End::Excluded(_) => None,
    }
}

/// Returns the text at an end of a range, if it has one; `None` if it is of another type.
fn text(end: &End) -> Option<Option<&[u8]>> {
    match end {
        End::Open => Some(None),
        End::Included(Value::Text(text)) | End::Excluded(Value::Text(text)) => Some(Some(text.as_bytes())),
        End::Included(_) | End::Excluded(_) => None,
    }
}
