//! The conditions by which the store finds the records that may satisfy an expression: every record that does satisfies
//! them, others may as well.

use pinakes_store::{End, Expr, Path, Pattern};

use super::{Comparison, Condition, Expression, Place};
use crate::source_records::marc::{CONTENT, MarcPath};

/// Maximum number of characters before and within a part of a field that is found by a pattern.
const PART_CHARS: usize = 100;

impl Expression {
    pub(super) fn in_store(&self) -> Expr {
        match self {
            Self::All(list) => Expr::And(list.iter().map(Self::in_store).collect()),
            Self::Any(list) => Expr::Or(list.iter().map(Self::in_store).collect()),
            Self::Is(it) => it.in_store(),
        }
    }
}

impl Condition {
    fn in_store(&self) -> Expr {
        let path = self.place.path();
        match self.place {
            Place::Control(_) | Place::Subfield(..) => self.of_text(path, &self.value),
            Place::Indicator(..) => self.of_indicator(path),
            Place::Leader(at) => self.of_part(path, at, 1),
            Place::Characters(_, from, n) => self.of_part(path, from, n),
            Place::Date(_) => self.of_part(path, 0, 8),
        }
    }

    /// Returns the condition on a whole text.
    fn of_text(&self, path: Path, value: &str) -> Expr {
        let range = |low, high| Expr::Range(path.clone(), low, high);
        match self.comparison {
            Comparison::Equal => Expr::Is(path, value.into()),
            Comparison::NotEqual => Expr::Or(vec![
                range(End::Open, End::Excluded(value.into())),
                range(End::Excluded(value.into()), End::Open),
            ]),
            Comparison::Begins => Expr::Prefix(path, value.to_owned()),
            Comparison::From => range(End::Included(value.into()), End::Open),
            Comparison::To => range(End::Open, End::Included(value.into())),
            Comparison::In => match value.split_once('-') {
                Some((from, to)) => range(End::Included(from.trim().into()), End::Included(to.trim().into())),
                None => Expr::Nothing,
            },
            Comparison::Is if value == "absent" => Expr::Not(Box::new(Expr::Prefix(path, String::new()))),
            Comparison::Is => Expr::Prefix(path, String::new()),
        }
    }

    /// Returns the condition on an indicator, which is compared as `#` where it is blank.
    fn of_indicator(&self, path: Path) -> Expr {
        let of_others = self.of_text(path.clone(), &self.value);
        match self.comparison != Comparison::Is && self.fits("#") {
            true => Expr::Or(vec![of_others, Expr::Is(path, " ".into())]),
            false => of_others,
        }
    }

    /// Returns the condition on `n` characters of a text, behind the first `from`.
    fn of_part(&self, path: Path, from: usize, n: usize) -> Expr {
        let any = match (from.checked_add(n), n) {
            (Some(end), 1..) if end <= PART_CHARS => pattern(&path, from, &format!(".{{{n}}}")),
            _ => return Expr::All,
        };
        let value = self.value.as_str();
        let n_given = value.chars().count();
        match self.comparison {
            Comparison::Equal if n_given == n => pattern(&path, from, &regex::escape(value)),
            Comparison::Equal => Expr::Nothing,
            Comparison::NotEqual if n_given == n => pattern(&path, from, &other_than(value)),
            Comparison::Begins if n_given <= n => {
                pattern(&path, from, &format!("{}.{{{}}}", regex::escape(value), n - n_given))
            }
            Comparison::Begins => Expr::Nothing,
            // The part decides what begins with it.
            Comparison::From if from == 0 => {
                any.and(Expr::Range(path, End::Included(value.into()), End::Open))
            }
            Comparison::To if from == 0 => any.and(up_to(&path, value, n)),
            Comparison::In if from == 0 => match value.split_once('-') {
                Some((from, to)) => {
                    let from = Expr::Range(path.clone(), End::Included(from.trim().into()), End::Open);
                    any.and(from).and(up_to(&path, to.trim(), n))
                }
                None => Expr::Nothing,
            },
            Comparison::Is if value == "absent" => Expr::Not(Box::new(any)),
            Comparison::NotEqual | Comparison::From | Comparison::To | Comparison::In | Comparison::Is => any,
        }
    }
}

impl Place {
    /// Returns where in the body of a source record the texts are of which this is a part or the whole.
    fn path(&self) -> Path {
        match self {
            Self::Leader(_) => Path::steps(CONTENT.into_iter().chain(["leader"])),
            Self::Control(tag) | Self::Characters(tag, ..) | Self::Date(tag) => {
                MarcPath::new(tag, "*", "*", "").in_source_record()
            }
            Self::Indicator(tag, name) => Path::steps(CONTENT.into_iter().chain(["fields", tag, name])),
            Self::Subfield(tag, code) => {
                MarcPath::new(tag, "*", "*", code.encode_utf8(&mut [0; 4])).in_source_record()
            }
        }
    }
}

/// Returns the condition that a text has this behind its first `from` characters; all, if the pattern is too large.
fn pattern(path: &Path, from: usize, text: &str) -> Expr {
    match Pattern::new(&format!("^.{{{from}}}(?:{text})"), "s") {
        Ok(pattern) => Expr::Regex(path.clone(), pattern),
        Err(_) => Expr::All,
    }
}

/// Returns a pattern of as many characters as `value` has, except itself.
fn other_than(value: &str) -> String {
    let escaped: Vec<String> = value.chars().map(|it| regex::escape(&it.to_string())).collect();
    let differing_at =
        |n: usize| format!("{}[^{}].{{{}}}", escaped[..n].concat(), escaped[n], escaped.len() - n - 1);
    (0..escaped.len()).map(differing_at).collect::<Vec<_>>().join("|")
}

/// Returns a condition that every text satisfies whose first `n` characters are at most `value`.
fn up_to(path: &Path, value: &str, n: usize) -> Expr {
    let begin: String = value.chars().take(n).collect();
    let below = Expr::Range(path.clone(), End::Open, End::Excluded(begin.as_str().into()));
    Expr::Or(vec![below, Expr::Prefix(path.clone(), begin)])
}
