//! What an index holds of a record's members ([`Kind::members`]), of which there may be a million: the trigrams of their
//! texts ([`Kind::patterns`]), and a summary of their values ([`Kind::member_values`]).

use std::ops::ControlFlow;

use super::member_values::{Summary, ValuesReader, each_scalar};
use super::terms::{GRAM_BYTES, Gram, is_gram_byte};
use crate::chunks::{each_chunk, listed};
use crate::session::Session;
use crate::{Kind, ListId, Path, Result, Tree, fold};

/// Maximum number of trigrams of a record that are terms.
const GRAMS_MAX: usize = 8_000;
/// Number of bytes that can be part of a trigram.
const GRAM_ALPHABET: usize = 95;

/// Trigrams of the members of a record: each with the number of its path in [`Kind::patterns`].
pub(super) type MemberGrams = Box<[(u8, Gram)]>;

/// What an index holds of the members of a record.
#[derive(Debug)]
pub(super) struct OfMembers {
    /// `None` for more than are terms, and for members that are not JSON, which is reported where they are read.
    pub(super) grams: Option<MemberGrams>,
    /// For each path of [`Kind::member_values`]; `None` for members that are not JSON.
    pub(super) values: Option<Box<[Summary]>>,
}

impl OfMembers {
    /// Returns what is held of no members.
    pub(super) fn none(kind: &Kind) -> Self {
        let values = kind.member_values.iter().map(|_| Summary::of_none()).collect();
        Self { grams: Some(MemberGrams::default()), values: Some(values) }
    }

    /// Returns about how much memory it takes.
    pub(super) fn n_bytes(&self) -> usize {
        let grams = self.grams.as_ref().map_or(0, |it| size_of_val(&**it));
        grams + self.values.iter().flatten().map(Summary::n_bytes).sum::<usize>()
    }
}

/// Reads one list of members after the other.
pub(super) struct MembersReader {
    grams: GramReader,
    values: ValuesReader,
}

impl MembersReader {
    /// Returns what reads the members of a kind; `None` if nothing is declared of them.
    pub(super) fn of(kind: &'static Kind) -> Option<Self> {
        let (grams, values) = (GramReader::of(kind), ValuesReader::of(kind));
        let is_declared = !grams.paths.is_empty() || !kind.member_values.is_empty();
        is_declared.then_some(Self { grams, values })
    }

    /// Returns what is held of a list, whose chunks the statement `members` reads.
    pub(super) fn read(
        &mut self,
        session: &mut Session<'_>,
        members: &str,
        list: ListId,
    ) -> Result<OfMembers> {
        let (mut is_json, mut text) = (true, Vec::new());
        each_chunk(session, members, list, 0, |_, _, chunk| {
            listed(chunk, &mut text);
            match serde_json::from_slice::<Tree<'_>>(&text) {
                Ok(Tree::List(members)) => {
                    self.grams.add(&members);
                    self.values.add(&members);
                }
                _ => is_json = false,
            }
            if is_json { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let grams = self.grams.finish();
        let values = self.values.finish(grams.is_some());
        Ok(OfMembers { grams: grams.filter(|_| is_json), values: is_json.then_some(values) })
    }
}

/// Collects the trigrams of members.
struct GramReader {
    paths: Vec<(u8, Path)>,
    /// For each path, which trigrams were found.
    seen: Vec<Vec<bool>>,
    found: Vec<(u8, Gram)>,
}

impl GramReader {
    fn of(kind: &'static Kind) -> Self {
        let below = |path: &str| kind.below_member(path).map(Path::dotted);
        let paths: Vec<(u8, Path)> =
            (0..).zip(kind.patterns).filter_map(|(number, path)| Some((number, below(path)?))).collect();
        let seen = vec![vec![false; GRAM_ALPHABET.pow(3)]; paths.len()];
        Self { paths, seen, found: Vec::new() }
    }

    fn add(&mut self, members: &[Tree<'_>]) {
        let Self { paths, seen, found, .. } = self;
        for ((number, path), seen) in paths.iter().zip(seen) {
            for member in members {
                if GRAMS_MAX < found.len() {
                    return;
                }
                each_scalar(member, path.as_steps(), &mut |it| {
                    let Tree::Text(text) = it else { return };
                    let folded = fold(text);
                    for run in folded.as_bytes().windows(GRAM_BYTES) {
                        if !run.iter().all(|it| is_gram_byte(*it)) {
                            continue;
                        }
                        let gram = [run[0], run[1], run[2]];
                        if !std::mem::replace(&mut seen[place(gram)], true) {
                            found.push((*number, gram));
                        }
                    }
                });
            }
        }
    }

    /// Returns the trigrams, unless there are too many, and begins anew.
    fn finish(&mut self) -> Option<MemberGrams> {
        let is_known = self.found.len() <= GRAMS_MAX;
        let found: MemberGrams = self.found.as_slice().into();
        for (number, gram) in self.found.drain(..) {
            if let Some(at) = self.paths.iter().position(|it| it.0 == number) {
                self.seen[at][place(gram)] = false;
            }
        }
        is_known.then_some(found)
    }
}

/// Returns the place of a trigram among all of them.
fn place(gram: Gram) -> usize {
    gram.iter().fold(0, |sum, byte| sum * GRAM_ALPHABET + usize::from(byte - b' '))
}
