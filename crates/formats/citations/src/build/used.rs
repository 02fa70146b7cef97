//! Which candidates are in the graph, and their final numbers.

use std::io::{self, Write as _};

use crate::build::section::{close, create};
use crate::build::workspace::Workspace;

/// Which DOIs have a citation or a local id.
pub(crate) const USED: &str = "used";

/// Which candidates are in the graph, and their final numbers, which skip the omitted candidates.
#[derive(Debug)]
pub(crate) struct Used {
    words: Vec<u64>,
    /// Used candidates before each word; empty until counted.
    ranks: Vec<u32>,
}

impl Used {
    pub(crate) fn new(n_candidates: u64) -> Self {
        Self { words: vec![0; usize::try_from(n_candidates.div_ceil(64)).unwrap_or(0)], ranks: Vec::new() }
    }

    pub(crate) fn set(&mut self, candidate: u32) {
        self.words[candidate as usize / 64] |= 1 << (candidate % 64);
    }

    pub(crate) fn write(&self, work: &Workspace) -> io::Result<()> {
        let mut file = create(&work.path(USED))?;
        for word in &self.words {
            file.write_all(&word.to_le_bytes())?;
        }
        close(file)
    }

    /// Reads the result of the join, and counts.
    pub(crate) fn read(work: &Workspace) -> io::Result<Self> {
        let mut records = crate::build::spool::Records::<8>::open(&work.path(USED))?;
        let (mut words, mut ranks, mut n_used) = (Vec::new(), Vec::new(), 0);
        while let Some(record) = records.next()? {
            let word = u64::from_le_bytes(record);
            words.push(word);
            ranks.push(n_used);
            n_used += word.count_ones();
        }
        ranks.push(n_used);
        Ok(Self { words, ranks })
    }

    pub(crate) fn contains(&self, candidate: u64) -> bool {
        let word = usize::try_from(candidate / 64).ok().and_then(|it| self.words.get(it));
        word.is_some_and(|word| word >> (candidate % 64) & 1 == 1)
    }

    /// Returns the final number of a used candidate.
    pub(crate) fn rank(&self, candidate: u32) -> u32 {
        let word = candidate as usize / 64;
        let before = self.words[word] & ((1 << (candidate % 64)) - 1);
        self.ranks[word] + before.count_ones()
    }

    /// Returns the number of used candidates.
    pub(crate) fn n_used(&self) -> u64 {
        u64::from(self.ranks.last().copied().unwrap_or(0))
    }
}
