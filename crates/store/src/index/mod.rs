//! The search index: an inverted index and columns for each kind that asks for one, on local disk.
//!
//! In a database each server has a copy of its own. It follows the sequence of changes on a thread of its own and says, with each commit, up to which number it covers
//! them. A search takes the index as it was published before the search's snapshot began, and decides the records that
//! were changed since on their bodies, out of that same snapshot: they override what the index says. So what was
//! committed is found by the next search, however far the index is behind, and writers never wait for it.
//!
//! The index holds nothing that the store does not: one that is torn, of another version or of another store is thrown
//! away and made anew, while queries are answered without it.

mod builder;
mod changes;
mod check;
mod condition;
mod folder;
mod found;
mod layout;
mod lists;
mod order;
mod page;
mod parallel;
mod select;
mod set;
mod terms;
mod texts;
mod values;
mod waiting;
mod words;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tantivy::Searcher;

pub(crate) use self::builder::{Builder, LOOK, LOOK_AT_DATABASE};
pub(crate) use self::changes::{MANY_RECORDS, store_identity};
pub(crate) use self::check::check;
pub(crate) use self::folder::remove;
pub(crate) use self::found::{Decider, Found};
use self::layout::Layout;
pub(crate) use self::lists::browse;
pub(crate) use self::order::{ORDERS, SortBy};
pub(crate) use self::terms::{is_indexed, words_of};
use crate::session::Session;
use crate::{Kind, Result, StoreError};

/// The indexes of a tenant.
pub(crate) struct Indexes {
    /// One folder below for each kind.
    folder: PathBuf,
    kinds: Vec<&'static Kind>,
    current: Mutex<Arc<Snapshots>>,
    published: Condvar,
    /// Those that failed a search.
    suspects: Mutex<Vec<&'static str>>,
    bell: Mutex<Bell>,
    rung: Condvar,
    /// Whether somebody waits for all of them and nobody for anything else.
    is_hurried: AtomicBool,
    standing: Mutex<Standing>,
}

/// How far the builder is.
#[derive(Debug, Default)]
struct Standing {
    /// Changes left to take.
    n_left: u64,
    /// Why it takes none.
    fault: Option<String>,
}

/// What is published of a tenant's indexes, by kind.
pub(crate) type Snapshots = HashMap<&'static str, Arc<Snapshot>>;

/// An index as of one of its commits.
pub(crate) struct Snapshot {
    searcher: Searcher,
    layout: Layout,
    /// Changes up to this number are in it.
    covered: u64,
    /// Of this store.
    store: String,
    /// How many entries lists have, by their number and the condition.
    counted: Mutex<HashMap<(usize, String), u64>>,
}

impl Snapshot {
    /// Documents that are in it.
    pub(crate) fn n_documents(&self) -> u64 {
        self.searcher.num_docs()
    }
}

/// What wakes the builder.
#[derive(Debug, Default)]
struct Bell {
    is_rung: bool,
    is_closed: bool,
}

impl Indexes {
    /// The indexes in `folder`; those that are not of this store, as it is now, are thrown away. To be called before
    /// anything is written.
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
                tracing::info!(kind = kind.name, "a search index is made anew");
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
            is_hurried: AtomicBool::new(false),
            standing: Mutex::default(),
        })
    }

    /// What is published. To be taken before the snapshot of the store begins that it is used with.
    pub(crate) fn current(&self) -> Arc<Snapshots> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, kind: &'static Kind, snapshot: Option<Snapshot>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = (**current).clone();
        match snapshot {
            Some(snapshot) => changed.insert(kind.name, Arc::new(snapshot)),
            None => changed.remove(kind.name),
        };
        *current = Arc::new(changed);
        self.published.notify_all();
    }

    /// Waits until something else than `seen` is published, for so long at most.
    pub(crate) fn wait_for_other(&self, seen: &Arc<Snapshots>, time: Duration) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.published.wait_timeout_while(current, time, |it| Arc::ptr_eq(it, seen)));
    }

    /// Says that the index of a kind failed a search: it is not asked again, and made anew.
    pub(crate) fn distrust(&self, kind: &'static Kind) {
        self.publish(kind, None);
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).push(kind.name);
        self.ring();
    }

    fn take_suspects(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.suspects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says that something was committed.
    pub(crate) fn ring(&self) {
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if !bell.is_rung {
            bell.is_rung = true;
            self.rung.notify_all();
        }
    }

    /// Has the builder take all processors from now on, or no longer.
    fn set_hurried(&self, is_hurried: bool) {
        self.is_hurried.store(is_hurried, Ordering::Release);
        if is_hurried {
            self.stand(Standing::default());
            self.ring();
        }
    }

    fn is_hurried(&self) -> bool {
        self.is_hurried.load(Ordering::Acquire)
    }

    fn stand(&self, standing: Standing) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// Changes left to take. Errors: why the builder takes none.
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
    }

    fn is_closed(&self) -> bool {
        self.bell.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Waits until it is closed, for so long at most.
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

    /// Waits until something was committed, for so long at most.
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

    /// Whether all that a view sees is in the indexes.
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

/// Where the indexes of a tenant's file lie.
pub(crate) fn folder_of(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}-search", file.display()))
}
