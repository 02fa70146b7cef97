//! The working folder of a build: a lock, a plan with the build's progress, and temporary files.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::disk;
use super::spool::Run;
use crate::build::error::BuildError;
use crate::build::options::{BuildOptions, Leftover};
use crate::container::FORMAT_VERSION;
use crate::dictionary::DictionarySize;
use crate::summary::{Counts, PaletteEntry};

/// The finished graph file within the folder.
pub(crate) const COMPLETE: &str = "complete";
const PLAN: &str = "plan.json";
const LOCK: &str = "lock";

/// The next stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stage {
    Scan,
    Number,
    Join,
    Encode,
    Complete,
}

/// The purpose of an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    Edges,
    Works,
    Ids,
}

/// An input file, as it was when the build began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Input {
    pub(crate) role: Role,
    pub(crate) path: PathBuf,
    pub(crate) len_bytes: u64,
    modified_ns: u64,
}

/// How much of the input is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Inputs done.
    pub(crate) n_inputs: usize,
    /// Members done of the next input.
    pub(crate) n_members: usize,
    /// Lines done of the next member.
    pub(crate) n_lines: u64,
}

/// The state so far: everything that the next stage needs besides the files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    format: u32,
    inputs: Vec<Input>,
    pub(crate) seed: u64,
    pub(crate) stage: Stage,
    pub(crate) position: Position,
    pub(crate) counts: Counts,
    pub(crate) palette: Vec<(PaletteEntry, u64)>,
    /// Bytes of each file of citation keys.
    pub(crate) edge_lens: Vec<u64>,
    pub(crate) doi_runs: Vec<Run>,
    pub(crate) other_doi_runs: Vec<Run>,
    /// Further DOIs of works, whether or not the works have a citation.
    pub(crate) n_other_dois: u64,
    pub(crate) id_runs: Vec<Run>,
    /// DOIs before those without citation or local id are omitted.
    pub(crate) n_candidates: u64,
    pub(crate) n_local_ids: u64,
    pub(crate) n_spellings: u64,
    pub(crate) local_ids: Option<DictionarySize>,
    pub(crate) reference_runs: Vec<Run>,
    pub(crate) citation_runs: Vec<Run>,
    pub(crate) id_doi_runs: Vec<Run>,
    pub(crate) doi_id_runs: Vec<Run>,
}

impl Plan {
    fn new(inputs: Vec<Input>, seed: u64) -> Self {
        Self {
            format: FORMAT_VERSION,
            inputs,
            seed,
            stage: Stage::Scan,
            position: Position::default(),
            counts: Counts::default(),
            palette: Vec::new(),
            edge_lens: Vec::new(),
            doi_runs: Vec::new(),
            other_doi_runs: Vec::new(),
            n_other_dois: 0,
            id_runs: Vec::new(),
            n_candidates: 0,
            n_local_ids: 0,
            n_spellings: 0,
            local_ids: None,
            reference_runs: Vec::new(),
            citation_runs: Vec::new(),
            id_doi_runs: Vec::new(),
            doi_id_runs: Vec::new(),
        }
    }
}

/// The folder, locked for this build.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
    pub(crate) plan: Plan,
    _lock: File,
}

impl Workspace {
    /// Opens the folder beside the output and the plan in it, or begins a plan.
    pub(crate) fn open(options: &BuildOptions) -> Result<Self, BuildError> {
        let folder = folder_of(&options.out);
        fs::create_dir_all(&folder)?;
        let lock = lock(&folder)?;
        let inputs = inputs(options)?;
        let plan = match read_plan(&folder.join(PLAN))? {
            None => Plan::new(inputs, 0),
            // A published build is finished: the folder was about to be removed.
            Some(plan) if plan.stage == Stage::Complete && !folder.join(COMPLETE).exists() => {
                Plan::new(inputs, 0)
            }
            Some(plan) => match resumable(plan, &inputs, &folder) {
                Err(BuildError::OtherBuild { .. }) if options.leftover == Leftover::Remove => {
                    empty(&folder)?;
                    Plan::new(inputs, 0)
                }
                resumed => resumed?,
            },
        };
        let work = Self { folder, plan, _lock: lock };
        work.save()?;
        Ok(work)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn inputs(&self) -> Vec<Input> {
        self.plan.inputs.clone()
    }

    /// Saves the plan durably: stages it marks as done stay done, even after a power failure. The names of the files it
    /// refers to are synced before it, and it is synced before any file that it no longer needs is removed.
    pub(crate) fn save(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.plan)?;
        let temporary = self.path("plan.new");
        fs::write(&temporary, text)?;
        disk::sync(&File::open(&temporary)?)?;
        disk::sync_folder(&self.folder)?;
        fs::rename(&temporary, self.path(PLAN))?;
        disk::sync_folder(&self.folder)
    }

    /// Saves that `stage` is next. The output of the preceding stages is on disk by then: after a power failure they
    /// are not repeated.
    pub(crate) fn enter(&mut self, stage: Stage) -> io::Result<()> {
        // For a complete build, the one file that is left to publish is on disk already.
        if stage != Stage::Complete {
            self.sync_files()?;
        }
        self.plan.stage = stage;
        self.save()
    }

    fn sync_files(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                disk::sync(&File::open(entry.path())?)?;
            }
        }
        Ok(())
    }

    /// Discards everything done so far and takes the next seed.
    pub(crate) fn start_over(&mut self) -> io::Result<()> {
        self.plan = Plan::new(self.plan.inputs.clone(), self.plan.seed + 1);
        self.save()
    }

    /// Removes the folder: the plan first, so that a half-removed folder cannot be resumed.
    pub(crate) fn remove(self) -> io::Result<()> {
        match fs::remove_file(self.path(PLAN)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::remove_dir_all(&self.folder),
        }
    }
}

/// Returns the output's name with `.building` appended.
pub(crate) fn folder_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".building");
    PathBuf::from(name)
}

/// Removes all files of a locked folder except the lock, the plan first.
fn empty(folder: &Path) -> io::Result<()> {
    fs::remove_file(folder.join(PLAN))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name == LOCK) {
            continue;
        }
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, BuildError> {
    let file = File::create(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BuildError::Busy { folder: folder.to_owned() }),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

fn inputs(options: &BuildOptions) -> Result<Vec<Input>, BuildError> {
    let roles = [(Role::Edges, &options.edges), (Role::Works, &options.works), (Role::Ids, &options.ids)];
    let files = roles.into_iter().flat_map(|(role, paths)| paths.iter().map(move |path| (role, path)));
    files.map(|(role, path)| input(role, path)).collect()
}

fn input(role: Role, path: &Path) -> Result<Input, BuildError> {
    let failed = |error| crate::source::SourceError::Read { file: path.display().to_string(), error };
    let metadata = fs::metadata(path).map_err(failed)?;
    let age = metadata.modified().map_err(failed)?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    Ok(Input { role, path: path.to_owned(), len_bytes: metadata.len(), modified_ns })
}

fn read_plan(path: &Path) -> Result<Option<Plan>, BuildError> {
    match fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the plan, if it is for the same files in the same state.
fn resumable(plan: Plan, inputs: &[Input], folder: &Path) -> Result<Plan, BuildError> {
    let other = |what: String| BuildError::OtherBuild { folder: folder.to_owned(), what };
    if plan.format != FORMAT_VERSION {
        return Err(other(format!("format {}", plan.format)));
    }
    if plan.inputs.len() != inputs.len() {
        return Err(other(format!("{} files then, {} now", plan.inputs.len(), inputs.len())));
    }
    match plan.inputs.iter().zip(inputs).find(|(then, now)| then != now) {
        Some((then, _)) => Err(other(then.path.display().to_string())),
        None => Ok(plan),
    }
}
