//! Shared parts of tests that build graphs.

use std::path::{Path, PathBuf};

use pinakes_citations::{BuildOptions, Observer, Problem, Progress};

/// Keeps every problem.
#[derive(Default, Debug)]
pub(crate) struct Collecting {
    pub(crate) problems: Vec<Problem>,
}

impl Observer for Collecting {
    fn progress(&mut self, _: Progress) {}

    fn problem(&mut self, problem: &Problem) {
        self.problems.push(problem.clone());
    }
}

/// Returns options that build `graph` in a folder.
pub(crate) fn options(edges: &[PathBuf], folder: &Path) -> BuildOptions {
    BuildOptions { n_threads: 2, ..BuildOptions::new(edges.to_vec(), folder.join("graph")) }
}
