//! The trigrams of the texts of a record's members ([`Kind::members`], [`Kind::patterns`]): a record may have a million
//! members, which its body does not hold.

use std::ops::ControlFlow;

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

/// Collects the trigrams of one list of members after the other.
pub(super) struct GramReader {
    paths: Vec<(u8, Path)>,
    /// For each path, which trigrams were found.
    seen: Vec<Vec<bool>>,
    found: Vec<(u8, Gram)>,
}

impl GramReader {
    /// Returns what reads the members of a kind; `None` if nothing is declared of them.
    pub(super) fn of(kind: &'static Kind) -> Option<Self> {
        let below = |path: &str| kind.below_member(path).map(Path::dotted);
        let paths: Vec<(u8, Path)> =
            (0..).zip(kind.patterns).filter_map(|(number, path)| Some((number, below(path)?))).collect();
        let seen = vec![vec![false; GRAM_ALPHABET.pow(3)]; paths.len()];
        (!paths.is_empty()).then_some(Self { paths, seen, found: Vec::new() })
    }

    /// Returns the trigrams of a list, whose chunks the statement `members` reads. `None` for more than are terms, and for
    /// members that are not JSON, which is reported where they are read.
    pub(super) fn read(
        &mut self,
        session: &mut Session<'_>,
        members: &str,
        list: ListId,
    ) -> Result<Option<MemberGrams>> {
        let (mut is_known, mut text) = (true, Vec::new());
        each_chunk(session, members, list, 0, |_, _, chunk| {
            listed(chunk, &mut text);
            match serde_json::from_slice::<Tree<'_>>(&text) {
                Ok(members) => self.add(&members),
                Err(_) => is_known = false,
            }
            is_known &= self.found.len() <= GRAMS_MAX;
            if is_known { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let found: MemberGrams = self.found.as_slice().into();
        for (number, gram) in self.found.drain(..) {
            if let Some(at) = self.paths.iter().position(|it| it.0 == number) {
                self.seen[at][place(gram)] = false;
            }
        }
        Ok(is_known.then_some(found))
    }

    fn add(&mut self, members: &Tree<'_>) {
        let Self { paths, seen, found, .. } = self;
        for ((number, path), seen) in paths.iter().zip(seen) {
            each_text(members, path.as_steps(), &mut |text| {
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

/// Returns the place of a trigram among all of them.
fn place(gram: Gram) -> usize {
    gram.iter().fold(0, |sum, byte| sum * GRAM_ALPHABET + usize::from(byte - b' '))
}

/// Calls `visit` with each text at a path, whatever lists are on the way.
fn each_text(at: &Tree<'_>, steps: &[String], visit: &mut impl FnMut(&str)) {
    match (at, steps) {
        (Tree::List(list), _) => list.iter().for_each(|it| each_text(it, steps, visit)),
        (Tree::Text(text), []) => visit(text),
        (Tree::Object(fields), [step, rest @ ..]) => {
            if let Some(value) = fields.get(step) {
                each_text(value, rest, visit);
            }
        }
        _ => {}
    }
}
