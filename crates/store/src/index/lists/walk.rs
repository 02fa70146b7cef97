//! Passing over the entries of a list in order: the terms of each segment and traits are a sorted run; the runs are
//! merged.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::termdict::TermStreamer;

use super::backward::Backward;
use crate::index::Snapshot;
use crate::index::condition::{Segment, failed};
use crate::index::entries::{parts_bytes, traits_prefix};
use crate::index::set::Set;
use crate::{Kind, Result};

/// A list over all segments, with the entries of records changed since the commit.
pub(super) struct Lists<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) kind: &'static Kind,
    pub(super) number: usize,
    /// Whether only the entries of some records count.
    pub(super) is_filtered: bool,
    /// All traits, in order.
    pub(super) traits: Vec<String>,
    pub(super) parts: Vec<Part<'s>>,
    /// Entries that are not in the segments, in order.
    pub(super) others: Vec<Other>,
    /// Whether nothing has changed since.
    pub(super) is_current: bool,
}

/// A segment and its relevant documents.
pub(super) struct Part<'s> {
    pub(super) segment: Segment<'s>,
    pub(super) within: Set,
    /// Documents that are neither deleted nor relevant.
    pub(super) changed: Set,
    pub(super) is_whole: bool,
    /// Which traits it has, by their positions among all.
    pub(super) traits: Vec<usize>,
}

/// An entry of a record that is read instead of its document.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Other {
    pub(super) group: Vec<u8>,
    pub(super) traits: String,
    pub(super) gathered: String,
    /// Id of the record.
    pub(super) id: String,
    /// What it is counted by.
    pub(super) texts: Arc<BTreeSet<String>>,
}

/// Direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// An entry during a walk, before it is known whether any record still has it.
#[derive(Default)]
pub(super) struct Passing {
    /// Key and distinguishing part.
    pub(super) group: Vec<u8>,
    /// Its traits, by their position.
    pub(super) traits: usize,
    /// By segment: its postings, and the collected values.
    pub(super) terms: Vec<(usize, TermInfo, Vec<u8>)>,
    /// Positions of entries that are not in the segments.
    pub(super) others: Vec<usize>,
}

/// A sorted run of entries, at one of them.
struct Run<'r> {
    way: Way,
    traits: usize,
    group: Vec<u8>,
    gathered: Vec<u8>,
    source: Source<'r>,
}

enum Source<'r> {
    Forward {
        part: usize,
        prefix: Vec<u8>,
        stream: Box<TermStreamer<'r>>,
    },
    Backward {
        part: usize,
        prefix: Vec<u8>,
        terms: Backward<'r>,
    },
    /// Entries that are not in the segments: the position of the current one, and of those that are left, the next one
    /// last.
    Others {
        all: &'r [Other],
        at: usize,
        left: Vec<usize>,
    },
}

impl Lists<'_> {
    /// Passes the entries with selected traits, from a position on, to `visit` until it returns that it has enough.
    pub(super) fn walk(
        &self,
        at: &[u8],
        way: Way,
        selected: &[bool],
        mut visit: impl FnMut(&Passing) -> Result<bool>,
    ) -> Result<()> {
        let mut runs = BinaryHeap::new();
        for (number, part) in self.parts.iter().enumerate() {
            for traits in part.traits.iter().copied().filter(|it| selected[*it]) {
                let prefix = traits_prefix(self.number, &self.traits[traits]);
                let mut place = prefix.clone();
                place.extend_from_slice(at);
                let terms = part.segment.all_terms();
                let source = match way {
                    Way::Forward => {
                        let stream = Box::new(terms.range().ge(&place).into_stream().map_err(failed)?);
                        Source::Forward { part: number, prefix, stream }
                    }
                    Way::Backward => {
                        let terms = Backward::begin(terms, &prefix, &place)?;
                        Source::Backward { part: number, prefix, terms }
                    }
                };
                runs.extend(Run::begin(way, traits, source)?);
            }
        }
        let split = self.others.partition_point(|it| it.group.as_slice() < at);
        let others: Box<dyn Iterator<Item = usize>> = match way {
            Way::Forward => Box::new((split..self.others.len()).rev()),
            Way::Backward => Box::new(0..split),
        };
        let mut left: Vec<Vec<usize>> = vec![Vec::new(); self.traits.len()];
        for other in others {
            if let Ok(traits) = self.traits.binary_search(&self.others[other].traits)
                && selected[traits]
            {
                left[traits].push(other);
            }
        }
        for (traits, left) in left.into_iter().enumerate() {
            runs.extend(Run::begin(way, traits, Source::Others { all: &self.others, at: 0, left })?);
        }
        let mut passing = Passing::default();
        while let Some(first) = runs.peek() {
            passing.terms.clear();
            passing.others.clear();
            passing.group.clone_from(&first.group);
            passing.traits = first.traits;
            while let Some(mut run) = runs.peek_mut() {
                if run.traits != passing.traits || run.group != passing.group {
                    break;
                }
                run.add_to(&mut passing);
                if !run.advance()? {
                    PeekMut::pop(run);
                }
            }
            if !visit(&passing)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<'r> Run<'r> {
    /// Returns a run at its first entry; `None` if it has none.
    fn begin(way: Way, traits: usize, source: Source<'r>) -> Result<Option<Self>> {
        let mut run = Self { way, traits, group: Vec::new(), gathered: Vec::new(), source };
        Ok(run.advance()?.then_some(run))
    }

    /// Moves on to the next entry; false if there is none.
    fn advance(&mut self) -> Result<bool> {
        match &mut self.source {
            Source::Forward { prefix, stream, .. } => {
                let term = if stream.advance() { Some(stream.key()) } else { None };
                let Some(entry) = term.and_then(|it| it.strip_prefix(prefix.as_slice())) else {
                    return Ok(false);
                };
                read_entry(entry, &mut self.group, &mut self.gathered);
            }
            Source::Backward { prefix, terms, .. } => {
                let term = terms.next()?;
                let Some(entry) = term.and_then(|it| it.0.strip_prefix(prefix.as_slice())) else {
                    return Ok(false);
                };
                read_entry(entry, &mut self.group, &mut self.gathered);
            }
            Source::Others { all, at, left } => {
                let Some(next) = left.pop() else { return Ok(false) };
                *at = next;
                self.group.clone_from(&all[next].group);
            }
        }
        Ok(true)
    }

    fn add_to(&self, passing: &mut Passing) {
        match &self.source {
            Source::Forward { part, stream, .. } => {
                passing.terms.push((*part, stream.value().clone(), self.gathered.clone()));
            }
            Source::Backward { part, terms, .. } => {
                passing.terms.extend(terms.current().map(|it| (*part, it.1.clone(), self.gathered.clone())));
            }
            Source::Others { at, .. } => passing.others.push(*at),
        }
    }
}

/// Takes an entry apart.
fn read_entry(entry: &[u8], group: &mut Vec<u8>, gathered: &mut Vec<u8>) {
    let (own, rest) = entry.split_at(parts_bytes(entry, 2));
    group.clear();
    group.extend_from_slice(own);
    gathered.clear();
    gathered.extend_from_slice(rest);
}

/// The run whose entry comes next is the greatest.
impl Ord for Run<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = (&self.group, self.traits).cmp(&(&other.group, other.traits));
        if self.way == Way::Forward { order.reverse() } else { order }
    }
}

impl PartialOrd for Run<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Run<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Run<'_> {}
