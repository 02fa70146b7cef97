//! The search index: an inverted index and columns for each kind that declares one, on local disk.
//!
//! In a database each server has a copy of its own. A thread follows the sequence of changes and records in each commit
//! up to which number the index covers them. A search uses the index as published before the search's snapshot began,
//! and decides the records changed since then on their bodies, from that same snapshot: these override the index. So
//! the next search finds everything committed, however far the index is behind. So that it is not far behind, the writer
//! of a file waits for an index that it outruns, for a bounded time (`lag.rs`).
//!
//! The index holds nothing that the store does not: one that is damaged, of another version or of another store is
//! thrown away and rebuilt, while queries are answered without it.

mod ascending;
mod builder;
mod candidates;
mod changes;
mod check;
mod codes;
mod condition;
mod decoded;
mod distinct;
mod document;
mod entries;
mod first_number;
mod first_rows;
mod folder;
mod found;
mod hashes;
mod infos;
mod join_column;
mod joins;
mod lag;
mod layout;
mod lists;
mod member_values;
mod members;
mod order;
mod pace;
mod page;
mod parallel;
mod rank;
mod ranked;
mod read_members;
mod recent;
mod remembered;
mod select;
mod set;
mod terms;
mod texts;
mod value_counts;
mod values;
mod waiting;
mod walk;
mod words;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tantivy::Searcher;
use tantivy::index::SegmentId;

pub(crate) use self::builder::{Builder, LOOK, LOOK_AT_DATABASE};
pub(crate) use self::candidates::Candidates;
pub(crate) use self::changes::{MANY_RECORDS, store_identity};
pub(crate) use self::check::check;
use self::decoded::Decoded;
pub(crate) use self::distinct::add_distinct_values;
pub(crate) use self::first_rows::FirstRows;
pub(crate) use self::folder::remove;
pub(crate) use self::found::{Decider, Extent, Found, parse};
use self::lag::Lag;
use self::layout::Layout;
use self::lists::known::Known;
pub(crate) use self::lists::{browse, count_entries_by, list_traits};
pub(crate) use self::member_values::{number_bound, text_bound};
pub(crate) use self::order::{ORDERS, SortBy};
pub(crate) use self::remembered::Remembered;
pub(crate) use self::terms::is_indexed;
pub use self::waiting::Hurry;
use crate::session::Session;
use crate::{Kind, Result, StoreError};

/// The indexes of a tenant.
pub(crate) struct Indexes {
    /// Has one subfolder for each kind.
    folder: PathBuf,
    kinds: Vec<&'static Kind>,
    current: Mutex<Arc<Snapshots>>,
    published: Condvar,
    /// Kinds whose index failed in a search.
    suspects: Mutex<Vec<&'static str>>,
    bell: Mutex<Bell>,
    rung: Condvar,
    /// Number of reasons to use all processors: see [`Hurry`].
    n_hurries: AtomicUsize,
    standing: Mutex<Standing>,
    lag: Arc<Lag>,
    decoded: Arc<Decoded>,
}

/// Progress of the builder.
#[derive(Debug, Default)]
struct Standing {
    /// Number of changes left to index.
    n_left: u64,
    /// Why it makes no progress.
    fault: Option<String>,
}

/// The published indexes of a tenant, by kind.
pub(crate) type Snapshots = HashMap<&'static str, Arc<Snapshot>>;

/// An index as of one of its commits.
pub(crate) struct Snapshot {
    searcher: Searcher,
    layout: Layout,
    /// It contains the changes up to this number.
    covered: u64,
    /// Identity of its store.
    store: String,
    decoded: Arc<Decoded>,
    lag: Arc<Lag>,
    lists: Mutex<Known>,
}

impl Snapshot {
    /// Returns the number of documents.
    pub(crate) fn n_documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    fn segments(&self) -> HashSet<SegmentId> {
        self.searcher.segment_readers().iter().map(|it| it.segment_id()).collect()
    }
}

/// Wakes the builder.
#[derive(Debug, Default)]
struct Bell {
    is_rung: bool,
    is_closed: bool,
}

impl Indexes {
    /// Opens the indexes in `folder`; those that do not belong to this store in its present state are removed. Must be
    /// called before anything is written.
    pub(crate) fn open(folder: PathBuf, kinds: &[&'static Kind], session: &mut Session<'_>) -> Result<Self> {
        let kinds: Vec<&'static Kind> = kinds.iter().copied().filter(|kind| kind.is_searched()).collect();
        let store = changes::store_identity(session)?;
        let last = changes::last_sequence(session)?;
        for kind in &kinds {
            let own = folder.join(kind.name);
            if own.exists()
                && folder::covered_on_disk(&own, &layout::fingerprint(kind, &store))
                    .is_none_or(|it| last < it)
            {
                tracing::info!(kind = kind.name, "rebuilding a search index");
                remove(&own)?;
            }
        }
        Ok(Self {
            folder,
            kinds,
            current: Mutex::default(),
            published: Condvar::new(),
            suspects: Mutex::default(),
            bell: Mutex::default(),
            rung: Condvar::new(),
            n_hurries: AtomicUsize::new(0),
            standing: Mutex::default(),
            lag: Arc::default(),
            decoded: Arc::new(Decoded::of_tenant()),
        })
    }

    /// Returns the published indexes. Must be called before the store snapshot begins that it is used with.
    pub(crate) fn current(&self) -> Arc<Snapshots> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, kind: &'static Kind, snapshot: Option<Snapshot>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = (**current).clone();
        let mut obsolete = current.get(kind.name).map(|it| it.segments()).unwrap_or_default();
        match snapshot {
            Some(mut snapshot) => {
                if let Some(earlier) = current.get(kind.name) {
                    let known = earlier.lists.lock().unwrap_or_else(PoisonError::into_inner).of_next();
                    snapshot.lists = Mutex::new(known);
                }
                let segments = snapshot.segments();
                obsolete.retain(|it| !segments.contains(it));
                changed.insert(kind.name, Arc::new(snapshot));
            }
            None => drop(changed.remove(kind.name)),
        }
        self.decoded.forget(&obsolete);
        *current = Arc::new(changed);
        self.published.notify_all();
    }

    /// Waits until something else than `seen` is published, for at most `time`.
    pub(crate) fn wait_for_other(&self, seen: &Arc<Snapshots>, time: Duration) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.published.wait_timeout_while(current, time, |it| Arc::ptr_eq(it, seen)));
    }

    /// Marks the index of a kind as failed in a search: it is not used again, and rebuilt.
    pub(crate) fn distrust(&self, kind: &'static Kind) {
        self.publish(kind, None);
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).push(kind.name);
        self.ring();
    }

    fn take_suspects(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.suspects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notifies the builder of a commit of the file's writer, whose last change has this number.
    pub(crate) fn written(&self, sequence: u64) {
        self.lag.note_written(sequence);
        self.ring();
    }

    /// Waits, for a bounded time, while an index that is a little behind lacks too many changes.
    pub(crate) fn hold_back(&self) {
        self.lag.wait();
    }

    /// Notifies the builder of a commit.
    pub(crate) fn ring(&self) {
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if !bell.is_rung {
            bell.is_rung = true;
            self.rung.notify_all();
        }
    }

    /// Lets the builder use all processors until [`Indexes::calm`].
    fn hurry(&self) {
        self.n_hurries.fetch_add(1, Ordering::AcqRel);
        self.stand(Standing::default());
        self.ring();
    }

    /// Ends what [`Indexes::hurry`] began.
    fn calm(&self) {
        self.n_hurries.fetch_sub(1, Ordering::AcqRel);
    }

    fn is_hurried(&self) -> bool {
        0 < self.n_hurries.load(Ordering::Acquire)
    }

    fn stand(&self, standing: Standing) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// Returns the number of changes left to index. Errors: the builder makes no progress.
    fn standing(&self) -> Result<u64> {
        let standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        match &standing.fault {
            Some(fault) => Err(StoreError::Unavailable(fault.clone())),
            None => Ok(standing.n_left),
        }
    }

    /// Ends the builder.
    pub(crate) fn close(&self) {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.rung.notify_all();
        self.lag.release();
        self.current().values().for_each(|it| self.decoded.forget(&it.segments()));
    }

    fn is_closed(&self) -> bool {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Waits until it is closed, for at most `time`.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        while !bell.is_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            bell = self.rung.wait_timeout(bell, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a commit, for at most `time`.
    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        while !bell.is_closed && !bell.is_rung {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            bell = self.rung.wait_timeout(bell, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        bell.is_rung = false;
    }

    /// Returns whether everything that a view sees is in the indexes.
    pub(crate) fn is_current(&self, session: &mut Session<'_>) -> Result<bool> {
        let current = self.current();
        for kind in &self.kinds {
            let is_behind = match current.get(kind.name) {
                Some(snapshot) => changes::has_changed_since(session, kind, snapshot.covered)?,
                None => changes::has_many(session, kind)?,
            };
            if is_behind {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the folder of the indexes of a tenant's file.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-search", file.display()))
}
