//! The thread that keeps a tenant's indexes up to the sequence of changes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tantivy::directory::MmapDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::Field;
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Term};

use super::layout::{CUTTER, Layout, Row, fingerprint};
use super::words::Cutter;
use super::{Indexes, Snapshot, terms};
use crate::counters::is_behind;
use crate::priority::step_back;
use crate::session::{Flavour, Session};
use crate::view::HORIZON;
use crate::{Kind, Limits, Result, StoreError, View};

/// Records read in one step.
const STEP_RECORDS: u64 = 1_000;
/// Bytes of bodies after which a step ends.
const STEP_BYTES: usize = 16 << 20;
/// Between two commits of an index that is far behind at most: what a crash makes it do again.
const COMMIT_AT_MOST: Duration = Duration::from_secs(30);
/// Between two commits of an index that is behind by no more than searches look at themselves: what they look at stays little
/// beside writers that never rest.
const COMMIT_NEARBY: Duration = Duration::from_millis(500);
/// Commits take one part of so many of the time at most.
const COMMIT_SHARE: u32 = 8;
/// Between two looks for changes that nobody rang for: those of another process.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// The same in a database, which other servers change all day.
pub(crate) const LOOK_AT_DATABASE: Duration = Duration::from_secs(1);
/// Without changes for so long, what only writing needs is let go.
const IDLE: Duration = Duration::from_secs(20);
/// Waited after a failure, and twice as long after each further one.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);
/// Waited after many failures.
const FAILURE_PAUSE_MOST: Duration = Duration::from_secs(600);
/// Failures to write after which an index that can be read is thrown away all the same.
const FORGIVEN_FAILURES: u32 = 3;
/// Space of the disk that is left to the store: with less an index does not grow.
const RESERVED_BYTES: u64 = 256 << 20;
/// Records from which on a kind gets an index.
pub(crate) const MANY_RECORDS: u64 = 200;
/// Changed records that a search looks at one by one; with more, the index is behind and something else answers.
pub(super) const TAIL_RECORDS: u64 = 50_000;
/// Memory of a writer that follows.
const FOLLOWING_BYTES: usize = 48 << 20;

/// Gives a closure a snapshot of the store.
pub(crate) type Reader = Box<dyn FnMut(&mut dyn FnMut(&mut View<'_>) -> Result<()>) -> Result<()> + Send>;

/// Keeps the indexes of one tenant.
pub(crate) struct Builder {
    indexes: Arc<Indexes>,
    reader: Reader,
    kinds: Vec<KindBuilder>,
    /// Memory of a writer that is far behind.
    memory_bytes: usize,
    /// Between two commits at least, so that writers have most of the disk and of the processors.
    pause: Duration,
    /// Between two looks for changes that nobody rang for.
    look: Duration,
}

struct KindBuilder {
    kind: &'static Kind,
    folder: PathBuf,
    layout: Layout,
    /// See [`store_identity`].
    store: String,
    fingerprint: String,
    open: Option<Open>,
    /// Failures in a row.
    n_failures: u32,
    not_before: Option<Instant>,
}

/// An index that is open.
struct Open {
    index: Index,
    reader: IndexReader,
    writer: Option<IndexWriter>,
    /// Held by a writer with much memory.
    large: Option<Large>,
    /// Committed up to here.
    covered: u64,
    /// Taken up to here.
    taken: u64,
    /// Documents that are not committed.
    n_pending: u64,
    committed_at: Instant,
    /// How long the last commit took.
    commit_took: Duration,
    changed_at: Instant,
    is_published: bool,
}

/// How a step left an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Current,
    Behind,
}

impl Builder {
    /// A builder that reads the store by `reader`.
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
        });
        Self {
            kinds: kinds.collect(),
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
            for kind in &mut self.kinds {
                if suspects.contains(&kind.kind.name) {
                    kind.open = None;
                    kind.fail(&self.indexes, &StoreError::Index("a search failed".to_owned()));
                }
                if kind.not_before.is_some_and(|it| Instant::now() < it) {
                    continue;
                }
                match kind.advance(&self.indexes, &mut self.reader, self.memory_bytes) {
                    Ok(Progress::Behind) => is_behind = true,
                    Ok(Progress::Current) => {}
                    Err(StoreError::Unavailable(reason)) => {
                        // The next pass asks the database again; what is published serves on.
                        tracing::debug!(reason, "search indexes wait for the database");
                        break;
                    }
                    Err(error) => {
                        tracing::warn!(kind = kind.kind.name, %error, "a search index could not follow");
                        kind.fail(&self.indexes, &error);
                    }
                }
                if self.indexes.is_closed() {
                    break;
                }
            }
            if !is_behind {
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
            // Its classes may be those of the former declaration.
            return Ok(Progress::Current);
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
                return Ok(Progress::Current);
            }
            let mut open = self.open_index()?;
            if 0 < open.covered {
                // What is behind serves already: searches look at the rest themselves.
                open.publish(indexes, kind, &self.layout, &self.store)?;
            }
            self.open = Some(open);
        }
        let Some(after) = self.open.as_ref().map(|it| it.taken) else { return Ok(Progress::Current) };
        let (mut step, kind) = (Step::default(), self.kind);
        let mut store = None;
        reader(&mut |view| {
            if view.session.flavour() == Flavour::Postgres {
                store = Some(store_identity(&mut view.session)?);
            }
            step = Step::read(view, kind, after)?;
            Ok(())
        })?;
        if let Some(store) = store.filter(|it| *it != self.store) {
            return self.begin_anew(indexes, store);
        }
        let Some(open) = &mut self.open else { return Ok(Progress::Current) };
        if step.is_loading {
            return Ok(Progress::Current);
        }
        if !step.is_empty() {
            has_room(&self.folder)?;
            let far = if step.is_last { FOLLOWING_BYTES } else { memory_bytes.max(FOLLOWING_BYTES) };
            if !open.take(&self.layout, kind, &step, far, &self.fingerprint)? {
                return Ok(Progress::Behind);
            }
        }
        open.taken = step.upto;
        if 0 < open.n_pending
            && (step.is_last
                || pause_between_commits(step.n_left, open.commit_took) < open.committed_at.elapsed())
        {
            open.commit(&self.fingerprint)?;
            open.is_published = false;
        }
        if !step.is_last && !open.is_published && 0 < open.covered {
            // Beside writers that never rest: searches look at what is missing themselves, unless it is too much.
            open.publish(indexes, kind, &self.layout, &self.store)?;
        }
        if step.is_last {
            self.n_failures = 0;
            if open.n_pending == 0 {
                // Changes of other kinds moved the number alone.
                open.covered = open.taken;
            }
            if open.writer.is_some() && IDLE < open.changed_at.elapsed() {
                open.rest()?;
            }
            if !open.is_published {
                open.publish(indexes, kind, &self.layout, &self.store)?;
            }
            return Ok(Progress::Current);
        }
        Ok(Progress::Behind)
    }

    /// Another primary may have lost what the index holds already, and give its numbers to other changes.
    fn begin_anew(&mut self, indexes: &Indexes, store: String) -> Result<Progress> {
        tracing::info!(
            kind = self.kind.name,
            "the database has another history: a search index is made anew"
        );
        indexes.publish(self.kind, None);
        self.open = None;
        remove(&self.folder)?;
        self.fingerprint = fingerprint(self.kind, &store);
        self.store = store;
        Ok(Progress::Behind)
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
            covered,
            taken: covered,
            n_pending: 0,
            committed_at: now,
            commit_took: Duration::ZERO,
            changed_at: now,
            is_published: false,
        })
    }

    /// Lets an index rest that failed. One that cannot be read, or has failed again and again, is thrown away to be made
    /// anew; one that could not be written goes on serving as it was.
    fn fail(&mut self, indexes: &Indexes, error: &StoreError) {
        let is_readable = self.open.take().is_some();
        self.n_failures = self.n_failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause_after(self.n_failures));
        let is_forgiven = is_readable && self.n_failures <= FORGIVEN_FAILURES;
        if matches!(error, StoreError::Index(_)) && !is_forgiven {
            indexes.publish(self.kind, None);
            if let Err(error) = remove(&self.folder) {
                tracing::warn!(kind = self.kind.name, %error, "a search index could not be thrown away");
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
    /// Whole indexes are made at leisure: the threads of such a writer, its merges too, leave the processor to those that
    /// answer. They have the priority of the thread that begins them.
    fn begin_writer(&self, options: IndexWriterOptions) -> Result<IndexWriter> {
        if self.large.is_none() {
            return Ok(self.index.writer_with_options(options)?);
        }
        let begin = || {
            step_back();
            self.index.writer_with_options(options)
        };
        let begun = std::thread::scope(|scope| scope.spawn(begin).join());
        Ok(begun.map_err(|_| StoreError::Panicked)??)
    }

    /// Puts the changes of a step into the index; false when the index has more than they begin with.
    fn take(
        &mut self,
        layout: &Layout,
        kind: &'static Kind,
        step: &Step,
        memory_bytes: usize,
        fingerprint: &str,
    ) -> Result<bool> {
        if self.writer.is_none() {
            self.large = if FOLLOWING_BYTES < memory_bytes { Large::take() } else { None };
            let memory_bytes = if self.large.is_some() { memory_bytes } else { FOLLOWING_BYTES };
            let n_threads = if FOLLOWING_BYTES < memory_bytes { 2 } else { 1 };
            let options = IndexWriterOptions::builder()
                .num_worker_threads(n_threads)
                .memory_budget_per_thread(memory_bytes / n_threads)
                .num_merge_threads(1)
                .build();
            let writer = self.begin_writer(options)?;
            let mut policy = LogMergePolicy::default();
            policy.set_del_docs_ratio_before_merge(DELETED_SHARE);
            writer.set_merge_policy(Box::new(policy));
            // Another process may have kept the index meanwhile.
            if let Some(payload) = self.index.load_metas()?.payload {
                let covered = covered_of(&payload, fingerprint)
                    .ok_or_else(|| StoreError::Index("another program made it anew".to_owned()))?;
                if self.taken < covered {
                    (self.covered, self.taken, self.is_published) = (covered, covered, false);
                    return Ok(false);
                }
            }
            use_up_first_number(&writer, layout.terms);
            self.writer = Some(writer);
        }
        let Some(writer) = &self.writer else { return Ok(false) };
        let forget = |id: &str| {
            writer.delete_term(Term::from_field_bytes(layout.terms, &terms::id_term(id)));
        };
        step.deleted.iter().for_each(|id| forget(id));
        for row in &step.rows {
            if row.version != 1 {
                forget(&row.id);
            }
            writer.add_document(layout.document(kind, row)?)?;
        }
        self.n_pending += (step.rows.len() + step.deleted.len()) as u64;
        self.changed_at = Instant::now();
        Ok(true)
    }

    /// Lets searches use what is committed.
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
            counted: Mutex::default(),
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

    /// Lets the writer's threads and memory go.
    fn rest(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            writer.wait_merging_threads()?;
            self.large = None;
            self.is_published = false;
        }
        Ok(())
    }
}

/// A writer gives its first operation the number of the commit that it found. A deletion of that number is lost when a merge
/// begins before the next commit, and one of the segments was changed by the commit found. So the first one deletes nothing.
fn use_up_first_number(writer: &IndexWriter, terms: Field) {
    writer.delete_term(Term::from_field_bytes(terms, &terms::nobodys_term()));
}

/// Least time between two commits with so many changes left to take, of which the last one took so long.
fn pause_between_commits(n_left: u64, commit_took: Duration) -> Duration {
    if n_left <= TAIL_RECORDS { COMMIT_NEARBY.max(commit_took * COMMIT_SHARE) } else { COMMIT_AT_MOST }
}

/// How long an index rests after so many failures in a row.
fn pause_after(n_failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(n_failures.saturating_sub(1)).filter(|it| *it != 0).unwrap_or(u32::MAX);
    FAILURE_PAUSE.saturating_mul(factor).min(FAILURE_PAUSE_MOST)
}

/// Errors: the disk has no more space than the store should have for itself.
fn has_room(folder: &Path) -> Result<()> {
    let io = |source| StoreError::Io { path: folder.display().to_string(), source };
    if fs4::available_space(folder).map_err(io)? < RESERVED_BYTES {
        return Err(StoreError::Full(format!("the search index in {}", folder.display())));
    }
    Ok(())
}

/// The right to much memory, which one index of all tenants has at a time.
struct Large;

static IS_LARGE: AtomicBool = AtomicBool::new(false);

impl Large {
    fn take() -> Option<Self> {
        (!IS_LARGE.swap(true, Ordering::AcqRel)).then_some(Self)
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        IS_LARGE.store(false, Ordering::Release);
    }
}

/// Share of deleted documents from which on a segment is written anew.
const DELETED_SHARE: f32 = 0.2;

/// Changes of a kind, out of one snapshot.
#[derive(Debug, Default)]
struct Step {
    rows: Vec<Row>,
    deleted: Vec<String>,
    /// These are all changes up to this number.
    upto: u64,
    /// Whether there are no others.
    is_last: bool,
    /// Changes behind it at most, of all kinds.
    n_left: u64,
    /// Whether a bulk load is under way, which is taken when it is over.
    is_loading: bool,
}

impl Step {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.deleted.is_empty()
    }

    fn read(view: &mut View<'_>, kind: &'static Kind, after: u64) -> Result<Self> {
        let flavour = view.session.flavour();
        if flavour == Flavour::Sqlite && is_behind(&mut view.session, kind.name)? {
            return Ok(Self { is_loading: true, ..Self::default() });
        }
        let last = last_sequence(&mut view.session)?;
        let window = match flavour {
            Flavour::Sqlite => "LIMIT ?3",
            Flavour::Postgres => "FETCH FIRST ?3 ROWS WITH TIES",
        };
        let sql = format!(
            "SELECT r.key, r.id, r.version, r.sequence, {} FROM {} WHERE ?1 < r.sequence AND r.sequence <= ?2 \
             ORDER BY r.sequence {window}",
            flavour.body(),
            flavour.rows_with_bodies(kind.name)
        );
        let (mut rows, mut n_bytes, mut is_cut) = (Vec::new(), 0, false);
        view.session.rows(&sql, &[after.into(), last.into(), STEP_RECORDS.into()], |row| {
            let row = Row {
                key: row.int(0)?,
                id: row.text(1)?,
                version: row.int(2)?,
                sequence: row.int(3)?,
                body: row.bytes(4)?,
            };
            // Changes of one number stay together.
            if STEP_BYTES < n_bytes && rows.last().is_some_and(|it: &Row| it.sequence != row.sequence) {
                is_cut = true;
                return Ok(std::ops::ControlFlow::Break(()));
            }
            n_bytes += row.body.len();
            rows.push(row);
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        let is_last = !is_cut && (rows.len() as u64) < STEP_RECORDS;
        let upto = match rows.last() {
            Some(row) if !is_last => row.sequence.cast_unsigned(),
            _ => last.max(after),
        };
        let sql = "SELECT id FROM tombstone WHERE kind = ?1 AND ?2 < sequence AND sequence <= ?3";
        let values = [kind.name.into(), after.into(), upto.into()];
        let deleted = view.session.all(sql, &values, |row| row.text(0))?;
        Ok(Self { rows, deleted, upto, is_last, n_left: last.saturating_sub(upto), is_loading: false })
    }
}

/// The number of the last change such that no older one can come any more.
pub(super) fn last_sequence(session: &mut Session<'_>) -> Result<u64> {
    let sql = match session.flavour() {
        Flavour::Sqlite => "SELECT value FROM meta WHERE name = 'sequence'".to_owned(),
        Flavour::Postgres => format!("SELECT {HORIZON} - 1"),
    };
    Ok(session.first(&sql, &[], |row| row.int(0))?.unwrap_or(0).cast_unsigned())
}

/// What tells a tenant of a database from all others, and the history of its primary from that of another: a standby that
/// takes over may lack what was committed last.
pub(super) const DATABASE_IDENTITY: &str = "(SELECT c.system_identifier::text || '-' \
     || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '-' || d.oid::text || '-' || n.oid::text \
     FROM pg_control_system() c, pg_database d, pg_namespace n \
     WHERE d.datname = current_database() AND n.nspname = current_schema())";

/// What tells a store from all others.
pub(crate) fn store_identity(session: &mut Session<'_>) -> Result<String> {
    if session.flavour() == Flavour::Postgres {
        let sql = format!("SELECT {DATABASE_IDENTITY}");
        return session
            .first(&sql, &[], |row| row.text(0))?
            .ok_or_else(|| StoreError::Damaged("the database has no identity".into()));
    }
    let sql = "SELECT value FROM meta WHERE name = 'store'";
    let number = session.first(sql, &[], |row| row.int(0))?;
    number
        .map(|it| format!("{it:016x}"))
        .ok_or_else(|| StoreError::Damaged("the store has no identity".into()))
}

/// Whether records of a kind were changed after a number.
pub(super) fn has_changed_since(session: &mut Session<'_>, kind: &Kind, covered: u64) -> Result<bool> {
    let sql = format!("SELECT 1 FROM \"k_{}\" WHERE ?1 < sequence LIMIT 1", kind.name);
    if session.first(&sql, &[covered.into()], |_| Ok(()))?.is_some() {
        return Ok(true);
    }
    let sql = "SELECT 1 FROM tombstone WHERE kind = ?1 AND ?2 < sequence LIMIT 1";
    Ok(session.first(sql, &[kind.name.into(), covered.into()], |_| Ok(()))?.is_some())
}

/// Whether a kind has so many records that an index is worth having.
pub(super) fn has_many(session: &mut Session<'_>, kind: &Kind) -> Result<bool> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM \"k_{}\" LIMIT ?1) x", kind.name);
    let n = session.first(&sql, &[MANY_RECORDS.into()], |row| row.int(0))?.unwrap_or(0);
    Ok(MANY_RECORDS <= n.cast_unsigned())
}

fn covered_of(payload: &str, fingerprint: &str) -> Option<u64> {
    payload.strip_prefix(fingerprint)?.trim().parse().ok()
}

/// Up to where the index in a folder covers the changes of this store; `None` when it is another's, or cannot be read.
/// One without a commit covers nothing.
pub(super) fn covered_on_disk(folder: &Path, kind: &'static Kind, store: &str) -> Option<u64> {
    let file = folder.join("meta.json");
    if !file.exists() {
        return Some(0);
    }
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    match meta.get("payload").and_then(|it| it.as_str()) {
        None => Some(0),
        Some(payload) => covered_of(payload, &fingerprint(kind, store)),
    }
}

/// Throws an index away.
pub(crate) fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: folder.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tantivy::collector::Count;
    use tantivy::indexer::{LogMergePolicy, NoMergePolicy};
    use tantivy::query::TermQuery;
    use tantivy::schema::{INDEXED, IndexRecordOption, Schema};
    use tantivy::{Index, IndexWriter, TantivyDocument, Term};

    use super::{
        COMMIT_AT_MOST, COMMIT_NEARBY, Duration, FAILURE_PAUSE, FAILURE_PAUSE_MOST, TAIL_RECORDS,
        pause_after, pause_between_commits, use_up_first_number,
    };

    /// Records were in an index that were deleted first after the start of a server.
    #[test]
    fn the_first_deletion_of_a_writer_outlives_a_merge() -> tantivy::Result<()> {
        let mut schema = Schema::builder();
        let terms = schema.add_bytes_field("terms", INDEXED);
        let index = Index::create_in_ram(schema.build());
        let add = |writer: &IndexWriter, from: u64, to: u64| {
            (from..to).try_for_each(|n| {
                let mut document = TantivyDocument::default();
                document.add_bytes(terms, &n.to_be_bytes());
                writer.add_document(document).map(drop)
            })
        };
        let term = |n: u64| Term::from_field_bytes(terms, &n.to_be_bytes());
        // Two segments, the smaller of which was changed by the last commit.
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 << 20)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for (from, to) in [(0, 50), (50, 60)] {
            add(&writer, from, to)?;
            writer.commit()?;
        }
        writer.delete_term(term(50));
        writer.commit()?;
        writer.wait_merging_threads()?;

        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15 << 20)?;
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(2);
        writer.set_merge_policy(Box::new(policy));
        use_up_first_number(&writer, terms);
        writer.delete_term(term(51));
        add(&writer, 60, 61)?;
        writer.commit()?;
        writer.wait_merging_threads()?;

        let searcher = index.reader()?.searcher();
        assert_eq!(searcher.num_docs(), 59);
        for (n, n_found) in [(50, 0), (51, 0), (52, 1), (60, 1)] {
            let query = TermQuery::new(term(n), IndexRecordOption::Basic);
            assert_eq!(searcher.search(&query, &Count)?, n_found, "{n}");
        }
        Ok(())
    }

    /// What is near is committed often, but not all the time; what is far behind is not made again too often.
    #[test]
    fn commits_are_frequent_near_the_end() {
        let ms = Duration::from_millis;
        for (n_left, took, expected) in [
            (0, ms(1), COMMIT_NEARBY),
            (TAIL_RECORDS, ms(20), COMMIT_NEARBY),
            (10, ms(200), ms(1_600)),
            (TAIL_RECORDS + 1, ms(200), COMMIT_AT_MOST),
        ] {
            assert_eq!(pause_between_commits(n_left, took), expected, "{n_left} changes, {took:?}");
        }
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        assert_eq!(pause_after(1), FAILURE_PAUSE);
        assert_eq!(pause_after(2), FAILURE_PAUSE * 2);
        assert_eq!(pause_after(4), FAILURE_PAUSE * 8);
        for many in [10, 32, 33, u32::MAX] {
            assert_eq!(pause_after(many), FAILURE_PAUSE_MOST);
        }
    }
}
