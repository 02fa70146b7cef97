//! Builds a graph file from dumps of any size in bounded memory, by external sorting.
//!
//! | stage | reads | writes |
//! |---|---|---|
//! | scan | the dumps, once | citations as 63-bit keys of their ends, spread over files by the citing key; all DOIs, sorted in runs |
//! | number | DOI runs | the DOIs in order, which numbers them; key → number, spread as the citations are |
//! | join | citations, keys | citations as pairs of numbers, sorted in runs by either end |
//! | encode | pair runs | the sections: lists both ways, dates, exceptions, dictionary, identifiers |
//! | join sections | sections | the graph file, under a temporary name, then renamed |
//!
//! Memory: about 130 MB to remember recently seen DOIs, two batches of each sorter, one table of keys (its size is
//! bounded by processing a share of the keys at a time), and 2 to 4 bits per DOI. Everything else is files in a
//! folder beside the output. The state is saved after each stage, and within the scan every
//! [`BuildOptions::checkpoint_rows`] rows, so an interrupted build resumes from there.
//!
//! Keys: a DOI's is a 63-bit hash, an OMID's a bijection of its number. Two DOIs with the same key would be confused;
//! this is detected when the keys are numbered, where all DOIs are compared, and the build starts again with another
//! seed.

mod disk;
mod encode;
pub(crate) mod error;
mod identifiers;
mod join;
mod keys;
mod local_ids;
mod number;
pub(crate) mod options;
mod pairs;
mod parse;
pub(crate) mod progress;
mod scan;
mod section;
mod spool;
mod texts;
mod used;
mod workspace;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::build::error::META_OF_OTHERS;
use crate::container::write_container;
use crate::graph::Graph;
use crate::summary::Summary;
use workspace::{Stage, Workspace};

pub(crate) use disk::sync;

pub use self::error::BuildError;
pub use self::options::{BuildOptions, Leftover};
pub use self::progress::{Observer, Progress, Step};

/// Seeds tried before giving up; one suffices except for one in a thousand builds of the largest size.
const SEEDS_MAX: u64 = 4;

/// Builds the graph file, or resumes an interrupted build.
///
/// The file appears at [`BuildOptions::out`] when it is complete and on disk, replacing an existing one in one
/// step: programs that have the old one open keep it until they open the file again.
///
/// # Errors
/// [`BuildError`]. Bad rows are not errors: they are passed to the observer.
pub fn build(options: &BuildOptions, observer: &mut dyn Observer) -> Result<Summary, BuildError> {
    let complete = build_beside(options, observer)?;
    complete.publish()
}

/// Builds the graph file, but leaves it beside the output until [`CompleteBuild::publish`] is called.
///
/// # Errors
/// As [`build`].
pub fn build_beside(
    options: &BuildOptions,
    observer: &mut dyn Observer,
) -> Result<CompleteBuild, BuildError> {
    let mut work = Workspace::open(options)?;
    while work.plan.stage != Stage::Complete {
        match advance(&mut work, options, observer) {
            // Nothing of it is usable for a build with more files.
            Err(error @ BuildError::NoDois { .. }) => {
                work.remove()?;
                return Err(error);
            }
            advanced => advanced?,
        }
    }
    Ok(CompleteBuild { work, out: options.out.clone() })
}

fn advance(
    work: &mut Workspace,
    options: &BuildOptions,
    observer: &mut dyn Observer,
) -> Result<(), BuildError> {
    let next = match work.plan.stage {
        Stage::Scan => {
            scan::scan(work, options, observer)?;
            if work.plan.counts.n_rows_kept == 0 {
                return Err(BuildError::Nothing { n_rows: work.plan.counts.n_rows });
            }
            Stage::Number
        }
        Stage::Number => match number::number(work, options.keys_at_once, observer)? {
            number::Numbered::Distinct => Stage::Join,
            number::Numbered::Collision if work.plan.seed + 1 < SEEDS_MAX => {
                work.start_over()?;
                Stage::Scan
            }
            number::Numbered::Collision => return Err(BuildError::Collisions { tried: SEEDS_MAX }),
        },
        Stage::Join => {
            join::join(work, options.keys_at_once, observer)?;
            let counts = &work.plan.counts;
            if counts.n_without_doi == counts.n_rows_kept {
                return Err(BuildError::NoDois { n_rows: counts.n_rows_kept, told: META_OF_OTHERS });
            }
            Stage::Encode
        }
        Stage::Encode => {
            // Not at the end of the join: until this stage is entered, the join may have to be repeated.
            join::remove_used_up(work)?;
            let sections = encode::encode(work, observer)?;
            write_container(&work.path(workspace::COMPLETE), &sections)?;
            Stage::Complete
        }
        Stage::Complete => Stage::Complete,
    };
    work.enter(next)?;
    Ok(())
}

/// A graph file that is complete but not yet published.
#[derive(Debug)]
pub struct CompleteBuild {
    work: Workspace,
    out: PathBuf,
}

impl CompleteBuild {
    /// Returns the path of the complete file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.work.path(workspace::COMPLETE)
    }

    /// Publishes the file in one step, durably, and removes the working folder. If killed in between, the same build
    /// repeats it.
    ///
    /// # Errors
    /// [`BuildError::Graph`] if it does not open, [`BuildError::Work`] if it cannot be renamed.
    pub fn publish(self) -> Result<Summary, BuildError> {
        let summary = Graph::open(&self.path())?.summary().clone();
        self.take_place()?;
        let folder = self.out.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        disk::sync_folder(folder)?;
        self.work.remove()?;
        Ok(summary)
    }

    /// Removes the file with the working folder: the same build starts from the beginning.
    ///
    /// # Errors
    /// [`BuildError::Work`] if the folder cannot be removed.
    pub fn discard(self) -> Result<(), BuildError> {
        Ok(self.work.remove()?)
    }

    /// Gives the file its name. If the file system has hard links, the name in the working folder remains until that is
    /// removed.
    fn take_place(&self) -> io::Result<()> {
        let second = self.work.path("publishing");
        match fs::remove_file(&second) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::hard_link(self.path(), &second) {
            Ok(()) => fs::rename(second, &self.out),
            Err(_) => fs::rename(self.path(), &self.out),
        }
    }
}

/// Returns whether the file at `out` is from a build that was killed while publishing: the same build finishes it.
#[must_use]
pub fn is_half_published(out: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let kept = identity(&workspace::folder_of(out).join(workspace::COMPLETE));
    kept.is_some() && kept == identity(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    struct Silent;

    impl Observer for Silent {
        fn progress(&mut self, _: Progress) {}

        fn problem(&mut self, _: &Problem) {}
    }

    /// The moment between the end of the join and the next stage.
    #[test]
    fn a_build_killed_at_the_end_of_the_join_goes_on() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (edges, ids) = (folder.path().join("edges.tsv"), folder.path().join("ids.tsv"));
        fs::write(&edges, "10.1/a\t10.1/b\n10.1/a\t10.1/c\n")?;
        fs::write(&ids, "x\t10.1/a\n")?;
        let mut options = BuildOptions {
            ids: vec![ids],
            n_threads: 1,
            ..BuildOptions::new(vec![edges], folder.path().join("whole"))
        };
        build(&options, &mut Silent)?;
        let whole = fs::read(&options.out)?;
        options.out = folder.path().join("killed");
        let mut work = Workspace::open(&options)?;
        while work.plan.stage != Stage::Join {
            advance(&mut work, &options, &mut Silent)?;
        }
        join::join(&mut work, options.keys_at_once, &mut Silent)?;
        drop(work);
        build(&options, &mut Silent)?;
        assert!(fs::read(&options.out)? == whole);
        Ok(())
    }

    /// Number of power failures in the test, distributed over the whole build.
    const CUTS: u64 = 24;

    /// Wherever the power fails, the build resumes from the disk's state then and gives the same file.
    #[test]
    fn a_build_survives_power_failures() -> Result<(), Box<dyn std::error::Error>> {
        let inputs = tempfile::tempdir()?;
        let (edges, ids) = (inputs.path().join("edges.tsv"), inputs.path().join("ids.tsv"));
        let rows: String = (0..600).map(|n| format!("10.1/{}\t10.1/{}\n", n % 97, n % 89)).collect();
        fs::write(&edges, rows)?;
        fs::write(&ids, (0..60).map(|n| format!("x{n}\t10.1/{n}\n")).collect::<String>())?;
        let options = |out: PathBuf| BuildOptions {
            ids: vec![ids.clone()],
            n_threads: 1,
            checkpoint_rows: 200,
            ..BuildOptions::new(vec![edges.clone()], out)
        };
        let whole = inputs.path().join("whole");
        build(&options(whole.clone()), &mut Silent)?;
        let whole = fs::read(whole)?;
        let folder = tempfile::tempdir()?;
        let begin = options(folder.path().join("graph"));
        let work = || drop(build(&begin, &mut Silent).map_err(|error| panic!("{error}")));
        let n_requests = disk::power::n_requests(folder.path(), work);
        assert!(CUTS < n_requests, "the disk is asked {n_requests} times");
        for seed in 0..CUTS {
            let cut_at = 1 + seed * n_requests / CUTS;
            let folder = tempfile::tempdir()?;
            let begin = options(folder.path().join("graph"));
            let work = || drop(build(&begin, &mut Silent).map_err(|error| panic!("{error}")));
            let found = disk::power::failing(folder.path(), cut_at, seed, work);
            let found = found.ok_or_else(|| format!("request {cut_at} of {n_requests} was not made"))?;
            let after = tempfile::tempdir()?;
            for (name, bytes) in &found {
                let path = after.path().join(name);
                fs::create_dir_all(path.parent().unwrap_or(after.path()))?;
                fs::write(path, bytes)?;
            }
            let go_on = options(after.path().join("graph"));
            let told = || format!("request {cut_at} of {n_requests}, seed {seed}, found {:?}", found.keys());
            build(&go_on, &mut Silent).map_err(|error| format!("{}: {error}", told()))?;
            assert!(fs::read(&go_on.out)? == whole, "{}: another graph", told());
        }
        Ok(())
    }
}
