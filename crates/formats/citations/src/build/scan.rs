//! The first stage: reads the dumps once. One thread decompresses and splits lines, several parse, this one
//! collects their results in the order of the files.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::keys::{PartWriter, doi_key};
use super::parse::{Job, KeyedWork, Parsed, parse};
use super::texts::{Text, TextSorter};
use super::workspace::{Input, Position, Role, Workspace};
use crate::build::error::BuildError;
use crate::build::options::BuildOptions;
use crate::build::progress::{Observer, Progress, Step};
use crate::id_table::{IdRow, read_id_table};
use crate::lines::Chunks;
use crate::meta::{Told, read_work_ids};
use crate::omid::Omid;
use crate::problem::{Problem, Reason, excerpt};
use crate::rows::Layout;
use crate::source::{Member, SourceError, visit_members};
use crate::statement::SYMBOL_BITS;
use crate::summary::PaletteEntry;

/// Name of the files of citation keys.
pub(crate) const EDGES: &str = "edges";
/// A citing key, a cited key, what the citation says.
pub(crate) const EDGE_BYTES: usize = 24;
/// DOIs with OMID and PMID, in runs.
pub(crate) const DOIS: &str = "dois";
/// Further DOIs of works with a number of their own, in runs.
pub(crate) const OTHER_DOIS: &str = "other-dois";
/// Marks the number of a further DOI where a `PubMed` number would stand.
pub(crate) const OTHER_DOI_MARK: u64 = 1 << 63;
/// Local ids with row and key, in runs.
pub(crate) const IDS: &str = "ids";
/// Chunks in transit between threads, per thread: bounds memory to some megabytes.
const CHUNKS_AHEAD: usize = 3;
/// Keys of recently seen DOIs, which need not be collected again: 128 MB.
const SEEN_SLOTS_LOG: u32 = 24;
/// Slots of a small input's table of recently seen keys.
const SEEN_SLOTS_LOG_MIN: u32 = 16;
/// Separates a local id from its DOI's spelling. Ids with control characters are refused, so ids sort as with
/// it.
pub(crate) const SPELLING_MARK: u8 = 0;

/// Reads the remaining input.
pub(crate) fn scan(
    work: &mut Workspace,
    options: &BuildOptions,
    observer: &mut dyn Observer,
) -> Result<(), BuildError> {
    let mut collector = Collector::open(work, options, observer)?;
    for (index, input) in collector.work.inputs().into_iter().enumerate() {
        if index < collector.work.plan.position.n_inputs {
            continue;
        }
        match input.role {
            Role::Edges => scan_edges(&mut collector, index, &input)?,
            Role::Works => scan_works(&mut collector, index, &input)?,
            Role::Ids => scan_ids(&mut collector, index, &input)?,
        }
        collector.reach(Position { n_inputs: index + 1, n_members: 0, n_lines: 0 });
        collector.checkpoint()?;
        let is_last_of_edges =
            collector.work.inputs().get(index + 1).is_none_or(|next| next.role != Role::Edges);
        if input.role == Role::Edges && is_last_of_edges {
            collector.check_names()?;
        }
    }
    Ok(())
}

/// Why the reader thread stopped.
enum ReadEnd {
    Failed(BuildError),
    /// The collector is gone, and reports why itself.
    Hung,
}

impl From<SourceError> for ReadEnd {
    fn from(error: SourceError) -> Self {
        Self::Failed(error.into())
    }
}

fn scan_edges(collector: &mut Collector<'_>, index: usize, input: &Input) -> Result<(), BuildError> {
    let seed = collector.work.plan.seed;
    let folder = collector.work.folder().to_owned();
    let start = collector.work.plan.position;
    let n_read = Arc::clone(&collector.n_read);
    thread::scope(|scope| {
        let (mut jobs, mut results) = (Vec::new(), Vec::new());
        for _ in 0..collector.n_threads {
            let (job_sender, job_receiver) = sync_channel::<Job>(CHUNKS_AHEAD);
            let (result_sender, result_receiver) = sync_channel(CHUNKS_AHEAD);
            scope.spawn(move || parse_all(&job_receiver, &result_sender, seed));
            jobs.push(job_sender);
            results.push(result_receiver);
        }
        let reader = scope.spawn(move || {
            let mut members = MemberReader { jobs, n_sent: 0, start, index, n_members: 0 };
            visit_members(&input.path, &folder, &n_read, &mut |member| members.read(member))
        });
        let collected = collect_all(collector, &results);
        drop(results);
        let read = reader.join().map_err(|_| io::Error::other("the reading thread failed"))?;
        collected?;
        match read {
            Ok(()) | Err(ReadEnd::Hung) => Ok(()),
            Err(ReadEnd::Failed(error)) => Err(error),
        }
    })
}

fn parse_all(jobs: &Receiver<Job>, results: &SyncSender<Parsed>, seed: u64) {
    for job in jobs {
        if results.send(parse(&job, seed)).is_err() {
            return; // The collector failed and reports why itself.
        }
    }
}

/// Collects results in the order in which jobs were handed out: round-robin over the threads.
fn collect_all(collector: &mut Collector<'_>, results: &[Receiver<Parsed>]) -> Result<(), BuildError> {
    for receiver in results.iter().cycle() {
        match receiver.recv() {
            Ok(parsed) => collector.take(parsed)?,
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Splits members into jobs.
struct MemberReader {
    jobs: Vec<SyncSender<Job>>,
    n_sent: usize,
    start: Position,
    index: usize,
    n_members: usize,
}

impl MemberReader {
    fn read(&mut self, member: Member<'_>) -> Result<(), ReadEnd> {
        let here = Position { n_inputs: self.index, n_members: self.n_members, n_lines: 0 };
        self.n_members += 1;
        if (here.n_inputs, here.n_members) < (self.start.n_inputs, self.start.n_members) {
            return Ok(());
        }
        let name: Arc<str> = member.name.into();
        let mut chunks = Chunks::new(member.bytes);
        let mut layout = None;
        let failed = |error| SourceError::Read { file: name.to_string(), error };
        while let Some(chunk) = chunks.next_chunk().map_err(failed)? {
            let layout = match &layout {
                Some(layout) => layout,
                None => layout.insert(detect(&name, &chunk.bytes)?),
            };
            let n_lines = chunk.first_line + chunk.n_lines - 1;
            let position = Position { n_lines, ..here };
            if position <= self.start {
                continue;
            }
            self.send(Job { name: Arc::clone(&name), layout: layout.clone(), chunk, position })?;
        }
        Ok(())
    }

    fn send(&mut self, job: Job) -> Result<(), ReadEnd> {
        let thread = self.n_sent % self.jobs.len();
        self.n_sent += 1;
        self.jobs[thread].send(job).map_err(|_| ReadEnd::Hung)
    }
}

fn detect(name: &str, bytes: &[u8]) -> Result<Layout, ReadEnd> {
    let first_line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let first_line = first_line.strip_suffix(b"\r").unwrap_or(first_line);
    Layout::detect(first_line).ok_or_else(|| {
        ReadEnd::Failed(BuildError::Layout { file: name.to_owned(), first_line: excerpt(first_line) })
    })
}

fn scan_works(collector: &mut Collector<'_>, index: usize, input: &Input) -> Result<(), BuildError> {
    let (folder, n_read) = (collector.work.folder().to_owned(), Arc::clone(&collector.n_read));
    let mut members = MemberCount { index, n_members: 0 };
    visit_members(&input.path, &folder, &n_read, &mut |member: Member<'_>| {
        let Some(position) = members.next_after(collector.work.plan.position) else { return Ok(()) };
        let name = member.name;
        read_work_ids(member.bytes, &mut |line, told| collector.take_work(&name, line, told))?;
        collector.reach(position);
        collector.checkpoint_if_due()
    })
}

fn scan_ids(collector: &mut Collector<'_>, index: usize, input: &Input) -> Result<(), BuildError> {
    let (folder, n_read) = (collector.work.folder().to_owned(), Arc::clone(&collector.n_read));
    let mut members = MemberCount { index, n_members: 0 };
    visit_members(&input.path, &folder, &n_read, &mut |member: Member<'_>| {
        let Some(position) = members.next_after(collector.work.plan.position) else { return Ok(()) };
        let name = member.name;
        read_id_table(member.bytes, &mut |line, row| collector.take_id(&name, line, row))?;
        collector.reach(position);
        collector.checkpoint_if_due()
    })
}

/// The number of the next member of a file.
struct MemberCount {
    index: usize,
    n_members: usize,
}

impl MemberCount {
    /// Returns the position after the next member; `None` if `done` is already beyond it.
    fn next_after(&mut self, done: Position) -> Option<Position> {
        self.n_members += 1;
        let position = Position { n_inputs: self.index, n_members: self.n_members, n_lines: 0 };
        (done < position).then_some(position)
    }
}

/// Collects everything that was read.
struct Collector<'a> {
    work: &'a mut Workspace,
    observer: &'a mut dyn Observer,
    edges: PartWriter<EDGE_BYTES>,
    dois: TextSorter,
    other_dois: TextSorter,
    ids: TextSorter,
    /// Whether DOIs can come from Meta.
    has_works: bool,
    seen: Seen,
    symbols: Symbols,
    n_threads: usize,
    checkpoint_rows: u64,
    n_rows_at_checkpoint: u64,
    n_read: Arc<AtomicU64>,
    n_total: u64,
}

impl<'a> Collector<'a> {
    fn open(
        work: &'a mut Workspace,
        options: &BuildOptions,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, BuildError> {
        let plan = &work.plan;
        let edges = PartWriter::open(work, EDGES, &plan.edge_lens)?;
        let dois = TextSorter::open(&work.path(DOIS), plan.doi_runs.clone())?;
        let other_dois = TextSorter::open(&work.path(OTHER_DOIS), plan.other_doi_runs.clone())?;
        let ids = TextSorter::open(&work.path(IDS), plan.id_runs.clone())?;
        let symbols = Symbols::new(&plan.palette);
        let inputs = work.inputs();
        let n_total = inputs.iter().map(|input| input.len_bytes).sum();
        let n_before = inputs.iter().take(plan.position.n_inputs).map(|input| input.len_bytes).sum();
        Ok(Self {
            edges,
            dois,
            other_dois,
            ids,
            has_works: !options.works.is_empty(),
            seen: Seen::for_input(n_total),
            symbols,
            n_threads: options.n_threads.max(1),
            checkpoint_rows: options.checkpoint_rows.max(1),
            n_rows_at_checkpoint: n_all_rows(work),
            n_read: Arc::new(AtomicU64::new(n_before)),
            n_total,
            work,
            observer,
        })
    }

    fn take(&mut self, parsed: Parsed) -> Result<(), BuildError> {
        for problem in &parsed.problems {
            self.observer.problem(problem);
        }
        let counts = &mut self.work.plan.counts;
        counts.n_rows += parsed.n_rows;
        counts.n_rows_kept += parsed.citations.len() as u64;
        counts.n_rows_skipped += parsed.n_rows - parsed.citations.len() as u64;
        counts.n_fields_skipped += parsed.n_fields_skipped;
        for citation in &parsed.citations {
            self.take_doi(citation.citing, &parsed.texts)?;
            self.take_doi(citation.cited, &parsed.texts)?;
            let statements = citation.statements.with_symbol(self.symbols.of(citation.entry));
            let mut record = [0; EDGE_BYTES];
            record[..8].copy_from_slice(&citation.citing.key.to_le_bytes());
            record[8..16].copy_from_slice(&citation.cited.key.to_le_bytes());
            record[16..].copy_from_slice(&statements.word().to_le_bytes());
            self.edges.push(citation.citing.key, &record)?;
        }
        self.reach(parsed.position);
        self.tell();
        self.checkpoint_if_due()
    }

    fn take_doi(&mut self, work: KeyedWork, texts: &[u8]) -> io::Result<()> {
        let doi = work.doi(texts);
        if doi.is_empty() || self.seen.has_lately(work.key) {
            return Ok(());
        }
        self.dois.push(Text { bytes: doi, first: 0, second: 0 })
    }

    fn take_work(&mut self, file: &str, line: u64, told: Told<'_>) -> Result<(), BuildError> {
        self.work.plan.counts.n_work_rows += 1;
        self.tell_sometimes(self.work.plan.counts.n_work_rows);
        match told {
            Told::Problem(reason) => self.skip_row(file, line, reason),
            Told::Work(ids) if ids.doi.is_empty() => {}
            Told::Work(ids) => {
                let (first, second) = (ids.omid.map_or(0, Omid::number), ids.pmid.unwrap_or(0));
                self.dois.push(Text { bytes: ids.doi, first, second })?;
                for omid in &ids.others.omids {
                    self.dois.push(Text { bytes: ids.doi, first: omid.number(), second: 0 })?;
                }
                for pmid in &ids.others.pmids {
                    self.dois.push(Text { bytes: ids.doi, first: 0, second: *pmid })?;
                }
                for other in &ids.others.dois {
                    let number = self.work.plan.n_other_dois;
                    self.work.plan.n_other_dois += 1;
                    self.dois.push(Text { bytes: ids.doi, first: 0, second: OTHER_DOI_MARK | number })?;
                    self.other_dois.push(Text { bytes: other, first: number, second: 0 })?;
                }
            }
        }
        Ok(())
    }

    fn take_id(&mut self, file: &str, line: u64, row: Result<IdRow<'_>, Reason>) -> Result<(), BuildError> {
        let n_row = self.work.plan.counts.n_id_rows;
        self.work.plan.counts.n_id_rows += 1;
        self.tell_sometimes(n_row);
        let row = match row.and_then(without_control) {
            Ok(row) => row,
            Err(reason) => {
                self.skip_row(file, line, reason);
                return Ok(());
            }
        };
        let mut text = row.id.to_vec();
        text.push(SPELLING_MARK);
        if row.spelled != row.doi && row.spelled.len() <= crate::doi::DOI_LEN_MAX_BYTES {
            text.extend_from_slice(row.spelled);
        }
        self.dois.push(Text { bytes: row.doi, first: 0, second: 0 })?;
        let key = doi_key(row.doi, self.work.plan.seed);
        self.ids.push(Text { bytes: &text, first: n_row, second: key })?;
        Ok(())
    }

    fn skip_row(&mut self, file: &str, line: u64, reason: Reason) {
        self.work.plan.counts.n_rows_skipped += 1;
        self.observer.problem(&Problem { file: file.to_owned(), line, reason });
    }

    fn reach(&mut self, position: Position) {
        self.work.plan.position = position;
    }

    fn checkpoint_if_due(&mut self) -> Result<(), BuildError> {
        if self.n_rows_at_checkpoint + self.checkpoint_rows <= n_all_rows(self.work) {
            self.checkpoint()?;
            self.check_names()?;
        }
        Ok(())
    }

    /// Syncs everything to disk and saves the position.
    fn checkpoint(&mut self) -> Result<(), BuildError> {
        self.n_rows_at_checkpoint = n_all_rows(self.work);
        self.work.plan.edge_lens = self.edges.checkpoint()?.to_vec();
        self.work.plan.doi_runs = self.dois.checkpoint()?.to_vec();
        self.work.plan.other_doi_runs = self.other_dois.checkpoint()?.to_vec();
        self.work.plan.id_runs = self.ids.checkpoint()?.to_vec();
        self.work.plan.palette.clone_from(&self.symbols.entries);
        self.work.save()?;
        Ok(())
    }

    /// Stops early if all works are named by OMID and there is no source for their DOIs.
    fn check_names(&self) -> Result<(), BuildError> {
        let n_rows = self.work.plan.counts.n_rows_kept;
        if !self.has_works && 0 < n_rows && self.work.plan.doi_runs.is_empty() {
            return Err(BuildError::NoDois { n_rows, told: crate::build::error::WITHOUT_META });
        }
        Ok(())
    }

    fn tell_sometimes(&mut self, n: u64) {
        if n.is_multiple_of(65_536) {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let n_done = self.n_read.load(Ordering::Relaxed).min(self.n_total);
        let n_rows = n_all_rows(self.work);
        self.observer.progress(Progress { step: Step::Scan, n_done, n_total: Some(self.n_total), n_rows });
    }
}

fn n_all_rows(work: &Workspace) -> u64 {
    let counts = &work.plan.counts;
    counts.n_rows + counts.n_work_rows + counts.n_id_rows
}

fn without_control(row: IdRow<'_>) -> Result<IdRow<'_>, Reason> {
    if row.id.iter().all(|byte| b' ' <= *byte) {
        return Ok(row);
    }
    let value = excerpt(row.id);
    Err(Reason::ControlInId { value })
}

/// Remembers keys until another one takes their slot.
struct Seen {
    slots: Vec<u64>,
    shift: u32,
}

impl Seen {
    /// Creates as many slots as an input of that size can fill.
    fn for_input(n_bytes: u64) -> Self {
        let log = n_bytes.max(1).ilog2().clamp(SEEN_SLOTS_LOG_MIN, SEEN_SLOTS_LOG);
        Self { slots: vec![0; 1 << log], shift: u64::BITS - log }
    }

    /// Returns whether the key was seen recently, and marks it as seen.
    fn has_lately(&mut self, key: u64) -> bool {
        let slot = &mut self.slots[(key >> self.shift) as usize];
        std::mem::replace(slot, key) == key
    }
}

/// Numbers what citations say besides their dates, in order of first occurrence.
struct Symbols {
    entries: Vec<(PaletteEntry, u64)>,
    places: HashMap<PaletteEntry, u32>,
    /// The last answer: rows of one file are mostly the same.
    last: Option<(PaletteEntry, u32)>,
}

impl Symbols {
    fn new(entries: &[(PaletteEntry, u64)]) -> Self {
        let places = entries.iter().enumerate().map(|(place, (entry, _))| (*entry, place as u32)).collect();
        Self { entries: entries.to_vec(), places, last: None }
    }

    /// Returns the entry's symbol. If the palette is full of OCI prefixes, which takes an absurd input, the
    /// prefixes are dropped.
    fn of(&mut self, entry: PaletteEntry) -> u32 {
        const PLAIN_ENTRIES: usize = 9; // Three statements of two kinds, without prefixes.
        if let Some((_, place)) = self.last.filter(|(last, _)| *last == entry) {
            self.entries[place as usize].1 += 1;
            return place;
        }
        let is_full = (1 << SYMBOL_BITS) - PLAIN_ENTRIES <= self.entries.len();
        let entry = if is_full && !self.places.contains_key(&entry) {
            PaletteEntry { suppliers: None, ..entry }
        } else {
            entry
        };
        let place = *self.places.entry(entry).or_insert_with(|| {
            self.entries.push((entry, 0));
            (self.entries.len() - 1) as u32
        });
        self.last = Some((entry, place));
        self.entries[place as usize].1 += 1;
        place
    }
}
