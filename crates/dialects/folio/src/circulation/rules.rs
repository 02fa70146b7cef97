//! The circulation rules: which policies apply to a loan of this item to this patron (section 9.2 of the contract).
//!
//! The rules are a text with one line per case. [`parse`](Rules::parse) reads it into rules ordered best first, so that
//! [`Rules::best`] takes the first one that matches.
//!
//! ```text
//! priority: t, s, c, b, a, m, g
//! fallback-policy: l one-month r all n none o none i none
//! m book + g staff: l one-year r all n none o none i none
//! t reserve
//!     g !staff: l one-hour r none n none o none i none
//! ```

mod parse;
mod tokens;

use std::cmp::Ordering;

/// What a criterion looks at, and its letter in the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Criterion {
    /// `g`: the patron's group.
    Group,
    /// `m`: the item's material type.
    Material,
    /// `t`: the item's loan type.
    LoanType,
    /// `a`: the institution of the item's effective location.
    Institution,
    /// `b`: its campus.
    Campus,
    /// `c`: its library.
    Library,
    /// `s`: the location itself.
    Location,
}

/// Number of criteria.
const N_CRITERIA: usize = 7;

impl Criterion {
    const ALL: [(char, Self); N_CRITERIA] = [
        ('g', Self::Group),
        ('m', Self::Material),
        ('t', Self::LoanType),
        ('a', Self::Institution),
        ('b', Self::Campus),
        ('c', Self::Library),
        ('s', Self::Location),
    ];

    fn of_letter(word: &str) -> Option<Self> {
        let mut letters = word.chars();
        let (letter, rest) = (letters.next()?, letters.next());
        let found = Self::ALL.iter().find(|(it, _)| *it == letter)?;
        rest.is_none().then_some(found.1)
    }

    fn letter(self) -> char {
        Self::ALL.iter().find(|(_, it)| *it == self).map_or('?', |(letter, _)| *letter)
    }
}

/// The known facts about a loan to be made: ids, empty where unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts<'a> {
    pub(crate) group: &'a str,
    pub(crate) material: &'a str,
    pub(crate) loan_type: &'a str,
    pub(crate) institution: &'a str,
    pub(crate) campus: &'a str,
    pub(crate) library: &'a str,
    pub(crate) location: &'a str,
}

impl<'a> Facts<'a> {
    fn value(&self, criterium: Criterion) -> &'a str {
        match criterium {
            Criterion::Group => self.group,
            Criterion::Material => self.material,
            Criterion::LoanType => self.loan_type,
            Criterion::Institution => self.institution,
            Criterion::Campus => self.campus,
            Criterion::Library => self.library,
            Criterion::Location => self.location,
        }
    }
}

/// The kinds of policy on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyKind {
    /// `l`
    Loan,
    /// `r`
    Request,
    /// `n`
    Notice,
    /// `o`
    OverdueFine,
    /// `i`
    LostItem,
}

impl PolicyKind {
    /// All kinds, in the usual order of a line.
    pub(crate) const ALL: [(char, Self); 5] = [
        ('l', Self::Loan),
        ('r', Self::Request),
        ('n', Self::Notice),
        ('o', Self::OverdueFine),
        ('i', Self::LostItem),
    ];

    /// Returns the key of the policy's id in answers and loans.
    pub(crate) fn id_key(self) -> &'static str {
        match self {
            Self::Loan => "loanPolicyId",
            Self::Request => "requestPolicyId",
            Self::Notice => "noticePolicyId",
            Self::OverdueFine => "overdueFinePolicyId",
            Self::LostItem => "lostItemPolicyId",
        }
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|(_, it)| *it == self).unwrap_or_default()
    }
}

/// One condition of a rule.
#[derive(Debug, Clone)]
struct Condition {
    criterium: Criterion,
    /// Values of which the loan must have one; empty means any.
    among: Vec<String>,
    /// Values that the loan must not have.
    except: Vec<String>,
}

impl Condition {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        let value = facts.value(self.criterium);
        let is_among = self.among.is_empty() || self.among.iter().any(|it| it == value);
        is_among && !self.except.iter().any(|it| it == value)
    }
}

/// The ids of a line's policies, by [`PolicyKind`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policies([String; 5]);

impl Policies {
    /// Returns the id of the policy of a kind.
    pub(crate) fn id(&self, kind: PolicyKind) -> &str {
        &self.0[kind.place()]
    }
}

/// A line with policies, including the criteria of the lines under which it is indented.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Line number, counted from 1.
    pub(crate) line: usize,
    /// Column of each policy's id, for errors.
    columns: [usize; 5],
    conditions: Vec<Condition>,
    /// The policies that the rule chooses.
    pub(crate) policies: Policies,
}

impl Rule {
    /// Checks whether the line has a condition for a criterion.
    pub(crate) fn names(&self, criterium: Criterion) -> bool {
        self.conditions.iter().any(|it| it.criterium == criterium)
    }

    /// Returns where the line names the policy of a kind: line and column, counted from 1.
    pub(crate) fn place_of(&self, kind: PolicyKind) -> (usize, usize) {
        (self.line, self.columns[kind.place()])
    }

    fn fits(&self, facts: &Facts<'_>) -> bool {
        self.conditions.iter().all(|it| it.holds(facts))
    }

    /// Counts the different criteria of the line.
    fn n_criteria(&self) -> usize {
        Criterion::ALL.iter().filter(|(_, it)| self.names(*it)).count()
    }
}

/// What makes one matching rule better than another; the first priority that differs decides.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Priority {
    /// The rule whose most important criterion comes first in the list.
    Criterion(Vec<Criterion>),
    /// The rule with more criteria.
    NumberOfCriteria,
    /// The rule that comes first in the text.
    FirstLine,
    /// The rule that comes last in the text.
    LastLine,
}

impl Priority {
    /// Returns `Less` if `a` is the better rule.
    fn compare(&self, a: &Rule, b: &Rule) -> Ordering {
        match self {
            Self::Criterion(order) => {
                let best = |rule: &Rule| order.iter().position(|it| rule.names(*it)).unwrap_or(order.len());
                best(a).cmp(&best(b))
            }
            Self::NumberOfCriteria => b.n_criteria().cmp(&a.n_criteria()),
            Self::FirstLine => a.line.cmp(&b.line),
            Self::LastLine => b.line.cmp(&a.line),
        }
    }
}

/// Parsed rules, best first; the fallback is the last.
#[derive(Debug)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// Returns the rule that applies. `None` only if there are no rules at all.
    pub(crate) fn best(&self, facts: &Facts<'_>) -> Option<&Rule> {
        self.0.iter().find(|it| it.fits(facts))
    }

    /// Returns all matching rules, best first.
    pub(crate) fn fitting<'a>(&'a self, facts: &'a Facts<'a>) -> impl Iterator<Item = &'a Rule> {
        self.0.iter().filter(|it| it.fits(facts))
    }

    /// Returns all rules, best first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    fn sorted(mut rules: Vec<Rule>, fallback: Rule, priorities: &[Priority]) -> Self {
        rules.sort_by(|a, b| {
            priorities.iter().fold(Ordering::Equal, |it, priority| it.then_with(|| priority.compare(a, b)))
        });
        rules.push(fallback);
        Self(rules)
    }
}

/// Why a text is not valid as rules: the first fault, with its position counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(crate) struct RulesFault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

#[cfg(test)]
mod tests;
