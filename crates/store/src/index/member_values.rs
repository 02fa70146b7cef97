//! Summaries of the values that a record's members have at a path ([`Kind::member_values`]): between which they lie, and,
//! unless there are too many, the hash of each. They exclude records without a member that satisfies a condition, and say
//! where in an order of all members those of a record begin.

use std::collections::HashSet;

use super::document::Number;
use super::terms::{self, BEGIN_BYTES, Tag, cut};
use crate::document::fnv;
use crate::eval::instant_ms;
use crate::field_values::EXACT;
use crate::{Direction, Kind, Path, Tree, Value};

/// Columns of what summaries hold.
pub(super) const MEMBER_VALUES: &str = "v";
/// Maximum number of different values at a path of which each is in the index.
const HASHES_MAX: usize = 2_000;

/// A column of summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summed {
    LowestNumber,
    HighestNumber,
    /// Points in time, milliseconds since 1970.
    Earliest,
    Latest,
    Hashes,
}

impl Summed {
    /// Returns the name below its field of the column for a path, whose own column name is `key`.
    fn name(self, key: &str) -> String {
        let what = match self {
            Self::LowestNumber => "low",
            Self::HighestNumber => "high",
            Self::Earliest => "from",
            Self::Latest => "to",
            Self::Hashes => "hash",
        };
        format!("{what}{key}")
    }

    /// Returns the name of the column for a path.
    pub(super) fn column(self, path: &Path) -> String {
        format!("{MEMBER_VALUES}.{}", self.name(&terms::column_key(path.as_steps())))
    }
}

/// What the values at a path have in common.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// Whether a member has no value there, or `null`.
    lacks: bool,
    /// Whether a member has a value that is neither number nor text, or is no object.
    is_odd: bool,
    /// Whether a member has a text that is no point in time.
    is_undated: bool,
    numbers: Option<(f64, f64)>,
    instants: Option<(i64, i64)>,
    /// The first and the last text, as far as the index holds them.
    texts: Option<(Vec<u8>, Vec<u8>)>,
    /// `None` for too many, and where trigrams tell as much.
    hashes: Option<Box<[u32]>>,
}

impl Summary {
    /// Returns the summary of no members.
    pub(super) fn of_none() -> Self {
        Self { hashes: Some(Box::default()), ..Self::default() }
    }

    /// Returns about how much memory it takes.
    pub(super) fn n_bytes(&self) -> usize {
        size_of::<Self>() + self.hashes.as_ref().map_or(0, |it| size_of_val(&**it))
    }

    /// Passes on what the index holds of the summary of a path. `path`: its bytes; `key`: its column name.
    pub(super) fn write(&self, path: &[u8], key: &str, into: &mut impl SummaryParts) {
        let flags = [(self.lacks, Tag::Lacking), (self.is_odd, Tag::Odd), (self.is_undated, Tag::Undated)];
        for (_, tag) in flags.into_iter().filter(|it| it.0) {
            into.term(&terms::term(path, tag, &[]));
        }
        if let Some((lowest, highest)) = &self.texts {
            into.term(&terms::term(path, Tag::Lowest, lowest));
            into.term(&terms::term(path, Tag::Highest, highest));
        }
        match &self.hashes {
            None => into.term(&terms::term(path, Tag::ManyValues, &[])),
            Some(hashes) => {
                let name = Summed::Hashes.name(key);
                hashes.iter().for_each(|it| into.number(&name, Number::Whole(i64::from(*it))));
            }
        }
        if let Some((lowest, highest)) = self.numbers {
            into.number(&Summed::LowestNumber.name(key), Number::of(lowest));
            into.number(&Summed::HighestNumber.name(key), Number::of(highest));
        }
        if let Some((first, last)) = self.instants {
            into.number(&Summed::Earliest.name(key), Number::Whole(first));
            into.number(&Summed::Latest.name(key), Number::Whole(last));
        }
    }

    /// Passes on that nothing is known of the values at a path.
    pub(super) fn write_unknown(path: &[u8], into: &mut impl SummaryParts) {
        for tag in [Tag::Untold, Tag::Lacking, Tag::Odd, Tag::ManyValues] {
            into.term(&terms::term(path, tag, &[]));
        }
    }
}

/// Receives what the index holds of summaries.
pub(super) trait SummaryParts {
    fn term(&mut self, term: &[u8]);
    /// Receives a number, and the name of its column below [`MEMBER_VALUES`].
    fn number(&mut self, column: &str, number: Number);
}

/// Returns the hash of a value that is equal to no other but perhaps by chance; `None` for what has none.
pub(super) fn hash_of(value: &Value) -> Option<u32> {
    match value {
        Value::Text(text) => Some(hash_of_text(text)),
        Value::Integer(number) => Some(hash_of_number(*number as f64)),
        Value::Real(number) => Some(hash_of_number(*number)),
        Value::Null | Value::Boolean(_) | Value::Instant(_) | Value::Folded(_) | Value::Json(_) => None,
    }
}

fn hash_of_text(text: &str) -> u32 {
    folded_hash(fnv(text.as_bytes(), 0))
}

fn hash_of_number(number: f64) -> u32 {
    // Zero has two forms.
    folded_hash(fnv(&(number + 0.0).to_le_bytes(), 1))
}

#[expect(clippy::cast_possible_truncation, reason = "both halves of the hash are used")]
fn folded_hash(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

/// Returns the number, at most or at least as great as any that is written like it, at which an order begins.
pub(crate) fn number_bound(number: f64, direction: Direction) -> f64 {
    match direction {
        _ if number.abs() < EXACT => number + 0.0,
        Direction::Ascending => number.next_down(),
        Direction::Descending => number.next_up(),
    }
}

/// Returns the text at which an order begins, as far as the index holds it: no text with the same beginning comes before.
pub(crate) fn text_bound(text: &str, direction: Direction) -> Vec<u8> {
    let mut bound = cut(text, BEGIN_BYTES).as_bytes().to_vec();
    if direction == Direction::Descending && bound.len() < text.len() {
        // No byte of a text is as great.
        bound.push(0xff);
    }
    bound
}

/// Summarises the values of members.
pub(super) struct ValuesReader {
    paths: Vec<OfPath>,
}

/// What was found at a path so far.
struct OfPath {
    /// What the values are called in a member.
    steps: [String; 1],
    /// Whether whole texts are found by their trigrams, unless there are too many.
    is_pattern: bool,
    summary: Summary,
    lowest: Option<String>,
    highest: Option<String>,
    hashes: HashSet<u32>,
}

impl ValuesReader {
    pub(super) fn of(kind: &'static Kind) -> Self {
        let of_path = |path: &&'static str| {
            Some(OfPath {
                steps: [kind.below_member(path)?.to_owned()],
                is_pattern: kind.patterns.contains(path),
                summary: Summary::default(),
                lowest: None,
                highest: None,
                hashes: HashSet::new(),
            })
        };
        Self { paths: kind.member_values.iter().filter_map(of_path).collect() }
    }

    pub(super) fn add(&mut self, members: &[Tree<'_>]) {
        for of_path in &mut self.paths {
            members.iter().for_each(|it| of_path.add(it));
        }
    }

    /// Returns the summary of each path, and begins anew. `has_grams`: whether the trigrams are known.
    pub(super) fn finish(&mut self, has_grams: bool) -> Box<[Summary]> {
        self.paths.iter_mut().map(|it| it.finish(has_grams)).collect()
    }
}

impl OfPath {
    fn add(&mut self, member: &Tree<'_>) {
        let [name] = &self.steps;
        match member {
            Tree::Object(fields) => match fields.get(name) {
                None | Some(Tree::Null) => self.summary.lacks = true,
                Some(Tree::Number(_) | Tree::Text(_)) => {}
                Some(_) => self.summary.is_odd = true,
            },
            _ => self.summary.is_odd = true,
        }
        let steps = std::mem::take(&mut self.steps);
        each_scalar(member, &steps, &mut |it| self.add_scalar(it));
        self.steps = steps;
    }

    fn add_scalar(&mut self, value: &Tree<'_>) {
        let hash = match value {
            Tree::Number(number) => {
                let Some(number) = number.as_f64() else { return };
                let (low, high) =
                    (number_bound(number, Direction::Ascending), number_bound(number, Direction::Descending));
                let so_far = self.summary.numbers.unwrap_or((low, high));
                self.summary.numbers = Some((so_far.0.min(low), so_far.1.max(high)));
                hash_of_number(number)
            }
            Tree::Text(text) => {
                if self.lowest.as_deref().is_none_or(|it| &**text < it) {
                    self.lowest = Some(text.to_string());
                }
                if self.highest.as_deref().is_none_or(|it| it < &**text) {
                    self.highest = Some(text.to_string());
                }
                match instant_ms(text) {
                    Some(ms) => {
                        let so_far = self.summary.instants.unwrap_or((ms, ms));
                        self.summary.instants = Some((so_far.0.min(ms), so_far.1.max(ms)));
                    }
                    None => self.summary.is_undated = true,
                }
                hash_of_text(text)
            }
            _ => return,
        };
        if self.hashes.len() <= HASHES_MAX {
            self.hashes.insert(hash);
        }
    }

    fn finish(&mut self, has_grams: bool) -> Summary {
        let mut summary = std::mem::take(&mut self.summary);
        summary.texts = self.lowest.take().zip(self.highest.take()).map(|(lowest, highest)| {
            (text_bound(&lowest, Direction::Ascending), text_bound(&highest, Direction::Descending))
        });
        let is_told = self.hashes.len() <= HASHES_MAX && !(self.is_pattern && has_grams);
        let mut hashes: Vec<u32> = self.hashes.drain().collect();
        hashes.sort_unstable();
        summary.hashes = is_told.then(|| hashes.into());
        summary
    }
}

/// Calls `visit` with each value at a path that is neither list nor object, whatever lists are on the way.
pub(super) fn each_scalar<'t>(at: &'t Tree<'t>, steps: &[String], visit: &mut impl FnMut(&'t Tree<'t>)) {
    match (at, steps) {
        (Tree::List(list), _) => list.iter().for_each(|it| each_scalar(it, steps, visit)),
        (Tree::Object(fields), [step, rest @ ..]) => {
            if let Some(value) = fields.get(step) {
                each_scalar(value, rest, visit);
            }
        }
        (Tree::Object(_), []) | (_, [_, ..]) => {}
        (scalar, []) => visit(scalar),
    }
}
