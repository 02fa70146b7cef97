//! The thread that keeps a tenant's search indexes up to date with the sequence of changes.

mod uncounted;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, MergePolicy as _};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Term};

use self::uncounted::Uncounted;
use super::changes::{Latest, Step, has_many, store_identity};
use super::document::{DocumentBuilder, IndexDocument};
use super::first_number::use_up_first_number;
use super::folder::{check_room, covered_of, remove};
use super::lag::{Covered, Lag, is_near};
use super::layout::{CUTTER, Layout, Row, fingerprint};
use super::pace::{FAILURE_PAUSE, FOLLOWING_BYTES, Large, Pace, pause_after, pause_between_commits};
use super::parallel::{Threads, on_each};
use super::words::Cutter;
use super::{Indexes, Snapshot, Standing, terms};
use crate::priority::step_back;
use crate::session::Flavour;
use crate::{Kind, Limits, Result, StoreError, View};

/// Number of records of a step that one thread converts to documents in a row.
const CHUNK_RECORDS: usize = 100;
/// Interval between checks for changes without a notification: those of other processes.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// Interval in a database, which other servers change all the time.
pub(crate) const LOOK_AT_DATABASE: Duration = Duration::from_secs(1);
/// Time without changes after which resources needed only for writing are released.
const IDLE: Duration = Duration::from_secs(20);
/// Number of failed writes after which an index is thrown away even though it can be read.
const FORGIVEN_FAILURES: u32 = 3;
/// Number of merges at the same time: small segments must not pile up while large ones are merged.
const MERGES: usize = 2;

/// Runs a closure on a snapshot of the store.
pub(crate) type Reader = Box<dyn FnMut(&mut dyn FnMut(&mut View<'_>) -> Result<()>) -> Result<()> + Send>;

/// Keeps the indexes of one tenant up to date.
pub(crate) struct Builder {
    indexes: Arc<Indexes>,
    reader: Reader,
    kinds: Vec<KindBuilder>,
    /// Memory of an index writer that is far behind.
    memory_bytes: usize,
    /// Minimum time between two commits, so that writers get most of the disk bandwidth and of the processors.
    pause: Duration,
    /// Interval between checks for changes without a notification.
    look: Duration,
    uncounted: Uncounted,
}

struct KindBuilder {
    kind: &'static Kind,
    folder: PathBuf,
    layout: Layout,
    /// See [`store_identity`].
    store: String,
    fingerprint: String,
    open: Option<Open>,
    /// Number of consecutive failures.
    n_failures: u32,
    not_before: Option<Instant>,
    /// The last change of the kind when nothing was left to be done.
    settled_at: Option<u64>,
}

/// An open index.
struct Open {
    index: Index,
    reader: IndexReader,
    writer: Option<IndexWriter<IndexDocument>>,
    /// Held by an index writer with much memory.
    large: Option<Large>,
    /// Whether the index writer uses all processors.
    is_hurried: bool,
    /// Changes up to here are committed.
    covered: u64,
    /// Changes up to here are in the writer.
    taken: u64,
    /// Number of documents that are not committed.
    n_pending: u64,
    /// Mean size of the bodies last taken in.
    body_bytes: u64,
    committed_at: Instant,
    /// Duration of the last commit.
    commit_took: Duration,
    changed_at: Instant,
    is_published: bool,
    /// Whether it was checked for merges that an earlier process has left.
    is_looked_over: bool,
}

/// The state of an index after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Current,
    /// There is no index, or it takes in nothing at present.
    Paused,
    /// There are too few records for an index.
    Unneeded,
    /// At most so many changes are left.
    Behind {
        n_left: u64,
    },
}

impl Builder {
    /// Returns a builder that reads the store by `reader`.
    pub(crate) fn new(
        indexes: Arc<Indexes>,
        store: &str,
        limits: &Limits,
        look: Duration,
        reader: Reader,
    ) -> Self {
        let kinds = indexes.kinds.iter().map(|kind| KindBuilder {
            kind,
            folder: indexes.folder.join(kind.name),
            layout: Layout::of(kind),
            store: store.to_owned(),
            fingerprint: fingerprint(kind, store),
            open: None,
            n_failures: 0,
            not_before: None,
            settled_at: None,
        });
        Self {
            kinds: kinds.collect(),
            uncounted: Uncounted::of(&indexes.kinds),
            indexes,
            reader,
            memory_bytes: limits.index_memory_bytes,
            pause: Duration::from_millis(limits.index_pause_ms),
            look,
        }
    }

    pub(crate) fn run(mut self) {
        let mut look = self.look;
        while !self.indexes.is_closed() {
            let mut is_behind = false;
            let suspects = self.indexes.take_suspects();
            for kind in self.kinds.iter_mut().filter(|it| suspects.contains(&it.kind.name)) {
                kind.open = None;
                kind.fail(&self.indexes, &StoreError::Index("a search failed".to_owned()));
            }
            let lasts = self.pass_over_settled();
            for (kind, last) in self.kinds.iter_mut().zip(lasts) {
                if kind.not_before.is_some_and(|it| Instant::now() < it)
                    || last.is_some() && kind.settled_at == last
                {
                    continue;
                }
                let progress = kind.advance(&self.indexes, &mut self.reader, self.memory_bytes);
                kind.tell(&self.indexes.lag, progress.as_ref().ok());
                kind.settled_at = last.filter(|it| kind.is_at_rest(progress.as_ref().ok(), *it));
                match progress {
                    Ok(Progress::Behind { n_left }) => {
                        self.indexes.stand(Standing { n_left, fault: None });
                        is_behind = true;
                    }
                    Ok(Progress::Current | Progress::Paused | Progress::Unneeded) => {}
                    Err(StoreError::Unavailable(reason)) => {
                        // The next pass asks the database again; published indexes stay in use.
                        tracing::debug!(reason, "search indexes wait for the database");
                        self.indexes.stand(Standing { n_left: 0, fault: Some(reason) });
                        break;
                    }
                    Err(error) => {
                        tracing::warn!(kind = kind.kind.name, %error, "a search index could not be updated");
                        self.indexes.stand(Standing { n_left: 0, fault: Some(error.to_string()) });
                        kind.fail(&self.indexes, &error);
                    }
                }
                if self.indexes.is_closed() {
                    break;
                }
            }
            if !is_behind && !self.uncounted.count_one(&self.indexes, &mut self.reader) {
                self.indexes.wait(look);
                self.indexes.pause(self.pause);
            }
            let is_resting = self.kinds.iter().any(|it| it.not_before.is_some());
            look = if is_resting { FAILURE_PAUSE / 10 } else { self.look };
        }
        for kind in &mut self.kinds {
            if let Err(error) = kind.close() {
                tracing::debug!(kind = kind.kind.name, %error, "a search index was left behind");
            }
        }
    }

    /// Notes how far the indexes reach that have nothing to do, and returns the last change of each kind: `None` where
    /// it could not be read, or may be that of another database.
    fn pass_over_settled(&mut self) -> Vec<Option<u64>> {
        let mut latest = None;
        let read = (self.reader)(&mut |view| {
            let kinds: Vec<&Kind> = self.kinds.iter().map(|it| it.kind).collect();
            latest = Some(Latest::read(&mut view.session, &kinds)?);
            Ok(())
        });
        let Some(latest) = latest.filter(|_| read.is_ok()) else { return vec![None; self.kinds.len()] };
        let mut lasts = Vec::with_capacity(self.kinds.len());
        for (kind, last) in self.kinds.iter_mut().zip(latest.of_kinds) {
            let is_known = latest.store.as_ref().is_none_or(|it| *it == kind.store);
            lasts.push(Some(last).filter(|_| is_known));
            if is_known && kind.settled_at == Some(last) {
                kind.pass_over(&self.indexes.lag, latest.upto);
            }
        }
        lasts
    }
}

impl KindBuilder {
    /// Takes one step.
    fn advance(&mut self, indexes: &Indexes, reader: &mut Reader, memory_bytes: usize) -> Result<Progress> {
        self.not_before = None;
        let (mut is_being_made, kind) = (false, self.kind);
        reader(&mut |view| {
            is_being_made = view.remake(kind)?.is_some();
            Ok(())
        })?;
        if is_being_made {
            // Rows may still have the classes of the former declaration.
            return Ok(Progress::Paused);
        }
        if self.open.is_none() {
            let (mut is_worthwhile, kind) = (true, self.kind);
            if !self.folder.exists() {
                reader(&mut |view| {
                    is_worthwhile = has_many(&mut view.session, kind)?;
                    Ok(())
                })?;
            }
            if !is_worthwhile {
                return Ok(Progress::Unneeded);
            }
            let mut open = self.open_index()?;
            if 0 < open.covered {
                // An index that is behind is useful already: searches read the missing records themselves.
                open.publish(indexes, kind, &self.layout, &self.store)?;
            }
            self.open = Some(open);
        }
        let Some(after) = self.open.as_ref().map(|it| it.taken) else { return Ok(Progress::Paused) };
        let (mut step, kind) = (Step::default(), self.kind);
        let mut store = None;
        reader(&mut |view| {
            if view.session.flavour() == Flavour::Postgres {
                store = Some(store_identity(&mut view.session)?);
            }
            let members = &view.statements(kind)?.members;
            step = Step::read(&mut view.session, kind, after, members)?;
            Ok(())
        })?;
        if let Some(store) = store.filter(|it| *it != self.store) {
            return self.begin_anew(indexes, store);
        }
        let Some(open) = &mut self.open else { return Ok(Progress::Paused) };
        if step.is_loading {
            return Ok(Progress::Paused);
        }
        if indexes.is_hurried() && !open.is_hurried && open.large.is_some() {
            // The writer was started at low priority.
            open.commit(&self.fingerprint)?;
            open.rest()?;
        }
        if !step.is_empty() {
            check_room(&self.folder)?;
            let how = Pace::of(step.is_last, memory_bytes, indexes.is_hurried());
            if !open.take(&self.layout, kind, &step, how, &self.fingerprint)? {
                return Ok(Progress::Behind { n_left: step.n_left });
            }
        }
        open.taken = step.upto;
        if 0 < open.n_pending
            && (step.is_last
                || is_near(step.n_left)
                    && !indexes.is_hurried()
                    && indexes.lag.changes_to_commit(open.body_bytes) <= open.n_pending
                || pause_between_commits(step.n_left, open.commit_took, indexes.is_hurried())
                    < open.committed_at.elapsed())
        {
            open.commit(&self.fingerprint)?;
            open.is_published = false;
        }
        if !step.is_last && !open.is_published && 0 < open.covered {
            // Writers may never pause: searches read the missing records themselves, unless there are too many.
            open.publish(indexes, kind, &self.layout, &self.store)?;
        }
        if step.is_last {
            self.n_failures = 0;
            if open.n_pending == 0 {
                // Only changes of other kinds have advanced the number.
                open.covered = open.taken;
            }
            let is_idle = IDLE < open.changed_at.elapsed();
            if is_idle && !std::mem::replace(&mut open.is_looked_over, true) && open.has_to_merge()? {
                // An earlier process has broken off merges. A commit begins them.
                let how = Pace { memory_bytes: FOLLOWING_BYTES, is_hurried: false };
                if open.writer.is_some() || open.begin(&self.layout, how, &self.fingerprint)? {
                    open.commit(&self.fingerprint)?;
                }
            }
            // A command that waits for the index wants its segments merged.
            if open.writer.is_some() && (indexes.is_hurried() || is_idle && !open.has_to_merge()?) {
                open.rest()?;
            }
            open.is_published &= !open.has_merged()?;
            if !open.is_published {
                open.publish(indexes, kind, &self.layout, &self.store)?;
            }
            return Ok(Progress::Current);
        }
        Ok(Progress::Behind { n_left: step.n_left })
    }

    /// Reports how far the index has come after a step.
    fn tell(&self, lag: &Lag, progress: Option<&Progress>) {
        let n_left = match progress {
            Some(Progress::Current) => Some(0),
            Some(Progress::Behind { n_left }) => Some(*n_left),
            Some(Progress::Paused | Progress::Unneeded) | None => None,
        };
        match (n_left, &self.open) {
            (Some(n_left), Some(open)) => {
                let (upto, body_bytes) = (open.covered, open.body_bytes);
                let n_segments = open.reader.searcher().segment_readers().len() as u64;
                lag.note_covered(self.kind.name, Covered { upto, n_left, body_bytes, n_segments });
            }
            _ => lag.note_paused(self.kind.name),
        }
    }

    /// Returns whether nothing is to be done until a change after `last`, given how far a step came.
    fn is_at_rest(&self, progress: Option<&Progress>, last: u64) -> bool {
        let has_all = |open: &Open| {
            last <= open.taken && open.is_published && open.is_looked_over && open.writer.is_none()
        };
        match progress {
            Some(Progress::Unneeded) => true,
            Some(Progress::Current) => self.open.as_ref().is_some_and(has_all),
            _ => false,
        }
    }

    /// Notes that nothing has changed up to a number.
    fn pass_over(&mut self, lag: &Lag, upto: u64) {
        let Some(open) = &mut self.open else { return };
        open.taken = open.taken.max(upto);
        open.covered = open.taken;
        self.tell(lag, Some(&Progress::Current));
    }

    /// Starts over for another primary, which may lack changes that the index holds, and assign their numbers to
    /// others.
    fn begin_anew(&mut self, indexes: &Indexes, store: String) -> Result<Progress> {
        tracing::info!(kind = self.kind.name, "the database has another history; rebuilding a search index");
        indexes.publish(self.kind, None);
        self.open = None;
        remove(&self.folder)?;
        self.fingerprint = fingerprint(self.kind, &store);
        self.store = store;
        Ok(Progress::Behind { n_left: 0 })
    }

    fn open_index(&self) -> Result<Open> {
        let made = |source| StoreError::Io { path: self.folder.display().to_string(), source };
        std::fs::create_dir_all(&self.folder).map_err(made)?;
        let directory = MmapDirectory::open(&self.folder).map_err(|it| StoreError::Index(it.to_string()))?;
        let is_there = Index::exists(&directory).map_err(|it| StoreError::Index(it.to_string()))?;
        let index = if is_there {
            Index::open(directory)?
        } else {
            Index::create(directory, self.layout.schema.clone(), tantivy::IndexSettings::default())?
        };
        index.tokenizers().register(CUTTER, TextAnalyzer::from(Cutter::new()));
        let covered = match index.load_metas()?.payload {
            None => 0,
            Some(payload) => covered_of(&payload, &self.fingerprint).ok_or_else(|| {
                StoreError::Index("it was made with another declaration, or of another store".to_owned())
            })?,
        };
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let now = Instant::now();
        Ok(Open {
            index,
            reader,
            writer: None,
            large: None,
            is_hurried: false,
            covered,
            taken: covered,
            n_pending: 0,
            body_bytes: 0,
            committed_at: now,
            commit_took: Duration::ZERO,
            changed_at: now,
            is_published: false,
            is_looked_over: false,
        })
    }

    /// Pauses an index after a failure. One that cannot be read, or has failed repeatedly, is thrown away and rebuilt;
    /// one that could not be written stays in use as it was.
    fn fail(&mut self, indexes: &Indexes, error: &StoreError) {
        let is_readable = self.open.take().is_some();
        self.settled_at = None;
        self.n_failures = self.n_failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause_after(self.n_failures));
        let is_forgiven = is_readable && self.n_failures <= FORGIVEN_FAILURES;
        if matches!(error, StoreError::Index(_)) && !is_forgiven {
            indexes.publish(self.kind, None);
            if let Err(error) = remove(&self.folder) {
                tracing::warn!(kind = self.kind.name, %error, "an obsolete search index could not be removed");
            }
        }
    }

    /// Commits what is pending.
    fn close(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        if 0 < open.n_pending {
            open.commit(&self.fingerprint)?;
        }
        Ok(())
    }
}

impl Open {
    /// Creates an index writer. Unless the build is hurried, its merges run at low priority, as do its first workers: they
    /// inherit the priority of the thread that starts them. The workers after a commit have that of the builder.
    fn begin_writer(&self, options: IndexWriterOptions) -> Result<IndexWriter<IndexDocument>> {
        if self.is_hurried {
            return Ok(self.index.writer_with_options(options)?);
        }
        let begin = || {
            step_back();
            self.index.writer_with_options(options)
        };
        let begun = std::thread::scope(|scope| scope.spawn(begin).join());
        Ok(begun.map_err(|_| StoreError::Panicked)??)
    }

    /// Starts a writer; false when the index is already past what this one has taken.
    fn begin(&mut self, layout: &Layout, how: Pace, fingerprint: &str) -> Result<bool> {
        self.large = if FOLLOWING_BYTES < how.memory_bytes { Large::take() } else { None };
        self.is_hurried = how.is_hurried;
        let memory_bytes = if self.large.is_some() { how.memory_bytes } else { FOLLOWING_BYTES };
        let n_threads = if FOLLOWING_BYTES < memory_bytes { 2 } else { 1 };
        let options = IndexWriterOptions::builder()
            .num_worker_threads(n_threads)
            .memory_budget_per_thread(memory_bytes / n_threads)
            .num_merge_threads(MERGES)
            .build();
        let writer = self.begin_writer(options)?;
        writer.set_merge_policy(Box::new(merge_policy()));
        // Another process may have updated the index meanwhile.
        if let Some(payload) = self.index.load_metas()?.payload {
            let covered = covered_of(&payload, fingerprint)
                .ok_or_else(|| StoreError::Index("another program rebuilt it".to_owned()))?;
            if self.taken < covered {
                (self.covered, self.taken, self.is_published) = (covered, covered, false);
                return Ok(false);
            }
        }
        use_up_first_number(&writer, layout.terms);
        self.writer = Some(writer);
        // The index may have been opened long ago.
        self.committed_at = Instant::now();
        Ok(true)
    }

    /// Adds the changes of a step to the index; false when the index is already past the start of the step.
    fn take(
        &mut self,
        layout: &Layout,
        kind: &'static Kind,
        step: &Step,
        how: Pace,
        fingerprint: &str,
    ) -> Result<bool> {
        if self.writer.is_none() && !self.begin(layout, how, fingerprint)? {
            return Ok(false);
        }
        let Some(writer) = &self.writer else { return Ok(false) };
        let forget = |id: &str| {
            writer.delete_term(Term::from_field_bytes(layout.terms, &terms::id_term(id)));
        };
        if !step.rows.is_empty() {
            let n_bytes: usize = step.rows.iter().map(|row| row.body.len()).sum();
            self.body_bytes = (n_bytes / step.rows.len()) as u64;
        }
        // A record is in a step only once: its old state is deleted before any new one is added.
        step.deleted.iter().for_each(|id| forget(id));
        step.rows.iter().filter(|row| row.version != 1).for_each(|row| forget(&row.id));
        let threads = match (self.large.is_some(), self.is_hurried) {
            (false, _) => Threads::One,
            (true, false) => Threads::SteppedBack,
            (true, true) => Threads::Several,
        };
        let chunks: Vec<&[Row]> = step.rows.chunks(CHUNK_RECORDS).collect();
        on_each(
            &chunks,
            |it| it.len() as u32,
            threads,
            |rows| {
                let mut document = DocumentBuilder::default();
                for row in *rows {
                    writer.add_document(layout.document(kind, row, &mut document)?)?;
                }
                Ok(())
            },
        )?;
        self.n_pending += (step.rows.len() + step.deleted.len()) as u64;
        self.changed_at = Instant::now();
        Ok(true)
    }

    /// Publishes the committed state to searches.
    fn publish(
        &mut self,
        indexes: &Indexes,
        kind: &'static Kind,
        layout: &Layout,
        store: &str,
    ) -> Result<()> {
        self.reader.reload()?;
        let (searcher, layout) = (self.reader.searcher(), layout.clone());
        let snapshot = Snapshot {
            searcher,
            layout,
            covered: self.covered,
            store: store.to_owned(),
            decoded: indexes.decoded.clone(),
            lag: indexes.lag.clone(),
            lists: Mutex::default(),
        };
        indexes.publish(kind, Some(snapshot));
        self.is_published = true;
        Ok(())
    }

    fn commit(&mut self, fingerprint: &str) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let begun = Instant::now();
        let mut commit = writer.prepare_commit()?;
        commit.set_payload(&format!("{fingerprint} {}", self.taken));
        commit.commit()?;
        self.covered = self.taken;
        self.n_pending = 0;
        self.committed_at = Instant::now();
        self.commit_took = begun.elapsed();
        Ok(())
    }

    /// Returns whether merges have replaced segments that searches use.
    fn has_merged(&self) -> Result<bool> {
        let n_segments = self.reader.searcher().segment_readers().len();
        Ok(self.writer.is_some() && self.index.searchable_segment_ids()?.len() < n_segments)
    }

    /// Returns whether segments are to be merged: a writer that rests waits for that.
    fn has_to_merge(&self) -> Result<bool> {
        let segments = self.index.searchable_segment_metas()?;
        Ok(!merge_policy().compute_merge_candidates(&segments).is_empty())
    }

    /// Releases the writer's threads and memory.
    fn rest(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            writer.wait_merging_threads()?;
            self.large = None;
            self.is_published = false;
        }
        Ok(())
    }
}

/// Share of deleted documents from which a segment is rewritten.
const DELETED_SHARE: f32 = 0.2;

fn merge_policy() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_del_docs_ratio_before_merge(DELETED_SHARE);
    policy
}
